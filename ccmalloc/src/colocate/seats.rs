//! Seats: where something starts that has no neighbour to join, and which pages are there for it.
//!
//! ```text
//! fresh slot ── a page at a time ──▶ seat page ──▶ full: left to hints at what lies on it
//!                                        ▲                      │ objects are freed
//!                                        └── roomy pages ◀──────┘ a quarter of the blocks is empty again
//! ```
//!
//! A slot whose pages are all empty goes back to its chunk, unless it is the fresh one, holds the seat page, or is kept for a
//! [`Region`](crate::Region). Where on a page an object goes is the parent module's business.

use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering;

use super::{ALL_BLOCKS, Page, ROOMY_BLOCKS, ROOMY_PAGES_TRIED, Request, take_in_word};
use crate::bits;
use crate::chunk::{ChunkDesc, PageInfo, SlotRef, kind};
use crate::ends::EndMap;
use crate::geometry::{CHUNK_PAGES, CHUNK_SLOTS, PAGE_BLOCKS, PAGE_BYTES, SLOT_BYTES, SLOT_PAGES};
use crate::heap::Own;
use crate::policy::{Policy, reserved};

impl<'a> Own<'a> {
    /// A place for something without a neighbour, and the page that it is on: beside what was freed last, else an empty block of the seat page (or, with the
    /// packing policies, room on it).
    #[inline]
    pub(super) fn take_seat(
        self,
        request: Request,
        policy: Policy,
    ) -> Option<(&'a PageInfo, *mut u8)> {
        let freed = self.freed_place.get();
        if freed != 0
            && (policy != Policy::NewBlock || freed & 1 == 1)
            && let Some(taken) = self.take_freed(request, policy)
        {
            return Some(taken);
        }
        // SAFETY: null or the info of a page in use: `release_slot_if_empty` gives no slot back in which the seat page lies.
        if let Some(info) = unsafe { self.seat_page.get().as_ref() }
            && info.empty_blocks.get() > reserved()
        {
            // SAFETY: the latest seat is on the seat page, a co-location page of this heap.
            let object =
                unsafe { take_in_word(self.latest_seat.get(), info, request, policy, false) };
            if !object.is_null() {
                self.latest_seat.set(object.addr());
                return Some((info, object));
            }
        }
        self.take_seat_elsewhere(request, policy)
    }

    /// [`take_seat`](Self::take_seat) elsewhere than around the latest seat.
    #[inline(never)]
    fn take_seat_elsewhere(
        self,
        request: Request,
        policy: Policy,
    ) -> Option<(&'a PageInfo, *mut u8)> {
        // SAFETY: as in `take_seat`.
        if let Some(info) = unsafe { self.seat_page.get().as_ref() } {
            let page = self.page_of(info);
            if let Some(granule) = request.find_seat(page, policy) {
                return Some(self.claim_seat(page, granule, request));
            }
        }
        let page = self.next_seat_page(request, policy)?;
        // SAFETY: as in `take_seat`.
        let old = unsafe { self.seat_page.replace(page.info).as_ref() };
        self.latest_seat.set(page.info.base.get().addr());
        if let Some(old) = old.filter(|old| is_roomy(old)) {
            // Too small a room for this request only.
            self.list(old);
        }
        let granule = request.find(page, 0, policy)?;
        Some(self.claim_seat(page, granule, request))
    }

    /// Makes an object of a request's granules, which are free, on the seat page.
    fn claim_seat(
        self,
        page: Page<'a>,
        granule: usize,
        request: Request,
    ) -> (&'a PageInfo, *mut u8) {
        let object = self.claim_in(page, granule, request);
        self.latest_seat.set(object.addr());
        (page.info, object)
    }

    /// A place in the 512 bytes around the object that was freed last, if there is room: a program that frees as much as it allocates finds that room in the
    /// cache, and does not spread.
    #[inline(never)]
    fn take_freed(self, request: Request, policy: Policy) -> Option<(&'a PageInfo, *mut u8)> {
        let freed = self.freed_place.replace(0);
        let page = self.page_containing(freed)?;
        if reserved() > 0 && page.info.empty_blocks.get() <= reserved()
            || self.reservation(page.slot).is_some()
        {
            return None;
        }
        // SAFETY: a co-location page of this heap.
        let object = unsafe { take_in_word(freed, page.info, request, policy, false) };
        (!object.is_null()).then_some((page.info, object))
    }

