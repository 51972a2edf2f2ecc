//! Which live object an address lies in: what the learner of `libccmalloc.so` asks.

use crate::arena::Own;
use crate::chunk::{SlotRef, granule_bit, kind, map_word};
use crate::geometry::{GRANULE_BYTES, SLOT_BYTES, chunk_base, slot_offset};
use crate::registry;
use crate::size_class::SMALL_BYTES_MAX;

impl Own<'_> {
    /// Start and bytes of the live object of this arena, of at most [`SMALL_BYTES_MAX`], in which
    /// `address` lies, which may be any number.
    pub(crate) fn locate(self, address: usize) -> Option<(usize, usize)> {
        let is_metadata = address - chunk_base(address) < SLOT_BYTES;
        if is_metadata || !registry::is_chunk_of(address, self.arena()) {
            return None;
        }
        // SAFETY: a chunk of this thread's arena, by the registry; only this thread unmaps it.
        let slot = unsafe { SlotRef::containing(address) };
        let tag = slot.slab().tag();
        if tag == self.tag(kind::COLOCATED) {
            let (start, bytes) = self.locate_colocated(address)?;
            return (bytes <= SMALL_BYTES_MAX).then_some((start, bytes));
        }
        if tag.owner() != (&raw const *self.arena()).addr() || tag.kind() > kind::FULL {
            return None;
        }
        let bytes = tag.class().bytes() as usize;
        let start = address - slot_offset(address) % bytes;
        // What is left at the end of a slot is no object.
        if slot_offset(start) + bytes > SLOT_BYTES {
            return None;
        }
        // SAFETY: `start` lies in the slot of `address`, which is not the first of its chunk.
        let word = unsafe { map_word(start) };
        (word.get() & granule_bit(start) != 0).then_some((start, bytes))
    }

    /// [`locate`](Self::locate) in a co-location slot of this arena.
    fn locate_colocated(self, address: usize) -> Option<(usize, usize)> {
        let run = self.pages_containing(address)?.run_around(address)?;
        let base = address - slot_offset(address);
        Some((
            base + run.first * GRANULE_BYTES,
            run.granules * GRANULE_BYTES,
        ))
    }
}
