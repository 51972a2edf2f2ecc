//! What the examples that compare allocators share: a program with two of them, lookups that wait
//! for each other, and passes that are timed in turns.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use ccmalloc::CcMalloc;

static USE_CCMALLOC: AtomicBool = AtomicBool::new(false);
static SYSTEM_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Serves objects from `CcMalloc` inside [`with_ccmalloc`], from the system's malloc elsewhere. A
/// program that does not compare says `static GLOBAL: CcMalloc = CcMalloc::new();`.
#[derive(Debug)]
pub struct Switch;

// SAFETY: both allocators keep the contract. The one that served an object frees it: `contains` is
// true for objects of `CcMalloc` and for no others.
unsafe impl GlobalAlloc for Switch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if USE_CCMALLOC.load(Relaxed) {
            // SAFETY: the caller keeps the contract of `alloc`.
            return unsafe { CcMalloc.alloc(layout) };
        }
        SYSTEM_BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if ccmalloc::contains(ptr) {
            // SAFETY: `CcMalloc` served it; the caller keeps the contract of `dealloc`.
            return unsafe { CcMalloc.dealloc(ptr, layout) };
        }
        SYSTEM_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the system served it.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Runs `f`. If `enabled`, `CcMalloc` serves the objects that it allocates.
pub fn with_ccmalloc<R>(enabled: bool, f: impl FnOnce() -> R) -> R {
    USE_CCMALLOC.store(enabled, Relaxed);
    let result = f();
    USE_CCMALLOC.store(false, Relaxed);
    result
}

/// Bytes of the objects that the system's malloc serves.
pub fn system_bytes() -> usize {
    SYSTEM_BYTES.load(Relaxed)
}

/// Looks up one key of each pair, chosen by the answer before, so that no lookup begins before the
/// last one ends. Returns a sum over the answers in their order.
#[inline]
pub fn dependent_lookups(pairs: &[[u64; 2]], lookup: impl Fn(u64) -> u64) -> u64 {
    let (mut sum, mut answer) = (0_u64, 0);
    for pair in pairs {
        answer = lookup(pair[usize::from(answer % 2 == 1)]);
        sum = sum.wrapping_mul(31).wrapping_add(answer);
    }
    sum
}

/// The seconds of each pass in each round, sorted. The passes take turns, so that noise of the
/// machine falls on all of them. A round before those timed fills the caches.
///
/// # Panics
///
/// If there is no pass, or two return different sums.
pub fn time_in_turns(rounds: usize, passes: &[impl Fn() -> u64]) -> Vec<Vec<f64>> {
    let expected = passes[0]();
    let mut times = vec![Vec::new(); passes.len()];
    for round in 0..=rounds {
        for (number, pass) in passes.iter().enumerate() {
            let start = Instant::now();
            assert_eq!(pass(), expected, "pass {number} answers differently");
            if round > 0 {
                times[number].push(start.elapsed().as_secs_f64());
            }
        }
    }
    for times in &mut times {
        times.sort_by(f64::total_cmp);
    }
    times
}

/// The median of sorted times.
pub fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
