//! Extents: runs of unused chunks, which an arena keeps for a while before it unmaps them.
//!
//! They save two system calls and many page faults for each large object that comes and goes. A
//! request takes the front of the smallest extent that is long enough; neighbours are joined.
//!
//! The limits are [`EXTENTS`] extents, [`kept_bytes_max`] bytes, and [`DECAY_MILLISECONDS`] since
//! the last part became free, checked when a slot or a chunk of the arena becomes free.

use core::cell::Cell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::geometry::CHUNK_BYTES;
use crate::sys;

/// How many extents an arena keeps.
const EXTENTS: usize = 24;
/// How long memory is kept that no request takes.
pub(crate) const DECAY_MILLISECONDS: usize = 500;
/// Bounds of [`kept_bytes_max`].
const KEPT_BYTES_MIN: usize = 32 << 20;
const KEPT_BYTES_MAX: usize = 128 << 20;

/// A run of unused chunks; none if `chunks` is 0.
#[derive(Clone, Copy)]
struct Extent {
    start: *mut u8,
    chunks: usize,
    /// When the last part of it became free, by [`sys::milliseconds`].
    freed_at: usize,
}

const NO_EXTENT: Extent = Extent {
    start: null_mut(),
    chunks: 0,
    freed_at: 0,
};

/// What an arena keeps. Invariant: the extents are whole mappings of this process, or parts of
/// them, unused, disjoint, in no registry.
pub(crate) struct Extents([Cell<Extent>; EXTENTS]);

impl Extents {
    pub(crate) const fn new() -> Self {
        Self([const { Cell::new(NO_EXTENT) }; EXTENTS])
    }

    /// The extents there are, each in its cell.
    fn iter(&self) -> impl Iterator<Item = (&Cell<Extent>, Extent)> {
        self.0
            .iter()
            .map(|cell| (cell, cell.get()))
            .filter(|(_, extent)| extent.chunks > 0)
    }

    /// Whether one of them is a single chunk.
    pub(crate) fn any_single(&self) -> bool {
        self.iter().any(|(_, extent)| extent.chunks == 1)
    }

    fn bytes(&self) -> usize {
        self.iter()
            .map(|(_, extent)| extent.chunks * CHUNK_BYTES)
            .sum()
    }

    /// Takes the first extent that is `wanted`.
    fn take_at(&self, wanted: impl Fn(&Extent) -> bool) -> Option<Extent> {
        let (cell, extent) = self.iter().find(|(_, extent)| wanted(extent))?;
        replace(cell, NO_EXTENT);
        Some(extent)
    }

    /// Takes `count` chunks off the front of the extent in `cell`.
    fn take_front(cell: &Cell<Extent>, count: usize) -> *mut u8 {
        let extent = cell.get();
        let rest = Extent {
            start: extent.start.wrapping_add(count * CHUNK_BYTES),
            chunks: extent.chunks - count,
            ..extent
        };
        replace(cell, rest);
        extent.start
    }

    /// Unmaps all extents that are `unwanted`.
    fn unmap_where(&self, unwanted: impl Fn(&Extent) -> bool) {
        while let Some(extent) = self.take_at(&unwanted) {
            extent.unmap();
        }
    }
}

/// Bytes that all arenas keep.
pub(crate) static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes of chunks that all arenas have mapped.
pub(crate) static CHUNK_BYTES_MAPPED: AtomicUsize = AtomicUsize::new(0);
/// Bytes of mappings of single objects.
pub(crate) static LARGE_BYTES_MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of chunks and mappings that the process uses.
pub(crate) fn used_bytes() -> usize {
    CHUNK_BYTES_MAPPED.load(Ordering::Relaxed) + LARGE_BYTES_MAPPED.load(Ordering::Relaxed)
}

/// Puts `extent` into `cell`, and counts the difference.
fn replace(cell: &Cell<Extent>, extent: Extent) {
    // Modulo 2^64, as are all sums.
    let more = extent.chunks.wrapping_sub(cell.replace(extent).chunks);
    KEPT_BYTES.fetch_add(more.wrapping_mul(CHUNK_BYTES), Ordering::Relaxed);
}

impl Extent {
    fn end(&self) -> *mut u8 {
        self.start.wrapping_add(self.chunks * CHUNK_BYTES)
    }

