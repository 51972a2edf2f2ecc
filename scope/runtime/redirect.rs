//! Has the calls of all modules arrive at this library, while the process runs, and back.
//!
//! 1. The symbols in the tables of the modules that define the functions get our addresses. What is
//!    bound from then on is bound to us: by `dlsym`, lazily, and of modules that are loaded later.
//! 2. The words that were bound before, in the tables of offsets and in variables, are replaced.
//!    The dynamic linker keeps a few in variables of its own.
//!
//! Words are aligned and stored at once, so a thread that calls meanwhile arrives at one or the
//! other. Words of a page that may not be written are: the page is made writable while the dynamic
//! linker's lock is held, under which it makes pages of modules read-only.
//!
//! A word that is bound lazily while this runs may be missed. So all are looked at twice.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{hooks, sys};

/// A function that is taken over.
struct Function {
    name: &'static CStr,
    ours: *const c_void,
    /// The function that is called without us; 0 if there is none.
    real: AtomicU64,
}

// SAFETY: `ours` is the address of a function, which nobody writes.
unsafe impl Sync for Function {}

impl Function {
    const fn new(name: &'static CStr, ours: *const c_void) -> Function {
        Function {
            name,
            ours,
            real: AtomicU64::new(0),
        }
    }

    fn ours(&self) -> u64 {
        self.ours.addr() as u64
    }

    fn real(&self) -> u64 {
        self.real.load(Ordering::Relaxed)
    }
}

static FUNCTIONS: [Function; 14] = [
    Function::new(c"malloc", hooks::malloc as *const c_void),
    Function::new(c"calloc", hooks::calloc as *const c_void),
    Function::new(c"realloc", hooks::realloc as *const c_void),
    Function::new(c"reallocarray", hooks::reallocarray as *const c_void),
    Function::new(c"free", hooks::free as *const c_void),
    Function::new(c"memalign", hooks::memalign as *const c_void),
    Function::new(c"aligned_alloc", hooks::aligned_alloc as *const c_void),
    Function::new(c"valloc", hooks::valloc as *const c_void),
    Function::new(c"pvalloc", hooks::pvalloc as *const c_void),
    Function::new(c"posix_memalign", hooks::posix_memalign as *const c_void),
    Function::new(c"pthread_create", hooks::pthread_create as *const c_void),
    Function::new(c"thrd_create", hooks::thrd_create as *const c_void),
    Function::new(c"mlockall", hooks::mlockall as *const c_void),
    Function::new(c"dlclose", hooks::dlclose as *const c_void),
];

/// Not taken over. The allocator that has a chunk is asked for its size; behind this library there
/// is only libc when it is loaded late.
static USABLE_SIZE: Function = Function::new(c"malloc_usable_size", core::ptr::null());

/// `struct dl_phdr_info`, as far as it is used.
#[repr(C)]
struct Info {
    bias: u64,
    name: *const c_char,
    headers: *const Header,
    header_count: u16,
}

/// `Elf64_Phdr`
#[repr(C)]
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
    alignment: u64,
}

/// `Elf64_Sym`
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// `Elf64_Rela`
#[repr(C)]
struct Relocation {
    place: u64,
    info: u64,
    addend: i64,
}

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const RELRO: u32 = 0x6474_e552;
const EXECUTABLE: u32 = 1;
const WRITABLE: u32 = 2;
const READABLE: u32 = 4;
const PAGE: u64 = 4096;

