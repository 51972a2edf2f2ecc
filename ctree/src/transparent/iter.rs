//! Iterators: none of them recurses, and only the one that owns its nodes changes the tree.
//!
//! Borrowing ones keep the nodes whose turn is still to come on a stack, one for each level at
//! most:
//!
//! ```text
//!         d        front: d, b, a     next is a; then, its right subtree having nothing, b; then c, from b's right subtree; then d ...
//!       /   \
//!      b     f     back:  d, f, g     the mirror image
//!     / \   / \
//!    a   c e   g
//! ```
//!
//! The owning one needs no stack: it turns each left child above its parent until the smallest key
//! is at the root, and takes it off. Each turn puts a node onto the rightmost path for good, so
//! that the whole takes O(n).

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::Bound;
use core::ptr;

use allocator_api2::boxed::Box;

use super::{Link, Node};

/// The entries of a [`TransparentCTree`](crate::TransparentCTree) within a range of keys, in order.
///
/// Made by [`TransparentCTree::range`](crate::TransparentCTree::range).
// Invariant: when one of the stacks is empty, both are.
pub struct Range<'a, K, V> {
    /// Nodes whose entries and right subtrees are still to come, the next one last.
    front: Vec<&'a Node<K, V>>,
    /// Nodes whose entries and left subtrees are still to come from the back, the next one last.
    back: Vec<&'a Node<K, V>>,
}

impl<'a, K, V> Range<'a, K, V> {
    /// All entries of the tree at `root`.
    pub(super) fn all(root: Option<&'a Node<K, V>>) -> Range<'a, K, V> {
        Range::between(root, |_| true, |_| false)
    }

    /// The entries of the tree at `root` between two bounds, the first of which is no greater than
    /// the second.
    pub(super) fn new<Q: ?Sized + Ord>(
        root: Option<&'a Node<K, V>>,
        start: Bound<&Q>,
        end: Bound<&Q>,
    ) -> Range<'a, K, V>
    where
        K: Borrow<Q>,
    {
        let begun = |key: &K| match start {
            Bound::Included(start) => key.borrow() >= start,
            Bound::Excluded(start) => key.borrow() > start,
            Bound::Unbounded => true,
        };
        let ended = |key: &K| match end {
            Bound::Included(end) => key.borrow() > end,
            Bound::Excluded(end) => key.borrow() >= end,
            Bound::Unbounded => false,
        };
        Range::between(root, begun, ended)
    }

    /// The entries from the first one that has `begun` to the last one that has not `ended`.
    fn between(
        root: Option<&'a Node<K, V>>,
        begun: impl Fn(&K) -> bool,
        ended: impl Fn(&K) -> bool,
    ) -> Range<'a, K, V> {
        let (mut front, mut back) = (Vec::new(), Vec::new());
        let mut link = root;
        while let Some(node) = link {
            link = if begun(&node.key) {
                front.push(node);
                node.left.as_deref()
            } else {
                node.right.as_deref()
            };
        }
        if front.last().is_some_and(|first| !ended(&first.key)) {
            link = root;
            while let Some(node) = link {
                link = if ended(&node.key) {
                    node.left.as_deref()
                } else {
                    back.push(node);
                    node.right.as_deref()
                };
            }
        }
        let mut range = Range { front, back };
        range.keep_both_or_none();
        range
    }

    /// Restores the invariant. (With a lawful order the two ends meet before one of them has
    /// nothing more.)
    fn keep_both_or_none(&mut self) {
        if self.front.is_empty() || self.back.is_empty() {
            self.end();
        }
    }

    fn end(&mut self) {
        self.front.clear();
        self.back.clear();
    }
}

impl<'a, K, V> Iterator for Range<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        let node = self.front.pop()?;
        if self.back.last().is_some_and(|last| ptr::eq(*last, node)) {
            self.end();
        } else {
            let mut link = node.right.as_deref();
            while let Some(smaller) = link {
                self.front.push(smaller);
                link = smaller.left.as_deref();
            }
            self.keep_both_or_none();
        }
        Some((&node.key, &node.value))
    }
}

impl<'a, K, V> DoubleEndedIterator for Range<'a, K, V> {
    fn next_back(&mut self) -> Option<(&'a K, &'a V)> {
        let node = self.back.pop()?;
        if self.front.last().is_some_and(|first| ptr::eq(*first, node)) {
            self.end();
        } else {
            let mut link = node.left.as_deref();
            while let Some(larger) = link {
                self.back.push(larger);
                link = larger.right.as_deref();
            }
            self.keep_both_or_none();
        }
        Some((&node.key, &node.value))
    }
}

impl<K, V> FusedIterator for Range<'_, K, V> {}

