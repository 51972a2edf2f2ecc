//! Room in which a caller chooses each object's place.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::null_mut;

use crate::arena::Own;
use crate::chunk::SlotRef;
use crate::first_class::Heap;
use crate::geometry::{GRANULE_BYTES, PAGE_BYTES, SLOT_BYTES, slot_offset};
use crate::global::is_declared_global;
use crate::pages::{Pages, Run, granules_of};
use crate::thread::{self, Ambient, AmbientGuard, own_arena};

/// Room for objects at offsets of the caller's choice.
///
/// [`alloc_at`](Region::alloc_at) allocates through the global allocator: if that is
/// [`CcMalloc`](crate::CcMalloc), the object lies at the chosen offset, else anywhere. Objects are
/// ordinary allocations, which outlive the region.
///
/// When the region is dropped, its free room serves hints. (A region in a thread-local variable
/// that outlives its thread's heap cannot give it back.)
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
    segments: Segments,
    /// The segments belong to the heap of the thread that made the region.
    _not_send: PhantomData<*const ()>,
}

impl Region {
    /// No object may cross a multiple of this many bytes.
    pub const SEGMENT_BYTES: usize = SLOT_BYTES;
    /// The largest object that can be placed, in bytes.
    pub const OBJECT_BYTES_MAX: usize = PAGE_BYTES;

    /// Reserves room for the offsets `0..bytes`, rounded up to whole segments of 64 KiB. `None` if
    /// the OS refuses memory. Writes 2 KiB of metadata a segment; does not touch the room itself.
    #[must_use]
    pub fn reserve(bytes: usize) -> Option<Region> {
        Some(Region {
            segments: Segments::reserve(own_arena()?, bytes)?,
            _not_send: PhantomData,
        })
    }

    /// The address of `offset`; null beyond the reserved room.
    ///
    /// Offsets in one segment are contiguous. Segments start at multiples of their size, in
    /// ascending order. Most are adjacent: 31 lie in each 2 MiB.
    #[must_use]
    pub fn address(&self, offset: usize) -> *mut u8 {
        self.segments.address(offset)
    }

    /// Calls [`std::alloc::alloc`] so that, when `CcMalloc` serves it, the object lies at
    /// [`address(offset)`](Region::address).
    ///
    /// The object lies elsewhere under another allocator, if the place is taken or misaligned, or
    /// if the object would cross a segment or is larger than [`Region::OBJECT_BYTES_MAX`]: compare
    /// the result with `address(offset)`. Null when out of memory, and for a layout of size 0.
    #[must_use]
    pub fn alloc_at(&mut self, offset: usize, layout: Layout) -> *mut u8 {
        if layout.size() == 0 {
            return null_mut();
        }
        let _ambient = AmbientGuard::set(Ambient::At(self.segments.place(offset, layout)));
        // SAFETY: the layout's size is not 0.
        unsafe { std::alloc::alloc(layout) }
    }

    /// [`alloc_at`](Region::alloc_at) for many objects of one layout. The addresses of `places` are
    /// the offsets; they become the objects' addresses. Stops at the first offset that is not
    /// available, leaves the rest of `places` as it was, and returns the number of objects.
    ///
    /// Costs a third of as many calls of `alloc_at`, and half of that after
    /// [`declare_global`](crate::declare_global).
    #[must_use]
    pub fn alloc_each(&mut self, layout: Layout, places: &mut [*mut u8]) -> usize {
        if is_declared_global() {
            return self.cc_alloc_each(layout, places);
        }
        let Some(own) = own_arena() else { return 0 };
        let ambient = AmbientGuard::set(Ambient::At(0));
        let allocated = (self.segments).claim_each(own, layout, places, |place| {
            ambient.replace(Ambient::Ready(place.addr(), layout));
            // SAFETY: places are claimed for layouts of a size that is not 0.
            let object = unsafe { std::alloc::alloc(layout) };
            if object == place {
                return Claim::Taken(object);
            }
            let untouched = matches!(ambient.replace(Ambient::At(0)), Ambient::Ready(..));
            if !object.is_null() {
                // SAFETY: allocated just now with this layout, and not used.
                unsafe { std::alloc::dealloc(object, layout) };
            }
            if untouched {
                Claim::Unused
            } else {
                Claim::Lost
            }
        });
        drop(ambient);
        allocated
    }

    /// As [`alloc_each`](Region::alloc_each), with objects as of
    /// [`cc_alloc_at`](Region::cc_alloc_at).
    #[must_use]
    pub fn cc_alloc_each(&mut self, layout: Layout, places: &mut [*mut u8]) -> usize {
        own_arena().map_or(0, |own| {
            (self.segments).claim_each(own, layout, places, Claim::Taken)
        })
    }

