//! Co-location pages: where hinted objects lie, and how their places are found.
//!
//! A page of 4 KiB is 64 blocks of 64 B; its free map has a byte a block and a bit a granule, eight words in all, and lies in one
//! cache line of the chunk's metadata. An object may start at any granule of its alignment, and a second map says where it ends (`ends`).
//! Served in this order (thesis, section 4.2.1, and what DRAM adds to it):
//!
//! 1. the hint's own block, if it has room;
//! 2. another block of the hint's page, by the [`Policy`];
//! 3. where blocks are reserved ([`set_reserved_blocks`](crate::set_reserved_blocks)): the page *tied* to the hint's, which took what did not fit before;
//! 4. a *seat* on the heap's current seat page: the place where anything starts that has no neighbour to join. The hint's page
//!    is tied to that page, when it lies in the same chunk.
//!
//! Freed room serves later hints at once. Which pages have seats, and what becomes of empty ones, is the business of `seats`.

mod seats;

use core::cell::Cell;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::bits::{self, PageMap};
use crate::chunk::{ChunkDesc, PageInfo, SlotRef, for_each_word, kind, map_word, page_index};
use crate::ends::{self, Run, clear_end, granules_of, own_bits, own_run, set_end, set_free};
use crate::geometry::{
    BLOCK_BYTES, BLOCK_GRANULES, CHUNK_SLOTS, GRANULE_BYTES, PAGE_BLOCKS, PAGE_BYTES, SLOT_BYTES,
    SLOT_GRANULES, SLOT_PAGES, slot_offset,
};
use crate::heap::Own;
use crate::policy::{Policy, reserved};
use crate::registry;
use crate::size_class::SMALL_BYTES_MAX;
use crate::stats::{OUTCOMES, Outcome, count};

/// The largest object, in bytes, that a hint is honoured for. Larger ones gain nothing from a neighbour: their own blocks are
/// what is fetched.
pub(crate) const HINTED_BYTES_MAX: usize = 512;

/// A page with this many empty blocks more than are reserved takes new structures again.
const ROOMY_BLOCKS: u8 = 16;

/// How many roomy pages are looked at for a request that the first does not fit.
const ROOMY_PAGES_TRIED: usize = 8;

/// Blocks of a page, as its counter counts them.
const ALL_BLOCKS: u8 = 64;
const _: () = assert!(ALL_BLOCKS as usize == PAGE_BLOCKS);

/// What is to be placed, in granules.
#[derive(Clone, Copy)]
struct Request {
    granules: usize,
    align_granules: usize,
}

impl Request {
    fn new(bytes: usize, align: usize) -> Option<Self> {
        (bytes <= HINTED_BYTES_MAX && align <= BLOCK_BYTES).then(|| Self {
            granules: granules_of(bytes),
            align_granules: align.div_ceil(GRANULE_BYTES).max(1),
        })
    }

    /// For an object that may start at any granule.
    fn anywhere(granules: usize) -> Self {
        Self {
            granules,
            align_granules: 1,
        }
    }

    /// Whether it is for an object of up to a block that may start at any granule.
    fn is_common(self) -> bool {
        self.granules <= BLOCK_GRANULES && self.align_granules == 1
    }

    fn blocks(self) -> usize {
        self.granules.div_ceil(BLOCK_GRANULES)
    }

