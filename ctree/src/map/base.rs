//! [`CTreeMap`]: its constructors, lookups of one key, and changes of one entry.

use core::borrow::Borrow;
use core::mem;
use core::ops::{Bound, RangeBounds};

use allocator_api2::alloc::{Allocator, Global};

use super::entry::{Entry, OccupiedEntry, VacantEntry};
use super::into_iter::{IntoIter, IntoKeys, IntoValues};
use super::iter::{Iter, IterMut, Keys, Range, RangeMut, Values, ValuesMut};
use super::walk::{RangeWalk, Walk};
use crate::Head;
use crate::rank_iter::assert_range;
use crate::tree::{Edge, Found, Options, Place, Tree};

/// An ordered map for lookups that miss the cache, with all methods of
/// [`BTreeMap`](alloc::collections::BTreeMap) and more.
///
/// Keys may be of any type with [`Ord`]. Keys that are integers, characters, strings, byte slices
/// or common tuples of integers are searched by SIMD over integers that stand for their order;
/// [`with_heads`](Self::with_heads) does the same for a type of your own. All others are found by
/// binary search in each node.
///
/// # Beyond `BTreeMap`
/// - many keys at once, with their cache misses overlapped: [`get_many`](Self::get_many),
///   [`get_many_with`](Self::get_many_with), [`contains_many`](Self::contains_many),
///   [`insert_many`](Self::insert_many);
/// - [cursors](Self::lower_bound) that move in both directions, insert and remove;
/// - ranks: [`rank`](Self::rank), [`get_index`](Self::get_index),
///   [`get_index_of`](Self::get_index_of), fast in a map [`with_ranks`](Self::with_ranks);
/// - [`from_sorted_iter`](Self::from_sorted_iter), [`compact`](Self::compact),
///   [`memory_usage`](Self::memory_usage), [`check`](Self::check);
/// - an allocator of one's own, on stable Rust: [`new_in`](Self::new_in).
///
/// # Cost
/// A lookup, insertion or removal visits one node a level, O(log n) levels, and waits for memory
/// once a level.
///
/// # Memory
/// A map takes 32 bytes on 64-bit targets, and the size of its allocator. An empty map allocates
/// nothing, a small one a node of at most 256 bytes, or of eight entries where these take up to
/// 512. Larger maps take memory in chunks, which grow to 2 MiB.
///
/// Nodes are at least a third full on average. When more than a sixteenth of them are empty, others
/// move to their places and whole chunks are freed. A map that was emptied entry by entry keeps one
/// node. [`clear`](Self::clear) frees all memory, [`into_iter`](Self::into_iter) the nodes that it
/// has passed, and [`compact`](Self::compact) makes the nodes full again.
///
/// # A wrong `Ord`
/// As for `BTreeMap`, an order that is not total, or that changes while a key is in the map, may
/// lead to wrong answers or panics, never to undefined behaviour.
///
/// # Examples
/// ```
/// use ctree::CTreeMap;
///
/// let mut stock = CTreeMap::new();
/// stock.insert("apples", 3);
/// stock.insert("pears", 5);
/// *stock.entry("apples").or_insert(0) += 4;
/// assert_eq!(stock["apples"], 7);
/// assert_eq!(stock.range("b"..).next(), Some((&"pears", &5)));
/// assert_eq!(stock.into_iter().collect::<Vec<_>>(), [("apples", 7), ("pears", 5)]);
/// ```
pub struct CTreeMap<K, V, A: Allocator = Global> {
    pub(crate) tree: Tree<K, V, A>,
}

impl<K, V> CTreeMap<K, V> {
    /// Makes an empty map, which allocates nothing.
    #[inline]
    #[must_use]
    pub const fn new() -> CTreeMap<K, V> {
        CTreeMap::new_in(Global)
    }

    /// Makes an empty map whose inner nodes count the entries below them.
    ///
    /// [`rank`](Self::rank), [`get_index`](Self::get_index) and
    /// [`get_index_of`](Self::get_index_of) then take O(log n) instead of O(n). An insertion or
    /// removal changes the counts on its way up to the root, which other maps do not pay for.
    ///
    /// # Examples
    /// ```
    /// let mut map = ctree::CTreeMap::with_ranks();
    /// map.extend((0..1000).map(|n| (2 * n, ())));
    /// assert_eq!(map.rank(&101), 51);
    /// assert_eq!(map.get_index(51), Some((&102, &())));
    /// ```
    #[must_use]
    pub const fn with_ranks() -> CTreeMap<K, V> {
        CTreeMap::with_ranks_in(Global)
    }

