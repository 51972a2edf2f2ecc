//! The modules of the process: its program and libraries, and what tells two builds of one apart.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicPtr, Ordering};

use libc::Elf64_Phdr as Header;

use crate::entry::copy_from;

/// A module as it is loaded.
pub(crate) struct Module<'a> {
    /// What is added to the addresses in its file.
    pub(crate) base: usize,
    /// Empty for the program.
    pub(crate) path: &'a [u8],
    headers: &'a [Header],
}

impl Module<'_> {
    pub(crate) fn build_id(&self) -> BuildId {
        BuildId::of(self.base, |number| self.headers.get(number).copied())
    }

    /// Whether `address` lies in its code.
    pub(crate) fn has_code_at(&self, address: usize) -> bool {
        let mut code = self.headers.iter().filter(|it| is_code(it));
        let offset = address.wrapping_sub(self.base);
        code.any(|it| offset.wrapping_sub(size(it.p_vaddr)) < size(it.p_memsz))
    }
}

fn is_code(header: &Header) -> bool {
    header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0
}

/// The text that stands for a build: the linker's id in hexadecimal digits, or, of a module without
/// one, `text-` and a hash of its code.
#[derive(Clone, Copy)]
pub(crate) struct BuildId {
    text: [u8; 64],
    length: usize,
}

impl BuildId {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Of the module with these headers, by number. What is not mapped is left out.
    fn of(base: usize, header: impl Fn(usize) -> Option<Header>) -> Self {
        let mut id = Self {
            text: [0; 64],
            length: 0,
        };
        // On any stack, which may be small.
        let mut bytes = [0; 256];
        let headers = || (0..HEADERS_MAX).map_while(&header);
        for header in headers().filter(|it| it.p_type == libc::PT_NOTE) {
            let start = base.wrapping_add(size(header.p_vaddr));
            let length = size(header.p_memsz).min(bytes.len());
            let read = copy_from(start, bytes.as_mut_ptr(), length);
            let notes = bytes.get(..length).filter(|_| read).unwrap_or_default();
            if let Some(bytes) = linkers_id(notes, size(header.p_align)) {
                for byte in bytes {
                    // A longer one is cut off.
                    let _ = write!(id, "{byte:02x}");
                }
                return id;
            }
        }
        let mut hash = 0;
        if let Some(header) = headers().find(is_code) {
            hash = header.p_filesz;
            let start = base.wrapping_add(size(header.p_vaddr));
            let length = size(header.p_filesz).min(HASHED_BYTES);
            for at in (0..length).step_by(bytes.len()) {
                let part = bytes.len().min(length - at);
                let read = copy_from(start + at, bytes.as_mut_ptr(), part);
                hash = fnv(hash, bytes.get(..part).filter(|_| read).unwrap_or_default());
            }
        }
        let _ = write!(id, "text-{hash:016x}");
        id
    }
}

impl Write for BuildId {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let place = self
            .text
            .get_mut(self.length..self.length + text.len())
            .ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

/// A number of a module's file, which fits in memory.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// More headers than modules have.
const HEADERS_MAX: usize = 64;
/// How much code is hashed, at most.
const HASHED_BYTES: usize = 16 << 10;

/// The hash of Fowler, Noll and Vo, going on from `hash`.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash ^ 0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
}

/// The description of the note `NT_GNU_BUILD_ID`.
fn linkers_id(mut notes: &[u8], align: usize) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: usize = 3;
    const HEADER_BYTES: usize = 12;
    let align = if align == 8 { 8 } else { 4 };
    loop {
        let field = |at: usize| -> Option<usize> {
            let bytes = notes.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes) as usize)
        };
        let (name_bytes, bytes, kind) = (field(0)?, field(4)?, field(8)?);
        let start = (HEADER_BYTES + name_bytes).next_multiple_of(align);
        let id = notes.get(start..start + bytes)?;
        if kind == NT_GNU_BUILD_ID && notes.get(HEADER_BYTES..HEADER_BYTES + 4)? == b"GNU\0" {
            return Some(id);
        }
        notes = notes.get((start + bytes).next_multiple_of(align)..)?;
    }
}

