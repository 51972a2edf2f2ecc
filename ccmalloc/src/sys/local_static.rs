//! The thread's state in static thread-local storage (the ELF model *initial-exec*), for shared libraries on x86-64 Linux.
//!
//! In a shared library, `thread_local!` becomes a call of `__tls_get_addr` (the model *general-dynamic*). Under a malloc that is costly (eleven
//! instructions a call, in each `malloc` and each `free`), and unsafe: after a `dlopen`, that function may have to enlarge the thread's table of
//! modules, for which it calls `malloc`, which would call it again (glibc 2.39 and later do so on the first access of whatever module;
//! <https://sourceware.org/bugzilla/show_bug.cgi?id=31717>). Initial-exec is an offset from the thread pointer, read from a table: it never
//! calls anything. In exchange, the library's thread-local block must fit the room that the C library keeps for libraries loaded after
//! start: glibc keeps 512 bytes and more, and the whole of `libccmalloc.so` has about a hundred.
//!
//! Stable Rust cannot choose the model of a `thread_local!`, hence a variable defined in assembly. In an executable the linker turns the access
//! into the plain one, at the cost of two instructions; so this is a feature, which `ccmalloc/capi` switches on.

use core::arch::{asm, global_asm};

use crate::heap::NO_HEAP;
use crate::thread::Thread;

// As `Thread::new()`: its first field is the address of NO_HEAP, and zero is what the others start with (the tests of `thread` compare).
global_asm!(
    ".pushsection .tdata.ccmalloc_thread,\"awT\",@progbits",
    ".hidden ccmalloc_thread_0_1",
    ".globl ccmalloc_thread_0_1",
    ".type ccmalloc_thread_0_1, @object",
    ".size ccmalloc_thread_0_1, {bytes}",
    ".p2align 3",
    "ccmalloc_thread_0_1:",
    ".quad {no_heap}",
    ".zero {bytes} - 8",
    ".popsection",
    bytes = const size_of::<Thread>(),
    no_heap = sym NO_HEAP,
);

const _: () = assert!(align_of::<Thread>() <= 8);
// The state at the start must be a constant.
const _: Thread = Thread::new();

/// Calls `f` with the calling thread's state.
#[inline(always)]
pub(crate) fn with_thread<R>(f: impl FnOnce(&Thread) -> R) -> R {
    let thread: *const Thread;
    // SAFETY: reads the thread pointer and a constant of the link; touches no other memory and no stack. The same value all through a
    // function, since no function changes threads.
    unsafe {
        asm!(
            "mov {thread}, qword ptr fs:0",
            "add {thread}, qword ptr [rip + ccmalloc_thread_0_1@GOTTPOFF]",
            thread = out(reg) thread,
            options(pure, nomem, nostack),
        );
    }
    // SAFETY: the calling thread's copy of the variable above, which is a valid `Thread` from the thread's start to its very end, and which only
    // this thread reaches: `Thread` is not `Sync`, and `f` can keep no reference to it.
    f(unsafe { &*thread })
}
