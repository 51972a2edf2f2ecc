//! Extents: runs of unused chunks, which the process keeps for a while before it unmaps them.
//!
//! They save two system calls and many page faults for each large object that comes and goes. A
//! request takes the front of the smallest extent that is long enough; neighbours are joined. All
//! threads share them, so that what an idle thread has freed serves the others, and goes back to
//! the OS in time.
//!
//! The limits are [`EXTENTS`] extents, [`kept_bytes_max`] bytes, and the
//! [decay time](crate::options) since the last part became free, checked by [`decay`].

use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::geometry::CHUNK_BYTES;
use crate::options;
use crate::sys;

/// How many extents are kept.
const EXTENTS: usize = 64;
/// The longest extent: `huge` has a bit for each chunk.
const EXTENT_CHUNKS_MAX: usize = 64;
/// Bounds of [`kept_bytes_max`].
const KEPT_BYTES_MIN: usize = 16 << 20;
const KEPT_BYTES_MAX: usize = EXTENT_CHUNKS_MAX * CHUNK_BYTES;
/// What became free just now is kept up to this size, also where little else may be.
const KEPT_LATEST_BYTES_MAX: usize = 32 << 20;
/// How often a thread looks whether another has left the extents.
const SPINS: usize = 200;

/// Neighbouring chunks; none if `count` is 0.
#[derive(Clone, Copy)]
pub(crate) struct Chunks {
    pub(crate) start: *mut u8,
    pub(crate) count: usize,
    /// The chunks for which huge pages were asked, bit 0 for the first; of those of at most 64.
    pub(crate) huge: u64,
    /// Whether they are zero: never used since they were mapped.
    pub(crate) zero: bool,
}

impl Chunks {
    const NONE: Self = Self::new(null_mut(), 0);

    /// `count` chunks without huge pages, from `start` on.
    pub(crate) const fn new(start: *mut u8, count: usize) -> Self {
        let (huge, zero) = (0, false);
        Self {
            start,
            count,
            huge,
            zero,
        }
    }

    pub(crate) fn bytes(self) -> usize {
        self.count * CHUNK_BYTES
    }

    fn end(self) -> *mut u8 {
        self.start.wrapping_add(self.bytes())
    }

    /// The first `count`, and the rest.
    fn split(self, count: usize) -> (Self, Self) {
        let front = Self {
            count,
            huge: self.huge & ones(count),
            ..self
        };
        let rest = Self {
            start: front.end(),
            count: self.count - count,
            huge: if count < 64 { self.huge >> count } else { 0 },
            ..self
        };
        (front, rest)
    }

    /// These, and those right behind them.
    fn joined(self, behind: Self) -> Self {
        let shifted = if self.count < 64 {
            behind.huge << self.count
        } else {
            0
        };
        let (count, huge) = (self.count + behind.count, self.huge | shifted);
        Self {
            count,
            huge,
            ..self
        }
    }

    /// Gives them back to the OS.
    ///
    /// # Safety
    /// - They are mapped, in no registry, and nothing in them is used any more.
    unsafe fn unmap(self) {
        if let Some(start) = NonNull::new(self.start) {
            // SAFETY: the caller promises that they are mapped, and that nothing in them is used.
            unsafe { sys::unmap(start, self.bytes()) };
        }
    }
}

/// The lowest `count` bits.
pub(crate) fn ones(count: usize) -> u64 {
    match count {
        0 => 0,
        _ => u64::MAX >> (64 - count.min(64)),
    }
}

/// Chunks that are kept.
#[derive(Clone, Copy)]
struct Extent {
    chunks: Chunks,
    /// When the last part of it became free, by [`sys::milliseconds`].
    freed_at: usize,
}

/// The extents, in the hands of one thread at a time.
///
/// Invariant: the extents are whole mappings of this process, or parts of them, unused, disjoint,
/// in no registry, and none is longer than [`EXTENT_CHUNKS_MAX`].
struct Kept {
    locked: AtomicBool,
    extents: UnsafeCell<[Extent; EXTENTS]>,
}

// SAFETY: only `Kept::with` reaches the extents, by one thread at a time.
unsafe impl Sync for Kept {}

