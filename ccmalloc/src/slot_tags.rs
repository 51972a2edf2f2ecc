//! What each slot is used for, in a table by address: one load leads from any pointer to its bin.
//!
//! The table is a *window* of the address space, around the first chunk that the process mapped. It
//! has a word for each slot, which is a copy of the tag in the slot's header, and 0 for all that is
//! no slot in use. Slots outside of the window are in no table; frees there ask the registry.
//!
//! Untouched parts of the table are not resident: 4 KiB stand for 32 MiB.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::geometry::{CHUNK_SLOTS, GRANULE_BYTES, SLOT_BYTES, SLOT_GRANULES};

/// Slots in the window: almost 32 GiB. The OS deals addresses out side by side. A comparison with a
/// power of two would take an instruction more.
const SLOTS: usize = if cfg!(miri) { 1 << 10 } else { (1 << 19) - 1 };
const GRANULE_BITS: u32 = GRANULE_BYTES.ilog2();

/// Where the window begins, a multiple of [`SLOT_BYTES`]. Set once, before any tag is.
static START: AtomicUsize = AtomicUsize::new(UNSET);
/// So far from all memory that no address is in the window.
const UNSET: usize = 1 << 62;

/// A static of its own, all zero: otherwise its 4 MiB would be in the file of each program.
static TAGS: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];

/// Number of the granule at `address` in the window. Far behind the window if it lies outside, or
/// if no granule begins there: the low bits become the highest.
#[inline(always)]
fn granule(address: usize) -> usize {
    // Relaxed: no tag is found by another start than that under which it was recorded.
    let start = START.load(Ordering::Relaxed);
    address.wrapping_sub(start).rotate_right(GRANULE_BITS)
}

/// The tag of the slot of `address`, which may be any number, and a number whose lowest six bits
/// are the granule's in its word of a map. `None` of no multiple of 8, and outside of the window. A
/// thread that owns the slot, or a live object in it, finds its tag or nothing. To others the tag
/// may be an older one, or 0.
#[inline(always)]
pub(crate) fn find(address: usize) -> Option<(usize, usize)> {
    let granule = granule(address);
    let tag = TAGS.get(granule / SLOT_GRANULES)?;
    Some((tag.load(Ordering::Relaxed), granule))
}

/// Records the tag of the slot at `base`.
pub(crate) fn set(base: usize, tag: usize) {
    if let Some(place) = TAGS.get(granule(base) / SLOT_GRANULES) {
        place.store(tag, Ordering::Relaxed);
    }
}

/// Opens the window around `chunk`, if it is not open yet.
pub(crate) fn open_window(chunk: usize) {
    let start = chunk.saturating_sub(SLOTS / 2 * SLOT_BYTES);
    let _ = START.compare_exchange(UNSET, start, Ordering::Relaxed, Ordering::Relaxed);
}

/// Forgets the tags of a chunk that is given back as a whole.
pub(crate) fn forget_chunk(chunk: usize) {
    (0..CHUNK_SLOTS).for_each(|slot| set(chunk + slot * SLOT_BYTES, 0));
}
