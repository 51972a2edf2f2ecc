//! What became of the hints, and how much memory the allocator holds.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::heap::{ALL_HEAPS, CHUNK_BYTES_MAPPED, Heap};
use crate::large::LARGE_BYTES_MAPPED;

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

/// How many hinted objects came to lie where. See [`placement`] (the whole process) and [`Heap::placement`](crate::Heap::placement).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacementReport {
    /// In the hint's own block of 64 B: one miss serves both.
    pub same_block: u64,
    /// In the hint's 256 B, which one access to DRAM tends to bring in.
    pub same_group: u64,
    /// Elsewhere in the hint's page of 4 KiB: one TLB entry serves both.
    pub same_page: u64,
    /// In a page tied to the hint's, in the same 2 MiB. Only where blocks are reserved: see [`set_reserved_blocks`](crate::set_reserved_blocks).
    pub tied_page: u64,
    /// Anywhere else, because these were full.
    pub elsewhere: u64,
    /// The hint pointed to nothing that a neighbour can be placed at: not this allocator's, another thread's, or an object that
    /// was itself allocated without a hint; or the new object is larger than a hint can serve.
    pub not_usable: u64,
}

impl PlacementReport {
    /// The report of counts in the order of `Outcome`.
    pub(crate) fn from_counts(counts: [u64; OUTCOMES]) -> Self {
        let [
            same_block,
            same_group,
            same_page,
            tied_page,
            elsewhere,
            not_usable,
        ] = counts;
        Self {
            same_block,
            same_group,
            same_page,
            tied_page,
            elsewhere,
            not_usable,
        }
    }

    /// Hinted objects in all.
    #[must_use]
    pub fn hinted(&self) -> u64 {
        self.same_block
            + self.same_group
            + self.same_page
            + self.tied_page
            + self.elsewhere
            + self.not_usable
    }
}

/// Reports what became of the hints so far, in all threads and all values of [`Heap`](crate::Heap), those that have ended too.
///
/// Costs a walk over the heaps, one a thread. Counts of threads that allocate meanwhile may lag by a few.
#[must_use]
pub fn placement() -> PlacementReport {
    let mut sums = [0u64; OUTCOMES];
    for heap in heaps() {
        for (sum, counter) in sums.iter_mut().zip(&heap.placed) {
            *sum += counter.load(Ordering::Relaxed);
        }
    }
    PlacementReport::from_counts(sums)
}

/// Memory that the allocator has mapped and uses. See [`stats`].
///
/// Chunks and mappings that are in no use, and that each heap keeps for half a second or longer (128 MiB at most), are in neither sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of 2 MiB chunks, for objects up to about 1 MB. Address space: pages never touched cost no memory.
    pub chunk_bytes: usize,
    /// Bytes of mappings of their own, for larger objects.
    pub large_bytes: usize,
    /// Heaps: about as many as there were ever threads, and values of [`Heap`](crate::Heap), at the same time.
    pub heaps: usize,
}

/// Reports how much memory the allocator has in use for objects, in all threads. Costs a walk over the heaps.
#[must_use]
pub fn stats() -> Stats {
    Stats {
        chunk_bytes: CHUNK_BYTES_MAPPED.load(Ordering::Relaxed),
        large_bytes: LARGE_BYTES_MAPPED.load(Ordering::Relaxed),
        heaps: heaps().count(),
    }
}

/// All heaps there ever were.
fn heaps() -> impl Iterator<Item = &'static Heap> {
    let mut next = ALL_HEAPS.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: the list holds null or heaps, which are initialised before they are published and live for ever.
        let heap: &'static Heap = unsafe { next.as_ref() }?;
        next = heap.next_heap.load(Ordering::Acquire);
        Some(heap)
    })
}
