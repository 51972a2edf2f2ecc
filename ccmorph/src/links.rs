//! Links, and the traversal that shows them.
//!
//! # Why showing a link proves that the node may move
//!
//! The thesis's `ccmorph` asked its caller to promise that nothing else points into the structure.
//! Here the borrow checker asks. A traversal has the type
//!
//! ```text
//! for<'a> FnMut(&'a mut T, &mut dyn FnMut(&'a mut dyn Links<Link = Box<T>>))
//! ```
//!
//! and the lifetime `'a` of the node's borrow is also that of each link shown. Three things follow,
//! for all safe code:
//!
//! 1. *A link that was shown is out of reach.* It stays mutably borrowed for `'a`, which outlives
//!    the call. So the traversal cannot drop, replace or read it afterwards, nor show it again.
//! 2. *A link that is shown stays where it is.* It is borrowed for `'a`, so it is part of the node,
//!    or of memory that the node owns, or of something that lives even longer. A local variable
//!    does not.
//! 3. *No borrow is kept.* The caller of the traversal may choose any `'a`, so nothing that the
//!    traversal captured can hold a reference of that lifetime.
//!
//! With one `'a` for all nodes, the links that were collected are all valid and disjoint at once,
//! and so are the nodes that they own: exactly the state in which safe code could replace the boxes
//! one by one,
//!
//! ```text
//! *link = Box::new(*std::mem::replace(link, ..));
//! ```
//!
//! Which links a traversal shows does not matter to this: what it hides is not moved, but remains
//! the property of the node, which is. What does not compile, in turn for the three points above:
//!
//! ```compile_fail,E0499
//! # struct Node { left: Option<Box<Node>> }
//! # let mut root = Some(Box::new(Node { left: None }));
//! // Showing a link twice.
//! let _ = ccmorph::ccmorph(&mut root, |node, visit| {
//!     visit(&mut node.left);
//!     visit(&mut node.left);
//! });
//! ```
//!
//! ```compile_fail,E0506
//! # struct Node { left: Option<Box<Node>> }
//! # let mut root = Some(Box::new(Node { left: None }));
//! // Replacing a link after showing it.
//! let _ = ccmorph::ccmorph(&mut root, |node, visit| {
//!     visit(&mut node.left);
//!     node.left = None;
//! });
//! ```
//!
//! ```compile_fail,E0597
//! # struct Node { left: Option<Box<Node>> }
//! # let mut root = Some(Box::new(Node { left: None }));
//! // Showing a link that is about to go.
//! let _ = ccmorph::ccmorph(&mut root, |node, visit| {
//!     let mut local = node.left.take();
//!     visit(&mut local);
//! });
//! ```
//!
//! ```compile_fail,E0521
//! # struct Node { left: Option<Box<Node>> }
//! # let mut root = Some(Box::new(Node { left: None }));
//! // Keeping a link for later.
//! let mut kept: Option<&mut Option<Box<Node>>> = None;
//! let _ = ccmorph::ccmorph(&mut root, |node, _visit| {
//!     kept = Some(&mut node.left);
//! });
//! # drop(kept);
//! ```

use crate::{Link, Visitor};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// One or more places that own nodes, or point back to some: a box, an optional one, or a
/// collection of them.
///
/// Implement it for an own type that holds links, such as a hash table's bucket; there is nothing
/// to get wrong, see [the traversal's contract](crate#why-this-is-safe).
///
/// # Examples
///
/// ```
/// use ccmorph::{Links, Visitor};
///
/// struct Node { next: Option<Box<Node>> }
/// struct List { length: usize, first: Option<Box<Node>>, last: *mut Node }
///
/// impl Links for List {
///     type Link = Box<Node>;
///     fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Node>>) {
///         self.first.show(visitor);
///         visitor.pointers(&mut self.last);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no links to nodes of one type",
    label = "holds no boxes of the nodes that are morphed",
    note = "for nodes of several types, vectors of nodes and trait objects: derive \
            `ccmorph::TreeNode` for each type, and call `Morph::run_any(&mut root)`, or show them \
            by `visit(ccmorph::any(&mut field))`",
    note = "for pointers that own nothing: `visit(ccmorph::back(&mut field))`",
    note = "`Rc` and `Arc` do not move: own each node by a `Box`, or use `ccmorph::IndexMorph`"
)]
pub trait Links {
    /// The kind of link.
    type Link: Link;

    /// Tells `visitor` of each link that owns a node, in the order in which the nodes count as
    /// siblings, and of pointers back.
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Self::Link>);
}

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

impl<L: Links> Links for Option<L> {
    type Link = L::Link;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L::Link>) {
        if let Some(links) = self {
            links.show(visitor);
        }
    }
}

impl<L: Links> Links for [L] {
    type Link = L::Link;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L::Link>) {
        for links in self {
            links.show(visitor);
        }
    }
}

impl<L: Links, const N: usize> Links for [L; N] {
    type Link = L::Link;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L::Link>) {
        self.as_mut_slice().show(visitor);
    }
}

impl<L: Links> Links for Vec<L> {
    type Link = L::Link;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L::Link>) {
        self.as_mut_slice().show(visitor);
    }
}

impl<L: Links> Links for Box<[L]> {
    type Link = L::Link;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L::Link>) {
        self.as_mut().show(visitor);
    }
}

impl<L: Links> Links for VecDeque<L> {
    type Link = L::Link;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L::Link>) {
        for links in self {
            links.show(visitor);
        }
    }
}

impl<K, L: Links> Links for BTreeMap<K, L> {
    type Link = L::Link;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L::Link>) {
        for links in self.values_mut() {
            links.show(visitor);
        }
    }
}

impl<K, L: Links, S> Links for HashMap<K, L, S> {
    type Link = L::Link;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L::Link>) {
        for links in self.values_mut() {
            links.show(visitor);
        }
    }
}

/// What a traversal calls for each field of a node that holds [`Links`].
///
/// `'a` is the lifetime of the node's borrow, which each link must share.
pub type Visit<'v, 'a, L> = dyn FnMut(&'a mut (dyn Links<Link = L> + 'a)) + 'v;

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
