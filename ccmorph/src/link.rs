//! The kinds of links: boxes whose nodes can be moved.
//!
//! A kind of link determines its *home*, the allocator of its nodes, within which they move: the
//! program's global allocator for `Box<T>`, `CcMalloc` for `Box<T, CcMalloc>`, one heap for `Box<T,
//! &Heap>`.

#![expect(
    unnameable_types,
    reason = "the parts of `Link` are public in name only: no other crate implements them"
)]

use ccmalloc::Region;
#[cfg(any(feature = "allocator-api2", feature = "allocator-api2-04"))]
use ccmalloc::{CcMalloc, Heap, HeapRegion};
use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;

/// A link that owns one node: `Box<T>`, or, with the crate's feature `allocator-api2` (the
/// default), that crate's `Box<T, CcMalloc>` and `Box<T, &Heap>`.
///
/// `Box<T>` moves within the global allocator, which has to be [`CcMalloc`](ccmalloc::CcMalloc) to
/// place nodes; the others work in any program. All boxes of a structure are of one kind and heap,
/// or the morph gives [`MorphError::TwoHeaps`](crate::MorphError::TwoHeaps). No other crate can
/// implement this trait.
pub trait Link: OwningPointer<Target = Self::Node> {
    /// What the link owns.
    type Node;
}

/// A link whose nodes may be moved: they are [`Unpin`].
///
/// Code that lets a node point into itself is `unsafe` and must keep the node from being moved.
/// Such a type opts out of the morph by not being `Unpin`, for instance with a field
/// [`PhantomPinned`]. This does not compile:
///
/// ```compile_fail,E0277
/// # #[cfg(not(feature = "allocator-api2"))] compile_error!("needs boxes in heaps");
/// use allocator_api2::boxed::Box;
/// use ccmalloc::Heap;
/// use std::marker::PhantomPinned;
///
/// struct Node {
///     next: Option<Box<Node, &'static Heap>>,
///     own: PhantomPinned,
/// }
///
/// fn morph(list: &mut Option<Box<Node, &'static Heap>>) {
///     let _ = ccmorph::ccmorph(list, |node, visit| visit(&mut node.next));
/// }
/// ```
///
/// A generic node is `Unpin` if its parameters are, and one that holds a `Box<_, &Heap>` only if
/// the heap is `'static`. A node that does not point into itself says so safely: `impl<K> Unpin for
/// Node<K> {}`.
///
/// [`PhantomPinned`]: std::marker::PhantomPinned
#[diagnostic::on_unimplemented(
    message = "the nodes of `{Self}` may not be moved, because they are not `Unpin`",
    note = "if the node does not point into itself, write `impl Unpin for` it, which is safe"
)]
pub trait Movable: Link {}

impl<T: Unpin> Movable for Box<T> {}

/// How a link's pointer is read and written; for this crate alone.
///
/// # Safety
/// - [`node`](OwningPointer::node) returns the pointer to the node that the link owns: aligned,
///   valid for reads and writes of an initialised `Target`, and an allocation of
///   [`home`](OwningPointer::home) for its layout.
/// - After [`point_to`](OwningPointer::point_to) the link owns that node instead.
/// - Where [`IS_POINTER`](OwningPointer::IS_POINTER) is true, that function writes `node` to `link`
///   and does nothing else.
pub unsafe trait OwningPointer: Sized {
    /// What the link points to.
    type Target;
    /// The type of the allocator.
    type Home: Home;
    /// Whether the link is in memory what a thin pointer to its node is.
    const IS_POINTER: bool = false;

    /// Where this link's node was allocated.
    fn home(&self) -> Self::Home;

    /// The pointer that the link holds. What is derived from it is usable until the link is used
    /// again.
    fn node(&mut self) -> *mut Self::Target;

    /// Makes the link own `node`, and forgets what it owned, whose destructor does not run. Makes
    /// no claim on either node.
    ///
    /// # Safety
    /// - `link` is a link of this type, erased: valid for reads and writes, and nothing else refers
    ///   to it.
    /// - `node` is an allocation of the link's home for a `Target`, owned by nothing else, and
    ///   initialised when the link is used next.
    unsafe fn point_to(link: *mut (), node: *mut u8);
}

