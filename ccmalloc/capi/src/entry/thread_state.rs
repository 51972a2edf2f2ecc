//! What rules and the learner keep for each thread, in static thread-local storage: a `malloc` must
//! not call the dynamic linker (see `ccmalloc/src/thread/local_static.rs`).

use core::arch::global_asm;
use core::cell::Cell;

/// How many rules of a file may name the latest object of their site.
pub(crate) const LASTS: usize = 8;

/// A thread's state. `repr(C)`, and zero at first.
#[repr(C)]
pub(crate) struct ThreadState {
    /// Calls that are to pass before one is learned from, less one. Negative ones count on, if
    /// `learn` is busy.
    pub(crate) countdown: Cell<i32>,
    /// What the countdown was set to.
    pub(crate) granted: Cell<i32>,
    /// Calls up to then.
    pub(crate) calls: Cell<u64>,
    /// The same when a call was last sampled, and when the next is to be.
    pub(crate) sampled: Cell<u64>,
    pub(crate) next: Cell<u64>,
    /// The latest object of each rule that asks for it, or 0.
    pub(crate) lasts: [Cell<usize>; LASTS],
}

global_asm!(
    ".pushsection .tbss.ccmalloc_rules,\"awT\",@nobits",
    ".hidden ccmalloc_rules_thread",
    ".globl ccmalloc_rules_thread",
    ".type ccmalloc_rules_thread, @object",
    ".size ccmalloc_rules_thread, {bytes}",
    ".p2align 3",
    "ccmalloc_rules_thread:",
    ".zero {bytes}",
    ".popsection",
    bytes = const size_of::<ThreadState>(),
);

const _: () = assert!(align_of::<ThreadState>() <= 8);

/// The calling thread's state.
#[inline]
pub(crate) fn thread_state<'a>() -> &'a ThreadState {
    let state: *const ThreadState;
    // SAFETY: reads the thread pointer and a constant of the link, neither of which changes while
    // the thread runs; touches no other memory, and no stack.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "mov {state}, qword ptr fs:0",
            "add {state}, qword ptr [rip + ccmalloc_rules_thread@GOTTPOFF]",
            state = out(reg) state,
            options(pure, nomem, nostack),
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "mrs {offset}, tpidr_el0",
            "adrp {state}, :gottprel:ccmalloc_rules_thread",
            "ldr {state}, [{state}, :gottprel_lo12:ccmalloc_rules_thread]",
            "add {state}, {state}, {offset}",
            state = out(reg) state,
            offset = out(reg) _,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    // SAFETY: the calling thread's copy of the variable above: zero bytes are a valid state. Only
    // this thread, its signal handlers included, reaches it, through cells, and no caller keeps the
    // reference beyond a call from its thread.
    unsafe { &*state }
}
