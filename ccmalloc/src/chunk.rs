//! Chunks: where metadata lies, who may touch it, and how an object's address leads to it.
//!
//! ```text
//! chunk base ──► ┌───────────────────────────┐
//!                │ 32 slab headers of 64 B   │  slot 0's stays zero: a free of metadata is found out
//!        +2 KiB  ├───────────────────────────┤
//!                │ slot 1: free map    1 KiB │  owner only
//!                │         remote map  1 KiB │  set by other threads, taken by the owner
//!                ├───────────────────────────┤
//!                │ slot 2 ...                │
//!       +64 KiB  ╞═══════════════════════════╡
//!                │ slot 1: objects    64 KiB │
//!                ├───────────────────────────┤
//!                │ slot 2 ...                │
//!        +2 MiB  └───────────────────────────┘
//! ```
//!
//! No metadata lies beside objects, and none is written into free objects. What must outlive the chunk (other threads may
//! still be announcing a free whose last object has already been taken into account) lies in its [`ChunkDesc`], which belongs
//! to the heap and is never unmapped.

use core::cell::Cell;
use core::ptr::null;
use core::sync::atomic::AtomicUsize;

use crate::geometry::{
    CHUNK_BYTES, CHUNK_PAGES, CHUNK_SLOTS, MAP_WORDS, PAGE_BYTES, SLOT_BYTES, chunk_base,
    slot_index,
};
use crate::heap::Heap;
use crate::protocol::{Dirty, DirtyNode, RemoteWord};

/// What a slot is used for: the low bits of [`Slab::tag`].
pub(crate) mod kind {
    /// Objects of one size class, and the slab that the class allocates from. Frees take the fast path.
    pub(crate) const ACTIVE: usize = 0;
    /// Objects of one size class, in the list of slabs with room. Frees take the fast path, and look out for emptiness.
    pub(crate) const LISTED: usize = 1;
    /// Objects of one size class, none of them free, in no list: the first free must put the slab back.
    pub(crate) const FULL: usize = 2;
    /// Sixteen co-location pages.
    pub(crate) const COLOCATED: usize = 3;
    /// The first slot of one object of several slots.
    pub(crate) const SPAN: usize = 4;
    /// A later slot of such an object.
    pub(crate) const SPAN_INSIDE: usize = 5;
    /// All of the above; heaps are aligned so that these bits of their address are zero.
    pub(crate) const MASK: usize = 63;
}

/// The header of a slot.
///
/// Invariant: while any object of the slot is live, everything but `tag`'s kind and the list links is constant, so that other
/// threads may read it.
#[repr(C, align(64))]
pub(crate) struct Slab {
    /// Address of the owning heap plus [`kind`]; 0 for a free slot. Atomic because other threads read it while the owner
    /// switches between the first three kinds.
    pub(crate) tag: AtomicUsize,
    /// The descriptor of the chunk.
    pub(crate) desc: Cell<*const ChunkDesc>,
    /// Size classes: 2^32 / `object_bytes`, rounded up: turns an offset into an index by a multiplication.
    pub(crate) reciprocal: Cell<u32>,
    /// Size classes: bytes of an object. `SPAN`: offset of the object in the slot.
    pub(crate) object_bytes: Cell<u32>,
    /// Size classes: number of objects. `SPAN`: number of slots.
    pub(crate) objects: Cell<u32>,
    /// Size classes: index of the first object in the last word of the free map.
    pub(crate) tail_start: Cell<u32>,
    /// Size classes: words of the free map in use.
    pub(crate) words: Cell<u16>,
    /// Size classes: the class's number.
    pub(crate) class: Cell<u8>,
    /// Neighbours in the heap's list of slabs of this class that have room.
    pub(crate) next: Cell<*const Slab>,
    /// See `next`.
    pub(crate) prev: Cell<*const Slab>,
}

/// The maps of one slot. For a size class, bit i is object i; for co-location pages, it is granule i.
#[repr(C)]
pub(crate) struct Maps {
    /// Set = free. Only the owner reads or writes it.
    pub(crate) free: [Cell<u64>; MAP_WORDS],
    /// Set = freed by another thread, not yet taken into `free`. All zero in a slot that is not in use.
    pub(crate) remote: [RemoteWord; MAP_WORDS],
}

