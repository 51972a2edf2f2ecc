//! [`FrozenCTreeMap`]: its two representations, and everything that looks up.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::ops::{Range, RangeBounds};

use super::entries::{self, Entries};
use super::key_tree::KeyTree;
use super::lane_tree::{LaneTree, Wanted};
use super::map_iter::{
    IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, Owned, Values, ValuesMut,
};
use super::strided::Strided;
use crate::error::{CheckError, Fault};
use crate::lane::{same_integer, same_integers};
use crate::rank_iter;
use crate::simd::BATCH;

/// Fewest queries that are searched for together. A batch of three took 12 ns a query, single
/// lookups 6.7 (10 keys, values of 8 B). From four on they are even in a large map.
const BATCH_MIN: usize = 4;

/// An ordered map that is built once: no pointers, as few cache misses as the data allows.
///
/// Keys may be of any type with `Ord`. Machine integers (`u8` to `u64`, `i8` to `i64`, `usize`,
/// `isize`, `char`) are searched by SIMD, chosen at run time. Byte strings (`String`, `&str`,
/// `Box<str>`, `Vec<u8>`, `&[u8]`, `Box<[u8]>`), common tuples of integers, `u128`, `i128` and
/// total floats are compared by 64 bits of each, which lie in the nodes. Values can be changed in
/// place; entries cannot be added or removed.
///
/// Each entry has a **rank**, the number of keys less than its own. Ranks cost nothing here: see
/// [`rank`](Self::rank), [`get_index`](Self::get_index),
/// [`get_index_of`](Self::get_index_of).
///
/// # Cost
/// A lookup among n integer keys of 8 B reads one node of two lines in each of log33(n / 16) index
/// levels, and one leaf. The index has 1/32 of the size of the keys, so that mostly the leaf alone
/// misses the cache. (For keys in tight clusters in a wide range, log17(n / 16) levels and 1/16.)
/// Keys compared by 64 bits of each go through log16(n) nodes of two lines; a `String` itself is
/// read where these are equal, mostly once. Other types need four comparisons in each of log16(n)
/// nodes. Batches (`.._many`) gain for integers only; a [`CTreeMap`](crate::CTreeMap) of strings or
/// tuples, built from a sorted iterator, serves them faster.
///
/// # A wrong `Ord`
/// As for `BTreeMap`, lookups may then miss keys, and building from unsorted input may panic. It is
/// never undefined behaviour.
///
/// # Examples
/// ```
/// use ctree::FrozenCTreeMap;
///
/// let squares: FrozenCTreeMap<u64, u64> = (0..1000).map(|n| (n * n, n)).collect();
/// assert_eq!(squares.get(&144), Some(&12));
/// assert_eq!(squares.get(&145), None);
/// assert_eq!(squares.rank(&145), 13); // thirteen squares are less than 145
/// assert_eq!(squares.get_index(13), Some((&169, &13)));
/// assert_eq!(squares.range(100..=200).next(), Some((&100, &10)));
/// ```
pub struct FrozenCTreeMap<K, V> {
    pub(super) repr: Repr<K, V>,
}

/// Invariant: `Lanes` if and only if the keys are integers and there are any. (A wrong variant
/// would cost speed, not correctness.)
#[derive(Clone)]
pub(super) enum Repr<K, V> {
    /// Keys in the order of their nodes, values in the order of the keys, as many.
    Tree { keys: KeyTree<K>, values: Vec<V> },
    /// Integer keys; knows its values.
    Lanes(LaneTree<K, V>),
}

