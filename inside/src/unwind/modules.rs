//! Which executables and libraries are loaded, and where their `.eh_frame` is.
//!
//! The dynamic linker knows; the table here only adds what it tells for a price. Lookups take no
//! lock where glibc has `_dl_find_object` (since 2.35). Only a module that was not seen before
//! is asked for by `dl_iterate_phdr`. A child of `fork` asks for that one module only, without
//! `dl_iterate_phdr`: glibc leaves its lock held if another thread had it during the `fork`.
//! No other lock is waited for: callbacks of the program may allocate, too.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use super::cfi::{self, Rule};
use super::{NUMBER_SHIFT, memory};
use crate::sys::{dladdr, system_call};

/// Takes a module that is seen for the first time: start and end of its executable segments, what
/// to subtract from an address to get the one in the file, and the path.
///
/// It runs within `malloc`, perhaps with a lock of the dynamic linker held. It must not allocate.
pub type ModuleCallback = fn(start: u64, end: u64, bias: u64, path: &[u8]);

/// Modules beyond these are unwound by frame pointers.
const MAX_MODULES: usize = 4096;
/// Longer paths are cut off.
const MAX_PATH: usize = 488;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// Its executable segments lie within.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) bias: u64,
    /// Address of `.eh_frame_hdr`, or 0, and the mapped part of the file around it.
    pub(super) index: u64,
    pub(super) segment: u64,
    pub(super) segment_len: u64,
    /// The start of the path: another library may be loaded to the place of one that was closed.
    path: [u8; MAX_PATH],
    path_len: usize,
}

impl Module {
    const NONE: Module = Module {
        start: 0,
        end: 0,
        bias: 0,
        index: 0,
        segment: 0,
        segment_len: 0,
        path: [0; MAX_PATH],
        path_len: 0,
    };

    fn report(&self, report: ModuleCallback) {
        let path = self.path.get(..self.path_len).unwrap_or_default();
        report(self.start, self.end, self.bias, path);
    }

    fn contains(&self, pc: u64) -> bool {
        self.start <= pc && pc < self.end
    }

    /// How the frame of the instruction at `pc` is left.
    ///
    /// # Safety
    ///
    /// The module is loaded.
    pub(super) unsafe fn rule(&self, pc: u64) -> Option<Rule> {
        if self.index == 0 {
            return None;
        }
        let segment = core::ptr::with_exposed_provenance(usize::try_from(self.segment).ok()?);
        let len = usize::try_from(self.segment_len).ok()?;
        // SAFETY: the dynamic linker has mapped this segment as readable; nobody writes to
        // unwind information while the module is loaded.
        let segment = unsafe { core::slice::from_raw_parts(segment, len) };
        cfi::rule(segment, self.segment, self.index, pc)
    }
}

/// An entry of the table. It is written once, before [`LEN`] covers it.
struct Slot {
    /// The value of [`GENERATION`] when the module was last seen. A lower one: perhaps closed.
    seen: AtomicU64,
    module: UnsafeCell<Module>,
}

// SAFETY: `module` is written only by `add`, one thread at a time, while no other reads it.
unsafe impl Sync for Slot {}

static TABLE: [Slot; MAX_MODULES] = [const {
    Slot {
        seen: AtomicU64::new(0),
        module: UnsafeCell::new(Module::NONE),
    }
}; MAX_MODULES];
static LEN: AtomicUsize = AtomicUsize::new(0);
/// The thread that is adding a module. A number of no thread was left by the parent, in a `fork`.
static ADDING: AtomicU64 = AtomicU64::new(0);
/// So often a thread that wants to add one lets others run before it does without.
const MAX_WAITS: u32 = 10_000;
/// The process that asked first. In others the lock of `dl_iterate_phdr` may be held for ever.
static FIRST: AtomicU64 = AtomicU64::new(0);

static GENERATION: AtomicU64 = AtomicU64::new(1);
/// The state of the dynamic linker that the table shows, and the generation that was made for it.
static SCANNED: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Whether a module was loaded to the place of one that had been closed.
pub(super) static IN_TURN: AtomicBool = AtomicBool::new(false);