/// An allocator, as a value, that nodes can be moved within.
///
/// # Safety
/// [`alloc`](Home::alloc), and the [`Placer`] that [`reserve`](Home::reserve) makes, return null or
/// a fresh allocation for the layout asked for, which [`free`](Home::free) of a copy takes back. If
/// the type is also an `Allocator`, that allocates and frees the same objects.
pub unsafe trait Home: Copy + fmt::Debug {
    /// What chooses places in this allocator's memory.
    type Placer: Placer;

    /// Whether both are the same allocator: always true for a type with one value.
    fn is(self, other: Self) -> bool {
        let _ = other;
        true
    }

    /// Room for `bytes`, if there is memory.
    fn reserve(self, bytes: usize) -> Option<Self::Placer>;

    /// An object that may lie anywhere, or null.
    ///
    /// # Safety
    /// The layout's size is not zero.
    unsafe fn alloc(self, layout: Layout) -> *mut u8;

    /// Frees an object.
    ///
    /// # Safety
    /// `object` was allocated here for `layout`, whose size is not zero, and is not used any more.
    unsafe fn free(self, object: *mut u8, layout: Layout);

    /// Frees objects of one layout.
    ///
    /// # Safety
    /// As [`free`](Home::free), for each, each there once.
    unsafe fn free_each(self, objects: impl Iterator<Item = *mut u8>, layout: Layout) {
        for object in objects {
            // SAFETY: the caller gives up each object, which was allocated here for `layout`, and
            // is there once.
            unsafe { self.free(object, layout) };
        }
    }
}

/// An allocator at offsets of the caller's choice.
///
/// # Safety
/// All methods return null or a fresh allocation for the layout asked for, as if by [`Home::alloc`]
/// of the home that this is used with. [`alloc_each`](Placer::alloc_each) returns no more than
/// there are places.
pub unsafe trait Placer {
    /// An allocation that lies at `address(offset)` if possible, or elsewhere. Null when there is
    /// no memory, and for a layout of size 0.
    fn alloc_at(&mut self, offset: usize, layout: Layout) -> *mut u8;

    /// Where the object at `offset` shall lie.
    fn address(&self, offset: usize) -> *mut u8;

    /// [`alloc_at`](Placer::alloc_at) for each of the offsets that are the addresses of `places`,
    /// which become those of the allocations. Returns how many there are, all where they should
    /// lie. The rest is as it was, and `alloc_at` may tell why.
    fn alloc_each(&mut self, layout: Layout, places: &mut [*mut u8]) -> usize {
        let (_, _) = (layout, places);
        0
    }

    /// Allocates an object for each of `places`, packed from offset 0, in each segment as many as
    /// fit. Offsets, the addresses of `places`, become addresses of objects. Returns whether it
    /// could; otherwise nothing has changed.
    ///
    /// # Safety
    /// The layout's size is not zero. The offsets are those of these objects, each once.
    unsafe fn fill(&mut self, layout: Layout, places: &mut [*mut u8]) -> bool {
        let (_, _) = (layout, places);
        false
    }

    /// Whether to ask for [`fill`](Placer::fill) at all.
    fn can_fill(&self) -> bool {
        false
    }
}

impl<T> Link for Box<T> {
    type Node = T;
}

// SAFETY: a box owns an allocation of the global allocator for its contents' layout, and `Box<T>`
// of a sized T has the layout of a pointer (std::boxed, "Memory layout"), so that writing a pointer
// makes it own what that points to.
unsafe impl<T> OwningPointer for Box<T> {
    type Target = T;
    type Home = Global;
    const IS_POINTER: bool = true;

    #[inline]
    fn home(&self) -> Global {
        Global
    }

    #[inline]
    fn node(&mut self) -> *mut T {
        let link: *mut *mut T = std::ptr::from_mut(self).cast();
        // SAFETY: it was a valid reference just now, and a box is a pointer in memory (see above).
        // Reading it as a raw pointer makes no claim on the contents.
        unsafe { link.read() }
    }