    /// A block of the page, and a granule in it, for this request; `near` is the block that it should be near to.
    ///
    /// An object larger than a block starts at a block of its own, so that it touches as few as it can.
    fn find(self, page: Page<'_>, near: usize, policy: Policy) -> Option<usize> {
        if policy == Policy::NewBlock && self.granules <= BLOCK_GRANULES {
            return Some(bits::next_empty(page.words(), near)? * BLOCK_GRANULES);
        }
        let map = &page.read();
        if self.blocks() > 1 {
            let candidates = bits::block_runs(bits::empty_blocks(map), self.blocks());
            let block = match policy {
                Policy::NewBlock => bits::next_in_group(candidates, near),
                Policy::Closest => bits::nearest(candidates, near),
                Policy::FirstFit => (candidates != 0).then(|| candidates.trailing_zeros() as usize),
            };
            return Some(block? * BLOCK_GRANULES);
        }
        let candidates = bits::blocks_with_room(map, self.granules, self.align_granules);
        let block = match policy {
            Policy::Closest => bits::nearest(candidates, near)?,
            _ => (candidates != 0).then(|| candidates.trailing_zeros() as usize)?,
        };
        let word = map.get(block / 8)?;
        Some(block * BLOCK_GRANULES + self.fit(block_of_word(*word, block))?)
    }

    /// A granule of the page for something that has no neighbour on it, if it has more empty blocks than are reserved.
    fn find_seat(self, page: Page<'_>, policy: Policy) -> Option<usize> {
        (page.info.empty_blocks.get() > reserved()).then(|| self.find(page, 0, policy))?
    }

    /// The first granule at which the request fits inside a block with this free map.
    #[inline]
    fn fit(self, block_map: u8) -> Option<usize> {
        (self.granules <= BLOCK_GRANULES)
            .then(|| bits::fit_in_block(block_map, self.granules, self.align_granules))?
    }
}

/// A co-location page of the calling thread's heap.
#[derive(Clone, Copy)]
struct Page<'a> {
    slot: SlotRef<'a>,
    /// Number in the slot, 0..16.
    in_slot: usize,
    info: &'a PageInfo,
}

impl<'a> Page<'a> {
    /// The page's words of the free map.
    #[inline]
    fn words(self) -> &'a [Cell<u64>; 8] {
        self.slot.page_words(self.in_slot)
    }

    #[inline]
    fn read(self) -> PageMap {
        self.words().each_ref().map(Cell::get)
    }

    /// Where block `block` (0..64) begins.
    #[inline]
    fn block(self, block: usize) -> *mut u8 {
        let offset = self.in_slot * PAGE_BYTES + block % PAGE_BLOCKS * BLOCK_BYTES;
        self.slot.base().wrapping_add(offset)
    }
}

