//! Nodes of several types that own each other, such as statements and expressions.
//!
//! Each node carries its size, its alignment and a [`Kind`]: two functions that know its type.
//!
//! The safety argument is that of the module `visit`, with [`AnyLinks::show_any`] as the traversal:
//! it borrows the node and each link for any lifetime `'a`. So links are disjoint, stay where they
//! are, and are not used elsewhere until the morph ends. A node's kind is that of the type of its
//! link. Nodes are boxes of any type and the buffers of vectors; safe code with `&mut Box<T>` or
//! `&mut Vec<T>` may move these, too.

use crate::link::{Global, Link};
use crate::links::Back;
use crate::macros::{collections, wrapper};
use crate::pointers::Pointers;
use crate::visit::{AnyLinks, AnyVisitor, ErasedLink, Kind, Links, Shown, Visitor};
use std::alloc::Layout;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::marker::PhantomData;

/// The kind of node that a `Box<T>` owns.
struct Boxed<'a, T: ?Sized>(PhantomData<&'a mut T>);

impl<'a> AnyVisitor<'_, 'a> {
    /// Shows places of a type that implements [`Links`] alone.
    pub fn links<L: Links<Link = Box<T>> + ?Sized, T: AnyLinks + 'a>(&mut self, links: &'a mut L) {
        self.show_kind(links, Boxed::<T>::KIND);
    }
}

impl<'a, T: AnyLinks + ?Sized + 'a> Boxed<'a, T> {
    const KIND: &'a Kind<'a> = &Kind {
        link: ErasedLink::box_of::<T>(),
        visit: visit_boxed::<T>,
    };
}

/// # Safety
/// As for [`Kind::visit`]; links are `Box<T>`.
unsafe fn visit_boxed<'a, T: AnyLinks + ?Sized + 'a>(
    shown: Shown,
    visitor: &mut AnyVisitor<'_, 'a>,
) {
    // SAFETY: the place of a box that is borrowed for 'a (the caller's promise). Only its pointer
    // is read, by which nothing is accessed yet.
    let held: *mut T = unsafe { &raw mut **shown.link.cast::<Box<T>>() };
    let node = with_address(held, shown.node);
    // SAFETY: the pointer that the box holds, with its metadata, to an initialised node. The box is
    // borrowed for 'a, and this is the one reference to its node, as each link is visited once (the
    // caller's promise).
    unsafe { &mut *node }.show_any(visitor);
}

/// `pointer` with the right to access the node that `address` has.
///
/// # Panics
/// When the two have different addresses.
fn with_address<T: ?Sized>(mut pointer: *mut T, address: *mut u8) -> *mut T {
    let is_same = pointer.addr() == address.addr();
    assert!(is_same, "a pointer to another node");
    let word: *mut *mut u8 = (&raw mut pointer).cast();
    // SAFETY: a pointer is at least as large and as aligned as one to a sized type. It begins with
    // its address: `AnyLinks::show_any` of boxes has checked that for unsized types.
    unsafe { word.write(address) };
    pointer
}

impl<T: AnyLinks + ?Sized> AnyLinks for Box<T> {
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        let layout = Layout::for_value(&**self);
        let link: *mut Box<T> = self;
        // SAFETY: a reference for 'a just now. Only the pointer in the box is read.
        let node: *mut T = unsafe { &raw mut **link };
        // SAFETY: `link` is a reference for 'a just now. A box is a pointer, so it is at least as
        // large and as aligned as one word.
        let first_word = unsafe { link.cast::<*mut u8>().read() };
        if first_word.addr() == node.addr() {
            let (link, node) = (link.cast(), node.cast());
            visitor
                .collector
                .push_kind(Shown { link, node }, layout, Boxed::<T>::KIND);
        } else {
            // Pointers to slices and trait objects have begun with their address in all versions of
            // Rust, without a promise. In another order, the node stays.
            debug_assert!(
                layout.size() == 0,
                "a pointer that does not begin with its address"
            );
        }
    }
}

