//! Objects that another thread than their heap's frees.
//!
//! ```text
//! freeing thread                                 owner, when a class has run out of free objects
//! ──────────────                                 ───────────────────────────────────────────────
//! slot.remote[w] |= bit          (RMW)           take the whole stack of dirty chunks    (RMW)
//! if chunk.dirty has the slot:   done            for each: take its dirty slots          (RMW)
//! else chunk.dirty |= slot       (RMW)             for each slot: free |= take remote[w]  (load; RMW if not 0)
//!   if it was 0: push the chunk  (CAS)
//! ```
//!
//! All but the stack's operations are sequentially consistent: either the freeing thread sees the slot's flag cleared and
//! sets it again, or the owner, which cleared it before it looked at the map, sees the bit. Setting the bit is the last time
//! that the freeing thread touches the chunk, which may be unmapped from then on; the flags lie in the chunk's descriptor,
//! which never is. A bit that is set already is a double free, and so is one that the owner finds free. A co-located object has one bit as
//! well, its first granule's; how far it reaches, the owner finds in the slot's end map (`ends`).

use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::chunk::{ChunkDesc, SlotRef, kind};
use crate::ends;
use crate::heap::{Heap, Own};
use crate::sys;

/// Leaves an object of another heap to that heap: sets its bit in the slot's remote map, and announces the slot. One atomic
/// read-modify-write a free, while the owner has not looked yet. `bit` stands for the object: the
/// number of its first granule in its slot, 0 for a span.
///
/// A known weakness: `slot` borrows the chunk, which its owner may unmap between the bit and the return from here. No
/// access follows, and all that is borrowed lies in cells and atomics; `Arc`'s drop has lived with the same
/// (<https://github.com/rust-lang/rust/issues/55005>).
pub(crate) fn free_remote(slot: SlotRef<'_>, owner: usize, bit: usize, address: usize) {
    // Read before the bit is set: from then on the chunk may be gone.
    let desc = slot.desc();
    let number = slot.slot();
    if let Some(word) = slot.remote().get(bit / 64) {
        let mask = 1u64 << (bit % 64);
        // Release (as part of SeqCst): what this thread did with the object comes before its next use.
        if word.fetch_or(mask, Ordering::SeqCst) & mask != 0 {
            sys::die("double free of", address);
        }
    }
    let heap: *const Heap = core::ptr::with_exposed_provenance(owner);
    // SAFETY: a tag names a heap, and heaps live for ever.
    if let Some(heap) = unsafe { heap.as_ref() } {
        heap.announce(desc, number);
    }
}

impl Heap {
    /// Announces that another thread has freed something in `slot` of `desc`, one of this heap's chunks.
    pub(crate) fn announce(&self, desc: &ChunkDesc, slot: usize) {
        if !desc.mark_dirty(slot) {
            return;
        }
        let mut head = self.dirty.0.load(Ordering::Relaxed);
        loop {
            desc.next_dirty.store(head, Ordering::Relaxed);
            let new = (&raw const *desc).cast_mut();
            match self.dirty.0.compare_exchange_weak(
                head,
                new,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

impl<'a> Own<'a> {
    /// Takes what other threads have freed into the free maps.
    #[cold]
    #[inline(never)]
    pub(crate) fn collect_remote(self) {
        let mut desc = self.dirty.0.swap(null_mut(), Ordering::Acquire);
        // SAFETY: null or a descriptor of this heap, which lives for ever.
        while let Some(dirty) = unsafe { desc.as_ref() } {
            // Before the flags are cleared: after that, another thread may push the descriptor anew.
            desc = dirty.next_dirty.load(Ordering::Relaxed);
            // Sequentially consistent, and so are the loads of the remote maps after it: see `ChunkDesc::mark_dirty`.
            let mut slots = dirty.dirty.swap(0, Ordering::SeqCst);
            while slots != 0 {
                let slot = slots.trailing_zeros() as usize;
                slots &= slots - 1;
                // SAFETY: null or this heap's chunk, which is mapped as long as the descriptor names it. Asked anew for each slot:
                // taking one slot's frees in may empty the chunk and unmap it.
                let Some(chunk) = (unsafe { dirty.chunk.get().as_ref() }) else {
                    break;
                };
                self.absorb(SlotRef::new(chunk, slot));
            }
        }
    }

    /// Takes the remote map of `slot` into its free map.
    fn absorb(self, slot: SlotRef<'a>) {
        let slab = slot.slab();
        let tag = slab.tag();
        if tag.owner() != self.tag(0).owner() {
            // A slot that was released since it was announced.
            return;
        }
        if tag.kind() == kind::SPAN {
            let word = slot.remote().first();
            if word.is_some_and(|word| word.swap(0, Ordering::SeqCst) != 0) {
                self.free_span(slot);
            }
            return;
        }
        if tag.kind() == kind::COLOCATED {
            // SAFETY: a co-location slot of this heap.
            if ends::absorb(slot, unsafe { slot.ends() }) {
                self.recount_pages(slot);
            }
            return;
        }
        let mut any = false;
        for (word, remote) in slot.map().iter().zip(slot.remote()) {
            if remote.load(Ordering::SeqCst) == 0 {
                continue;
            }
            // Acquire: what the other threads did with the objects happened before they are handed out again.
            let freed = remote.swap(0, Ordering::SeqCst);
            if freed & !word.get() != 0 {
                sys::die(
                    "double free, by two threads, in the slab at",
                    slot.base().addr(),
                );
            }
            word.set(word.get() ^ freed);
            any = true;
        }
        if !any {
            return;
        }
        if tag.kind() == kind::FULL {
            self.link_partial(slab);
        }
        self.release_if_empty(slot);
    }
}
