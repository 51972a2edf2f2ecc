//! The kernel's interface. Once a thread's system calls are dispatched to us, ours have to come
//! from the [gate](crate::gate).

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) use crate::numbers::{
    BRK, CLONE, CLONE3, CLOSE, CONNECT, EXECVE, EXECVEAT, EXIT, EXIT_GROUP, FALLOCATE, FORK,
    FTRUNCATE, FUTEX, GET_ROBUST_LIST, GETPID, GETTID, LSEEK, MADVISE, MEMBARRIER, MEMFD_CREATE,
    MMAP, MPROTECT, MREMAP, MUNMAP, OPEN, PKEY_MPROTECT, PRCTL, PRLIMIT64, PWRITE64 as PWRITE,
    READ, RSEQ, RT_SIGACTION, RT_SIGPROCMASK, RT_SIGRETURN, RT_TGSIGQUEUEINFO, SCHED_YIELD,
    SIGALTSTACK, SOCKET, STAT, TGKILL, VFORK, WRITE, WRITEV,
};

/// Where `syscall; ret` lies in the gate; 0 before there is one.
pub(crate) static GATE_CALL: AtomicU64 = AtomicU64::new(0);

pub(crate) const PROT_NONE: u64 = 0;
pub(crate) const PROT_READ: u64 = 1;
pub(crate) const PROT_WRITE: u64 = 2;
pub(crate) const PROT_EXEC: u64 = 4;
pub(crate) const MAP_SHARED: u64 = 1;
pub(crate) const MAP_PRIVATE: u64 = 2;
pub(crate) const MAP_FIXED: u64 = 0x10;
pub(crate) const MAP_ANONYMOUS: u64 = 0x20;
pub(crate) const MAP_NORESERVE: u64 = 0x4000;
pub(crate) const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
pub(crate) const PAGE: u64 = 4096;

