//! The traits that follow from the entries of a [`CTreeMap`] in order.

use alloc::collections::BTreeMap;
use core::fmt;

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeMap;
use super::bulk::from_unsorted;
use super::iter::{Iter, IterMut};
use crate::FrozenCTreeMap;
use crate::traits::impl_map_traits;
use crate::tree::Options;

impl<K: Clone, V: Clone, A: Allocator + Clone> Clone for CTreeMap<K, V, A> {
    /// Copies the map in O(n), into full nodes.
    fn clone(&self) -> CTreeMap<K, V, A> {
        CTreeMap {
            tree: self.tree.clone_in(self.tree.allocator().clone()),
        }
    }
}

impl<K, V> From<BTreeMap<K, V>> for CTreeMap<K, V> {
    /// Moves the entries over in O(n), without a comparison.
    fn from(map: BTreeMap<K, V>) -> CTreeMap<K, V> {
        CTreeMap::from_ascending(map, Global, Options::PLAIN)
    }
}

impl<K, V, A: Allocator> From<CTreeMap<K, V, A>> for FrozenCTreeMap<K, V> {
    /// Moves the entries over in O(n), without a comparison.
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

impl_map_traits!(CTreeMap<K, V, A>, from_unsorted);
