//! The traits that follow from the entries of a [`FrozenCTreeMap`] in order.

use alloc::collections::BTreeMap;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use core::ops::Index;

use super::map::FrozenCTreeMap;
use super::map_iter::{Iter, IterMut};

impl<K, V> Default for FrozenCTreeMap<K, V> {
    /// An empty map.
    fn default() -> FrozenCTreeMap<K, V> {
        FrozenCTreeMap::new()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for FrozenCTreeMap<K, V> {
    /// Builds a map from entries in any order; of equal keys the last entry stays.
    ///
    /// Takes O(n log n), O(n) for sorted input. When the order is known,
    /// [`from_sorted_iter`](FrozenCTreeMap::from_sorted_iter) also checks it.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> FrozenCTreeMap<K, V> {
        FrozenCTreeMap::from_unsorted_vec(entries.into_iter().collect())
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for FrozenCTreeMap<K, V> {
    /// As [`FromIterator`].
    fn from(entries: [(K, V); N]) -> FrozenCTreeMap<K, V> {
        entries.into_iter().collect()
    }
}

impl<K, V> From<BTreeMap<K, V>> for FrozenCTreeMap<K, V> {
    /// Moves the entries over in O(n), without a comparison.
    fn from(map: BTreeMap<K, V>) -> FrozenCTreeMap<K, V> {
        FrozenCTreeMap::from_sorted_vec(map.into_iter().collect())
    }
}

impl<K, V> FrozenCTreeMap<K, V> {
    /// Moves the entries of a `BTreeMap` over in O(n), without a comparison; the same as `From`.
    pub fn from_btree_map(map: BTreeMap<K, V>) -> FrozenCTreeMap<K, V> {
        map.into()
    }
}

impl<K: Ord, V> From<FrozenCTreeMap<K, V>> for BTreeMap<K, V> {
    /// Moves the entries back, for changes that a frozen map does not allow.
    fn from(map: FrozenCTreeMap<K, V>) -> BTreeMap<K, V> {
        map.into_iter().collect()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for FrozenCTreeMap<K, V> {
    fn eq(&self, other: &FrozenCTreeMap<K, V>) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<K: Eq, V: Eq> Eq for FrozenCTreeMap<K, V> {}

impl<K: PartialOrd, V: PartialOrd> PartialOrd for FrozenCTreeMap<K, V> {
    fn partial_cmp(&self, other: &FrozenCTreeMap<K, V>) -> Option<Ordering> {
        self.iter().partial_cmp(other)
    }
}

impl<K: Ord, V: Ord> Ord for FrozenCTreeMap<K, V> {
    fn cmp(&self, other: &FrozenCTreeMap<K, V>) -> Ordering {
        self.iter().cmp(other)
    }
}

impl<K: Hash, V: Hash> Hash for FrozenCTreeMap<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        for entry in self {
            entry.hash(state);
        }
    }
}

impl<K: Borrow<Q> + Ord, Q: ?Sized + Ord, V> Index<&Q> for FrozenCTreeMap<K, V> {
    type Output = V;

    /// The value of `key`.
    ///
    /// # Panics
    /// When the key is not in the map.
    #[inline]
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("no entry found for key")
    }
}

impl<'a, K, V> IntoIterator for &'a FrozenCTreeMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut FrozenCTreeMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}
