//! Iterators over maps and sets: a range of ranks, and the file that they are in.

use core::fmt;
use core::ops::Range;

use super::stored::{Stored, StoredKey};
use super::tree::Tree;
use crate::rank_iter::impl_rank_iterator;

/// An iterator over one kind of item.
macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident, $item:ty, |$tree:ident, $rank:ident| $read:expr) => {
        $(#[$doc])*
        pub struct $name<'a, K: StoredKey + ?Sized, V: Stored + ?Sized> {
            tree: &'a Tree<K, V>,
            ranks: Range<usize>,
        }

        impl<'a, K: StoredKey + ?Sized, V: Stored + ?Sized> $name<'a, K, V> {
            /// Over `ranks`, which exist.
            pub(super) fn new(tree: &'a Tree<K, V>, ranks: Range<usize>) -> Self {
                $name { tree, ranks }
            }
        }

        impl_rank_iterator! {
            ['a, K: StoredKey + ?Sized, V: Stored + ?Sized] $name<'a, K, V>, $item, ranks,
            |iter, $rank| {
                let $tree = iter.tree;
                $read
            }
        }

        impl<K: StoredKey + ?Sized, V: Stored + ?Sized> Clone for $name<'_, K, V> {
            fn clone(&self) -> Self {
                $name { tree: self.tree, ranks: self.ranks.clone() }
            }
        }

        impl<'a, K: StoredKey + ?Sized, V: Stored + ?Sized> fmt::Debug for $name<'a, K, V>
        where
            $item: fmt::Debug,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.clone()).finish()
            }
        }
    };
}

iterator! {
    /// The entries of a map in the order of their keys, from both ends.
    ///
    /// From [`MappedCTreeMap::iter`](super::MappedCTreeMap::iter) and
    /// [`range`](super::MappedCTreeMap::range).
    Iter, (K::Ref<'a>, V::Ref<'a>),
    |tree, rank| (K::load(tree.key_bytes(rank)), V::load(tree.value_bytes(rank)))
}

iterator! {
    /// The keys of a map or set in order, from both ends.
    ///
    /// From [`MappedCTreeMap::keys`](super::MappedCTreeMap::keys), and from
    /// [`iter`](super::MappedCTreeSet::iter) and [`range`](super::MappedCTreeSet::range) of sets.
    Keys, K::Ref<'a>,
    |tree, rank| K::load(tree.key_bytes(rank))
}

iterator! {
    /// The values of a map in the order of their keys, from both ends.
    ///
    /// From [`MappedCTreeMap::values`](super::MappedCTreeMap::values).
    Values, V::Ref<'a>,
    |tree, rank| V::load(tree.value_bytes(rank))
}
