//! [`CTreeSet`]: a [`CTreeMap`] without values.

use core::borrow::Borrow;
use core::ops::RangeBounds;

use allocator_api2::alloc::{Allocator, Global};

use super::iter::{ExtractIf, IntoIter, Iter, Range};
use crate::Head;
use crate::map::{CTreeMap, Extraction};
use crate::{CheckError, OrderError};

/// An ordered set for lookups that miss the cache, with all methods of
/// [`BTreeSet`](alloc::collections::BTreeSet) and more.
///
/// What [`CTreeMap`] says about key types, cost and a wrong `Ord` holds here too.
///
/// # Examples
/// ```
/// use ctree::CTreeSet;
///
/// let primes = CTreeSet::from([7, 3, 5, 2]);
/// let odd: CTreeSet<i32> = (0..10).filter(|n| n % 2 == 1).collect();
/// assert!(primes.contains(&5) && !primes.contains(&6));
/// assert_eq!(primes.range(3..).collect::<Vec<_>>(), [&3, &5, &7]);
/// assert_eq!(&primes - &odd, CTreeSet::from([2]));
/// ```
pub struct CTreeSet<K, A: Allocator = Global> {
    pub(crate) map: CTreeMap<K, (), A>,
}

impl<K> CTreeSet<K> {
    /// Makes an empty set, which allocates nothing.
    #[inline]
    #[must_use]
    pub const fn new() -> CTreeSet<K> {
        CTreeSet {
            map: CTreeMap::new(),
        }
    }

    /// Makes an empty set whose inner nodes count the keys below them. See
    /// [`CTreeMap::with_ranks`].
    #[must_use]
    pub const fn with_ranks() -> CTreeSet<K> {
        CTreeSet {
            map: CTreeMap::with_ranks(),
        }
    }

    /// Makes an empty set that searches by the [heads](Head) of its keys first. See
    /// [`CTreeMap::with_heads`].
    #[must_use]
    pub fn with_heads() -> CTreeSet<K>
    where
        K: Head,
    {
        CTreeSet {
            map: CTreeMap::with_heads(),
        }
    }
}

impl<K: Ord> CTreeSet<K> {
    /// Builds a set from keys in order, in O(n). See [`CTreeMap::from_sorted_iter`].
    pub fn from_sorted_iter<I>(keys: I) -> Result<CTreeSet<K>, OrderError>
    where
        I: IntoIterator<Item = K>,
    {
        let map = CTreeMap::from_sorted_iter(keys.into_iter().map(|key| (key, ())))?;
        Ok(CTreeSet { map })
    }
}

impl<K, A: Allocator> CTreeSet<K, A> {
    /// Makes an empty set whose nodes come from `alloc`.
    #[inline]
    #[must_use]
    pub const fn new_in(alloc: A) -> CTreeSet<K, A> {
        CTreeSet {
            map: CTreeMap::new_in(alloc),
        }
    }

    /// [`with_ranks`](CTreeSet::with_ranks), its nodes from `alloc`.
    #[must_use]
    pub const fn with_ranks_in(alloc: A) -> CTreeSet<K, A> {
        CTreeSet {
            map: CTreeMap::with_ranks_in(alloc),
        }
    }

    /// [`with_heads`](CTreeSet::with_heads), its nodes from `alloc`.
    #[must_use]
    pub fn with_heads_in(alloc: A) -> CTreeSet<K, A>
    where
        K: Head,
    {
        CTreeSet {
            map: CTreeMap::with_heads_in(alloc),
        }
    }

    /// The allocator that the nodes come from.
    pub fn allocator(&self) -> &A {
        self.map.allocator()
    }

    /// Number of keys.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are no keys.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all keys and frees all nodes.
    pub fn clear(&mut self) {
        self.map.clear();
    }

