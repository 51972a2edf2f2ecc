//! Slabs: the objects of one size class in one slot, and where the next free one is.
//!
//! A slab is the active one of its class, in the class's list of slabs with room, or full and in no
//! list. The first free lists a full one; an empty one goes back to its chunk, unless it is active.

use core::cell::Cell;
use core::ops::Range;
use core::ptr::{null, null_mut};

use crate::arena::Own;
use crate::bin::Bin;
use crate::chunk::{Slab, SlotRef, kind};
use crate::geometry::{GRANULE_BYTES, MAP_WORDS, SLOT_GRANULES};
use crate::list::Listed;
use crate::size_class::Class;
use crate::{sweep, sys};

/// Bytes of a slot that a word of its map stands for.
const WORD_BYTES: usize = 64 * GRANULE_BYTES;
/// Number of the last word of a map.
const LAST_WORD: u8 = 127;
const _: () = assert!(LAST_WORD as usize + 1 == MAP_WORDS);

impl<'a> Own<'a> {
    /// Allocates an object of `class`. Null when the OS refuses memory.
    pub(crate) fn alloc_class(self, class: Class) -> *mut u8 {
        loop {
            // SAFETY: `Own` proves that this thread owns the arena.
            let object = unsafe { self.arena().pop(class) };
            if !object.is_null() {
                return object;
            }
            if !self.refill(class) {
                return null_mut();
            }
        }
    }

    /// Puts objects of `class` at hand, when none is. `false` when the OS refuses memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn refill(self, class: Class) -> bool {
        if self.gather(class) {
            return true;
        }
        if !self.dirty.0.is_empty() {
            self.collect_remote();
            if self.gather(class) {
                return true;
            }
        }
        let (Some(active_slab), Some(partial)) = (
            self.active_slab.get(class.index()),
            self.partial.get(class.index()),
        ) else {
            return false;
        };
        sweep::tick(sys::milliseconds());
        loop {
            // The active slab, if there is one, has no free object left.
            // SAFETY: null or a slab of one of this arena's mapped chunks: an active slab is never
            // released.
            if let Some(slab) = unsafe { active_slab.get().as_ref() } {
                slab.set_tag(self.slab_tag(class, kind::FULL));
            }
            // SAFETY: null or a slab in this arena's list, and these are mapped: release takes a
            // slab off the list first.
            let slab = match unsafe { partial.get().as_ref() } {
                Some(slab) => {
                    self.unlink_partial(slab);
                    slab
                }
                None => match self.new_slab(class) {
                    Some(slab) => slab,
                    None => {
                        active_slab.set(null());
                        return false;
                    }
                },
            };
            slab.set_tag(self.slab_tag(class, kind::ACTIVE));
            active_slab.set(slab);
            if let Some(bin) = self.bins.get(class.index()) {
                bin.cursor.set(0);
            }
            // A listed slab may have lost its free objects again: they were at hand.
            if self.gather(class) {
                return true;
            }
        }
    }

    /// Puts the next free objects of the active slab of `class` at hand, if it has any: in address
    /// order from the bin's cursor on, and once round.
    fn gather(self, class: Class) -> bool {
        let (Some(bin), Some(slab)) = (
            self.bins.get(class.index()),
            self.active_slab.get(class.index()),
        ) else {
            return false;
        };
        // SAFETY: null or a slab of one of this arena's mapped chunks, by the arena's invariant.
        let Some(slab) = (unsafe { slab.get().as_ref() }) else {
            return false;
        };
        // SAFETY: it lies in a mapped chunk.
        let slot = unsafe { slab.slot_ref() };
        let cursor = bin.cursor.get();
        let count = [cursor..MAP_WORDS, 0..cursor]
            .into_iter()
            .find_map(|words| {
                let (count, next) = gather_from(bin, slot, class.granules(), words);
                bin.cursor.set(next);
                (count > 0).then_some(count)
            });
        count.is_some()
    }

    /// A slab of `class` in a fresh slot, all of its objects free, and in no list.
    fn new_slab(self, class: Class) -> Option<&'a Slab> {
        let slot = self.take_slot()?;
        let slab = slot.slab();
        slab.set_tag(self.slab_tag(class, kind::FULL));
        slab.witness.set(0);
        Some(slab)
    }

    /// Gives the slot of `address`, a slab of this arena, back to its chunk if it is empty and not
    /// the active one.
    ///
    /// # Safety
    /// `address` lies in a slab of this arena.
    #[inline]
    pub(crate) unsafe fn release_if_empty(self, address: usize) {
        // SAFETY: its chunk is of this arena, and only this thread unmaps it.
        let slot = unsafe { SlotRef::containing(address) };
        if !has_witness(slot) {
            self.release_if_no_witness(slot);
        }
    }

    #[cold]
    #[inline(never)]
    fn release_if_no_witness(self, slot: SlotRef<'_>) {
        let slab = slot.slab();
        let class = slab.tag().class().index();
        let (Some(active), Some(bin)) = (self.active_slab.get(class), self.bins.get(class)) else {
            return;
        };
        if core::ptr::eq(active.get(), slab) || !is_empty_slab(slot) {
            return;
        }
        bin.forget_slot(slot.base().addr());
        self.unlink_partial(slab);
        self.free_slots(slot, 1);
    }

    /// Puts a slab that was full into the list of its class, as the next to be used.
    pub(crate) fn link_partial(self, slab: &'a Slab) {
        let class = slab.tag().class();
        let Some(head) = self.partial.get(class.index()) else {
            return;
        };
        slab.set_tag(self.slab_tag(class, kind::LISTED));
        slab.link_before(head);
    }

    fn unlink_partial(self, slab: &Slab) {
        if let Some(head) = self.partial.get(slab.tag().class().index()) {
            slab.unlink_from(head);
        }
    }

    /// Frees an object of a slab that was full: the slab goes back into its class's list.
    pub(crate) fn push_full(self, slot: SlotRef<'a>, address: usize) {
        self.link_partial(slot.slab());
        let bin = self.arena().bin(slot.slab().tag().class());
        // SAFETY: `Own` is the proof of ownership; the tag was set to `LISTED` just now.
        unsafe { self.arena().push(bin, address, kind::LISTED) };
    }

    /// Makes all active slabs listed ones, so that the free of their last objects gives them back.
    pub(crate) fn retire_slabs(self) {
        for (active_slab, bin) in self.active_slab.iter().zip(&self.bins) {
            // SAFETY: null or a slab of one of this arena's mapped chunks.
            if let Some(slab) = unsafe { active_slab.replace(null()).as_ref() } {
                bin.forget_all();
                self.link_partial(slab);
                // SAFETY: it lies in a mapped chunk of this arena.
                let base = unsafe { slab.slot_ref() }.base();
                // SAFETY: an address in that slab.
                unsafe { self.release_if_empty(base.addr()) };
            }
        }
    }

    /// Gives empty active slabs back.
    pub(crate) fn trim_slabs(self) {
        for (active_slab, bin) in self.active_slab.iter().zip(&self.bins) {
            // SAFETY: null or a slab of one of this arena's mapped chunks.
            let Some(slab) = (unsafe { active_slab.get().as_ref() }) else {
                continue;
            };
            // SAFETY: it lies in a mapped chunk.
            let slot = unsafe { slab.slot_ref() };
            if is_empty_slab(slot) {
                active_slab.set(null());
                bin.forget_slot(slot.base().addr());
                self.free_slots(slot, 1);
            }
        }
    }
}

