//! The traits that follow from the keys of a [`CTreeSet`] in order.

use alloc::collections::BTreeSet;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeSet;
use super::iter::Iter;
use crate::FrozenCTreeSet;
use crate::map::CTreeMap;
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

impl<K> Default for CTreeSet<K> {
    /// An empty set.
    fn default() -> CTreeSet<K> {
        CTreeSet::new()
    }
}

impl<K: Ord> FromIterator<K> for CTreeSet<K> {
    /// Builds a set from keys in any order; of equal keys the last one stays.
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> CTreeSet<K> {
        CTreeSet {
            map: keys.into_iter().map(|key| (key, ())).collect(),
        }
    }
}

impl<K: Ord, const N: usize> From<[K; N]> for CTreeSet<K> {
    /// As [`FromIterator`].
    fn from(keys: [K; N]) -> CTreeSet<K> {
        keys.into_iter().collect()
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

impl<K: Ord, A: Allocator> From<CTreeSet<K, A>> for BTreeSet<K> {
    /// Moves the keys over.
    fn from(set: CTreeSet<K, A>) -> BTreeSet<K> {
        set.into_iter().collect()
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

impl<K: PartialEq, A: Allocator> PartialEq for CTreeSet<K, A> {
    fn eq(&self, other: &CTreeSet<K, A>) -> bool {
        self.map == other.map
    }
}

impl<K: Eq, A: Allocator> Eq for CTreeSet<K, A> {}

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

impl<K: PartialOrd, A: Allocator> PartialOrd for CTreeSet<K, A> {
    fn partial_cmp(&self, other: &CTreeSet<K, A>) -> Option<Ordering> {
        self.iter().partial_cmp(other)
    }
}

impl<K: Ord, A: Allocator> Ord for CTreeSet<K, A> {
    fn cmp(&self, other: &CTreeSet<K, A>) -> Ordering {
        self.iter().cmp(other)
    }
}

impl<K: Hash, A: Allocator> Hash for CTreeSet<K, A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.map.hash(state);
    }
}

impl<K: fmt::Debug, A: Allocator> fmt::Debug for CTreeSet<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<'a, K, A: Allocator> IntoIterator for &'a CTreeSet<K, A> {
    type Item = &'a K;
    type IntoIter = Iter<'a, K>;

    #[inline]
    fn into_iter(self) -> Iter<'a, K> {
        self.iter()
    }
}
