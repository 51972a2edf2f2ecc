//! Large objects of a first-class heap, which records their mappings to unmap them when it is
//! dropped. The records are those of [`mapping`](crate::mapping).

use core::ptr::{NonNull, null, null_mut};
use core::sync::atomic::Ordering;

use super::{Contents, Mapped, map_object};
use crate::arena::Own;
use crate::extents::{self, LARGE_BYTES_MAPPED};
use crate::geometry::CHUNK_BYTES;
use crate::list::Listed;
use crate::mapping::Mapping;
use crate::{registry, sys};

impl Own<'static> {
    /// Allocates an object that is too large for a span in a mapping that this heap holds. Null
    /// when the OS refuses.
    #[cold]
    #[inline(never)]
    pub(crate) fn alloc_held(self, bytes: usize, align: usize, contents: Contents) -> *mut u8 {
        self.collect_held();
        let Some(record) = self.unused_record() else {
            return null_mut();
        };
        let Some(mapping) = map_object(self, bytes.max(1), align, contents) else {
            return null_mut();
        };
        let Mapped {
            start,
            bytes: mapped,
            offset,
            huge,
        } = mapping;
        record.huge.set(huge);
        record.bytes.store(mapped, Ordering::Relaxed);
        record.offset.store(offset, Ordering::Relaxed);
        if !registry::insert_held(start.addr().get(), mapped, record) {
            // SAFETY: mapped above, and in no use.
            unsafe { sys::unmap(start, mapped) };
            return null_mut();
        }
        record.start.set(start.as_ptr());
        record.freed.store(false, Ordering::Relaxed);
        self.inventory.unused.set(record.links.next.get());
        record.link_before(&self.inventory.held);
        self.inventory
            .held_bytes
            .set(self.inventory.held_bytes.get() + mapped);
        LARGE_BYTES_MAPPED.fetch_add(mapped, Ordering::Relaxed);
        start.as_ptr().wrapping_add(offset)
    }

    /// The first unused record, which stays in its list; makes one if there is none.
    fn unused_record(self) -> Option<&'static Mapping> {
        let unused = &self.inventory.unused;
        if unused.get().is_null() {
            let place: NonNull<Mapping> = self.alloc_meta(size_of::<Mapping>())?.cast();
            // SAFETY: fresh metadata of this size, 64-byte aligned.
            unsafe { place.write(Mapping::new(&self.arena().inventory)) };
            unused.set(place.as_ptr());
        }
        // SAFETY: a record of this heap, initialised when it was made; metadata is never unmapped.
        unsafe { unused.get().as_ref() }
    }

    /// Frees the object that lies in a mapping of this heap.
    pub(crate) fn free_held(self, record: &'static Mapping) {
        if record.freed.load(Ordering::Relaxed) {
            let start = record.start.get().addr();
            sys::die("double free of the large object at", start);
        }
        self.unmap_held(record);
    }

    /// Frees what other threads have freed.
    fn collect_held(self) {
        if self.inventory.freed.load(Ordering::Relaxed).is_null() {
            return;
        }
        // Acquire pairs with the release of `leave_to_heap`.
        let mut next = self.inventory.freed.swap(null_mut(), Ordering::Acquire);
        // SAFETY: null or a record of this heap; records live for ever.
        while let Some(record) = unsafe { next.as_ref() } {
            next = record.next_freed.load(Ordering::Relaxed);
            // Else the heap has been emptied since, and the record serves another object.
            if record.freed.load(Ordering::Relaxed) {
                self.unmap_held(record);
            }
        }
    }

    /// Unmaps a held mapping, whose object is not used any more.
    fn unmap_held(self, record: &'static Mapping) {
        let bytes = record.bytes();
        let Some(start) = NonNull::new(record.start.replace(null_mut())) else {
            return;
        };
        record.unlink_from(&self.inventory.held);
        record.freed.store(false, Ordering::Relaxed);
        record.links.next.set(self.inventory.unused.replace(record));
        self.inventory
            .held_bytes
            .set(self.inventory.held_bytes.get() - bytes);
        LARGE_BYTES_MAPPED.fetch_sub(bytes, Ordering::Relaxed);
        registry::remove(start.addr().get(), bytes);
        // SAFETY: whole chunks, which `alloc_held` or `Whole::resize` has taken; the object is
        // given up, and they are out of the registry.
        unsafe { extents::give_chunks(record.huge.get().tail(start, bytes)) };
    }

    /// Unmaps all mappings that the heap holds. Their objects must not be used any more.
    pub(crate) fn unmap_all_held(self) {
        // Records on the stack are in the list as well.
        self.inventory.freed.swap(null_mut(), Ordering::Acquire);
        // SAFETY: null or a record of this heap; records live for ever.
        while let Some(record) = unsafe { self.inventory.held.get().as_ref() } {
            self.unmap_held(record);
        }
    }

    /// Checks the list of held mappings against the registry and the sum of their bytes. For tests.
    pub(crate) fn check_held(self) -> Result<(), &'static str> {
        let mut sum = 0;
        let mut previous: *const Mapping = null();
        let mut next = self.inventory.held.get();
        // SAFETY: null or a record of this heap; records live for ever.
        while let Some(record) = unsafe { next.as_ref() } {
            let start = record.start.get().addr();
            if !record.is_in(&self.inventory) || record.links.prev.get() != previous {
                return Err("the list of held mappings is broken");
            }
            let end = start + record.bytes();
            if registry::owner(start) != registry::Owner::LargeHeld(record)
                || !registry::contains(end - 1)
                || registry::contains(end) && !end.is_multiple_of(CHUNK_BYTES)
            {
                return Err("a held mapping and the registry disagree");
            }
            sum += record.bytes();
            previous = next;
            next = record.links.next.get();
        }
        if sum != self.inventory.held_bytes.get() {
            return Err("the bytes of held mappings are counted wrong");
        }
        Ok(())
    }
}
