//! Allocators that take a hint with each request, and allocators that carry one.

use core::alloc::Layout;
use core::error::Error;
use core::fmt;
use core::num::NonZero;
use core::ptr::NonNull;

use crate::first_class::{Heap, empty_object};
use crate::global::CcMalloc;
use crate::target::target;
use crate::thread;

/// Out of memory. Converts into the errors of the allocator traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocError;

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory allocation failed")
    }
}

impl Error for AllocError {}

/// The memory of an object, as many bytes as its layout has.
pub type AllocResult = Result<NonNull<[u8]>, AllocError>;

/// An allocator that takes a hint with each request: a pointer to an object that is likely to be
/// used together with the new one.
///
/// `None` asks for any place, or for one near the hint that the allocator carries ([`WithHint`]).
/// **Any hint is safe**; see [`cc_alloc`](crate::cc_alloc).
///
/// # Safety
/// For implementers, as for the `Allocator` traits:
/// - an allocated object has the size and alignment of its layout, overlaps no other, and stays
///   valid until it is freed, or the allocator and all of its clones are dropped, or a borrow in
///   the allocator's type ends;
/// - moving or cloning the allocator does not invalidate objects, and any clone may free them;
/// - if the allocator also implements an `Allocator` trait, either frees what the other allocated.
///
/// # Examples
///
/// A stack whose nodes lie near each other, in any allocator that takes hints:
///
/// ```
/// use std::alloc::Layout;
/// use std::ptr::NonNull;
/// use ccmalloc::{AllocError, CcMalloc, Heap, HintAllocator};
///
/// struct Stack<A: HintAllocator> { top: Option<NonNull<Node>>, allocator: A }
/// struct Node { value: u64, below: Option<NonNull<Node>> }
///
/// impl<A: HintAllocator> Stack<A> {
///     fn push(&mut self, value: u64) -> Result<(), AllocError> {
///         let hint = self.top.map(NonNull::cast);
///         let node = self.allocator.allocate_near(Layout::new::<Node>(), hint)?.cast::<Node>();
///         // SAFETY: fresh memory for a node.
///         unsafe { node.write(Node { value, below: self.top }) };
///         self.top = Some(node);
///         Ok(())
///     }
///
///     fn pop(&mut self) -> Option<u64> {
///         let node = self.top?;
///         // SAFETY: `push` has written it, and it is out of the stack from here on.
///         let Node { value, below } = unsafe { node.read() };
///         self.top = below;
///         // SAFETY: allocated by `push` with this layout.
///         unsafe { self.allocator.free(node.cast(), Layout::new::<Node>()) };
///         Some(value)
///     }
/// }
///
/// let heap = Heap::new().expect("memory");
/// let mut stack = Stack { top: None, allocator: &heap };
/// (1..=100).try_for_each(|value| stack.push(value))?;
/// assert_eq!(std::iter::from_fn(|| stack.pop()).sum::<u64>(), 5050);
/// # let _ = Stack { top: None, allocator: CcMalloc }.pop();
/// # Ok::<(), AllocError>(())
/// ```
pub unsafe trait HintAllocator {
    /// Allocates `layout`, near `hint`. A layout of size 0 gives an aligned address without memory.
    ///
    /// # Errors
    /// When out of memory.
    fn allocate_near(&self, layout: Layout, hint: Option<NonNull<u8>>) -> AllocResult;

    /// As [`allocate_near`](HintAllocator::allocate_near), and all bytes are 0.
    ///
    /// # Errors
    /// When out of memory.
    fn allocate_near_zeroed(&self, layout: Layout, hint: Option<NonNull<u8>>) -> AllocResult {
        let object = self.allocate_near(layout, hint)?;
        // SAFETY: fresh, and this large.
        unsafe { object.cast::<u8>().write_bytes(0, object.len()) };
        Ok(object)
    }

    /// Gives an object a new size or alignment: in place if possible, else by moving it near
    /// `hint`. Keeps as much of its contents as fits.
    ///
    /// # Errors
    /// When out of memory; the object is then as it was.
    ///
    /// # Safety
    /// - `object` was allocated by this allocator or a clone of it with the layout `old`.
    /// - Unless an error is returned, `object` is not used any more, and the result has the layout
    ///   `new`.
    unsafe fn resize_near(
        &self,
        object: NonNull<u8>,
        old: Layout,
        new: Layout,
        hint: Option<NonNull<u8>>,
    ) -> AllocResult;

    /// Frees an object.
    ///
    /// # Safety
    /// - `object` was allocated by this allocator or a clone of it with this layout.
    /// - It is not used any more.
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout);
}

/// An allocator with a hint for all that it allocates: [`CcMalloc::near`], [`Heap::near`].
///
/// Only a hint into memory of the allocating thread or heap has an effect. The allocator inside may
/// free and resize what this one allocates, so that a `Box<T, Near>` of two words can become a
/// `Box<T, CcMalloc>` of one ([`IntoThin`](crate::IntoThin)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WithHint<A> {
    pub(crate) inner: A,
    hint: NonZero<usize>,
}

/// [`CcMalloc`] with a hint.
pub type Near = WithHint<CcMalloc>;
/// A [`Heap`] with a hint.
pub type NearHeap<'h> = WithHint<&'h Heap>;

impl<A> WithHint<A> {
    fn new(inner: A, hint: usize) -> WithHint<A> {
        // `target` returns the address of a reference or of an object, neither of which is 0.
        let hint = NonZero::new(hint).unwrap_or(NonZero::<usize>::MIN);
        WithHint { inner, hint }
    }

    /// The address near which it allocates, without provenance.
    #[must_use]
    pub fn hint(&self) -> NonNull<u8> {
        NonNull::without_provenance(self.hint)
    }
}