    /// Makes an empty map that searches by the [heads](Head) of its keys first.
    ///
    /// Not needed for the types that are recognised without it: see [the type](Self).
    ///
    /// # Examples
    /// ```
    /// use ctree::{CTreeMap, Head};
    ///
    /// #[derive(PartialEq, Eq, PartialOrd, Ord)]
    /// struct Version { major: u32, minor: u32, note: String }
    ///
    /// // SAFETY: the type has no lifetimes.
    /// unsafe impl Head for Version {
    ///     // Compared before `note`, which decides only between versions that are equal so far.
    ///     fn head(&self) -> u64 { u64::from(self.major) << 32 | u64::from(self.minor) }
    /// }
    ///
    /// let mut map = CTreeMap::with_heads();
    /// map.insert(Version { major: 1, minor: 95, note: String::from("stable") }, 2026);
    /// assert_eq!(map.first_key_value().map(|(version, _)| version.minor), Some(95));
    /// ```
    #[must_use]
    pub fn with_heads() -> CTreeMap<K, V>
    where
        K: Head,
    {
        CTreeMap::with_heads_in(Global)
    }
}

impl<K, V, A: Allocator> CTreeMap<K, V, A> {
    /// Makes an empty map whose nodes come from `alloc`.
    #[inline]
    #[must_use]
    pub const fn new_in(alloc: A) -> CTreeMap<K, V, A> {
        CTreeMap::with_options(alloc, Options::PLAIN)
    }

    /// [`with_ranks`](CTreeMap::with_ranks), its nodes from `alloc`.
    #[must_use]
    pub const fn with_ranks_in(alloc: A) -> CTreeMap<K, V, A> {
        CTreeMap::with_options(alloc, Options::RANKED)
    }

    /// [`with_heads`](CTreeMap::with_heads), its nodes from `alloc`.
    #[must_use]
    pub fn with_heads_in(alloc: A) -> CTreeMap<K, V, A>
    where
        K: Head,
    {
        CTreeMap::with_options(alloc, Options::HEADED)
    }

    #[inline]
    pub(super) const fn with_options(alloc: A, options: Options<K, V>) -> CTreeMap<K, V, A> {
        CTreeMap {
            tree: Tree::new_in(alloc, options),
        }
    }

    /// An empty map with the options and the allocator of this one.
    pub(super) fn new_like(&self) -> CTreeMap<K, V, A>
    where
        A: Clone,
    {
        CTreeMap::with_options(self.tree.allocator().clone(), self.tree.options())
    }

    /// The allocator that the nodes come from.
    pub fn allocator(&self) -> &A {
        self.tree.allocator()
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there are no entries.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all entries and frees all memory. Ranks, heads and the allocator stay.
    pub fn clear(&mut self) {
        self.tree.clear();
    }

    #[inline]
    fn first_place(&self) -> Option<Place> {
        let root = self.tree.root()?.0;
        let form = self.tree.form();
        // SAFETY: the root is a node of this tree, and the edge one of its edges.
        unsafe { form.next(&mut form.first_edge_below(root)) }
    }

    #[inline]
    fn last_place(&self) -> Option<Place> {
        let root = self.tree.root()?.0;
        let form = self.tree.form();
        // SAFETY: the root is a node of this tree, and the edge one of its edges.
        unsafe { form.prev(&mut form.last_edge_below(root)) }
    }

    /// # Safety
    /// `place` is the place of an entry of this tree, as it is now.
    #[inline(always)]
    pub(super) unsafe fn entry_at(&self, place: Place) -> (&K, &V) {
        let form = self.tree.form();
        // SAFETY: by the contract there is an entry at this place, and it is borrowed with the map.
        unsafe {
            (
                &*form.key_at(place.node, place.slot),
                &*form.value_at(place.node, place.slot),
            )
        }
    }

    /// # Safety
    /// `place` is the place of an entry of this tree, as it is now.
    #[inline(always)]
    pub(super) unsafe fn entry_at_mut(&mut self, place: Place) -> (&K, &mut V) {
        let form = self.tree.form();
        // SAFETY: by the contract there is an entry at this place, and it is borrowed mutably with
        // the map.
        unsafe {
            (
                &*form.key_at(place.node, place.slot),
                &mut *form.value_at(place.node, place.slot),
            )
        }
    }

    /// The value of `key`.
    #[inline]
    pub fn get<Q: ?Sized + Ord>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q> + Ord,
    {
        match self.tree.find(key) {
            // SAFETY: the place was just found, and the map is borrowed since.
            Found::Entry(place) => Some(unsafe { self.entry_at(place) }.1),
            Found::Gap(_) => None,
        }
    }

    /// The stored key that equals `key`, and its value.
    #[inline]
    pub fn get_key_value<Q: ?Sized + Ord>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q> + Ord,
    {
        match self.tree.find(key) {
            // SAFETY: the place was just found, and the map is borrowed since.
            Found::Entry(place) => Some(unsafe { self.entry_at(place) }),
            Found::Gap(_) => None,
        }
    }

    /// The value of `key`, to change it.
    #[inline]
    pub fn get_mut<Q: ?Sized + Ord>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q> + Ord,
    {
        match self.tree.find(key) {
            // SAFETY: the place was just found, and the map is borrowed since.
            Found::Entry(place) => Some(unsafe { self.entry_at_mut(place) }.1),
            Found::Gap(_) => None,
        }
    }

    /// Whether there is an entry of `key`.
    #[inline]
    pub fn contains_key<Q: ?Sized + Ord>(&self, key: &Q) -> bool
    where
        K: Borrow<Q> + Ord,
    {
        matches!(self.tree.find(key), Found::Entry(_))
    }

    /// Removes the entry of `key`, and returns its value. See [the type](Self#memory) on memory.
    #[inline]
    pub fn remove<Q: ?Sized + Ord>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q> + Ord,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes the entry of `key`, and returns the stored key and the value.
    #[inline]
    pub fn remove_entry<Q: ?Sized + Ord>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q> + Ord,
    {
        match self.tree.find(key) {
            Found::Entry(place) => {
                // SAFETY: the place was just found, and the map is borrowed mutably since.
                let (key, value, _) = unsafe { self.tree.remove_at(place) };
                Some((key, value))
            }
            Found::Gap(_) => None,
        }
    }

    /// All entries in the order of their keys.
    #[inline]
    pub fn iter(&self) -> Iter<'_, K, V> {
        // SAFETY: the result borrows the map shared, so that its nodes stay as they are.
        unsafe { Iter::new(Walk::over(&self.tree)) }
    }

