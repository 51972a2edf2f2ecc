//! Iterators over maps and sets: a range of ranks, and the file that it lies in.

use core::fmt;
use core::iter::FusedIterator;

use super::stored::{Stored, StoredKey};
use super::tree::Tree;

/// Ranks `start..end` of a file, each of which is given out once, from either end.
///
/// Invariant: `end` is at most the number of entries.
struct Ranks<'a, K: StoredKey + ?Sized, V: Stored + ?Sized> {
    tree: &'a Tree<K, V>,
    start: usize,
    end: usize,
}

impl<'a, K: StoredKey + ?Sized, V: Stored + ?Sized> Ranks<'a, K, V> {
    /// Those of `start..end` that there are.
    fn new(tree: &'a Tree<K, V>, start: usize, end: usize) -> Self {
        let end = end.min(tree.len());
        Ranks {
            tree,
            start: start.min(end),
            end,
        }
    }

    fn len(&self) -> usize {
        self.end - self.start
    }

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.start == self.end {
            return None;
        }
        self.start += 1;
        Some(self.start - 1)
    }

    #[inline]
    fn next_back(&mut self) -> Option<usize> {
        if self.start == self.end {
            return None;
        }
        self.end -= 1;
        Some(self.end)
    }

    #[inline]
    fn skip_front(&mut self, count: usize) {
        self.start += count.min(self.len());
    }

    #[inline]
    fn skip_back(&mut self, count: usize) {
        self.end -= count.min(self.len());
    }
}

impl<K: StoredKey + ?Sized, V: Stored + ?Sized> Clone for Ranks<'_, K, V> {
    fn clone(&self) -> Self {
        Ranks { ..*self }
    }
}

/// An iterator over one sort of item.
macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident, $item:ty, |$tree:ident, $rank:ident| $read:expr) => {
        $(#[$doc])*
        pub struct $name<'a, K: StoredKey + ?Sized, V: Stored + ?Sized> {
            ranks: Ranks<'a, K, V>,
        }

        impl<'a, K: StoredKey + ?Sized, V: Stored + ?Sized> $name<'a, K, V> {
            /// Over the ranks `start..end`, as far as they exist.
            pub(super) fn new(tree: &'a Tree<K, V>, start: usize, end: usize) -> Self {
                $name {
                    ranks: Ranks::new(tree, start, end),
                }
            }

            #[inline(always)]
            fn read(&self, $rank: usize) -> $item {
                let $tree = self.ranks.tree;
                $read
            }
        }

        impl<'a, K: StoredKey + ?Sized, V: Stored + ?Sized> Iterator for $name<'a, K, V> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.ranks.next().map(|rank| self.read(rank))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.ranks.len(), Some(self.ranks.len()))
            }

            fn count(self) -> usize {
                self.ranks.len()
            }

            fn last(mut self) -> Option<$item> {
                self.next_back()
            }

            #[inline]
            fn nth(&mut self, count: usize) -> Option<$item> {
                self.ranks.skip_front(count);
                self.next()
            }
        }

        impl<K: StoredKey + ?Sized, V: Stored + ?Sized> DoubleEndedIterator for $name<'_, K, V> {
            #[inline]
            fn next_back(&mut self) -> Option<Self::Item> {
                self.ranks.next_back().map(|rank| self.read(rank))
            }

            #[inline]
            fn nth_back(&mut self, count: usize) -> Option<Self::Item> {
                self.ranks.skip_back(count);
                self.next_back()
            }
        }

        impl<K: StoredKey + ?Sized, V: Stored + ?Sized> ExactSizeIterator for $name<'_, K, V> {}
        impl<K: StoredKey + ?Sized, V: Stored + ?Sized> FusedIterator for $name<'_, K, V> {}

        impl<K: StoredKey + ?Sized, V: Stored + ?Sized> Clone for $name<'_, K, V> {
            fn clone(&self) -> Self {
                $name {
                    ranks: self.ranks.clone(),
                }
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