    /// A page with a place for `request`, in no list: one that has become roomy, else a fresh one.
    fn next_seat_page(self, request: Request, policy: Policy) -> Option<Page<'a>> {
        if let Some(page) = self.take_roomy(request, policy) {
            return Some(page);
        }
        if !self.dirty.0.is_empty() {
            // The caller's pages may be given back by this, in part: it uses their infos only, which stay, and ties, which are
            // checked before they are followed.
            self.collect_remote();
            if let Some(page) = self.take_roomy(request, policy) {
                return Some(page);
            }
        }
        let fresh = self.fresh_page.get();
        let base = self.fresh_slot.get();
        if !base.is_null() && fresh < SLOT_PAGES {
            self.fresh_page.set(fresh + 1);
            // SAFETY: the fresh slot is one of this heap's, and is not given back while it is the fresh one.
            return Some(self.page_at(unsafe { SlotRef::containing(base.addr()) }, fresh));
        }
        let slot = self.new_colocation_slot()?;
        self.fresh_slot.set(slot.base());
        self.fresh_page.set(1);
        Some(self.page_at(slot, 0))
    }

    /// Takes the first of the latest few roomy pages that has a place for `request` off the list.
    fn take_roomy(self, request: Request, policy: Policy) -> Option<Page<'a>> {
        let mut next = self.roomy_pages.get();
        for _ in 0..ROOMY_PAGES_TRIED {
            // SAFETY: null or the info of a page in use; a slot's pages leave the list before the slot is given back.
            let info = unsafe { next.as_ref() }?;
            let page = self.page_of(info);
            if request.find_seat(page, policy).is_some() {
                self.unlist(info);
                return Some(page);
            }
            next = info.next.get();
        }
        None
    }

    /// A slot of sixteen empty co-location pages, in no list.
    pub(crate) fn new_colocation_slot(self) -> Option<SlotRef<'a>> {
        let slot = self.take_slot()?;
        let desc = slot.desc();
        if desc.pages.get().is_null() {
            // End maps first, so that each page's lies in one block.
            let ends_bytes = CHUNK_SLOTS * size_of::<EndMap>();
            let Some(place) = self.alloc_meta(ends_bytes + CHUNK_PAGES * size_of::<PageInfo>())
            else {
                self.free_slots(slot, 1);
                return None;
            };
            // Zero bytes are valid end maps and page infos; each is set below before it is used.
            desc.ends.set(place.cast().as_ptr());
            slot.update_ends();
            let pages = place.as_ptr().wrapping_add(ends_bytes);
            desc.pages.set(pages.cast());
        }
        // SAFETY: the slot is this heap's, and about to be used for co-location pages.
        let ends = unsafe { slot.ends() };
        for (free, end) in slot.map().iter().zip(ends) {
            free.set(!0);
            end.store(0, Ordering::Relaxed);
        }
        slot.slab().set_tag(self.tag(kind::COLOCATED));
        for in_slot in 0..SLOT_PAGES {
            let info = self.page_at(slot, in_slot).info;
            info.base
                .set(slot.base().wrapping_add(in_slot * PAGE_BYTES));
            info.next.set(null());
            info.prev.set(null());
            info.tied.set(0);
            info.empty_blocks.set(ALL_BLOCKS);
            info.listed.set(false);
        }
        Some(slot)
    }

    /// Counts a block of the slot that has become empty; `true` when the slot has been given back.
    #[inline]
    pub(super) fn on_empty_block(self, slot: SlotRef<'a>, block: usize) -> bool {
        let page = self.page_at(slot, block / PAGE_BLOCKS);
        let empty = page.info.empty_blocks.get().wrapping_add(1);
        page.info.empty_blocks.set(empty);
        empty >= ROOMY_BLOCKS && self.on_roomier(page)
    }

    /// Files a page with many empty blocks where seats are looked for, or gives its slot back; `true` when it did that.
    #[inline(never)]
    fn on_roomier(self, page: Page<'a>) -> bool {
        if self.reservation(page.slot).is_some() {
            return false;
        }
        if usize::from(page.info.empty_blocks.get()) == PAGE_BLOCKS
            && self.release_slot_if_empty(page.slot)
        {
            return true;
        }
        if !page.info.listed.get()
            && is_roomy(page.info)
            && !core::ptr::eq(self.seat_page.get(), page.info)
            && !self.is_unused_yet(page)
        {
            self.list(page.info);
        }
        false
    }

    /// Whether the page is one of the fresh slot's that have not been seats yet.
    fn is_unused_yet(self, page: Page<'a>) -> bool {
        self.fresh_slot.get() == page.slot.base() && page.in_slot >= self.fresh_page.get()
    }

    /// Gives the slot back to its chunk if all of its pages are empty and none is in use as a source of seats.
    pub(crate) fn release_slot_if_empty(self, slot: SlotRef<'a>) -> bool {
        if self.reservation(slot).is_some() {
            return false;
        }
        let pages = || (0..SLOT_PAGES).map(|in_slot| self.page_at(slot, in_slot));
        if self.fresh_slot.get() == slot.base()
            || pages().any(|page| {
                usize::from(page.info.empty_blocks.get()) != PAGE_BLOCKS
                    || core::ptr::eq(self.seat_page.get(), page.info)
            })
        {
            return false;
        }
        for page in pages().filter(|page| page.info.listed.get()) {
            self.unlist(page.info);
        }
        for word in slot.map() {
            word.set(0);
        }
        if self.run_next.get() & !(SLOT_BYTES - 1) == slot.base().addr() {
            self.run_end.set(0);
        }
        self.free_slots(slot, 1);
        true
    }

    /// Counts the empty blocks of all pages of a slot anew, after its free map was changed wholesale.
    pub(crate) fn recount_pages(self, slot: SlotRef<'a>) {
        for in_slot in 0..SLOT_PAGES {
            let page = self.page_at(slot, in_slot);
            let empty = u8::try_from(bits::empty_blocks(&page.read()).count_ones()).unwrap_or(0);
            let before = page.info.empty_blocks.replace(empty);
            if empty > before && empty >= ROOMY_BLOCKS && self.on_roomier(page) {
                return;
            }
        }
    }

    /// Keeps a co-location slot for a [`Region`](crate::Region): its pages serve hints that point into them, but no seats, and it
    /// is not given back.
    pub(crate) fn reserve_slot(self, slot: SlotRef<'a>) {
        let desc = slot.desc();
        desc.reserved_slots
            .set(desc.reserved_slots.get() | 1 << slot.slot());
    }

    /// The descriptor of the slot's chunk, if the slot is reserved.
    pub(super) fn reservation(self, slot: SlotRef<'a>) -> Option<&'a ChunkDesc> {
        let desc = slot.desc();
        (desc.reserved_slots.get() >> slot.slot() & 1 == 1).then_some(desc)
    }

    /// Ends a reservation, and puts the slot's pages to use: those with room where seats are looked for, or the whole slot
    /// back to its chunk.
    pub(crate) fn settle_slot(self, slot: SlotRef<'a>) {
        if let Some(desc) = self.reservation(slot) {
            desc.reserved_slots
                .set(desc.reserved_slots.get() & !(1 << slot.slot()));
        }
        if self.release_slot_if_empty(slot) {
            return;
        }
        for in_slot in 0..SLOT_PAGES {
            let page = self.page_at(slot, in_slot);
            if page.info.empty_blocks.get() >= ROOMY_BLOCKS && self.on_roomier(page) {
                return;
            }
        }
    }

    fn list(self, info: &'a PageInfo) {
        info.prev.set(null());
        info.next.set(self.roomy_pages.get());
        // SAFETY: null or an info in the list; infos are never unmapped.
        if let Some(next) = unsafe { self.roomy_pages.get().as_ref() } {
            next.prev.set(info);
        }
        self.roomy_pages.set(info);
        info.listed.set(true);
    }

    fn unlist(self, info: &PageInfo) {
        let (next, prev) = (info.next.get(), info.prev.get());
        // SAFETY: null or infos in the list; infos are never unmapped.
        if let Some(next) = unsafe { next.as_ref() } {
            next.prev.set(prev);
        }
        // SAFETY: as above.
        match unsafe { prev.as_ref() } {
            Some(prev) => prev.next.set(next),
            None => self.roomy_pages.set(next),
        }
        info.listed.set(false);
    }

    /// Lets go of empty pages at the end of a thread.
    pub(crate) fn trim_pages(self) {
        // SAFETY: null or the info of a page in use.
        let seat = unsafe { self.seat_page.get().as_ref() }.map(|info| self.page_of(info));
        let fresh = self.fresh_slot.get();
        self.seat_page.set(null());
        self.fresh_slot.set(null_mut());
        self.fresh_page.set(0);
        let mut seat_released = false;
        if !fresh.is_null() {
            // SAFETY: the fresh slot is in use until it is released here.
            let slot = unsafe { SlotRef::containing(fresh.addr()) };
            seat_released = seat.is_some_and(|seat| seat.slot.base() == fresh);
            self.settle_slot(slot);
        }
        if let Some(seat) = seat.filter(|_| !seat_released) {
            self.settle_slot(seat.slot);
        }
    }
}

/// Whether a page takes new structures again.
fn is_roomy(info: &PageInfo) -> bool {
    info.empty_blocks.get() >= ROOMY_BLOCKS.saturating_add(reserved()).min(ALL_BLOCKS)
}