static KEPT: Kept = Kept {
    locked: AtomicBool::new(false),
    extents: UnsafeCell::new(
        [Extent {
            chunks: Chunks::NONE,
            freed_at: 0,
        }; EXTENTS],
    ),
};

/// Bytes that are kept.
pub(crate) static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);
/// How many extents are single chunks.
static SINGLES: AtomicUsize = AtomicUsize::new(0);

/// Bytes of chunks that all arenas have mapped.
pub(crate) static CHUNK_BYTES_MAPPED: AtomicUsize = AtomicUsize::new(0);
/// Bytes of mappings of single objects.
pub(crate) static LARGE_BYTES_MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of chunks and mappings that the process uses.
pub(crate) fn used_bytes() -> usize {
    CHUNK_BYTES_MAPPED.load(Ordering::Relaxed) + LARGE_BYTES_MAPPED.load(Ordering::Relaxed)
}

impl Kept {
    /// Calls `f` with the extents; `None` when other threads do not leave them. `f` calls nothing
    /// that could come here again.
    ///
    /// Nothing waits without an end: the child of a `fork` while another thread had the extents
    /// finds them taken for ever, and goes on without.
    fn with<R>(&self, f: impl FnOnce(&mut [Extent; EXTENTS]) -> R) -> Option<R> {
        let taken = (0..SPINS).any(|_| {
            let free =
                !self.locked.load(Ordering::Relaxed) && !self.locked.swap(true, Ordering::Acquire);
            if !free {
                spin_loop();
            }
            free
        });
        if !taken {
            return None;
        }
        // SAFETY: the flag was false, so no other thread is here until it is false again, and what
        // others have written is seen (acquire and release).
        let extents = unsafe { &mut *self.extents.get() };
        let result = f(extents);
        let chunks = |extent: &Extent| extent.chunks.count;
        KEPT_BYTES.store(
            extents.iter().map(chunks).sum::<usize>() * CHUNK_BYTES,
            Ordering::Relaxed,
        );
        SINGLES.store(
            extents.iter().filter(|e| chunks(e) == 1).count(),
            Ordering::Relaxed,
        );
        self.locked.store(false, Ordering::Release);
        Some(result)
    }

    /// Unmaps extents, the one that has been free for longest first, while `unwanted(bytes that are
    /// kept, when it became free)`.
    fn unmap_while(&self, unwanted: impl Fn(usize, usize) -> bool) {
        loop {
            let oldest = self.with(|extents| {
                let bytes = extents.iter().map(|extent| extent.chunks.bytes()).sum();
                let used = extents.iter_mut().filter(|extent| extent.chunks.count > 0);
                let oldest = used.min_by_key(|extent| extent.freed_at)?;
                unwanted(bytes, oldest.freed_at)
                    .then(|| core::mem::replace(&mut oldest.chunks, Chunks::NONE))
            });
            let Some(Some(chunks)) = oldest else { return };
            // SAFETY: the invariant of `Kept`, which they have been taken out of.
            unsafe { chunks.unmap() };
        }
    }
}

/// How many bytes are kept at most: as many as the process uses, within limits.
fn kept_bytes_max() -> usize {
    used_bytes()
        .clamp(KEPT_BYTES_MIN, KEPT_BYTES_MAX)
        .min(options::kept_bytes_max())
}

/// Whether a single chunk is kept.
pub(crate) fn any_single() -> bool {
    SINGLES.load(Ordering::Relaxed) > 0
}

/// Takes `count` neighbouring chunks, kept ones if there are any, of which those in `huge` (as in
/// [`Chunks::huge`]) are to have huge pages. The contents of kept ones are anything. `None` when
/// the OS refuses memory.
pub(crate) fn take_chunks(count: usize, huge: u64) -> Option<Chunks> {
    take_kept(count, huge).or_else(|| map_fresh(count.checked_mul(CHUNK_BYTES)?, CHUNK_BYTES))
}

