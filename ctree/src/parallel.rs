//! Parallel iterators over maps and sets, and maps and sets collected from them, behind the feature
//! `rayon`.
//!
//! As rayon does for the ordered collections of the standard library, entries, or references to
//! them, are first collected into a vector, in O(n), by one thread.

use alloc::vec::Vec;

use allocator_api2::alloc::{Allocator, Global};
use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::frozen::{FrozenCTreeMap, FrozenCTreeSet, keep_last};
use crate::map::CTreeMap;
use crate::set::CTreeSet;
use crate::tree::Options;

macro_rules! impl_into_par_iter {
    ($([$($params:tt)*] $collection:ty => $item:ty;)*) => {$(
        impl<$($params)*> IntoParallelIterator for $collection {
            type Item = $item;
            type Iter = rayon::vec::IntoIter<$item>;

            /// Collects the items into a vector, in O(n), and iterates over that in parallel.
            fn into_par_iter(self) -> Self::Iter {
                self.into_iter().collect::<Vec<_>>().into_par_iter()
            }
        }
    )*};
}

impl_into_par_iter! {
    ['a, K: Sync, V: Sync, A: Allocator] &'a CTreeMap<K, V, A> => (&'a K, &'a V);
    ['a, K: Sync, V: Send, A: Allocator] &'a mut CTreeMap<K, V, A> => (&'a K, &'a mut V);
    [K: Send, V: Send, A: Allocator] CTreeMap<K, V, A> => (K, V);
    ['a, K: Sync, A: Allocator] &'a CTreeSet<K, A> => &'a K;
    [K: Send, A: Allocator] CTreeSet<K, A> => K;
    ['a, K: Sync, V: Sync] &'a FrozenCTreeMap<K, V> => (&'a K, &'a V);
    ['a, K: Sync, V: Send] &'a mut FrozenCTreeMap<K, V> => (&'a K, &'a mut V);
    [K: Send, V: Send] FrozenCTreeMap<K, V> => (K, V);
    ['a, K: Sync] &'a FrozenCTreeSet<K> => &'a K;
    [K: Send] FrozenCTreeSet<K> => K;
}

/// Entries in the order of their keys, of equal keys the last one: collected and sorted in
/// parallel.
fn sorted<K: Ord + Send, V: Send>(
    entries: impl IntoParallelIterator<Item = (K, V)>,
) -> Vec<(K, V)> {
    let mut entries: Vec<(K, V)> = entries.into_par_iter().collect();
    entries.par_sort_by(|(left, _), (right, _)| left.cmp(right));
    keep_last(&mut entries);
    entries
}

impl<K: Ord + Send, V: Send> FromParallelIterator<(K, V)> for CTreeMap<K, V> {
    /// Builds a map from entries in any order; of equal keys the last entry stays. Entries are
    /// collected and sorted in parallel.
    ///
    /// # Examples
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let entries = (0..1000u64).into_par_iter().map(|n| (n, n));
    /// let mut map: ctree::CTreeMap<u64, u64> = entries.collect();
    /// map.par_iter_mut().for_each(|(_, value)| *value += 1);
    /// assert_eq!(map.par_iter().map(|(_, value)| value).sum::<u64>(), 500_500);
    /// assert_eq!(map.into_par_iter().filter(|(key, _)| key % 2 == 0).count(), 500);
    /// ```
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(entries: I) -> Self {
        CTreeMap::from_ascending(sorted(entries), Global, Options::PLAIN)
    }
}

impl<K: Ord + Send, V: Send> FromParallelIterator<(K, V)> for FrozenCTreeMap<K, V> {
    /// As for [`CTreeMap`].
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(entries: I) -> Self {
        FrozenCTreeMap::from_sorted_vec(sorted(entries))
    }
}

impl<K: Ord + Send> FromParallelIterator<K> for CTreeSet<K> {
    /// As for [`CTreeMap`].
    fn from_par_iter<I: IntoParallelIterator<Item = K>>(keys: I) -> Self {
        let map = keys.into_par_iter().map(|key| (key, ())).collect();
        CTreeSet { map }
    }
}

impl<K: Ord + Send> FromParallelIterator<K> for FrozenCTreeSet<K> {
    /// As for [`CTreeMap`].
    fn from_par_iter<I: IntoParallelIterator<Item = K>>(keys: I) -> Self {
        FrozenCTreeSet::from_map(keys.into_par_iter().map(|key| (key, ())).collect())
    }
}

impl<K: Ord + Send, V: Send, A: Allocator> ParallelExtend<(K, V)> for CTreeMap<K, V, A> {
    /// Inserts entries, of equal keys the last one. They are collected and sorted in parallel, then
    /// inserted in order.
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.insert_many(sorted(entries));
    }
}

impl<'a, K, V, A: Allocator> ParallelExtend<(&'a K, &'a V)> for CTreeMap<K, V, A>
where
    K: 'a + Ord + Copy + Send + Sync,
    V: 'a + Copy + Send + Sync,
{
    /// As for owned entries.
    fn par_extend<I: IntoParallelIterator<Item = (&'a K, &'a V)>>(&mut self, entries: I) {
        let entries = entries.into_par_iter();
        self.par_extend(entries.map(|(key, value)| (*key, *value)));
    }
}

impl<K: Ord + Send, A: Allocator> ParallelExtend<K> for CTreeSet<K, A> {
    /// Adds keys. They are collected and sorted in parallel, then added in order.
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        self.map
            .par_extend(keys.into_par_iter().map(|key| (key, ())));
    }
}
