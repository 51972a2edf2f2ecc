//! Co-location pages: where hinted objects lie, and how their places are found.
//!
//! A page of 4 KiB is 64 blocks of 64 B. Its free map, one cache line of the chunk's metadata, has
//! a bit for each granule. The search tries, in this order (thesis, section 4.2.1):
//!
//! 1. the hint's own block;
//! 2. another place on the hint's page, by the [`Policy`];
//! 3. if blocks are reserved ([`set_reserved_blocks`](crate::set_reserved_blocks)), the page *tied*
//!    to the hint's, which took what did not fit before;
//! 4. an *opening* (`openings`): beside what was freed last, or on the arena's opening page. If
//!    blocks are reserved, the hint's page is then tied to that page, within one chunk.
//!
//! `Closest` lets objects cross the border of two blocks, but not of two words of the map. It
//! remembers the *run* of free granules behind the latest object, so that objects built in one go
//! are placed one behind the other.

mod openings;

use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::arena::Own;
use crate::bits;
use crate::chunk::{SlotRef, kind, map_word, page_index};
use crate::geometry::{
    BLOCK_BYTES, BLOCK_GRANULES, CHUNK_SLOTS, GRANULE_BYTES, PAGE_BYTES, PAGE_GRANULES, SLOT_PAGES,
    chunk_base, slot_offset,
};
use crate::outcome::{Outcome, count};
use crate::pages::{Pages, Run, Word, granules_of};
use crate::policy::{Policy, reserved};
use crate::registry;
use crate::size_class::SMALL_BYTES_MAX;

/// The largest object, in bytes, that a hint is honoured for. Larger ones gain nothing.
pub const HINTED_BYTES_MAX: usize = 512;

/// A page with this many empty blocks more than are reserved takes new structures again.
const ROOMY_BLOCKS: u32 = 16;

/// How many roomy pages are tried for a request.
const ROOMY_PAGES_TRIED: usize = 8;

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

    /// A granule of the page (0..512) for this request, which is served. `near` is a granule in a
    /// full block. An object larger than a block starts at the border of a block, except by
    /// `Closest`.
    #[inline]
    fn find(self, page: Page<'_>, near: usize, policy: Policy) -> Option<usize> {
        match policy {
            Policy::Closest => bits::nearest_run(&page.map(), near, self.granules, self.align),
            Policy::FirstFit if self.granules <= BLOCK_GRANULES => {
                bits::first_fit(&page.map(), self.granules, self.align)
            }
            Policy::NewBlock | Policy::FirstFit => self.find_blocks(page, near, policy),
        }
    }

    /// [`find`](Self::find) of empty blocks.
    #[inline]
    fn find_blocks(self, page: Page<'_>, near: usize, policy: Policy) -> Option<usize> {
        let mut candidates = page.empty_blocks();
        if self.granules > BLOCK_GRANULES {
            candidates = bits::run_starts(candidates, self.blocks());
        }
        let block = if policy == Policy::NewBlock {
            bits::next_in_group(candidates, near / BLOCK_GRANULES)
        } else {
            (candidates != 0).then(|| candidates.trailing_zeros() as usize)
        };
        Some(block? * BLOCK_GRANULES)
    }

    /// A granule of the page for an object without a neighbour, if the page has openings.
    fn find_opening(self, page: Page<'_>, policy: Policy) -> Option<usize> {
        page.has_openings().then(|| self.find(page, 0, policy))?
    }
}

/// A co-location page of the calling thread's arena.
#[derive(Clone, Copy)]
struct Page<'a> {
    pages: Pages<'a>,
    /// Number in the slot, 0..16.
    in_slot: usize,
}

impl<'a> Page<'a> {
    /// Page number `in_slot`, modulo 16, of a slot.
    #[inline]
    fn new(pages: Pages<'a>, in_slot: usize) -> Self {
        let in_slot = in_slot % SLOT_PAGES;
        Self { pages, in_slot }
    }

    #[inline]
    fn map(self) -> bits::PageMap {
        self.pages.page_map(self.in_slot)
    }

    #[inline]
    fn empty_blocks(self) -> u64 {
        self.pages.empty_blocks(self.in_slot)
    }

    /// Its bit in its slot's header.
    fn bit(self) -> u16 {
        1 << self.in_slot
    }

    /// Whether the arena has listed it for openings.
    #[inline]
    fn is_listed(self) -> bool {
        self.pages.slot().slab().listed_pages.get() & self.bit() != 0
    }

    /// Whether it has more empty blocks than are reserved.
    fn has_openings(self) -> bool {
        self.empty_blocks().count_ones() > u32::from(reserved())
    }