    /// Gives the extent back to the OS.
    fn unmap(self) {
        if let Some(start) = NonNull::new(self.start) {
            // SAFETY: the invariant of `Extents`, which it has been taken out of.
            unsafe { sys::unmap(start, self.chunks * CHUNK_BYTES) };
        }
    }
}

/// How many bytes an arena keeps at most: as many as the process uses, within limits.
fn kept_bytes_max() -> usize {
    used_bytes().clamp(KEPT_BYTES_MIN, KEPT_BYTES_MAX)
}

/// Chunks fresh from the OS or kept before.
pub(crate) struct Chunks {
    pub(crate) start: NonNull<u8>,
    /// Whether they are zero: never used since they were mapped.
    pub(crate) zero: bool,
}

impl Extents {
    /// Takes `count` neighbouring chunks that were kept; their contents are anything.
    fn take_kept(&self, count: usize) -> Option<NonNull<u8>> {
        let long_enough = self.iter().filter(|(_, extent)| extent.chunks >= count);
        let (cell, _) = long_enough.min_by_key(|(_, extent)| extent.chunks)?;
        NonNull::new(Self::take_front(cell, count))
    }

    /// Takes `count` neighbouring chunks, kept ones if there are any. `None` when the OS refuses
    /// memory.
    pub(crate) fn take_chunks(&self, count: usize) -> Option<Chunks> {
        if let Some(start) = self.take_kept(count) {
            return Some(Chunks { start, zero: false });
        }
        self.map_fresh(count.checked_mul(CHUNK_BYTES)?, CHUNK_BYTES)
    }

    /// Maps `bytes` at a multiple of `align`, as [`sys::map_aligned`] does.
    pub(crate) fn map_fresh(&self, bytes: usize, align: usize) -> Option<Chunks> {
        let start = sys::map_aligned(bytes, align).or_else(|| {
            // Without the extents, a limit on address space may leave room.
            self.unmap_kept();
            sys::map_aligned(bytes, align)
        })?;
        Some(Chunks { start, zero: true })
    }

    /// Takes `count` chunks right behind `end`, if they are kept.
    pub(crate) fn take_kept_behind(&self, end: *mut u8, count: usize) -> bool {
        let found = self
            .iter()
            .find(|(_, extent)| extent.start == end && extent.chunks >= count);
        found
            .map(|(cell, _)| Self::take_front(cell, count))
            .is_some()
    }

    /// Keeps `count` chunks from `start` on for later requests, or unmaps them or others.
    ///
    /// # Safety
    /// - They were mapped by this allocator, nothing in them is used any more, and they are not in
    ///   the registry.
    pub(crate) unsafe fn give_chunks(&self, start: NonNull<u8>, count: usize) {
        let now = sys::milliseconds();
        self.decay(now);
        let mut extent = Extent {
            start: start.as_ptr(),
            chunks: count,
            freed_at: now,
        };
        if !sys::TAKES_PARTS_BACK {
            return extent.unmap();
        }
        let (front, end) = (extent.start, extent.end());
        if let Some(before) = self.take_at(|other| other.end() == front) {
            extent.start = before.start;
            extent.chunks += before.chunks;
        }
        if let Some(behind) = self.take_at(|other| other.start == end) {
            extent.chunks += behind.chunks;
        }
        let limit = kept_bytes_max();
        if extent.chunks * CHUNK_BYTES > limit {
            return extent.unmap();
        }
        while self.bytes() + extent.chunks * CHUNK_BYTES > limit {
            self.unmap_oldest();
        }
        let is_empty = |cell: &&Cell<Extent>| cell.get().chunks == 0;
        if !self.0.iter().any(|cell| is_empty(&cell)) {
            self.unmap_oldest();
        }
        match self.0.iter().find(is_empty) {
            Some(cell) => replace(cell, extent),
            None => extent.unmap(),
        }
    }

    /// Unmaps the extent that has been free for longest.
    fn unmap_oldest(&self) {
        if let Some((cell, extent)) = self.iter().min_by_key(|(_, extent)| extent.freed_at) {
            replace(cell, NO_EXTENT);
            extent.unmap();
        }
    }

    /// Unmaps what has been kept for too long at the time `now`.
    pub(crate) fn decay(&self, now: usize) {
        self.unmap_where(|extent| now.wrapping_sub(extent.freed_at) > DECAY_MILLISECONDS);
    }

    /// Unmaps all extents.
    pub(crate) fn unmap_kept(&self) {
        self.unmap_where(|_| true);
    }
}
