//! Where nodes come from: allocators for raw nodes, and those among them whose nodes are boxes.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::hint::black_box;
use std::ptr::{self, NonNull};

use ccmalloc::{Policy, cc_alloc, cc_alloc_with, cc_dealloc};

use crate::rivals::{Allocator, OURS};
use crate::source::allocate_from;

/// An allocator for nodes that may take a hint.
///
/// # Safety
/// - [`allocate`](NodeAllocator::allocate) returns memory for `layout` that is its caller's until
///   it is passed to [`deallocate`](NodeAllocator::deallocate), whatever the hint.
pub unsafe trait NodeAllocator {
    /// Memory for `layout`, which is not empty, near `hint` where the allocator can. The hint may
    /// be any address: it is never read.
    fn allocate(&self, layout: Layout, hint: Option<NonNull<u8>>) -> Option<NonNull<u8>>;

    /// # Safety
    /// - `ptr` came from `self.allocate` with the same `layout` and was not taken back since.
    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout);
}

/// An allocator for boxes, chosen once for a run and compiled into the program.
///
/// # Safety
/// - The global allocator may free what [`allocate`](NodeAllocator::allocate) returns.
pub unsafe trait Placement: NodeAllocator + Copy {
    const PREFETCHES: bool = false;

    /// `value` in a box near `neighbour`, which may be null.
    #[inline(always)]
    fn new_near<T, N>(self, value: T, neighbour: *const N) -> Box<T> {
        const { assert!(size_of::<T>() > 0, "such a box has no memory") };
        let object = memory(self, Layout::new::<T>(), neighbour).cast::<T>();
        // SAFETY: fresh memory for a `T`.
        unsafe { object.write(value) };
        // SAFETY: initialized, and the global allocator may free it by this trait's contract.
        unsafe { Box::from_raw(object.as_ptr()) }
    }

    /// A copy of `values` in a box near `neighbour`, which may be null.
    #[inline(always)]
    fn copy_near<T: Copy, N>(self, values: &[T], neighbour: *const N) -> Box<[T]> {
        if size_of_val(values) == 0 {
            return Box::from(values);
        }
        let first = memory(self, Layout::for_value(values), neighbour).cast::<T>();
        // SAFETY: `first` is fresh memory with the layout of `values`.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), first.as_ptr(), values.len()) };
        let copy = ptr::slice_from_raw_parts_mut(first.as_ptr(), values.len());
        // SAFETY: initialized, and the global allocator may free it by this trait's contract.
        unsafe { Box::from_raw(copy) }
    }

    /// Asks the processor for the cache block of any address, if programs prefetch.
    #[inline(always)]
    fn prefetch<T>(self, object: *const T) {
        #[cfg(target_arch = "x86_64")]
        if Self::PREFETCHES {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: every x86-64 processor has the instruction, and it faults on no address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(object.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = object;
    }
}

/// A null neighbour is a hint as well: it says that more is to come.
#[inline(always)]
fn memory<N>(from: impl NodeAllocator, layout: Layout, neighbour: *const N) -> NonNull<u8> {
    let hint = NonNull::new(neighbour.cast_mut().cast()).unwrap_or(NonNull::dangling());
    from.allocate(layout, Some(hint))
        .unwrap_or_else(|| handle_alloc_error(layout))
}

#[inline(always)]
pub fn address_of<T>(link: &Option<Box<T>>) -> *const T {
    link.as_deref().map_or(ptr::null(), ptr::from_ref)
}

// SAFETY: by the invariant of `Allocator`, it returns null or memory for `layout` that is its
// caller's until freed.
unsafe impl NodeAllocator for &'static Allocator {
    fn allocate(&self, layout: Layout, _hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0, "no memory for nothing");
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { (self.alloc)(layout) })
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: by the caller's promise, `ptr` came from this allocator, with `layout`.
        unsafe { (self.dealloc)(ptr.as_ptr(), layout) }
    }
}

/// The global allocator, without hints. With `PREFETCHES`, the program prefetches each pointer of a
/// node as soon as the node is visited (Luk and Mowry 1996; section 4.3.3 of the thesis).
#[derive(Clone, Copy, Debug)]
pub struct Unhinted<const PREFETCHES: bool>;

pub const AS_ALLOCATED: Unhinted<false> = Unhinted;

/// The same, in a program that prefetches.
pub const PREFETCHED: Unhinted<true> = Unhinted;

// SAFETY: the global allocator returns null or memory for `layout` that is its caller's until
// freed.
unsafe impl<const PREFETCHES: bool> NodeAllocator for Unhinted<PREFETCHES> {
    #[inline(always)]
    fn allocate(&self, layout: Layout, _hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0, "no memory for nothing");
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc(layout) })
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: `allocate` had it from the global allocator, with this layout.
        unsafe { dealloc(ptr.as_ptr(), layout) }
    }
}

// SAFETY: it is the global allocator's memory.
unsafe impl<const PREFETCHES: bool> Placement for Unhinted<PREFETCHES> {
    const PREFETCHES: bool = PREFETCHES;
}

/// `ccmalloc` with the hints that the program gives. If `NULL`, all are null, which shows what
/// hints cost where they gain nothing.
///
/// Invariant: the global allocator of this process frees what `ccmalloc` serves.
#[derive(Clone, Copy, Debug)]
pub struct Ours<const NULL: bool> {
    policy: Policy,
}

pub type Hinted = Ours<false>;

pub type NullHinted = Ours<true>;

impl<const NULL: bool> Ours<NULL> {
    /// Panics when the global allocator is neither `ccmalloc` nor one that uses it for [`OURS`].
    pub fn new(policy: Policy) -> Self {
        let object = allocate_from(&OURS, || black_box(Box::new(0_u64)));
        let is_ours = ccmalloc::contains(ptr::from_ref(&*object).cast());
        assert!(is_ours, "hints need ccmalloc as the global allocator");
        Ours { policy }
    }
}

// SAFETY: `ccmalloc` returns memory for `layout` that is its caller's until freed, whatever the
// hint.
unsafe impl<const NULL: bool> NodeAllocator for Ours<NULL> {
    #[inline(always)]
    fn allocate(&self, layout: Layout, hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        match NULL {
            // The compiler must not know that it is null.
            true => cc_alloc(layout, black_box(None)),
            false => cc_alloc_with(layout, hint, self.policy),
        }
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: `ccmalloc` served it with this layout.
        unsafe { cc_dealloc(ptr, layout) }
    }
}

// SAFETY: the invariant of `Ours`.
unsafe impl<const NULL: bool> Placement for Ours<NULL> {}
