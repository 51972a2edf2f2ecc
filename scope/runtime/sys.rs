//! What the runtime needs of libc and the kernel.

use core::ffi::{c_char, c_int, c_void};

pub const PROT_READ: c_int = 1;
pub const PROT_READ_WRITE: c_int = 3;
pub const MAP_SHARED: c_int = 1;
pub const MAP_PRIVATE: c_int = 2;
pub const MAP_FIXED: c_int = 0x10;
pub const MAP_ANONYMOUS: c_int = 0x20;
pub const MAP_NORESERVE: c_int = 0x4000;
pub const MAP_FIXED_NOREPLACE: c_int = 0x10_0000;
pub const MFD_CLOEXEC: u32 = 1;
pub const AF_UNIX: c_int = 1;
pub const SOCK_STREAM_CLOEXEC: c_int = 1 | 0o2_000_000;
pub const SOL_SOCKET: c_int = 1;
pub const SCM_RIGHTS: c_int = 1;
pub const MSG_NOSIGNAL: c_int = 0x4000;
pub const RTLD_NEXT: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);
pub const CLOCK_REALTIME: c_int = 0;
pub const SYS_MMAP: i64 = 9;

#[repr(C)]
pub struct Time {
    pub seconds: i64,
    pub nanoseconds: i64,
}

#[repr(C)]
pub struct IoVec {
    pub base: *const c_void,
    pub len: usize,
}

#[repr(C)]
pub struct Message {
    pub name: *const c_void,
    pub name_len: u32,
    pub parts: *const IoVec,
    pub parts_len: usize,
    pub control: *const c_void,
    pub control_len: usize,
    pub flags: c_int,
}

/// A control message with one descriptor.
#[repr(C)]
pub struct Rights {
    pub len: usize,
    pub level: c_int,
    pub kind: c_int,
    pub descriptor: c_int,
    pub padding: c_int,
}

#[repr(C)]
pub struct UnixAddress {
    pub family: u16,
    pub path: [u8; 108],
}

unsafe extern "C" {
    pub fn syscall(number: i64, ...) -> i64;
    pub fn memfd_create(name: *const c_char, flags: u32) -> c_int;
    pub fn ftruncate(fd: c_int, length: i64) -> c_int;
    pub fn close(fd: c_int) -> c_int;
    pub fn write(fd: c_int, buffer: *const c_void, count: usize) -> isize;
    pub fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    pub fn connect(fd: c_int, address: *const UnixAddress, len: u32) -> c_int;
    pub fn sendmsg(fd: c_int, message: *const Message, flags: c_int) -> isize;
    pub fn getpid() -> c_int;
    pub fn getppid() -> c_int;
    pub fn getenv(name: *const c_char) -> *const c_char;
    pub fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    pub fn sched_yield() -> c_int;
    pub fn _exit(status: c_int) -> !;
    pub fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub fn pthread_key_create(
        key: *mut u32,
        destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> c_int;
    pub fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    pub fn __register_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
        library: *const c_void,
    ) -> c_int;
    pub fn __errno_location() -> *mut c_int;
}

/// Maps memory by a system call of our own, since `mmap` is a name that this library takes.
///
/// # Safety
///
/// As for `mmap`.
pub unsafe fn map(address: u64, len: u64, protection: c_int, flags: c_int, fd: c_int) -> bool {
    // SAFETY: the caller's.
    let mapped = unsafe { syscall(SYS_MMAP, address, len, protection, flags, fd, 0_i64) };
    mapped == address.cast_signed()
}

/// Writes one line to standard error.
pub fn say(line: &[u8]) {
    // SAFETY: the slice is readable; that the write may fail does not matter.
    unsafe {
        write(2, b"ccscope: ".as_ptr().cast(), 9);
        write(2, line.as_ptr().cast(), line.len());
        write(2, b"\n".as_ptr().cast(), 1);
    }
}

/// Says why and ends the process.
pub fn die(line: &[u8]) -> ! {
    say(line);
    // SAFETY: has no requirements.
    unsafe { _exit(127) }
}

/// Nanoseconds since 1970 and the time-stamp counter.
pub fn clocks() -> (u64, u64) {
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
pub fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}
