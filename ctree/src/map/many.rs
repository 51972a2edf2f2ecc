//! Lookups that std's map does not have: many keys at once, and ranks. Also what a map tells about
//! itself.

use core::borrow::Borrow;

use allocator_api2::alloc::Allocator;

use super::CTreeMap;
use crate::CheckError;
use crate::rank_iter;
use crate::tree::Found;

impl<K, V, A: Allocator> CTreeMap<K, V, A> {
    /// The values of many keys: `results[i]` becomes that of `keys[i]`.
    ///
    /// Searches for integers and for keys with heads go down the tree together, so that their cache
    /// misses overlap; other keys, and fewer than 4, are searched one by one. After a long batch
    /// the values may have left the cache: [`get_many_with`](Self::get_many_with) hands each over
    /// while it is there.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    ///
    /// # Examples
    /// ```
    /// let map: ctree::CTreeMap<u64, u64> = (0..100).map(|n| (n, n * n)).collect();
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
    ///
    /// # Examples
    /// ```
    /// let map: ctree::CTreeMap<u64, u64> = (0..100).map(|n| (n, n * n)).collect();
    /// let mut sum = 0;
    /// map.get_many_with(&[5, 500, 7], |_, value| sum += value.unwrap_or(&0));
    /// assert_eq!(sum, 25 + 49);
    /// ```
    #[inline]
    pub fn get_many_with<'a, Q: Ord>(
        &'a self,
        keys: &[Q],
        mut use_value: impl FnMut(usize, Option<&'a V>),
    ) where
        K: Borrow<Q> + Ord,
    {
        self.tree.find_many(keys, |index, place| {
            // SAFETY: the place was just found, and the map is borrowed for `'a`.
            let value = place.map(|place| unsafe { self.entry_at(place) }.1);
            use_value(index, value);
        });
    }

    /// Whether there is an entry of each of many keys: `results[i]` becomes that of `keys[i]`. The
    /// searches go down the tree together, as in [`get_many`](Self::get_many).
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    pub fn contains_many<Q: Ord>(&self, keys: &[Q], results: &mut [bool])
    where
        K: Borrow<Q> + Ord,
    {
        rank_iter::assert_same_length(keys.len(), results.len());
        self.tree
            .find_many(keys, |index, place| results[index] = place.is_some());
    }

    /// Number of keys less than `query`, which need not be in the map.
    ///
    /// Costs a lookup in a map [with ranks](CTreeMap::with_ranks), else O(n / entries a node).
    pub fn rank<Q: ?Sized + Ord>(&self, query: &Q) -> usize
    where
        K: Borrow<Q> + Ord,
    {
        if self.is_empty() {
            return 0;
        }
        let edge = self.tree.lower_edge(query);
        // SAFETY: the edge was just found in this tree.
        unsafe { self.tree.rank_of(edge) }
    }

    /// The rank of `key`, if it is in the map. Costs as much as [`rank`](Self::rank).
    pub fn get_index_of<Q: ?Sized + Ord>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q> + Ord,
    {
        match self.tree.find(key) {
            Found::Entry(place) => {
                // SAFETY: the place was just found in this tree.
                let edge = unsafe { self.tree.form().edge_before(place) };
                // SAFETY: this is an edge of this tree as it is now.
                Some(unsafe { self.tree.rank_of(edge) })
            }
            Found::Gap(_) => None,
        }
    }

    /// The entry of a rank: the `rank`-th smallest, counted from 0.
    ///
    /// Takes O(log n) in a map [with ranks](CTreeMap::with_ranks), else O(n / entries a node).
    #[doc(alias = "select")]
    pub fn get_index(&self, rank: usize) -> Option<(&K, &V)> {
        let place = self.tree.place_of_rank(rank)?;
        // SAFETY: the place was just found, and the map is borrowed since.
        Some(unsafe { self.entry_at(place) })
    }

    /// [`get_index`](Self::get_index), with the value to change.
    pub fn get_index_mut(&mut self, rank: usize) -> Option<(&K, &mut V)> {
        let place = self.tree.place_of_rank(rank)?;
        // SAFETY: the place was just found, and the map is borrowed mutably since.
        Some(unsafe { self.entry_at_mut(place) })
    }

    /// Bytes that the map has allocated for its nodes, free room in them included; not what keys
    /// and values own elsewhere, nor the `size_of` of the map itself.
    ///
    /// Memory that maps share since one was [split](CTreeMap::split_off) counts in each of them.
    pub fn memory_usage(&self) -> usize {
        self.tree.memory_bytes()
    }

    /// Levels of nodes: 0 while there is none. For this crate's tests, which have to reach some.
    #[doc(hidden)]
    pub fn level_count(&self) -> usize {
        self.tree.level_count()
    }

    /// Of the map's nodes but a first leaf: room for entries, then the offsets of keys, values,
    /// header and children, the bytes of a leaf and of an inner node without ranks. For `ccscope`,
    /// which replays lookups.
    #[doc(hidden)]
    pub fn node_layout(&self) -> [usize; 7] {
        let shape = self.tree.form().grown().shape();
        [
            shape.capacity,
            shape.keys_at,
            shape.values_at,
            shape.header_at,
            shape.children_at,
            shape.leaf_bytes,
            shape.inner_bytes,
        ]
    }
}

impl<K: Ord, V, A: Allocator> CTreeMap<K, V, A> {
    /// Checks the whole structure: the order of the keys, the fill of the nodes, and all that nodes
    /// say about their keys and children.
    ///
    /// Meant for tests; takes O(n log n), and says what is wrong first.
    pub fn check(&self) -> Result<(), CheckError> {
        self.tree.check()
    }
}
