//! Chunks: where metadata lies, who may touch it, and how an object's address leads to it.
//!
//! ```text
//! chunk base ──► ┌───────────────────────────┐
//!                │ 32 slab headers of 32 B   │  instead of slot 0's map; its header stays zero
//!        +1 KiB  ├───────────────────────────┤
//!                │ maps of the slots 1..32   │  a bit a granule, 1 KiB a slot; owner only
//!       +32 KiB  ├───────────────────────────┤
//!                │ addresses of descriptor   │  and end maps, and ties of pages
//!       +33 KiB  ├───────────────────────────┤
//!                │ remote maps               │  likewise; set by other threads, taken by the owner
//!       +64 KiB  ╞═══════════════════════════╡
//!                │ slot 1: objects    64 KiB │
//!                ├───────────────────────────┤
//!                │ slot 2 ...                │
//!        +2 MiB  └───────────────────────────┘
//! ```
//!
//! Masks and shifts lead from an address to its chunk, the header of its slot, and the bit of its
//! granule. No metadata lies beside objects or in free objects. What only some chunks need (the end
//! maps of co-location pages) lies in metadata of the arena. What must outlive the chunk, because
//! another thread may still be announcing a free, lies in its [`ChunkDesc`], never unmapped.

use core::cell::Cell;
use core::ptr::null;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::bin::{ARENA_ALIGN_BYTES, BIN_BYTES, Bin};
use crate::geometry::{
    CHUNK_BYTES, CHUNK_PAGES, CHUNK_SLOTS, GRANULE_BYTES, MAP_WORDS, PAGE_BYTES, SLOT_BYTES,
    SLOT_PAGES, chunk_base, slot_index,
};
use crate::list::{Links, Listed};
use crate::protocol::{Dirty, DirtyNode, RemoteWord};
use crate::size_class::Class;
use crate::slot_tags;

/// What a slot is used for.
pub(crate) mod kind {
    /// A slab in the list of those with room. Frees take the fast path, and notice an empty one.
    pub(crate) const LISTED: usize = 0;
    /// The slab that its size class allocates from. Frees take the fast path.
    pub(crate) const ACTIVE: usize = 1;
    /// A slab without free objects, in no list: the first free puts it back.
    pub(crate) const FULL: usize = 2;
    /// Sixteen co-location pages.
    pub(crate) const COLOCATED: usize = 3;
    /// The first slot of one object of several slots.
    pub(crate) const SPAN: usize = 4;
    /// A later slot of such an object.
    pub(crate) const SPAN_INSIDE: usize = 5;
}

/// The owner of a slot and its use: the address of the arena's bin for the slot's class (of the
/// arena itself, in a slot without a class), plus the [`kind`]. 0 for an unused slot.
///
/// So one comparison with a bin proves owner, class and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Tag(usize);

impl Tag {
    /// The tag of an unused slot.
    pub(crate) const FREE: Tag = Tag(0);

    /// The tag of a slot without a class, of the arena at this address.
    #[inline]
    pub(crate) fn new(arena: usize, kind: usize) -> Self {
        Tag(arena | kind)
    }

    /// The tag of a slab of `class`, of the arena at this address.
    #[inline]
    pub(crate) fn of_slab(arena: usize, class: Class, kind: usize) -> Self {
        Tag(arena | (class.index() * BIN_BYTES) | kind)
    }

    /// Returns the slot's kind if the slot is a slab of `bin` (or has no class, and `bin` is the
    /// first of its arena), else at least [`BIN_BYTES`]. A result of at most [`kind::ACTIVE`]
    /// proves a slab of `bin`.
    #[inline]
    pub(crate) fn kind_for(self, bin: &Bin) -> usize {
        self.0 ^ (&raw const *bin).addr()
    }

    /// [`slot_tags::find`].
    #[inline(always)]
    pub(crate) fn find(address: usize) -> Option<(Self, usize)> {
        slot_tags::find(address).map(|(tag, granule)| (Tag(tag), granule))
    }

    /// For a slab of the arena at this address whose frees take the fast path: the distance of its
    /// bin from the arena, and its kind. `None` for any other slot.
    #[inline]
    pub(crate) fn fast_slab(self, arena: usize) -> Option<(usize, usize)> {
        const BINS: usize = ARENA_ALIGN_BYTES - BIN_BYTES;
        let distance = self.0 ^ arena;
        (distance & !(BINS | kind::ACTIVE) == 0)
            .then_some((distance & !kind::ACTIVE, distance & kind::ACTIVE))
    }

    /// What the slot is used for.
    #[inline]
    pub(crate) fn kind(self) -> usize {
        self.0 % BIN_BYTES
    }

    /// The class of a slab.
    #[inline]
    pub(crate) fn class(self) -> Class {
        Class::from_index(self.0 % ARENA_ALIGN_BYTES / BIN_BYTES)
    }