unsafe extern "C" {
    fn dl_iterate_phdr(
        each: unsafe extern "C" fn(*const Info, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn getauxval(kind: u64) -> u64;
}

/// A loaded module.
///
/// **Module invariant**: it is loaded, and stays so while this exists. What its headers and its
/// dynamic section say of tables is true, as the dynamic linker has used them.
struct Module<'i> {
    bias: u64,
    headers: &'i [Header],
    symbols: u64,
    names: u64,
    hash: u64,
    /// Addresses and lengths of tables of relocations.
    relocations: [(u64, u64); 2],
}

/// Reads a value of the module.
///
/// # Safety
///
/// One is at `address`, aligned.
unsafe fn read<T: Copy>(address: u64) -> T {
    // SAFETY: a value is there (`# Safety`). Volatile, as other threads may store to it.
    unsafe { core::ptr::with_exposed_provenance::<T>(address as usize).read_volatile() }
}

impl<'i> Module<'i> {
    /// `None` if it has no dynamic section with names, as the kernel's own module may.
    ///
    /// # Safety
    ///
    /// `info` is of `dl_iterate_phdr`.
    unsafe fn new(info: &'i Info) -> Option<Module<'i>> {
        // SAFETY: the dynamic linker passes so many headers (`# Safety`).
        let headers =
            unsafe { core::slice::from_raw_parts(info.headers, usize::from(info.header_count)) };
        let dynamic = headers.iter().find(|header| header.kind == DYNAMIC)?;
        let mut at = info.bias.wrapping_add(dynamic.address);
        // The tables that are asked for have small numbers, but for that of hashes.
        const HASH: u64 = 0x6fff_fef5;
        let (mut entries, mut hash) = ([0_u64; 32], 0);
        loop {
            // SAFETY: the dynamic section is an array of pairs that ends with a zero, by the module
            // invariant, which `info` stands for.
            let (tag, value) = unsafe { (read::<u64>(at), read::<u64>(at + 8)) };
            match tag {
                0 => break,
                HASH => hash = value,
                _ => {
                    if let Some(entry) = entries.get_mut(tag as usize) {
                        *entry = value;
                    }
                }
            }
            at += 16;
        }
        let [rela, rela_len, plt, plt_len] = [7, 8, 23, 2].map(|tag| entries[tag]);
        // Of modules that glibc does not change, addresses are those of the file.
        let loaded = |address: u64| match address {
            0 => 0,
            _ if address < info.bias => address.wrapping_add(info.bias),
            _ => address,
        };
        let module = Module {
            bias: info.bias,
            headers,
            symbols: loaded(entries[6]),
            names: loaded(entries[5]),
            hash: loaded(hash),
            relocations: [(loaded(rela), rela_len), (loaded(plt), plt_len)],
        };
        (module.symbols != 0 && module.names != 0).then_some(module)
    }

    fn contains(&self, address: u64) -> bool {
        self.segment(address).is_some()
    }

    fn segment(&self, address: u64) -> Option<&Header> {
        let mut loaded = self.headers.iter().filter(|header| header.kind == LOAD);
        loaded.find(|header| self.offset_in(header, address).is_some())
    }

    fn offset_in(&self, header: &Header, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.bias.wrapping_add(header.address));
        (offset < header.memory_size).then_some(offset)
    }

    fn name_is(&self, symbol: &Symbol, name: &CStr) -> bool {
        let at = self.names.wrapping_add(u64::from(symbol.name));
        let bytes = name.to_bytes_with_nul();
        // SAFETY: names are texts that end with 0, by the module invariant; no byte is read behind
        // one that differs, and a 0 differs from all but the last.
        (0_u64..)
            .zip(bytes)
            .all(|(i, byte)| unsafe { read::<u8>(at + i) } == *byte)
    }

    /// Symbols of the module's own functions called `name`, by its table of hashes; functions that
    /// are asked for an address are left out.
    fn defined(&self, name: &CStr, mut each: impl FnMut(*mut Symbol)) {
        if self.hash == 0 {
            return;
        }
        let hash = { name.to_bytes().iter() }.fold(5381_u32, |hash, &byte| {
            hash.wrapping_mul(33).wrapping_add(byte.into())
        });
        // SAFETY: the table has four words, a filter of so many words of 8 bytes, so many buckets,
        // and a chain for each that ends with an odd word, by the module invariant.
        unsafe {
            let [buckets, first, filter, _] = read::<[u32; 4]>(self.hash);
            let bucket_at = self.hash + 16 + u64::from(filter) * 8;
            if buckets == 0 {
                return;
            }
            let chains = bucket_at + u64::from(buckets) * 4;
            let mut index = read::<u32>(bucket_at + u64::from(hash % buckets) * 4);
            while index >= first && index != 0 {
                let held = read::<u32>(chains + u64::from(index - first) * 4);
                let at = self.symbols + u64::from(index) * size_of::<Symbol>() as u64;
                let symbol = core::ptr::with_exposed_provenance_mut::<Symbol>(at as usize);
                const FUNCTION: u8 = 2;
                if held | 1 == hash | 1
                    && (*symbol).info & 15 == FUNCTION
                    && (*symbol).section != 0
                    && self.name_is(&*symbol, name)
                {
                    each(symbol);
                }
                if held & 1 != 0 {
                    return;
                }
                index += 1;
            }
        }
    }

    /// Places that the dynamic linker fills in with the addresses of functions that are taken over.
    fn bound(&self, mut each: impl FnMut(&Function, u64)) {
        const WORD: u64 = 1;
        const OFFSET: u64 = 6;
        const CALL: u64 = 7;
        for (start, len) in self.relocations {
            for at in (start..start + len).step_by(size_of::<Relocation>()) {
                // SAFETY: the tables have so many bytes of relocations, and symbols that these
                // name are in the table of symbols, by the module invariant.
                unsafe {
                    let info = read::<u64>(at + 8);
                    if ![WORD, OFFSET, CALL].contains(&(info & 0xffff_ffff)) || info >> 32 == 0 {
                        continue;
                    }
                    let symbol = self.symbols + (info >> 32) * size_of::<Symbol>() as u64;
                    let symbol: &Symbol = &*core::ptr::with_exposed_provenance(symbol as usize);
                    if let Some(function) =
                        FUNCTIONS.iter().find(|it| self.name_is(symbol, it.name))
                        && read::<i64>(at + 16) == 0
                    {
                        each(function, self.bias.wrapping_add(read::<u64>(at)));
                    }
                }
            }
        }
    }

    /// All words of its variables.
    fn variables(&self, mut each: impl FnMut(u64)) {
        let written = |header: &&Header| header.kind == LOAD && header.flags & WRITABLE != 0;
        for header in self.headers.iter().filter(written) {
            let start = self.bias.wrapping_add(header.address).next_multiple_of(8);
            let end = self.bias.wrapping_add(header.address + header.file_size);
            (start..end.saturating_sub(7))
                .step_by(8)
                .for_each(&mut each);
        }
    }

    /// Stores a word, wherever in the module it is. Returns whether it could.
    ///
    /// # Safety
    ///
    /// The word is one of the module's, aligned, and may have the new value. The dynamic linker's
    /// lock is held.
    unsafe fn store(&self, address: u64, value: u64) -> bool {
        let Some(segment) = self.segment(address) else {
            return false;
        };
        let page = address & !(PAGE - 1);
        let start = |header: &Header| self.bias.wrapping_add(header.address);
        let is_closed = self.headers.iter().any(|header| {
            let end = (start(header) + header.memory_size) & !(PAGE - 1);
            header.kind == RELRO && (start(header) & !(PAGE - 1)..end).contains(&page)
        });
        let flag = |flag, protection| {
            if segment.flags & flag != 0 {
                protection
            } else {
                0
            }
        };
        let rights = flag(READABLE, sys::PROT_READ) | flag(EXECUTABLE, sys::PROT_EXEC);
        let is_writable = segment.flags & WRITABLE != 0 && !is_closed;
        // SAFETY: the page is the module's, and keeps the rights that it has, besides this one
        // meanwhile. The word is aligned, and may be stored to (`# Safety`).
        unsafe {
            if !is_writable && !sys::protect(page, PAGE, rights | sys::PROT_WRITE) {
                return false;
            }
            let word = core::ptr::with_exposed_provenance_mut(address as usize);
            AtomicU64::from_ptr(word).store(value, Ordering::Release);
            is_writable || sys::protect(page, PAGE, rights)
        }
    }
}

/// Runs `work` for each module but this library, in the order in which symbols are looked up.
fn each_module(mut work: impl FnMut(&Module<'_>)) {
    /// # Safety
    ///
    /// `info` is of `dl_iterate_phdr`, and `work` points to an `F` that nobody else uses.
    unsafe extern "C" fn call<F: FnMut(&Module<'_>)>(
        info: *const Info,
        _: usize,
        work: *mut c_void,
    ) -> c_int {
        // SAFETY: `info` is the dynamic linker's, and `work` a closure of this type (`# Safety`).
        unsafe {
            let own = (&raw const FUNCTIONS).addr() as u64;
            if let Some(module) = Module::new(&*info)
                && !module.contains(own)
            {
                (*work.cast::<F>())(&module);
            }
        }
        0
    }
    fn pass<F: FnMut(&Module<'_>)>(work: &mut F) {
        // SAFETY: `call` takes a pointer to the closure as its last argument.
        unsafe { dl_iterate_phdr(call::<F>, (&raw mut *work).cast()) };
    }
    pass(&mut work);
}

/// Finds the functions that are called without us, once: the first of each name.
pub(crate) fn find_real() {
    let all = || FUNCTIONS.iter().chain([&USABLE_SIZE]);
    each_module(|module| {
        for function in all().filter(|function| function.real() == 0) {
            module.defined(function.name, |symbol| {
                // SAFETY: the symbol is the module's, which is loaded.
                let value = unsafe { (*symbol).value };
                function
                    .real
                    .store(module.bias.wrapping_add(value), Ordering::Relaxed);
            });
        }
    });
    for function in all() {
        hooks::set_real(function.name, function.real());
    }
    hooks::compare_libraries();
}

/// Has all calls arrive here. Returns how many words could not be written.
///
/// # Safety
///
/// The dynamic linker's lock is held, and [`find_real`] was called.
pub(crate) unsafe fn begin() -> u64 {
    // SAFETY: the lock is held (`# Safety`).
    unsafe { exchange(Function::real, Function::ours) }
}

/// Undoes [`begin`].
///
/// # Safety
///
/// As for [`begin`].
pub(crate) unsafe fn end() -> u64 {
    // SAFETY: the lock is held (`# Safety`).
    unsafe { exchange(Function::ours, Function::real) }
}

/// Whether the program's calls arrive here from the start.
pub(crate) fn are_ours_first() -> bool {
    FUNCTIONS.iter().any(|function| {
        // SAFETY: the name ends with 0.
        let found = unsafe { sys::dlsym(core::ptr::null_mut(), function.name.as_ptr()) };
        found.addr() as u64 == function.ours()
    })
}

/// # Safety
///
/// As for [`begin`].
unsafe fn exchange(from: fn(&Function) -> u64, to: fn(&Function) -> u64) -> u64 {
    const LINKER: u64 = 7;
    // SAFETY: it takes no pointers.
    let linker = unsafe { getauxval(LINKER) };
    let mut failed = 0;
    let known = || FUNCTIONS.iter().filter(|function| function.real() != 0);
    each_module(|module| {
        let mut put = |address, value| {
            // SAFETY: the lock is held (`# Safety`), and the word is one of the module's, which may
            // hold the one or the other address of a function.
            failed += u64::from(!unsafe { module.store(address, value) });
        };
        for function in known() {
            let value = from(function).wrapping_sub(module.bias);
            module.defined(function.name, |symbol| {
                // SAFETY: the symbol is the module's, which is loaded.
                let place = unsafe { &raw mut (*symbol).value };
                // SAFETY: the place is a word of that symbol.
                if unsafe { place.read_volatile() } == value {
                    put(place.addr() as u64, to(function).wrapping_sub(module.bias));
                }
            });
        }
    });
    for _ in 0..2 {
        each_module(|module| {
            let mut put = |function: &Function, address: u64| {
                // SAFETY: the word is the module's, which is loaded. The lock is held.
                unsafe {
                    if address.is_multiple_of(8)
                        && function.real() != 0
                        && read::<u64>(address) == from(function)
                        && !module.store(address, to(function))
                    {
                        failed += 1;
                    }
                }
            };
            module.bound(&mut put);
            if module.bias == linker {
                module.variables(|address| {
                    known().for_each(|function| put(function, address));
                });
            }
        });
        // Far longer than to bind a word takes. Who yields to others may wait for long.
        (0..10_000).for_each(|_| core::hint::spin_loop());
    }
    failed
}

/// Has `dlsym` call the exported function `function` for an address, with its lock held, instead of
/// giving its own. Returns whether it does.
pub(crate) fn make_indirect(function: *const c_void, name: &CStr) -> bool {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    /// This library is left out of `each_module`.
    ///
    /// # Safety
    ///
    /// `info` is of `dl_iterate_phdr`, and `data` points to an address and a name.
    unsafe extern "C" fn find(info: *const Info, _: usize, data: *mut c_void) -> c_int {
        const INDIRECT: u64 = 10;
        // SAFETY: `info` is the dynamic linker's, and `data` an address and a name (`# Safety`).
        // Nobody else changes the library's own pages once it is loaded.
        unsafe {
            let (function, name) = *data.cast::<(u64, &CStr)>();
            let Some(module) = Module::new(&*info).filter(|it| it.contains(function)) else {
                return 0;
            };
            module.defined(name, |symbol| {
                let word = symbol.addr() as u64;
                // The kind is in the low half of the byte behind the name.
                let kind = (read::<u64>(word) & !(15 << 32)) | INDIRECT << 32;
                IS_DONE.store(module.store(word, kind), Ordering::Relaxed);
            });
        }
        1
    }
    if !IS_DONE.load(Ordering::Relaxed) {
        let mut data = (function.addr() as u64, name);
        // SAFETY: `find` takes this as its last argument.
        unsafe { dl_iterate_phdr(find, (&raw mut data).cast()) };
    }
    IS_DONE.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "no library is loaded there")]
    fn functions_are_found_where_the_dynamic_linker_finds_them() {
        find_real();
        for function in &FUNCTIONS {
            // SAFETY: the name ends with 0.
            let found = unsafe { sys::dlsym(core::ptr::null_mut(), function.name.as_ptr()) };
            assert_eq!(function.real(), found.addr() as u64, "{:?}", function.name);
        }
        assert!(!are_ours_first());
    }

    #[test]
    #[cfg_attr(miri, ignore = "no library is loaded there")]
    fn words_that_are_bound_are_found() {
        find_real();
        let (mut bound, mut of_linker) = (0, 0);
        each_module(|module| {
            module.bound(|function, address| {
                // SAFETY: the word is one of a module that is loaded.
                bound += u32::from(unsafe { read::<u64>(address) } == function.real());
            });
            // SAFETY: it takes no pointers.
            if module.bias == unsafe { getauxval(7) } {
                module.variables(|address| {
                    // SAFETY: the word is one of the variables of a module that is loaded.
                    let word = unsafe { read::<u64>(address) };
                    of_linker += u32::from(FUNCTIONS.iter().any(|it| it.real() == word));
                });
            }
        });
        assert!(bound >= 4 && of_linker >= 4, "{bound} {of_linker}");
    }
}
