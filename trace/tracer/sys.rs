//! The kernel's interface, and memory of our own. Once a thread's system calls are dispatched to
//! us, ours have to come from the [gate](super::gate).

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::folder::Path;

pub(crate) use inside::sys::{
    AF_UNIX, MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED,
    PROT_EXEC, PROT_NONE, PROT_READ, PROT_WRITE, UnixAddress, failed, lengthen, limit_of, map,
    set_gate, system_call as call, with_files_of,
};

pub(crate) use super::numbers::{
    BRK, CLONE, CLONE3, CLOSE, CONNECT, EXECVE, EXECVEAT, EXIT, EXIT_GROUP, FALLOCATE, FORK, FUTEX,
    GET_ROBUST_LIST, GETPID, GETTID, LSEEK, MADVISE, MEMBARRIER, MEMFD_CREATE, MMAP, MPROTECT,
    MREMAP, MUNMAP, OPEN, PKEY_MPROTECT, PRCTL, PWRITE64 as PWRITE, READ, RSEQ, RT_SIGACTION,
    RT_SIGPROCMASK, RT_SIGRETURN, RT_TGSIGQUEUEINFO, SCHED_YIELD, SIGALTSTACK, SOCKET, STAT,
    TGKILL, VFORK, WRITE, WRITEV,
};

pub(crate) const PAGE: u64 = 4096;

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

/// Number of the process, by [`begin_process`].
static PROCESS: AtomicU64 = AtomicU64::new(0);

/// A process begins.
pub(crate) fn begin_process() {
    PROCESS.store(process(), Relaxed);
}

/// False in a child of `vfork`, which has its parent's memory.
pub(crate) fn is_own_process() -> bool {
    PROCESS.load(Relaxed) == process()
}

/// Moves a descriptor to a number that programs do not choose.
pub(crate) fn high(fd: u64) -> i64 {
    const FCNTL: u64 = 72;
    const DUPLICATE_FROM: u64 = 1030;
    for from in [700, 200, 50, fd + 1, 3] {
        // SAFETY: the descriptor is ours.
        unsafe {
            let moved = call(FCNTL, [fd, DUPLICATE_FROM, from, 0, 0, 0]);
            if !failed(moved) {
                call(CLOSE, [fd, 0, 0, 0, 0, 0]);
                return moved;
            }
        }
    }
    fd.cast_signed()
}

unsafe extern "C" {
    /// Set by the linker: where this library begins, and where its code ends.
    static __ehdr_start: u8;
    static etext: u8;
}

/// Whether code is of this library.
pub(crate) fn is_own(ip: u64) -> bool {
    (&raw const __ehdr_start as u64..&raw const etext as u64).contains(&ip)
}

/// Has the tool say one line when the program is done: what descriptor 2 is, the program knows.
pub(crate) fn say(line: &[u8]) {
    const CREATE_TO_APPEND: u64 = 0o100 | 0o2000 | 1;
    let mut path = Path::in_folder();
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
