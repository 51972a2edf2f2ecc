//! Functions of libc that are taken over: those that allocate, so that memory has names, and those
//! that copy and fill, which are told as one event.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::lock::LOCK;
use super::wire::{self, Event};
use super::{events, masks, sys, threads, unwind, zones};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}
const NEXT: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);

/// The functions that come after ours.
static REAL: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
const NAMES: [&core::ffi::CStr; 16] = [
    c"malloc",
    c"calloc",
    c"realloc",
    c"free",
    c"memalign",
    c"aligned_alloc",
    c"posix_memalign",
    c"reallocarray",
    c"mmap",
    c"munmap",
    c"mremap",
    c"memcpy",
    c"memmove",
    c"mempcpy",
    c"memset",
    c"mmap64",
];

/// The address of the function that comes after ours.
fn real(index: usize) -> u64 {
    let known = REAL[index].load(Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: the name ends with 0.
    let found = unsafe { dlsym(NEXT, NAMES[index].as_ptr()) }.expose_provenance() as u64;
    if found == 0 {
        sys::die(b"libc lacks a function");
    }
    REAL[index].store(found, Relaxed);
    found
}

/// Has libc's restartable sequences end: each fault within one would start it anew, and the kernel
/// reads what may be closed.
pub(crate) fn end_sequences() {
    const UNREGISTER: u64 = 1;
    const SIGNATURE: u64 = 0x5305_3053;
    const LEAST: u64 = 32;
    let anywhere = core::ptr::null_mut();
    // SAFETY: the names end with 0; libc has a distance and a size there, or nothing at all.
    unsafe {
        let offset = dlsym(anywhere, c"__rseq_offset".as_ptr());
        let size = dlsym(anywhere, c"__rseq_size".as_ptr());
        if !offset.is_null() && !size.is_null() {
            let offset = offset.cast::<i64>().read();
            let size = u64::from(size.cast::<u32>().read()).max(LEAST);
            let place = threads::control_block().wrapping_add_signed(offset);
            sys::call(sys::RSEQ, [place, size, UNREGISTER, SIGNATURE, 0, 0]);
        }
    }
}

/// Finds them all, while nothing is traced.
pub(crate) fn init() {
    for index in 0..NAMES.len() {
        real(index);
    }
}

/// Where the function returns to.
macro_rules! caller {
    () => {{
        let address: u64;
        // SAFETY: this library has frame pointers, and the return address lies above the old one.
        unsafe {
            core::arch::asm!(
                "mov {}, [rbp + 8]",
                out(reg) address,
                options(nostack, readonly, preserves_flags)
            );
        }
        address
    }};
}

/// Calls what comes after ours with words for arguments. What it accesses is not recorded.
///
/// # Safety
///
/// As the function demands.
unsafe fn quietly(index: usize, arguments: [u64; 6]) -> u64 {
    let function = core::ptr::with_exposed_provenance::<()>(real(index) as usize);
    let quiet = &threads::this().quiet;
    let before = quiet.swap(1, Relaxed);
    let [first, second, third, fourth, fifth, sixth] = arguments;
    #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
    // SAFETY: `real` gives the function of libc that `NAMES` has at `index`; the caller passes what
    // it demands (`# Safety`). More arguments than a function has do no harm in this convention.
    let result = unsafe {
        let function: unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> u64 =
            core::mem::transmute(function);
        function(first, second, third, fourth, fifth, sixth)
    };
    quiet.store(before, Relaxed);
    result
}

/// Writes an event and, if there is one, what belongs to it.
fn tell(kind: u8, ip: u64, address: u64, len: u64, previous: Option<u64>) {
    if !events::is_ready() {
        return;
    }
    let thread = threads::this();
    if thread.quiet.load(Relaxed) == 0 {
        let event = Event {
            ip,
            address,
            len,
            thread: thread.number.load(Relaxed),
            kind,
            ..Event::default()
        };
        events::push(event);
        if let Some(address) = previous {
            events::push(Event {
                address,
                kind: wire::PREVIOUS,
                ..event
            });
        }
        if [wire::MALLOC, wire::CALLOC, wire::REALLOC, wire::MMAP].contains(&kind) {
            tell_callers(event, thread);
        }
    }
}

/// Frames of an allocation that are told.
const FRAMES: usize = 13;

/// Writes who called the caller of an allocation.
#[inline(always)]
fn tell_callers(event: Event, thread: &threads::Thread) {
    let mut frames = [0; FRAMES];
    let before = thread.quiet.swap(1, Relaxed);
    // SAFETY: the thread's stack is not told.
    unsafe { unwind::stack(&mut frames, None, [0; 2], |_, _, _, _| {}) };
    thread.quiet.store(before, Relaxed);
    // The first is in the event. Three fit into a record.
    for part in frames[1..].chunks(3).take_while(|part| part[0] != 0) {
        let [ip, address, len] = [part[0], part[1], part[2]];
        let kind = wire::FRAMES;
        events::push(Event {
            ip,
            address,
            len,
            kind,
            ..event
        });
    }
}

/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn malloc(len: u64) -> u64 {
    let ip = caller!();
    // SAFETY: any argument will do.
    let block = unsafe { quietly(0, [len, 0, 0, 0, 0, 0]) };
    tell(wire::MALLOC, ip, block, len, None);
    block
}

/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn calloc(count: u64, size: u64) -> u64 {
    let ip = caller!();
    // SAFETY: any arguments will do.
    let block = unsafe { quietly(1, [count, size, 0, 0, 0, 0]) };
    if block != 0 {
        tell(wire::CALLOC, ip, block, count * size, None);
        if zones::is_closed() {
            tell(wire::FILL, ip, block, count * size, None);
        }
    }
    block
}

/// As libc's.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn realloc(old: u64, len: u64) -> u64 {
    let ip = caller!();
    // SAFETY: `old` is null or a block of `malloc`'s that the program gives up, as
    // libc's `realloc` demands.
    let block = unsafe { quietly(2, [old, len, 0, 0, 0, 0]) };
    if block != 0 || len == 0 {
        tell(wire::REALLOC, ip, block, len, Some(old));
    }
    block
}

