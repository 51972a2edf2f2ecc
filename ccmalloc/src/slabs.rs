//! Slabs: the objects of one size class in one slot, and where the next free one is.
//!
//! A slab is the active one of its class, or in the class's list of slabs with room, or full and in no list. A full one comes
//! back with the first free; one without objects goes back to its chunk, unless it is active.

use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering;

use crate::chunk::{Slab, SlotRef, kind};
use crate::geometry::SLOT_BYTES;
use crate::heap::{NO_WORD, Own};
use crate::size_class::Class;

impl<'a> Own<'a> {
    /// Allocates an object of `class`. Null when the OS refuses memory.
    pub(crate) fn alloc_class(self, class: Class) -> *mut u8 {
        loop {
            // SAFETY: `Own` is the proof.
            let object = unsafe { self.heap().pop(class) };
            if !object.is_null() {
                return object;
            }
            if !self.refill(class) {
                return null_mut();
            }
        }
    }

    /// Makes the active word of `class` one that has a free object. `false` when the OS refuses memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn refill(self, class: Class) -> bool {
        if self.activate_word(class) {
            return true;
        }
        if !self.dirty.0.is_empty() {
            self.collect_remote();
            if self.activate_word(class) {
                return true;
            }
        }
        let (Some(active_slab), Some(partial)) = (
            self.active_slab.get(class.index()),
            self.partial.get(class.index()),
        ) else {
            return false;
        };
        loop {
            // The active slab, if there is one, has no free object left.
            // SAFETY: null or a slab of one of this heap's mapped chunks: an active slab is never released.
            if let Some(slab) = unsafe { active_slab.get().as_ref() } {
                slab.tag.store(self.tag(kind::FULL), Ordering::Relaxed);
            }
            // SAFETY: null or a slab in this heap's list, and these are mapped: release takes a slab off the list first.
            let slab = match unsafe { partial.get().as_ref() } {
                Some(slab) => {
                    self.unlink_partial(slab);
                    slab
                }
                None => match self.new_slab(class) {
                    Some(slab) => slab,
                    None => {
                        active_slab.set(null());
                        self.deactivate(class);
                        return false;
                    }
                },
            };
            slab.tag.store(self.tag(kind::ACTIVE), Ordering::Relaxed);
            active_slab.set(slab);
            // A listed slab may have lost its free objects again: they were at hand.
            if self.activate_word(class) {
                return true;
            }
        }
    }

    /// Points the active word of `class` at a word with a free object in the active slab, if it has one.
    fn activate_word(self, class: Class) -> bool {
        let (Some(active), Some(slab)) = (
            self.active.get(class.index()),
            self.active_slab.get(class.index()),
        ) else {
            return false;
        };
        // SAFETY: null or a slab of one of this heap's mapped chunks, by the heap's invariant.
        let Some(slab) = (unsafe { slab.get().as_ref() }) else {
            return false;
        };
        // SAFETY: it lies in a mapped chunk.
        let slot = unsafe { slab.slot_ref() };
        let words = usize::from(slab.words.get());
        let Some(map) = slot.maps().free.get(..words) else {
            return false;
        };
        // From the word after the last active one, round: objects keep coming in address order.
        let last = active.word.get().addr().wrapping_sub(map.as_ptr().addr()) / size_of::<u64>();
        let start = if last < words { last + 1 } else { 0 };
        let found = (start..words)
            .chain(0..start)
            .find(|&word| map.get(word).is_some_and(|word| word.get() != 0));
        let Some((index, word)) = found.and_then(|index| Some((index, map.get(index)?))) else {
            return false;
        };
        let object_bytes = slab.object_bytes.get() as usize;
        active.word.set(word);
        active
            .base
            .set(slot.base().wrapping_add(index * 64 * object_bytes));
        active.object_bytes.set(object_bytes);
        true
    }

    /// Leaves `class` without an active word.
    fn deactivate(self, class: Class) {
        if let Some(active) = self.active.get(class.index()) {
            active.word.set(&raw const NO_WORD.0);
        }
    }

    /// A slab of `class` in a fresh slot, all of its objects free, in no list and without a tag.
    fn new_slab(self, class: Class) -> Option<&'a Slab> {
        let slot = self.take_slot()?;
        let bytes = class.bytes();
        let objects = SLOT_BYTES / bytes as usize;
        let words = objects.div_ceil(64);
        let slab = slot.slab();
        slab.object_bytes.set(bytes);
        slab.reciprocal
            .set(u32::try_from((1u64 << 32).div_ceil(u64::from(bytes))).unwrap_or(u32::MAX));
        slab.objects.set(u32::try_from(objects).unwrap_or(0));
        slab.words.set(u16::try_from(words).unwrap_or(0));
        slab.tail_start
            .set(u32::try_from((words - 1) * 64).unwrap_or(0));
        slab.class.set(u8::try_from(class.index()).unwrap_or(0));
        for (index, word) in slot.maps().free.iter().take(words).enumerate() {
            word.set(full_word(objects, index));
        }
        Some(slab)
    }

    /// Gives the slab's slot back to its chunk when no object is left in it and no class allocates from it.
    #[cold]
    #[inline(never)]
    pub(crate) fn release_if_empty(self, slot: SlotRef<'_>) {
        let slab = slot.slab();
        let Some(active) = self.active_slab.get(usize::from(slab.class.get())) else {
            return;
        };
        if core::ptr::eq(active.get(), slab) || !self.is_empty_slab(slot) {
            return;
        }
        if let Some(active) = self.active.get(usize::from(slab.class.get())) {
            active.forget_slot(slot.base().addr());
        }
        self.unlink_partial(slab);
        self.free_slots(slot, 1);
    }

    fn is_empty_slab(self, slot: SlotRef<'_>) -> bool {
        let slab = slot.slab();
        let objects = slab.objects.get() as usize;
        let words = usize::from(slab.words.get());
        slot.maps()
            .free
            .iter()
            .take(words)
            .enumerate()
            .all(|(index, word)| word.get() == full_word(objects, index))
    }

    /// Puts a slab that was full into the list of its class, as the next to be used.
    pub(crate) fn link_partial(self, slab: &'a Slab) {
        let Some(head) = self.partial.get(usize::from(slab.class.get())) else {
            return;
        };
        slab.tag.store(self.tag(kind::LISTED), Ordering::Relaxed);
        slab.prev.set(null());
        slab.next.set(head.get());
        // SAFETY: null or a slab in the list, which is mapped.
        if let Some(next) = unsafe { head.get().as_ref() } {
            next.prev.set(slab);
        }
        head.set(slab);
    }

    fn unlink_partial(self, slab: &Slab) {
        let (next, prev) = (slab.next.get(), slab.prev.get());
        // SAFETY: null or slabs in the same list, which are mapped.
        if let Some(next) = unsafe { next.as_ref() } {
            next.prev.set(prev);
        }
        // SAFETY: as above.
        match unsafe { prev.as_ref() } {
            Some(prev) => prev.next.set(next),
            None => {
                if let Some(head) = self.partial.get(usize::from(slab.class.get())) {
                    head.set(next);
                }
            }
        }
        slab.next.set(null());
        slab.prev.set(null());
    }

    /// Frees an object of a slab that was full: the slab goes back into its class's list.
    pub(crate) fn push_full(self, slot: SlotRef<'a>, address: usize) {
        self.link_partial(slot.slab());
        // SAFETY: `Own` is the proof of ownership; the tag was set to `LISTED` just now.
        unsafe { self.heap().push(slot, address, true) };
    }

    /// Lets go of the active slabs that hold no object.
    pub(crate) fn trim_slabs(self) {
        for (active_slab, active) in self.active_slab.iter().zip(&self.active) {
            // SAFETY: null or a slab of one of this heap's mapped chunks.
            let Some(slab) = (unsafe { active_slab.get().as_ref() }) else {
                continue;
            };
            // SAFETY: it lies in a mapped chunk.
            let slot = unsafe { slab.slot_ref() };
            if self.is_empty_slab(slot) {
                active_slab.set(null());
                active.word.set(&raw const NO_WORD.0);
                active.forget_slot(slot.base().addr());
                self.free_slots(slot, 1);
            }
        }
    }
}

/// The free map's word `index` when all of `objects` objects are free.
fn full_word(objects: usize, index: usize) -> u64 {
    let left = objects - index * 64;
    if left >= 64 { !0 } else { (1 << left) - 1 }
}
