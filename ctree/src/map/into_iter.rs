//! Iterators that own the entries of a [`CTreeMap`](super::CTreeMap).
//!
//! The tree forgets its entries; from then on the walk tells which entries are left, and the
//! iterator owns them. They are read out of their nodes from both ends. When a walk leaves a leaf,
//! the leaf and the inner nodes that it leaves with it are cut off the tree and freed
//! ([`Tree::cut_before`], [`Tree::cut_behind`]), so that the memory shrinks with the entries.

use core::fmt;
use core::iter::FusedIterator;
use core::mem::needs_drop;

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeMap;
use super::iter::{Iter, first_is_min};
use super::walk::Walk;
use crate::rank_iter::half_of_entries;
use crate::tree::Tree;

/// The owned entries of a map in the order of their keys, from `CTreeMap::into_iter`.
///
/// Nodes that it has passed, from either end, go back to the allocator a chunk at a time; the rest
/// when it is dropped.
///
/// Invariant: the entries that `walk` has left are initialised, lie in the nodes of `tree`, and are
/// owned by this iterator.
pub struct IntoIter<K, V, A: Allocator = Global> {
    walk: Walk<K, V>,
    tree: Tree<K, V, A>,
}

impl<K, V, A: Allocator> IntoIter<K, V, A> {
    /// Takes the entries out of `tree`.
    pub(super) fn new(mut tree: Tree<K, V, A>) -> Self {
        // SAFETY: the walk is used by the result alone, which tells it of every change of the tree.
        let walk = unsafe { Walk::over(&tree) };
        tree.forget_entries();
        IntoIter { walk, tree }
    }

    /// The first entry left, behind the leaf of the front edge.
    #[cold]
    #[inline(never)]
    fn cross_front(&mut self) -> Option<(K, V)> {
        let (old, crossed) = self.walk.cross_front();
        let place = crossed?;
        // SAFETY: by the invariant the entry is initialised and owned by this iterator; the walk
        // has passed it.
        let entry = unsafe { self.tree.form().read_entry(place.node, place.slot) };
        if let Some(leaf) = old
            && leaf != place.node
        {
            // SAFETY: the walk has left this leaf for the entry, which was just moved out, and is
            // told what changes.
            unsafe {
                self.tree
                    .cut_before(leaf, place, |from, to| self.walk.move_with(from, to));
            };
            self.walk.front_is_first();
        }
        Some(entry)
    }

    /// The last entry left, before the leaf of the back edge.
    #[cold]
    #[inline(never)]
    fn cross_back(&mut self) -> Option<(K, V)> {
        let (old, crossed) = self.walk.cross_back();
        let place = crossed?;
        // SAFETY: by the invariant the entry is initialised and owned by this iterator; the walk
        // has passed it from behind.
        let entry = unsafe { self.tree.form().read_entry(place.node, place.slot) };
        if let Some(leaf) = old
            && leaf != place.node
        {
            // SAFETY: `new` has forgotten the entries. The walk came from behind, so this leaf is
            // the last; it left it for the entry, which was just moved out, and is told what
            // changes.
            unsafe {
                self.tree
                    .cut_behind(leaf, place, |from, to| self.walk.move_with(from, to));
            };
        }
        Some(entry)
    }

    /// The entries left, for reading.
    pub(super) fn iter(&self) -> Iter<'_, K, V> {
        // SAFETY: by the invariant the entries are initialised and owned by this iterator, which
        // the result borrows.
        unsafe { Iter::new(self.walk) }
    }

    /// The allocator that the nodes come from.
    pub fn allocator(&self) -> &A {
        self.tree.allocator()
    }
}

impl<K, V, A: Allocator> Iterator for IntoIter<K, V, A> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        match self.walk.next_in_leaf() {
            // SAFETY: by the invariant the entry is initialised and owned by this iterator; the
            // walk has passed it, and is never made again.
            Some((key, value)) => Some(unsafe { (key.read(), value.read()) }),
            None => self.cross_front(),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.len(), Some(self.walk.len()))
    }
}

impl<K, V, A: Allocator> DoubleEndedIterator for IntoIter<K, V, A> {
    #[inline]
    fn next_back(&mut self) -> Option<(K, V)> {
        match self.walk.prev_in_leaf() {
            // SAFETY: by the invariant the entry is initialised and owned by this iterator; the
            // walk has passed it from behind, and comes to no entry twice.
            Some((key, value)) => Some(unsafe { (key.read(), value.read()) }),
            None => self.cross_back(),
        }
    }
}

impl<K, V, A: Allocator> ExactSizeIterator for IntoIter<K, V, A> {}
impl<K, V, A: Allocator> FusedIterator for IntoIter<K, V, A> {}

impl<K, V, A: Allocator> Drop for IntoIter<K, V, A> {
    /// Drops the entries left. When one drop panics, the others still run.
    fn drop(&mut self) {
        /// Drops what the walk has left, when a drop has panicked.
        struct Rest<'a, K, V>(&'a mut Walk<K, V>);

        impl<K, V> Rest<'_, K, V> {
            fn drop_all(&mut self) {
                while let Some((key, value)) = self.0.next() {
                    // The value is dropped when the drop of its key panics, too.
                    // SAFETY: by the invariant of the iterator the entry is initialised and owned
                    // by it, and the walk has passed it.
                    drop(unsafe { (key.read(), value.read()) });
                }
            }
        }

        impl<K, V> Drop for Rest<'_, K, V> {
            fn drop(&mut self) {
                self.drop_all();
            }
        }

        if const { needs_drop::<K>() || needs_drop::<V>() } {
            Rest(&mut self.walk).drop_all();
        }
    }
}

impl<K, V, A: Allocator + Default> Default for IntoIter<K, V, A> {
    /// An iterator over nothing.
    fn default() -> Self {
        CTreeMap::new_in(A::default()).into_iter()
    }
}

impl<K: fmt::Debug, V: fmt::Debug, A: Allocator> fmt::Debug for IntoIter<K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

half_of_entries! {
    /// The owned keys of a map in order, from [`CTreeMap::into_keys`](super::CTreeMap::into_keys).
    IntoKeys<K, V, A> -> K, 0, { first_is_min!(); }
}

half_of_entries! {
    /// The owned values of a map in the order of their keys, from
    /// [`CTreeMap::into_values`](super::CTreeMap::into_values).
    IntoValues<K, V, A> -> V, 1, {}
}

macro_rules! impl_default {
    ($($name:ident)*) => {$(
        impl<K, V, A: Allocator + Default> Default for $name<K, V, A> {
            /// An iterator over nothing.
            fn default() -> Self {
                $name::new(IntoIter::default())
            }
        }
    )*};
}

impl_default!(IntoKeys IntoValues);
