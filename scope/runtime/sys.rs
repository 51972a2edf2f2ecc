//! What the runtime needs of libc and the kernel.

use core::ffi::{c_char, c_int, c_void};

pub(crate) use inside::sys::{
    AF_UNIX, MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, PROT_EXEC,
    PROT_READ, PROT_WRITE, Symbol, UnixAddress, dladdr, lengthen, restore_signals, system_call,
    thread_stack,
};

pub(crate) const PROT_READ_WRITE: u64 = PROT_READ | PROT_WRITE;
pub(crate) const MADV_DONTDUMP: c_int = 16;
pub(crate) const MADV_WIPEONFORK: c_int = 18;
/// Closed by `exec`, and the tool may forbid changes once the process has ended.
pub(crate) const MFD_CLOEXEC_SEALABLE: u32 = 1 | 2;
pub(crate) const SOCK_STREAM_CLOEXEC: c_int = 1 | 0o2_000_000;
pub(crate) const SOL_SOCKET: c_int = 1;
pub(crate) const SCM_RIGHTS: c_int = 1;
pub(crate) const MSG_NOSIGNAL: c_int = 0x4000;
pub(crate) const RTLD_NEXT: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);
pub(crate) const CLOCK_REALTIME: c_int = 0;
pub(crate) const SYS_WRITE: i64 = 1;
pub(crate) const SYS_READ: u64 = 0;
/// What a call gives that a signal has interrupted.
pub(crate) const INTERRUPTED: i64 = -4;
pub(crate) const SYS_NANOSLEEP: u64 = 35;
pub(crate) const SYS_MEMBARRIER: u64 = 324;
/// Its arguments: lets [`MEMBARRIER_INTERRUPT`] be used.
pub(crate) const MEMBARRIER_REGISTER: [u64; 6] = [1 << 4, 0, 0, 0, 0, 0];
/// Each other thread that runs is interrupted, and so has done its stores.
pub(crate) const MEMBARRIER_INTERRUPT: [u64; 6] = [1 << 3, 0, 0, 0, 0, 0];

#[repr(C)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

#[repr(C)]
pub(crate) struct IoVec {
    pub(crate) base: *const c_void,
    pub(crate) len: usize,
}

#[repr(C)]
pub(crate) struct Message {
    pub(crate) name: *const c_void,
    pub(crate) name_len: u32,
    pub(crate) parts: *const IoVec,
    pub(crate) parts_len: usize,
    pub(crate) control: *const c_void,
    pub(crate) control_len: usize,
    pub(crate) flags: c_int,
}

/// A control message with one descriptor.
#[repr(C)]
pub(crate) struct Rights {
    pub(crate) len: usize,
    pub(crate) level: c_int,
    pub(crate) kind: c_int,
    pub(crate) descriptor: c_int,
    pub(crate) padding: c_int,
}

unsafe extern "C" {
    pub(crate) fn syscall(number: i64, ...) -> i64;
    pub(crate) fn memfd_create(name: *const c_char, flags: u32) -> c_int;
    pub(crate) fn madvise(address: *mut c_void, len: usize, advice: c_int) -> c_int;
    pub(crate) fn close(fd: c_int) -> c_int;
    pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    pub(crate) fn connect(fd: c_int, address: *const UnixAddress, len: u32) -> c_int;
    pub(crate) fn sendmsg(fd: c_int, message: *const Message, flags: c_int) -> isize;
    pub(crate) fn getpid() -> c_int;
    pub(crate) fn getppid() -> c_int;
    pub(crate) fn getenv(name: *const c_char) -> *const c_char;
    pub(crate) fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    pub(crate) fn sched_yield() -> c_int;
    pub(crate) fn _exit(status: c_int) -> !;
    pub(crate) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn pthread_key_create(
        key: *mut u32,
        destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> c_int;
    pub(crate) fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    pub(crate) fn __register_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
        library: *const c_void,
    ) -> c_int;
    pub(crate) fn __errno_location() -> *mut c_int;
}

