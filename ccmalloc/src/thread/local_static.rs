//! The thread's state in static thread-local storage (the ELF model *initial-exec*), on x86-64
//! Linux with glibc.
//!
//! A `thread_local!` of a library becomes a call of `__tls_get_addr` (the model *general-dynamic*).
//! In an executable the linker removes the call, but not the saving of registers around it: a third
//! of the instructions of an allocation. In a shared library the call stays, eleven instructions in
//! each `malloc` and `free`, and it is unsafe there: after a `dlopen`, it may call `malloc`, which
//! would call it again (<https://sourceware.org/bugzilla/show_bug.cgi?id=31717>). Initial-exec is
//! an offset from the thread pointer, read from a table: it never calls anything. In exchange, a
//! shared library's thread-local block must fit the room that the C library keeps: glibc has at
//! least 512 bytes, and `libccmalloc.so` takes about a hundred.
//!
//! Stable Rust cannot choose the model of a `thread_local!`, hence a variable defined in assembly.

use core::arch::{asm, global_asm};

use crate::arena::{ALONE, Alone, Arena};
use crate::thread::Thread;

// As `Thread::new()`: its first field is the address of NO_ARENA, and zero is what the others start
// with (the tests of `thread` compare).
global_asm!(
    ".pushsection .tdata.ccmalloc_thread,\"awT\",@progbits",
    ".hidden ccmalloc_thread_0_1",
    ".globl ccmalloc_thread_0_1",
    ".type ccmalloc_thread_0_1, @object",
    ".size ccmalloc_thread_0_1, {bytes}",
    ".p2align 3",
    "ccmalloc_thread_0_1:",
    ".quad {alone} + {alone_at}",
    ".zero {bytes} - 8",
    ".popsection",
    bytes = const size_of::<Thread>(),
    alone = sym ALONE,
    alone_at = const core::mem::offset_of!(Alone, arena),
);

const _: () = assert!(align_of::<Thread>() <= 8);
// The state at the start must be a constant.
const _: Thread = Thread::new();

/// Calls `f` with the calling thread's state.
#[inline(always)]
pub(crate) fn with_thread<R>(f: impl FnOnce(&Thread) -> R) -> R {
    let thread: *const Thread;
    // SAFETY: reads the thread pointer and a constant of the link; touches no other memory and no
    // stack. The same value all through a function, since no function changes threads.
    unsafe {
        asm!(
            "mov {thread}, qword ptr fs:0",
            "add {thread}, qword ptr [rip + ccmalloc_thread_0_1@GOTTPOFF]",
            thread = out(reg) thread,
            options(pure, nomem, nostack),
        );
    }
    // SAFETY: the calling thread's copy of the variable above, which is a valid `Thread` from the
    // thread's start to its very end, and which only this thread reaches: `Thread` is not `Sync`,
    // and `f` can keep no reference to it.
    f(unsafe { &*thread })
}

/// The arena that the calling thread's fast paths use: `Thread::fast`.
#[inline(always)]
pub(crate) fn fast_arena() -> *const Arena {
    let arena: *const Arena;
    // SAFETY: reads the first field of the calling thread's copy of the variable above, which is
    // `fast` (`Thread` is `repr(C)`), and a constant of the link; writes nothing, and touches no
    // stack and no flags.
    unsafe {
        asm!(
            "mov {arena}, qword ptr [rip + ccmalloc_thread_0_1@GOTTPOFF]",
            "mov {arena}, qword ptr fs:[{arena}]",
            arena = out(reg) arena,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    arena
}