/// The first slot of a chunk.
#[repr(C)]
pub(crate) struct Chunk {
    pub(crate) slabs: [Slab; CHUNK_SLOTS],
    /// Maps of the slots 1..32; slot 0's room is taken by `slabs`.
    pub(crate) maps: [Maps; CHUNK_SLOTS - 1],
}

const _: () = assert!(size_of::<Slab>() == 64);
const _: () = assert!(size_of::<Maps>() == 2048);
const _: () = assert!(size_of::<Chunk>() == SLOT_BYTES);

/// What a heap knows of one co-location page.
pub(crate) struct PageInfo {
    /// Address of the page.
    pub(crate) base: Cell<*mut u8>,
    /// Neighbours in the heap's list of pages that have become empty enough to take new structures.
    pub(crate) next: Cell<*const PageInfo>,
    /// See `next`.
    pub(crate) prev: Cell<*const PageInfo>,
    /// Page of this chunk that took what did not fit here, 0 for none (page 0 is metadata).
    pub(crate) tied: Cell<u16>,
    /// Blocks that are wholly free.
    pub(crate) empty_blocks: Cell<u8>,
    /// Whether the page is in that list.
    pub(crate) listed: Cell<bool>,
}

/// The part of a chunk's metadata that outlives the chunk. Owned by one heap for ever, reused for its later chunks.
#[repr(C, align(64))]
pub(crate) struct ChunkDesc {
    /// Slots in which another thread has freed something since the owner last looked.
    dirty: Dirty<ChunkDesc>,
    /// The owner.
    pub(crate) heap: Cell<*const Heap>,
    /// The chunk, or null while there is none.
    pub(crate) chunk: Cell<*const Chunk>,
    /// Slots in no use (bit = slot). Bit 0 is never set.
    pub(crate) free_slots: Cell<u32>,
    /// Slots whose memory may be other than zero (bit = slot).
    pub(crate) used_slots: Cell<u32>,
    /// Slots that a [`Region`](crate::Region) is filling (bit = slot): their pages serve no seats, and they are not given back.
    pub(crate) reserved_slots: Cell<u32>,
    /// Neighbours in the heap's list of chunks with free slots; `next` also links unused descriptors.
    pub(crate) next: Cell<*const ChunkDesc>,
    /// See `next`.
    pub(crate) prev: Cell<*const ChunkDesc>,
    /// [`CHUNK_PAGES`] of them once the chunk has had co-location pages, or null.
    pub(crate) pages: Cell<*const PageInfo>,
}

/// All slots but the metadata's.
pub(crate) const ALL_SLOTS: u32 = !1;

impl ChunkDesc {
    /// Initial state, without a chunk.
    pub(crate) const fn new(heap: *const Heap) -> Self {
        Self {
            dirty: Dirty::new(),
            heap: Cell::new(heap),
            chunk: Cell::new(null()),
            free_slots: Cell::new(0),
            used_slots: Cell::new(0),
            reserved_slots: Cell::new(0),
            next: Cell::new(null()),
            prev: Cell::new(null()),
            pages: Cell::new(null()),
        }
    }

    /// The page `page` of the chunk.
    ///
    /// # Safety
    /// - `pages` has been set, and `page < CHUNK_PAGES`.
    pub(crate) unsafe fn page(&self, page: usize) -> &PageInfo {
        debug_assert!(!self.pages.get().is_null() && page < CHUNK_PAGES);
        // SAFETY: `pages` points to CHUNK_PAGES of them by its invariant, in memory of the heap that is never unmapped.
        unsafe { &*self.pages.get().add(page) }
    }
}

impl DirtyNode for ChunkDesc {
    fn dirty(&self) -> &Dirty<Self> {
        &self.dirty
    }
}

/// A slot in use, found from an address in it: its chunk's metadata and its number.
#[derive(Clone, Copy)]
pub(crate) struct SlotRef<'a> {
    chunk: &'a Chunk,
    slot: usize,
}

impl<'a> SlotRef<'a> {
    /// The slot that contains `address`.
    ///
    /// # Safety
    /// - `address` lies in a chunk that this allocator has mapped, and that stays mapped during `'a`.
    /// - The chunk's address has been exposed (all are, when they are mapped).
    #[inline]
    pub(crate) unsafe fn containing(address: usize) -> Self {
        let chunk: *const Chunk = core::ptr::with_exposed_provenance(chunk_base(address));
        // SAFETY: a mapped chunk starts with an initialised `Chunk` (zero bytes are one), which is shared through cells and
        // atomics only.
        let chunk = unsafe { &*chunk };
        Self {
            chunk,
            slot: slot_index(address),
        }
    }

