//! Which chunks are recorded if not all are, for programs that are never stopped: each thread's
//! place among the [points](crate::capture_format::sampling).
//!
//! Other chunks cost a subtraction when they are allocated, and when they are freed a look into a
//! small table of counts by addresses.

use core::sync::atomic::{AtomicU64, Ordering};

use super::local::Local;
use super::{recording, sys};
use crate::capture_format::sampling::{self, Alive};

static ALIVE: Alive = Alive::none();

/// When the thread has allocated a chunk last that is not recorded.
const NEVER: u64 = u64::MAX;

/// [`Options::sample`](crate::capture_format::Options::sample), also for threads that are not, or
/// no longer, recorded.
static SAMPLE: AtomicU64 = AtomicU64::new(0);

/// Whether some chunks are not recorded.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    SAMPLE.load(Ordering::Relaxed) != 0
}

/// Whether no point lies in a new chunk that is small enough for chance. If not, ask [`takes`].
///
/// # Safety
///
/// `local` is the calling thread's.
#[inline(always)]
pub(crate) unsafe fn passes(local: *mut Local, size: usize) -> bool {
    let sample = SAMPLE.load(Ordering::Relaxed);
    let size = (size as u64).max(1);
    if size >= sample {
        return false;
    }
    // SAFETY: the block is this thread's (`# Safety`).
    unsafe {
        (*local).until_point -= size.cast_signed();
        (*local).last_allocated = NEVER;
        (*local).until_point > 0
    }
}

/// Whether a chunk is recorded that has not [passed](passes).
///
/// # Safety
///
/// As for [`passes`].
#[inline(always)]
pub(crate) unsafe fn takes(local: *mut Local, size: usize) -> bool {
    let sample = SAMPLE.load(Ordering::Relaxed);
    let size = (size as u64).max(1);
    // SAFETY: the block is this thread's (`# Safety`).
    size >= sample || unsafe { is_taken(local, size, sample) }
}

/// Whether a chunk that a point lies in is recorded.
///
/// # Safety
///
/// As for [`passes`].
#[cold]
#[inline(never)]
unsafe fn is_taken(local: *mut Local, size: u64, sample: u64) -> bool {
    let seed = move || sys::clocks().1 ^ (local as u64) << 20;
    // SAFETY: the block is this thread's (`# Safety`).
    let (until_point, random) = unsafe { (&mut (*local).until_point, &mut (*local).random) };
    sampling::is_taken([size, sample], until_point, random, seed)
}

/// Whether a chunk may be one that was recorded and is alive.
#[inline(always)]
pub(crate) fn may_have(address: u64) -> bool {
    ALIVE.may_have(address)
}

/// A chunk was recorded.
pub(crate) fn add(address: u64) {
    ALIVE.add(address);
}

/// A chunk that was recorded is freed.
#[inline(always)]
pub(crate) fn remove(address: u64) {
    if is_on() {
        ALIVE.remove(address);
    }
}

/// For a new capture.
pub(crate) fn begin() {
    SAMPLE.store(recording::options().sample, Ordering::Relaxed);
    ALIVE.clear();
}
