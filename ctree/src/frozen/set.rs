//! [`FrozenCTreeSet`]: a [`FrozenCTreeMap`] without values.

use alloc::collections::BTreeSet;
use core::borrow::Borrow;
use core::fmt;
use core::ops::RangeBounds;

use super::lane_tree::Wanted;
use super::map::FrozenCTreeMap;
use super::map_iter::{IntoKeys, Keys};
use crate::algebra::{self, SortedSet, impl_set_algebra};
use crate::error::{CheckError, OrderError};
use crate::rank_iter;
use crate::traits::impl_set_traits;

/// The keys of a set, from [`FrozenCTreeSet::iter`].
pub type Iter<'a, K> = Keys<'a, K, ()>;

/// The keys within bounds, from [`FrozenCTreeSet::range`].
pub type Range<'a, K> = Keys<'a, K, ()>;

/// The owned keys of a set, from
/// [`FrozenCTreeSet::into_iter`](FrozenCTreeSet#impl-IntoIterator-for-FrozenCTreeSet<K>).
pub type IntoIter<K> = IntoKeys<K, ()>;

/// The keys of one set that are not in the other, in order.
pub type Difference<'a, K> = algebra::Difference<Iter<'a, K>, &'a K, &'a FrozenCTreeSet<K>>;

/// The keys that are in both of two sets, in order.
pub type Intersection<'a, K> = algebra::Intersection<Iter<'a, K>, &'a K, &'a FrozenCTreeSet<K>>;

/// The keys that are in one of two sets and not in both, in order.
pub type SymmetricDifference<'a, K> = algebra::SymmetricDifference<Iter<'a, K>, &'a K>;

/// The keys that are in at least one of two sets, in order.
pub type Union<'a, K> = algebra::Union<Iter<'a, K>, &'a K>;

/// An ordered set that is built once and then searched: no pointers, as few cache misses as the
/// data allows.
///
/// What is said of [`FrozenCTreeMap`] on key types, ranks, cost and a wrong `Ord` holds here too.
///
/// # Examples
/// ```
/// use ctree::FrozenCTreeSet;
///
/// let primes: FrozenCTreeSet<u32> = [7, 3, 5, 2].into();
/// assert!(primes.contains(&5) && !primes.contains(&6));
/// assert_eq!(primes.range(3..).collect::<Vec<_>>(), [&3, &5, &7]);
/// assert_eq!(primes.get_index(primes.rank(&4)), Some(&5));
/// ```
#[derive(Clone)]
pub struct FrozenCTreeSet<K> {
    pub(super) map: FrozenCTreeMap<K, ()>,
}

impl<K> FrozenCTreeSet<K> {
    /// Makes an empty set, which allocates nothing.
    pub const fn new() -> FrozenCTreeSet<K> {
        FrozenCTreeSet {
            map: FrozenCTreeMap::new(),
        }
    }

    /// The set of a map's keys.
    pub(crate) fn from_map(map: FrozenCTreeMap<K, ()>) -> FrozenCTreeSet<K> {
        FrozenCTreeSet { map }
    }

    /// Builds the set from keys in order, which nothing here relies on for memory safety.
    pub(crate) fn from_ascending(keys: impl Iterator<Item = K>) -> FrozenCTreeSet<K> {
        FrozenCTreeSet::from_map(FrozenCTreeMap::from_sorted_vec(
            keys.map(|key| (key, ())).collect(),
        ))
    }

    /// Number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are no keys.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Bytes that the set has allocated, not counting what keys own.
    pub fn memory_usage(&self) -> usize {
        self.map.memory_usage()
    }

    /// Whether `key` is in the set.
    #[inline]
    pub fn contains<Q: ?Sized + Ord>(&self, key: &Q) -> bool
    where
        K: Borrow<Q> + Ord,
    {
        self.map.contains_key(key)
    }

    /// The stored key that equals `key`.
    #[inline]
    pub fn get<Q: ?Sized + Ord>(&self, key: &Q) -> Option<&K>
    where
        K: Borrow<Q> + Ord,
    {
        self.map.get_key_value(key).map(|(key, ())| key)
    }