    /// Address of the owner.
    #[inline]
    pub(crate) fn owner(self) -> usize {
        self.0 & !(ARENA_ALIGN_BYTES - 1)
    }
}

/// The header of a slot.
///
/// Invariant: while any object of the slot is live, everything but `tag`'s kind, the list links,
/// `witness` and `listed_pages` is constant, so that other threads may read it.
#[repr(C, align(32))]
pub(crate) struct Slab {
    /// A [`Tag`]. Atomic because other threads read it while the owner switches between the first
    /// three kinds.
    tag: AtomicUsize,
    /// In the arena's list of slabs of this class that have room; `COLOCATED`: of slots with listed
    /// pages.
    links: Links<Slab>,
    /// `SPAN`: offset of the object in the slot, in bytes.
    pub(crate) span_offset: Cell<u16>,
    /// `SPAN`: number of slots.
    pub(crate) span_slots: Cell<u8>,
    /// Slabs: number of a word of the map that had a live object in it when last read.
    pub(crate) witness: Cell<u8>,
    /// `COLOCATED`: which pages the arena has listed for openings (bit = page).
    pub(crate) listed_pages: Cell<u16>,
    /// A cell, so that no byte of a header lies outside of cells and atomics ([`SlotRef`]).
    _padding: Cell<u16>,
}

