//! The results of hints, and how much memory the allocator holds.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::arena::{ALL_ARENAS, Arena};
use crate::extents::{CHUNK_BYTES_MAPPED, KEPT_BYTES, LARGE_BYTES_MAPPED};
use crate::outcome::{OUTCOMES, counts};
use crate::{sweep, thread};

/// Where hinted objects lie: those of the process ([`placement`]), of a thread since some moment
/// ([`watch`]), or of a [`Heap`](crate::Heap::placement). `Display` prints percentages and a
/// verdict in one line.
///
/// ```text
/// 1000 hinted objects: 40.1 % in the hint's block, 0.0 % in its 256 bytes, 0.0 % on its page, ...
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
// `struct ccmalloc_placement` of `ccmalloc.h`, where later versions add to the end.
#[repr(C)]
pub struct PlacementReport {
    /// In the hint's own block of 64 B: one miss serves both.
    pub same_block: u64,
    /// In the hint's 256 B, which one access to DRAM tends to bring in.
    pub same_group: u64,
    /// Elsewhere in the hint's page of 4 KiB: one TLB entry serves both.
    pub same_page: u64,
    /// In a page tied to the hint's, in the same 2 MiB, if
    /// [blocks are reserved](crate::set_reserved_blocks).
    pub tied_page: u64,
    /// Anywhere else, because these were full.
    pub elsewhere: u64,
    /// Anywhere, because the hint led to no object that can get neighbours ([`near`](crate::near)),
    /// or the new object is too large for a hint.
    pub not_usable: u64,
}

impl PlacementReport {
    /// The report of counts in the order of `Outcome`.
    pub(crate) fn from_counts(counts: [u64; OUTCOMES]) -> Self {
        Self {
            same_block: counts[0],
            same_group: counts[1],
            same_page: counts[2],
            tied_page: counts[3],
            elsewhere: counts[4],
            not_usable: counts[5],
        }
    }

    /// The report of what was counted since the counters were at `before`.
    pub(crate) fn since(before: [u64; OUTCOMES], placed: &[AtomicU64; OUTCOMES]) -> Self {
        let mut counts = counts(placed);
        for (count, before) in counts.iter_mut().zip(before) {
            *count -= before;
        }
        Self::from_counts(counts)
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

    /// What the counts of at least one object mean.
    fn verdict(&self) -> &'static str {
        let hinted = self.hinted();
        let close = self.same_block + self.same_group;
        let on_page = close + self.same_page + self.tied_page;
        if self.not_usable > hinted / 2 {
            "poor, most hints lead to no object placed by a hint of the same thread"
        } else if 3 * close >= hinted {
            "good"
        } else if 2 * on_page >= hinted {
            "fair, most objects share the page of their hints, few the block"
        } else {
            "poor, the room beside the hints was taken"
        }
    }
}

impl fmt::Display for PlacementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hinted = self.hinted();
        if hinted == 0 {
            return f.write_str("no hinted objects");
        }
        // Tenths of a percent, rounded, without floating point.
        let whole = u128::from(hinted);
        write!(f, "{hinted} hinted objects:")?;
        for (count, place) in [
            (self.same_block, "in the hint's block,"),
            (self.same_group, "in its 256 bytes,"),
            (self.same_page, "on its page,"),
            (self.tied_page, "on a tied page,"),
            (self.elsewhere, "elsewhere,"),
            (self.not_usable, "without a usable hint"),
        ] {
            if self.tied_page == 0 && place == "on a tied page," {
                continue;
            }
            let tenths = (u128::from(count) * 1000 + whole / 2) / whole;
            write!(f, " {}.{} % {place}", tenths / 10, tenths % 10)?;
        }
        write!(f, ": {}", self.verdict())
    }
}

/// Counts the hinted objects that the calling thread allocates from now on, without those of a
/// [`Heap`](crate::Heap), which has [its own](crate::Heap::placement) counts. O(1).
///
/// # Examples
///
/// ```
/// #[global_allocator]
/// static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
///
/// let watch = ccmalloc::watch();
/// let root = ccmalloc::near(&(), || Box::new([0u64; 3]));
/// let child = ccmalloc::near(&root, || Box::new([1u64; 3]));
/// let report = watch.report();
/// assert_eq!((report.same_block, report.hinted()), (1, 2));
/// println!("{report}");
/// # assert_eq!(root[0] + child[0], 1);
/// ```
#[must_use]
pub fn watch() -> Watch {
    let placed = thread::own_arena().map(|own| &own.arena().placed);
    Watch {
        placed,
        before: placed.map_or([0; OUTCOMES], counts),
        _not_send: PhantomData,
    }
}

/// The counts of the thread since [`watch`] was called.
#[derive(Debug)]
pub struct Watch {
    /// The counters of the thread's arena. `None` if there was no memory for one.
    placed: Option<&'static [AtomicU64; OUTCOMES]>,
    before: [u64; OUTCOMES],
    _not_send: PhantomData<*const ()>,
}

impl Watch {
    /// Where the thread's hinted objects since then lie. O(1).
    #[must_use]
    pub fn report(&self) -> PlacementReport {
        self.placed.map_or(PlacementReport::default(), |placed| {
            PlacementReport::since(self.before, placed)
        })
    }
}

/// Where hinted objects lie, of all threads and [`Heap`](crate::Heap)s of the process, also those
/// that have ended. Walks over the heaps, one a thread.
#[must_use]
pub fn placement() -> PlacementReport {
    let mut sums = [0u64; OUTCOMES];
    for arena in arenas() {
        for (sum, count) in sums.iter_mut().zip(counts(&arena.placed)) {
            *sum += count;
        }
    }
    PlacementReport::from_counts(sums)
}

/// Memory that the allocator has mapped. See [`stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of 2 MiB chunks in use, for objects up to about 1 MB. Address space: pages never
    /// touched cost no memory.
    pub chunk_bytes: usize,
    /// Bytes of mappings in use, each for one larger object.
    pub large_bytes: usize,
    /// Bytes in chunks in use that no object takes: slots of 64 KiB. Without those of heaps that
    /// other threads are changing at the moment.
    pub free_bytes: usize,
    /// Bytes of unused chunks and mappings, which are kept for half a second or longer: as much as
    /// the process uses, but 16 to 128 MiB.
    pub kept_bytes: usize,
    /// Heaps: about the largest number of threads and [`Heap`](crate::Heap)s at one time.
    pub heaps: usize,
}

/// How much memory the allocator has mapped, in all threads. Walks over the heaps.
#[must_use]
pub fn stats() -> Stats {
    Stats {
        chunk_bytes: CHUNK_BYTES_MAPPED.load(Ordering::Relaxed),
        large_bytes: LARGE_BYTES_MAPPED.load(Ordering::Relaxed),
        free_bytes: arenas().map(sweep::free_bytes).sum(),
        kept_bytes: KEPT_BYTES.load(Ordering::Relaxed),
        heaps: arenas().count(),
    }
}

/// All arenas there ever were.
fn arenas() -> impl Iterator<Item = &'static Arena> {
    let mut next = ALL_ARENAS.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: null or an arena, which is initialised before it is published, and lives for
        // ever.
        let arena: &'static Arena = unsafe { next.as_ref() }?;
        next = arena.next_arena.load(Ordering::Acquire);
        Some(arena)
    })
}
