//! The traits of a map.

use core::fmt;
use core::mem;

use super::TransparentCTree;
use super::iter::{IntoIter, Iter, IterMut};

impl<K, V> Default for TransparentCTree<K, V> {
    fn default() -> TransparentCTree<K, V> {
        TransparentCTree::new()
    }
}

/// Drops entry by entry in order of the keys, without recursion. When a destructor panics, the
/// others still run.
impl<K, V> Drop for TransparentCTree<K, V> {
    fn drop(&mut self) {
        drop(IntoIter::new(self.root.take(), self.len));
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for TransparentCTree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Trees of the same entries are equal, whatever their shapes and layouts.
impl<K: PartialEq, V: PartialEq> PartialEq for TransparentCTree<K, V> {
    fn eq(&self, other: &TransparentCTree<K, V>) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<K: Eq, V: Eq> Eq for TransparentCTree<K, V> {}

/// Inserts one by one; of equal keys the last value stays.
impl<K: Ord, V> Extend<(K, V)> for TransparentCTree<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

/// Inserts one by one, so that the shape is that of the order in which the entries come;
/// [`from_sorted_iter`](TransparentCTree::from_sorted_iter) makes a balanced tree.
impl<K: Ord, V> FromIterator<(K, V)> for TransparentCTree<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> TransparentCTree<K, V> {
        let mut tree = TransparentCTree::new();
        tree.extend(entries);
        tree
    }
}

impl<K, V> IntoIterator for TransparentCTree<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    /// All entries in order of their keys.
    fn into_iter(mut self) -> IntoIter<K, V> {
        let len = mem::take(&mut self.len);
        IntoIter::new(self.root.take(), len)
    }
}

impl<'a, K, V> IntoIterator for &'a TransparentCTree<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut TransparentCTree<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}