impl<K, V> FrozenCTreeMap<K, V> {
    /// Makes an empty map, which allocates nothing.
    pub const fn new() -> FrozenCTreeMap<K, V> {
        FrozenCTreeMap {
            repr: Repr::Tree {
                keys: KeyTree::new(),
                values: Vec::new(),
            },
        }
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.repr {
            Repr::Tree { values, .. } => values.len(),
            Repr::Lanes(tree) => tree.len(),
        }
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the map has allocated, not counting what keys and values own.
    pub fn memory_usage(&self) -> usize {
        match &self.repr {
            // Zero-sized values have an unlimited capacity, of no bytes.
            Repr::Tree { keys, values } => keys.memory_bytes() + values.capacity() * size_of::<V>(),
            Repr::Lanes(tree) => tree.memory_bytes(),
        }
    }

    /// The rank of the key that equals `query`, or else the number of keys less than it.
    #[inline]
    fn search<Q: ?Sized + Ord>(&self, query: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q> + Ord,
    {
        match &self.repr {
            Repr::Tree { keys, values } => keys.search(query, values),
            Repr::Lanes(tree) => {
                let Some(query) = same_integer::<K, Q>(query) else {
                    return Self::search_lanes_by_order(tree, query);
                };
                tree.search(query)
            }
        }
    }

    /// [`search`](Self::search) for a borrowed form of an integer that has an order of its own.
    #[cold]
    fn search_lanes_by_order<Q: ?Sized + Ord>(
        tree: &LaneTree<K, V>,
        query: &Q,
    ) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        let (mut start, mut end) = (0, tree.len());
        while start < end {
            let middle = start + (end - start) / 2;
            match tree.key(middle).borrow().cmp(query) {
                Ordering::Less => start = middle + 1,
                Ordering::Greater => end = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(start)
    }

    #[inline]
    fn key(&self, rank: usize) -> &K {
        match &self.repr {
            Repr::Tree { keys, .. } => keys.key(rank),
            Repr::Lanes(tree) => tree.key(rank),
        }
    }

    #[inline]
    fn value(&self, rank: usize) -> &V {
        match &self.repr {
            Repr::Tree { values, .. } => &values[rank],
            Repr::Lanes(tree) => tree.value(rank),
        }
    }

    /// The value of `key`.
    ///
    /// For the cost see [the type](Self#cost).
    #[inline]
    pub fn get<Q: ?Sized + Ord>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q> + Ord,
    {
        if let (Repr::Lanes(tree), Some(key)) = (&self.repr, same_integer::<K, Q>(key)) {
            return tree.get(key);
        }
        self.search(key).ok().map(|rank| self.value(rank))
    }

    /// The stored key that equals `key`, and its value.
    #[inline]
    pub fn get_key_value<Q: ?Sized + Ord>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q> + Ord,
    {
        self.search(key)
            .ok()
            .map(|rank| (self.key(rank), self.value(rank)))
    }

    /// The value of `key`, to change it.
    #[inline]
    pub fn get_mut<Q: ?Sized + Ord>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q> + Ord,
    {
        match &mut self.repr {
            Repr::Tree { keys, values } => {
                let rank = keys.search(key, values).ok()?;
                Some(&mut values[rank])
            }
            Repr::Lanes(tree) => match same_integer::<K, Q>(key) {
                Some(key) => tree.get_mut(key),
                None => {
                    let rank = Self::search_lanes_by_order(tree, key).ok()?;
                    Some(tree.value_mut(rank))
                }
            },
        }
    }

    /// Whether there is an entry of `key`.
    #[inline]
    pub fn contains_key<Q: ?Sized + Ord>(&self, key: &Q) -> bool
    where
        K: Borrow<Q> + Ord,
    {
        self.search(key).is_ok()
    }

    /// Number of keys less than `query`: the rank of the first key that is not, or `len`.
    ///
    /// # Examples
    /// ```
    /// let map: ctree::FrozenCTreeMap<u32, ()> = [10, 20, 30].map(|key| (key, ())).into();
    /// assert_eq!((map.rank(&20), map.rank_after(&20)), (1, 2));
    /// assert_eq!(map.get_index(map.rank(&21)), Some((&30, &()))); // the successor
    /// assert_eq!(map.rank(&31), 3);
    /// ```
    #[doc(alias = "lower_bound")]
    #[inline]
    pub fn rank<Q: ?Sized + Ord>(&self, query: &Q) -> usize
    where
        K: Borrow<Q> + Ord,
    {
        self.search(query).unwrap_or_else(|rank| rank)
    }

    /// Number of keys less than or equal to `query`: the rank of the first key after it, or `len`.
    #[doc(alias = "upper_bound")]
    #[inline]
    pub fn rank_after<Q: ?Sized + Ord>(&self, query: &Q) -> usize
    where
        K: Borrow<Q> + Ord,
    {
        self.search(query).map_or_else(|rank| rank, |rank| rank + 1)
    }

    /// The rank of `key`, if it is in the map.
    #[inline]
    pub fn get_index_of<Q: ?Sized + Ord>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q> + Ord,
    {
        self.search(key).ok()
    }

    /// The entry of a rank, in constant time: the `rank`-th smallest, counted from 0.
    #[doc(alias = "select")]
    #[inline]
    pub fn get_index(&self, rank: usize) -> Option<(&K, &V)> {
        (rank < self.len()).then(|| (self.key(rank), self.value(rank)))
    }

    /// The entry of a rank with its value to change, in constant time.
    #[inline]
    pub fn get_index_mut(&mut self, rank: usize) -> Option<(&K, &mut V)> {
        let ranks = rank..self.len();
        // SAFETY: the values are borrowed exclusively for as long as the result lives.
        unsafe { IterMut::new(self.entries_mut(ranks)) }.next()
    }

    /// The entry with the smallest key.
    #[inline]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.get_index(0)
    }

    /// The entry with the largest key.
    #[inline]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.get_index(self.len().wrapping_sub(1))
    }

    /// The values of many keys: `results[i]` becomes that of `keys[i]`.
    ///
    /// Searches for integer keys descend together, so that their misses overlap. After a long batch
    /// the values may have left the cache: [`get_many_with`](Self::get_many_with) hands each over
    /// while it is there.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    ///
    /// # Examples
    /// ```
    /// let map: ctree::FrozenCTreeMap<u64, u64> = (0..100).map(|n| (n, n * n)).collect();
    /// let mut results = [None; 3];
    /// map.get_many(&[5, 500, 7], &mut results);
    /// assert_eq!(results, [Some(&25), None, Some(&49)]);
    /// ```
    pub fn get_many<'a, Q: Ord>(&'a self, keys: &[Q], results: &mut [Option<&'a V>])
    where
        K: Borrow<Q> + Ord,
    {
        rank_iter::assert_same_length(keys.len(), results.len());
        self.get_many_with(keys, |index, value| results[index] = value);
    }

    /// Calls `use_value(i, value)` for each of many keys in turn, with the value of `keys[i]`.
    ///
    /// As [`get_many`](Self::get_many), but each value is handed over while its line is in the
    /// cache.
    #[inline]
    pub fn get_many_with<'a, Q: Ord>(
        &'a self,
        keys: &[Q],
        mut use_value: impl FnMut(usize, Option<&'a V>),
    ) where
        K: Borrow<Q> + Ord,
    {
        self.search_many(keys, Wanted::Values, |index, rank| {
            use_value(index, rank.ok().map(|rank| self.value(rank)));
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
        rank_iter::assert_same_length(queries.len(), ranks.len());
        self.search_many(queries, Wanted::Ranks, |index, rank| {
            ranks[index] = rank.unwrap_or_else(|rank| rank);
        });
    }

    /// [`search`](Self::search) for many queries, in batches when the keys are integers and there
    /// are [`BATCH_MIN`] or more.
    #[inline]
    pub(super) fn search_many<Q: Ord>(
        &self,
        queries: &[Q],
        wanted: Wanted,
        mut use_rank: impl FnMut(usize, Result<usize, usize>),
    ) where
        K: Borrow<Q> + Ord,
    {
        if queries.len() >= BATCH_MIN
            && let (Repr::Lanes(tree), Some(queries)) = (&self.repr, same_integers::<K, Q>(queries))
        {
            let mut ranks = [0; BATCH];
            let mut index = 0;
            for batch in queries.chunks(BATCH) {
                let ranks = &mut ranks[..batch.len()];
                tree.lower_bound_many(batch, ranks, wanted);
                for (&rank, query) in ranks.iter().zip(batch) {
                    let found = rank < tree.len() && tree.key(rank) == query;
                    use_rank(index, if found { Ok(rank) } else { Err(rank) });
                    index += 1;
                }
            }
        } else {
            for (index, query) in queries.iter().enumerate() {
                use_rank(index, self.search(query));
            }
        }
    }

    fn ranks_within<Q: ?Sized + Ord>(&self, bounds: &impl RangeBounds<Q>) -> Range<usize>
    where
        K: Borrow<Q> + Ord,
    {
        rank_iter::ranks_within(
            (bounds.start_bound(), bounds.end_bound()),
            self.len(),
            |key| self.rank(key),
            |key| self.rank_after(key),
        )
    }

    /// The entries whose keys lie within bounds, in the order of the keys. Costs two lookups, then
    /// constant time an entry.
    ///
    /// # Panics
    /// As `BTreeMap::range`, unless the map is empty.
    ///
    /// # Examples
    /// ```
    /// use std::ops::Bound;
    ///
    /// let trees = ["ash", "beech", "elm", "oak"].map(|tree| (tree.to_owned(), 1));
    /// let map = ctree::FrozenCTreeMap::from(trees);
    /// let range = map.range::<str, _>((Bound::Excluded("ash"), Bound::Included("elm")));
    /// assert!(range.map(|(tree, _)| tree).eq(["beech", "elm"]));
    /// ```
    pub fn range<Q: ?Sized + Ord, R: RangeBounds<Q>>(&self, range: R) -> Iter<'_, K, V>
    where
        K: Borrow<Q> + Ord,
    {
        let ranks = self.ranks_within(&range);
        // SAFETY: the values are borrowed shared for as long as the result lives.
        unsafe { Iter::new(self.entries(ranks)) }
    }

    pub(super) fn range_keys<Q: ?Sized + Ord>(&self, range: &impl RangeBounds<Q>) -> Keys<'_, K, V>
    where
        K: Borrow<Q> + Ord,
    {
        let ranks = self.ranks_within(range);
        // SAFETY: the values are borrowed shared for as long as the result lives.
        unsafe { Keys::new(self.entries(ranks)) }
    }

    /// The entries whose keys lie within bounds, with values to change.
    ///
    /// # Panics
    /// As [`range`](Self::range).
    pub fn range_mut<Q: ?Sized + Ord, R: RangeBounds<Q>>(&mut self, range: R) -> IterMut<'_, K, V>
    where
        K: Borrow<Q> + Ord,
    {
        let ranks = self.ranks_within(&range);
        // SAFETY: the values are borrowed exclusively for as long as the result lives.
        unsafe { IterMut::new(self.entries_mut(ranks)) }
    }

    /// All entries in the order of their keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        // SAFETY: the values are borrowed shared for as long as the result lives.
        unsafe { Iter::new(self.entries(0..self.len())) }
    }

    /// All entries in the order of their keys, with values to change.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        // SAFETY: the values are borrowed exclusively for as long as the result lives.
        unsafe { IterMut::new(self.entries_mut(0..self.len())) }
    }

    /// All keys in order.
    pub fn keys(&self) -> Keys<'_, K, V> {
        // SAFETY: the values are borrowed shared for as long as the result lives.
        unsafe { Keys::new(self.entries(0..self.len())) }
    }

    /// All values in the order of their keys.
    pub fn values(&self) -> Values<'_, K, V> {
        // SAFETY: the values are borrowed shared for as long as the result lives.
        unsafe { Values::new(self.entries(0..self.len())) }
    }