    /// All keys in order.
    #[inline]
    pub fn iter(&self) -> Iter<'_, K> {
        Iter::new(self.map.keys())
    }

    /// The keys within bounds, in order. Costs a lookup for each bound.
    ///
    /// # Panics
    /// When the start is greater than the end, or both are equal and excluded.
    #[inline]
    pub fn range<Q: ?Sized + Ord, R>(&self, range: R) -> Range<'_, K>
    where
        K: Borrow<Q> + Ord,
        R: RangeBounds<Q>,
    {
        Range::new(self.map.range(range))
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

    /// Removes a key; returns whether it was there.
    #[inline]
    pub fn remove<Q: ?Sized + Ord>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q> + Ord,
    {
        self.map.remove(key).is_some()
    }

    /// Removes and returns the stored key that equals `key`.
    #[inline]
    pub fn take<Q: ?Sized + Ord>(&mut self, key: &Q) -> Option<K>
    where
        K: Borrow<Q> + Ord,
    {
        self.map.remove_entry(key).map(|(key, ())| key)
    }

    /// Splits the set: the keys that are `key` or greater become the result.
    pub fn split_off<Q: ?Sized + Ord>(&mut self, key: &Q) -> Self
    where
        K: Borrow<Q> + Ord,
        A: Clone,
    {
        CTreeSet {
            map: self.map.split_off(key),
        }
    }

    /// Whether each of many keys is in the set: `results[i]` becomes that of `keys[i]`. See
    /// [`CTreeMap::contains_many`].
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    pub fn contains_many<Q: Ord>(&self, keys: &[Q], results: &mut [bool])
    where
        K: Borrow<Q> + Ord,
    {
        self.map.contains_many(keys, results);
    }

    /// Number of keys less than `query`, which need not be in the set. Costs as much as
    /// [`CTreeMap::rank`].
    pub fn rank<Q: ?Sized + Ord>(&self, query: &Q) -> usize
    where
        K: Borrow<Q> + Ord,
    {
        self.map.rank(query)
    }

    /// The rank of `key`, if it is in the set. Costs as much as [`CTreeMap::rank`].
    pub fn get_index_of<Q: ?Sized + Ord>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q> + Ord,
    {
        self.map.get_index_of(key)
    }

    /// The key of a rank: the `rank`-th smallest, counted from 0. Costs as much as
    /// [`CTreeMap::get_index`].
    #[doc(alias = "select")]
    pub fn get_index(&self, rank: usize) -> Option<&K> {
        self.map.get_index(rank).map(|(key, ())| key)
    }

    /// Moves the keys into as few nodes as hold them. See [`CTreeMap::compact`].
    pub fn compact(&mut self) {
        self.map.compact();
    }

    /// Bytes that the set has allocated for its nodes. See [`CTreeMap::memory_usage`].
    pub fn memory_usage(&self) -> usize {
        self.map.memory_usage()
    }
}

impl<K: Ord, A: Allocator> CTreeSet<K, A> {
    /// The smallest key.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<&K> {
        self.map.first_key_value().map(|(key, ())| key)
    }

    /// The largest key.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<&K> {
        self.map.last_key_value().map(|(key, ())| key)
    }

    /// Removes the smallest key.
    pub fn pop_first(&mut self) -> Option<K> {
        self.map.pop_first().map(|(key, ())| key)
    }

    /// Removes the largest key.
    pub fn pop_last(&mut self) -> Option<K> {
        self.map.pop_last().map(|(key, ())| key)
    }

    /// Adds a key; returns whether it is new. A key that equals one in the set is dropped: see
    /// [`replace`](Self::replace).
    #[inline]
    pub fn insert(&mut self, key: K) -> bool {
        self.map.insert(key, ()).is_none()
    }

    /// Adds a key, replacing the one that equals it, and returns that.
    pub fn replace(&mut self, key: K) -> Option<K> {
        self.map.replace_key(key, ())
    }

    /// Keeps the keys for which `f` returns true, visited in order.
    pub fn retain<F>(&mut self, mut f: F)
    where
        F: FnMut(&K) -> bool,
    {
        self.map.retain(|key, ()| f(key));
    }

    /// Removes the keys within `range` for which `pred` returns true, lazily and in order. See
    /// [`CTreeMap::extract_if`].
    pub fn extract_if<F, R>(&mut self, range: R, pred: F) -> ExtractIf<'_, K, R, F, A>
    where
        R: RangeBounds<K>,
        F: FnMut(&K) -> bool,
    {
        ExtractIf::new(Extraction::new(&mut self.map, range), pred)
    }

    /// Moves all keys of `other` into this set. See [`CTreeMap::append`].
    pub fn append(&mut self, other: &mut Self)
    where
        A: Clone,
    {
        self.map.append(&mut other.map);
    }

    /// Adds keys in the given order, prefetching the nodes where they go. See
    /// [`CTreeMap::insert_many`].
    pub fn insert_many<I>(&mut self, keys: I)
    where
        I: IntoIterator<Item = K>,
    {
        self.map.insert_many(keys.into_iter().map(|key| (key, ())));
    }

    /// Checks the whole structure, as [`CTreeMap::check`] does.
    pub fn check(&self) -> Result<(), CheckError> {
        self.map.check()
    }
}

impl<K, A: Allocator> IntoIterator for CTreeSet<K, A> {
    type Item = K;
    type IntoIter = IntoIter<K, A>;

    /// Moves the keys out in order.
    #[inline]
    fn into_iter(self) -> IntoIter<K, A> {
        IntoIter::new(self.map.into_keys())
    }
}
