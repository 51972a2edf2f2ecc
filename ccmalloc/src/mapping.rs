//! What a heap must know to be dropped as a whole: its chunks, and the large mappings that it
//! holds.
//!
//! A thread's heap is never dropped, and knows neither. A first-class heap holds its mappings: each
//! has a record among the heap's metadata, to which the registry leads, and the records form a
//! list. Only the heap's owner unmaps. A free by another thread leaves the object on a stack, which
//! the owner takes before it maps again.

use core::cell::Cell;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::chunk::ChunkDesc;
use crate::sys;

/// See the module's documentation.
///
/// Invariants, kept by `Own`:
/// - `descs` lists every descriptor of a chunk that the heap has made, by `next_made`;
/// - every record of the heap is either in the list `held` (by `next` and `prev`) and its mapping
///   is mapped and entered in the registry, or in the list `unused` (by `next`).
pub(crate) struct Inventory {
    pub(crate) descs: Cell<*const ChunkDesc>,
    pub(crate) held: Cell<*const Mapping>,
    pub(crate) unused: Cell<*const Mapping>,
    /// Bytes of the mappings in `held`.
    pub(crate) held_bytes: Cell<usize>,
    /// Records whose objects were freed by somebody else than the owner: a stack that others push
    /// onto.
    pub(crate) freed: AtomicPtr<Mapping>,
}

impl Inventory {
    pub(crate) const fn new() -> Self {
        Self {
            descs: Cell::new(null()),
            held: Cell::new(null()),
            unused: Cell::new(null()),
            held_bytes: Cell::new(0),
            freed: AtomicPtr::new(null_mut()),
        }
    }

    /// Bytes of the mappings that the heap holds.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.get()
    }
}

/// The record of one large object's mapping. Metadata of its heap: reused, never unmapped.
///
/// The cells are the owner's; the rest may be read by any thread.
#[repr(C, align(64))]
pub(crate) struct Mapping {
    /// Of the heap that holds it.
    pub(crate) inventory: *const Inventory,
    pub(crate) bytes: AtomicUsize,
    /// Where in the mapping the object starts, in bytes.
    pub(crate) offset: AtomicUsize,
    /// Set by a thread that frees the object and does not own the heap.
    pub(crate) freed: AtomicBool,
    /// Next in the stack of these.
    pub(crate) next_freed: AtomicPtr<Mapping>,
    pub(crate) start: Cell<*mut u8>,
    pub(crate) next: Cell<*const Mapping>,
    pub(crate) prev: Cell<*const Mapping>,
}

const _: () = assert!(size_of::<Mapping>() == 64);

impl Mapping {
    /// Length of the mapping.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Where in the mapping the object starts, in bytes.
    pub(crate) fn offset(&self) -> usize {
        self.offset.load(Ordering::Relaxed)
    }

    /// Whether the heap with this inventory holds it.
    pub(crate) fn is_in(&self, inventory: &Inventory) -> bool {
        core::ptr::eq(self.inventory, inventory)
    }

    /// Frees the object, which lies at `address`, for its heap to notice. For threads that do not
    /// own the heap.
    pub(crate) fn leave_to_heap(&self, address: usize) {
        if self.freed.swap(true, Ordering::Relaxed) {
            sys::die("double free of the large object at", address);
        }
        // SAFETY: heaps live for ever.
        let inventory = unsafe { &*self.inventory };
        let mut head = inventory.freed.load(Ordering::Relaxed);
        loop {
            self.next_freed.store(head, Ordering::Relaxed);
            let new = (&raw const *self).cast_mut();
            // Release: what this thread did with the object comes before it is unmapped.
            match (inventory.freed).compare_exchange_weak(
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