// SAFETY: slots leave their list before their chunk is unmapped, and are in one list at most.
unsafe impl Listed for Slab {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

/// A bit for each granule of a slot; only the owner reads or writes it. All zero in an unused slot.
///
/// In a slab, the bit of an object's first granule is set while the object is live, and all others
/// are zero. In co-location pages, the bits of the free granules are set.
pub(crate) type Map = [Cell<u64>; MAP_WORDS];
/// A bit for each granule that starts an object with a remote free that the owner has not yet
/// collected. All zero in an unused slot.
pub(crate) type RemoteMap = [RemoteWord; MAP_WORDS];

/// The end map of a slot.
pub(crate) type EndMap = [AtomicU64; MAP_WORDS];

/// The first slot of a chunk.
#[repr(C)]
pub(crate) struct Chunk {
    slabs: [Slab; CHUNK_SLOTS],
    maps: [Map; CHUNK_SLOTS - 1],
    /// Set when the chunk is mapped, and constant from then on: other threads read it.
    desc: Cell<*const ChunkDesc>,
    /// A copy of the descriptor's for hinted allocations. Set before the first co-location slot is
    /// tagged as one; other threads read it only for objects there.
    ends: Cell<*const EndMap>,
    /// For each page behind the first slot, the page of this chunk that took what did not fit
    /// there, or 0.
    ties: [Cell<u16>; CHUNK_PAGES - SLOT_PAGES],
    _padding: [Cell<u16>; 8],
    remote: [RemoteMap; CHUNK_SLOTS - 1],
}

const _: () = assert!(size_of::<Slab>() == 32);
const _: () = assert!(size_of::<Chunk>() == SLOT_BYTES);
// The fields in the place of slot 0's maps are as long as maps, so that slot numbers and addresses
// lead to maps directly.
const _: () = assert!(
    core::mem::offset_of!(Chunk, maps) == size_of::<Map>()
        && core::mem::offset_of!(Chunk, desc) == CHUNK_SLOTS * size_of::<Map>()
        && core::mem::offset_of!(Chunk, remote) == (CHUNK_SLOTS + 1) * size_of::<Map>()
);

impl Chunk {
    /// Records the chunk's descriptor, and where the end maps are.
    pub(crate) fn set_desc(&self, desc: &ChunkDesc) {
        self.desc.set(desc);
        self.ends.set(desc.ends.get());
    }
}

/// The bit of the granule at `address` in its word.
#[inline]
pub(crate) const fn granule_bit(address: usize) -> u64 {
    1 << (address / GRANULE_BYTES % 64)
}

/// The word of a slot's map that has the bit of the granule at `address`.
///
/// # Safety
/// - As for [`SlotRef::containing`], and `address` does not lie in its chunk's first slot.
#[inline]
pub(crate) unsafe fn map_word<'a>(address: usize) -> &'a Cell<u64> {
    debug_assert!(slot_index(address) != 0);
    let chunk: *const Cell<u64> = core::ptr::with_exposed_provenance(chunk_base(address));
    // Maps follow each other in the order of their slots, and a word stands for 64 granules.
    let number = (address & (CHUNK_BYTES - 1)) / (64 * GRANULE_BYTES);
    // SAFETY: the chunk is mapped during `'a` by the caller's promise. `number` is at least
    // MAP_WORDS, since the address is behind the first slot, and less than CHUNK_SLOTS * MAP_WORDS:
    // these words are those of `Chunk::maps`.
    unsafe { &*chunk.add(number) }
}

/// The part of a chunk's metadata that outlives the chunk. Owned by one arena for ever, reused for
/// its later chunks.
#[repr(C, align(64))]
pub(crate) struct ChunkDesc {
    /// Slots in which another thread has freed something since the owner last looked.
    dirty: Dirty<ChunkDesc>,
    /// The chunk, or null while there is none.
    pub(crate) chunk: Cell<*const Chunk>,
    /// Unused slots (bit = slot). Bit 0 is never set.
    pub(crate) free_slots: Cell<u32>,
    /// Slots whose memory may be other than zero (bit = slot).
    pub(crate) used_slots: Cell<u32>,
    /// Whether the chunk asked for huge pages when it was mapped.
    pub(crate) huge: Cell<bool>,
    /// Whether slots that were never used are resident: the others of a huge page.
    pub(crate) resident: Cell<bool>,
    /// When a slot last became free, by `sys::milliseconds`.
    pub(crate) freed_at: Cell<usize>,
    /// Slots that a [`Region`](crate::Region) is filling (bit = slot): their pages serve no
    /// openings, and they are not given back.
    pub(crate) reserved_slots: Cell<u32>,
    /// In the arena's list of chunks with free slots; `next` also links unused descriptors.
    pub(crate) links: Links<ChunkDesc>,
    /// Next in the list of all descriptors that the arena has made; set once.
    pub(crate) next_made: Cell<*const ChunkDesc>,
    /// [`CHUNK_SLOTS`] of them, aligned to a block, once the chunk has had co-location pages, or
    /// null.
    pub(crate) ends: Cell<*const EndMap>,
}

/// The bits of `count` slots from `first` on.
pub(crate) fn slots_mask(first: usize, count: usize) -> u32 {
    (u32::MAX >> (CHUNK_SLOTS - count)) << first
}

/// All slots but the metadata's.
pub(crate) const ALL_SLOTS: u32 = !1;

impl ChunkDesc {
    /// Initial state, without a chunk.
    pub(crate) const fn new() -> Self {
        Self {
            dirty: Dirty::new(),
            chunk: Cell::new(null()),
            free_slots: Cell::new(0),
            used_slots: Cell::new(0),
            huge: Cell::new(false),
            resident: Cell::new(false),
            freed_at: Cell::new(0),
            reserved_slots: Cell::new(0),
            links: Links::new(),
            next_made: Cell::new(null()),
            ends: Cell::new(null()),
        }
    }
}

// SAFETY: descriptors live for ever; `next` is that of the unused ones only while the descriptor is
// not in the other list.
unsafe impl Listed for ChunkDesc {
    fn links(&self) -> &Links<Self> {
        &self.links
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
    /// - `address` lies in a chunk that this allocator has mapped, and that stays mapped during
    ///   `'a`.
    /// - The chunk's address has been exposed (all are, when they are mapped).
    #[inline]
    pub(crate) unsafe fn containing(address: usize) -> Self {
        let chunk: *const Chunk = core::ptr::with_exposed_provenance(chunk_base(address));
        // SAFETY: a mapped chunk starts with an initialised `Chunk` (zero bytes are one), which is
        // shared through cells and atomics only.
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

    /// The slot's map. Slot 0 has none; it gets slot 1's, and no caller gets that far with it,
    /// because its tag is 0.
    #[inline]
    pub(crate) fn map(self) -> &'a Map {
        // SAFETY: `slot < CHUNK_SLOTS`, so the index is less than CHUNK_SLOTS - 1.
        unsafe { self.chunk.maps.get_unchecked(self.slot.saturating_sub(1)) }
    }

    /// The slot's remote map. Slot 0 gets slot 1's, as above.
    #[inline]
    pub(crate) fn remote(self) -> &'a RemoteMap {
        // SAFETY: `slot < CHUNK_SLOTS`, so the index is less than CHUNK_SLOTS - 1.
        unsafe { self.chunk.remote.get_unchecked(self.slot.saturating_sub(1)) }
    }

    /// The word of the slot's remote map that has the bit of the granule at `address`.
    ///
    /// # Safety
    /// - `address` lies in the slot, which is not slot 0.
    #[inline(always)]
    pub(crate) unsafe fn remote_word(self, address: usize) -> &'a RemoteWord {
        debug_assert!(slot_index(address) == self.slot && self.slot != 0);
        // Where a remote map of slot 0 would be.
        let words: *const RemoteWord = (&raw const *self.chunk)
            .wrapping_byte_add(SLOT_BYTES / 2)
            .cast();
        // SAFETY: remote maps follow each other in the order of slots, as maps do in `map_word`.
        unsafe { &*words.add((address & (CHUNK_BYTES - 1)) / (64 * GRANULE_BYTES)) }
    }