/// As libc's.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn free(block: u64) {
    let ip = caller!();
    // Before: another thread may get the block at once.
    if block != 0 {
        tell(wire::FREE, ip, block, 0, None);
    }
    // SAFETY: `block` is null or a block of `malloc`'s, which the program gives up, as
    // libc's `free` demands.
    unsafe { quietly(3, [block, 0, 0, 0, 0, 0]) };
}

/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn memalign(align: u64, len: u64) -> u64 {
    let ip = caller!();
    // SAFETY: any arguments will do.
    let block = unsafe { quietly(4, [align, len, 0, 0, 0, 0]) };
    tell(wire::MALLOC, ip, block, len, None);
    block
}

/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn aligned_alloc(align: u64, len: u64) -> u64 {
    let ip = caller!();
    // SAFETY: any arguments will do.
    let block = unsafe { quietly(5, [align, len, 0, 0, 0, 0]) };
    tell(wire::MALLOC, ip, block, len, None);
    block
}

/// As libc's.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn posix_memalign(to: *mut u64, align: u64, len: u64) -> i32 {
    let ip = caller!();
    // SAFETY: `to` is writable, as libc's function demands; where it answers 0, it
    // has written there.
    unsafe {
        let result = quietly(6, [to.expose_provenance() as u64, align, len, 0, 0, 0]) as i32;
        if result == 0 {
            let quiet = &threads::this().quiet;
            let before = quiet.swap(1, Relaxed);
            let block = to.read();
            quiet.store(before, Relaxed);
            tell(wire::MALLOC, ip, block, len, None);
        }
        result
    }
}

/// As libc's.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn reallocarray(old: u64, count: u64, size: u64) -> u64 {
    let ip = caller!();
    // SAFETY: `old` is null or a block of `malloc`'s that the program gives up, as
    // libc's function demands.
    let block = unsafe { quietly(7, [old, count, size, 0, 0, 0]) };
    if block != 0 {
        tell(wire::REALLOC, ip, block, count * size, Some(old));
    }
    block
}

macro_rules! mmap {
    ($name:ident, $function:literal) => {
        /// As libc's.
        ///
        /// # Safety
        ///
        /// As libc's.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(
            address: u64,
            len: u64,
            protection: i32,
            flags: i32,
            fd: i32,
            offset: u64,
        ) -> u64 {
            let ip = caller!();
            let words = [protection, flags, fd].map(|it| i64::from(it).cast_unsigned());
            let words = [address, len, words[0], words[1], words[2], offset];
            // SAFETY: the program calls this function with the same arguments: what the mapping
            // replaces is its own.
            let place = unsafe { quietly($function, words) };
            if place != u64::MAX {
                tell(wire::MMAP, ip, place, len, None);
            }
            place
        }
    };
}
mmap!(mmap, 8);
mmap!(mmap64, 15);

/// As libc's.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn munmap(address: u64, len: u64) -> i32 {
    let ip = caller!();
    tell(wire::MUNMAP, ip, address, len, None);
    // SAFETY: the program gives up the range (as libc's `munmap` demands).
    unsafe { quietly(9, [address, len, 0, 0, 0, 0]) as i32 }
}

/// As libc's; its last argument is there only with some flags.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mremap(old: u64, old_len: u64, len: u64, flags: i32, place: u64) -> u64 {
    let ip = caller!();
    // SAFETY: the program gives up the range `old`, and with `MREMAP_FIXED` what is at `place`.
    let block = unsafe {
        quietly(
            10,
            [
                old,
                old_len,
                len,
                i64::from(flags).cast_unsigned(),
                place,
                0,
            ],
        )
    };
    if block != u64::MAX {
        tell(wire::MREMAP, ip, block, len, Some(old));
    }
    block
}

