//! Large objects of a first-class heap: how it maps, resizes and unmaps them. The records are those
//! of [`mapping`](crate::mapping).

use core::cell::Cell;
use core::ptr::{NonNull, null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::extents::LARGE_BYTES_MAPPED;
use crate::geometry::{CHUNK_BYTES, round_up};
use crate::heap::Own;
use crate::large::{self, Contents};
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
        let taken = large::map_object(self, bytes.max(1), align, contents);
        let Some((start, mapped, offset)) = taken else {
            return null_mut();
        };
        record.bytes.store(mapped, Ordering::Relaxed);
        record.offset.store(offset, Ordering::Relaxed);
        if !registry::insert_held(start.addr().get(), mapped, record) {
            // SAFETY: mapped above, and in no use.
            unsafe { sys::unmap(start, mapped) };
            return null_mut();
        }
        record.start.set(start.as_ptr());
        record.freed.store(false, Ordering::Relaxed);
        self.inventory.unused.set(record.next.get());
        self.list_held(record);
        self.count_held(0, mapped);
        start.as_ptr().wrapping_add(offset)
    }

    /// The first unused record, which stays in its list; makes one if there is none.
    fn unused_record(self) -> Option<&'static Mapping> {
        let unused = &self.inventory.unused;
        if unused.get().is_null() {
            let place: NonNull<Mapping> = self.alloc_meta(size_of::<Mapping>())?.cast();
            let record = Mapping {
                inventory: &raw const self.heap().inventory,
                bytes: AtomicUsize::new(0),
                offset: AtomicUsize::new(0),
                freed: AtomicBool::new(false),
                next_freed: AtomicPtr::new(null_mut()),
                start: Cell::new(null_mut()),
                next: Cell::new(null()),
                prev: Cell::new(null()),
            };
            // SAFETY: fresh metadata of this size, 64-byte aligned.
            unsafe { place.write(record) };
            unused.set(place.as_ptr());
        }
        // SAFETY: a record of this heap, initialised when it was made; metadata is never unmapped.
        unsafe { unused.get().as_ref() }
    }

    /// Frees the object that lies in a mapping of this heap.
    pub(crate) fn free_held(self, record: &'static Mapping) {
        if record.freed.load(Ordering::Relaxed) {
            sys::die(
                "double free of the large object at",
                record.start.get().addr(),
            );
        }
        self.unmap_held(record);
    }

    /// Frees what others have left on the stack.
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
        self.unlist_held(record);
        record.freed.store(false, Ordering::Relaxed);
        record.next.set(self.inventory.unused.replace(record));
        self.count_held(bytes, 0);
        registry::remove(start.addr().get(), bytes);
        // SAFETY: whole chunks, which `alloc_held` or `resize_held` has taken; the object is given
        // up, and they are out of the registry.
        unsafe { self.extents.give_chunks(start, bytes / CHUNK_BYTES) };
    }

    /// Unmaps all mappings that the heap holds. Their objects must not be used any more.
    pub(super) fn unmap_all_held(self) {
        // Records on the stack are in the list as well.
        self.inventory.freed.swap(null_mut(), Ordering::Acquire);
        // SAFETY: null or a record of this heap; records live for ever.
        while let Some(record) = unsafe { self.inventory.held.get().as_ref() } {
            self.unmap_held(record);
        }
    }

    /// Tries to give the object in a held mapping a new size where it lies, or by moving its pages;
    /// see [`large::resize`].
    pub(crate) fn resize_held(
        self,
        record: &'static Mapping,
        object: *mut u8,
        align: usize,
        new_bytes: usize,
    ) -> *mut u8 {
        let start = record.start.get();
        let offset = object.addr() - start.addr();
        let rounded = new_bytes
            .checked_add(offset)
            .and_then(|bytes| round_up(bytes, CHUNK_BYTES));
        let (Some(mapped), Some(start)) = (rounded, NonNull::new(start)) else {
            return null_mut();
        };
        if new_bytes < CHUNK_BYTES / 4 || mapped > isize::MAX as usize || align > CHUNK_BYTES {
            return null_mut();
        }
        let old_mapped = record.bytes();
        let resized = if mapped <= old_mapped {
            Some(self.shrink(record, start, mapped))
        } else {
            self.grow(record, start, mapped)
        };
        let Some(resized) = resized else {
            return null_mut();
        };
        record.start.set(resized.as_ptr());
        self.count_held(old_mapped, mapped);
        resized.as_ptr().wrapping_add(offset)
    }

    /// Counts a mapping's bytes again, in the heap's sum and in the process's.
    fn count_held(self, old: usize, new: usize) {
        let sum = &self.inventory.held_bytes;
        sum.set(sum.get() - old + new);
        if new >= old {
            LARGE_BYTES_MAPPED.fetch_add(new - old, Ordering::Relaxed);
        } else {
            LARGE_BYTES_MAPPED.fetch_sub(old - new, Ordering::Relaxed);
        }
    }

    fn list_held(self, record: &'static Mapping) {
        let head = &self.inventory.held;
        record.prev.set(null());
        record.next.set(head.get());
        // SAFETY: null or a record of this heap; records live for ever.
        if let Some(next) = unsafe { head.get().as_ref() } {
            next.prev.set(record);
        }
        head.set(record);
    }

    fn unlist_held(self, record: &'static Mapping) {
        let (next, prev) = (record.next.get(), record.prev.get());
        // SAFETY: null or records of this heap; records live for ever.
        if let Some(next) = unsafe { next.as_ref() } {
            next.prev.set(prev);
        }
        // SAFETY: as above.
        match unsafe { prev.as_ref() } {
            Some(prev) => prev.next.set(next),
            None => self.inventory.held.set(next),
        }
    }

    /// Checks the list of held mappings against the registry and the sum of their bytes. For tests.
    pub(super) fn check_held(self) -> Result<(), &'static str> {
        let mut sum = 0;
        let mut previous: *const Mapping = null();
        let mut next = self.inventory.held.get();
        // SAFETY: null or a record of this heap; records live for ever.
        while let Some(record) = unsafe { next.as_ref() } {
            let start = record.start.get().addr();
            if !record.is_in(&self.inventory) || record.prev.get() != previous {
                return Err("the list of held mappings is broken");
            }
            if registry::owner(start) != registry::Owner::LargeHeld(record)
                || !registry::contains(start + record.bytes() - 1)
                || registry::contains(start + record.bytes())
                    && !start
                        .wrapping_add(record.bytes())
                        .is_multiple_of(CHUNK_BYTES)
            {
                return Err("a held mapping and the registry disagree");
            }
            sum += record.bytes();
            previous = next;
            next = record.next.get();
        }
        if sum == self.inventory.held_bytes() {
            Ok(())
        } else {
            Err("the bytes of held mappings are counted wrong")
        }
    }
}

