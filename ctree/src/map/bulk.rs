//! Many entries at once: building a map, merging maps, splitting them, inserting a sequence.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::mem;

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeMap;
use super::entry::Entry;
use super::into_iter::IntoIter;
use crate::OrderError;
use crate::tree::{Builder, Options};

/// Most entries that are looked up ahead together while inserting. More would displace what was
/// fetched first.
const BATCH_MAX: usize = 64;

/// Room for a batch of large entries, in bytes: moving them costs more than waiting for them.
const BATCH_BYTES: usize = 16 << 10;

/// Bytes of entries in a map that is small enough to insert one by one: it lives in the caches.
///
/// Random entries of 16 B (Emerald Rapids, 2 MB of L2, busy; ns an entry): batched 61, one by one
/// 52 (5,000 entries); 101 and 92 (50,000); 666 and 994 (2 million).
const SMALL_BYTES: usize = 2 << 20;

/// One map is this many times as long as the other when inserting the one into the other beats
/// rebuilding both.
///
/// Rebuilt and inserted, entries of 16 B, on the same machine: 14 and 17 µs (2,000 entries, ratio
/// 4), 13 and 11 µs (ratio 7); 38 and 67 ms (1 million, ratio 4), 36 and 47 ms (ratio 7).
const FEW_RATIO: usize = 8;

impl<K, V, A: Allocator> CTreeMap<K, V, A> {
    /// Builds a map from entries in order; nothing checks the order.
    pub(crate) fn from_ascending<I>(
        entries: I,
        alloc: A,
        options: Options<K, V>,
    ) -> CTreeMap<K, V, A>
    where
        I: IntoIterator<Item = (K, V)>,
    {
        let mut builder = Builder::new_in(alloc, options);
        for (key, value) in entries {
            builder.push(key, value);
        }
        CTreeMap {
            tree: builder.finish(),
        }
    }

    /// Splits the map: the entries whose keys are `key` or greater become the result.
    ///
    /// Reads a line of each node in about the smaller of the two parts, and moves O(log n) nodes:
    /// both maps then keep the memory of this one. A part that has shrunk to a sixteenth of it, or
    /// to a quarter when the other is gone, moves to memory of its own when an entry is next
    /// removed; [`compact`](Self::compact) does so at once. If the smaller part takes less than a
    /// sixteenth from the start, its entries are moved instead.
    pub fn split_off<Q: ?Sized + Ord>(&mut self, key: &Q) -> Self
    where
        K: Borrow<Q> + Ord,
        A: Clone,
    {
        if self.tree.root().is_none() {
            return self.new_like();
        }
        let edge = self.tree.lower_edge(key);
        // SAFETY: the edge was just found in this tree.
        let tree = unsafe { self.tree.split_off(edge) };
        CTreeMap { tree }
    }

    /// Moves the entries into as few nodes as hold them, in the order of the keys, and frees the
    /// others. Takes O(n).
    ///
    /// Worth it after many removals, or when a map that grew by random insertions is going to be
    /// read for long.
    pub fn compact(&mut self) {
        self.tree.compact();
    }
}

impl<K: Ord, V, A: Allocator> CTreeMap<K, V, A> {
    /// Inserts entries in the order in which they come, as [`insert`](Self::insert) does one by
    /// one.
    ///
    /// The nodes where they go are prefetched, a batch at a time, so that their cache misses
    /// overlap. When the iterator panics, up to 64 of the entries that it gave before are dropped.
    /// [`Extend`] is the same.
    pub fn insert_many<I>(&mut self, entries: I)
    where
        I: IntoIterator<Item = (K, V)>,
    {
        let batch_len = const {
            let by_size = match size_of::<(K, V)>() {
                0 => BATCH_MAX,
                entry_bytes => BATCH_BYTES / entry_bytes,
            };
            if by_size < BATCH_MAX {
                by_size
            } else {
                BATCH_MAX
            }
        };
        let mut entries = entries.into_iter();
        let small_len =
            const { SMALL_BYTES.checked_div(size_of::<(K, V)>()) }.unwrap_or(usize::MAX);
        while self.len() < small_len || batch_len < 2 {
            let Some((key, value)) = entries.next() else {
                return;
            };
            self.insert(key, value);
        }
        let mut batch = Vec::with_capacity(batch_len);
        loop {
            batch.extend(entries.by_ref().take(batch_len));
            // A shorter batch is the last one; an iterator that has ended is not asked again.
            let is_last = batch.len() < batch_len;
            self.tree.prefetch_many(&batch);
            for (key, value) in batch.drain(..) {
                self.insert(key, value);
            }
            if is_last {
                return;
            }
        }
    }

