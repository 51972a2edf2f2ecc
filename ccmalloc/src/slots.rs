//! Chunks of an arena, and the slots that they are dealt out in.

use core::ptr::{NonNull, null};
use core::sync::atomic::Ordering;

use crate::arena::Own;
use crate::chunk::{ALL_SLOTS, Chunk, ChunkDesc, SlotRef, Tag, slots_mask};
use crate::extents::{self, CHUNK_BYTES_MAPPED, Chunks, used_bytes};
use crate::geometry::{CHUNK_BYTES, PAGE_BYTES, SLOT_BYTES};
use crate::list::Listed;
use crate::protocol::DirtyNode;
use crate::remote::expect_no_remote;
use crate::{abandoned, options, registry, slot_tags, sweep, sys};

/// An arena with this many chunks asks for huge pages for slabs. They are resident as a whole from
/// their first object on.
const HUGE_FROM_CHUNKS: usize = 7;
/// The same, also for spans, in an arena with hinted objects or in a process that uses
/// [`HUGE_FROM_USED_BYTES`].
const HUGE_SOON_FROM_CHUNKS: usize = 1;
const HUGE_FROM_USED_BYTES: usize = 32 << 20;
/// How many chunks with room are looked at for a span before a fresh one is mapped.
const SPAN_CHUNKS_TRIED: usize = 256;
/// Shorter spans avoid chunks with huge pages, where the rest of their last slot is resident.
const HUGE_FROM_SPAN_SLOTS: usize = 4;
/// Bytes mapped at a time for metadata.
const META_BYTES: usize = 64 * 1024;

