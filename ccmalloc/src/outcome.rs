//! Where hinted objects came to lie, counted.

use core::sync::atomic::{AtomicU64, Ordering};

/// Where a hinted object came to lie relative to its hint.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    SameBlock,
    SameGroup,
    SamePage,
    TiedPage,
    Elsewhere,
    NotUsable,
}

/// How many outcomes there are.
pub(crate) const OUTCOMES: usize = 6;

/// Adds one to a counter that only the calling thread writes.
#[inline]
pub(crate) fn count(placed: &[AtomicU64; OUTCOMES], outcome: Outcome) {
    if let Some(counter) = placed.get(outcome as usize) {
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// The values of an arena's counters.
pub(crate) fn counts(placed: &[AtomicU64; OUTCOMES]) -> [u64; OUTCOMES] {
    placed.each_ref().map(|count| count.load(Ordering::Relaxed))
}