    /// All entries in the order of their keys, the values to change.
    #[inline]
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        // SAFETY: the result borrows the map mutably, so that its nodes stay as they are.
        unsafe { IterMut::new(Walk::over(&self.tree)) }
    }

    /// All keys in order.
    #[inline]
    pub fn keys(&self) -> Keys<'_, K, V> {
        // SAFETY: the result borrows the map shared, so that its nodes stay as they are.
        unsafe { Keys::new(Walk::over(&self.tree)) }
    }

    /// All values in the order of their keys.
    #[inline]
    pub fn values(&self) -> Values<'_, K, V> {
        // SAFETY: the result borrows the map shared, so that its nodes stay as they are.
        unsafe { Values::new(Walk::over(&self.tree)) }
    }

    /// All values in the order of their keys, to change them.
    #[inline]
    pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
        // SAFETY: the result borrows the map mutably, so that its nodes stay as they are.
        unsafe { ValuesMut::new(Walk::over(&self.tree)) }
    }

    /// The keys, owned, in order. The values are dropped on the way.
    #[inline]
    pub fn into_keys(self) -> IntoKeys<K, V, A> {
        IntoKeys::new(self.into_iter())
    }

    /// The values, owned, in the order of their keys. The keys are dropped on the way.
    #[inline]
    pub fn into_values(self) -> IntoValues<K, V, A> {
        IntoValues::new(self.into_iter())
    }

    /// The walk between bounds, which are asked for once: a `RangeBounds` may answer differently
    /// the next time.
    fn walk_within<Q: ?Sized + Ord>(&self, bounds: &impl RangeBounds<Q>) -> RangeWalk<K, V>
    where
        K: Borrow<Q> + Ord,
    {
        // As in std's maps, one that never held anything has nothing to compare with, and refuses
        // no bounds.
        if self.tree.root().is_none() {
            return RangeWalk::NONE;
        }
        let (start, end) = (bounds.start_bound(), bounds.end_bound());
        assert_range(start, end);
        let start = self.edge_at_start(start);
        let end = match end {
            Bound::Included(key) => Some(self.tree.upper_edge(key)),
            Bound::Excluded(key) => Some(self.tree.lower_edge(key)),
            Bound::Unbounded => None,
        };
        // SAFETY: the edges were just found. All callers borrow the map for as long as they use the
        // walk, so that its nodes stay as they are.
        unsafe { RangeWalk::between(&self.tree, start, end) }
    }

    /// The gap before the first key within a bound; `None` stands for the beginning.
    pub(super) fn edge_at_start<Q: ?Sized + Ord>(&self, bound: Bound<&Q>) -> Option<Edge>
    where
        K: Borrow<Q> + Ord,
    {
        match bound {
            Bound::Included(key) => Some(self.tree.lower_edge(key)),
            Bound::Excluded(key) => Some(self.tree.upper_edge(key)),
            Bound::Unbounded => None,
        }
    }

    /// The entries within bounds, in the order of their keys. Costs a lookup for each bound.
    ///
    /// # Panics
    /// When the start is greater than the end, or both are equal and excluded.
    ///
    /// # Examples
    /// ```
    /// let map = ctree::CTreeMap::from([(3, "a"), (5, "b"), (8, "c")]);
    /// assert_eq!(map.range(4..).next(), Some((&5, &"b"))); // the successor
    /// assert_eq!(map.range(..=4).next_back(), Some((&3, &"a"))); // the predecessor
    /// assert_eq!(map.range(3..8).count(), 2);
    /// ```
    #[inline]
    pub fn range<T: ?Sized + Ord, R>(&self, range: R) -> Range<'_, K, V>
    where
        K: Borrow<T> + Ord,
        R: RangeBounds<T>,
    {
        let walk = self.walk_within(&range);
        // SAFETY: the result borrows the map shared.
        unsafe { Range::new(walk) }
    }

    /// [`range`](Self::range), with values to change.
    ///
    /// # Panics
    /// As [`range`](Self::range).
    #[inline]
    pub fn range_mut<T: ?Sized + Ord, R>(&mut self, range: R) -> RangeMut<'_, K, V>
    where
        K: Borrow<T> + Ord,
        R: RangeBounds<T>,
    {
        let walk = self.walk_within(&range);
        // SAFETY: the result borrows the map mutably.
        unsafe { RangeMut::new(walk) }
    }
}

