//! Where a program's nodes come to lie: chosen once for a whole run, and compiled into the program.
//!
//! A program asks its [`Placement`] for every node, and says what the node will be used together
//! with. It reads the same for all of them; what a placement does not do costs nothing.

use std::alloc::{Layout, handle_alloc_error};
use std::hint::black_box;
use std::ptr::{self, NonNull};

use ccmalloc::{Policy, cc_alloc, cc_alloc_with};

use crate::dispatch::served_by;
use crate::rivals::ours;

/// Where new nodes come from, and whether nodes are asked for before they are needed.
pub trait Placement: Copy {
    /// `value` in a box of the global allocator, near `neighbour`, which may be any address, null
    /// and dangling included: it is never read.
    fn new_near<T, N>(self, value: T, neighbour: *const N) -> Box<T>;

    /// A copy of `values` in a box of the global allocator, near `neighbour` as in
    /// [`new_near`](Placement::new_near).
    fn copy_near<T: Copy, N>(self, values: &[T], neighbour: *const N) -> Box<[T]>;

    /// Asks the processor for the cache block where `object` begins, when programs prefetch in
    /// software; else does nothing. Any address is fine.
    #[inline(always)]
    fn prefetch<T>(self, object: *const T) {
        let _ = object;
    }
}

/// As a program without hints allocates: whatever the process's allocator does.
#[derive(Clone, Copy, Debug)]
pub struct AsAllocated;

impl Placement for AsAllocated {
    #[inline(always)]
    fn new_near<T, N>(self, value: T, _neighbour: *const N) -> Box<T> {
        Box::new(value)
    }

    #[inline(always)]
    fn copy_near<T: Copy, N>(self, values: &[T], _neighbour: *const N) -> Box<[T]> {
        Box::from(values)
    }
}

/// As [`AsAllocated`], and the program prefetches by hand: greedily, each pointer of a node as soon
/// as the node is visited (Luk and Mowry 1996), as the thesis compares it (section 4.3.3).
#[derive(Clone, Copy, Debug)]
pub struct Prefetched;

impl Placement for Prefetched {
    #[inline(always)]
    fn new_near<T, N>(self, value: T, _neighbour: *const N) -> Box<T> {
        Box::new(value)
    }

    #[inline(always)]
    fn copy_near<T: Copy, N>(self, values: &[T], _neighbour: *const N) -> Box<[T]> {
        Box::from(values)
    }

    #[inline(always)]
    fn prefetch<T>(self, object: *const T) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: every x86-64 processor has the instruction, and it faults on no address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(object.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = object;
    }
}

/// `ccmalloc` with the hints that the program gives.
///
/// Invariant: exists only in processes that `ccmalloc` serves, so that its objects may be freed by
/// `Box`.
#[derive(Clone, Copy, Debug)]
pub struct Hinted {
    policy: Policy,
}

impl Hinted {
    /// Hints under `policy`.
    ///
    /// # Panics
    /// When another allocator serves this process.
    pub fn new(policy: Policy) -> Hinted {
        assert_ours();
        Hinted { policy }
    }
}

impl Placement for Hinted {
    #[inline(always)]
    fn new_near<T, N>(self, value: T, neighbour: *const N) -> Box<T> {
        // A null hint places as well: near nothing, with room for what follows.
        let hint = NonNull::new(neighbour.cast_mut().cast::<u8>()).unwrap_or(NonNull::dangling());
        let object = cc_alloc_with(Layout::new::<T>(), Some(hint), self.policy);
        // SAFETY: fresh from `cc_alloc_with` with this layout, in a process that `ccmalloc` serves.
        unsafe { into_box(object, value) }
    }

