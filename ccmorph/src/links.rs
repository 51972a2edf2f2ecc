//! Links, and the traversal that shows them.
//!
//! # Why showing a link proves that the node may move
//!
//! The thesis's `ccmorph` asked its caller to promise that nothing else points into the structure. Here the borrow checker
//! asks. A traversal has the type
//!
//! ```text
//! for<'a> FnMut(&'a mut T, &mut dyn FnMut(&'a mut dyn Links<Node = T>))
//! ```
//!
//! and the lifetime `'a` of the node's borrow is also that of each link shown. Three things follow, for all safe code:
//!
//! 1. *A link that was shown is out of reach.* It stays mutably borrowed for `'a`, which outlives the call. So the traversal
//!    cannot drop, replace or read it afterwards, nor show it again.
//! 2. *A link that is shown stays where it is.* It is borrowed for `'a`, so it is part of the node, or of memory that the
//!    node owns, or of something that lives even longer. A local variable does not.
//! 3. *No borrow is kept.* The caller of the traversal may choose any `'a`, so nothing that the traversal captured can
//!    hold a reference of that lifetime.
//!
//! With one `'a` for all nodes, the links that were collected are all valid and disjoint at once, and so are the nodes that
//! they own: exactly the state in which safe code could replace the boxes one by one,
//!
//! ```text
//! *link = Box::new(*std::mem::replace(link, ..));
//! ```
//!
//! Which links a traversal shows does not matter to this: what it hides is not moved, but remains the property of the
//! node, which is. What does not compile, in turn for the three points above:
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

/// One or more places that own nodes: a box, an optional one, or a collection of them.
///
/// Implement it for an own type that holds links, such as a hash table's bucket; there is nothing to get wrong, see
/// [the traversal's contract](crate#why-this-is-safe).
///
/// # Examples
///
/// ```
/// use ccmorph::Links;
///
/// struct Node { next: Option<Box<Node>> }
/// struct Bucket { length: usize, first: Option<Box<Node>> }
///
/// impl Links for Bucket {
///     type Node = Node;
///     fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Box<Node>)) {
///         self.first.show(visit);
///     }
/// }
/// ```
pub trait Links {
    /// What the links own.
    type Node;

    /// Calls `visit` for each link that owns a node, in the order in which the nodes count as siblings.
    fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Box<Self::Node>));
}

impl<T> Links for Box<T> {
    type Node = T;

    #[inline]
    fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Box<T>)) {
        visit(self);
    }
}

impl<L: Links> Links for Option<L> {
    type Node = L::Node;

    #[inline]
    fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Box<L::Node>)) {
        if let Some(links) = self {
            links.show(visit);
        }
    }
}

impl<L: Links> Links for [L] {
    type Node = L::Node;

    fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Box<L::Node>)) {
        for links in self {
            links.show(visit);
        }
    }
}

impl<L: Links, const N: usize> Links for [L; N] {
    type Node = L::Node;

    fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Box<L::Node>)) {
        self.as_mut_slice().show(visit);
    }
}

impl<L: Links> Links for Vec<L> {
    type Node = L::Node;

    fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Box<L::Node>)) {
        self.as_mut_slice().show(visit);
    }
}

impl<L: Links> Links for Box<[L]> {
    type Node = L::Node;

    fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut Box<L::Node>)) {
        self.as_mut().show(visit);
    }
}

/// What a traversal calls for each field of a node that holds [`Links`].
///
/// `'a` is the lifetime of the node's borrow, which each link must share.
pub type Visit<'v, 'a, T> = dyn FnMut(&'a mut (dyn Links<Node = T> + 'a)) + 'v;

/// A node that can show its children; derived for structs and enums by
/// [`#[derive(TreeNode)]`](macro@crate::TreeNode).
///
/// # Examples
///
/// By hand, for a node whose children are not all in fields:
///
/// ```
/// use ccmorph::{TreeNode, Visit};
///
/// struct Node { children: std::collections::BTreeMap<char, Box<Node>> }
///
/// impl TreeNode for Node {
///     fn children<'a>(&'a mut self, visit: &mut Visit<'_, 'a, Node>) {
///         for child in self.children.values_mut() {
///             visit(child);
///         }
///     }
/// }
/// ```
pub trait TreeNode: Sized {
    /// Calls `visit` for the links to the children, from the first to the last.
    fn children<'a>(&'a mut self, visit: &mut Visit<'_, 'a, Self>);
}