/// Where the code of the library lies that this is linked into, if its frames are left out.
static OWN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static IS_OWN_LEFT_OUT: AtomicBool = AtomicBool::new(false);

/// See [`super::leave_out_own`].
pub(super) fn leave_out_own() {
    IS_OWN_LEFT_OUT.store(true, Relaxed);
}

/// Whether frames in `pc` are left out.
#[inline(always)]
pub(super) fn is_own(pc: u64) -> bool {
    OWN[0].load(Relaxed) <= pc && pc < OWN[1].load(Relaxed)
}

/// Reports all modules of the table again.
pub(super) fn report_again(report: ModuleCallback) {
    for slot in TABLE.iter().take(LEN.load(Acquire)) {
        // SAFETY: `LEN` covers the slot, so it is written.
        unsafe { &*slot.module.get() }.report(report);
    }
}

/// Whether [`tell_apart`] may change addresses.
pub(super) fn in_turn() -> bool {
    IN_TURN.load(Relaxed)
}

/// Puts the number of the module above return addresses in one that has the place of another.
pub(super) fn tell_apart(frames: &mut [u64]) {
    if !IN_TURN.load(Relaxed) {
        return;
    }
    let generation = GENERATION.load(Relaxed);
    for frame in frames {
        let mut is_first = true;
        for (number, slot) in (0..).zip(TABLE.iter().take(LEN.load(Acquire))) {
            // SAFETY: `LEN` covers the slot, so it is written.
            if unsafe { &*slot.module.get() }.contains(*frame - 1) {
                if slot.seen.load(Relaxed) == generation {
                    *frame |= if is_first { 0 } else { number << NUMBER_SHIFT };
                    break;
                }
                is_first = false;
            }
        }
    }
}

/// Some modules may have been closed.
pub(super) fn forget() {
    GENERATION.fetch_add(1, Relaxed);
}

/// Whether a module is mapped at `address`.
pub(super) fn is_loaded(address: u64) -> bool {
    match linker_finds(address) {
        Found::Module { .. } => true,
        Found::Nothing => false,
        Found::CannotSay => {
            // SAFETY: any address may be asked for; all of the answer may be zero.
            unsafe {
                let mut answer = core::mem::zeroed();
                let address = core::ptr::without_provenance(address as usize);
                dladdr(address, &raw mut answer) != 0
            }
        }
    }
}

/// Finds the module that contains `pc`.
pub(super) fn find(pc: u64, report: ModuleCallback) -> Option<&'static Module> {
    let found = linker_finds(pc);
    if let Found::Nothing = found {
        return None;
    }
    let known = lookup(pc);
    match found {
        Found::Module { index, .. } if known.is_some_and(|it| it.index == index) => known,
        // Another thread may forget all modules at any moment.
        _ => loop {
            let generation = match found {
                Found::Module { start, map, .. } if is_forked() => {
                    if known.is_some() {
                        // It was closed.
                        forget();
                    }
                    // SAFETY: the linker has just said that the module of `pc`, in which this
                    // thread runs, is loaded, and that `map` describes it.
                    unsafe { take(start, map, report) }
                }
                _ => scan(report),
            };
            let found = lookup(pc);
            if found.is_some() || [0, GENERATION.load(Relaxed)].contains(&generation) {
                return found;
            }
        },
    }
}

const GETPID: u64 = 39;

/// Whether this process is a child of the one that asked first.
fn is_forked() -> bool {
    // SAFETY: the call has no arguments.
    let own = unsafe { system_call(GETPID, [0; 6]) }.cast_unsigned();
    match FIRST.compare_exchange(0, own, Relaxed, Relaxed) {
        Ok(_) => false,
        Err(first) => first != own,
    }
}