/// The kind of node that a `Vec<T>` owns: its buffer.
struct Buffer<'a, T>(PhantomData<&'a mut T>);

impl<'a, T: AnyLinks + 'a> Buffer<'a, T> {
    const KIND: &'a Kind<'a> = &Kind {
        link: ErasedLink {
            bytes: {
                assert!(align_of::<Vec<T>>() == align_of::<*mut u8>());
                size_of::<Vec<T>>()
            },
            point_to: Some(point_vec_to::<T>),
        },
        visit: visit_buffer::<T>,
    };
}

/// # Safety
/// As for [`Kind::visit`]; links are `Vec<T>`.
unsafe fn visit_buffer<'a, T: AnyLinks + 'a>(shown: Shown, visitor: &mut AnyVisitor<'_, 'a>) {
    // SAFETY: the place of a vector that is borrowed for 'a (the caller's promise).
    let len = unsafe { (*shown.link.cast::<Vec<T>>()).len() };
    // SAFETY: the vector's buffer, with `len` initialised elements. The vector is borrowed for
    // 'a, and this is the one reference to its elements, as each link is visited once (the caller's
    // promise).
    let elements: &'a mut [T] = unsafe { std::slice::from_raw_parts_mut(shown.node.cast(), len) };
    elements.show_any(visitor);
}

/// Makes a vector own another buffer of the same capacity and, once it is written, with the same
/// elements.
///
/// # Safety
/// As for [`OwningPointer::point_to`](crate::link::OwningPointer::point_to), of a `Vec<T>` and a
/// buffer.
unsafe fn point_vec_to<T>(link: *mut (), buffer: *mut u8) {
    let link = link.cast::<Vec<T>>();
    // SAFETY: a link of this type, which nothing else refers to (the caller's promise). Neither
    // looks into the buffer.
    let (len, capacity) = unsafe { ((*link).len(), (*link).capacity()) };
    // SAFETY: allocated by the global allocator with the layout of the old buffer, and owned by
    // nothing else; the elements are initialised when the vector is used next (the caller's
    // promise).
    let vec: Vec<T> = unsafe { Vec::from_raw_parts(buffer.cast(), len, capacity) };
    // SAFETY: valid for writes (the caller's promise). Overwriting runs no destructor.
    unsafe { link.write(vec) };
}

impl<T: AnyLinks> AnyLinks for Vec<T> {
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        // No buffer gives an error; one of no size is skipped.
        if let Ok(layout) = Layout::array::<T>(self.capacity()) {
            let shown = Shown {
                node: self.as_mut_ptr().cast(),
                link: std::ptr::from_mut(self).cast(),
            };
            visitor
                .collector
                .push_kind(shown, layout, Buffer::<T>::KIND);
        }
    }
}

collections! {
    show_any(&mut AnyVisitor<'_, 'a>)
    [T: AnyLinks] AnyLinks, Option<T>: iter_mut;
    [T: AnyLinks] AnyLinks, [T]: iter_mut;
    [T: AnyLinks, const N: usize] AnyLinks, [T; N]: iter_mut;
    [T: AnyLinks] AnyLinks, VecDeque<T>: iter_mut;
    [K: Unpin, T: AnyLinks] AnyLinks, BTreeMap<K, T>: values_mut;
    [K: Unpin, T: AnyLinks, S: Unpin] AnyLinks, HashMap<K, T, S>: values_mut;
}

macro_rules! tuples {
    ($(($($element:ident)*))*) => {$(
        impl<$($element: AnyLinks),*> AnyLinks for ($($element,)*) {
            #[inline]
            #[expect(non_snake_case, reason = "the names of the types")]
            fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
                let ($($element,)*) = self;
                $($element.show_any(visitor);)*
            }
        }
    )*};
}

tuples! {
    (A)
    (A B)
    (A B C)
    (A B C D)
}

