//! Pointers back: what a node holds of other nodes without owning them.
//!
//! Parent pointers, the predecessor in a doubly linked list, the tail of a list, threads through a
//! tree: raw pointers that must follow when nodes move. A traversal shows them as it shows links,
//! wrapped by [`back`]. Whichever hold the address of a node that the traversal shows as well,
//! before or after, get its new address; all others, null and dangling ones too, stay as they are.
//!
//! A raw pointer is a number with which safe code can do nothing, so that changing one is safe
//! whatever it is. What code that *uses* them may rely on: a pointer that was shown and held the
//! address of a node holds afterwards the very pointer that the node's link holds.
//!
//! Where no node moves (a morph that fails or does not pay, [`map`](crate::map), a traversal that
//! panics), the pointers keep their addresses, but the walk has borrowed each node mutably. By
//! Rust's rules of aliasing such a borrow ends the life of what was derived from the nodes' boxes
//! before: code that reads through such pointers makes them anew then, from the links, as after any
//! other `&mut` to a node. (Under Miri it shows with Stacked Borrows, and not with Tree Borrows.)
//! Pointers to nodes that are held by pointer alone, as [`Morph::run_raw`](crate::Morph::run_raw)
//! moves them, are not concerned.

use crate::{Link, Links, Visitor};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Places that hold pointers to nodes of type `T` which they do not own: `*mut T`, `*const T`,
/// `NonNull<T>`, and options, cells, arrays, slices and vectors of them.
///
/// # Examples
///
/// For a type of one's own, hand on to the fields:
///
/// ```
/// use ccmorph::{Place, Pointers};
///
/// struct Node { around: Around }
/// struct Around { up: *mut Node, before: *mut Node }
///
/// impl Pointers<Node> for Around {
///     fn show<'a>(&'a mut self, each: &mut dyn FnMut(Place<'a, Node>)) {
///         self.up.show(each);
///         self.before.show(each);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no raw pointers to `{T}`",
    note = "`*mut T`, `*const T`, `NonNull<T>`, and options, cells, arrays and vectors of these \
            do; a reference, `Rc`, `Weak` or box may not be changed to another address"
)]
pub trait Pointers<T> {
    /// Calls `each` for every pointer.
    fn show<'a>(&'a mut self, each: &mut dyn FnMut(Place<'a, T>));
}

/// A place that holds a raw pointer, mutably borrowed for `'a`.
// Invariant: made from a `&'a mut` to a type with the layout of a thin raw pointer to T, which may
// be overwritten by a pointer that is not null.
#[derive(Debug)]
pub struct Place<'a, T> {
    place: *mut *mut T,
    borrow: PhantomData<&'a mut *mut T>,
}

impl<T> Place<'_, T> {
    pub(crate) fn as_ptr(&self) -> *mut *mut T {
        self.place
    }
}

/// Implements [`Pointers`] for types with the layout of `*mut T`.
macro_rules! pointer {
    ($pointer:ty) => {
        impl<T> Pointers<T> for $pointer {
            #[inline]
            fn show<'a>(&'a mut self, each: &mut dyn FnMut(Place<'a, T>)) {
                each(Place {
                    place: std::ptr::from_mut(self).cast(),
                    borrow: PhantomData,
                });
            }
        }
    };
}

pointer!(*mut T);
pointer!(*const T);
pointer!(NonNull<T>);

impl<T, P: Pointers<T>> Pointers<T> for Option<P> {
    #[inline]
    fn show<'a>(&'a mut self, each: &mut dyn FnMut(Place<'a, T>)) {
        if let Some(pointers) = self {
            pointers.show(each);
        }
    }
}

impl<T, P: Pointers<T>> Pointers<T> for Cell<P> {
    #[inline]
    fn show<'a>(&'a mut self, each: &mut dyn FnMut(Place<'a, T>)) {
        self.get_mut().show(each);
    }
}

impl<T, P: Pointers<T>> Pointers<T> for [P] {
    fn show<'a>(&'a mut self, each: &mut dyn FnMut(Place<'a, T>)) {
        for pointers in self {
            pointers.show(each);
        }
    }
}

impl<T, P: Pointers<T>, const N: usize> Pointers<T> for [P; N] {
    fn show<'a>(&'a mut self, each: &mut dyn FnMut(Place<'a, T>)) {
        self.as_mut_slice().show(each);
    }
}

impl<T, P: Pointers<T>> Pointers<T> for Vec<P> {
    fn show<'a>(&'a mut self, each: &mut dyn FnMut(Place<'a, T>)) {
        self.as_mut_slice().show(each);
    }
}

/// [`Pointers`] in the place of [`Links`], so that a traversal can show them; made by [`back`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Back<P: ?Sized, L> {
    link: PhantomData<fn() -> L>,
    pointers: P,
}

/// Shows pointers that own nothing: `visit(back(&mut node.up))`. Fields marked `#[parent]` or
/// `#[pointer]` are shown so by [`#[derive(TreeNode)]`](macro@crate::TreeNode).
///
/// # Examples
///
/// ```
/// # #[global_allocator]
/// # static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
/// use ccmorph::{back, ccmorph};
/// use std::ptr::null_mut;
///
/// struct Node { next: Option<Box<Node>>, previous: *mut Node }
///
/// let mut list = Some(Box::new(Node { next: None, previous: null_mut() }));
/// let first = &mut **list.as_mut().unwrap();
/// let previous: *mut Node = first;
/// first.next = Some(Box::new(Node { next: None, previous }));
///
/// ccmorph(&mut list, |node, visit| {
///     visit(&mut node.next);
///     visit(back(&mut node.previous));
/// })?;
///
/// let first = list.as_deref().unwrap();
/// assert!(std::ptr::eq(first.next.as_deref().unwrap().previous, first));
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
#[inline]
pub fn back<P: ?Sized, L>(pointers: &mut P) -> &mut Back<P, L> {
    let back = std::ptr::from_mut(pointers) as *mut Back<P, L>;
    // SAFETY: `Back` is `repr(transparent)` over `P`, its other field being of size 0 and
    // alignment 1. So the pointer is aligned and valid for as long as the reference that it was
    // made from, which is borrowed meanwhile.
    unsafe { &mut *back }
}

impl<P: ?Sized, L> Back<P, L> {
    pub(crate) fn pointers_mut(&mut self) -> &mut P {
        &mut self.pointers
    }
}

impl<L: Link, P: Pointers<L::Node> + ?Sized> Links for Back<P, L> {
    type Link = L;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L>) {
        visitor.pointers(&mut self.pointers);
    }
}
