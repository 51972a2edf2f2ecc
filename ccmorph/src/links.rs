//! What shows links to nodes of one type: boxes, collections, pointers back, and nodes.

use crate::link::Link;
use crate::macros::{collections, wrapper};
use crate::pointers::Pointers;
use crate::visit::{Links, Visit, Visitor};
use std::collections::{BTreeMap, HashMap, VecDeque};

impl<T> Links for Box<T> {
    type Link = Box<T>;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<T>>) {
        visitor.link(self);
    }
}

/// Boxes of one version of the `allocator-api2` crate.
macro_rules! boxes {
    ($feature:literal, $($boxed:ident)::+) => {
        #[cfg(feature = $feature)]
        impl<T> Links for $($boxed)::+<T, ccmalloc::CcMalloc> {
            type Link = Self;

            #[inline]
            fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Self>) {
                visitor.link(self);
            }
        }

        #[cfg(feature = $feature)]
        impl<'h, T> Links for $($boxed)::+<T, &'h ccmalloc::Heap> {
            type Link = Self;

            #[inline]
            fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Self>) {
                visitor.link(self);
            }
        }
    };
}

boxes!("allocator-api2", allocator_api2::boxed::Box);
boxes!("allocator-api2-04", allocator_api2_04::boxed::Box);

collections! {
    show(&mut Visitor<'_, 'a, L::Link>)
    [L: Links] Links, Option<L>: iter_mut {type Link = L::Link;};
    [L: Links] Links, [L]: iter_mut {type Link = L::Link;};
    [L: Links, const N: usize] Links, [L; N]: iter_mut {type Link = L::Link;};
    [L: Links] Links, Vec<L>: iter_mut {type Link = L::Link;};
    [L: Links] Links, Box<[L]>: iter_mut {type Link = L::Link;};
    [L: Links] Links, VecDeque<L>: iter_mut {type Link = L::Link;};
    [K, L: Links] Links, BTreeMap<K, L>: values_mut {type Link = L::Link;};
    [K, L: Links, S] Links, HashMap<K, L, S>: values_mut {type Link = L::Link;};
}

/// A node that can show its children; derived for structs and enums by
/// [`#[derive(TreeNode)]`](macro@crate::TreeNode).
///
/// # Examples
///
/// By hand, for a node some of whose children shall stay where they are:
///
/// ```
/// use ccmorph::{TreeNode, Visit};
///
/// struct Node { children: std::collections::BTreeMap<char, Box<Node>> }
///
/// impl TreeNode for Node {
///     type Link = Box<Node>;
///     fn children<'a>(&'a mut self, visit: &mut Visit<'_, 'a, Box<Node>>) {
///         for (name, child) in &mut self.children {
///             if *name != '_' {
///                 visit(child);
///             }
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not show its children",
    note = "`#[derive(ccmorph::TreeNode)]`, with `#[child]` on the fields that own nodes"
)]
pub trait TreeNode: Sized {
    /// What owns a child: `Box<Self>`, or another kind of box.
    type Link: Link<Node = Self>;

    /// Calls `visit` for the links to the children, from the first to the last, and for [pointers
    /// back](crate::back).
    fn children<'a>(&'a mut self, visit: &mut Visit<'_, 'a, Self::Link>);
}

wrapper! {
    /// [`Pointers`] in the place of [`Links`], so that a traversal can show them; made by [`back`].
    Back;

    /// Shows pointers that own nothing: `visit(back(&mut node.up))`.
    /// [`#[derive(TreeNode)]`](macro@crate::TreeNode) does so for fields marked `#[parent]` or
    /// `#[pointer]`.
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
    back;
}

impl<P: ?Sized, L> Back<P, L> {
    pub(crate) fn pointers_mut(&mut self) -> &mut P {
        &mut self.shown
    }
}

impl<L: Link, P: Pointers<L::Node> + ?Sized> Links for Back<P, L> {
    type Link = L;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L>) {
        visitor.pointers(&mut self.shown);
    }
}