    #[inline]
    unsafe fn point_to(link: *mut (), node: *mut u8) {
        // SAFETY: valid for writes and of this type (the caller's promise), which is a pointer in
        // memory. Overwriting it runs no destructor.
        unsafe { link.cast::<*mut u8>().write(node) };
    }
}

/// The home of `Box<T>`: the program's global allocator, whichever it is.
#[derive(Clone, Copy, Debug)]
pub struct Global;

// SAFETY: all go to `std::alloc`; `free_each` goes to `CcMalloc` only if the program has declared
// that it is the global allocator.
unsafe impl Home for Global {
    type Placer = Region;

    fn reserve(self, bytes: usize) -> Option<Region> {
        Region::reserve(bytes)
    }

    unsafe fn alloc(self, layout: Layout) -> *mut u8 {
        // SAFETY: the size is not zero (the caller's promise).
        unsafe { std::alloc::alloc(layout) }
    }

    unsafe fn free(self, object: *mut u8, layout: Layout) {
        // SAFETY: allocated by the global allocator for this layout, and not used any more (the
        // caller's promise).
        unsafe { std::alloc::dealloc(object, layout) };
    }

    unsafe fn free_each(self, objects: impl Iterator<Item = *mut u8>, layout: Layout) {
        if ccmalloc::is_declared_global() {
            // SAFETY: the caller gives up each object once. They were allocated by the global
            // allocator, which the program has declared to be `CcMalloc`.
            return unsafe { free_each_of_ccmalloc(objects, layout) };
        }
        for object in objects {
            // SAFETY: the caller gives up each object once, which the global allocator made for
            // `layout`.
            unsafe { self.free(object, layout) };
        }
    }
}

/// # Safety
/// Each object was allocated by `CcMalloc` for `layout`, is not used any more, and is not there
/// twice.
unsafe fn free_each_of_ccmalloc(objects: impl Iterator<Item = *mut u8>, layout: Layout) {
    // SAFETY: the caller gives up `CcMalloc`'s objects of `layout`, each of which is there once.
    unsafe { ccmalloc::cc_dealloc_each(objects.filter_map(NonNull::new), layout) };
}

/// Implements [`Placer`] by the functions of a region of ccmalloc, which have the same contracts.
macro_rules! placer {
    ([$($generics:tt)*] $placer:ty: |$this:ident| $region:expr,
        $alloc_at:ident, $alloc_each:ident, $fill:ident if $can_fill:expr) => {
        // SAFETY: `alloc_at` and `alloc_each` return null or allocations of the home for this
        // layout, and `fill` makes such allocations where it can be used.
        unsafe impl<$($generics)*> Placer for $placer {
            fn alloc_at(&mut self, offset: usize, layout: Layout) -> *mut u8 {
                let $this = self;
                $region.$alloc_at(offset, layout)
            }

            fn address(&self, offset: usize) -> *mut u8 {
                let $this = self;
                $region.address(offset)
            }

            fn alloc_each(&mut self, layout: Layout, places: &mut [*mut u8]) -> usize {
                let $this = self;
                $region.$alloc_each(layout, places)
            }

            unsafe fn fill(&mut self, layout: Layout, places: &mut [*mut u8]) -> bool {
                let $this = self;
                // SAFETY: the caller promises that the offsets are those of objects of this layout.
                $can_fill && unsafe { $region.$fill(layout, places) }
            }

            fn can_fill(&self) -> bool {
                $can_fill
            }
        }
    };
}

// Objects of `CcMalloc` are the global allocator's where the program has declared it.
placer!([] Region: |this| this, alloc_at, alloc_each, cc_fill if ccmalloc::is_declared_global());
placer!([] CcRegion: |this| this.0, cc_alloc_at, cc_alloc_each, cc_fill if true);
#[cfg(any(feature = "allocator-api2", feature = "allocator-api2-04"))]
placer!(['h] HeapRegion<'h>: |this| this, alloc_at, alloc_each, fill if true);

/// A region whose objects are `CcMalloc`'s, whatever the global allocator is.
#[cfg_attr(
    not(any(feature = "allocator-api2", feature = "allocator-api2-04")),
    expect(unreachable_pub, reason = "with these features it is part of `Link`")
)]
#[derive(Debug)]
pub struct CcRegion(Region);

