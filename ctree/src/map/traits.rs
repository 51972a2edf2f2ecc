//! The traits that follow from the entries of a [`CTreeMap`] in order.

use alloc::collections::BTreeMap;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Index;

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeMap;
use super::bulk::from_unsorted;
use super::iter::{Iter, IterMut};
use crate::FrozenCTreeMap;
use crate::tree::Options;

impl<K: Clone, V: Clone, A: Allocator + Clone> Clone for CTreeMap<K, V, A> {
    /// Copies the map in O(n), into full nodes.
    fn clone(&self) -> CTreeMap<K, V, A> {
        CTreeMap {
            tree: self.tree.clone_in(self.tree.allocator().clone()),
        }
    }
}

impl<K, V> Default for CTreeMap<K, V> {
    /// An empty map.
    fn default() -> CTreeMap<K, V> {
        CTreeMap::new()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for CTreeMap<K, V> {
    /// Builds a map from entries in any order; of equal keys the last one stays, with its value.
    ///
    /// Takes O(n log n), O(n) for sorted input. When the order is known,
    /// [`from_sorted_iter`](CTreeMap::from_sorted_iter) also checks it.
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> CTreeMap<K, V> {
        from_unsorted(entries.into_iter().collect())
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for CTreeMap<K, V> {
    /// As [`FromIterator`].
    fn from(entries: [(K, V); N]) -> CTreeMap<K, V> {
        entries.into_iter().collect()
    }
}

impl<K, V> From<BTreeMap<K, V>> for CTreeMap<K, V> {
    /// Moves the entries over in O(n), without a comparison.
    fn from(map: BTreeMap<K, V>) -> CTreeMap<K, V> {
        CTreeMap::from_ascending(map, Global, Options::PLAIN)
    }
}

impl<K: Ord, V, A: Allocator> From<CTreeMap<K, V, A>> for BTreeMap<K, V> {
    /// Moves the entries over.
    fn from(map: CTreeMap<K, V, A>) -> BTreeMap<K, V> {
        map.into_iter().collect()
    }
}

impl<K, V, A: Allocator> From<CTreeMap<K, V, A>> for FrozenCTreeMap<K, V> {
    /// Moves the entries over in O(n), without a comparison.
    ///
    /// # Examples
    /// ```
    /// use ctree::{CTreeMap, FrozenCTreeMap};
    ///
    /// let map = CTreeMap::from([(2, "two"), (1, "one")]);
    /// let frozen = FrozenCTreeMap::from(map);
    /// assert_eq!(frozen.get_index(1), Some((&2, &"two")));
    /// ```
    fn from(map: CTreeMap<K, V, A>) -> FrozenCTreeMap<K, V> {
        FrozenCTreeMap::from_sorted_vec(map.into_iter().collect())
    }
}

impl<K, V> From<FrozenCTreeMap<K, V>> for CTreeMap<K, V> {
    /// Moves the entries over in O(n), without a comparison, for changes that a frozen map does not
    /// allow.
    fn from(map: FrozenCTreeMap<K, V>) -> CTreeMap<K, V> {
        CTreeMap::from_ascending(map, Global, Options::PLAIN)
    }
}

impl<K: Ord, V, A: Allocator> Extend<(K, V)> for CTreeMap<K, V, A> {
    /// [`insert_many`](CTreeMap::insert_many).
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        self.insert_many(entries);
    }
}

impl<'a, K: Ord + Copy, V: Copy, A: Allocator> Extend<(&'a K, &'a V)> for CTreeMap<K, V, A> {
    /// [`insert_many`](CTreeMap::insert_many).
    fn extend<T: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, entries: T) {
        self.insert_many(entries.into_iter().map(|(&key, &value)| (key, value)));
    }
}

impl<K: PartialEq, V: PartialEq, A: Allocator> PartialEq for CTreeMap<K, V, A> {
    fn eq(&self, other: &CTreeMap<K, V, A>) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(left, right)| left == right)
    }
}

impl<K: Eq, V: Eq, A: Allocator> Eq for CTreeMap<K, V, A> {}

impl<K: PartialEq, V: PartialEq, A: Allocator> PartialEq<BTreeMap<K, V>> for CTreeMap<K, V, A> {
    fn eq(&self, other: &BTreeMap<K, V>) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<K: PartialEq, V: PartialEq, A: Allocator> PartialEq<CTreeMap<K, V, A>> for BTreeMap<K, V> {
    fn eq(&self, other: &CTreeMap<K, V, A>) -> bool {
        other == self
    }
}

impl<K: PartialOrd, V: PartialOrd, A: Allocator> PartialOrd for CTreeMap<K, V, A> {
    fn partial_cmp(&self, other: &CTreeMap<K, V, A>) -> Option<Ordering> {
        self.iter().partial_cmp(other)
    }
}

impl<K: Ord, V: Ord, A: Allocator> Ord for CTreeMap<K, V, A> {
    fn cmp(&self, other: &CTreeMap<K, V, A>) -> Ordering {
        self.iter().cmp(other)
    }
}

impl<K: Hash, V: Hash, A: Allocator> Hash for CTreeMap<K, V, A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        for entry in self {
            entry.hash(state);
        }
    }
}

impl<K, Q: ?Sized, V, A: Allocator> Index<&Q> for CTreeMap<K, V, A>
where
    K: Borrow<Q> + Ord,
    Q: Ord,
{
    type Output = V;

    /// The value of a key.
    ///
    /// # Panics
    /// When the key is not in the map.
    #[inline]
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("no entry found for key")
    }
}

impl<K: fmt::Debug, V: fmt::Debug, A: Allocator> fmt::Debug for CTreeMap<K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a, K, V, A: Allocator> IntoIterator for &'a CTreeMap<K, V, A> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    #[inline]
    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K, V, A: Allocator> IntoIterator for &'a mut CTreeMap<K, V, A> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    #[inline]
    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}
