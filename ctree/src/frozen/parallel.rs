//! Building with all cores, behind the feature `rayon`: `FromParallelIterator` is what users of
//! rayon look for, and its pool is where their threads are.
//!
//! Sorting is most of the work where entries come unsorted. Halves are sorted at the same time,
//! down to a part for each thread, and merged by the standard library's stable sort, which finds
//! the two runs and merges them in O(n); all but the last merge have company. Copying entries into
//! leaves goes in parallel for integer keys with values beside them, and the pages that are touched
//! first then are cleared in parallel too.

use alloc::vec::Vec;

use rayon::iter::plumbing::{Consumer, Producer, ProducerCallback, UnindexedConsumer, bridge};
use rayon::iter::{
    FromParallelIterator, IndexedParallelIterator, IntoParallelIterator, Map, ParallelIterator,
};

use super::lane_tree::LaneTree;
use super::map::{FrozenCTreeMap, Repr};
use super::map_build::keep_last;
use super::map_iter::{Iter, IterMut};
use super::set::FrozenCTreeSet;
use crate::lane::LaneKind;

/// Fewest entries that are worth a task of their own.
const PART_LEN_MIN: usize = 4096;

/// Sorts by key, stably, with all threads.
pub(crate) fn sort_in_parallel<K: Ord + Send, V: Send>(entries: &mut [(K, V)]) {
    sort(entries, rayon::current_num_threads());
}

/// Sorts by key, stably, in `parts` parts at the same time.
fn sort<K: Ord + Send, V: Send>(entries: &mut [(K, V)], parts: usize) {
    if parts > 1 && entries.len() >= 2 * PART_LEN_MIN {
        let (left, right) = entries.split_at_mut(entries.len() / 2);
        rayon::join(|| sort(left, parts / 2), || sort(right, parts - parts / 2));
    }
    entries.sort_by(|(left, _), (right, _)| left.cmp(right));
}

impl<K: Ord + Send, V: Send> FromParallelIterator<(K, V)> for FrozenCTreeMap<K, V> {
    /// Builds a map from entries in any order, in parallel; of equal keys the last entry stays.
    ///
    /// # Examples
    /// ```
    /// use ctree::FrozenCTreeMap;
    /// use rayon::prelude::*;
    ///
    /// let map: FrozenCTreeMap<u64, u64> = (0..1000u64).into_par_iter().map(|n| (n * 7919 % 1009, n)).collect();
    /// assert_eq!(map.len(), 1000);
    /// ```
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_par_iter().collect();
        sort_in_parallel(&mut entries);
        keep_last(&mut entries);
        if LaneKind::of::<K>().is_some() && LaneTree::<K, V>::joined() && !entries.is_empty() {
            return FrozenCTreeMap {
                repr: Repr::Lanes(LaneTree::from_sorted_parallel(entries)),
            };
        }
        Self::from_sorted_vec(entries)
    }
}

impl<K: Ord + Send> FromParallelIterator<K> for FrozenCTreeSet<K> {
    /// Builds a set from keys in any order, in parallel; of equal keys the last one stays.
    fn from_par_iter<I: IntoParallelIterator<Item = K>>(keys: I) -> Self {
        FrozenCTreeSet::from_map(keys.into_par_iter().map(|key| (key, ())).collect())
    }
}

/// The borrowed entries of a frozen map, in parallel and by rank: what `par_iter` and
/// `par_iter_mut` give.
#[derive(Clone, Debug)]
pub struct ParIter<I> {
    entries: I,
}

/// The parallel iterator over the ranks that `$iter` goes through.
macro_rules! by_rank {
    ($iter:ident, <K: Sync, V: $value:ident>, $item:ty) => {
        impl<'a, K: Sync, V: $value> ParallelIterator for ParIter<$iter<'a, K, V>> {
            type Item = $item;

            fn drive_unindexed<C: UnindexedConsumer<$item>>(self, consumer: C) -> C::Result {
                bridge(self, consumer)
            }

            fn opt_len(&self) -> Option<usize> {
                Some(self.entries.len())
            }
        }

        impl<'a, K: Sync, V: $value> IndexedParallelIterator for ParIter<$iter<'a, K, V>> {
            fn len(&self) -> usize {
                self.entries.len()
            }

            fn drive<C: Consumer<$item>>(self, consumer: C) -> C::Result {
                bridge(self, consumer)
            }

            fn with_producer<C: ProducerCallback<$item>>(self, callback: C) -> C::Output {
                callback.callback(self)
            }
        }

        impl<'a, K: Sync, V: $value> Producer for ParIter<$iter<'a, K, V>> {
            type Item = $item;
            type IntoIter = $iter<'a, K, V>;

            fn into_iter(self) -> Self::IntoIter {
                self.entries
            }

            fn split_at(self, index: usize) -> (Self, Self) {
                let (left, right) = self.entries.split_at(index);
                (ParIter { entries: left }, ParIter { entries: right })
            }
        }
    };
}

by_rank!(Iter, <K: Sync, V: Sync>, (&'a K, &'a V));
by_rank!(IterMut, <K: Sync, V: Send>, (&'a K, &'a mut V));

impl<'a, K: Sync, V: Sync> IntoParallelIterator for &'a FrozenCTreeMap<K, V> {
    type Item = (&'a K, &'a V);
    type Iter = ParIter<Iter<'a, K, V>>;

    /// The entries, in parallel, in order and by rank.
    fn into_par_iter(self) -> Self::Iter {
        ParIter {
            entries: self.iter(),
        }
    }
}

impl<'a, K: Sync, V: Send> IntoParallelIterator for &'a mut FrozenCTreeMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type Iter = ParIter<IterMut<'a, K, V>>;

    /// The entries with values to change, in parallel, in order and by rank.
    fn into_par_iter(self) -> Self::Iter {
        ParIter {
            entries: self.iter_mut(),
        }
    }
}

impl<K: Send, V: Send> IntoParallelIterator for FrozenCTreeMap<K, V> {
    type Item = (K, V);
    type Iter = rayon::vec::IntoIter<(K, V)>;

    /// The owned entries, in parallel. They are moved into a vector first, in O(n), by this thread.
    fn into_par_iter(self) -> Self::Iter {
        self.into_iter().collect::<Vec<_>>().into_par_iter()
    }
}

impl<'a, K: Sync> IntoParallelIterator for &'a FrozenCTreeSet<K> {
    type Item = &'a K;
    type Iter = Map<ParIter<Iter<'a, K, ()>>, fn((&'a K, &'a ())) -> &'a K>;

    /// The keys, in parallel, in order and by rank.
    fn into_par_iter(self) -> Self::Iter {
        self.map.into_par_iter().map(|(key, ())| key)
    }
}

impl<K: Send> IntoParallelIterator for FrozenCTreeSet<K> {
    type Item = K;
    type Iter = rayon::vec::IntoIter<K>;

    /// The owned keys, in parallel. They are moved into a vector first, in O(n), by this thread.
    fn into_par_iter(self) -> Self::Iter {
        self.into_iter().collect::<Vec<_>>().into_par_iter()
    }
}