impl<K, V> Clone for Range<'_, K, V> {
    fn clone(&self) -> Self {
        Range {
            front: self.front.clone(),
            back: self.back.clone(),
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Range<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// All entries of a [`TransparentCTree`](crate::TransparentCTree), in order of their keys.
///
/// Made by [`TransparentCTree::iter`](crate::TransparentCTree::iter).
pub struct Iter<'a, K, V> {
    range: Range<'a, K, V>,
    /// How many entries are still to come.
    len: usize,
}

impl<'a, K, V> Iter<'a, K, V> {
    /// The `len` entries of the tree at `root`.
    pub(super) fn new(root: Option<&'a Node<K, V>>, len: usize) -> Iter<'a, K, V> {
        Iter {
            range: Range::all(root),
            len,
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        let entry = self.range.next()?;
        self.len -= 1;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<'a, K, V> DoubleEndedIterator for Iter<'a, K, V> {
    fn next_back(&mut self) -> Option<(&'a K, &'a V)> {
        let entry = self.range.next_back()?;
        self.len -= 1;
        Some(entry)
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

impl<K, V> FusedIterator for Iter<'_, K, V> {}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter {
            range: self.range.clone(),
            len: self.len,
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range.fmt(f)
    }
}

/// A node whose left subtree has been seen.
type Half<'a, K, V> = (&'a K, &'a mut V, &'a mut Link<K, V>);

/// All entries of a [`TransparentCTree`](crate::TransparentCTree), in order of their keys, their
/// values to be changed.
///
/// Made by [`TransparentCTree::iter_mut`](crate::TransparentCTree::iter_mut).
pub struct IterMut<'a, K, V> {
    /// Nodes whose entries and right subtrees are still to come, the next one last.
    pending: Vec<Half<'a, K, V>>,
    /// How many entries are still to come.
    len: usize,
}

impl<'a, K, V> IterMut<'a, K, V> {
    /// The `len` entries of the tree at `root`.
    pub(super) fn new(root: Option<&'a mut Node<K, V>>, len: usize) -> IterMut<'a, K, V> {
        let pending = Vec::new();
        let mut iter = IterMut { pending, len };
        iter.descend(root);
        iter
    }

    /// Puts the left path of a subtree onto the stack.
    fn descend(&mut self, mut link: Option<&'a mut Node<K, V>>) {
        while let Some(node) = link {
            self.pending
                .push((&node.key, &mut node.value, &mut node.right));
            link = node.left.as_deref_mut();
        }
    }
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    fn next(&mut self) -> Option<(&'a K, &'a mut V)> {
        let (key, value, right) = self.pending.pop()?;
        self.descend(right.as_deref_mut());
        self.len -= 1;
        Some((key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<K, V> ExactSizeIterator for IterMut<'_, K, V> {}

impl<K, V> FusedIterator for IterMut<'_, K, V> {}

impl<K, V> fmt::Debug for IterMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMut")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// All entries that a [`TransparentCTree`](crate::TransparentCTree) had, in order of their keys.
///
/// Each node is freed as its entry is handed out.
pub struct IntoIter<K, V> {
    root: Link<K, V>,
    /// How many entries are still to come.
    len: usize,
}

impl<K, V> IntoIter<K, V> {
    /// The `len` entries of the tree at `root`.
    pub(super) fn new(root: Link<K, V>, len: usize) -> IntoIter<K, V> {
        IntoIter { root, len }
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let mut node = self.root.take()?;
        while let Some(mut left) = node.left.take() {
            node.left = left.right.take();
            left.right = Some(node);
            node = left;
        }
        let smallest = Box::into_inner(node);
        self.root = smallest.right;
        self.len -= 1;
        Some((smallest.key, smallest.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}

impl<K, V> FusedIterator for IntoIter<K, V> {}

/// Drops the entries that are left, one by one. When a destructor panics, the others still run.
impl<K, V> Drop for IntoIter<K, V> {
    fn drop(&mut self) {
        /// Goes on where a panic ended the first pass.
        struct Rest<'a, K, V>(&'a mut IntoIter<K, V>);

        impl<K, V> Drop for Rest<'_, K, V> {
            fn drop(&mut self) {
                self.0.by_ref().for_each(drop);
            }
        }

        let rest = Rest(self);
        rest.0.by_ref().for_each(drop);
    }
}

impl<K, V> fmt::Debug for IntoIter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// The entries that a search reads, from the root down.
///
/// Made by [`TransparentCTree::path`](crate::TransparentCTree::path).
pub struct Path<'a, 'q, K, V, Q: ?Sized> {
    next: Option<&'a Node<K, V>>,
    query: &'q Q,
}

impl<'a, 'q, K, V, Q: ?Sized> Path<'a, 'q, K, V, Q> {
    pub(super) fn new(root: Option<&'a Node<K, V>>, query: &'q Q) -> Path<'a, 'q, K, V, Q> {
        Path { next: root, query }
    }
}

impl<'a, K: Borrow<Q>, V, Q: ?Sized + Ord> Iterator for Path<'a, '_, K, V, Q> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        let node = self.next?;
        self.next = match self.query.cmp(node.key.borrow()) {
            Ordering::Equal => None,
            Ordering::Less => node.left.as_deref(),
            Ordering::Greater => node.right.as_deref(),
        };
        Some((&node.key, &node.value))
    }
}

impl<K: Borrow<Q>, V, Q: ?Sized + Ord> FusedIterator for Path<'_, '_, K, V, Q> {}

impl<K, V, Q: ?Sized> Clone for Path<'_, '_, K, V, Q> {
    fn clone(&self) -> Self {
        Path {
            next: self.next,
            query: self.query,
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, Q: ?Sized> fmt::Debug for Path<'_, '_, K, V, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self.next.map(|node| (&node.key, &node.value));
        f.debug_struct("Path")
            .field("next", &next)
            .finish_non_exhaustive()
    }
}
