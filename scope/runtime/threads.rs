//! How threads begin: each gets a number, a shard of histograms, and the bounds of its stack.
//!
//! They begin in a function of ours, which asks libc for the bounds before any code of the program
//! runs in the thread: libc holds a lock of the thread while it answers, and allocates under it, so
//! that `malloc` cannot ask.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::capture::{self, BASE, LOCK, header};
use super::local::{Local, local};
use super::recording::SEVERAL_THREADS;
use super::{recording, sys, windows};
use crate::capture_format::{NO_THREAD, NON_OWNER, layout};

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

/// For a child of `fork`, in which no thread is about to begin and none has a shard.
pub(crate) fn forget() {
    TAKEN.store(0, Ordering::Relaxed);
    forget_shards();
}

/// For a new recording: no thread has a shard of its capture.
pub(crate) fn forget_shards() {
    SHARDS.store(1, Ordering::Relaxed);
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

/// Key of the destructor that ends threads.
pub(crate) static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Gives the calling thread a number.
///
/// # Safety
///
/// `local` is the calling thread's, marked as busy, and the capture is mapped.
pub(crate) unsafe fn give_number(local: *mut Local) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        if (*local).epoch != 0 {
            forget_recording(local);
        }
        (*local).epoch = recording::epoch();
        let threads = AtomicU64::from_ptr(&raw mut (*header()).threads);
        let id = threads.fetch_add(1, Ordering::Relaxed) + 1;
        if id > 1 {
            // Libc may have started this thread by itself.
            SEVERAL_THREADS.store(true, Ordering::Relaxed);
            LOCK.share();
        }
        // Threads beyond the table share its last entry.
        let id = id.min(layout::MAX_THREADS - 2);
        (*local).thread = id as u16;
        // That of a parent process.
        (*local).shard = 0;
        if id < layout::MAX_THREADS - 2 {
            take_lane(local);
        }
        let events = AtomicU64::from_ptr(&raw mut (*header()).events).load(Ordering::Relaxed);
        (*local).synced = events;
        (*local).now = events;
        (*local).limit = events;
        (*local).gap = 0;
        if id > 1 {
            windows::wait(local);
        }
        let entry = capture::thread(id as u16);
        (*entry).id = id;
        (*entry).started = events + 1;
        let key = KEY.load(Ordering::Relaxed);
        if key != u32::MAX {
            sys::pthread_setspecific(key, local.cast::<c_void>());
        }
    }
}

/// Forgets what the thread had of a recording that has ended, or is its parent process's.
///
/// # Safety
///
/// `local` is the calling thread's.
pub(crate) unsafe fn forget_recording(local: *mut Local) {
    // SAFETY: `local` is the calling thread's (`# Safety`), so nobody else uses the block.
    unsafe {
        (*local).window = core::ptr::null_mut();
        (*local).stacks = core::ptr::null_mut();
        ((*local).thread, (*local).mark) = (0, 0);
        (*local).epoch = 0;
        (*local).pausing = 0;
        (*local).now = 0;
        (*local).limit = 0;
        (*local).synced = 0;
        (*local).other = [0; 2];
        (*local).last_allocated = 0;
    }
}

/// Gives the thread a number if it has none.
///
/// # Safety
///
/// `local` is the calling thread's, not marked as busy, and the capture is mapped.
pub(crate) unsafe fn ensure_number(local: *mut Local) {
    // SAFETY: the block is this thread's and the capture is mapped (`# Safety`). While
    // `give_number` runs, the block is marked as busy.
    unsafe {
        if (*local).thread == 0 {
            (*local).busy = true;
            give_number(local);
            (*local).busy = false;
        }
    }
}

/// Shards of threads that run. Of the first, nobody has more than others.
static SHARDS: AtomicU64 = AtomicU64::new(1);

/// Gives the thread a shard if there is one left.
///
/// # Safety
///
/// As for [`give_number`].
unsafe fn take_lane(local: *mut Local) {
    // What a thread before has counted there was counted before this one counts.
    let taken = SHARDS.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
        taken.checked_add(1).map(|next| taken | next)
    });
    let shard = taken.map_or(0, u64::trailing_ones);
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        AtomicU64::from_ptr(&raw mut (*header()).shards).fetch_or(1 << shard, Ordering::Relaxed);
        if shard > 0 {
            (*local).shard = BASE + layout::HISTS + u64::from(shard) * layout::SHARD;
            (*local).mark = (*local).thread;
        }
    }
}

/// Gives the thread's shard to the next that begins; this thread counts as one that owns no chunk
/// from now on.
///
/// # Safety
///
/// As for [`give_number`].
pub(crate) unsafe fn give_lane(local: *mut Local) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    let shard = unsafe {
        AtomicU64::from_ptr(&raw mut (*header()).shards).fetch_or(1, Ordering::Relaxed);
        (*local).mark = 0;
        core::mem::take(&mut (*local).shard)
    };
    if shard != 0 {
        let shard = (shard - BASE - layout::HISTS) / layout::SHARD;
        SHARDS.fetch_and(!(1 << shard), Ordering::Release);
    }
}

const _: () = assert!(layout::MAX_THREADS - 2 < (NO_THREAD & !NON_OWNER) as u64);