    /// The slot with number `slot` of `chunk`.
    pub(crate) fn new(chunk: &'a Chunk, slot: usize) -> Self {
        debug_assert!((1..CHUNK_SLOTS).contains(&slot));
        Self {
            chunk,
            slot: slot & (CHUNK_SLOTS - 1),
        }
    }

    /// The slot `count` behind this one; the last at most.
    pub(crate) fn offset(self, count: usize) -> Self {
        Self {
            chunk: self.chunk,
            slot: (self.slot + count).min(CHUNK_SLOTS - 1),
        }
    }

    /// The slot's number, `0..CHUNK_SLOTS`.
    #[inline]
    pub(crate) fn slot(self) -> usize {
        self.slot
    }

    /// The slot's header.
    #[inline]
    pub(crate) fn slab(self) -> &'a Slab {
        // SAFETY: `slot < CHUNK_SLOTS` by construction.
        unsafe { self.chunk.slabs.get_unchecked(self.slot) }
    }

    /// The slot's maps. Slot 0 has none; it gets slot 1's, and no caller gets that far with it, because its tag is 0.
    #[inline]
    pub(crate) fn maps(self) -> &'a Maps {
        // SAFETY: `slot < CHUNK_SLOTS`, so the index is less than CHUNK_SLOTS - 1.
        unsafe { self.chunk.maps.get_unchecked(self.slot.saturating_sub(1)) }
    }

    /// Address of the slot's first byte, with the provenance of the whole chunk.
    #[inline]
    pub(crate) fn base(self) -> *mut u8 {
        let chunk: *mut u8 =
            core::ptr::with_exposed_provenance_mut((&raw const *self.chunk).addr());
        chunk.wrapping_add(self.slot * SLOT_BYTES)
    }

    /// The free map of page `page` (0..16) of the slot: eight words, one cache line.
    #[inline]
    pub(crate) fn page_words(self, page: usize) -> &'a [Cell<u64>; 8] {
        debug_assert!(page < crate::geometry::SLOT_PAGES);
        let words = self.maps().free.as_ptr();
        // SAFETY: 16 pages of 8 words are the map's 128; an array of cells has the layout of its elements.
        unsafe { &*words.add((page & 15) * 8).cast() }
    }
}

impl Slab {
    /// The slot that this is the header of.
    ///
    /// # Safety
    /// - `self` lies in a mapped chunk (not in a copy of one).
    pub(crate) unsafe fn slot_ref(&self) -> SlotRef<'_> {
        let address = (&raw const *self).addr();
        let base = chunk_base(address);
        let chunk: *const Chunk = core::ptr::with_exposed_provenance(base);
        // SAFETY: as for `containing`; the header is inside the chunk's first slot, so masking leads to its base.
        let chunk = unsafe { &*chunk };
        SlotRef {
            chunk,
            slot: (address - base) / size_of::<Slab>(),
        }
    }
}

/// Number of the page of its chunk that contains `address`.
#[inline]
pub(crate) fn page_index(address: usize) -> usize {
    (address & (CHUNK_BYTES - 1)) / PAGE_BYTES
}

/// A run of granules in a slot's map, cut at word boundaries: calls `each(word, mask)`.
#[inline]
pub(crate) fn for_each_word(first: usize, granules: usize, mut each: impl FnMut(usize, u64)) {
    let mut at = first;
    let end = first + granules;
    while at < end {
        let bit = at % 64;
        let take = (end - at).min(64 - bit);
        each(at / 64, (!0 >> (64 - take)) << bit);
        at += take;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_cut_into_words() {
        for (first, granules) in [
            (0, 1),
            (0, 64),
            (3, 61),
            (3, 62),
            (60, 8),
            (63, 130),
            (100, 512),
        ] {
            let mut bits = Vec::new();
            for_each_word(first, granules, |word, mask| {
                bits.extend(
                    (0..64)
                        .filter(|&bit| mask >> bit & 1 == 1)
                        .map(|bit| word * 64 + bit),
                );
            });
            assert_eq!(bits, (first..first + granules).collect::<Vec<_>>());
        }
    }
}