impl<'a> Own<'a> {
    /// Takes a slot for a slab or for pages, tagged by the caller afterwards. Its maps are zero.
    pub(crate) fn take_slot(self) -> Option<SlotRef<'a>> {
        let _slots = self.slots_lock.enter();
        // SAFETY: null or descriptors of this arena, which live for ever.
        let (open, spare) = unsafe { (self.open.get().as_ref(), self.spare.get().as_ref()) };
        let has_used = |desc: &&ChunkDesc| desc.free_slots.get() & desc.used_slots.get() != 0;
        // Used memory first: a fresh slot adds to the resident set.
        let desc = match open.filter(has_used).or(spare.filter(has_used)) {
            Some(desc) => desc,
            None => match open {
                Some(open) if !extents::any_single() => open,
                _ => self.map_chunk(None).or(open)?,
            },
        };
        let free = desc.free_slots.get();
        let used = free & desc.used_slots.get();
        let from = if used == 0 { free } else { used };
        self.take_from(desc, from.trailing_zeros() as usize, 1)
    }

    /// As [`Own::take_slot`], for a span of `count` neighbouring slots. Also returns whether it may
    /// be other than zero.
    pub(crate) fn take_span(self, count: usize) -> Option<(SlotRef<'a>, bool)> {
        let _slots = self.slots_lock.enter();
        let (desc, slot) = self.find_span(count)?;
        let used = desc.used_slots.get() & slots_mask(slot, count) != 0;
        Some((self.take_from(desc, slot, count)?, used))
    }

    /// Where `count` neighbouring slots are free: in this chunk, from this slot on.
    fn find_span(self, count: usize) -> Option<(&'a ChunkDesc, usize)> {
        let may_be_huge = count >= HUGE_FROM_SPAN_SLOTS;
        let mut other_room = None;
        let mut desc = self.open.get();
        for _ in 0..SPAN_CHUNKS_TRIED {
            // SAFETY: null or a descriptor of this arena, which lives for ever.
            let Some(open) = (unsafe { desc.as_ref() }) else {
                break;
            };
            // Bit s of a shifted map says that slot s + shift is free.
            let free = open.free_slots.get();
            let runs = (1..count).fold(free, |runs, shift| runs & (free >> shift));
            if runs != 0 {
                let slot = runs.trailing_zeros() as usize;
                if may_be_huge || !open.huge.get() {
                    return Some((open, slot));
                }
                other_room = Some((open, slot));
            }
            desc = open.links.next.get();
        }
        let fresh = self.map_chunk(Some(count)).map(|desc| (desc, 1));
        fresh.or(other_room)
    }

    fn take_from(self, desc: &'a ChunkDesc, slot: usize, count: usize) -> Option<SlotRef<'a>> {
        if core::ptr::eq(self.spare.get(), desc) {
            self.spare.set(null());
        }
        let taken = slots_mask(slot, count);
        desc.free_slots.set(desc.free_slots.get() & !taken);
        if desc.free_slots.get() == 0 {
            desc.unlink_from(&self.arena().open);
        }
        // SAFETY: a chunk with free slots is mapped.
        let chunk = unsafe { desc.chunk.get().as_ref() }?;
        Some(SlotRef::new(chunk, slot))
    }

    /// Gives `count` slots from `first` on back to their chunk, and the chunk to the extents if it
    /// and another one are empty. The slots are in no list, and their maps are clear.
    pub(crate) fn free_slots(self, first: SlotRef<'a>, count: usize) {
        let desc = first.desc();
        // SAFETY: the chunk is mapped: `first` lies in it.
        let Some(chunk) = (unsafe { desc.chunk.get().as_ref() }) else {
            return;
        };
        for slot in first.slot()..first.slot() + count {
            SlotRef::new(chunk, slot).slab().set_tag(Tag::FREE);
        }
        let mask = slots_mask(first.slot(), count);
        if desc.dirty().announced() & mask != 0 {
            for slot in first.slot()..first.slot() + count {
                expect_no_remote(SlotRef::new(chunk, slot));
            }
        }
        let now = sys::milliseconds();
        // First: a chunk is due by its latest free slot before these.
        sweep::tick(now);
        self.note_freed(desc, mask, now);
    }

    /// Enters the slots of `mask` as free since `now`.
    fn note_freed(self, desc: &'a ChunkDesc, mask: u32, now: usize) {
        let _slots = self.slots_lock.enter();
        desc.freed_at.set(now);
        desc.used_slots.set(desc.used_slots.get() | mask);
        if desc.free_slots.get() == 0 {
            desc.link_before(&self.arena().open);
        }
        desc.free_slots.set(desc.free_slots.get() | mask);
        if desc.free_slots.get() == ALL_SLOTS {
            // One is kept, so that an object that comes and goes does not map and unmap a chunk.
            if self.spare.get().is_null() {
                self.spare.set(desc);
            } else {
                self.release_chunk(desc);
            }
        }
    }

    /// A chunk without objects, in the list `open`, for a slab or a span of `span_slots`; with huge
    /// pages if that pays.
    fn map_chunk(self, span_slots: Option<usize>) -> Option<&'a ChunkDesc> {
        let desc = match NonNull::new(self.unused_descs.get().cast_mut()) {
            // SAFETY: a descriptor of this arena, which lives for ever.
            Some(desc) => unsafe { desc.as_ref() },
            None => {
                let place: NonNull<ChunkDesc> = self.alloc_meta(size_of::<ChunkDesc>())?.cast();
                // SAFETY: fresh, zeroed, 64-byte aligned metadata of this size.
                unsafe { place.write(ChunkDesc::new()) };
                // SAFETY: initialised just now; metadata is never unmapped.
                let desc = unsafe { place.as_ref() };
                desc.links.next.set(self.unused_descs.get());
                self.unused_descs.set(desc);
                desc.next_made.set(self.inventory.descs.replace(desc));
                desc
            }
        };
        abandoned::reclaim(abandoned::RECLAIM_ARENAS_MAX);
        let soon = self.latest_opening.get() != 0 || used_bytes() >= HUGE_FROM_USED_BYTES;
        let huge_from = match span_slots {
            None | Some(HUGE_FROM_SPAN_SLOTS..) if soon => HUGE_SOON_FROM_CHUNKS,
            None => HUGE_FROM_CHUNKS,
            Some(_) => usize::MAX,
        };
        let wants_huge = match options::huge_pages() {
            options::HugeMode::Never => false,
            options::HugeMode::Filled => self.chunks.get() >= huge_from,
            options::HugeMode::Always => true,
        };
        let chunks = extents::take_chunks(1, u64::from(wants_huge))?;
        let start = NonNull::new(chunks.start)?;
        let huge = if chunks.zero {
            // Before anything in it is touched: a small page excludes a huge one.
            wants_huge && sys::advise_huge(chunks.start, CHUNK_BYTES)
        } else {
            // SAFETY: the chunk was taken just now, and its metadata fill its first slot.
            unsafe { start.write_bytes(0, SLOT_BYTES) };
            chunks.huge != 0
        };
        // Masked addresses of objects take up the chunk's provenance.
        let base = start.as_ptr().expose_provenance();
        slot_tags::open_window(base);
        if !registry::insert_chunk(base, self.arena()) {
            // SAFETY: taken above, and in no use.
            unsafe { sys::unmap(start, CHUNK_BYTES) };
            return None;
        }
        self.chunks.set(self.chunks.get() + 1);
        CHUNK_BYTES_MAPPED.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
        self.unused_descs.set(desc.links.next.get());
        let chunk = start.cast::<Chunk>();
        // SAFETY: mapped and large enough; zero bytes are a valid `Chunk`.
        unsafe { chunk.as_ref() }.set_desc(desc);
        desc.chunk.set(chunk.as_ptr());
        desc.used_slots.set(if chunks.zero { 0 } else { !0 });
        desc.huge.set(huge);
        desc.resident.set(huge);
        desc.freed_at.set(sys::milliseconds());
        desc.reserved_slots.set(0);
        desc.free_slots.set(ALL_SLOTS);
        desc.link_before(&self.arena().open);
        Some(desc)
    }

    /// Gives a chunk without objects to the extents.
    fn release_chunk(self, desc: &ChunkDesc) {
        desc.unlink_from(&self.arena().open);
        if core::ptr::eq(self.spare.get(), desc) {
            self.spare.set(null());
        }
        // SAFETY: all of the chunk's slots are free, so no object and no list refers to it, and it
        // is out of `open`.
        unsafe { self.return_chunk(desc) };
    }

    /// Gives a chunk to the extents, out of the registry, and its descriptor to the unused ones.
    /// Nothing happens when the descriptor has none.
    ///
    /// # Safety
    /// - No object in the chunk is used any more.
    /// - No list, no active slab and no bin of the arena refers to the chunk or its descriptor from
    ///   now on.
    pub(crate) unsafe fn return_chunk(self, desc: &ChunkDesc) {
        let Some(chunk) = NonNull::new(desc.chunk.get().cast_mut()) else {
            return;
        };
        desc.chunk.set(null());
        desc.free_slots.set(0);
        desc.links.next.set(self.unused_descs.get());
        self.unused_descs.set(desc);
        self.chunks.set(self.chunks.get() - 1);
        CHUNK_BYTES_MAPPED.fetch_sub(CHUNK_BYTES, Ordering::Relaxed);
        registry::remove(chunk.addr().get(), CHUNK_BYTES);
        slot_tags::forget_chunk(chunk.addr().get());
        let huge = u64::from(desc.huge.get());
        let chunks = Chunks {
            huge,
            ..Chunks::new(chunk.cast().as_ptr(), 1)
        };
        // SAFETY: a chunk of `map_chunk`, out of the registry, to which nothing refers (the
        // caller's promise); the thread that freed its last object does not touch it after it set
        // its bit.
        unsafe { extents::give_chunks(chunks) };
    }

    /// `bytes` of zeroed metadata, aligned to 64 B, that stays for ever.
    pub(crate) fn alloc_meta(self, bytes: usize) -> Option<NonNull<u8>> {
        let bytes = bytes.next_multiple_of(64);
        if self.meta_left.get() < bytes {
            let mapped = META_BYTES.max(bytes.next_multiple_of(PAGE_BYTES));
            self.meta.set(extents::map_fresh(mapped, PAGE_BYTES)?.start);
            self.meta_left.set(mapped);
        }
        let place = self.meta.get();
        self.meta.set(place.wrapping_add(bytes));
        self.meta_left.set(self.meta_left.get() - bytes);
        NonNull::new(place)
    }

    /// Gives all chunks without objects to the extents.
    pub(crate) fn trim_chunks(self) {
        let _slots = self.slots_lock.enter();
        let mut desc = self.open.get();
        // SAFETY: null or a descriptor of this arena, which lives for ever.
        while let Some(open) = unsafe { desc.as_ref() } {
            desc = open.links.next.get();
            if open.free_slots.get() == ALL_SLOTS {
                self.release_chunk(open);
            }
        }
    }
}