fn lookup(pc: u64) -> Option<&'static Module> {
    let generation = GENERATION.load(Relaxed);
    for slot in TABLE.iter().take(LEN.load(Acquire)) {
        // SAFETY: `LEN` covers the slot, so it is written.
        let module = unsafe { &*slot.module.get() };
        if module.contains(pc) && slot.seen.load(Relaxed) == generation {
            return Some(module);
        }
    }
    None
}

enum Found {
    /// A module that is mapped from `start` on, with its `.eh_frame_hdr`, or 0, at `index`.
    Module {
        index: u64,
        start: u64,
        map: *const Map,
    },
    Nothing,
    CannotSay,
}

/// Asks `_dl_find_object`, which takes no lock, if there is one.
fn linker_finds(pc: u64) -> Found {
    #[repr(C)]
    struct Answer {
        flags: u64,
        map_start: *const c_void,
        map_end: *const c_void,
        link_map: *const Map,
        eh_frame: *const c_void,
        /// More than any version has.
        reserved: [u64; 16],
    }
    type Find = unsafe extern "C" fn(*const c_void, *mut Answer) -> c_int;

    let address: u64;
    // SAFETY: reads an entry of the global offset table, which is 0 if there is no such function.
    unsafe {
        asm!(
            ".weak _dl_find_object",
            "mov {}, qword ptr [rip + _dl_find_object@GOTPCREL]",
            out(reg) address,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    if address == 0 {
        return Found::CannotSay;
    }
    let function: Find;
    // SAFETY: the value is the address of a function of this type.
    unsafe {
        asm!("mov {}, {}", out(reg) function, in(reg) address, options(pure, nomem, nostack));
    }
    let null = core::ptr::null();
    let mut answer = Answer {
        flags: 0,
        map_start: null,
        map_end: null,
        link_map: core::ptr::null(),
        eh_frame: null,
        reserved: [0; 16],
    };
    let Ok(pc) = usize::try_from(pc) else {
        return Found::Nothing;
    };
    // SAFETY: any address may be asked for; the answer has room for more than is written.
    match unsafe { function(core::ptr::without_provenance(pc), &raw mut answer) } {
        0 => Found::Module {
            index: answer.eh_frame.addr() as u64,
            start: answer.map_start.addr() as u64,
            map: answer.link_map,
        },
        _ => Found::Nothing,
    }
}

/// `struct link_map`, as far as it is used.
#[repr(C)]
struct Map {
    bias: u64,
    name: *const c_char,
    dynamic: *const c_void,
    next: *const Map,
    before: *const Map,
}

/// `struct dl_phdr_info`, as far as it is used.
#[repr(C)]
struct Info {
    bias: u64,
    name: *const c_char,
    headers: *const Header,
    header_count: u16,
    /// How often modules were loaded and unloaded.
    loaded: u64,
    unloaded: u64,
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

const LOAD: u32 = 1;
const EH_FRAME: u32 = 0x6474_e550;
const EXECUTABLE: u32 = 1;
const READABLE: u32 = 4;

unsafe extern "C" {
    fn dl_iterate_phdr(
        each: unsafe extern "C" fn(*const Info, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

struct Scan {
    report: ModuleCallback,
    /// 0 before the first module.
    generation: u64,
}

/// Brings the table up to date, and returns the generation that it then shows; 0 without modules.
fn scan(report: ModuleCallback) -> u64 {
    let mut scan = Scan {
        report,
        generation: 0,
    };
    // SAFETY: `each` takes a pointer to a `Scan` as its last argument.
    unsafe { dl_iterate_phdr(each, (&raw mut scan).cast()) };
    scan.generation
}

/// Takes one module; a result other than 0 ends the scan.
///
/// # Safety
///
/// `info` is what `dl_iterate_phdr` passes, and `scan` a pointer to a [`Scan`].
unsafe extern "C" fn each(info: *const Info, _: usize, scan: *mut c_void) -> c_int {
    // SAFETY: `info` is the linker's and `scan` the `Scan` that was passed to it (`# Safety`),
    // which nobody else uses until it returns.
    let (info, scan) = unsafe { (&*info, &mut *scan.cast::<Scan>()) };
    let first = scan.generation == 0;
    if first {
        let now = GENERATION.load(Relaxed);
        let state = [now, info.loaded, info.unloaded];
        if state
            .iter()
            .zip(&SCANNED)
            .all(|(new, old)| *new == old.load(Relaxed))
        {
            scan.generation = now;
            return 1;
        }
        scan.generation = GENERATION.fetch_add(1, Relaxed) + 1;
        let state = [scan.generation, info.loaded, info.unloaded];
        state
            .iter()
            .zip(&SCANNED)
            .for_each(|(new, old)| old.store(*new, Relaxed));
    }
    // SAFETY: the dynamic linker passes a string, which it keeps while it calls this function.
    let name = unsafe { text(info.name) };
    // SAFETY: the dynamic linker passes so many headers.
    let headers =
        unsafe { core::slice::from_raw_parts(info.headers, usize::from(info.header_count)) };
    let module = module(info.bias, headers, name, first);
    add(&module, scan.generation, scan.report);
    0
}

/// The text at `at`, or none if that is null.
///
/// # Safety
///
/// Else a 0 is behind the text, which stays as it is while the result is used.
unsafe fn text<'t>(at: *const c_char) -> &'t [u8] {
    if at.is_null() {
        return b"";
    }
    // SAFETY: `at` is not null, so it is a text with a 0 behind it (`# Safety`).
    unsafe { CStr::from_ptr(at) }.to_bytes()
}

/// Adds the module that is mapped from `start` on, and returns the generation that the table then
/// shows, as [`scan`] does; 0 if the module cannot be read. It takes no lock of the linker.
///
/// # Safety
///
/// `map` is the dynamic linker's of that module, and the module is loaded.
unsafe fn take(start: u64, map: *const Map, report: ModuleCallback) -> u64 {
    const MAGIC: u32 = u32::from_ne_bytes(*b"\x7fELF");
    const MOST: usize = 32;
    let (mut head, mut words) = ([0_u64; 8], [0_u64; 7 * MOST]);
    // The linker maps a file's head with its first segment.
    if memory::copy(start, &mut head) < head.len() || head[0] as u32 != MAGIC {
        return 0;
    }
    let (table, count) = (head[4], (head[7] & 0xffff) as usize);
    let copied = memory::copy(start.wrapping_add(table), &mut words) / 7;
    let headers: [Header; MOST] = core::array::from_fn(|at| {
        let words = &words[7 * at..7 * at + 7];
        Header {
            kind: words[0] as u32,
            flags: (words[0] >> 32) as u32,
            offset: words[1],
            address: words[2],
            physical: words[3],
            file_size: words[4],
            memory_size: words[5],
            alignment: words[6],
        }
    });
    let generation = GENERATION.load(Relaxed);
    // SAFETY: the module is loaded (`# Safety`), so its map is there, and the name in it.
    let (bias, name, first) = unsafe { ((*map).bias, text((*map).name), (*map).before.is_null()) };
    let module = module(bias, &headers[..count.min(copied)], name, first);
    add(&module, generation, report);
    generation
}

/// What the headers say. The program itself is the first module, and has no name.
fn module(bias: u64, headers: &[Header], name: &[u8], is_first: bool) -> Module {
    let mut executable = [0; MAX_PATH];
    let path = match name {
        b"" if is_first => own_path(&mut executable),
        path => path,
    };
    let at = |header: &Header| bias.wrapping_add(header.address);
    let loaded = |flag: u32| {
        headers
            .iter()
            .filter(move |header| header.kind == LOAD && header.flags & flag != 0)
    };
    let mut module = Module {
        bias,
        path_len: path.len().min(MAX_PATH),
        ..Module::NONE
    };
    module
        .path
        .iter_mut()
        .zip(path)
        .for_each(|(to, from)| *to = *from);
    module.start = loaded(EXECUTABLE).map(at).min().unwrap_or(0);
    module.end = loaded(EXECUTABLE)
        .map(|header| at(header).wrapping_add(header.memory_size))
        .max()
        .unwrap_or(0);
    if let Some(index) = headers
        .iter()
        .find(|header| header.kind == EH_FRAME)
        .map(at)
    {
        module.index = index;
        let size = |header: &Header| header.file_size.min(header.memory_size);
        let around = |header: &&Header| index.wrapping_sub(at(header)) < size(header);
        if let Some(segment) = loaded(READABLE).find(around) {
            module.segment = at(segment);
            module.segment_len = size(segment);
        }
    }
    module
}

/// Waits until this thread alone may add modules. False in a handler that interrupts an addition.
fn begin_adding() -> bool {
    const GETTID: u64 = 186;
    const TGKILL: u64 = 234;
    const SCHED_YIELD: u64 = 24;
    // SAFETY: the call has no arguments.
    let own = unsafe { system_call(GETTID, [0; 6]) }.cast_unsigned();
    let mut from = 0;
    for _ in 0..MAX_WAITS {
        match ADDING.compare_exchange(from, own, Acquire, Relaxed) {
            Ok(_) => return true,
            Err(holder) if holder == own => return false,
            // SAFETY: the signal 0 is sent to nobody; and the other call has no arguments.
            Err(holder) => unsafe {
                let process = system_call(GETPID, [0; 6]).cast_unsigned();
                let is_left = system_call(TGKILL, [process, holder, 0, 0, 0, 0]) < 0;
                from = if is_left { holder } else { 0 };
                system_call(SCHED_YIELD, [0; 6]);
            },
        }
    }
    false
}

/// Whether the module is in the table; then it was seen in this generation.
fn see_again(module: &Module, generation: u64) -> bool {
    let mut slots = TABLE.iter().take(LEN.load(Acquire));
    // SAFETY: `LEN` covers the slot, so it is written.
    let found = slots.find(|slot| unsafe { &*slot.module.get() } == module);
    if let Some(slot) = found {
        slot.seen.store(generation, Relaxed);
    }
    found.is_some()
}

/// Adds a module if it has executable segments.
fn add(module: &Module, generation: u64, report: ModuleCallback) {
    if !module.contains(module.start) {
        return;
    }
    if see_again(module, generation) || !begin_adding() {
        return;
    }
    // Others may have added modules since.
    if see_again(module, generation) {
        ADDING.store(0, Release);
        return;
    }
    let len = LEN.load(Acquire);
    // SAFETY: `LEN` covers these slots, so they are written.
    let mut others = TABLE
        .iter()
        .take(len)
        .map(|slot| unsafe { &*slot.module.get() });
    if others.any(|other| other.start < module.end && module.start < other.end) {
        IN_TURN.store(true, Relaxed);
    }
    if let Some(slot) = TABLE.get(len) {
        // SAFETY: `LEN` does not cover the slot, so nobody reads it, and `ADDING` keeps others from
        // writing.
        unsafe { *slot.module.get() = *module };
        slot.seen.store(generation, Relaxed);
        module.report(report);
        if IS_OWN_LEFT_OUT.load(Relaxed)
            && module.contains(
                (find as fn(u64, ModuleCallback) -> Option<&'static Module>) as usize as u64,
            )
        {
            OWN[0].store(module.start, Relaxed);
            OWN[1].store(module.end, Relaxed);
        }
        LEN.store(len + 1, Release);
    }
    ADDING.store(0, Release);
}

/// Reads the path of the program into `buffer`.
fn own_path(buffer: &mut [u8]) -> &[u8] {
    const READLINK: u64 = 89;
    let arguments = [
        c"/proc/self/exe".as_ptr().expose_provenance() as u64,
        buffer.as_mut_ptr().expose_provenance() as u64,
        buffer.len() as u64,
        0,
        0,
        0,
    ];
    // SAFETY: the call writes at most the length of the buffer.
    let len = unsafe { system_call(READLINK, arguments) };
    buffer
        .get(..usize::try_from(len).unwrap_or(0))
        .unwrap_or_default()
}
