//! Building with all cores, behind the feature `rayon`: `FromParallelIterator` is what users of rayon look for, and its pool is where their
//! threads are.
//!
//! Sorting is most of the work where entries come unsorted. Halves are sorted at the same time, down to a part for each thread, and merged
//! by the standard library's stable sort, which finds the two runs and merges them in O(n); all but the last merge have company. Copying
//! entries into leaves goes in parallel for integer keys with values beside them, and the pages that are touched first then are
//! cleared in parallel too.

use alloc::vec::Vec;

use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelIterator};

use super::lane_tree::LaneTree;
use super::map::{FrozenCTreeMap, Repr};
use super::map_build::keep_last;
use super::set::FrozenCTreeSet;
use crate::lane::LaneKind;

/// Fewest entries that are worth a task of their own.
const PART_LEN_MIN: usize = 4096;

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
        sort(&mut entries, rayon::current_num_threads());
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
