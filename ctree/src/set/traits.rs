//! The traits that follow from the keys of a [`CTreeSet`] in order.

use alloc::collections::BTreeSet;
use core::fmt;

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeSet;
use super::iter::Iter;
use crate::FrozenCTreeSet;
use crate::map::CTreeMap;
use crate::traits::impl_set_traits;
use crate::tree::Options;

impl<K: Clone, A: Allocator + Clone> Clone for CTreeSet<K, A> {
    /// Copies the set in O(n), into full nodes.
    fn clone(&self) -> CTreeSet<K, A> {
        CTreeSet {
            map: self.map.clone(),
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.map.clone_from(&source.map);
    }
}

impl<K> From<BTreeSet<K>> for CTreeSet<K> {
    /// Moves the keys over in O(n), without a comparison.
    fn from(set: BTreeSet<K>) -> CTreeSet<K> {
        let keys = set.into_iter().map(|key| (key, ()));
        CTreeSet {
            map: CTreeMap::from_ascending(keys, Global, Options::PLAIN),
        }
    }
}

impl<K, A: Allocator> From<CTreeSet<K, A>> for FrozenCTreeSet<K> {
    /// Moves the keys over in O(n), without a comparison.
    fn from(set: CTreeSet<K, A>) -> FrozenCTreeSet<K> {
        FrozenCTreeSet::from_ascending(set.into_iter())
    }
}

impl<K> From<FrozenCTreeSet<K>> for CTreeSet<K> {
    /// Moves the keys over in O(n), without a comparison, for changes that a frozen set does not
    /// allow.
    fn from(set: FrozenCTreeSet<K>) -> CTreeSet<K> {
        let keys = set.into_iter().map(|key| (key, ()));
        CTreeSet {
            map: CTreeMap::from_ascending(keys, Global, Options::PLAIN),
        }
    }
}

impl<K: Ord, A: Allocator> Extend<K> for CTreeSet<K, A> {
    /// [`insert_many`](CTreeSet::insert_many).
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_many(keys);
    }
}

impl<'a, K: 'a + Ord + Copy, A: Allocator> Extend<&'a K> for CTreeSet<K, A> {
    /// [`insert_many`](CTreeSet::insert_many).
    fn extend<I: IntoIterator<Item = &'a K>>(&mut self, keys: I) {
        self.insert_many(keys.into_iter().copied());
    }
}

impl<K: PartialEq, A: Allocator> PartialEq<BTreeSet<K>> for CTreeSet<K, A> {
    fn eq(&self, other: &BTreeSet<K>) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<K: PartialEq, A: Allocator> PartialEq<CTreeSet<K, A>> for BTreeSet<K> {
    fn eq(&self, other: &CTreeSet<K, A>) -> bool {
        other == self
    }
}

impl_set_traits!(CTreeSet<K, A>);