/// The value of a variable of the environment, whose name is shorter than 64 bytes; null without.
pub(crate) fn variable(name: &str) -> *const c_char {
    let mut bytes = [0_u8; 64];
    bytes[..63][..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the name ends with 0, since the last of `bytes` stays 0.
    unsafe { getenv(bytes.as_ptr().cast()) }
}

/// Maps memory at this place, or nowhere.
///
/// # Safety
///
/// As for `mmap`.
pub(crate) unsafe fn map(address: u64, len: u64, protection: u64, flags: u64, fd: c_int) -> bool {
    // SAFETY: what `mmap` asks for holds (`# Safety`).
    let mapped = unsafe { inside::sys::map(address, len, protection, flags, fd.into(), 0) };
    mapped == address.cast_signed()
}

/// Maps memory at a place that nobody else has; in a child of `fork`, over what its parent has
/// there. It is left out of core files: the kernel would fill every page of a memory file first.
///
/// # Safety
///
/// As for `mmap`.
pub(crate) unsafe fn map_at(
    address: u64,
    len: u64,
    protection: u64,
    flags: u64,
    fd: c_int,
    over: bool,
) -> bool {
    let fixed = if over {
        MAP_FIXED
    } else {
        inside::sys::MAP_FIXED_NOREPLACE
    };
    // SAFETY: what `mmap` asks for holds (`# Safety`); this advice changes no content.
    unsafe {
        let place = core::ptr::with_exposed_provenance_mut(address as usize);
        map(address, len, protection, flags | fixed, fd) && {
            madvise(place, len as usize, MADV_DONTDUMP);
            true
        }
    }
}

/// Takes memory away.
///
/// # Safety
///
/// Nobody uses it any more.
pub(crate) unsafe fn unmap(address: u64, len: u64) {
    const MUNMAP: u64 = 11;
    // SAFETY: nobody uses the memory (`# Safety`).
    unsafe { system_call(MUNMAP, [address, len, 0, 0, 0, 0]) };
}

/// Sets the rights of memory; whether that is allowed.
///
/// # Safety
///
/// Who uses the memory does so as the new rights let.
pub(crate) unsafe fn protect(address: u64, len: u64, protection: u64) -> bool {
    const MPROTECT: u64 = 10;
    // SAFETY: the memory is used as the rights let (`# Safety`).
    unsafe { system_call(MPROTECT, [address, len, protection, 0, 0, 0]) == 0 }
}

/// Writes one line to standard error.
pub(crate) fn say(line: &[u8]) {
    // SAFETY: the slice is readable; that the write may fail does not matter.
    unsafe {
        for part in [&b"ccscope: "[..], line, b"\n"] {
            syscall(SYS_WRITE, 2_i64, part.as_ptr(), part.len());
        }
    }
}

/// Says why and ends the process.
pub(crate) fn die(line: &[u8]) -> ! {
    say(line);
    // SAFETY: has no requirements.
    unsafe { _exit(127) }
}

/// Nanoseconds since 1970 and the time-stamp counter.
pub(crate) fn clocks() -> (u64, u64) {
    let mut time = Time {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: `time` is a timespec.
    unsafe { clock_gettime(CLOCK_REALTIME, &raw mut time) };
    (
        time.seconds.cast_unsigned() * 1_000_000_000 + time.nanoseconds.cast_unsigned(),
        tsc(),
    )
}

/// The time-stamp counter.
pub(crate) fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Address, flags and length of the thread's stack for signals.
fn signal_stack() -> [u64; 3] {
    const SIGALTSTACK: u64 = 131;
    let mut stack = [0_u64; 3];
    // SAFETY: the kernel writes the three words and changes nothing.
    unsafe { system_call(SIGALTSTACK, [0, (&raw mut stack) as u64, 0, 0, 0, 0]) };
    stack
}

/// Whether the thread handles a signal on a stack that is there for that.
pub(crate) fn is_on_signal_stack() -> bool {
    const SS_ONSTACK: u64 = 1;
    signal_stack()[1] & SS_ONSTACK != 0
}

/// Whether `address` is on that stack.
pub(crate) fn signal_stack_contains(address: u64) -> bool {
    let [start, _, len] = signal_stack();
    address.wrapping_sub(start) < len
}

/// Keeps all handlers of signals from the calling thread, and returns which it kept before.
pub(crate) fn block_signals() -> u64 {
    inside::sys::block_signals(u64::MAX)
}
