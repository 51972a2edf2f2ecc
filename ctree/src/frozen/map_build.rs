//! How a [`FrozenCTreeMap`] is built. The number of entries decides where each one goes: they are
//! collected and sorted first.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use super::key_tree::KeyTree;
use super::lane_tree::LaneTree;
use super::map::{FrozenCTreeMap, Repr};
use super::map_iter::{Iter, IterMut};
use crate::block::advise_vec;
use crate::error::OrderError;
use crate::lane::LaneKind;
use crate::traits::impl_map_traits;

impl<K, V> FrozenCTreeMap<K, V> {
    /// Builds the map from entries in the order of their keys, which nothing here relies on for
    /// memory safety. For what is known to be sorted, such as the entries of another map.
    pub(crate) fn from_sorted_vec(entries: Vec<(K, V)>) -> FrozenCTreeMap<K, V> {
        if entries.is_empty() {
            return FrozenCTreeMap::new();
        }
        if LaneKind::of::<K>().is_some() {
            return FrozenCTreeMap {
                repr: Repr::Lanes(LaneTree::from_sorted(entries)),
            };
        }
        let len = entries.len();
        let mut values = Vec::with_capacity(len);
        advise_vec(&values);
        let keys = entries.into_iter().map(|(key, value)| {
            values.push(value);
            key
        });
        let keys = KeyTree::from_sorted(len, keys);
        FrozenCTreeMap {
            repr: Repr::Tree { keys, values },
        }
    }
}

impl<K: Ord, V> FrozenCTreeMap<K, V> {
    /// Builds the map from entries that the caller claims are strictly ascending, and checks that.
    ///
    /// Computes in O(n), with n - 1 comparisons, and holds the entries twice for a while.
    ///
    /// # Errors
    /// The index of the first key that is not greater than the key before it.
    pub fn from_sorted_iter(
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<FrozenCTreeMap<K, V>, OrderError> {
        let mut entries = entries.into_iter();
        // A hint is believed once an entry has been seen, as `Vec::from_iter` does: of no entries
        // there may be any number announced.
        let Some(first) = entries.next() else {
            return Ok(Self::new());
        };
        let mut sorted = Vec::with_capacity(entries.size_hint().0.saturating_add(1));
        sorted.push(first);
        for entry in entries {
            if sorted
                .last()
                .is_some_and(|(last, _): &(K, V)| last.cmp(&entry.0) != Ordering::Less)
            {
                return Err(OrderError::new(sorted.len()));
            }
            sorted.push(entry);
        }
        Ok(Self::from_sorted_vec(sorted))
    }

    /// Builds the map from entries in any order; of equal keys the last entry stays, as in a
    /// `BTreeMap`.
    pub(super) fn from_unsorted_vec(mut entries: Vec<(K, V)>) -> FrozenCTreeMap<K, V> {
        // The sort is stable and takes O(n) where the input is sorted already.
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        keep_last(&mut entries);
        Self::from_sorted_vec(entries)
    }
}

/// Leaves the last entry of each run of equal keys.
pub(crate) fn keep_last<K: Ord, V>(entries: &mut Vec<(K, V)>) {
    entries.dedup_by(|next, kept| {
        let equal = next.0.cmp(&kept.0) == Ordering::Equal;
        if equal {
            core::mem::swap(next, kept);
        }
        equal
    });
}

impl<K, V> From<BTreeMap<K, V>> for FrozenCTreeMap<K, V> {
    /// Moves the entries over in O(n), without a comparison.
    fn from(map: BTreeMap<K, V>) -> FrozenCTreeMap<K, V> {
        FrozenCTreeMap::from_sorted_vec(map.into_iter().collect())
    }
}

impl_map_traits!(FrozenCTreeMap<K, V>, FrozenCTreeMap::from_unsorted_vec);
