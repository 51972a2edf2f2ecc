//! Whether this process is recorded, and what of it: what all other modules ask.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use super::sys;
use crate::capture_format::Options;

/// 0 before the first call, 1 while it is decided, 2 without the tool, 3 recording.
///
/// In a page of its own, which the kernel clears in a child of `fork`: whatever the child calls
/// first, be it a handler of `fork` before ours, begins a capture instead of writing into that of
/// its parent.
pub(crate) static STATE: Page = Page(AtomicU8::new(0));
static OPTIONS: Chosen = Chosen(UnsafeCell::new(Options::DEFAULT));
/// Without the tool: whether the table of pages could not be mapped.
pub(crate) static NO_TABLE: AtomicBool = AtomicBool::new(false);
/// Which recording of the process this is: after `ccscope detach` there may be another.
pub(crate) static EPOCH: AtomicU32 = AtomicU32::new(1);
/// Whether a second thread has been started: counts that are nobody's own are then atomic.
pub(crate) static SEVERAL_THREADS: AtomicBool = AtomicBool::new(false);

#[repr(align(4096))]
pub(crate) struct Page(pub(crate) AtomicU8);

struct Chosen(UnsafeCell<Options>);

// SAFETY: written by the first thread, before `STATE` says that anything is recorded.
unsafe impl Sync for Chosen {}

// `start`, which stands above all that is asked here, defines it.
unsafe extern "C" {
    /// Decides whether this process is recorded, and begins.
    #[cold]
    safe fn ccscope_begin() -> bool;
}

/// Whether this process is recorded. The first call begins.
#[inline(always)]
pub(crate) fn active() -> bool {
    match STATE.0.load(Ordering::Acquire) {
        3 => true,
        2 | 1 => false,
        _ => ccscope_begin(),
    }
}

/// The same, for who has begun, and in one order with who ends it.
pub(crate) fn is_recorded() -> bool {
    STATE.0.load(Ordering::SeqCst) == 3
}

/// Which recording this is.
#[inline(always)]
pub(crate) fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// What is recorded.
#[inline(always)]
pub(crate) fn options() -> &'static Options {
    // SAFETY: written by the first thread before `STATE` says that anything is recorded, in a
    // child of `fork`, which has one thread, and by `attach`, before which all threads have left
    // what the last recording was: never while another reads it.
    unsafe { &*OPTIONS.0.get() }
}

/// Where [`options`] are chosen, before anything is recorded.
pub(crate) fn options_mut() -> *mut Options {
    OPTIONS.0.get()
}

/// Whether a second thread has been started.
#[inline(always)]
pub(crate) fn several_threads() -> bool {
    SEVERAL_THREADS.load(Ordering::Relaxed)
}

/// Ends the process if accesses cannot be looked up. Only an instrumented program makes them: any
/// other runs on without the table.
pub(crate) fn require_table() {
    if NO_TABLE.load(Ordering::Relaxed) {
        sys::die(b"this instrumented program needs 128 GiB of address space (see `ulimit -v`)");
    }
}
