//! Openings: empty blocks for objects that have no neighbour to join, and the pages with them.
//!
//! ```text
//! fresh slot ─ a page at a time ─▶ opening page ─▶ full: left to hints at what lies on it
//!                                      ▲                 │ objects are freed
//!                                      └─ listed pages ◀─┘ a quarter of the blocks is empty again
//! ```
//!
//! An empty slot goes back to its chunk, unless it is the fresh one, holds the opening page, or is
//! kept for a [`Region`](crate::Region). The arena's list `roomy_slots` links the slots that have
//! listed pages, the latest first. The slot's header says which pages are listed.

use core::ptr::{null, null_mut};

use super::{Page, ROOMY_BLOCKS, ROOMY_PAGES_TRIED, Request, take_in_word};
use crate::arena::Own;
use crate::bits;
use crate::chunk::{EndMap, Slab, SlotRef, kind};
use crate::geometry::{CHUNK_SLOTS, PAGE_BYTES, SLOT_BYTES, SLOT_PAGES};
use crate::list::Listed;
use crate::pages::Pages;
use crate::policy::{Policy, reserved};

impl<'a> Own<'a> {
    /// Makes an object without a neighbour: beside what was freed last, else on the opening page
    /// (in an empty block, or by the packing policies wherever there is room), else on another
    /// page. Null if the OS refuses memory.
    #[inline]
    pub(super) fn take_opening(self, request: Request, policy: Policy) -> *mut u8 {
        let freed = self.freed_place.get();
        if freed != 0 && (policy != Policy::NewBlock || freed & 1 == 1) {
            let object = self.take_freed(request, policy);
            if !object.is_null() {
                return object;
            }
        }
        let opening = self.latest_opening.get();
        // `NewBlock` needs an empty block anyway.
        if opening != 0
            && (policy == Policy::NewBlock && reserved() == 0 || self.has_openings(opening))
        {
            // SAFETY: the latest opening is on the opening page, in a co-location slot of this
            // arena.
            let object = unsafe { take_in_word(opening, request, policy, false) };
            if !object.is_null() {
                self.latest_opening.set(object.addr());
                return object;
            }
        }
        self.take_opening_elsewhere(request, policy)
    }

    /// Whether the page that contains `address` has openings left.
    #[inline(never)]
    fn has_openings(self, address: usize) -> bool {
        self.page_containing(address)
            .is_some_and(Page::has_openings)
    }

    /// [`take_opening`](Self::take_opening) beyond the word of the latest opening.
    #[inline(never)]
    fn take_opening_elsewhere(self, request: Request, policy: Policy) -> *mut u8 {
        let opening = self.page_containing(self.latest_opening.get());
        if let Some(page) = opening
            && let Some(granule) = request.find_opening(page, policy)
        {
            return self.claim_opening(page, granule, request);
        }
        let Some(page) = self.next_opening_page(request, policy) else {
            return null_mut();
        };
        self.latest_opening.set(page.granule(0).addr());
        if let Some(old) = opening.filter(|old| is_roomy(old.empty_blocks())) {
            // It has room, only not for this request.
            self.list(old);
        }
        match request.find(page, 0, policy) {
            Some(granule) => self.claim_opening(page, granule, request),
            None => null_mut(),
        }
    }

    /// Makes an object of free granules on the opening page.
    fn claim_opening(self, page: Page<'a>, granule: usize, request: Request) -> *mut u8 {
        let object = page.claim(granule, request);
        self.latest_opening.set(object.addr());
        object
    }

    /// Makes an object in the 512 bytes around the object that was freed last, which are likely to
    /// be in the cache. Null if there is no room.
    #[inline(never)]
    fn take_freed(self, request: Request, policy: Policy) -> *mut u8 {
        let freed = self.freed_place.replace(0);
        let Some(page) = self.page_containing(freed) else {
            return null_mut();
        };
        if reserved() > 0 && !page.has_openings() || self.is_reserved(page.pages.slot()) {
            return null_mut();
        }
        // SAFETY: in a co-location slot of this arena.
        unsafe { take_in_word(freed, request, policy, false) }
    }