impl CcMalloc {
    /// An allocator near `hint` or what it points to: see [`near`](crate::near). **Any hint is
    /// safe.**
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "allocator-api2")] {
    /// use allocator_api2::boxed::Box;
    /// use ccmalloc::{CcMalloc, IntoThin};
    ///
    /// let watch = ccmalloc::watch();
    /// let parent: Box<u64, CcMalloc> = Box::new_in(1, CcMalloc.near(&())).into_thin();
    /// let child = Box::new_in(2, CcMalloc.near(&parent));
    /// assert_eq!(watch.report().same_block, 1);
    /// # assert_eq!(*parent + *child, 3);
    /// # }
    /// ```
    #[must_use]
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn near<T: ?Sized>(&self, hint: &T) -> Near {
        WithHint::new(CcMalloc, target(thread::existing(), hint))
    }
}

impl Heap {
    /// An allocator in this heap, near `hint` or what it points to: see [`near`](crate::near).
    /// Objects of this heap that were placed by a hint get neighbours. **Any hint is safe.**
    ///
    /// `&Heap` may also free and resize what it allocates; see [`IntoThin`](crate::IntoThin).
    #[must_use]
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn near<T: ?Sized>(&self, hint: &T) -> NearHeap<'_> {
        WithHint::new(self, target(Some(self.own()), hint))
    }
}

/// The object of `layout` that starts at `start`.
#[inline]
pub(crate) fn object(start: Option<NonNull<u8>>, layout: Layout) -> AllocResult {
    let start = start.ok_or(AllocError)?;
    Ok(NonNull::slice_from_raw_parts(start, layout.size()))
}

// SAFETY: as `CcMalloc`'s `GlobalAlloc`, for layouts with bytes; the others have no memory. All
// values are clones of each other, and memory stays until it is freed.
unsafe impl HintAllocator for CcMalloc {
    #[inline]
    fn allocate_near(&self, layout: Layout, hint: Option<NonNull<u8>>) -> AllocResult {
        if layout.size() == 0 {
            return object(empty_object(layout), layout);
        }
        object(crate::cc_alloc(layout, hint), layout)
    }

    #[inline]
    fn allocate_near_zeroed(&self, layout: Layout, hint: Option<NonNull<u8>>) -> AllocResult {
        if layout.size() > 0 && hint.is_none() {
            return object(NonNull::new(thread::alloc_zeroed(layout)), layout);
        }
        let fresh = self.allocate_near(layout, hint)?;
        // SAFETY: fresh, and this large.
        unsafe { fresh.cast::<u8>().write_bytes(0, layout.size()) };
        Ok(fresh)
    }

    #[inline]
    unsafe fn resize_near(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
        hint: Option<NonNull<u8>>,
    ) -> AllocResult {
        if old.size() == 0 {
            return self.allocate_near(new, hint);
        }
        if new.size() == 0 {
            // SAFETY: the caller gives up an object of this layout, since the result is no error.
            unsafe { self.free(start, old) };
            return object(empty_object(new), new);
        }
        // SAFETY: the object has the layout `old`; `thread::resize` allocates as `CcMalloc` does.
        let resized = unsafe { thread::resize(start.as_ptr(), old, new, hint) };
        object(NonNull::new(resized), new)
    }

    #[inline]
    unsafe fn free(&self, start: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: the caller gives up an object that was allocated by `CcMalloc` with this
            // layout, which is not empty.
            unsafe { thread::dealloc(start.as_ptr(), layout) };
        }
    }
}

// SAFETY: the inner allocator with another choice of hints, which are not part of the contract.
unsafe impl<A: HintAllocator> HintAllocator for WithHint<A> {
    #[inline]
    fn allocate_near(&self, layout: Layout, hint: Option<NonNull<u8>>) -> AllocResult {
        self.inner.allocate_near(layout, hint.or(Some(self.hint())))
    }

    #[inline]
    fn allocate_near_zeroed(&self, layout: Layout, hint: Option<NonNull<u8>>) -> AllocResult {
        self.inner
            .allocate_near_zeroed(layout, hint.or(Some(self.hint())))
    }

    #[inline]
    unsafe fn resize_near(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
        hint: Option<NonNull<u8>>,
    ) -> AllocResult {
        let hint = hint.or(Some(self.hint()));
        // SAFETY: the object has the layout `old`, and was allocated by the inner allocator.
        unsafe { self.inner.resize_near(start, old, new, hint) }
    }

    #[inline]
    unsafe fn free(&self, start: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives up an object of this layout, which the inner allocator or a
        // clone allocated.
        unsafe { self.inner.free(start, layout) };
    }
}

// SAFETY: objects of a core are disjoint and as large and aligned as asked for, by the same code as
// a thread's. The heap stays borrowed while the reference or a copy can be used, and is neither
// dropped nor cleared meanwhile.
unsafe impl HintAllocator for &Heap {
    #[inline]
    fn allocate_near(&self, layout: Layout, hint: Option<NonNull<u8>>) -> AllocResult {
        object(self.alloc(layout, hint), layout)
    }

    #[inline]
    fn allocate_near_zeroed(&self, layout: Layout, hint: Option<NonNull<u8>>) -> AllocResult {
        object(self.alloc_zeroed(layout, hint), layout)
    }

    #[inline]
    unsafe fn resize_near(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
        hint: Option<NonNull<u8>>,
    ) -> AllocResult {
        // SAFETY: the object has the layout `old`. The heap is borrowed, so it was not cleared
        // since.
        object(unsafe { self.realloc(start, old, new, hint) }, new)
    }

    #[inline]
    unsafe fn free(&self, start: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives up an object of this layout, of a heap that is borrowed, and so
        // not cleared since.
        unsafe { self.dealloc(start, layout) };
    }
}