    /// All values in the order of their keys, to change them.
    pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
        // SAFETY: the values are borrowed exclusively for as long as the result lives.
        unsafe { ValuesMut::new(self.entries_mut(0..self.len())) }
    }

    /// The keys in order, owned; the values are dropped.
    pub fn into_keys(self) -> IntoKeys<K, V> {
        IntoKeys::new(self.into_iter())
    }

    /// The values in the order of their keys, owned; the keys are dropped.
    pub fn into_values(self) -> IntoValues<K, V> {
        IntoValues::new(self.into_iter())
    }

    /// The entries of `ranks`, as far as they exist, to read.
    fn entries(&self, ranks: Range<usize>) -> Entries<'_, K, V> {
        let (keys, values) = match &self.repr {
            Repr::Tree { keys, values } => (entries::Keys::Tree(keys), Strided::from_slice(values)),
            Repr::Lanes(tree) => (entries::Keys::Lanes(tree.keys()), tree.values()),
        };
        let ranks = ranks.start..ranks.end.min(self.len());
        // SAFETY: keys and values are initialised below `len`, and the map is borrowed meanwhile.
        unsafe { Entries::new(keys, values, ranks) }
    }

    /// The entries of `ranks`, as far as they exist, to change the values.
    fn entries_mut(&mut self, ranks: Range<usize>) -> Entries<'_, K, V> {
        let ranks = ranks.start..ranks.end.min(self.len());
        let (keys, values) = match &mut self.repr {
            Repr::Tree { keys, values } => {
                (entries::Keys::Tree(keys), Strided::from_mut_slice(values))
            }
            Repr::Lanes(tree) => {
                let values = tree.values_mut();
                (entries::Keys::Lanes(tree.keys()), values)
            }
        };
        // SAFETY: keys and values are initialised below `len`, and the map is borrowed mutably
        // meanwhile.
        unsafe { Entries::new(keys, values, ranks) }
    }
}

