//! Building with all cores, behind the feature `rayon`.
//!
//! Sorting is most of the work where entries come unsorted, and sorting in parallel is not this crate's business: rayon's stable merge sort does
//! it. `FromParallelIterator` is also what users of rayon look for. What is left, copying entries into leaves, goes in parallel for integer
//! keys with values beside them; the pages that the copies touch first are then cleared in parallel too.

use alloc::vec::Vec;

use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use super::lane_tree::LaneTree;
use super::map::{FrozenCTreeMap, Repr};
use super::map_build::keep_last;
use super::set::FrozenCTreeSet;
use crate::lane::LaneKind;

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
        entries.par_sort_by(|(left, _), (right, _)| left.cmp(right));
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
