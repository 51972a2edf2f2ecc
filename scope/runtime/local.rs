//! What each thread has of its own.
//!
//! Stable Rust has thread-local variables only in `std`, and those of a shared library cost a call.
//! So the block is defined in assembly and found by the initial-exec model: two loads. That is
//! allowed because the library is loaded when the process starts.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::stack_cache::StackCache;
use super::track::State;
use crate::capture_format::Window;

/// Zeroed when the thread begins.
#[repr(C)]
pub(crate) struct Local {
    /// The thread's time.
    pub(crate) now: u64,
    /// An access beyond this time calls `slow_path::pause`.
    pub(crate) limit: u64,
    /// Address of the histograms that this thread alone counts in; 0 if it has no mark.
    pub(crate) shard: u64,
    /// Time when the thread last added its events to the capture's.
    pub(crate) synced: u64,
    /// Its number, from 1 on; 0 before its first event.
    pub(crate) thread: u16,
    /// The same while it has a shard, else 0. It is the
    /// [`last_accessor`](crate::capture_format::Chunk) of chunks that this thread has allocated and
    /// was the last to access: nobody else adds to the counts in their entries, so that it needs no
    /// atomic operations for that.
    pub(crate) mark: u16,
    /// Set while the runtime works, so that its own calls are passed on unseen.
    pub(crate) busy: bool,
    /// Set while `dlsym` looks for `calloc`, which it calls itself.
    pub(crate) resolving: bool,
    /// Where on the stack `windows::pause` works: what a signal handler accesses meanwhile is only
    /// counted. 0 while it does not.
    pub(crate) pausing: u64,
    /// How often the thread's destructor was called.
    pub(crate) endings: u8,
    /// Accesses outside the heap, not yet added to the capture: reads, then writes.
    pub(crate) other: [u64; 2],
    /// Time at which this thread allocated last, and where.
    pub(crate) last_allocated: u64,
    pub(crate) last_site: u32,
    /// The window under way, or null.
    pub(crate) window: *mut Window,
    /// Accesses until the next window, after the limit.
    pub(crate) gap: u64,
    pub(crate) random: u64,
    /// Bytes until the next point at which a chunk may be [recorded](super::sampling).
    pub(crate) until_point: i64,
    /// Its call stacks so far, or null before the first.
    pub(crate) stacks: *mut StackCache,
    /// Its open regions, or null before the first access; and whether there are none any more.
    pub(crate) track: *mut State,
    pub(crate) trackless: bool,
    /// Where the thread's stack is, from its address to its end; zeros if it is not known. Written
    /// once, before the thread runs code of the program.
    pub(crate) stack: [u64; 2],
    /// The [recording](super::recording::EPOCH) that `thread` is a number of; 0 before the first.
    pub(crate) epoch: u32,
}

// With `LD_AUDIT`, or many libraries with variables of threads, the dynamic linker has little room
// left for such variables of a library that is preloaded.
const _: () = assert!(size_of::<Local>() <= 256);

// Each thread's block, for this library alone.
#[cfg(not(in_program))]
core::arch::global_asm!(
    ".pushsection .tbss.ccscope_local,\"awT\",@nobits",
    ".p2align 6",
    ".type ccscope_local,@object",
    ".globl ccscope_local",
    ".hidden ccscope_local",
    "ccscope_local:",
    ".zero {size}",
    ".size ccscope_local, {size}",
    ".popsection",
    size = const size_of::<Local>(),
);

/// Where a thread's block is, from the thread's pointer on: for the fast path in programs, whose
/// compilers do not export variables of threads. Its name holds a hash of what the fast path and
/// the library must agree on (see `build.rs`): other versions do not come together.
#[cfg(not(in_program))]
#[cfg_attr(
    not(test),
    unsafe(export_name = concat!("ccscope_offset_", env!("CCSCOPE_FAST_PATH")))
)]
static OFFSET: AtomicU64 = AtomicU64::new(0);

/// Before anything else of this library, and so before programs, whose constructors run later.
#[cfg(not(in_program))]
pub(crate) fn publish() {
    let thread: u64;
    // SAFETY: the word at fs:0 is the thread pointer itself.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            out(reg) thread,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    let offset = (local() as u64).wrapping_sub(thread);
    OFFSET.store(offset, Relaxed);
}

/// From the calling thread's block to its thread pointer. The program's thread-local variables are
/// between: the dynamic linker puts the library's, which it loads later, below them.
#[cfg(not(in_program))]
pub(crate) fn variables() -> (u64, u64) {
    let start = local() as u64;
    (start, start.wrapping_sub(OFFSET.load(Relaxed)))
}

/// The calling thread's. Valid until the thread ends.
#[cfg(not(in_program))]
#[inline(always)]
pub(crate) fn local() -> *mut Local {
    let address: *mut Local;
    // SAFETY: the thread pointer at fs:0 plus the offset that the dynamic linker has put into the
    // table of offsets is the address of the block. Nothing is written.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + ccscope_local@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) address,
            options(pure, readonly, nostack),
        );
    }
    address
}

/// The same in a program, by the offset that the library has published.
#[cfg(in_program)]
#[inline(always)]
pub(crate) fn local() -> *mut Local {
    let address: *mut Local;
    // SAFETY: the variable holds what the thread pointer differs by from the block, as the library
    // has published it, once; `fs:0` is the thread pointer. Nothing is written.
    unsafe {
        core::arch::asm!(
            concat!(
                "mov {0}, qword ptr [rip + ccscope_offset_",
                env!("CCSCOPE_FAST_PATH"),
                "@GOTPCREL]"
            ),
            "mov {0}, qword ptr [{0}]",
            "add {0}, qword ptr fs:[0]",
            out(reg) address,
            options(pure, readonly, nostack),
        );
    }
    address
}