wrapper! {
    /// Lets a traversal of one type show links to nodes of others; made by [`any`].
    Any;

    /// Shows links to nodes of other types, which show their own children by [`AnyLinks`]:
    /// `visit(any(&mut node.condition))`.
    ///
    /// The traversal is not called for nodes shown so.
    /// [`#[derive(TreeNode)]`](macro@crate::TreeNode) shows fields of other types so.
    any;
}

impl<A: AnyLinks + ?Sized, L: Link<Home = Global>> Links for Any<A, L> {
    type Link = L;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L>) {
        visitor.any(&mut self.shown);
    }
}

impl<L: Link, P: Pointers<L::Node> + Unpin + ?Sized> AnyLinks for Back<P, L> {
    #[inline]
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        visitor.pointers::<L::Node, P>(self.pointers_mut());
    }
}

/// The node type of a structure all of whose links are shown by [`any`].
pub(crate) struct Unshown(#[expect(dead_code, reason = "so that it has a size")] u8);

/// Used by the code of `#[derive(TreeNode)]`.
#[doc(hidden)]
pub mod derive {
    pub use crate::split::{Whole, far_box};
    /// By this name also where a crate has no `std`.
    pub use std::boxed::Box;

    use super::{Any, AnyLinks, AnyVisitor, Link, Links, Pointers, any};
    use crate::links::{Back, back};
    use std::marker::PhantomData;

    /// A field, shown by an inherent method if that applies, else by that of a trait.
    #[derive(Debug)]
    pub struct Child<'a, F: ?Sized, L>(&'a mut F, PhantomData<fn() -> L>);

    pub fn child<F: ?Sized, L>(field: &mut F) -> Child<'_, F, L> {
        Child(field, PhantomData)
    }

    impl<'a, F: Links<Link = L> + ?Sized, L> Child<'a, F, L> {
        pub fn links(self) -> &'a mut F {
            self.0
        }
    }

    impl<'a, F: Pointers<L::Node> + ?Sized, L: Link> Child<'a, F, L> {
        pub fn pointers(self) -> &'a mut Back<F, L> {
            back(self.0)
        }
    }

    /// Where links or pointers lead to nodes of other types.
    pub trait OrAny<'a> {
        type Field: ?Sized;
        type Link;

        fn pointers<T>(self) -> &'a mut Any<Back<Self::Field, Box<T>>, Self::Link>
        where
            Self::Field: Pointers<T> + Unpin;

        fn links(self) -> &'a mut Any<Self::Field, Self::Link>
        where
            Self::Field: AnyLinks;
    }

    impl<'a, F: ?Sized, L> OrAny<'a> for Child<'a, F, L> {
        type Field = F;
        type Link = L;

        fn pointers<T>(self) -> &'a mut Any<Back<F, Box<T>>, L>
        where
            F: Pointers<T> + Unpin,
        {
            any(back(self.0))
        }

        fn links(self) -> &'a mut Any<F, L>
        where
            F: AnyLinks,
        {
            any(self.0)
        }
    }

    impl<'a, F: AnyLinks + ?Sized> Child<'a, F, ()> {
        pub fn show(self, visitor: &mut AnyVisitor<'_, 'a>) {
            visitor.show(self.0);
        }
    }

    /// What implements [`Links`] alone.
    pub trait OrLinks<'a> {
        type Field: ?Sized;

        fn show<T: AnyLinks + 'a>(self, visitor: &mut AnyVisitor<'_, 'a>)
        where
            Self::Field: Links<Link = Box<T>>;
    }

    impl<'a, F: ?Sized> OrLinks<'a> for Child<'a, F, ()> {
        type Field = F;

        fn show<T: AnyLinks + 'a>(self, visitor: &mut AnyVisitor<'_, 'a>)
        where
            F: Links<Link = Box<T>>,
        {
            visitor.links(self.0);
        }
    }
}