    /// Packs objects of [`CcMalloc`](crate::CcMalloc) into the empty region from its start, one for
    /// each of `places`, as many as fit into each segment. The addresses of `places` are their
    /// offsets, and become their addresses. Returns whether there was room; otherwise nothing has
    /// changed.
    ///
    /// Costs a dozen instructions an object. Only for layouts that are a multiple of 8 bytes long
    /// and leave no gaps.
    ///
    /// # Safety
    /// - The offsets are those of these objects, in any order: `n` of the offsets `segment *
    ///   SEGMENT_BYTES + i * layout.size()`, each object's once.
    #[must_use]
    pub unsafe fn cc_fill(&mut self, layout: Layout, places: &mut [*mut u8]) -> bool {
        // SAFETY: the caller promises that the offsets are those of objects of this layout.
        own_arena().is_some_and(|own| unsafe { self.segments.fill(own, layout, places) })
    }

    /// As [`alloc_at`](Region::alloc_at), but from [`CcMalloc`](crate::CcMalloc) whatever the
    /// program's global allocator is: an object for [`cc_dealloc`](crate::cc_dealloc) or
    /// [`raw::deallocate`](crate::raw::deallocate).
    #[must_use]
    pub fn cc_alloc_at(&mut self, offset: usize, layout: Layout) -> *mut u8 {
        (self.segments).alloc_at(own_arena(), offset, layout, || thread::alloc(layout))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some(own) = own_arena() {
            self.segments.settle(own);
        }
    }
}

/// A [`Region`] of a [`Heap`].
///
/// # Examples
///
/// ```
/// use std::{alloc::Layout, ptr::NonNull};
///
/// let heap = ccmalloc::Heap::new().expect("memory");
/// let mut region = ccmalloc::HeapRegion::reserve(&heap, 1000).expect("memory");
/// let layout = Layout::new::<[u64; 3]>();
/// let object = NonNull::new(region.alloc_at(64, layout)).expect("memory");
/// assert_eq!(object.as_ptr(), region.address(64));
/// assert!(heap.contains(object.as_ptr()));
/// // SAFETY: allocated just above, in this heap, with this layout.
/// unsafe { heap.dealloc(object, layout) };
/// ```
#[derive(Debug)]
pub struct HeapRegion<'h> {
    heap: &'h Heap,
    segments: Segments,
}

impl<'h> HeapRegion<'h> {
    /// Reserves room in `heap`, as [`Region::reserve`].
    #[must_use]
    pub fn reserve(heap: &'h Heap, bytes: usize) -> Option<HeapRegion<'h>> {
        Some(HeapRegion {
            heap,
            segments: Segments::reserve(heap.own(), bytes)?,
        })
    }

    /// The heap whose objects these are.
    #[must_use]
    pub fn heap(&self) -> &'h Heap {
        self.heap
    }

    /// As [`Region::address`].
    #[must_use]
    pub fn address(&self, offset: usize) -> *mut u8 {
        self.segments.address(offset)
    }

    /// As [`Region::alloc_at`], with objects as of [`Heap::alloc`].
    #[must_use]
    pub fn alloc_at(&mut self, offset: usize, layout: Layout) -> *mut u8 {
        (self.segments).alloc_at(Some(self.heap.own()), offset, layout, || {
            (self.heap.alloc(layout, None)).map_or(null_mut(), |at| at.as_ptr())
        })
    }

    /// As [`Region::alloc_each`], with objects of the heap.
    #[must_use]
    pub fn alloc_each(&mut self, layout: Layout, places: &mut [*mut u8]) -> usize {
        (self.segments).claim_each(self.heap.own(), layout, places, Claim::Taken)
    }

    /// As [`Region::cc_fill`], with objects of the heap.
    ///
    /// # Safety
    /// - As for [`Region::cc_fill`].
    #[must_use]
    pub unsafe fn fill(&mut self, layout: Layout, places: &mut [*mut u8]) -> bool {
        // SAFETY: the caller promises that the offsets are those of objects of this layout.
        unsafe { self.segments.fill(self.heap.own(), layout, places) }
    }
}

impl Drop for HeapRegion<'_> {
    fn drop(&mut self) {
        self.segments.settle(self.heap.own());
    }
}

/// What became of a place that was claimed for an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// The caller has it, by this pointer, which may be that of the global allocator.
    Taken(*mut u8),
    /// Nothing uses it.
    Unused,
    /// Other code has it.
    Lost,
}

/// Addresses of reserved co-location slots of one heap, ascending.
#[derive(Debug)]
struct Segments(Vec<*mut u8>);

