//! Co-location pages: where hinted objects lie, and how their places are found.
//!
//! A page of 4 KiB is 64 blocks of 64 B; its free map has a byte a block and a bit a granule, eight words in all, and lies in one
//! cache line of the chunk's metadata. An object may start at any granule of its alignment, and a second map says where it ends (`ends`).
//! Served in this order (thesis, section 4.2.1, and what DRAM adds to it):
//!
//! 1. the hint's own block, if it has room;
//! 2. another place on the hint's page, by the [`Policy`];
//! 3. where blocks are reserved ([`set_reserved_blocks`](crate::set_reserved_blocks)): the page *tied* to the hint's, which took what did not fit before;
//! 4. a *seat*: the place where anything starts that has no neighbour to join, beside what was freed last or on the heap's current seat page. Where blocks are
//!    reserved, the hint's page is tied to the seat's, when it lies in the same chunk.
//!
//! By `Closest`, objects may lie at the border of two blocks. The thesis's lie in one, so that of three objects of 24 B in a row every third begins a block, and a quarter of
//! the memory, and of what a walk brings in, is gaps. The nearest room is looked for in the 512 bytes around the hint, whose map is one word, and then in the next such
//! bytes upwards and downwards; no object crosses these. What is built in one go then lies as a bump allocator would have it, and nearly as fast: the *run* of free granules
//! behind the latest object is known without a look at the map, and comes before farther words.
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
use crate::stats::{Outcome, count};

/// The largest object, in bytes, that a hint is honoured for. Larger ones gain nothing from a neighbour: their own blocks are
/// what is fetched.
pub(crate) const HINTED_BYTES_MAX: usize = 512;

/// A page with this many empty blocks more than are reserved takes new structures again.
const ROOMY_BLOCKS: u8 = 16;

/// How many roomy pages are looked at for a request that the first does not fit.
const ROOMY_PAGES_TRIED: usize = 8;

/// Granules of a page.
const PAGE_GRANULES: usize = PAGE_BLOCKS * BLOCK_GRANULES;

/// Blocks of a page, as its counter counts them.
const ALL_BLOCKS: u8 = 64;
const _: () = assert!(ALL_BLOCKS as usize == PAGE_BLOCKS);

/// What is to be placed.
#[derive(Clone, Copy)]
struct Request {
    granules: usize,
    /// In bytes, a power of two.
    align: usize,
}

impl Request {
    #[inline(always)]
    fn new(bytes: usize, align: usize) -> Self {
        Self {
            granules: granules_of(bytes),
            align,
        }
    }

    /// Whether hints are honoured for it.
    #[inline(always)]
    fn is_served(self) -> bool {
        self.granules <= HINTED_BYTES_MAX / GRANULE_BYTES && self.align <= BLOCK_BYTES
    }

    /// Whether it fits a block.
    #[inline(always)]
    fn fits_block(self) -> bool {
        self.granules <= BLOCK_GRANULES && self.align <= BLOCK_BYTES
    }

    fn blocks(self) -> usize {
        self.granules.div_ceil(BLOCK_GRANULES)
    }

    /// A granule of the page (0..512) for this request, which is served; `near` is the granule that it should be near to, whose block is full.
    ///
    /// An object larger than a block starts at a block of its own, so that it touches as few as it can; but the closest room may be at the border of blocks.
    #[inline]
    fn find(self, page: Page<'_>, near: usize, policy: Policy) -> Option<usize> {
        match policy {
            Policy::Closest => bits::nearest_run(page.words(), near, self.granules, self.align),
            Policy::FirstFit if self.granules <= BLOCK_GRANULES => {
                bits::first_fit(page.words(), self.granules, self.align)
            }
            Policy::NewBlock | Policy::FirstFit => self.find_blocks(page, near, policy),
        }
    }

    /// [`find`](Self::find) of empty blocks.
    #[inline(never)]
    fn find_blocks(self, page: Page<'_>, near: usize, policy: Policy) -> Option<usize> {
        let mut candidates = bits::empty_blocks(&page.read());
        if self.granules > BLOCK_GRANULES {
            candidates = bits::set_runs(candidates, self.blocks());
        }
        let block = if policy == Policy::NewBlock {
            bits::next_in_group(candidates, near / BLOCK_GRANULES)
        } else {
            (candidates != 0).then(|| candidates.trailing_zeros() as usize)
        };
        Some(block? * BLOCK_GRANULES)
    }