fn take_kept(count: usize, huge: u64) -> Option<Chunks> {
    if KEPT_BYTES.load(Ordering::Relaxed) < count.saturating_mul(CHUNK_BYTES) {
        return None;
    }
    KEPT.with(|extents| {
        let long_enough = extents
            .iter_mut()
            .filter(|extent| extent.chunks.count >= count);
        let best = long_enough.min_by_key(|extent| {
            let other_pages = extent.chunks.huge & ones(count) ^ huge;
            (other_pages.count_ones(), extent.chunks.count)
        })?;
        let (front, rest) = best.chunks.split(count);
        best.chunks = rest;
        Some(front)
    })?
}

/// Maps `bytes` at a multiple of `align`, as [`sys::map_aligned`] does; `count` is in whole chunks.
pub(crate) fn map_fresh(bytes: usize, align: usize) -> Option<Chunks> {
    let start = sys::map_aligned(bytes, align).or_else(|| {
        // Without the extents, a limit on address space may leave room.
        unmap_kept();
        sys::map_aligned(bytes, align)
    })?;
    let fresh = Chunks::new(start.as_ptr(), bytes / CHUNK_BYTES);
    Some(Chunks {
        zero: true,
        ..fresh
    })
}

/// Takes `count` chunks right behind `end`, if they are kept.
pub(crate) fn take_kept_behind(end: *mut u8, count: usize) -> Option<Chunks> {
    if KEPT_BYTES.load(Ordering::Relaxed) < count.saturating_mul(CHUNK_BYTES) {
        return None;
    }
    KEPT.with(|extents| {
        let behind =
            |extent: &&mut Extent| extent.chunks.start == end && extent.chunks.count >= count;
        let extent = extents.iter_mut().find(behind)?;
        let (front, rest) = extent.chunks.split(count);
        extent.chunks = rest;
        Some(front)
    })?
}

/// Keeps `chunks` for later requests, or unmaps them or others.
///
/// # Safety
/// - They were mapped by this allocator, nothing in them is used any more, and they are not in the
///   registry.
pub(crate) unsafe fn give_chunks(chunks: Chunks) {
    let now = sys::milliseconds();
    decay(now);
    let latest = chunks.bytes().min(KEPT_LATEST_BYTES_MAX);
    let limit = kept_bytes_max().max(latest).min(options::kept_bytes_max());
    let fits = sys::TAKES_PARTS_BACK && chunks.bytes() <= limit;
    let kept = fits.then(|| KEPT.with(|extents| insert(extents, chunks, now)));
    if kept.flatten() != Some(true) {
        // SAFETY: the caller promises chunks that are in no registry and not used; `KEPT` has not
        // got them.
        return unsafe { chunks.unmap() };
    }
    KEPT.unmap_while(|bytes, _| bytes > limit);
}

/// Puts chunks that became free at `now` in, joined with their neighbours. `false`, and nothing has
/// changed, when there is no room.
fn insert(extents: &mut [Extent; EXTENTS], mut chunks: Chunks, now: usize) -> bool {
    if extents.iter().all(|extent| extent.chunks.count > 0) {
        return false;
    }
    for extent in &mut *extents {
        let other = extent.chunks;
        if other.count == 0 || other.count + chunks.count > EXTENT_CHUNKS_MAX {
            continue;
        }
        if other.end() == chunks.start {
            chunks = other.joined(chunks);
        } else if other.start == chunks.end() {
            chunks = chunks.joined(other);
        } else {
            continue;
        }
        extent.chunks = Chunks::NONE;
    }
    let zero = false;
    let kept = Extent {
        chunks: Chunks { zero, ..chunks },
        freed_at: now,
    };
    let place = extents.iter_mut().find(|extent| extent.chunks.count == 0);
    place.map(|place| *place = kept).is_some()
}

/// Unmaps what has been kept for too long at the time `now`.
pub(crate) fn decay(now: usize) {
    if KEPT_BYTES.load(Ordering::Relaxed) > 0 {
        let time = options::decay_milliseconds();
        KEPT.unmap_while(|_, freed_at| now.saturating_sub(freed_at) > time);
    }
}

/// Unmaps all extents.
pub(crate) fn unmap_kept() {
    KEPT.unmap_while(|_, _| true);
}