impl<'a> Own<'a> {
    /// The co-location page of this heap that contains `address`, which may be anything.
    #[inline]
    fn page_containing(self, address: usize) -> Option<Page<'a>> {
        if !registry::is_chunk_of(address, self.heap()) {
            return None;
        }
        // SAFETY: a chunk of this heap, which only this thread unmaps.
        let slot: SlotRef<'a> = unsafe { SlotRef::containing(address) };
        if slot.slab().tag() != self.tag(kind::COLOCATED) {
            return None;
        }
        Some(self.page_at(slot, slot_offset(address) / PAGE_BYTES))
    }

    /// Whether `address`, which may be anything, lies in a co-location slot of this heap.
    pub(crate) fn is_colocated(self, address: usize) -> bool {
        self.page_containing(address).is_some()
    }

    /// The page `in_slot` of a co-location slot.
    #[inline]
    fn page_at(self, slot: SlotRef<'a>, in_slot: usize) -> Page<'a> {
        let desc = slot.desc();
        // SAFETY: a chunk with a co-location slot has its page infos; the page number is that of the slot plus one less than 16.
        let info = unsafe { desc.page(slot.slot() * SLOT_PAGES + (in_slot & (SLOT_PAGES - 1))) };
        Page {
            slot,
            in_slot: in_slot & (SLOT_PAGES - 1),
            info,
        }
    }

    /// The page that `info` describes.
    fn page_of(self, info: &'a PageInfo) -> Page<'a> {
        let base = info.base.get().addr();
        // SAFETY: infos that the heap's lists and ties name belong to slots in use, in mapped chunks.
        let slot = unsafe { SlotRef::containing(base) };
        Page {
            slot,
            in_slot: slot_offset(base) / PAGE_BYTES,
            info,
        }
    }

    /// Allocates near `hint`, which may be any number. Null when the request is none that hints are honoured for, and when the OS
    /// refuses memory: the caller then allocates without a hint.
    ///
    /// The common case in one go: an object of no more than a block, at any granule, in the hint's block or in an empty one of its page.
    #[inline]
    pub(crate) fn alloc_near(
        self,
        hint: usize,
        bytes: usize,
        align: usize,
        policy: Policy,
    ) -> *mut u8 {
        if align > GRANULE_BYTES || !registry::is_chunk_of(hint, self.heap()) {
            return self.alloc_near_slow(hint, bytes, align, policy);
        }
        // SAFETY: a chunk of this heap, which only this thread unmaps.
        let slot: SlotRef<'a> = unsafe { SlotRef::containing(hint) };
        if slot.slab().tag() != self.tag(kind::COLOCATED) {
            return self.alloc_near_slow(hint, bytes, align, policy);
        }
        // Both by the hint's address, which is also that of its block: two words that are often cold are read at the same time.
        // SAFETY: as above; the first slot of a chunk has another tag.
        let (word, end_word) = unsafe { (map_word(hint), slot.end_word(hint)) };
        let granules = granules_of(bytes);
        let block_map = block_of_word(word.get(), hint / BLOCK_BYTES);
        if let Some(inside) = bits::fit_anywhere(block_map, granules)
            && block_map != 0xff
        {
            count(&self.placed, Outcome::SameBlock);
            let place = (hint & !(BLOCK_BYTES - 1)) + inside * GRANULE_BYTES;
            take_granules(word, end_word, place, granules);
            return core::ptr::with_exposed_provenance_mut(place);
        }
        if granules <= BLOCK_GRANULES && block_map != 0xff {
            let page = self.page_at(slot, slot_offset(hint) / PAGE_BYTES);
            return if policy == Policy::NewBlock {
                self.alloc_in_new_block(page, hint, granules)
            } else {
                self.alloc_packed(page, hint, granules, policy)
            };
        }
        self.alloc_near_slow(hint, bytes, align, policy)
    }

    /// Allocates an object of up to a block for a hint at `page`, whose block is full: in the empty block that comes next, else elsewhere.
    #[inline]
    fn alloc_in_new_block(self, page: Page<'a>, hint: usize, granules: usize) -> *mut u8 {
        let near = hint % PAGE_BYTES / BLOCK_BYTES;
        let Some(block) = bits::next_empty(page.words(), near) else {
            return self.alloc_beyond_page(page, Request::anywhere(granules), Policy::NewBlock);
        };
        count_on_page(&self.placed, block, near);
        take_empty_block(page, block, granules)
    }

    /// As [`alloc_in_new_block`](Self::alloc_in_new_block), by a policy that packs.
    #[inline(never)]
    fn alloc_packed(self, page: Page<'a>, hint: usize, granules: usize, policy: Policy) -> *mut u8 {
        let near = hint % PAGE_BYTES / BLOCK_BYTES;
        let Some((block, object)) = take_packed(page, near, granules, policy) else {
            return self.alloc_beyond_page(page, Request::anywhere(granules), policy);
        };
        count_on_page(&self.placed, block, near);
        object
    }

    /// As [`alloc_near`](Self::alloc_near), for every request.
    #[inline(never)]
    fn alloc_near_slow(self, hint: usize, bytes: usize, align: usize, policy: Policy) -> *mut u8 {
        let Some(request) = Request::new(bytes, align) else {
            count(&self.placed, Outcome::NotUsable);
            return null_mut();
        };
        let Some(page) = self.page_containing(hint) else {
            return self.alloc_on_seat(request, policy);
        };
        let near = hint % PAGE_BYTES / BLOCK_BYTES;
        let block_map = page
            .slot
            .page_words(page.in_slot)
            .get(near / 8)
            .map_or(0, |word| block_of_word(word.get(), near));
        if let Some(inside) = request.fit(block_map) {
            count(&self.placed, Outcome::SameBlock);
            return self.claim_in(page, near * BLOCK_GRANULES + inside, request);
        }
        self.alloc_near_block(page, near, request, policy)
    }

    /// Allocates near block `near` of `page`, which has no room itself.
    #[inline(never)]
    fn alloc_near_block(
        self,
        page: Page<'a>,
        near: usize,
        request: Request,
        policy: Policy,
    ) -> *mut u8 {
        if let Some(granule) = request.find(page, near, policy) {
            count_on_page(&self.placed, granule / BLOCK_GRANULES, near);
            return self.claim_in(page, granule, request);
        }
        self.alloc_beyond_page(page, request, policy)
    }

    /// Allocates for a hint at `page`, which has no place for the request.
    ///
    /// Without reserved blocks, a seat page is full before another request comes from the same page: of a random tree's hints, 0.3% found room on the tied
    /// page, and each looked at two cold page infos for it. So there are ties only where blocks are reserved.
    #[inline(never)]
    fn alloc_beyond_page(self, page: Page<'a>, request: Request, policy: Policy) -> *mut u8 {
        let desc = page.slot.desc();
        let ties = reserved() > 0;
        if ties && let Some(object) = self.alloc_on_tied(desc, page.info, request, policy) {
            count(&self.placed, Outcome::TiedPage);
            return object;
        }
        count(&self.placed, Outcome::Elsewhere);
        let Some((seat, object)) = self.take_seat(request, policy) else {
            return null_mut();
        };
        if ties && core::ptr::eq(seat.slot.desc(), desc) {
            let index = page_index(seat.info.base.get().addr());
            page.info.tied.set(u16::try_from(index).unwrap_or(0));
        }
        object
    }

    /// Allocates what has no neighbour.
    #[inline(never)]
    fn alloc_on_seat(self, request: Request, policy: Policy) -> *mut u8 {
        count(&self.placed, Outcome::NotUsable);
        self.take_seat(request, policy)
            .map_or(null_mut(), |(_, object)| object)
    }

    fn alloc_on_tied(
        self,
        desc: &'a ChunkDesc,
        info: &PageInfo,
        request: Request,
        policy: Policy,
    ) -> Option<*mut u8> {
        let tied = usize::from(info.tied.get());
        if tied == 0 {
            return None;
        }
        // SAFETY: the chunk has page infos (one of them is at hand), and ties are page numbers of the same chunk.
        let tied = unsafe { desc.page(tied) };
        if tied.empty_blocks.get() == 0 {
            // Full but for scraps: the tie is undone, so that the next request does not come this far.
            info.tied.set(0);
            return None;
        }
        // The tied page's slot may have been given back since, and taken for something else.
        let page = self.page_containing(tied.base.get().addr())?;
        if self.reservation(page.slot).is_some() {
            // A region's by now, and the hint does not point there.
            info.tied.set(0);
            return None;
        }
        let granule = request.find(page, 0, policy)?;
        Some(self.claim_in(page, granule, request))
    }

    /// Makes an object of a request's granules, which are free, and returns its address.
    #[inline]
    fn claim_in(self, page: Page<'a>, granule: usize, request: Request) -> *mut u8 {
        self.claim(
            page.slot,
            page.in_slot * PAGE_BLOCKS * BLOCK_GRANULES + granule,
            request.granules,
        )
    }

    /// Makes an object of free granules; returns its address.
    #[inline]
    fn claim(self, slot: SlotRef<'a>, first: usize, granules: usize) -> *mut u8 {
        // SAFETY: a co-location slot of this heap.
        set_end(unsafe { slot.ends() }, first + granules - 1);
        self.set_taken(slot, Run { first, granules });
        slot.base().wrapping_add(first * GRANULE_BYTES)
    }

    /// Marks granules, which are free, as taken.
    #[inline]
    fn set_taken(self, slot: SlotRef<'a>, run: Run) {
        let Some((mask, block)) = masks_in_block(run) else {
            return self.set_taken_across_blocks(slot, run);
        };
        if let Some(word) = slot.map().get(run.first / 64) {
            let free = word.get();
            debug_assert!(free & mask == mask);
            word.set(free & !mask);
            if free & block == block {
                let page = run.first / (PAGE_BLOCKS * BLOCK_GRANULES);
                let info = self.page_at(slot, page).info;
                info.empty_blocks
                    .set(info.empty_blocks.get().wrapping_sub(1));
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn set_taken_across_blocks(self, slot: SlotRef<'a>, run: Run) {
        let Run { first, granules } = run;
        for block in first / BLOCK_GRANULES..=(first + granules - 1) / BLOCK_GRANULES {
            if block_map(slot, block) == 0xff {
                let info = self.page_at(slot, block / PAGE_BLOCKS).info;
                info.empty_blocks
                    .set(info.empty_blocks.get().wrapping_sub(1));
            }
        }
        for_each_word(first, granules, |word, mask| {
            if let Some(word) = slot.map().get(word) {
                debug_assert!(word.get() & mask == mask);
                word.set(word.get() & !mask);
            }
        });
    }

    /// Takes the place at `address` for an object of `bytes`, if it is free, in a co-location slot of this heap, aligned, and
    /// crosses no slot. Null otherwise.
    pub(crate) fn claim_at(self, address: usize, bytes: usize, align: usize) -> *mut u8 {
        let granules = granules_of(bytes);
        let first = slot_offset(address) / GRANULE_BYTES;
        // Larger requests are freed as large objects, which live elsewhere.
        if bytes > SMALL_BYTES_MAX
            || align > SMALL_BYTES_MAX
            || !address.is_multiple_of(GRANULE_BYTES)
            || address & (align - 1) != 0
            || first + granules > SLOT_GRANULES
        {
            return null_mut();
        }
        let Some(page) = self.page_containing(address) else {
            return null_mut();
        };
        if !self.is_free(page.slot, first, granules) {
            return null_mut();
        }
        self.claim(page.slot, first, granules)
    }

    /// Whether nothing is in a co-location slot of this heap.
    pub(crate) fn is_empty_slot(self, slot: SlotRef<'a>) -> bool {
        slot.map().iter().all(|word| word.get() == !0)
    }

    /// Makes `count` objects of so many granules each in an empty co-location slot of this heap, from its start, one behind the other. They must fit.
    pub(crate) fn fill_slot(self, slot: SlotRef<'a>, granules: usize, count: usize) {
        debug_assert!(self.is_empty_slot(slot) && granules * count <= SLOT_GRANULES);
        for_each_word(0, granules * count, |word, mask| {
            if let Some(word) = slot.map().get(word) {
                word.set(word.get() & !mask);
            }
        });
        // SAFETY: a co-location slot of this heap.
        let ends = unsafe { slot.ends() };
        let mut last = granules - 1;
        for _ in 0..count {
            set_end(ends, last);
            last += granules;
        }
        self.recount_pages(slot);
    }

    /// Takes the place at `object` for an object of `bytes`, if it is free, begins at a granule and crosses no slot; whether it did. The counts of empty
    /// blocks are left to [`recount_pages`](Self::recount_pages).
    ///
    /// # Safety
    /// - `object` is null, or lies in a co-location slot of this heap.
    #[inline]
    pub(crate) unsafe fn claim_uncounted(self, object: *mut u8, bytes: usize) -> bool {
        let (address, granules) = (object.addr(), granules_of(bytes));
        let granule = address / GRANULE_BYTES % 64;
        let last = granule + granules - 1;
        if last >= 64 || granules == 64 {
            // SAFETY: the caller's promise.
            return unsafe { self.claim_uncounted_across_words(object, granules) };
        }
        if object.is_null() || !address.is_multiple_of(GRANULE_BYTES) {
            return false;
        }
        // SAFETY: a co-location slot of this heap, by the caller's promise: no chunk's first, and mapped.
        let word = unsafe { map_word(address) };
        // SAFETY: as above.
        let end_word = unsafe { SlotRef::containing(address).end_word(address) };
        let (free, mask) = (word.get(), ((1 << granules) - 1) << granule);
        if free & mask != mask {
            return false;
        }
        word.set(free & !mask);
        end_word.store(
            end_word.load(Ordering::Relaxed) | 1 << last,
            Ordering::Relaxed,
        );
        true
    }

    /// What [`claim_uncounted`](Self::claim_uncounted) leaves: objects with bits in several words of the map, or all of one.
    ///
    /// # Safety
    /// - As for [`claim_uncounted`](Self::claim_uncounted).
    #[inline(never)]
    unsafe fn claim_uncounted_across_words(self, object: *mut u8, granules: usize) -> bool {
        let address = object.addr();
        let first = slot_offset(address) / GRANULE_BYTES;
        if object.is_null()
            || !address.is_multiple_of(GRANULE_BYTES)
            || first + granules > SLOT_GRANULES
        {
            return false;
        }
        // SAFETY: a co-location slot of this heap, by the caller's promise.
        let slot = unsafe { SlotRef::containing(address) };
        if !self.is_free(slot, first, granules) {
            return false;
        }
        // SAFETY: as above.
        set_end(unsafe { slot.ends() }, first + granules - 1);
        for_each_word(first, granules, |word, mask| {
            if let Some(word) = slot.map().get(word) {
                word.set(word.get() & !mask);
            }
        });
        true
    }

    #[inline]
    fn is_free(self, slot: SlotRef<'a>, first: usize, granules: usize) -> bool {
        if let Some((mask, _)) = masks_in_block(Run { first, granules }) {
            let word = slot.map().get(first / 64);
            return word.is_some_and(|word| word.get() & mask == mask);
        }
        let mut free = true;
        for_each_word(first, granules, |word, mask| {
            free &= slot
                .map()
                .get(word)
                .is_some_and(|word| word.get() & mask == mask);
        });
        free
    }

    /// Changes the size of a co-located object where it lies, if the granules behind it allow. Aborts with a message when no object is
    /// there, or none of `old_bytes` (`None`: whatever its size).
    pub(crate) fn resize_colocated(
        self,
        slot: SlotRef<'a>,
        address: usize,
        old_bytes: Option<usize>,
        new_bytes: usize,
    ) -> bool {
        // SAFETY: the caller has found a co-location slot of this heap.
        let ends = unsafe { slot.ends() };
        let Run {
            first,
            granules: old,
        } = own_run(slot, ends, address, old_bytes);
        let new = granules_of(new_bytes);
        if new == old {
            return true;
        }
        if new > old {
            // Not past a page: every hinted object lies in one.
            let last = first.saturating_add(new) - 1;
            if last / (PAGE_BLOCKS * BLOCK_GRANULES) != first / (PAGE_BLOCKS * BLOCK_GRANULES)
                || !self.is_free(slot, first + old, new - old)
            {
                return false;
            }
        }
        clear_end(ends, first + old - 1);
        set_end(ends, first + new - 1);
        if new > old {
            let grown = Run {
                first: first + old,
                granules: new - old,
            };
            self.set_taken(slot, grown);
        } else {
            let cut = Run {
                first: first + new,
                granules: old - new,
            };
            self.release(slot, cut);
        }
        true
    }

    /// Bytes of the co-located object at `address`. Aborts with a message when none is there.
    pub(crate) fn colocated_bytes(self, slot: SlotRef<'a>, address: usize) -> usize {
        // SAFETY: the caller has found a co-location slot of this heap.
        own_run(slot, unsafe { slot.ends() }, address, None).granules * GRANULE_BYTES
    }

    /// Frees a co-located object. Aborts with a message when no object is there, or none of `bytes` (`None`: whatever its size).
    #[inline]
    pub(crate) fn free_colocated(self, slot: SlotRef<'a>, address: usize, bytes: Option<usize>) {
        // SAFETY: the caller has found a co-location slot of this heap: no chunk's first.
        let (word, end_word) = unsafe { (map_word(address), slot.end_word(address)) };
        let (free, ends) = (word.get(), end_word.load(Ordering::Relaxed));
        let Some(mask) = own_bits(free, ends, address, bytes) else {
            return self.free_colocated_slow(slot, address, bytes);
        };
        end_word.store(ends & !mask, Ordering::Relaxed);
        word.set(free | mask);
        if block_of_word(free | mask, address / BLOCK_BYTES) == 0xff {
            self.on_empty_block(slot, slot_offset(address) / BLOCK_BYTES);
        }
    }

    /// What [`free_colocated`](Self::free_colocated) leaves: objects of more than a block, at the start of a word of the map, and what is none.
    #[inline(never)]
    fn free_colocated_slow(self, slot: SlotRef<'a>, address: usize, bytes: Option<usize>) {
        // SAFETY: the caller has found a co-location slot of this heap.
        let ends = unsafe { slot.ends() };
        let run = own_run(slot, ends, address, bytes);
        clear_end(ends, run.first + run.granules - 1);
        self.release(slot, run);
    }

    /// Marks granules, which are taken, as free.
    #[inline]
    fn release(self, slot: SlotRef<'a>, run: Run) {
        let Some((mask, block)) = masks_in_block(run) else {
            return self.release_across_blocks(slot, run);
        };
        if let Some(word) = slot.map().get(run.first / 64) {
            let free = word.get() | mask;
            word.set(free);
            if free & block == block {
                self.on_empty_block(slot, run.first / BLOCK_GRANULES);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn release_across_blocks(self, slot: SlotRef<'a>, run: Run) {
        set_free(slot, run);
        let Run { first, granules } = run;
        for block in first / BLOCK_GRANULES..=(first + granules - 1) / BLOCK_GRANULES {
            if block_map(slot, block) == 0xff && self.on_empty_block(slot, block) {
                return;
            }
        }
    }

    /// Checks the maps and counters of all co-location slots, and the list of roomy pages. For tests.
    pub(crate) fn check_pages(self) -> Result<(), &'static str> {
        let mut verdict = Ok(());
        registry::each_chunk_of(self.heap(), |chunk| {
            for slot in 1..CHUNK_SLOTS {
                // SAFETY: a chunk of this heap, which only this thread unmaps.
                let slot: SlotRef<'a> = unsafe { SlotRef::containing(chunk + slot * SLOT_BYTES) };
                if slot.slab().tag() == self.tag(kind::COLOCATED) {
                    verdict = verdict.and(self.check_colocated(slot));
                }
            }
        });
        verdict?;
        let mut previous: *const PageInfo = null();
        let mut next = self.roomy_pages.get();
        // SAFETY: null or an info in the list; infos are never unmapped.
        while let Some(info) = unsafe { next.as_ref() } {
            if info.prev.get() != previous || !info.listed.get() {
                return Err("the list of roomy pages is broken");
            }
            let Some(page) = self.page_containing(info.base.get().addr()) else {
                return Err("a listed page is no co-location page of this heap");
            };
            if !core::ptr::eq(page.info, info) {
                return Err("a listed page has another page's info");
            }
            previous = next;
            next = info.next.get();
        }
        // SAFETY: null or the info of a page in use.
        if let Some(info) = unsafe { self.seat_page.get().as_ref() }
            && (self.page_containing(info.base.get().addr()).is_none() || info.listed.get())
        {
            return Err("the seat page is listed, or no co-location page of this heap");
        }
        Ok(())
    }

    /// Checks the maps and counters of one co-location slot. For tests.
    fn check_colocated(self, slot: SlotRef<'a>) -> Result<(), &'static str> {
        for in_slot in 0..SLOT_PAGES {
            let page = self.page_at(slot, in_slot);
            if bits::empty_blocks(&page.read()).count_ones()
                != u32::from(page.info.empty_blocks.get())
            {
                return Err("a page's count of empty blocks is wrong");
            }
        }
        // SAFETY: a co-location slot of this heap.
        ends::check(slot, unsafe { slot.ends() })
    }
}

/// Makes an object of granules (1..=8) in the block of the page where `policy`, one that packs, puts what belongs to block `near`;
/// returns that block and the object's address. `None` when no block has room.
#[inline]
fn take_packed(
    page: Page<'_>,
    near: usize,
    granules: usize,
    policy: Policy,
) -> Option<(usize, *mut u8)> {
    let candidates = bits::blocks_with_room(&page.read(), granules, 1);
    let block = if policy == Policy::Closest {
        bits::nearest(candidates, near)?
    } else if candidates != 0 {
        candidates.trailing_zeros() as usize
    } else {
        return None;
    };
    let place = page.block(block);
    // SAFETY: on the page, so in a co-location slot of a chunk that is mapped while the page is at hand.
    let (word, end_word) = unsafe { (map_word(place.addr()), page.slot.end_word(place.addr())) };
    let block_map = block_of_word(word.get(), block);
    let object = place.wrapping_add(bits::fit_anywhere(block_map, granules)? * GRANULE_BYTES);
    take_granules(word, end_word, object.addr(), granules);
    if block_map == 0xff {
        let empty = &page.info.empty_blocks;
        empty.set(empty.get().wrapping_sub(1));
    }
    Some((block, object))
}

/// Makes an object of the first granules (1..=8) of `block` (0..64) of the page, which is empty; returns its address.
#[inline]
fn take_empty_block(page: Page<'_>, block: usize, granules: usize) -> *mut u8 {
    let place = page.block(block);
    // SAFETY: on the page, so in a co-location slot of a chunk that is mapped while the page is at hand.
    let (word, end_word) = unsafe { (map_word(place.addr()), page.slot.end_word(place.addr())) };
    take_granules(word, end_word, place.addr(), granules);
    let empty = &page.info.empty_blocks;
    empty.set(empty.get().wrapping_sub(1));
    place
}

/// Makes an object of the free granules from `place` on, which lie in one block: `word` and `end_word` have their bits.
#[inline]
fn take_granules(word: &Cell<u64>, end_word: &AtomicU64, place: usize, granules: usize) {
    let first = place / GRANULE_BYTES % 64;
    word.set(word.get() & !(((1 << granules) - 1) << first));
    let ends = end_word.load(Ordering::Relaxed);
    end_word.store(ends | 1 << (first + granules - 1), Ordering::Relaxed);
}

/// Counts an object that was placed in block `block` of its page, with a hint at block `near` of the same page.
#[inline]
fn count_on_page(placed: &[AtomicU64; OUTCOMES], block: usize, near: usize) {
    let outcome = if block / 4 == near / 4 {
        Outcome::SameGroup
    } else {
        Outcome::SamePage
    };
    count(placed, outcome);
}

/// The free map of block `block` (0..1024) of a co-location slot.
#[inline]
fn block_map(slot: SlotRef<'_>, block: usize) -> u8 {
    let word = slot.map().get(block / 8).map_or(0, Cell::get);
    block_of_word(word, block)
}

/// The free map of block `block`, whose word of the free map is `word`.
#[inline]
fn block_of_word(word: u64, block: usize) -> u8 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "takes one byte of the word"
    )]
    let map = (word >> (8 * (block % 8))) as u8;
    map
}

/// For a run that lies inside one block: its bits in its word of the free map, and those of the whole block.
#[inline]
fn masks_in_block(run: Run) -> Option<(u64, u64)> {
    let bit = run.first % 64;
    (run.first % BLOCK_GRANULES + run.granules <= BLOCK_GRANULES).then(|| {
        (
            ((1u64 << run.granules) - 1) << bit,
            0xff << (bit / BLOCK_GRANULES * BLOCK_GRANULES),
        )
    })
}