/// Calls `f` with each module that is loaded, until it returns `false`. Allocates nothing, but
/// takes a lock of the dynamic linker: not for calls from within `malloc`. `f` must not panic.
pub(crate) fn for_each(mut f: impl FnMut(&Module<'_>) -> bool) {
    /// # Safety
    /// - Called by `dl_iterate_phdr`, with the address of an `F`.
    unsafe extern "C" fn call<F: FnMut(&Module<'_>) -> bool>(
        info: *mut libc::dl_phdr_info,
        _bytes: usize,
        f: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a description that is valid during the call, and the
        // pointer that it was given, to an `F` that nothing else uses meanwhile.
        let (info, f) = unsafe { (&*info, &mut *f.cast::<F>()) };
        let headers = match info.dlpi_phdr.is_null() {
            true => &[][..],
            // SAFETY: so many headers lie there while the module is loaded, which the lock ensures
            // during the call.
            false => unsafe {
                core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum))
            },
        };
        let path = match info.dlpi_name.is_null() {
            true => c"",
            // SAFETY: a C string that stays while the module is loaded.
            false => unsafe { CStr::from_ptr(info.dlpi_name) },
        };
        c_int::from(!f(&Module {
            base: size(info.dlpi_addr),
            path: path.to_bytes(),
            headers,
        }))
    }
    fn callback<F: FnMut(&Module<'_>) -> bool>(
        _: &F,
    ) -> unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int {
        call::<F>
    }
    let callback = callback(&f);
    // SAFETY: the callback gets the address of an `F`, which lives until all calls are over.
    unsafe { libc::dl_iterate_phdr(Some(callback), (&raw mut f).cast()) };
}

/// glibc's `_dl_find_object`, from 2.35 on: takes no lock.
type FindObject = unsafe extern "C" fn(*mut c_void, *mut Object) -> c_int;

/// What it fills in; the last fields are for later versions.
#[repr(C)]
struct Object {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    link_map: *const LinkMap,
    others: [u64; 9],
}

/// The beginning of the dynamic linker's description of a module.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
}

static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Looks `_dl_find_object` up: before calls of `malloc` ask for modules.
pub(crate) fn prepare() {
    // SAFETY: the name is a C string; the program is not to find the error, if there is one.
    let function = unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr());
        if function.is_null() {
            libc::dlerror();
        }
        function
    };
    FIND_OBJECT.store(function, Ordering::Relaxed);
}

/// Start and base of the module at `address`, which may be any number. None with an older C
/// library.
fn at(address: usize) -> Option<(usize, usize)> {
    let function = FIND_OBJECT.load(Ordering::Relaxed);
    if function.is_null() {
        return None;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "no other way leads from an address to a function"
    )]
    // SAFETY: the function of this name, which has this type.
    let find = unsafe { core::mem::transmute::<*mut c_void, FindObject>(function) };
    let mut object = core::mem::MaybeUninit::<Object>::zeroed();
    let address = core::ptr::without_provenance_mut(address);
    // SAFETY: reads tables of the dynamic linker's; takes any address.
    if unsafe { find(address, object.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled in; zeros are valid, too.
    let object = unsafe { object.assume_init() };
    let mut base = 0_usize;
    // The module may be unloaded at the moment, if nothing runs in it.
    let is_read = copy_from(
        object.link_map.addr(),
        (&raw mut base).cast(),
        size_of::<usize>(),
    );
    is_read.then(|| (object.start.addr(), base))
}

/// Whether a module lies at `address`, which may be any number.
pub(crate) fn is_any_at(address: usize) -> bool {
    at(address).is_some()
}

/// Base and build id of the module at `address`, which may be any number. Takes no lock.
pub(crate) fn find(address: usize) -> Option<(usize, BuildId)> {
    let (start, base) = at(address)?;
    let mut elf = core::mem::MaybeUninit::<libc::Elf64_Ehdr>::zeroed();
    if !copy_from(
        start,
        elf.as_mut_ptr().cast(),
        size_of::<libc::Elf64_Ehdr>(),
    ) {
        return None;
    }
    // SAFETY: any bytes are a valid value.
    let elf = unsafe { elf.assume_init() };
    if !elf.e_ident.starts_with(b"\x7fELF") {
        return None;
    }
    let header = |number: usize| {
        let mut header = core::mem::MaybeUninit::<Header>::zeroed();
        let bytes = size_of::<Header>();
        let from = start
            .wrapping_add(size(elf.e_phoff))
            .wrapping_add(number * bytes);
        let is_read =
            number < usize::from(elf.e_phnum) && copy_from(from, header.as_mut_ptr().cast(), bytes);
        // SAFETY: any bytes are a valid header.
        is_read.then(|| unsafe { header.assume_init() })
    };
    Some((base, BuildId::of(base, header)))
}

/// The path of the program's file, in `room`; empty if the OS does not say it.
pub(crate) fn program(room: &mut [u8]) -> &[u8] {
    // SAFETY: the name is a C string, and the room is this long.
    let length = unsafe {
        libc::readlink(
            c"/proc/self/exe".as_ptr(),
            room.as_mut_ptr().cast(),
            room.len(),
        )
    };
    usize::try_from(length)
        .ok()
        .and_then(|length| room.get(..length))
        .unwrap_or_default()
}

/// The last part of a path.
pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}