impl Segments {
    fn reserve(own: Own<'_>, bytes: usize) -> Option<Self> {
        let count = bytes.div_ceil(SLOT_BYTES);
        let mut segments = Segments(Vec::new());
        segments.0.try_reserve_exact(count).ok()?;
        for _ in 0..count {
            let Some(pages) = own.new_colocation_slot() else {
                segments.settle(own);
                return None;
            };
            own.reserve_slot(pages.slot());
            segments.0.push(pages.slot().base());
        }
        segments.0.sort_unstable();
        Some(segments)
    }

    fn address(&self, offset: usize) -> *mut u8 {
        (self.0.get(offset / SLOT_BYTES)).map_or(null_mut(), |segment| {
            segment.wrapping_add(offset % SLOT_BYTES)
        })
    }

    /// Makes an object at `offset` in `own`, the heap of the segments, else `elsewhere`. Null for a
    /// layout of size 0.
    fn alloc_at(
        &self,
        own: Option<Own<'_>>,
        offset: usize,
        layout: Layout,
        elsewhere: impl FnOnce() -> *mut u8,
    ) -> *mut u8 {
        if layout.size() == 0 {
            return null_mut();
        }
        let place = self.place(offset, layout);
        match own.map_or(null_mut(), |own| {
            own.claim_at(place, layout.size(), layout.align())
        }) {
            object if object.is_null() => elsewhere(),
            object => object,
        }
    }

    /// The address of `offset`; 0 for objects that cannot be placed.
    fn place(&self, offset: usize, layout: Layout) -> usize {
        if layout.size() <= Region::OBJECT_BYTES_MAX {
            self.address(offset).addr()
        } else {
            0
        }
    }

    /// See [`Region::alloc_each`]. Calls `hand` with each place once it is claimed. `own` is the
    /// heap of the segments.
    fn claim_each(
        &self,
        own: Own<'_>,
        layout: Layout,
        places: &mut [*mut u8],
        mut hand: impl FnMut(*mut u8) -> Claim,
    ) -> usize {
        // The thread may have got another arena since.
        if layout.size() == 0
            || layout.size() > Region::OBJECT_BYTES_MAX
            || layout.align() > Region::OBJECT_BYTES_MAX
            || !(self.0.iter()).all(|segment| own.pages_containing(segment.addr()).is_some())
        {
            return 0;
        }
        let granules = granules_of(layout.size());
        let mut claimed = 0;
        for place in places {
            let object = self.address(place.addr());
            if object.is_null() || object.addr() & (layout.align().max(GRANULE_BYTES) - 1) != 0 {
                break;
            }
            // SAFETY: in a segment, a co-location slot of this heap, as found above. `hand` cannot
            // change that: reserved slots are not given back.
            let pages = unsafe { Pages::of(SlotRef::containing(object.addr())) };
            let first = slot_offset(object.addr()) / GRANULE_BYTES;
            if !pages.claim_if_free(Run { first, granules }) {
                break;
            }
            match hand(object) {
                Claim::Taken(object) => *place = object,
                Claim::Unused => {
                    // SAFETY: the co-location slot of this heap with the object, which is unused.
                    unsafe { own.free_colocated(pages.slot(), object.addr(), Some(layout.size())) };
                    break;
                }
                Claim::Lost => break,
            }
            claimed += 1;
        }
        claimed
    }

    /// See [`Region::cc_fill`]; `own` is the heap of the segments.
    ///
    /// # Safety
    /// - As for [`Region::cc_fill`].
    unsafe fn fill(&self, own: Own<'_>, layout: Layout, places: &mut [*mut u8]) -> bool {
        let bytes = layout.size();
        if bytes == 0
            || bytes > Region::OBJECT_BYTES_MAX
            || !bytes.is_multiple_of(GRANULE_BYTES.max(layout.align()))
        {
            return false;
        }
        let in_segment = SLOT_BYTES / bytes;
        let segments = places.len().div_ceil(in_segment);
        let Some(filled) = self.0.get(..segments) else {
            return false;
        };
        // The thread may have got another arena since.
        let slots = || (filled.iter()).map(|segment| own.pages_containing(segment.addr()));
        if !slots().all(|pages| pages.is_some_and(Pages::is_empty)) {
            return false;
        }
        let mut left = places.len();
        for pages in slots().flatten() {
            let count = left.min(in_segment);
            pages.fill(bytes / GRANULE_BYTES, count);
            left -= count;
        }
        for place in places {
            debug_assert!((place.addr() % SLOT_BYTES).is_multiple_of(bytes));
            *place = self.address(place.addr());
        }
        true
    }

    /// Ends the reservations; `own` is the heap that they are in.
    fn settle(&self, own: Own<'_>) {
        for segment in &self.0 {
            // The thread may have got another arena since.
            if let Some(pages) = own.pages_containing(segment.addr()) {
                own.settle_slot(pages);
            }
        }
    }
}
