//! Room in which a caller chooses each object's place.

use core::alloc::Layout;
use core::marker::PhantomData;

use crate::chunk::SlotRef;
use crate::geometry::{PAGE_BYTES, SLOT_BYTES};
use crate::thread::{Ambient, AmbientGuard, own_heap};

/// Room for objects at offsets of the caller's choice: what a re-layouter needs.
///
/// A region only proposes places. [`alloc_at`](Region::alloc_at) allocates through the program's global allocator, and when that
/// is [`CcMalloc`](crate::CcMalloc) the object lies where the region says; under any other allocator it lies wherever that one
/// puts it, and is no less valid. Objects are ordinary allocations: they outlive the region, and are freed one by one.
///
/// What is left free when the region is dropped serves hints like any other room. (A region that a thread-local variable keeps
/// beyond the life of its thread's heap cannot give it back.)
///
/// # Examples
///
/// ```
/// use std::alloc::Layout;
/// #[global_allocator]
/// static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
///
/// let mut region = ccmalloc::Region::reserve(1000).expect("memory");
/// let layout = Layout::new::<[u64; 3]>();
/// let object = region.alloc_at(64, layout);
/// assert_eq!(object, region.address(64));
/// // SAFETY: allocated just above with this layout.
/// unsafe { std::alloc::dealloc(object, layout) };
/// ```
#[derive(Debug)]
pub struct Region {
    /// Addresses of the segments, co-location slots of the heap of the thread that made the region.
    segments: Vec<*mut u8>,
    /// The places belong to one thread's heap.
    _not_send: PhantomData<*const ()>,
}

impl Region {
    /// No object may cross a multiple of this many bytes.
    pub const SEGMENT_BYTES: usize = SLOT_BYTES;
    /// The largest object that can be placed, in bytes.
    pub const OBJECT_BYTES_MAX: usize = PAGE_BYTES;

    /// Reserves room for the offsets `0..bytes`, rounded up to whole segments; `None` when the OS refuses memory.
    ///
    /// Writes 2.5 KiB of metadata for each segment of 64 KiB; no page of the room itself is touched.
    #[must_use]
    pub fn reserve(bytes: usize) -> Option<Region> {
        let own = own_heap()?;
        let count = bytes.div_ceil(Self::SEGMENT_BYTES);
        let mut segments = Vec::new();
        segments.try_reserve_exact(count).ok()?;
        let mut region = Region {
            segments,
            _not_send: PhantomData,
        };
        for _ in 0..count {
            // On failure, dropping the region gives back what there is.
            let slot = own.new_colocation_slot()?;
            own.reserve_slot(slot);
            region.segments.push(slot.base());
        }
        // Slots come from chunks with room in the order of the heap's list; in address order, neighbours are neighbours.
        region.segments.sort_unstable();
        Some(region)
    }

    /// The address that `offset` stands for; null beyond the reserved room.
    ///
    /// Offsets within one segment are contiguous. Segments start at multiples of their size, in ascending order, and most are
    /// adjacent: 31 of them lie in each 2 MiB.
    #[must_use]
    pub fn address(&self, offset: usize) -> *mut u8 {
        self.segments
            .get(offset / Self::SEGMENT_BYTES)
            .map_or(core::ptr::null_mut(), |segment| {
                segment.wrapping_add(offset % Self::SEGMENT_BYTES)
            })
    }

    /// Calls [`std::alloc::alloc`] so that, when `CcMalloc` serves it, the object lies at [`address(offset)`](Region::address).
    ///
    /// Whatever it returns is an ordinary allocation of the program's global allocator with this layout; compare it with
    /// `address(offset)` to learn whether it lies there. It does not when the allocator is another one, the place is taken or
    /// misaligned, or the object would cross a segment or is larger than [`Region::OBJECT_BYTES_MAX`]. Null when out of memory, and
    /// for a layout of size 0.
    #[must_use]
    pub fn alloc_at(&mut self, offset: usize, layout: Layout) -> *mut u8 {
        if layout.size() == 0 {
            return core::ptr::null_mut();
        }
        let address = if layout.size() <= Self::OBJECT_BYTES_MAX {
            self.address(offset).addr()
        } else {
            0
        };
        let _ambient = AmbientGuard::set(Ambient::At(address));
        // SAFETY: the layout's size is not 0.
        unsafe { std::alloc::alloc(layout) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let Some(own) = own_heap() else { return };
        for segment in &self.segments {
            own.settle_address(segment.addr());
        }
    }
}

impl crate::heap::Own<'_> {
    /// [`settle_slot`](Self::settle_slot) for the slot at `address`, if that still is a co-location slot of this heap.
    fn settle_address(self, address: usize) {
        if self.is_colocated(address) {
            // SAFETY: a chunk of this heap, which only this thread unmaps.
            self.settle_slot(unsafe { SlotRef::containing(address) });
        }
    }
}
