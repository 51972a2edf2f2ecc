//! Consistency of an arena's metadata, for tests.

use core::ptr::null;

use crate::arena::Own;
use crate::chunk::{Slab, SlotRef, Tag, granule_bit, kind, map_word};
use crate::geometry::CHUNK_SLOTS;
use crate::list::Listed;
use crate::size_class::Class;

impl Own<'_> {
    /// Goes through all metadata of the arena and reports the first contradiction. For tests.
    pub(crate) fn check(self) -> Result<(), &'static str> {
        for (index, (active, list)) in self.active_slab.iter().zip(&self.partial).enumerate() {
            let class = Class::from_index(index);
            // SAFETY: null or a slab of one of this arena's mapped chunks.
            if let Some(slab) = unsafe { active.get().as_ref() }
                && slab.tag() != self.slab_tag(class, kind::ACTIVE)
            {
                return Err("an active slab has another class or another tag");
            }
            let mut previous: *const Slab = null();
            let mut next = list.get();
            // SAFETY: null or a slab in the list, which is mapped.
            while let Some(slab) = unsafe { next.as_ref() } {
                if slab.tag() != self.slab_tag(class, kind::LISTED) {
                    return Err("a listed slab has another class or another tag");
                }
                if slab.links().prev.get() != previous || core::ptr::eq(slab, active.get()) {
                    return Err("a list of slabs is broken");
                }
                previous = next;
                next = slab.links().next.get();
            }
        }
        for (index, bin) in self.bins.iter().enumerate() {
            let class = Class::from_index(index);
            for address in bin.objects_at_hand() {
                // SAFETY: objects at hand lie in mapped chunks.
                let (slot, word) = unsafe { (SlotRef::containing(address), map_word(address)) };
                let tag = slot.slab().tag();
                if word.get() & granule_bit(address) != 0 {
                    return Err("an object at hand is live");
                }
                if bin.objects_at_hand().filter(|&at| at == address).count() != 1 {
                    return Err("an object is at hand twice");
                }
                let kinds = [kind::ACTIVE, kind::LISTED];
                if !kinds.map(|kind| self.slab_tag(class, kind)).contains(&tag) {
                    return Err(
                        "an object at hand lies in a full slab, or in one of another class",
                    );
                }
            }
        }
        let mut desc = self.open.get();
        // SAFETY: null or a descriptor of this arena, which lives for ever.
        while let Some(open) = unsafe { desc.as_ref() } {
            // SAFETY: null, or a chunk of this arena, mapped while the descriptor names it.
            let Some(chunk) = (unsafe { open.chunk.get().as_ref() }) else {
                return Err("an open chunk is not mapped");
            };
            if open.free_slots.get() == 0 || open.free_slots.get() & 1 != 0 {
                return Err("an open chunk has no free slot, or its metadata free");
            }
            for slot in 1..CHUNK_SLOTS {
                let tag = SlotRef::new(chunk, slot).slab().tag();
                if (tag == Tag::FREE) != (open.free_slots.get() >> slot & 1 == 1) {
                    return Err("a slot's tag and its chunk disagree on whether it is free");
                }
                let slot = SlotRef::new(chunk, slot);
                if tag == Tag::FREE && slot.map().iter().any(|word| word.get() != 0) {
                    return Err("the map of a free slot is not clear");
                }
            }
            desc = open.links.next.get();
        }
        self.check_pages()
    }
}