impl CcRegion {
    pub(crate) fn reserve(bytes: usize) -> Option<CcRegion> {
        Region::reserve(bytes).map(CcRegion)
    }
}

/// Boxes of one version of the `allocator-api2` crate.
macro_rules! boxes {
    ($feature:literal, $module:ident, $version:ident) => {
        #[cfg(feature = $feature)]
        mod $module {
            use super::{Home, Link, Movable, OwningPointer};
            use $version::{alloc::Allocator, boxed::Box};

            impl<T, A: Allocator + Home> Link for Box<T, A> {
                type Node = T;
            }

            impl<T: Unpin, A: Allocator + Home> Movable for Box<T, A> {}

            // SAFETY: the box owns an allocation of its allocator for its contents' layout;
            // `point_to` writes a box made of the new node and the same allocator.
            unsafe impl<T, A: Allocator + Home> OwningPointer for Box<T, A> {
                type Target = T;
                type Home = A;

                #[inline]
                fn home(&self) -> A {
                    *Box::allocator(self)
                }

                #[inline]
                fn node(&mut self) -> *mut T {
                    std::ptr::from_mut(&mut **self)
                }

                #[inline]
                unsafe fn point_to(link: *mut (), node: *mut u8) {
                    let link = link.cast::<Self>();
                    // SAFETY: valid for reads and of this type (the caller's promise). The
                    // reference is to the box, not to what it owns.
                    let allocator = *Box::allocator(unsafe { &*link });
                    // SAFETY: the node is of the link's home, which is this allocator's, for a `T`,
                    // and nothing else owns it (the caller's promise).
                    let owner = unsafe { Box::from_raw_in(node.cast::<T>(), allocator) };
                    // SAFETY: valid for writes (the caller's promise).
                    unsafe { link.write(owner) };
                }
            }
        }
    };
}

boxes!("allocator-api2", version_2, allocator_api2);
boxes!("allocator-api2-04", version_4, allocator_api2_04);

#[cfg(any(feature = "allocator-api2", feature = "allocator-api2-04"))]
// SAFETY: all are `CcMalloc`'s own functions.
unsafe impl Home for CcMalloc {
    type Placer = CcRegion;

    fn reserve(self, bytes: usize) -> Option<CcRegion> {
        CcRegion::reserve(bytes)
    }

    unsafe fn alloc(self, layout: Layout) -> *mut u8 {
        ccmalloc::cc_alloc(layout, None).map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn free(self, object: *mut u8, layout: Layout) {
        if let Some(object) = NonNull::new(object) {
            // SAFETY: allocated by `CcMalloc` for this layout, and not used any more (the caller's
            // promise).
            unsafe { ccmalloc::cc_dealloc(object, layout) };
        }
    }

    unsafe fn free_each(self, objects: impl Iterator<Item = *mut u8>, layout: Layout) {
        // SAFETY: the caller gives up objects that `CcMalloc` made for `layout`, each of which is
        // there once.
        unsafe { free_each_of_ccmalloc(objects, layout) };
    }
}

#[cfg(any(feature = "allocator-api2", feature = "allocator-api2-04"))]
// SAFETY: all go to one heap, which the value borrows.
unsafe impl<'h> Home for &'h Heap {
    type Placer = HeapRegion<'h>;

    fn is(self, other: Self) -> bool {
        std::ptr::eq(self, other)
    }

    fn reserve(self, bytes: usize) -> Option<HeapRegion<'h>> {
        HeapRegion::reserve(self, bytes)
    }

    unsafe fn alloc(self, layout: Layout) -> *mut u8 {
        Heap::alloc(self, layout, None).map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn free(self, object: *mut u8, layout: Layout) {
        if let Some(object) = NonNull::new(object) {
            // SAFETY: allocated in this heap for this layout, and not used any more (the caller's
            // promise). Emptying the heap takes `&mut Heap`, and this borrow lasts.
            unsafe { self.dealloc(object, layout) };
        }
    }
}
