//! Boxes of one word that are allocated near a neighbour.
//!
//! A `Box<T, Near>` needs its hint only once. [`CcMalloc`](crate::CcMalloc) is zero-sized and frees
//! what [`Near`](crate::Near) allocates, so the box can then be kept as one word.

use crate::hint::AllocError;

/// `Box::new_near(value, &neighbour)`, for each `Box<T, CcMalloc>` that the crate's features know.
pub trait NewNear<T>: Sized {
    /// Allocates near `neighbour` or what it points to (see [`near`](crate::near)), and moves
    /// `value` there.
    ///
    /// When out of memory, it does what the box's `new_in` does then, which is to call
    /// `handle_alloc_error`.
    #[cfg_attr(debug_assertions, track_caller)]
    fn new_near<N: ?Sized>(value: T, neighbour: &N) -> Self;

    /// As [`new_near`](Self::new_near).
    ///
    /// # Errors
    /// When out of memory; `value` is dropped.
    #[cfg_attr(debug_assertions, track_caller)]
    fn try_new_near<N: ?Sized>(value: T, neighbour: &N) -> Result<Self, AllocError>;
}

/// Lets go of the hint that a box or vector was made with: `Near` becomes
/// [`CcMalloc`](crate::CcMalloc), [`NearHeap`](crate::NearHeap) becomes `&`[`Heap`](crate::Heap).
/// Nothing moves in memory.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "allocator-api2")] {
/// use allocator_api2::boxed::Box;
/// use ccmalloc::{CcMalloc, IntoThin};
///
/// let neighbour = Box::new_in(1u64, CcMalloc.near(&()));
/// let watch = ccmalloc::watch();
/// let near = Box::new_in(2u64, CcMalloc.near(&neighbour));
/// let thin: Box<u64, CcMalloc> = near.into_thin();
/// assert_eq!((size_of_val(&thin), *thin), (size_of::<usize>(), 2));
/// assert_eq!(watch.report().same_block, 1);
/// # }
/// ```
pub trait IntoThin {
    /// What remains.
    type Thin;

    /// Lets go of the hint.
    fn into_thin(self) -> Self::Thin;
}