    /// Number of keys less than `query`. See [`FrozenCTreeMap::rank`].
    #[doc(alias = "lower_bound")]
    #[inline]
    pub fn rank<Q: ?Sized + Ord>(&self, query: &Q) -> usize
    where
        K: Borrow<Q> + Ord,
    {
        self.map.rank(query)
    }

    /// Number of keys less than or equal to `query`.
    #[inline]
    pub fn rank_after<Q: ?Sized + Ord>(&self, query: &Q) -> usize
    where
        K: Borrow<Q> + Ord,
    {
        self.map.rank_after(query)
    }

    /// The rank of `key`, if it is in the set.
    #[inline]
    pub fn get_index_of<Q: ?Sized + Ord>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q> + Ord,
    {
        self.map.get_index_of(key)
    }

    /// The key of a rank, in constant time: the `rank`-th smallest, counted from 0.
    #[doc(alias = "select")]
    #[inline]
    pub fn get_index(&self, rank: usize) -> Option<&K> {
        self.map.get_index(rank).map(|(key, ())| key)
    }

    /// The smallest key.
    #[inline]
    pub fn first(&self) -> Option<&K> {
        self.map.first_key_value().map(|(key, ())| key)
    }

    /// The largest key.
    #[inline]
    pub fn last(&self) -> Option<&K> {
        self.map.last_key_value().map(|(key, ())| key)
    }

    /// Whether each of many keys is in the set: `results[i]` becomes that of `keys[i]`. Integer
    /// keys go down the tree together, so that their misses overlap.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    pub fn contains_many<Q: Ord>(&self, keys: &[Q], results: &mut [bool])
    where
        K: Borrow<Q> + Ord,
    {
        rank_iter::assert_same_length(keys.len(), results.len());
        self.map.search_many(keys, Wanted::Ranks, |index, rank| {
            results[index] = rank.is_ok();
        });
    }

    /// [`rank`](Self::rank) of many queries: `ranks[i]` becomes that of `queries[i]`.
    ///
    /// # Panics
    /// When `queries` and `ranks` differ in length.
    pub fn rank_many<Q: Ord>(&self, queries: &[Q], ranks: &mut [usize])
    where
        K: Borrow<Q> + Ord,
    {
        self.map.rank_many(queries, ranks);
    }

    /// The keys within bounds, in order.
    ///
    /// # Panics
    /// As [`FrozenCTreeMap::range`].
    pub fn range<Q: ?Sized + Ord, R: RangeBounds<Q>>(&self, range: R) -> Range<'_, K>
    where
        K: Borrow<Q> + Ord,
    {
        self.map.range_keys(&range)
    }

    /// All keys in order.
    pub fn iter(&self) -> Iter<'_, K> {
        self.map.keys()
    }
}

impl<K: Ord> FrozenCTreeSet<K> {
    /// Builds the set from keys in order, in O(n). See [`FrozenCTreeMap::from_sorted_iter`].
    pub fn from_sorted_iter(
        keys: impl IntoIterator<Item = K>,
    ) -> Result<FrozenCTreeSet<K>, OrderError> {
        let map = FrozenCTreeMap::from_sorted_iter(keys.into_iter().map(|key| (key, ())))?;
        Ok(FrozenCTreeSet { map })
    }

    /// Checks the whole structure, as [`FrozenCTreeMap::check`] does.
    pub fn check(&self) -> Result<(), CheckError> {
        self.map.check()
    }
}

impl<K> From<BTreeSet<K>> for FrozenCTreeSet<K> {
    /// Moves the keys over in O(n), without a comparison.
    fn from(set: BTreeSet<K>) -> FrozenCTreeSet<K> {
        FrozenCTreeSet::from_ascending(set.into_iter())
    }
}

impl<K> IntoIterator for FrozenCTreeSet<K> {
    type Item = K;
    type IntoIter = IntoIter<K>;

    /// Moves the keys out in order.
    fn into_iter(self) -> IntoIter<K> {
        self.map.into_keys()
    }
}

impl_set_traits!(FrozenCTreeSet<K>);

impl_set_algebra!(FrozenCTreeSet<K>, |_like, keys| {
    FrozenCTreeSet::from_ascending(keys)
});
