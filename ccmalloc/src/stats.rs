//! The results of hints, and how much memory the allocator holds.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::arena::{ALL_ARENAS, Arena};
use crate::extents::{CHUNK_BYTES_MAPPED, KEPT_BYTES, LARGE_BYTES_MAPPED};
use crate::outcome::{OUTCOMES, counts};
use crate::thread;

/// Where hinted objects lie: of the whole process ([`placement`]), of one thread since some moment
/// ([`watch`]), or of one [`Heap`](crate::Heap::placement).
///
/// `Display` prints one line: the counts in percent, and a verdict.
///
/// ```text
/// 1000 hinted objects: 40.1 % in the hint's block, 0.0 % in its 256 bytes, 0.0 % on its page, ...
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacementReport {
    /// In the hint's own block of 64 B: one miss serves both.
    pub same_block: u64,
    /// In the hint's 256 B, which one access to DRAM tends to bring in.
    pub same_group: u64,
    /// Elsewhere in the hint's page of 4 KiB: one TLB entry serves both.
    pub same_page: u64,
    /// In a page tied to the hint's, in the same 2 MiB. Only where blocks are reserved: see
    /// [`set_reserved_blocks`](crate::set_reserved_blocks).
    pub tied_page: u64,
    /// Anywhere else, because these were full.
    pub elsewhere: u64,
    /// Anywhere, because the hint led to no object that can get neighbours: see
    /// [`near`](crate::near). Or the new object is too large for a hint.
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

    /// The report of what the counters have counted since they were at `before`.
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

/// Counts the hinted objects that the calling thread allocates from now on: the [`placement`] of
/// one part of a program. O(1).
///
/// Objects of a [`Heap`](crate::Heap) are not included. [`Heap::placement`](crate::Heap::placement)
/// counts them.
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
    /// The counts are those of the thread that made it.
    _not_send: PhantomData<*const ()>,
}

impl Watch {
    /// Where the thread's hinted objects lie since then. O(1).
    #[must_use]
    pub fn report(&self) -> PlacementReport {
        self.placed.map_or(PlacementReport::default(), |placed| {
            PlacementReport::since(self.before, placed)
        })
    }
}

/// Reports where hinted objects lie so far, of all threads and all values of [`Heap`](crate::Heap),
/// also those that have ended. Walks over the heaps, one a thread.
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

/// Memory that the allocator has mapped and uses. See [`stats`].
///
/// Chunks and mappings that are in no use and kept for later requests are counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of 2 MiB chunks, for objects up to about 1 MB. Address space: pages never touched cost
    /// no memory.
    pub chunk_bytes: usize,
    /// Bytes of mappings of their own, for larger objects.
    pub large_bytes: usize,
    /// Bytes of chunks and mappings in no use, which heaps keep for half a second or longer: as
    /// much as the process uses, but 32 to 128 MiB a thread.
    pub kept_bytes: usize,
    /// Heaps: about as many as there were ever threads, and values of [`Heap`](crate::Heap), at the
    /// same time.
    pub heaps: usize,
}

/// Reports how much memory the allocator has in use for objects, in all threads. Costs a walk over
/// the heaps.
#[must_use]
pub fn stats() -> Stats {
    Stats {
        chunk_bytes: CHUNK_BYTES_MAPPED.load(Ordering::Relaxed),
        large_bytes: LARGE_BYTES_MAPPED.load(Ordering::Relaxed),
        kept_bytes: KEPT_BYTES.load(Ordering::Relaxed),
        heaps: arenas().count(),
    }
}

/// All arenas there ever were.
fn arenas() -> impl Iterator<Item = &'static Arena> {
    let mut next = ALL_ARENAS.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: the list holds null or arenas, which are initialised before they are published
        // and live for ever.
        let arena: &'static Arena = unsafe { next.as_ref() }?;
        next = arena.next_arena.load(Ordering::Acquire);
        Some(arena)
    })
}
