//! Who is within the functions that are taken over, so that a recording can end while threads run.
//!
//! Only a library that has come late, by `ccscope attach`, counts them. A thread counts itself in,
//! and then looks whether the process is recorded. Who ends a recording says so first, and then
//! waits until nobody is in: of the two, at least one sees the other.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::local::Local;
use super::{recording, sys};

/// Whether the library came into the process while that ran.
static LATE: AtomicBool = AtomicBool::new(false);

const LINES: usize = 256;

/// In a cache line of its own.
#[repr(align(64))]
struct Line(AtomicU64);

static SEATS: [Line; LINES] = [const { Line(AtomicU64::new(0)) }; LINES];

#[inline(always)]
pub(crate) fn is_late() -> bool {
    LATE.load(Ordering::Relaxed)
}

/// Before the first recording of a library that came late.
pub(crate) fn come_late() {
    LATE.store(true, Ordering::Relaxed);
}

fn of(local: *const Local) -> &'static AtomicU64 {
    let page = local.addr() >> 12;
    &SEATS[(page ^ page >> 8) % LINES].0
}

/// Whether the process is recorded, and stays so until [`give`].
#[inline(always)]
pub(crate) fn take(local: *const Local) -> bool {
    recording::active() && (!is_late() || take_late(local))
}

fn take_late(local: *const Local) -> bool {
    of(local).fetch_add(1, Ordering::SeqCst);
    let is_recorded = recording::is_recorded();
    if !is_recorded {
        give(local);
    }
    is_recorded
}

/// The thread has done what it had a seat for.
#[inline(always)]
pub(crate) fn give(local: *const Local) {
    if is_late() {
        of(local).fetch_sub(1, Ordering::Release);
    }
}

/// Waits until no thread has a seat; false if one keeps it for long. Nobody takes one any more.
pub(crate) fn wait_for_all() -> bool {
    const TURNS: u32 = 20_000;
    SEATS.iter().all(|Line(seat)| {
        let is_free = |_: &u32| {
            let is_free = seat.load(Ordering::Acquire) == 0;
            if !is_free {
                // SAFETY: it takes no arguments.
                unsafe { sys::sched_yield() };
            }
            is_free
        };
        (0..TURNS).find(is_free).is_some()
    })
}

/// For a child of `fork`, which has one thread.
pub(crate) fn forget() {
    SEATS
        .iter()
        .for_each(|Line(seat)| seat.store(0, Ordering::Relaxed));
}