impl Own<'static> {
    /// Lets go of the end of a mapping: it has `mapped` bytes afterwards.
    fn shrink(self, record: &'static Mapping, start: NonNull<u8>, mapped: usize) -> NonNull<u8> {
        let rest = record.bytes() - mapped;
        record.bytes.store(mapped, Ordering::Relaxed);
        if rest > 0 {
            registry::remove(start.addr().get() + mapped, rest);
            // SAFETY: whole chunks at the end of a mapping of this heap, whose object does not
            // reach there any more, out of the registry.
            let rest_start = unsafe { start.add(mapped) };
            // SAFETY: as above.
            unsafe { self.extents.give_chunks(rest_start, rest / CHUNK_BYTES) };
        }
        start
    }

    /// Makes a mapping `mapped` bytes long, in place or by moving its pages. `None`, and all as
    /// before, when that cannot be.
    fn grow(
        self,
        record: &'static Mapping,
        start: NonNull<u8>,
        mapped: usize,
    ) -> Option<NonNull<u8>> {
        let old_mapped = record.bytes();
        let address = start.addr().get();
        let end = start.as_ptr().wrapping_add(old_mapped);
        let kept = self
            .extents
            .take_kept_behind(end, (mapped - old_mapped) / CHUNK_BYTES);
        let growth = if kept {
            sys::Growth::Grown
        } else {
            // SAFETY: a whole mapping of this heap, whose owner resizes the object in it.
            unsafe { sys::grow_in_place(start, old_mapped, mapped) }
        };
        let grown = match growth {
            sys::Growth::Grown => {
                if !registry::insert_held(address, mapped, record) {
                    // The entries of the old part exist, so this cannot fail.
                    registry::insert_held(address, old_mapped, record);
                    // SAFETY: the part that has just been added, in no use.
                    unsafe { sys::unmap(start.add(old_mapped), mapped - old_mapped) };
                    return None;
                }
                start
            }
            sys::Growth::NoRoom => {
                let target = sys::map_aligned(mapped, CHUNK_BYTES)?;
                let target_address = target.as_ptr().expose_provenance();
                if !registry::prepare(target_address, mapped) {
                    // SAFETY: mapped above, and in no use.
                    unsafe { sys::unmap(target, mapped) };
                    return None;
                }
                // The old entries go before the kernel frees the addresses: another thread may map
                // them at once.
                registry::remove(address, old_mapped);
                // SAFETY: the source is this heap's, and in one piece, as the try in place has
                // shown; the target was mapped above.
                if !unsafe { sys::remap(start, old_mapped, target, mapped) } {
                    // The table has had these entries, so this cannot fail.
                    registry::insert_held(address, old_mapped, record);
                    return None;
                }
                // Prepared above, so this cannot fail.
                registry::insert_held(target_address, mapped, record);
                target
            }
            sys::Growth::Impossible => return None,
        };
        record.bytes.store(mapped, Ordering::Relaxed);
        if !kept {
            large::advise_huge(grown, mapped);
        }
        Some(grown)
    }
}
