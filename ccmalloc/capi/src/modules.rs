//! The modules of the process: its program and libraries, and what tells two builds of one apart.

use core::ffi::{CStr, c_int, c_void};
use core::fmt::{self, Write};

/// A module as it is loaded.
pub(crate) struct Module<'a> {
    /// What is added to the addresses in its file.
    pub(crate) base: usize,
    /// Empty for the program.
    pub(crate) path: &'a [u8],
    headers: &'a [libc::Elf64_Phdr],
}

impl Module<'_> {
    pub(crate) fn build_id(&self) -> BuildId {
        BuildId::of(self.base, self.headers)
    }

    /// The bounds of its code that contain `address`.
    pub(crate) fn code_around(&self, address: usize) -> Option<(usize, usize)> {
        self.code()
            .find(|&(start, end)| (start..end).contains(&address))
    }

    /// The bounds of its segments that can be executed.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let is_code =
            |it: &&libc::Elf64_Phdr| it.p_type == libc::PT_LOAD && it.p_flags & libc::PF_X != 0;
        self.headers.iter().filter(is_code).map(|header| {
            let start = self.base.wrapping_add(size(header.p_vaddr));
            (start, start.wrapping_add(size(header.p_memsz)))
        })
    }
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

    fn of(base: usize, headers: &[libc::Elf64_Phdr]) -> Self {
        let mut id = Self {
            text: [0; 64],
            length: 0,
        };
        for header in headers.iter().filter(|it| it.p_type == libc::PT_NOTE) {
            let start = base.wrapping_add(size(header.p_vaddr)) as *const u8;
            // SAFETY: notes are loaded with the module, as its program headers say.
            let notes = unsafe { core::slice::from_raw_parts(start, size(header.p_memsz)) };
            if let Some(bytes) = linkers_id(notes, size(header.p_align)) {
                for byte in bytes {
                    // A longer one is cut off.
                    let _ = write!(id, "{byte:02x}");
                }
                return id;
            }
        }
        let code = headers
            .iter()
            .find(|it| it.p_type == libc::PT_LOAD && it.p_flags & libc::PF_X != 0);
        let hash = code.map_or(0, |header| {
            let start = base.wrapping_add(size(header.p_vaddr)) as *const u8;
            let bytes = size(header.p_filesz).min(HASHED_BYTES);
            // SAFETY: code is loaded with the module; `p_filesz` bytes of it come from the file.
            fnv(unsafe { core::slice::from_raw_parts(start, bytes) }) ^ header.p_filesz
        });
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

/// How much code is hashed, at most.
const HASHED_BYTES: usize = 64 << 10;

/// The hash of Fowler, Noll and Vo.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The description of the note `NT_GNU_BUILD_ID`.
fn linkers_id(mut notes: &[u8], align: usize) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: usize = 3;
    let align = if align == 8 { 8 } else { 4 };
    loop {
        let (header, rest) = notes.split_at_checked(12)?;
        let field = |at: usize| -> Option<usize> {
            let bytes = header.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes) as usize)
        };
        let (name_bytes, bytes, kind) = (field(0)?, field(4)?, field(8)?);
        let (name, rest) = rest.split_at_checked(name_bytes.next_multiple_of(align))?;
        let id = rest.get(..bytes)?;
        if kind == NT_GNU_BUILD_ID && name.get(..name_bytes)? == b"GNU\0" {
            return Some(id);
        }
        notes = rest.get(bytes.next_multiple_of(align)..)?;
    }
}

/// Calls `f` with each module that is loaded, until it returns `false`. Allocates nothing. `f` must
/// not load or unload any, and must not panic.
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
            // SAFETY: so many headers lie there while the module is loaded.
            false => unsafe {
                core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum))
            },
        };
        let path = match info.dlpi_name.is_null() {
            true => c"",
            // SAFETY: a C string that stays while the module is loaded.
            false => unsafe { CStr::from_ptr(info.dlpi_name) },
        };
        let base = size(info.dlpi_addr);
        let goes_on = f(&Module {
            base,
            path: path.to_bytes(),
            headers,
        });
        c_int::from(!goes_on)
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
