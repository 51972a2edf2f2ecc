//! Consistency of a heap's metadata, for tests.

use core::ptr::null;
use core::sync::atomic::Ordering;

use crate::chunk::{Slab, SlotRef, kind};
use crate::geometry::CHUNK_SLOTS;
use crate::heap::Own;

impl Own<'_> {
    /// Goes through all metadata of the heap and reports the first contradiction. For tests.
    pub(crate) fn check(self) -> Result<(), &'static str> {
        for (index, (active, list)) in self.active_slab.iter().zip(&self.partial).enumerate() {
            // SAFETY: null or a slab of one of this heap's mapped chunks.
            if let Some(slab) = unsafe { active.get().as_ref() }
                && (slab.tag.load(Ordering::Relaxed) != self.tag(kind::ACTIVE)
                    || usize::from(slab.class.get()) != index)
            {
                return Err("an active slab has another class or another tag");
            }
            let mut previous: *const Slab = null();
            let mut next = list.get();
            // SAFETY: null or a slab in the list, which is mapped.
            while let Some(slab) = unsafe { next.as_ref() } {
                if slab.tag.load(Ordering::Relaxed) != self.tag(kind::LISTED)
                    || usize::from(slab.class.get()) != index
                {
                    return Err("a listed slab has another class or another tag");
                }
                if slab.prev.get() != previous || core::ptr::eq(slab, active.get()) {
                    return Err("a list of slabs is broken");
                }
                previous = next;
                next = slab.next.get();
            }
        }
        for (index, active) in self.active.iter().enumerate() {
            for (address, free) in active.objects_at_hand() {
                // SAFETY: objects at hand lie in mapped chunks.
                let slab = unsafe { SlotRef::containing(address) }.slab();
                let tag = slab.tag.load(Ordering::Relaxed);
                if !free || usize::from(slab.class.get()) != index {
                    return Err("an object at hand is not free, or of another class");
                }
                if tag != self.tag(kind::ACTIVE) && tag != self.tag(kind::LISTED) {
                    return Err(
                        "an object at hand lies in a slab that is neither active nor listed",
                    );
                }
            }
        }
        let mut desc = self.open.get();
        // SAFETY: null or a descriptor of this heap, which lives for ever.
        while let Some(open) = unsafe { desc.as_ref() } {
            // SAFETY: an open chunk is mapped.
            let Some(chunk) = (unsafe { open.chunk.get().as_ref() }) else {
                return Err("an open chunk is not mapped");
            };
            if open.free_slots.get() == 0 || open.free_slots.get() & 1 != 0 {
                return Err("an open chunk has no free slot, or its metadata free");
            }
            for slot in 1..CHUNK_SLOTS {
                let tag = SlotRef::new(chunk, slot).slab().tag.load(Ordering::Relaxed);
                if (tag == 0) != (open.free_slots.get() >> slot & 1 == 1) {
                    return Err("a slot's tag and its chunk disagree on whether it is free");
                }
            }
            desc = open.next.get();
        }
        self.check_pages()
    }
}