/// Whether the word of a slab's map that had a live object when last read still has one. So most
/// frees read only one word.
#[inline]
fn has_witness(slot: SlotRef<'_>) -> bool {
    let word = slot.map().get(usize::from(slot.slab().witness.get()));
    word.is_some_and(|word| word.get() != 0)
}

/// Whether no object of a slab is live.
fn is_empty_slab(slot: SlotRef<'_>) -> bool {
    let witness = &slot.slab().witness;
    let map = slot.map();
    let is_live = |word: u8| {
        map.get(usize::from(word))
            .is_some_and(|word| word.get() != 0)
    };
    let last = witness.get();
    let found = (last..LAST_WORD + 1)
        .chain(0..last)
        .find(|&word| is_live(word));
    if let Some(word) = found {
        witness.set(word);
    }
    found.is_none()
}

/// Puts free objects of `granules` granules at hand that start in `words` of the slab's map, until
/// there are enough. Returns how many, and the word to continue at.
fn gather_from(
    bin: &Bin,
    slot: SlotRef<'_>,
    granules: usize,
    words: Range<usize>,
) -> (usize, usize) {
    if granules >= 64 {
        return gather_single(bin, slot, granules, words);
    }
    // A bit at every multiple of `granules`.
    let mut pattern = 1u64;
    let mut width = granules;
    while width < 64 {
        pattern |= pattern << width;
        width *= 2;
    }
    // The first start at or behind the word's first granule, counted from there.
    let mut phase = (granules - words.start * 64 % granules) % granules;
    let step = 64 % granules;
    // What is left behind the last object begins there.
    let (last, end) = (SLOT_GRANULES / granules * granules, words.end);
    let mut filling = bin.filling(granules * GRANULE_BYTES);
    let mut place = slot.base().wrapping_add(words.start * WORD_BYTES);
    for (number, live) in slot.map().iter().enumerate().take(end).skip(words.start) {
        let mut free = (pattern << phase) & !live.get();
        if number == last / 64 {
            free &= !(1 << (last % 64));
        }
        while free != 0 {
            let object = place.wrapping_add(free.trailing_zeros() as usize * GRANULE_BYTES);
            // SAFETY: they all start in this word, and it was not enough before.
            unsafe { filling.add(object) };
            free &= free - 1;
        }
        if filling.is_enough() {
            return (filling.finish(), number + 1);
        }
        place = place.wrapping_add(WORD_BYTES);
        phase = phase.checked_sub(step).unwrap_or(phase + granules - step);
    }
    (filling.finish(), end)
}

/// As [`gather_from`], if at most one object starts in a word: walks over objects, not words.
fn gather_single(
    bin: &Bin,
    slot: SlotRef<'_>,
    granules: usize,
    words: Range<usize>,
) -> (usize, usize) {
    let mut filling = bin.filling(granules * GRANULE_BYTES);
    let end = (words.end * 64).min(SLOT_GRANULES + 1 - granules);
    let mut granule = (words.start * 64).next_multiple_of(granules);
    while granule < end {
        let live = slot.map().get(granule / 64).map_or(!0, Cell::get);
        if live >> (granule % 64) & 1 == 0 {
            // SAFETY: one in this word, and it was not enough before.
            unsafe { filling.add(slot.base().wrapping_add(granule * GRANULE_BYTES)) };
            if filling.is_enough() {
                return (filling.finish(), granule / 64 + 1);
            }
        }
        granule += granules;
    }
    (filling.finish(), words.end)
}