impl<K: Ord, V> FrozenCTreeMap<K, V> {
    /// Checks the whole structure: the order of the keys, the separators and fillers of the index,
    /// and that each key is found.
    ///
    /// Meant for tests; takes O(n log n), and says what is wrong first.
    pub fn check(&self) -> Result<(), CheckError> {
        let fault = |fault| Err(CheckError::new(fault));
        match &self.repr {
            Repr::Tree { keys, values } => {
                if keys.len() != values.len() || !keys.is_valid() {
                    return fault(Fault::Lengths);
                }
            }
            Repr::Lanes(tree) => {
                if let Err(offset_bytes) = tree.check_lanes() {
                    return fault(Fault::Lane { offset_bytes });
                }
            }
        }
        if let Some(rank) = (1..self.len()).find(|&rank| self.key(rank - 1) >= self.key(rank)) {
            return fault(Fault::Order { rank });
        }
        if let Some(rank) = (0..self.len()).find(|&rank| self.search(self.key(rank)) != Ok(rank)) {
            return fault(Fault::Search { rank });
        }
        Ok(())
    }
}

impl<K: Clone, V: Clone> Clone for FrozenCTreeMap<K, V> {
    /// Copies the map in O(n).
    fn clone(&self) -> FrozenCTreeMap<K, V> {
        FrozenCTreeMap {
            repr: self.repr.clone(),
        }
    }
}

impl<K, V> IntoIterator for FrozenCTreeMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    /// Moves the entries out in the order of their keys.
    fn into_iter(self) -> IntoIter<K, V> {
        match self.repr {
            Repr::Tree { keys, values } => {
                IntoIter(Owned::Tree(keys.into_iter(), values.into_iter()))
            }
            Repr::Lanes(tree) => IntoIter(Owned::Lanes(tree.into_iter())),
        }
    }
}