    #[inline(always)]
    fn copy_near<T: Copy, N>(self, values: &[T], neighbour: *const N) -> Box<[T]> {
        if size_of_val(values) == 0 {
            return Box::from(values);
        }
        let hint = NonNull::new(neighbour.cast_mut().cast::<u8>()).unwrap_or(NonNull::dangling());
        let object = cc_alloc_with(Layout::for_value(values), Some(hint), self.policy);
        // SAFETY: fresh from `cc_alloc_with` with this layout, whose size is not zero, in a process
        // that `ccmalloc` serves.
        unsafe { into_boxed_slice(object, values) }
    }
}

/// `ccmalloc`, called as a hinted program calls it, with hints that are all null: what giving hints
/// costs where they gain nothing.
///
/// Invariant: as of [`Hinted`].
#[derive(Clone, Copy, Debug)]
pub struct NullHinted(());

impl NullHinted {
    /// Null hints.
    ///
    /// # Panics
    /// When another allocator serves this process.
    pub fn new() -> NullHinted {
        assert_ours();
        NullHinted(())
    }
}

impl Default for NullHinted {
    fn default() -> Self {
        NullHinted::new()
    }
}

impl Placement for NullHinted {
    #[inline(always)]
    fn new_near<T, N>(self, value: T, _neighbour: *const N) -> Box<T> {
        // The compiler must not know that it is null.
        let object = cc_alloc(Layout::new::<T>(), black_box(None));
        // SAFETY: fresh from `cc_alloc` with this layout, in a process that `ccmalloc` serves.
        unsafe { into_box(object, value) }
    }

    #[inline(always)]
    fn copy_near<T: Copy, N>(self, values: &[T], _neighbour: *const N) -> Box<[T]> {
        if size_of_val(values) == 0 {
            return Box::from(values);
        }
        let object = cc_alloc(Layout::for_value(values), black_box(None));
        // SAFETY: fresh from `cc_alloc` with this layout, whose size is not zero, in a process that
        // `ccmalloc` serves.
        unsafe { into_boxed_slice(object, values) }
    }
}

/// # Panics
/// When another allocator serves this process: its `Box`es would free what is not theirs.
fn assert_ours() {
    assert_eq!(served_by(), ours::NAME, "hints need ccmalloc");
    // What serves is chosen by name, in programs whose global allocator asks for it; whether this
    // one does, a box tells.
    let object = black_box(Box::new(0_u64));
    assert!(
        ccmalloc::contains(ptr::from_ref(&*object).cast()),
        "hints need ccmalloc as the global allocator"
    );
}

/// A box of `object` with `value` in it.
///
/// # Safety
/// - `object` is null for want of memory, or fresh memory for a `T` that the global allocator may
///   free with the layout of `T`.
#[inline(always)]
unsafe fn into_box<T>(object: Option<NonNull<u8>>, value: T) -> Box<T> {
    const { assert!(size_of::<T>() > 0, "a box of nothing has no memory") };
    let Some(object) = object else {
        handle_alloc_error(Layout::new::<T>());
    };
    let object = object.as_ptr().cast::<T>();
    // SAFETY: fresh memory for a `T`, by the caller's promise.
    unsafe { ptr::write(object, value) };
    // SAFETY: initialised just now, and the global allocator's, by the caller's promise.
    unsafe { Box::from_raw(object) }
}

/// A box of `object` with a copy of `values` in it.
///
/// # Safety
/// - `object` is null for want of memory, or fresh memory with the layout of `values` that the
///   global allocator may free with that layout.
/// - `values` has a size that is not zero.
#[inline(always)]
unsafe fn into_boxed_slice<T: Copy>(object: Option<NonNull<u8>>, values: &[T]) -> Box<[T]> {
    debug_assert!(size_of_val(values) > 0, "a box of nothing has no memory");
    let Some(object) = object else {
        handle_alloc_error(Layout::for_value(values));
    };
    let first = object.as_ptr().cast::<T>();
    // SAFETY: the one holds as many values, aligned and initialised, the other is fresh memory for
    // as many, by the caller's promise.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr(), first, values.len()) };
    // SAFETY: initialised just now, and the global allocator's with the layout of this slice, by
    // the caller's promise.
    unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(first, values.len())) }
}
