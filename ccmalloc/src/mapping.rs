//! The inventory of a first-class heap: the chunks and large mappings to unmap when it is dropped.
//!
//! Each mapping has a record among the heap's metadata, to which the registry leads. Only the
//! heap's owner unmaps: a free by another thread leaves the record on a stack, which the owner
//! takes before it maps again. A thread's arena lists only its chunks.

use core::cell::Cell;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::chunk::ChunkDesc;
use crate::huge::HugePages;
use crate::list::{Links, Listed};
use crate::sys;

/// See the module's documentation.
///
/// Invariants, kept by `Own`:
/// - `descs` lists every descriptor of a chunk that the heap has made, by `next_made`;
/// - every record of the heap is either in the list `held` and its mapping is mapped and entered in
///   the registry, or in the list `unused` (by `next`).
pub(crate) struct Inventory {
    pub(crate) descs: Cell<*const ChunkDesc>,
    pub(crate) held: Cell<*const Mapping>,
    pub(crate) unused: Cell<*const Mapping>,
    /// Bytes of the mappings in `held`.
    pub(crate) held_bytes: Cell<usize>,
    /// Records whose objects other threads have freed: a stack that these push onto.
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
}

/// The record of one large object's mapping. Metadata of its heap: reused, never unmapped.
///
/// The cells are the owner's; the rest may be read by any thread.
#[repr(C, align(64))]
pub(crate) struct Mapping {
    /// The inventory of the heap that holds it.
    pub(crate) inventory: *const Inventory,
    pub(crate) bytes: AtomicUsize,
    /// Where in the mapping the object starts, in bytes.
    pub(crate) offset: AtomicUsize,
    /// Set by a thread that frees the object and does not own the heap.
    pub(crate) freed: AtomicBool,
    pub(crate) huge: Cell<HugePages>,
    /// Next in the stack of these.
    pub(crate) next_freed: AtomicPtr<Mapping>,
    pub(crate) start: Cell<*mut u8>,
    pub(crate) links: Links<Mapping>,
}

const _: () = assert!(size_of::<Mapping>() == 64);

// SAFETY: records live for ever; `next` is also that of the list `unused` while the record is not
// in `held`.
unsafe impl Listed for Mapping {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

impl Mapping {
    /// A record of the heap with this inventory, in no use.
    pub(crate) const fn new(inventory: &Inventory) -> Self {
        Self {
            inventory,
            bytes: AtomicUsize::new(0),
            offset: AtomicUsize::new(0),
            freed: AtomicBool::new(false),
            next_freed: AtomicPtr::new(null_mut()),
            huge: Cell::new(HugePages::No),
            start: Cell::new(null_mut()),
            links: Links::new(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset.load(Ordering::Relaxed)
    }

    /// Whether the heap with this inventory holds it.
    pub(crate) fn is_in(&self, inventory: &Inventory) -> bool {
        core::ptr::eq(self.inventory, inventory)
    }

    /// Frees the object, which lies at `address`, by leaving it to its heap.
    pub(crate) fn leave_to_heap(&self, address: usize) {
        if self.freed.swap(true, Ordering::Relaxed) {
            sys::die("double free of the large object at", address);
        }
        // SAFETY: arenas, which have the inventories, live for ever.
        let inventory = unsafe { &*self.inventory };
        // Release: what this thread did with the object comes before it is unmapped.
        let _ = (inventory.freed).fetch_update(Ordering::Release, Ordering::Relaxed, |head| {
            self.next_freed.store(head, Ordering::Relaxed);
            Some((&raw const *self).cast_mut())
        });
    }
}
