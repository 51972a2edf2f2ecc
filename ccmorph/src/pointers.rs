//! Pointers back: parent pointers, predecessors in lists, threads through a tree.
//!
//! They are raw pointers to nodes that they do not own. A traversal shows them wrapped by
//! [`back`](crate::back). Those that hold the address of a node that the traversal shows get the
//! very pointer that the node's link holds afterwards; all others stay as they are.
//!
//! If no node moves (a morph that fails or does not pay, [`map`](crate::map), a panic), the
//! pointers keep their addresses, but the walk has borrowed each node mutably. By Rust's aliasing
//! rules (Stacked Borrows) that invalidates pointers derived from the boxes before: derive them
//! from the links again. [`Morph::run_raw`](crate::Morph::run_raw) borrows nothing.

use crate::macros::collections;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Places that hold pointers to nodes of type `T` that they do not own: `*mut T`, `*const T`,
/// `NonNull<T>`, and options, cells, arrays, slices and vectors of them.
///
/// # Examples
/// For a type of your own, show the fields:
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

impl<T, P: Pointers<T>> Pointers<T> for Cell<P> {
    #[inline]
    fn show<'a>(&'a mut self, each: &mut dyn FnMut(Place<'a, T>)) {
        self.get_mut().show(each);
    }
}

collections! {
    show(&mut dyn FnMut(Place<'a, T>))
    [T, P: Pointers<T>] Pointers<T>, Option<P>: iter_mut;
    [T, P: Pointers<T>] Pointers<T>, [P]: iter_mut;
    [T, P: Pointers<T>, const N: usize] Pointers<T>, [P; N]: iter_mut;
    [T, P: Pointers<T>] Pointers<T>, Vec<P>: iter_mut;
}