    /// [`from_sorted_iter`](CTreeMap::from_sorted_iter), with an allocator and options.
    fn from_sorted_iter_in<I>(
        entries: I,
        alloc: A,
        options: Options<K, V>,
    ) -> Result<CTreeMap<K, V, A>, OrderError>
    where
        I: IntoIterator<Item = (K, V)>,
    {
        let mut builder = Builder::new_in(alloc, options);
        for (key, value) in entries {
            let ascends = builder
                .last_key()
                .is_none_or(|last| last.cmp(&key) == Ordering::Less);
            if !ascends {
                return Err(OrderError::new(builder.len()));
            }
            builder.push(key, value);
        }
        Ok(CTreeMap {
            tree: builder.finish(),
        })
    }

    /// Moves all entries of `other` over, which is empty then. For a key that is in both maps, the
    /// key stays and the value is that of `other`.
    ///
    /// Takes O(n + m); O(m log n) when `other` is much shorter. When all keys of one map are less
    /// than those of the other, its nodes change hands (in maps of the global allocator), which
    /// takes O(log n), but O(m) if both maps are parts of others that were split. When a comparison
    /// panics, `other` is empty and this map keeps what was merged so far, or all of its own
    /// entries where `other` is much shorter.
    pub fn append(&mut self, other: &mut Self)
    where
        A: Clone,
    {
        if other.is_empty() {
            return;
        }
        let options = self.tree.options();
        if self.is_empty() && options.same_as(other.tree.options()) {
            mem::swap(self, other);
            return;
        }
        let other_empty = other.new_like();
        let other = mem::replace(other, other_empty);
        if options.same_as(other.tree.options())
            && self.tree.can_join(&other.tree)
            && let Some(order) = self.order(&other)
        {
            // SAFETY: the trees have the same options, and can be joined: both was asked above.
            return unsafe { self.tree.join(other.tree, order == Ordering::Less) };
        }
        if other.len() <= self.len() / FEW_RATIO {
            self.insert_many(other);
        } else {
            self.merge_all(other, |_, mine, value| {
                // If this panics, `value` is dropped, too.
                drop(mine);
                value
            });
        }
    }

    /// Which of two maps with entries has all keys before those of the other, if one has.
    fn order(&self, other: &Self) -> Option<Ordering> {
        if self.last_key_value()?.0 < other.first_key_value()?.0 {
            Some(Ordering::Less)
        } else if other.last_key_value()?.0 < self.first_key_value()?.0 {
            Some(Ordering::Greater)
        } else {
            None
        }
    }

    /// Moves all entries of `other` over. For a key that is in both maps, the key stays, and
    /// `conflict` makes the value of that key, of this map's value and of that of `other`.
    ///
    /// Costs as much as [`append`](Self::append). When a comparison or `conflict` panics, this map
    /// keeps what was merged so far, or its own entries, without that of the conflict.
    ///
    /// # Examples
    /// ```
    /// let mut a = ctree::CTreeMap::from([(1, 10), (3, 30)]);
    /// a.merge(ctree::CTreeMap::from([(3, 33), (4, 44)]), |_, mine, other| mine + other);
    /// assert_eq!(a.into_iter().collect::<Vec<_>>(), [(1, 10), (3, 63), (4, 44)]);
    /// ```
    pub fn merge(&mut self, other: Self, mut conflict: impl FnMut(&K, V, V) -> V)
    where
        A: Clone,
    {
        if other.len() > self.len() / FEW_RATIO {
            return self.merge_all(other, conflict);
        }
        for (key, value) in other {
            match self.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(entry) => {
                    let (key, mine) = entry.remove_entry();
                    let value = conflict(&key, mine, value);
                    self.insert(key, value);
                }
            }
        }
    }

    /// [`merge`](Self::merge) in O(n + m): takes both maps apart.
    fn merge_all(&mut self, other: Self, conflict: impl FnMut(&K, V, V) -> V)
    where
        A: Clone,
    {
        /// Gives the map what was merged, also when a comparison panics.
        struct Merged<'a, K, V, A: Allocator> {
            map: &'a mut CTreeMap<K, V, A>,
            builder: Option<Builder<K, V, A>>,
        }
        impl<K, V, A: Allocator> Drop for Merged<'_, K, V, A> {
            fn drop(&mut self) {
                if let Some(builder) = self.builder.take() {
                    self.map.tree = builder.finish();
                }
            }
        }
        let empty = self.new_like();
        let builder = Builder::new_in(self.tree.allocator().clone(), self.tree.options());
        let left = mem::replace(self, empty).into_iter();
        let mut merged = Merged {
            map: self,
            builder: None,
        };
        let builder = merged.builder.insert(builder);
        merge(left, other.into_iter(), builder, conflict);
    }
}

