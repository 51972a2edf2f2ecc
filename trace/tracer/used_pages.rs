//! Pages of the arena that are in use, by zones or otherwise: stacks, code, what the program maps
//! there itself. Under the tracer's lock.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::sys::{self, PAGE};

/// A bit for each page.
static BITS: AtomicU64 = AtomicU64::new(0);
/// The arena.
static START: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// Before all else: the arena.
pub(crate) fn init(start: u64, end: u64) {
    BITS.store(sys::memory((end - start) / PAGE / 8), Relaxed);
    START.store(start, Relaxed);
    END.store(end, Relaxed);
}

/// Calls `each` with the words of bits of a range, and which of their bits are of it.
fn words(start: u64, end: u64, mut each: impl FnMut(*mut u64, u64) -> bool) {
    let (first, last) = (START.load(Relaxed), END.load(Relaxed));
    let mut at = start.max(first);
    let end = end.min(last);
    while at < end {
        let page = (at - first) / PAGE;
        let next = (first + (page / 64 + 1) * 64 * PAGE).min(end);
        let count = (next - at).div_ceil(PAGE).min(64);
        let mask = (u64::MAX >> (64 - count)) << (page % 64);
        let word = BITS.load(Relaxed) + page / 64 * 8;
        if each(core::ptr::with_exposed_provenance_mut(word as usize), mask) {
            return;
        }
        at = next;
    }
}

/// Notes that a range is in use.
pub(crate) fn add(start: u64, end: u64) {
    // SAFETY: the word is one of the table, which by the lock invariant nobody else uses.
    words(start, end, |word, mask| unsafe {
        *word |= mask;
        false
    });
}

/// The end of the last page in use of the first word that has one of a range.
pub(crate) fn find(start: u64, end: u64) -> Option<u64> {
    let mut found = None;
    // SAFETY: the word is one of the table, which by the lock invariant nobody else uses.
    words(start, end, |word, mask| unsafe {
        let bits = *word & mask;
        if bits != 0 {
            let at = word.expose_provenance() as u64 - BITS.load(Relaxed);
            let page = at * 8 + u64::from(63 - bits.leading_zeros());
            found = Some(START.load(Relaxed) + (page + 1) * PAGE);
        }
        bits != 0
    });
    found
}

/// A range is no longer in use.
pub(crate) fn remove(start: u64, end: u64) {
    // SAFETY: the word is one of the table, which by the lock invariant nobody else uses.
    words(start, end, |word, mask| unsafe {
        *word &= !mask;
        false
    });
}