impl<K: Ord, V, A: Allocator> CTreeMap<K, V, A> {
    /// The entry with the smallest key.
    #[inline]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        // SAFETY: the place was just found, and the map is borrowed since.
        self.first_place()
            .map(|place| unsafe { self.entry_at(place) })
    }

    /// The entry with the largest key.
    #[inline]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        // SAFETY: the place was just found, and the map is borrowed since.
        self.last_place()
            .map(|place| unsafe { self.entry_at(place) })
    }

    /// The entry with the smallest key, to change or remove it.
    pub fn first_entry(&mut self) -> Option<OccupiedEntry<'_, K, V, A>> {
        let place = self.first_place()?;
        // SAFETY: the place was just found, and the map is borrowed mutably since.
        Some(unsafe { OccupiedEntry::new(self, place) })
    }

    /// The entry with the largest key, to change or remove it.
    pub fn last_entry(&mut self) -> Option<OccupiedEntry<'_, K, V, A>> {
        let place = self.last_place()?;
        // SAFETY: the place was just found, and the map is borrowed mutably since.
        Some(unsafe { OccupiedEntry::new(self, place) })
    }

    /// Removes the entry with the smallest key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        self.first_entry().map(OccupiedEntry::remove_entry)
    }

    /// Removes the entry with the largest key.
    pub fn pop_last(&mut self) -> Option<(K, V)> {
        self.last_entry().map(OccupiedEntry::remove_entry)
    }

    /// Sets the value of `key`, and returns the value that it had. A stored key that equals `key`
    /// stays.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.tree.find_to_change(&key) {
            Found::Entry(place) => {
                // Before the old value stands in the return slot, where it is lost if this panics.
                drop(key);
                // SAFETY: the place was just found, and the map is borrowed mutably since.
                let (_, old) = unsafe { self.entry_at_mut(place) };
                Some(mem::replace(old, value))
            }
            Found::Gap(edge) => {
                // SAFETY: the edge was just found, and the map is borrowed mutably since.
                unsafe { self.tree.insert_at(edge, key, value) };
                None
            }
        }
    }

    /// Puts `key` into the place of the key that equals it, which is given back and whose value
    /// stays; or inserts it with `value`.
    pub(crate) fn replace_key(&mut self, key: K, value: V) -> Option<K> {
        match self.tree.find_to_change(&key) {
            Found::Entry(place) => {
                // SAFETY: the place was just found, and the map is borrowed mutably since.
                let old = unsafe { &mut *self.tree.form().key_at(place.node, place.slot) };
                Some(mem::replace(old, key))
            }
            Found::Gap(edge) => {
                // SAFETY: the edge was just found, and the map is borrowed mutably since.
                unsafe { self.tree.insert_at(edge, key, value) };
                None
            }
        }
    }

    /// The entry of `key`, to look at, change, insert or remove, with one search.
    #[inline]
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V, A> {
        match self.tree.find_to_change(&key) {
            // SAFETY: the place was just found, and the map is borrowed mutably since.
            Found::Entry(place) => Entry::Occupied(unsafe { OccupiedEntry::new(self, place) }),
            // SAFETY: the edge was just found, and the map is borrowed mutably since.
            Found::Gap(edge) => Entry::Vacant(unsafe { VacantEntry::new(self, key, edge) }),
        }
    }
}

impl<K, V, A: Allocator> IntoIterator for CTreeMap<K, V, A> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V, A>;

    /// Moves the entries out in the order of their keys. Returns the memory of nodes that the
    /// iterator has passed, a chunk at a time, and the rest when it is dropped.
    #[inline]
    fn into_iter(self) -> IntoIter<K, V, A> {
        IntoIter::new(self.tree)
    }
}