/// Merges two maps being taken apart; where a key is in both, the key comes from the left.
fn merge<K: Ord, V, A: Allocator>(
    mut left: IntoIter<K, V, A>,
    mut right: IntoIter<K, V, A>,
    builder: &mut Builder<K, V, A>,
    mut conflict: impl FnMut(&K, V, V) -> V,
) {
    let (mut left_entry, mut right_entry) = (left.next(), right.next());
    loop {
        match (left_entry, right_entry) {
            (Some((left_key, left_value)), Some((right_key, right_value))) => {
                match left_key.cmp(&right_key) {
                    Ordering::Less => {
                        builder.push(left_key, left_value);
                        (left_entry, right_entry) = (left.next(), Some((right_key, right_value)));
                    }
                    Ordering::Greater => {
                        builder.push(right_key, right_value);
                        (left_entry, right_entry) = (Some((left_key, left_value)), right.next());
                    }
                    Ordering::Equal => {
                        let value = conflict(&left_key, left_value, right_value);
                        builder.push(left_key, value);
                        (left_entry, right_entry) = (left.next(), right.next());
                    }
                }
            }
            (Some((key, value)), None) => {
                builder.push(key, value);
                (left_entry, right_entry) = (left.next(), None);
            }
            (None, Some((key, value))) => {
                builder.push(key, value);
                (left_entry, right_entry) = (None, right.next());
            }
            (None, None) => return,
        }
    }
}

impl<K: Ord, V> CTreeMap<K, V> {
    /// Builds a map from entries that the caller claims are strictly ascending, and checks that.
    /// Takes O(n), with n - 1 comparisons; the nodes are full.
    ///
    /// # Errors
    /// The index of the first key that is not greater than the key before it.
    ///
    /// # Examples
    /// ```
    /// use ctree::CTreeMap;
    ///
    /// let map = CTreeMap::from_sorted_iter([(1, "one"), (3, "three")])?;
    /// assert_eq!(map[&3], "three");
    /// let twice = CTreeMap::from_sorted_iter([(1, "one"), (3, "three"), (3, "drei")]);
    /// assert_eq!(twice.unwrap_err().index(), 2);
    /// # Ok::<(), ctree::OrderError>(())
    /// ```
    pub fn from_sorted_iter<I>(entries: I) -> Result<CTreeMap<K, V>, OrderError>
    where
        I: IntoIterator<Item = (K, V)>,
    {
        CTreeMap::from_sorted_iter_in(entries, Global, Options::PLAIN)
    }
}

/// Builds a map from entries in any order; of equal keys the last one stays, with its value, as in
/// std's maps.
pub(crate) fn from_unsorted<K: Ord, V>(mut entries: Vec<(K, V)>) -> CTreeMap<K, V> {
    // Input that is in order already is common, and needs no second look for equal keys.
    if entries.is_sorted_by(|(left, _), (right, _)| left.cmp(right) == Ordering::Less) {
        return CTreeMap::from_ascending(entries, Global, Options::PLAIN);
    }
    // The sort is stable: equal keys stay in the order in which they came.
    entries.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut builder = Builder::new_in(Global, Options::PLAIN);
    let mut entries = entries.into_iter();
    let Some((mut key, mut value)) = entries.next() else {
        return CTreeMap::new();
    };
    for (next_key, next_value) in entries {
        if key.cmp(&next_key) != Ordering::Equal {
            builder.push(key, value);
        }
        (key, value) = (next_key, next_value);
    }
    builder.push(key, value);
    CTreeMap {
        tree: builder.finish(),
    }
}

#[cfg(test)]
mod tests {
    use super::CTreeMap;

    #[test]
    fn maps_stay_with_ranks_or_without() {
        let mut ranked = CTreeMap::with_ranks();
        let mut plain: CTreeMap<u32, ()> = (0..1000).map(|key| (key, ())).collect();
        ranked.append(&mut plain);
        assert!(ranked.tree.has_ranks() && !plain.tree.has_ranks());
        assert_eq!((ranked.rank(&500), plain.len()), (500, 0));
        assert_eq!(ranked.check(), Ok(()));
        assert!(ranked.split_off(&600).tree.has_ranks());
        assert!(ranked.clone().tree.has_ranks());
    }
}
