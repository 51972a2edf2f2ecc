//! A core heap as a whole: where it comes from, and how all of it goes back at once.
//!
//! Cores are never unmapped, because other threads may still look at one. An emptied core waits on
//! a stack of its own for the next [`Heap`](crate::Heap), apart from the stack of abandoned heaps:
//! no thread may get a heap that is dropped as a whole.

use core::ops::ControlFlow;
use core::ptr::null;

use crate::arena::{Arena, Own};
use crate::geometry::CHUNK_BYTES;
use crate::protocol::TaggedStack;

/// Cores of dropped heaps.
static IDLE: TaggedStack<Arena> = TaggedStack::new();

impl Own<'static> {
    /// An empty core: one of a dropped heap, or a new one. `None` when the OS refuses memory.
    pub(super) fn acquire_core() -> Option<Self> {
        match IDLE.pop() {
            // SAFETY: it was on the stack of idle cores, so no thread owned it, and it is off the
            // stack now.
            Some(core) => Some(unsafe { Own::new(core) }),
            None => Own::map(),
        }
    }

    /// Puts an empty core aside for the next heap. The caller owns it no more.
    pub(super) fn retire_core(self) {
        // SAFETY: heaps are mapped by `Own::map`, aligned to 32 KiB, for ever; this one is the
        // caller's, and on no stack.
        unsafe { IDLE.push(self.arena()) };
    }

    /// Gives all chunks and mappings back to the OS, whatever they hold. Computes in O(chunks and
    /// mappings), not objects.
    ///
    /// # Safety
    /// - No object of the heap is used any more, nor freed.
    pub(super) unsafe fn release_all(self) {
        // Every field is named, so that a new one is not forgotten here.
        let Arena {
            bins,
            active_slab,
            partial,
            open,
            unused_descs: _, // what `return_chunk` adds to
            spare,
            chunks: _,    // counted down by `return_chunk`
            extents: _,   // emptied at last
            purged_at: _, // any value will do
            meta: _,      // metadata stays with the core,
            meta_left: _, // for the next heap
            colour: _,    // any value will do
            run_next: _,  // no run
            run_end,
            latest_opening,
            freed_place: _, // any value will do
            roomy_slots,
            fresh_page,
            inventory,
            placed: _, // counts over the life of the process
            dirty,
            next_abandoned: _,
            next_arena: _,
        } = self.arena();
        // What others have freed is forgotten with the rest; but the descriptors leave the stack in
        // the order that keeps the protocol.
        dirty.0.collect(|_, _| ControlFlow::Continue(()));
        for bin in bins {
            bin.forget_all();
        }
        for list in active_slab.iter().chain(partial) {
            list.set(null());
        }
        open.set(null());
        spare.set(null());
        run_end.set(0);
        latest_opening.set(0);
        roomy_slots.set(null());
        fresh_page.set(0);
        let mut next = inventory.descs.get();
        // SAFETY: null or a descriptor of this heap, which lives for ever.
        while let Some(desc) = unsafe { next.as_ref() } {
            next = desc.next_made.get();
            // SAFETY: the caller's promise; all that could refer to the chunk was reset above.
            unsafe { self.return_chunk(desc) };
            desc.links.prev.set(null());
        }
        self.unmap_all_held();
        // Chunks and mappings were only kept so far.
        self.extents.unmap_kept();
    }

    /// Bytes of chunks that the heap has mapped.
    pub(super) fn chunk_bytes(self) -> usize {
        self.chunks.get() * CHUNK_BYTES
    }
}