    /// The descriptor of the slot's chunk.
    #[inline]
    pub(crate) fn desc(self) -> &'a ChunkDesc {
        // SAFETY: set when the chunk was mapped, before any of its slots was dealt out; descriptors
        // live for ever.
        unsafe { &*self.chunk.desc.get() }
    }

    /// Address of the slot's first byte, with the provenance of the whole chunk.
    #[inline]
    pub(crate) fn base(self) -> *mut u8 {
        let chunk = (&raw const *self.chunk).addr();
        core::ptr::with_exposed_provenance_mut(chunk + self.slot * SLOT_BYTES)
    }

    /// The slot's end map.
    ///
    /// # Safety
    /// - The slot is used for co-location pages, and the caller owns it or was given a live object
    ///   in it.
    #[inline]
    pub(crate) unsafe fn ends(self) -> &'a EndMap {
        // Set when the chunk got its first co-location slot, and constant from then on.
        let ends = self.chunk.ends.get();
        debug_assert!(!ends.is_null());
        // SAFETY: a chunk with a co-location slot has CHUNK_SLOTS end maps, in memory of the arena
        // that is never unmapped.
        unsafe { &*ends.add(self.slot) }
    }

    /// The word of the slot's end map that has the bit of the granule at `address`, which lies in
    /// the slot.
    ///
    /// # Safety
    /// - As for [`ends`](Self::ends).
    #[inline(always)]
    pub(crate) unsafe fn end_word(self, address: usize) -> &'a AtomicU64 {
        let ends: *const AtomicU64 = self.chunk.ends.get().cast();
        debug_assert!(!ends.is_null() && slot_index(address) == self.slot);
        // SAFETY: a chunk with a co-location slot has CHUNK_SLOTS end maps in a row, never
        // unmapped: a word for each 64 granules of the chunk.
        unsafe { &*ends.add((address & (CHUNK_BYTES - 1)) / (64 * GRANULE_BYTES)) }
    }

    /// Copies the address of the end maps from the descriptor to the chunk.
    ///
    /// Writes nothing else: other threads that free objects of the chunk read `desc` meanwhile.
    pub(crate) fn update_ends(self) {
        self.chunk.ends.set(self.desc().ends.get());
    }

    /// The tie of page `page` (0..16) of a co-location slot.
    pub(crate) fn tie(self, page: usize) -> &'a Cell<u16> {
        let page = (self.slot.max(1) - 1) * SLOT_PAGES + (page & (SLOT_PAGES - 1));
        // SAFETY: `slot < CHUNK_SLOTS`: a page behind the first slot, counted from there.
        unsafe { self.chunk.ties.get_unchecked(page) }
    }

    /// The free map of page `page` (0..16) of a co-location slot: eight words, one cache line.
    #[inline]
    pub(crate) fn page_words(self, page: usize) -> &'a [Cell<u64>; 8] {
        debug_assert!(page < SLOT_PAGES);
        let words = self.map().as_ptr();
        // SAFETY: 16 pages of 8 words are the map's 128; an array of cells has the layout of its
        // elements.
        unsafe { &*words.add((page & 15) * 8).cast() }
    }
}

impl Slab {
    /// The slot's owner and use.
    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        Tag(self.tag.load(Ordering::Relaxed))
    }

    /// Records the slot's owner and use.
    pub(crate) fn set_tag(&self, tag: Tag) {
        self.tag.store(tag.0, Ordering::Relaxed);
        let header = (&raw const *self).addr();
        let slot = header % CHUNK_BYTES / size_of::<Slab>();
        slot_tags::set(chunk_base(header) + slot * SLOT_BYTES, tag.0);
    }

    /// The slot that this is the header of.
    ///
    /// # Safety
    /// - `self` lies in a mapped chunk (not in a copy of one).
    pub(crate) unsafe fn slot_ref(&self) -> SlotRef<'_> {
        let address = (&raw const *self).addr();
        let base = chunk_base(address);
        let chunk: *const Chunk = core::ptr::with_exposed_provenance(base);
        // SAFETY: the caller promises a mapped chunk; all are exposed. The header is inside the
        // chunk's first slot, so masking leads to its base.
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
        let runs = [
            (0, 1),
            (0, 64),
            (3, 61),
            (3, 62),
            (60, 8),
            (63, 130),
            (100, 512),
        ];
        for (first, granules) in runs {
            let mut bits = Vec::new();
            for_each_word(first, granules, |word, mask| {
                let set = (0..64).filter(|bit| mask >> bit & 1 == 1);
                bits.extend(set.map(|bit| word * 64 + bit));
            });
            assert_eq!(bits, (first..first + granules).collect::<Vec<_>>());
        }
    }
}