/// Calls the kernel.
///
/// # Safety
///
/// As the call demands.
pub(crate) unsafe fn call(number: u64, arguments: [u64; 6]) -> i64 {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let gate = GATE_CALL.load(Relaxed);
    let result;
    // SAFETY: the arguments are what the call demands (`# Safety`); the kernel changes only these
    // registers, and what the call is to change. The gate's
    // two instructions need one word of the stack below the red zone, which `asm!` without
    // `nostack` keeps free.
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

pub(crate) use call as system_call;

/// What `dladdr` tells.
#[repr(C)]
pub(crate) struct Symbol {
    pub(crate) file: *const core::ffi::c_char,
    /// Where the library lies.
    pub(crate) base: *const core::ffi::c_void,
    pub(crate) name: *const core::ffi::c_char,
    pub(crate) address: *const core::ffi::c_void,
}

unsafe extern "C" {
    pub(crate) fn dladdr(address: *const core::ffi::c_void, symbol: *mut Symbol) -> i32;
}

/// Whether a call failed.
pub(crate) fn failed(result: i64) -> bool {
    (-4095..0).contains(&result)
}

/// Maps memory; its address, or a negative number.
///
/// # Safety
///
/// As for `mmap`.
pub(crate) unsafe fn map(
    address: u64,
    len: u64,
    protection: u64,
    flags: u64,
    fd: i64,
    offset: u64,
) -> i64 {
    // SAFETY: what the mapping replaces, if anything, is the caller's to replace (`# Safety`).
    unsafe {
        call(
            MMAP,
            [address, len, protection, flags, fd.cast_unsigned(), offset],
        )
    }
}

/// Where memory of ours that was mapped last begins.
static FAR: AtomicU64 = AtomicU64::new(0);

/// Where to put memory of ours: far from the program's code, near which patches need room.
pub(crate) fn far(len: u64) -> u64 {
    const DISTANCE: u64 = 1 << 40;
    let own = ((&raw const FAR) as u64).saturating_sub(DISTANCE) & !(PAGE - 1);
    let _ = FAR.compare_exchange(0, own, Relaxed, Relaxed);
    let len = len.next_multiple_of(PAGE);
    FAR.fetch_sub(len, Relaxed) - len
}

/// Memory for when the program has limited its own address space: where it begins, and ends.
static SPARE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Sets memory aside.
pub(crate) fn keep_spare() {
    const LEN: u64 = 4 << 20;
    let start = memory(LEN);
    SPARE[0].store(start, Relaxed);
    SPARE[1].store(start + LEN, Relaxed);
}

/// New memory for ourselves, of zeros.
pub(crate) fn memory(len: u64) -> u64 {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: it is put where nothing is.
    let address = unsafe { map(far(len), len, PROT_READ | PROT_WRITE, flags, -1, 0) };
    if failed(address) {
        let len = len.next_multiple_of(PAGE);
        let spare = SPARE[0].fetch_add(len, Relaxed);
        if spare + len > SPARE[1].load(Relaxed) {
            die(b"no memory for the tracer");
        }
        return spare;
    }
    address.cast_unsigned()
}

/// Changes what may be done with memory.
///
/// # Safety
///
/// As for `mprotect`.
pub(crate) unsafe fn protect(address: u64, len: u64, protection: u64) -> i64 {
    // SAFETY: nobody relies on what is taken away from the range (`# Safety`).
    unsafe { call(MPROTECT, [address, len, protection, 0, 0, 0]) }
}

pub(crate) const RLIMIT_AS: u64 = 9;

/// A limit of the process, as it is and as it may be raised to.
pub(crate) fn limit_of(what: u64) -> (u64, u64) {
    let mut limit = [u64::MAX; 2];
    // SAFETY: the kernel writes two words.
    unsafe { call(PRLIMIT64, [0, what, 0, (&raw mut limit) as u64, 0, 0]) };
    (limit[0], limit[1])
}

/// Gives a file its length; false if it cannot have that.
///
/// # Safety
///
/// The file is ours.
pub(crate) unsafe fn lengthen(fd: u64, len: u64) -> bool {
    // SAFETY: the file is ours (`# Safety`).
    with_files_of(len, || unsafe { call(FTRUNCATE, [fd, len, 0, 0, 0, 0]) })
}

/// Makes a call that needs files of so many bytes; false if it fails, or they cannot be had. A
/// limit of the size of files would end the process, and is raised meanwhile.
pub(crate) fn with_files_of(len: u64, how: impl FnOnce() -> i64) -> bool {
    const RLIMIT_FSIZE: u64 = 1;
    let (now, most) = limit_of(RLIMIT_FSIZE);
    if most < len {
        return false;
    }
    let set = |limit: [u64; 2]| {
        if now < len {
            let words = [0, RLIMIT_FSIZE, (&raw const limit) as u64, 0, 0, 0];
            // SAFETY: the kernel reads two words, and allows what is at most `most`.
            unsafe { call(PRLIMIT64, words) };
        }
    };
    set([most, most]);
    let result = how();
    set([now, most]);
    !failed(result)
}

/// Copies bytes without the function of libc that this library takes over.
///
/// # Safety
///
/// As for `memcpy`.
pub(crate) unsafe fn copy(to: u64, from: u64, len: u64) {
    // SAFETY: `len` bytes are readable at `from` and writable at `to`, which do not overlap
    // (`# Safety`). The direction flag is clear by the calling convention.
    unsafe {
        asm!(
            "rep movsb",
            inout("rdi") to => _,
            inout("rsi") from => _,
            inout("rcx") len => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Fills memory, likewise.
///
/// # Safety
///
/// As for `memset`.
pub(crate) unsafe fn fill(to: u64, byte: u8, len: u64) {
    // SAFETY: `len` bytes are writable at `to` (`# Safety`). The direction flag is clear by the
    // calling convention.
    unsafe {
        asm!(
            "rep stosb",
            inout("rdi") to => _,
            inout("rcx") len => _,
            in("al") byte,
            options(nostack, preserves_flags)
        );
    }
}

// Copies `rdx` bytes from `rsi` to `rdi` and answers 0. A fault at `ccscope_copy_at` has the
// handler go on behind that instruction with an answer of 1.
core::arch::global_asm!(
    ".hidden ccscope_try_copy",
    ".globl ccscope_try_copy",
    "ccscope_try_copy:",
    "mov rcx, rdx",
    "xor eax, eax",
    ".hidden ccscope_copy_at",
    ".globl ccscope_copy_at",
    "ccscope_copy_at:",
    "rep movsb",
    "ret",
);
unsafe extern "C" {
    fn ccscope_try_copy(to: u64, from: u64, len: u64) -> u64;
    static ccscope_copy_at: u8;
}

/// Copies bytes of the program, where the program may not access them as it tries to; false if
/// there was a fault.
///
/// # Safety
///
/// The caller holds the lock, since what a fault tells is kept in one place. If there is memory to
/// copy to, it is the caller's own, or the program does or asks for the same.
pub(crate) unsafe fn try_copy(to: u64, from: u64, len: u64) -> bool {
    // SAFETY: memory that is there may be written (`# Safety`). At a fault, `on_fault` finds the
    // thread at `ccscope_copy_at`, and has it answer 1.
    unsafe { ccscope_try_copy(to, from, len) == 0 }
}

/// Where [`try_copy`] may fault, and behind that.
pub(crate) fn places_of_copy() -> (u64, u64) {
    const LEN: u64 = 2;
    let at = &raw const ccscope_copy_at as u64;
    (at, at + LEN)
}

/// Reads a word at any address.
///
/// # Safety
///
/// Eight bytes are readable there.
pub(crate) unsafe fn word(address: u64) -> u64 {
    // SAFETY: eight bytes are readable there (`# Safety`), aligned or not.
    unsafe { core::ptr::with_exposed_provenance::<u64>(address as usize).read_unaligned() }
}

/// Writes a word at any address.
///
/// # Safety
///
/// Eight bytes are writable there, and of nobody else.
pub(crate) unsafe fn set_word(address: u64, value: u64) {
    // SAFETY: eight bytes are writable there, and of nobody else (`# Safety`), aligned or not.
    unsafe {
        core::ptr::with_exposed_provenance_mut::<u64>(address as usize).write_unaligned(value);
    }
}

/// The kernel's number of the calling thread.
pub(crate) fn thread() -> u32 {
    // SAFETY: has no requirements.
    unsafe { call(GETTID, [0; 6]) as u32 }
}

/// The kernel's number of the process.
pub(crate) fn process() -> u64 {
    // SAFETY: has no requirements.
    unsafe { call(GETPID, [0; 6]).cast_unsigned() }
}

/// Has the tool say one line when the program is done: what descriptor 2 is, the program knows.
pub(crate) fn say(line: &[u8]) {
    const CREATE_TO_APPEND: u64 = 0o100 | 0o2000 | 1;
    let mut path = crate::start::Path::in_folder();
    path.text(b"said");
    let parts = [line, b"\n"].map(|part| [part.as_ptr() as u64, part.len() as u64]);
    // SAFETY: the path ends with 0, and the slices are readable.
    unsafe {
        let fd = call(OPEN, [path.pointer(), CREATE_TO_APPEND, 0o600, 0, 0, 0]);
        if !failed(fd) {
            let fd = fd.cast_unsigned();
            call(WRITEV, [fd, (&raw const parts) as u64, 2, 0, 0, 0]);
            call(CLOSE, [fd, 0, 0, 0, 0, 0]);
        }
    }
}

/// Whether [`die`] was called.
static IS_DYING: AtomicU64 = AtomicU64::new(0);

/// Says why and ends the process.
pub(crate) fn die(line: &[u8]) -> ! {
    say(line);
    end()
}

/// Ends the calling process if [`die`] was called by one with the same memory.
pub(crate) fn end_if_dying() {
    if IS_DYING.load(Relaxed) != 0 {
        end();
    }
}

fn end() -> ! {
    IS_DYING.store(1, Relaxed);
    loop {
        // SAFETY: has no requirements.
        unsafe { call(EXIT_GROUP, [127, 0, 0, 0, 0, 0]) };
    }
}
