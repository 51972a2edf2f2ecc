//! The allocator traits of other crates, one module a feature: [`HintAllocator`] without a hint.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::first_class::{Heap, empty_object};
use crate::global::CcMalloc;
use crate::hint::{AllocError, AllocResult, HintAllocator, WithHint, object};
use crate::thin::{IntoThin, NewNear};
use crate::thread;

/// Allocates near what `hint` means, from `CcMalloc`.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
fn allocate_near_target<T: ?Sized>(layout: Layout, hint: &T) -> AllocResult {
    if layout.size() == 0 {
        return object(empty_object(layout), layout);
    }
    let start = NonNull::new(thread::alloc_near_target(layout, hint));
    object(start, layout)
}

/// Gives an object a larger layout, and zeroes the bytes that it gains. The object is as it was
/// after an error.
///
/// # Safety
/// - As for [`HintAllocator::resize_near`], and `new` is no smaller than `old`.
#[inline]
unsafe fn grow_zeroed(
    allocator: &impl HintAllocator,
    object: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<[u8]>, AllocError> {
    if old.size() == 0 {
        return allocator.allocate_near_zeroed(new, None);
    }
    // SAFETY: the object has the layout `old`, and the caller uses the result instead.
    let grown = unsafe { allocator.resize_near(object, old, new, None) }?;
    // SAFETY: the object has `new.size()` bytes now, and that is no less than `old.size()`.
    let rest = unsafe { grown.cast::<u8>().add(old.size()) };
    // SAFETY: the bytes from `old.size()` to `new.size()` are those of the fresh object.
    unsafe { rest.write_bytes(0, new.size() - old.size()) };
    Ok(grown)
}

/// Implements the `Allocator` of the module `api` for a `HintAllocator`.
macro_rules! allocator {
    ([$($generics:tt)*] $allocator:ty) => {
        // SAFETY: the contract is that of `HintAllocator`, which the type has promised to keep.
        // `deallocate`, `grow` and `shrink` get what was allocated here or by a clone.
        unsafe impl<$($generics)*> api::Allocator for $allocator {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, api::AllocError> {
                Ok(self.allocate_near(layout, None)?)
            }

            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, api::AllocError> {
                Ok(self.allocate_near_zeroed(layout, None)?)
            }

            #[inline]
            unsafe fn deallocate(&self, object: NonNull<u8>, layout: Layout) {
                // SAFETY: the caller gives up an object of this allocator and layout.
                unsafe { self.free(object, layout) };
            }

            #[inline]
            unsafe fn grow(
                &self,
                object: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, api::AllocError> {
                // SAFETY: the object has the layout `old`, and the caller uses the result instead.
                Ok(unsafe { self.resize_near(object, old, new, None) }?)
            }

            #[inline]
            unsafe fn grow_zeroed(
                &self,
                object: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, api::AllocError> {
                // SAFETY: the object has the layout `old`; `new` is no smaller (contract of
                // `grow`).
                Ok(unsafe { grow_zeroed(self, object, old, new) }?)
            }

            #[inline]
            unsafe fn shrink(
                &self,
                object: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, api::AllocError> {
                // SAFETY: the object has the layout `old`, and the caller uses the result instead.
                Ok(unsafe { self.resize_near(object, old, new, None) }?)
            }
        }
    };
}

/// Implements the traits of one crate for all our allocators, and ours for its box and vector.
/// Takes the paths of the crate's module `alloc`, its `Box` and its `Vec`.
macro_rules! adapt {
    ($module:ident, $alloc:path, $boxed:path, $vec:path) => {
        mod $module {
            use $alloc as api;
            use $boxed as Box;
            use $vec as Vec;

            use super::*;

            impl From<AllocError> for api::AllocError {
                fn from(_: AllocError) -> Self {
                    api::AllocError
                }
            }

            allocator!([] CcMalloc);
            allocator!([] &Heap);
            allocator!([A: HintAllocator] WithHint<A>);

            const _: () = assert!(size_of::<Box<u64, CcMalloc>>() == size_of::<usize>());
            const _: () = assert!(size_of::<Option<Box<u64, CcMalloc>>>() == size_of::<usize>());

            impl<T> NewNear<T> for Box<T, CcMalloc> {
                #[inline]
                fn new_near<N: ?Sized>(value: T, neighbour: &N) -> Self {
                    match Self::try_new_near(value, neighbour) {
                        Ok(boxed) => boxed,
                        Err(_) => std::alloc::handle_alloc_error(Layout::new::<T>()),
                    }
                }

                #[inline]
                fn try_new_near<N: ?Sized>(value: T, neighbour: &N) -> Result<Self, AllocError> {
                    let place = allocate_near_target(Layout::new::<T>(), neighbour)?.cast::<T>();
                    // SAFETY: fresh memory for a value of this layout.
                    unsafe { place.write(value) };
                    // SAFETY: allocated by `CcMalloc` for this layout, written to just now, and not
                    // owned yet.
                    Ok(unsafe { Box::from_raw_in(place.as_ptr(), CcMalloc) })
                }
            }

            impl<T: ?Sized, A: HintAllocator + api::Allocator> IntoThin for Box<T, WithHint<A>> {
                type Thin = Box<T, A>;

                fn into_thin(self) -> Self::Thin {
                    let (value, allocator) = Box::into_raw_with_allocator(self);
                    // SAFETY: allocated by the inner allocator for a value of this layout;
                    // ownership passes on.
                    unsafe { Box::from_raw_in(value, allocator.inner) }
                }
            }

            impl<T, A: HintAllocator + api::Allocator> IntoThin for Vec<T, WithHint<A>> {
                type Thin = Vec<T, A>;

                fn into_thin(self) -> Self::Thin {
                    let (items, len, capacity, allocator) = self.into_raw_parts_with_alloc();
                    // SAFETY: the parts of a vector whose memory is the inner allocator's;
                    // ownership passes on.
                    unsafe { Vec::from_raw_parts_in(items, len, capacity, allocator.inner) }
                }
            }
        }
    };
}

#[cfg(feature = "allocator-api2")]
adapt!(
    api2,
    allocator_api2::alloc,
    allocator_api2::boxed::Box,
    allocator_api2::vec::Vec
);

#[cfg(feature = "allocator-api2-04")]
adapt!(
    api2_04,
    allocator_api2_04::alloc,
    allocator_api2_04::boxed::Box,
    allocator_api2_04::vec::Vec
);

#[cfg(feature = "nightly")]
adapt!(nightly, std::alloc, std::boxed::Box, std::vec::Vec);
