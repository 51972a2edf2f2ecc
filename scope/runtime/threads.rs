//! Threads begin in a function of ours, which notes where their stack is.
//!
//! Libc holds a lock of the thread while it looks that up, and allocates under it. So it is asked
//! before any code of the program runs in the thread, and not within `malloc`.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::local::local;
use super::sys;

type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// What a thread is to run that has not begun yet.
pub(crate) struct Start {
    function: AtomicPtr<c_void>,
    argument: AtomicPtr<c_void>,
}

const MAX_STARTS: usize = 64;
static STARTS: [Start; MAX_STARTS] = [const {
    Start {
        function: AtomicPtr::new(core::ptr::null_mut()),
        argument: AtomicPtr::new(core::ptr::null_mut()),
    }
}; MAX_STARTS];
/// A bit for each of them that is in use. Who sets it owns it until `begin` or [`take_back`].
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// What to start a thread with instead of `function` and `argument`, which are that of
/// `pthread_create`; `None` if too many threads are about to begin.
pub(crate) fn prepare(
    function: *const c_void,
    argument: *mut c_void,
) -> Option<(Function, *mut c_void)> {
    let taken = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
        taken.checked_add(1).map(|next| taken | next)
    });
    let start = STARTS.get(taken.ok()?.trailing_ones() as usize)?;
    start.function.store(function.cast_mut(), Ordering::Relaxed);
    start.argument.store(argument, Ordering::Relaxed);
    Some((begin, (&raw const *start).cast_mut().cast()))
}

/// No thread begins with `prepared`, which is the second of what [`prepare`] gave.
pub(crate) fn take_back(prepared: *mut c_void) {
    let index = (prepared.addr() - STARTS.as_ptr().addr()) / size_of::<Start>();
    TAKEN.fetch_and(!(1 << index), Ordering::Release);
}

/// For a child of `fork`, in which no thread is about to begin.
pub(crate) fn forget() {
    TAKEN.store(0, Ordering::Relaxed);
}

/// The function that threads begin in.
///
/// # Safety
///
/// `prepared` is what [`prepare`] gave for this thread; its function may be called with its
/// argument.
unsafe extern "C" fn begin(prepared: *mut c_void) -> *mut c_void {
    // SAFETY: `prepared` is one of `STARTS`, which is a static, and this thread's until it is given
    // back below. `pthread_create` orders what was stored before what runs here.
    let (function, argument) = unsafe {
        let start = &*prepared.cast::<Start>();
        (
            start.function.load(Ordering::Relaxed),
            start.argument.load(Ordering::Relaxed),
        )
    };
    take_back(prepared);
    let local = local();
    // SAFETY: the block is this thread's, and no signal handler has it meanwhile as `busy` is set.
    unsafe {
        let busy = core::mem::replace(&mut (*local).busy, true);
        (*local).stack = sys::thread_stack();
        (*local).busy = busy;
    }
    #[expect(clippy::disallowed_methods, reason = "it was passed without its type")]
    // SAFETY: the program has passed it to `pthread_create`, so it is a function of this type that
    // may be called with the argument.
    unsafe {
        core::mem::transmute::<*mut c_void, Function>(function)(argument)
    }
}
