//! The kernel's interface, and what is needed of libc.

use core::arch::asm;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Of the protection of memory.
pub const PROT_NONE: u64 = 0;
/// See [`PROT_NONE`].
pub const PROT_READ: u64 = 1;
/// See [`PROT_NONE`].
pub const PROT_WRITE: u64 = 2;
/// See [`PROT_NONE`].
pub const PROT_EXEC: u64 = 4;
/// Of the flags of `mmap`.
pub const MAP_SHARED: u64 = 1;
/// See [`MAP_SHARED`].
pub const MAP_PRIVATE: u64 = 2;
/// See [`MAP_SHARED`].
pub const MAP_FIXED: u64 = 0x10;
/// See [`MAP_SHARED`].
pub const MAP_ANONYMOUS: u64 = 0x20;
/// See [`MAP_SHARED`].
pub const MAP_NORESERVE: u64 = 0x4000;
/// See [`MAP_SHARED`].
pub const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;

/// Where `syscall; ret` lies that calls are made from; 0: nowhere. See [`set_gate`].
static GATE: AtomicU64 = AtomicU64::new(0);

/// Makes all calls from this gate, where all other system calls of a thread are dispatched to the
/// tracer.
///
/// # Safety
///
/// `syscall; ret` lies at `gate`, and stays there.
pub unsafe fn set_gate(gate: u64) {
    GATE.store(gate, Relaxed);
}

/// Calls the kernel, and leaves `errno` alone.
///
/// # Safety
///
/// As the call demands.
pub unsafe fn system_call(number: u64, arguments: [u64; 6]) -> i64 {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let gate = GATE.load(Relaxed);
    let result;
    // SAFETY: the arguments are what the call demands (`# Safety`), and the gate is 0 or does it
    // (`set_gate`); the kernel changes only these
    // registers, and what the call is to change. The gate's two instructions need one word of the
    // stack below the red zone, which `asm!` without `nostack` keeps free.
    unsafe {
        asm!(
            "test {gate}, {gate}",
            "jz 2f",
            "call {gate}",
            "jmp 3f",
            "2: syscall",
            "3:",
            gate = in(reg) gate,
            inlateout("rax") number => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            in("r8") fifth,
            in("r9") sixth,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// Whether a call failed.
#[inline]
pub fn failed(result: i64) -> bool {
    (-4095..0).contains(&result)
}

/// Maps memory; its address, or a negative number.
///
/// # Safety
///
/// As for `mmap`.
pub unsafe fn map(
    address: u64,
    len: u64,
    protection: u64,
    flags: u64,
    fd: i64,
    offset: u64,
) -> i64 {
    const MMAP: u64 = 9;
    let arguments = [address, len, protection, flags, fd.cast_unsigned(), offset];
    // SAFETY: what the mapping replaces, if anything, is the caller's to replace (`# Safety`).
    unsafe { system_call(MMAP, arguments) }
}

/// Keeps handlers of these signals from the calling thread, and returns which it kept before.
pub fn block_signals(signals: u64) -> u64 {
    const SET_MASK: u64 = 2;
    let mut before = 0_u64;
    let [new, old] = [(&raw const signals) as u64, (&raw mut before) as u64];
    // SAFETY: the kernel reads one word of 8 bytes and writes the other.
    unsafe { system_call(SIGPROCMASK, [SET_MASK, new, old, 8, 0, 0]) };
    before
}

/// Undoes [`block_signals`].
pub fn restore_signals(before: u64) {
    block_signals(before);
}

const SIGPROCMASK: u64 = 14;

/// A limit of the process, as it is and as it may be raised to.
pub fn limit_of(what: u64) -> (u64, u64) {
    let mut limit = [u64::MAX; 2];
    // SAFETY: the kernel writes two words.
    unsafe { system_call(PRLIMIT64, [0, what, 0, (&raw mut limit) as u64, 0, 0]) };
    (limit[0], limit[1])
}

const PRLIMIT64: u64 = 302;

/// Makes a call that needs files of so many bytes; false if it fails, or they cannot be had. A
/// limit of the size of files would end the process, and is raised meanwhile.
pub fn with_files_of(len: u64, how: impl FnOnce() -> i64) -> bool {
    const RLIMIT_FSIZE: u64 = 1;
    let (now, most) = limit_of(RLIMIT_FSIZE);
    if most < len {
        return false;
    }
    let set = |limit: [u64; 2]| {
        if now < len {
            let words = [0, RLIMIT_FSIZE, (&raw const limit) as u64, 0, 0, 0];
            // SAFETY: the kernel reads two words, and allows what is at most `most`.
            unsafe { system_call(PRLIMIT64, words) };
        }
    };
    set([most, most]);
    let result = how();
    set([now, most]);
    !failed(result)
}

/// Gives a file its length; false if it cannot have that.
///
/// # Safety
///
/// The file is the caller's.
pub unsafe fn lengthen(fd: u64, len: u64) -> bool {
    const FTRUNCATE: u64 = 77;
    // SAFETY: the file is the caller's (`# Safety`).
    with_files_of(len, || unsafe {
        system_call(FTRUNCATE, [fd, len, 0, 0, 0, 0])
    })
}

/// What `dladdr` tells.
#[derive(Debug)]
#[repr(C)]
pub struct Symbol {
    /// The module's path.
    pub file: *const c_char,
    /// Where the module lies.
    pub base: *const c_void,
    /// The symbol's name, or null.
    pub name: *const c_char,
    /// Where the symbol lies.
    pub address: *const c_void,
}

/// The address of a socket in the file system.
#[derive(Debug)]
#[repr(C)]
pub struct UnixAddress {
    /// [`AF_UNIX`].
    pub family: u16,
    /// The path, which ends with 0.
    pub path: [u8; 108],
}

/// Of [`UnixAddress::family`].
pub const AF_UNIX: u16 = 1;

unsafe extern "C" {
    /// As libc's.
    ///
    /// # Safety
    ///
    /// `symbol` can be written.
    pub fn dladdr(address: *const c_void, symbol: *mut Symbol) -> c_int;
    fn pthread_self() -> *mut c_void;
    fn pthread_getattr_np(thread: *mut c_void, attributes: *mut [u64; 7]) -> c_int;
    fn pthread_attr_getstack(
        attributes: *const [u64; 7],
        address: *mut u64,
        len: *mut u64,
    ) -> c_int;
    fn pthread_attr_destroy(attributes: *mut [u64; 7]) -> c_int;
}

/// Where the stack is that the calling thread has begun on; zeros if libc does not tell.
pub fn thread_stack() -> [u64; 2] {
    let (mut attributes, mut address, mut len) = ([0; 7], 0, 0);
    // SAFETY: `pthread_attr_t` has 56 bytes and is filled before it is asked and destroyed; libc
    // writes one word each to `address` and `len`.
    unsafe {
        if pthread_getattr_np(pthread_self(), &raw mut attributes) == 0 {
            pthread_attr_getstack(&raw const attributes, &raw mut address, &raw mut len);
            pthread_attr_destroy(&raw mut attributes);
        }
    }
    [address, (address + len) & !7]
}