    /// The address of granule `granule` (0..512).
    #[inline]
    fn granule(self, granule: usize) -> *mut u8 {
        let offset = self.in_slot * PAGE_BYTES + granule * GRANULE_BYTES;
        self.pages.slot().base().wrapping_add(offset)
    }

    /// Makes an object of free granules, from `granule` (0..512) on; returns its address.
    #[inline]
    fn claim(self, granule: usize, request: Request) -> *mut u8 {
        self.pages.claim(Run {
            first: self.in_slot * PAGE_GRANULES + granule,
            granules: request.granules,
        });
        self.granule(granule)
    }
}

impl<'a> Own<'a> {
    /// The pages of the co-location slot of this arena that contains `address`, which may be any
    /// number.
    #[inline]
    pub(crate) fn pages_containing(self, address: usize) -> Option<Pages<'a>> {
        if !registry::is_chunk_of(address, self.arena()) {
            return None;
        }
        // SAFETY: a chunk of this arena, which only this thread unmaps.
        let slot: SlotRef<'a> = unsafe { SlotRef::containing(address) };
        // SAFETY: the tag says that it is a co-location slot of this arena.
        (slot.slab().tag() == self.tag(kind::COLOCATED)).then(|| unsafe { Pages::of(slot) })
    }

    /// Whether `address`, which may be any number, lies in a co-location slot of this arena.
    #[inline]
    pub(crate) fn is_colocated(self, address: usize) -> bool {
        self.page_containing(address).is_some()
    }

    /// The co-location page of this arena that contains `address`, which may be any number.
    #[inline]
    fn page_containing(self, address: usize) -> Option<Page<'a>> {
        let pages = self.pages_containing(address)?;
        Some(Page::new(pages, slot_offset(address) / PAGE_BYTES))
    }

    /// Allocates near `hint`, which may be any number. Null if hints do not apply to the request
    /// or the OS refuses memory: the caller then allocates without a hint.
    #[inline]
    pub(crate) fn alloc_near(
        self,
        hint: usize,
        bytes: usize,
        align: usize,
        policy: Policy,
    ) -> *mut u8 {
        self.alloc_beside(hint, bytes, align, policy)
            .unwrap_or_else(|| self.alloc_on_opening(Request::new(bytes, align), policy))
    }

    /// As [`alloc_near`](Self::alloc_near), if `hint` lies on a co-location page of this arena.
    #[inline]
    pub(crate) fn alloc_beside(
        self,
        hint: usize,
        bytes: usize,
        align: usize,
        policy: Policy,
    ) -> Option<*mut u8> {
        let request = Request::new(bytes, align);
        if policy == Policy::Closest {
            let object = self.alloc_in_run(hint, request);
            if !object.is_null() {
                return Some(object);
            }
        }
        let page = self.page_containing(hint)?;
        // SAFETY: in a co-location slot of this arena.
        let object = unsafe { take_in_word(hint, request, policy, true) };
        if object.is_null() {
            return Some(self.alloc_out_of_word(page, hint, request, policy));
        }
        self.count_on_page(object.addr(), request, hint);
        if policy == Policy::Closest {
            self.note_run(object, request);
        }
        Some(object)
    }

    /// Allocates at the start of the run behind the latest object, if the hint lies before it on
    /// the same page and its word has no nearer room. Null otherwise. The place does not depend on
    /// the map, so that the processor can overlap several allocations.
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
        // SAFETY: the run is on a co-location page of this arena, by the invariant of `run_end`;
        // and so is the hint.
        let (word, hint_word) = unsafe { (Word::containing(place), map_word(hint)) };
        let (free, bit) = (word.free(), place / GRANULE_BYTES % 64);
        // The run is shorter than a word: an object precedes it.
        let mask = ((1 << (request.granules % 64)) - 1) << bit;
        // Nearer room: in the hint's word, and before the run if that is the run's word.
        let mut nearer = bits::run_starts(hint_word.get(), request.granules);
        if (place ^ hint) < 64 * GRANULE_BYTES {
            nearer &= (1 << bit) - 1;
        }
        if free & mask != mask || nearer & bits::start_lanes(request.align) != 0 {
            return null_mut();
        }
        self.run_next.set(place + bytes);
        self.count_on_page(place, request, hint);
        word.claim(bit, request.granules);
        core::ptr::with_exposed_provenance_mut(place)
    }

    /// Records the run behind a new object, for [`alloc_in_run`](Self::alloc_in_run).
    #[inline]
    fn note_run(self, object: *mut u8, request: Request) {
        let next = object.addr() + request.granules * GRANULE_BYTES;
        let bit = next / GRANULE_BYTES % 64;
        if bit == 0 {
            return;
        }
        // SAFETY: in the same word as the object, on a co-location page of this arena.
        let free = unsafe { Word::containing(next) }.free();
        let granules = (!(free >> bit)).trailing_zeros() as usize;
        self.run_next.set(next);
        self.run_end.set(next + granules * GRANULE_BYTES);
    }

    /// Counts an object at `place`, on the page of `hint`, by its end farther from the hint.
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

    /// Allocates near a hint on `page` whose word has no room: on the page, or beyond it.
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
        if let Some(granule) = request.find(page, near, policy) {
            let object = page.claim(granule, request);
            self.count_on_page(object.addr(), request, hint);
            if policy == Policy::Closest {
                self.note_run(object, request);
            }
            return object;
        }
        if reserved() > 0 {
            return self.alloc_on_tied_or_opening(page, request, policy);
        }
        // Without reserved blocks, tied pages do not pay: of a random tree's hints, 0.3 % found
        // room there, and each read two cold cache lines.
        count(&self.placed, Outcome::Elsewhere);
        self.take_opening(request, policy)
    }

    /// Allocates on the page tied to `page`, which is full; else on an opening, whose page is then
    /// tied to it.
    #[cold]
    #[inline(never)]
    fn alloc_on_tied_or_opening(self, page: Page<'a>, request: Request, policy: Policy) -> *mut u8 {
        if let Some(object) = self.alloc_on_tied(page, request, policy) {
            count(&self.placed, Outcome::TiedPage);
            return object;
        }
        count(&self.placed, Outcome::Elsewhere);
        let opening = self.take_opening(request, policy);
        let slot = page.pages.slot();
        // Collecting remote frees may have given the page's slot back, but not its chunk if the
        // opening lies there.
        if !opening.is_null() && chunk_base(opening.addr()) == chunk_base(slot.base().addr()) {
            let index = u16::try_from(page_index(opening.addr())).unwrap_or(0);
            slot.tie(page.in_slot).set(index);
        }
        opening
    }

    /// Allocates an object without a neighbour.
    #[inline(never)]
    fn alloc_on_opening(self, request: Request, policy: Policy) -> *mut u8 {
        if !request.is_served() {
            return self.refuse_hint();
        }
        count(&self.placed, Outcome::NotUsable);
        self.take_opening(request, policy)
    }

    /// Counts a hint that cannot be honoured.
    #[cold]
    fn refuse_hint(self) -> *mut u8 {
        count(&self.placed, Outcome::NotUsable);
        null_mut()
    }

    fn alloc_on_tied(self, page: Page<'a>, request: Request, policy: Policy) -> Option<*mut u8> {
        let slot = page.pages.slot();
        let tie = slot.tie(page.in_slot);
        let tied = usize::from(tie.get());
        if tied == 0 {
            return None;
        }
        // The tied page's slot may have been given back since, and taken for something else.
        let found = self.page_containing(chunk_base(slot.base().addr()) + tied * PAGE_BYTES);
        let room =
            found.filter(|tied| tied.empty_blocks() != 0 && !self.is_reserved(tied.pages.slot()));
        let Some(tied) = room else {
            tie.set(0);
            return None;
        };
        let granule = request.find(tied, 0, policy)?;
        Some(tied.claim(granule, request))
    }

    /// Makes an object at `address`, if that is aligned, in a co-location slot of this arena, and
    /// followed by enough free granules of the slot. Null otherwise.
    pub(crate) fn claim_at(self, address: usize, bytes: usize, align: usize) -> *mut u8 {
        let run = Run {
            first: slot_offset(address) / GRANULE_BYTES,
            granules: granules_of(bytes),
        };
        // Larger requests are freed as large objects, which live elsewhere.
        if bytes > SMALL_BYTES_MAX
            || align > SMALL_BYTES_MAX
            || address & (align.max(GRANULE_BYTES) - 1) != 0
        {
            return null_mut();
        }
        match self.pages_containing(address) {
            Some(pages) if pages.claim_if_free(run) => {
                core::ptr::with_exposed_provenance_mut(address)
            }
            _ => null_mut(),
        }
    }

    /// Changes the size of a co-located object in place, if the granules behind it are free. Aborts
    /// with a message if no object of `old_bytes` (`None`: of any size) starts there.
    ///
    /// # Safety
    /// - `slot` contains `address`, and is a co-location slot of this arena. The caller alone uses
    ///   the object.
    pub(crate) unsafe fn resize_colocated(
        self,
        slot: SlotRef<'a>,
        address: usize,
        old_bytes: Option<usize>,
        new_bytes: usize,
    ) -> bool {
        // SAFETY: the caller promises a co-location slot of this thread's arena.
        let pages = unsafe { Pages::of(slot) };
        let run = pages.object(address, old_bytes);
        let resized = pages.resize(run, granules_of(new_bytes));
        if resized && granules_of(new_bytes) < run.granules {
            self.settle_pages(pages, run.pages());
        }
        resized
    }

    /// Bytes of the co-located object at `address`. Aborts with a message if there is none.
    ///
    /// # Safety
    /// - `slot` contains `address`, and is a co-location slot of this arena.
    pub(crate) unsafe fn colocated_bytes(self, slot: SlotRef<'a>, address: usize) -> usize {
        // SAFETY: the caller promises a co-location slot of this thread's arena.
        unsafe { Pages::of(slot) }.object(address, None).granules * GRANULE_BYTES
    }

    /// Frees a co-located object. Aborts with a message if no object of `bytes` (`None`: of any
    /// size) starts there.
    ///
    /// # Safety
    /// - `slot` contains `address`, and is a co-location slot of this arena. The caller gives up
    ///   the object.
    #[inline(always)]
    pub(crate) unsafe fn free_colocated(
        self,
        slot: SlotRef<'a>,
        address: usize,
        bytes: Option<usize>,
    ) {
        // SAFETY: the caller promises that `address` lies in a co-location slot of this arena.
        let word = unsafe { Word::containing(address) };
        let Some(freed) = word.release(address, bytes) else {
            // SAFETY: the caller promises a co-location slot of this arena.
            return self.free_colocated_slow(unsafe { Pages::of(slot) }, address, bytes);
        };
        // From the object's first block on: it may lie in two.
        let first = address / BLOCK_BYTES % 8 * BLOCK_GRANULES;
        let (freed, free) = (freed >> first, word.free() >> first);
        let is_block_empty = free & 0xff == 0xff || freed > 0xff && free >> 8 & 0xff == 0xff;
        self.freed_place.set(address | usize::from(is_block_empty));
        if is_block_empty {
            // SAFETY: the caller promises a co-location slot of this arena.
            let pages = unsafe { Pages::of(slot) };
            self.on_empty_block(Page::new(pages, address / PAGE_BYTES), word.free());
        }
    }

    /// [`free_colocated`](Self::free_colocated) of what [`Word::release`] refuses.
    #[inline(never)]
    fn free_colocated_slow(self, pages: Pages<'a>, address: usize, bytes: Option<usize>) {
        let run = pages.object(address, bytes);
        pages.release(run);
        // Bit 0 says that a block may be empty.
        self.freed_place.set(address | 1);
        self.settle_pages(pages, run.pages());
    }

    /// Checks all co-location slots, and the arena's state for them. For tests.
    pub(crate) fn check_pages(self) -> Result<(), &'static str> {
        let mut listed_slots = 0;
        let mut desc = self.inventory.descs.get();
        // SAFETY: null or a descriptor of this arena, which lives for ever.
        while let Some(made) = unsafe { desc.as_ref() } {
            desc = made.next_made.get();
            // SAFETY: null, or a chunk of this arena, mapped while the descriptor names it.
            let Some(chunk) = (unsafe { made.chunk.get().as_ref() }) else {
                continue;
            };
            for slot in 1..CHUNK_SLOTS {
                let slot = SlotRef::new(chunk, slot);
                if slot.slab().tag() == self.tag(kind::COLOCATED) {
                    // SAFETY: by its tag a co-location slot of this thread's arena.
                    unsafe { Pages::of(slot) }.check()?;
                    listed_slots += usize::from(slot.slab().listed_pages.get() != 0);
                }
            }
        }
        self.check_openings(listed_slots)?;
        let (next, end) = (self.run_next.get(), self.run_end.get());
        if next < end
            && (next / (64 * GRANULE_BYTES) != (end - 1) / (64 * GRANULE_BYTES)
                || self.pages_containing(next).is_none())
        {
            return Err("the latest run is in no word of a co-location page of this arena");
        }
        Ok(())
    }
}

/// Makes an object of up to a block in the block of `near`, else by the policy in the 512 bytes
/// whose map is the word of `near`. Null if these have no room. By [`Policy::NewBlock`], an object
/// that does not `join` a neighbour starts in an empty block.
///
/// # Safety
/// - `near` lies in a co-location page of the calling thread's arena.
#[inline(always)]
unsafe fn take_in_word(near: usize, request: Request, policy: Policy, join: bool) -> *mut u8 {
    if !request.fits_block() {
        return null_mut();
    }
    let granules = request.granules;
    // SAFETY: the caller promises that `near` lies in a co-location page of this thread's arena.
    let word = unsafe { Word::containing(near) };
    let (free, at) = (word.free(), near / GRANULE_BYTES % 64);
    let joins = join || policy != Policy::NewBlock;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "takes one byte of the word"
    )]
    let block_map = (free >> (at & !(BLOCK_GRANULES - 1))) as u8;
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
    word.claim(bit, granules);
    core::ptr::with_exposed_provenance_mut(place)
}