    /// A granule of the page for something that has no neighbour on it, if it has more empty blocks than are reserved.
    fn find_seat(self, page: Page<'_>, policy: Policy) -> Option<usize> {
        (page.info.empty_blocks.get() > reserved()).then(|| self.find(page, 0, policy))?
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

    /// Where granule `granule` (0..512) is.
    #[inline]
    fn granule(self, granule: usize) -> *mut u8 {
        let offset = self.in_slot * PAGE_BYTES + granule % PAGE_GRANULES * GRANULE_BYTES;
        self.slot.base().wrapping_add(offset)
    }

    /// Makes an object of granules (1..=8) from `granule` (0..512) on, which are free and lie in one word of the map; returns its address.
    #[inline]
    fn claim(self, granule: usize, granules: usize) -> *mut u8 {
        let place = self.granule(granule);
        // SAFETY: on the page, so in a co-location slot of a chunk that is mapped while the page is at hand.
        let (word, end_word) =
            unsafe { (map_word(place.addr()), self.slot.end_word(place.addr())) };
        let free = word.get();
        take_granules(word, end_word, place.addr(), granules);
        self.info.count_opened(free, granule % 64, granules);
        place
    }
}

impl PageInfo {
    /// Counts the blocks that were empty and are not any more: `free` is what a word of the page's map was before granules from `bit` (0..64) on, at most
    /// as many as a block has, were taken.
    #[inline(always)]
    fn count_opened(&self, free: u64, bit: usize, granules: usize) {
        let (first, last) = (bit / BLOCK_GRANULES, (bit + granules - 1) / BLOCK_GRANULES);
        let mut opened = u8::from(block_of_word(free, first) == 0xff);
        if last != first {
            // At the border of two blocks.
            opened += u8::from(block_of_word(free, last) == 0xff);
        }
        if opened != 0 {
            self.empty_blocks
                .set(self.empty_blocks.get().wrapping_sub(opened));
        }
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
    /// The common case in one go: an object of no more than a block, near a hint in the 512 bytes around it whose map is one word.
    #[inline]
    pub(crate) fn alloc_near(
        self,
        hint: usize,
        bytes: usize,
        align: usize,
        policy: Policy,
    ) -> *mut u8 {
        let request = Request::new(bytes, align);
        if policy == Policy::Closest {
            let object = self.alloc_in_run(hint, request);
            if !object.is_null() {
                return object;
            }
        }
        let Some(page) = self.page_containing(hint) else {
            return self.alloc_on_seat(request, policy);
        };
        // SAFETY: a co-location page of this heap.
        let object = unsafe { take_in_word(hint, page.info, request, policy, true) };
        if object.is_null() {
            return self.alloc_out_of_word(page, hint, request, policy);
        }
        self.count_on_page(object.addr(), request, hint);
        if policy == Policy::Closest {
            self.note_run(page, object, request);
        }
        object
    }

    /// Allocates at the start of the run of granules behind the latest object, if the hint lies before it on the same page, and no other room is in the 512 bytes
    /// around the hint. Null otherwise.
    ///
    /// What is built in one go comes this way. Where the next object goes is known without a look at the map, so that one allocation need not wait for the
    /// other; the map is only asked whether the place is free.
    #[inline(always)]
    fn alloc_in_run(self, hint: usize, request: Request) -> *mut u8 {
        let place = (self.run_next.get() + request.align - 1) & !(request.align - 1);
        let bytes = request.granules * GRANULE_BYTES;
        if request.align > BLOCK_BYTES
            || place ^ hint >= PAGE_BYTES
            || hint >= place
            || place + bytes > self.run_end.get()
        {
            return null_mut();
        }
        // SAFETY: the run is on a co-location page of this heap, by the invariant of `run_end`; and so is the hint.
        let (word, end_word, hint_word) = unsafe {
            let end_word = SlotRef::containing(place).end_word(place);
            (map_word(place), end_word, map_word(hint))
        };
        let (free, bit) = (word.get(), place / GRANULE_BYTES % 64);
        // The run is shorter than a word: an object precedes it.
        let mask = ((1 << (request.granules % 64)) - 1) << bit;
        // Room in the hint's word, which is nearer: in the run's word, before the run.
        let mut nearer = bits::run_starts(hint_word.get(), request.granules);
        if core::ptr::eq(word, hint_word) {
            nearer &= (1 << bit) - 1;
        }
        if free & mask != mask || nearer & bits::start_lanes(request.align) != 0 {
            return null_mut();
        }
        self.run_next.set(place + bytes);
        self.count_on_page(place, request, hint);
        if request.granules > BLOCK_GRANULES {
            // SAFETY: as above.
            let slot: SlotRef<'a> = unsafe { SlotRef::containing(place) };
            return self.claim(slot, slot_offset(place) / GRANULE_BYTES, request.granules);
        }
        take_granules(word, end_word, place, request.granules);
        // SAFETY: as above; infos are never unmapped.
        let info = unsafe { &*self.run_info.get() };
        info.count_opened(free, bit, request.granules);
        core::ptr::with_exposed_provenance_mut(place)
    }

    /// Notes the free granules behind an object that was just made on `page`, for [`alloc_in_run`](Self::alloc_in_run).
    #[inline]
    fn note_run(self, page: Page<'a>, object: *mut u8, request: Request) {
        let next = object.addr() + request.granules * GRANULE_BYTES;
        let bit = next / GRANULE_BYTES % 64;
        if bit == 0 {
            return;
        }
        // SAFETY: in the same word as the object, on a co-location page of this heap.
        let free = unsafe { map_word(next) }.get();
        let granules = (!(free >> bit)).trailing_zeros() as usize;
        self.run_info.set(page.info);
        self.run_next.set(next);
        self.run_end.set(next + granules * GRANULE_BYTES);
    }

    /// Counts an object that was placed at `place`, on the page of `hint`, by the block of its end that is farther from there.
    #[inline(always)]
    fn count_on_page(self, place: usize, request: Request, hint: usize) {
        const _: () = assert!(
            Outcome::SameBlock as usize == 0
                && Outcome::SameGroup as usize == 1
                && Outcome::SamePage as usize == 2
        );
        let last = place + request.granules * GRANULE_BYTES - 1;
        let end = if place < hint { place } else { last };
        let (block, near) = (end / BLOCK_BYTES, hint / BLOCK_BYTES);
        let farther = usize::from(block != near) + usize::from(block / 4 != near / 4);
        if let Some(counter) = self.placed.get(farther) {
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Allocates near a hint on `page`, where [`take_in_word`] has found nothing: on the rest of the page, or beyond it.
    #[inline(never)]
    fn alloc_out_of_word(
        self,
        page: Page<'a>,
        hint: usize,
        request: Request,
        policy: Policy,
    ) -> *mut u8 {
        if !request.is_served() {
            return self.refuse_hint();
        }
        let near = hint % PAGE_BYTES / GRANULE_BYTES;
        let is_full = policy == Policy::NewBlock && page.info.empty_blocks.get() == 0;
        if !is_full && let Some(granule) = request.find(page, near, policy) {
            self.count_on_page(page.granule(granule).addr(), request, hint);
            let object = self.claim_in(page, granule, request);
            if policy == Policy::Closest {
                self.note_run(page, object, request);
            }
            return object;
        }
        if reserved() > 0 {
            return self.alloc_on_tied_or_seat(page, request, policy);
        }
        // Without reserved blocks, a seat page is full before another request comes from the same page: of a random tree's hints, 0.3% found room on
        // the tied page, and each looked at two cold page infos for it. So there are ties only where blocks are reserved.
        count(&self.placed, Outcome::Elsewhere);
        self.take_seat(request, policy)
            .map_or(null_mut(), |(_, object)| object)
    }

    /// Allocates for a hint at `page`, which has no place for the request: on the page tied to it, else on a seat, whose page is then tied to it.
    #[cold]
    #[inline(never)]
    fn alloc_on_tied_or_seat(self, page: Page<'a>, request: Request, policy: Policy) -> *mut u8 {
        let desc = page.slot.desc();
        if let Some(object) = self.alloc_on_tied(desc, page.info, request, policy) {
            count(&self.placed, Outcome::TiedPage);
            return object;
        }
        count(&self.placed, Outcome::Elsewhere);
        let Some((seat, object)) = self.take_seat(request, policy) else {
            return null_mut();
        };
        if core::ptr::eq(self.page_of(seat).slot.desc(), desc) {
            let index = page_index(seat.base.get().addr());
            page.info.tied.set(u16::try_from(index).unwrap_or(0));
        }
        object
    }

    /// Allocates what has no neighbour.
    #[inline(never)]
    fn alloc_on_seat(self, request: Request, policy: Policy) -> *mut u8 {
        if !request.is_served() {
            return self.refuse_hint();
        }
        count(&self.placed, Outcome::NotUsable);
        self.take_seat(request, policy)
            .map_or(null_mut(), |(_, object)| object)
    }

    /// Counts a hint that cannot be honoured.
    #[cold]
    fn refuse_hint(self) -> *mut u8 {
        count(&self.placed, Outcome::NotUsable);
        null_mut()
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
        if request.granules <= BLOCK_GRANULES {
            // Inside one block, or at the border of two in one word.
            return page.claim(granule, request.granules);
        }
        self.claim(
            page.slot,
            page.in_slot * PAGE_GRANULES + granule,
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
        self.freed_place.set(address);
        let block = slot_offset(address) / BLOCK_BYTES;
        if mask >> (block % 8 * BLOCK_GRANULES) > 0xff {
            return self.on_freed_across(slot, block, address);
        }
        if block_of_word(free | mask, block) == 0xff {
            self.freed_place.set(address | 1);
            self.on_empty_block(slot, block);
        }
    }

    /// Counts what has become empty of block `block` and the next, after an object at their border, at `address`, was freed.
    #[inline(never)]
    fn on_freed_across(self, slot: SlotRef<'a>, block: usize, address: usize) {
        for block in [block, block + 1] {
            if block_map(slot, block) == 0xff {
                self.freed_place.set(address | 1);
                if self.on_empty_block(slot, block) {
                    return;
                }
            }
        }
    }

    /// What [`free_colocated`](Self::free_colocated) leaves: objects of more than a block, at the start of a word of the map, and what is none.
    #[inline(never)]
    fn free_colocated_slow(self, slot: SlotRef<'a>, address: usize, bytes: Option<usize>) {
        // SAFETY: the caller has found a co-location slot of this heap.
        let ends = unsafe { slot.ends() };
        let run = own_run(slot, ends, address, bytes);
        clear_end(ends, run.first + run.granules - 1);
        // Whether a block has become empty is found out when the place is looked at.
        self.freed_place.set(address | 1);
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
        // SAFETY: as above.
        if let Some(info) = unsafe { self.seat_page.get().as_ref() }
            && self.latest_seat.get() & !(PAGE_BYTES - 1) != info.base.get().addr()
        {
            return Err("the latest seat is not on the seat page");
        }
        let (next, end) = (self.run_next.get(), self.run_end.get());
        if next < end
            && (next / (64 * GRANULE_BYTES) != (end - 1) / (64 * GRANULE_BYTES)
                || self
                    .page_containing(next)
                    .is_none_or(|page| !core::ptr::eq(page.info, self.run_info.get())))
        {
            return Err("the latest run is in no word of a co-location page of this heap");
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

/// Makes an object of the free granules from `place` on, whose bits `word` and `end_word` have.
#[inline]
fn take_granules(word: &Cell<u64>, end_word: &AtomicU64, place: usize, granules: usize) {
    let first = place / GRANULE_BYTES % 64;
    word.set(word.get() & !(((1 << granules) - 1) << first));
    let ends = end_word.load(Ordering::Relaxed);
    end_word.store(ends | 1 << (first + granules - 1), Ordering::Relaxed);
}

/// Makes an object of up to a block in the block of `near` if it has room, else where the policy says, as long as that is in the 512 bytes around `near` whose
/// map is one word. Null otherwise. What does not `join` a neighbour begins at a block of its own under [`Policy::NewBlock`].
///
/// # Safety
/// - `near` lies in a co-location page of the calling thread's heap, and `info` is of that page.
#[inline(always)]
unsafe fn take_in_word(
    near: usize,
    info: &PageInfo,
    request: Request,
    policy: Policy,
    join: bool,
) -> *mut u8 {
    if !request.fits_block() {
        return null_mut();
    }
    let granules = request.granules;
    // Both by the same address: two words that are often cold are read at the same time.
    // SAFETY: by the caller's promise, no chunk's first slot, and mapped: only this thread unmaps the chunks of its heap.
    let (word, end_word) = unsafe { (map_word(near), SlotRef::containing(near).end_word(near)) };
    let (free, at) = (word.get(), near / GRANULE_BYTES % 64);
    let joins = join || policy != Policy::NewBlock;
    let block_map = block_of_word(free, at / BLOCK_GRANULES);
    let bit = if joins && let Some(fit) = bits::fit_in_block(block_map, granules, request.align) {
        Some((at & !(BLOCK_GRANULES - 1)) + fit)
    } else {
        match policy {
            Policy::NewBlock => bits::next_empty_in_word(free, at),
            Policy::Closest => {
                let starts = bits::run_starts(free, granules) & bits::start_lanes(request.align);
                bits::nearest(starts, at)
            }
            Policy::FirstFit => None,
        }
    };
    let Some(bit) = bit else {
        return null_mut();
    };
    let place = (near & !(64 * GRANULE_BYTES - 1)) + bit * GRANULE_BYTES;
    take_granules(word, end_word, place, granules);
    info.count_opened(free, bit, granules);
    core::ptr::with_exposed_provenance_mut(place)
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
