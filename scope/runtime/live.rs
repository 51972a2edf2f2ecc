//! `ccscope attach`: recording that begins and ends while the process runs.
//!
//! The tool has one thread of the process load this library and call the two functions here, at a
//! moment when that thread could call any function of libc.

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

use super::capture::header;
use super::local::local;
use super::recording::STATE;
use super::{hooks, recording, redirect, seats, start, sys};
use crate::capture_format::live;

/// What is done under the dynamic linker's lock.
static WORK: AtomicU64 = AtomicU64::new(0);
const ATTACH: u64 = 1;
const DETACH: u64 = 2;
static OPTIONS: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
static RESULT: AtomicI64 = AtomicI64::new(0);

const NAME: &CStr = c"ccscope_locked";

/// Begins a recording with these options, a text as in the environment. Returns the descriptor of
/// the capture, which the tool closes, or one of [`live`].
///
/// # Safety
///
/// `options` ends with 0. The calling thread may call any function of libc.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_attach(options: *const c_char) -> i64 {
    OPTIONS.store(options.cast_mut(), Ordering::Relaxed);
    // SAFETY: what it asks for is asked of callers (`# Safety`).
    unsafe { under_lock(ATTACH) }
}

/// Ends the recording. Returns 0, or one of [`live`].
///
/// # Safety
///
/// The calling thread may call any function of libc.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_detach() -> i64 {
    // SAFETY: what it asks for is asked of callers (`# Safety`).
    unsafe { under_lock(DETACH) }
}

/// # Safety
///
/// The calling thread may call any function of libc.
unsafe fn under_lock(work: u64) -> i64 {
    let local = local();
    WORK.store(work, Ordering::Relaxed);
    RESULT.store(live::NO_LOCK, Ordering::Relaxed);
    // SAFETY: the block is this thread's; the name ends with 0.
    unsafe {
        let busy = core::mem::replace(&mut (*local).busy, true);
        let function = ccscope_locked as *const c_void;
        if redirect::make_indirect(function, NAME) {
            sys::dlsym(core::ptr::null_mut(), NAME.as_ptr());
        }
        (*local).busy = busy;
    }
    WORK.store(0, Ordering::Relaxed);
    RESULT.load(Ordering::Relaxed)
}

/// `dlsym` calls this with the dynamic linker's lock held, once [`redirect::make_indirect`] has
/// made it look like a function that is asked for an address: no library is loaded meanwhile.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ccscope_locked() -> *const c_void {
    let result = match WORK.load(Ordering::Relaxed) {
        // SAFETY: the lock is held, and the options are those that the tool has passed.
        ATTACH => unsafe { attach(OPTIONS.load(Ordering::Relaxed)) },
        // SAFETY: the lock is held.
        DETACH => unsafe { detach() },
        _ => live::NO_LOCK,
    };
    RESULT.store(result, Ordering::Relaxed);
    ccscope_locked as *const c_void
}

/// # Safety
///
/// The dynamic linker's lock is held. `options` ends with 0.
unsafe fn attach(options: *const c_char) -> i64 {
    recording::active();
    if !seats::is_late() {
        if redirect::are_ours_first() {
            return live::NOT_LATE;
        }
        seats::come_late();
        redirect::find_real();
    }
    if hooks::real_malloc::get().is_none() || hooks::real_free::get().is_none() {
        return live::NO_ALLOCATOR;
    }
    let idle = STATE
        .0
        .compare_exchange(2, 1, Ordering::AcqRel, Ordering::Acquire);
    if idle.is_err() {
        return live::ALREADY;
    }
    // SAFETY: nothing is recorded, and the lock is held (`# Safety`).
    let result = unsafe {
        let begun = start::begin_late(options);
        if begun >= 0 {
            redirect::begin();
        }
        begun
    };
    let state = if result >= 0 { 3 } else { 2 };
    STATE.0.store(state, Ordering::SeqCst);
    result
}

/// # Safety
///
/// The dynamic linker's lock is held.
unsafe fn detach() -> i64 {
    let recorded = STATE
        .0
        .compare_exchange(3, 1, Ordering::SeqCst, Ordering::Acquire);
    if !seats::is_late() || recorded.is_err() {
        return live::NOT_ATTACHED;
    }
    // SAFETY: the lock is held (`# Safety`), and `attach` has found the real functions.
    unsafe { redirect::end() };
    if !seats::wait_for_all() {
        // The state stays as it is: no other capture takes the place of this one.
        return live::OCCUPIED;
    }
    start::end_late();
    STATE.0.store(2, Ordering::SeqCst);
    0
}

/// Asks the tool for a snapshot, for the program; whether there is a recording.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ccscope_snapshot() -> bool {
    let local = local();
    let is_recorded = seats::take(local);
    if is_recorded {
        // SAFETY: the thread has a seat, so the capture is mapped.
        let asked = unsafe { AtomicU64::from_ptr(&raw mut (*header()).asked) };
        asked.fetch_add(1, Ordering::Release);
        seats::give(local);
    }
    is_recorded
}
