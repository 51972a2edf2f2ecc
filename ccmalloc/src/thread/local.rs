//! The thread's state, where the linker puts it: plain thread-local storage.

use crate::arena::Arena;
use crate::thread::Thread;

thread_local! {
    // Constant and without a destructor: such a variable is plain thread-local storage, which needs
    // no allocation, no registration, and can be used until the very end of the thread.
    static THREAD: Thread = const { Thread::new() };
}

/// Calls `f` with the calling thread's state.
#[inline(always)]
pub(crate) fn with_thread<R>(f: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(f)
}

/// The arena that the calling thread's fast paths use: `Thread::fast`.
#[inline(always)]
pub(crate) fn fast_arena() -> *const Arena {
    // A pointer leaves the closure: a reference would be tested for null outside, as the sign of a
    // variable that is gone.
    THREAD.with(|thread| thread.fast.get())
}