/// Where a range may be accessed as a whole. What the program may not do happens at its own
/// address, which its handler is told of.
fn usable(address: u64, len: u64, needed: u64) -> u64 {
    match zones::find(address) {
        Some(zone) if zone.end - address >= len && zone.protection & needed != 0 => {
            address.wrapping_add_signed(zone.delta)
        }
        _ => address,
    }
}

/// Copies or fills, told as one event.
///
/// # Safety
///
/// As for the function.
unsafe fn block(index: usize, ip: u64, [to, from, len]: [u64; 3], fills: bool) {
    // The compiler has our own code call these, too.
    let is_own = sys::is_own(ip);
    // Where nothing is traced, and for ourselves, it is only a copy.
    if is_own || !events::is_ready() || !zones::is_closed() || len == 0 {
        // SAFETY: `len` bytes at `to`, and at `from` unless it fills, are the caller's to access
        // (`# Safety`); they are passed on unchanged.
        unsafe {
            if is_own || REAL[index].load(Relaxed) == 0 {
                if fills {
                    sys::fill(to, from as u8, len);
                } else {
                    simple_move(to, from, len);
                }
            } else {
                quietly(index, [to, from, len, 0, 0, 0]);
            }
        }
        return;
    }
    if fills {
        tell(wire::FILL, ip, to, len, None);
    } else {
        tell(wire::COPY, ip, to, len, Some(from));
    }
    let mask = masks::block();
    LOCK.take();
    let own_to = usable(to, len, sys::PROT_WRITE);
    let own_from = if fills {
        from
    } else {
        // Memory that may be stored to can be read.
        usable(from, len, sys::PROT_READ | sys::PROT_WRITE)
    };
    // Ranges that overlap have to do so as the program has them.
    let overlap = !fills && to.abs_diff(from) < len;
    let (own_to, own_from) = if overlap && (own_to == to) != (own_from == from) {
        (to, from)
    } else {
        (own_to, own_from)
    };
    LOCK.give();
    masks::restore(mask);
    // SAFETY: `len` bytes at `to`, and at `from` unless it fills, are the caller's to access
    // (`# Safety`). An alias is the same memory as long as its zone is there. If that is
    // released meanwhile, the copy faults, and the handler aims it back.
    unsafe { quietly(index, [own_to, own_from, len, 0, 0, 0]) };
}

/// `memmove` before libc's is found.
///
/// # Safety
///
/// As for `memmove`.
unsafe fn simple_move(to: u64, from: u64, len: u64) {
    // SAFETY: `len` bytes are readable at `from` and writable at `to` (`# Safety`); of ranges that
    // overlap, the end that would be overwritten is read first. The direction flag is clear by the
    // calling convention, and again at the end.
    unsafe {
        if to.wrapping_sub(from) >= len {
            sys::copy(to, from, len);
        } else {
            core::arch::asm!("std", "rep movsb", "cld", inout("rdi") to + len - 1 => _,
                inout("rsi") from + len - 1 => _, inout("rcx") len => _, options(nostack));
        }
    }
}

/// As libc's.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memcpy(to: u64, from: u64, len: u64) -> u64 {
    let ip = caller!();
    // SAFETY: the ranges are accessible and do not overlap, as libc's `memcpy` demands.
    unsafe { block(11, ip, [to, from, len], false) };
    to
}

/// As libc's.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memmove(to: u64, from: u64, len: u64) -> u64 {
    let ip = caller!();
    // SAFETY: the ranges are accessible, as libc's `memmove` demands.
    unsafe { block(12, ip, [to, from, len], false) };
    to
}

/// As libc's.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mempcpy(to: u64, from: u64, len: u64) -> u64 {
    let ip = caller!();
    // SAFETY: the ranges are accessible and do not overlap, as libc's `mempcpy` demands.
    unsafe { block(13, ip, [to, from, len], false) };
    to + len
}

/// As libc's.
///
/// # Safety
///
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memset(to: u64, byte: i32, len: u64) -> u64 {
    let ip = caller!();
    // SAFETY: the range is writable, as libc's `memset` demands.
    unsafe { block(14, ip, [to, u64::from(byte as u8), len], true) };
    to
}

/// Turns tracing on or off.
fn set_tracing(is_on: bool) {
    if events::is_ready() {
        let mask = masks::block();
        LOCK.take();
        zones::set_closed(is_on);
        LOCK.give();
        masks::restore(mask);
    }
}

/// Turns tracing on.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn ccscope_trace_start() {
    set_tracing(true);
}

/// Turns tracing off.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn ccscope_trace_stop() {
    set_tracing(false);
}