    /// A page with a place for `request`, not listed: a roomy one, else a fresh one.
    fn next_opening_page(self, request: Request, policy: Policy) -> Option<Page<'a>> {
        if let Some(page) = self.take_roomy(request, policy) {
            return Some(page);
        }
        if !self.dirty.0.is_empty() {
            // This may give slots back, but not that of the opening page. The callers use another
            // page only for its tie, if its chunk is still there.
            self.collect_remote();
            if let Some(page) = self.take_roomy(request, policy) {
                return Some(page);
            }
        }
        let fresh = match self.fresh_page.get() {
            0 => self.new_colocation_slot()?.slot().base().addr(),
            fresh => fresh,
        };
        let next = fresh + PAGE_BYTES;
        let is_last = next.is_multiple_of(SLOT_BYTES);
        self.fresh_page.set(if is_last { 0 } else { next });
        self.page_containing(fresh)
    }

    /// Takes a page with a place for `request` off the list, if the latest few include one.
    fn take_roomy(self, request: Request, policy: Policy) -> Option<Page<'a>> {
        let mut next = self.roomy_slots.get();
        let mut left = ROOMY_PAGES_TRIED;
        // SAFETY: null or the header of a listed slot, in a mapped chunk: slots leave the list
        // before they are given back.
        while let Some(slab) = unsafe { next.as_ref() } {
            next = slab.links().next.get();
            // SAFETY: the header lies in a mapped chunk, as that of each listed slot.
            let slot: SlotRef<'a> = unsafe { slab.slot_ref() };
            // SAFETY: listed slots are co-location slots of this arena.
            let pages = unsafe { Pages::of(slot) };
            let mut listed = slab.listed_pages.get();
            while listed != 0 {
                if left == 0 {
                    return None;
                }
                left -= 1;
                let page = Page::new(pages, listed.trailing_zeros() as usize);
                if request.find_opening(page, policy).is_some() {
                    self.unlist(slab, page.bit());
                    return Some(page);
                }
                listed &= listed - 1;
            }
        }
        None
    }

    /// A slot of sixteen empty co-location pages, none of them listed.
    pub(crate) fn new_colocation_slot(self) -> Option<Pages<'a>> {
        let slot = self.take_slot()?;
        let desc = slot.desc();
        if desc.ends.get().is_null() {
            // Zero bytes are valid end maps.
            let Some(place) = self.alloc_meta(CHUNK_SLOTS * size_of::<EndMap>()) else {
                self.free_slots(slot, 1);
                return None;
            };
            desc.ends.set(place.cast().as_ptr());
            slot.update_ends();
        }
        // SAFETY: the slot is this arena's, its chunk has end maps, and it is initialised at once.
        let pages = unsafe { Pages::of(slot) };
        pages.init();
        for page in 0..SLOT_PAGES {
            slot.tie(page).set(0);
        }
        slot.slab().listed_pages.set(0);
        slot.slab().set_tag(self.tag(kind::COLOCATED));
        Some(pages)
    }

    /// Lists the page if it has become roomy, or gives its empty slot back; returns whether it gave
    /// the slot back. Called when a block has become empty, with that block's word of the free map.
    #[inline]
    pub(super) fn on_empty_block(self, page: Page<'a>, word: u64) -> bool {
        // For a listed page, only the last block to become empty matters. Otherwise two blocks of
        // some word are empty if `ROOMY_BLOCKS` of the page are.
        if word != !0 && (page.is_listed() || !bits::has_two_empty_blocks(word)) {
            return false;
        }
        let empty = page.empty_blocks();
        empty.count_ones() >= ROOMY_BLOCKS && self.on_roomier(page, empty)
    }

    /// See [`on_empty_block`](Self::on_empty_block).
    #[inline(never)]
    fn on_roomier(self, page: Page<'a>, empty: u64) -> bool {
        if self.is_reserved(page.pages.slot()) {
            return false;
        }
        if empty == !0 && self.release_if_empty_slot(page.pages) {
            return true;
        }
        let address = page.granule(0).addr();
        let is_fresh = self.is_fresh_slot(page.pages) && address >= self.fresh_page.get();
        let is_in_use = page.is_listed() || self.is_opening_page(address) || is_fresh;
        if is_roomy(empty) && !is_in_use {
            self.list(page);
        }
        false
    }

    /// [`on_empty_block`](Self::on_empty_block) for each of `pages` (bit = page), where objects
    /// were freed.
    pub(crate) fn settle_pages(self, slot: Pages<'a>, mut pages: u32) {
        while pages != 0 {
            let page = Page::new(slot, pages.trailing_zeros() as usize);
            if self.on_empty_block(page, !0) {
                return;
            }
            pages &= pages - 1;
        }
    }

    /// Whether the page at `address` is the opening page.
    fn is_opening_page(self, address: usize) -> bool {
        self.latest_opening.get() ^ address < PAGE_BYTES
    }

    /// Whether some pages of the slot are fresh.
    fn is_fresh_slot(self, pages: Pages<'a>) -> bool {
        self.fresh_page.get() & !(SLOT_BYTES - 1) == pages.slot().base().addr()
    }

    /// Gives the slot back to its chunk if it is empty, not reserved, not the fresh one, and does
    /// not hold the opening page.
    fn release_if_empty_slot(self, pages: Pages<'a>) -> bool {
        let slot = pages.slot();
        let base = slot.base().addr();
        if self.is_reserved(slot)
            || self.is_fresh_slot(pages)
            || self.latest_opening.get() & !(SLOT_BYTES - 1) == base
            || !pages.is_empty()
        {
            return false;
        }
        if slot.slab().listed_pages.get() != 0 {
            self.unlist(slot.slab(), !0);
        }
        pages.retire();
        if self.run_next.get() & !(SLOT_BYTES - 1) == base {
            self.run_end.set(0);
        }
        self.free_slots(slot, 1);
        true
    }

    /// Keeps a co-location slot for a [`Region`](crate::Region): its pages serve hints that point
    /// into them, but have no openings, and the slot is not given back.
    pub(crate) fn reserve_slot(self, slot: SlotRef<'a>) {
        let reserved = &slot.desc().reserved_slots;
        reserved.set(reserved.get() | 1 << slot.slot());
    }

    /// Whether a region keeps the slot.
    pub(super) fn is_reserved(self, slot: SlotRef<'a>) -> bool {
        slot.desc().reserved_slots.get() >> slot.slot() & 1 == 1
    }

    /// Ends a reservation: lists the roomy pages, or gives the empty slot back.
    pub(crate) fn settle_slot(self, pages: Pages<'a>) {
        let reserved = &pages.slot().desc().reserved_slots;
        reserved.set(reserved.get() & !(1 << pages.slot().slot()));
        if !self.release_if_empty_slot(pages) {
            self.settle_pages(pages, ALL_PAGES);
        }
    }

    /// Lists a page that is not listed, first of all.
    fn list(self, page: Page<'a>) {
        let slab = page.pages.slot().slab();
        let listed = slab.listed_pages.get();
        if listed != 0 {
            self.unlist(slab, !0);
        }
        slab.listed_pages.set(listed | page.bit());
        slab.link_before(&self.arena().roomy_slots);
    }

    /// Takes `pages` (bit = page) of a slot that has listed pages off the list.
    fn unlist(self, slab: &Slab, pages: u16) {
        let listed = slab.listed_pages.get() & !pages;
        slab.listed_pages.set(listed);
        if listed == 0 {
            slab.unlink_from(&self.arena().roomy_slots);
        }
    }

    /// Gives empty slots back, and lists roomy pages, at the end of a thread.
    pub(crate) fn trim_pages(self) {
        let opening = self.latest_opening.replace(0);
        let fresh = self.fresh_page.replace(0);
        for address in [opening, fresh] {
            // The slot of both may have been given back for the opening.
            if let Some(pages) = self.pages_containing(address) {
                self.settle_slot(pages);
            }
        }
    }

    /// Checks the list of the `count` roomy slots, and the opening page. For tests.
    pub(super) fn check_openings(self, mut count: usize) -> Result<(), &'static str> {
        let mut previous: *const Slab = null();
        let mut next = self.roomy_slots.get();
        // SAFETY: null or the header of a slot in the list, in a mapped chunk.
        while let Some(slab) = unsafe { next.as_ref() } {
            if slab.tag() != self.tag(kind::COLOCATED) || slab.listed_pages.get() == 0 {
                return Err("a listed slot has no listed pages of this arena");
            }
            if slab.links().prev.get() != previous || count == 0 {
                return Err("the list of roomy slots is broken");
            }
            count -= 1;
            previous = next;
            next = slab.links().next.get();
        }
        if count != 0 {
            return Err("a slot with listed pages is in no list");
        }
        let opening = self.latest_opening.get();
        if opening != 0 && self.page_containing(opening).is_none_or(Page::is_listed) {
            return Err("the opening page is listed, or no co-location page of this arena");
        }
        let fresh = self.fresh_page.get();
        if fresh != 0 && self.pages_containing(fresh).is_none() {
            return Err("the fresh page is no co-location page of this arena");
        }
        Ok(())
    }
}

/// All pages of a slot, a bit each.
const ALL_PAGES: u32 = (1 << SLOT_PAGES) - 1;

/// Whether a page with these empty blocks takes new structures again.
fn is_roomy(empty: u64) -> bool {
    let wanted = ROOMY_BLOCKS + u32::from(reserved());
    empty.count_ones() >= wanted.min(u64::BITS)
}
