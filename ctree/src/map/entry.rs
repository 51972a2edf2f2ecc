//! The entry of a key that was searched for: there or not, with one search.

use core::fmt;
use core::mem;

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeMap;
use crate::tree::{Edge, Place};

/// The entry of a key, from [`CTreeMap::entry`].
pub enum Entry<'a, K, V, A: Allocator = Global> {
    /// The key is not in the map.
    Vacant(VacantEntry<'a, K, V, A>),
    /// The key is in the map.
    Occupied(OccupiedEntry<'a, K, V, A>),
}

/// A key that is not in the map, and where it would be.
///
/// Invariant: `edge` is an edge of the tree of `map`, as it is now.
pub struct VacantEntry<'a, K, V, A: Allocator = Global> {
    map: &'a mut CTreeMap<K, V, A>,
    key: K,
    edge: Edge,
}

/// An entry that is in the map.
///
/// Invariant: `place` is the place of an entry of the tree of `map`, as it is now.
pub struct OccupiedEntry<'a, K, V, A: Allocator = Global> {
    map: &'a mut CTreeMap<K, V, A>,
    place: Place,
}

/// The error of [`CTreeMap::try_insert`]: the key is in the map already.
pub struct OccupiedError<'a, K, V, A: Allocator = Global> {
    /// The entry that is in the map.
    pub entry: OccupiedEntry<'a, K, V, A>,
    /// The value that was not inserted.
    pub value: V,
}

impl<K: Ord, V, A: Allocator> CTreeMap<K, V, A> {
    /// Inserts an entry, unless its key is in the map.
    ///
    /// Takes O(log n), with one search.
    ///
    /// # Errors
    /// The entry that is in the map, and `value`. The map stays as it is.
    ///
    /// # Examples
    /// ```
    /// let mut map = ctree::CTreeMap::new();
    /// assert_eq!(map.try_insert(37, "a").unwrap(), &"a");
    ///
    /// let error = map.try_insert(37, "b").unwrap_err();
    /// assert_eq!((error.entry.key(), error.entry.get(), error.value), (&37, &"a", "b"));
    /// ```
    pub fn try_insert(&mut self, key: K, value: V) -> Result<&mut V, OccupiedError<'_, K, V, A>> {
        match self.entry(key) {
            Entry::Occupied(entry) => Err(OccupiedError { entry, value }),
            Entry::Vacant(entry) => Ok(entry.insert(value)),
        }
    }
}

impl<'a, K: Ord, V, A: Allocator> Entry<'a, K, V, A> {
    /// The value, to change it, after inserting `default` if there was none.
    #[inline]
    pub fn or_insert(self, default: V) -> &'a mut V {
        self.or_insert_with_key(|_| default)
    }

    /// The value, to change it, after inserting the result of `default` if there was none.
    #[inline]
    pub fn or_insert_with<F: FnOnce() -> V>(self, default: F) -> &'a mut V {
        self.or_insert_with_key(|_| default())
    }

    /// The value, to change it, after inserting what `default` makes of the key if there was none.
    #[inline]
    pub fn or_insert_with_key<F: FnOnce(&K) -> V>(self, default: F) -> &'a mut V {
        match self {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let value = default(entry.key());
                entry.insert(value)
            }
        }
    }

    /// The key: the stored one, or else the one searched for.
    #[inline]
    pub fn key(&self) -> &K {
        match self {
            Entry::Occupied(entry) => entry.key(),
            Entry::Vacant(entry) => entry.key(),
        }
    }

    /// Changes the value if there is one.
    #[inline]
    pub fn and_modify<F>(self, f: F) -> Self
    where
        F: FnOnce(&mut V),
    {
        match self {
            Entry::Occupied(mut entry) => {
                f(entry.get_mut());
                Entry::Occupied(entry)
            }
            Entry::Vacant(entry) => Entry::Vacant(entry),
        }
    }

    /// Sets the value, and returns the entry.
    #[inline]
    pub fn insert_entry(self, value: V) -> OccupiedEntry<'a, K, V, A> {
        match self {
            Entry::Occupied(mut entry) => {
                entry.insert(value);
                entry
            }
            Entry::Vacant(entry) => entry.insert_entry(value),
        }
    }
}

impl<'a, K: Ord, V: Default, A: Allocator> Entry<'a, K, V, A> {
    /// The value, to change it, after inserting the default if there was none.
    #[inline]
    pub fn or_default(self) -> &'a mut V {
        self.or_insert_with_key(|_| V::default())
    }
}

impl<'a, K, V, A: Allocator> VacantEntry<'a, K, V, A> {
    /// # Safety
    /// `edge` is an edge of the tree of `map`, as it is now.
    #[inline(always)]
    pub(super) unsafe fn new(map: &'a mut CTreeMap<K, V, A>, key: K, edge: Edge) -> Self {
        VacantEntry { map, key, edge }
    }
}

impl<'a, K: Ord, V, A: Allocator> VacantEntry<'a, K, V, A> {
    /// The key searched for.
    #[inline]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Gives the key back.
    #[inline]
    pub fn into_key(self) -> K {
        self.key
    }

    /// Inserts the key with `value`.
    #[inline]
    pub fn insert(self, value: V) -> &'a mut V {
        self.insert_entry(value).into_mut()
    }

    /// Inserts the key with `value`, and returns the entry.
    #[inline]
    pub fn insert_entry(self, value: V) -> OccupiedEntry<'a, K, V, A> {
        let VacantEntry { map, key, edge } = self;
        // SAFETY: by the invariant `edge` is an edge of this tree as it is now.
        let place = unsafe { map.tree.insert_at(edge, key, value) };
        OccupiedEntry { map, place }
    }
}

impl<'a, K, V, A: Allocator> OccupiedEntry<'a, K, V, A> {
    /// # Safety
    /// `place` is the place of an entry of the tree of `map`, as it is now.
    #[inline(always)]
    pub(super) unsafe fn new(map: &'a mut CTreeMap<K, V, A>, place: Place) -> Self {
        OccupiedEntry { map, place }
    }
}

impl<'a, K: Ord, V, A: Allocator> OccupiedEntry<'a, K, V, A> {
    /// The stored key.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &K {
        // SAFETY: by the invariant there is an entry at this place.
        unsafe { self.map.entry_at(self.place) }.0
    }

    /// Removes the entry, and returns the stored key and the value.
    #[inline]
    pub fn remove_entry(self) -> (K, V) {
        // SAFETY: by the invariant there is an entry at this place; the handle is consumed.
        let (key, value, _) = unsafe { self.map.tree.remove_at(self.place) };
        (key, value)
    }

    /// The value.
    #[inline]
    #[must_use]
    pub fn get(&self) -> &V {
        // SAFETY: by the invariant there is an entry at this place.
        unsafe { self.map.entry_at(self.place) }.1
    }

    /// The value, to change it. See [`into_mut`](Self::into_mut) for a reference that outlives the
    /// entry.
    #[inline]
    pub fn get_mut(&mut self) -> &mut V {
        // SAFETY: by the invariant there is an entry at this place.
        unsafe { self.map.entry_at_mut(self.place) }.1
    }

    /// The value, to change it, for as long as the map is borrowed.
    #[inline]
    #[must_use = "`self` will be dropped if the result is not used"]
    pub fn into_mut(self) -> &'a mut V {
        // SAFETY: by the invariant there is an entry at this place.
        unsafe { self.map.entry_at_mut(self.place) }.1
    }

    /// Sets the value, and returns the old one.
    #[inline]
    pub fn insert(&mut self, value: V) -> V {
        mem::replace(self.get_mut(), value)
    }

    /// Removes the entry, and returns its value.
    #[inline]
    pub fn remove(self) -> V {
        self.remove_entry().1
    }
}

impl<K: fmt::Debug + Ord, V: fmt::Debug, A: Allocator> fmt::Debug for Entry<'_, K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Vacant(entry) => f.debug_tuple("Entry").field(entry).finish(),
            Entry::Occupied(entry) => f.debug_tuple("Entry").field(entry).finish(),
        }
    }
}

impl<K: fmt::Debug + Ord, V, A: Allocator> fmt::Debug for VacantEntry<'_, K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VacantEntry").field(self.key()).finish()
    }
}

impl<K: fmt::Debug + Ord, V: fmt::Debug, A: Allocator> fmt::Debug for OccupiedEntry<'_, K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OccupiedEntry")
            .field("key", self.key())
            .field("value", self.get())
            .finish()
    }
}

impl<K: fmt::Debug + Ord, V: fmt::Debug, A: Allocator> fmt::Debug for OccupiedError<'_, K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OccupiedError")
            .field("key", self.entry.key())
            .field("old_value", self.entry.get())
            .field("new_value", &self.value)
            .finish()
    }
}

impl<K: fmt::Debug + Ord, V: fmt::Debug, A: Allocator> fmt::Display for OccupiedError<'_, K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "failed to insert {:?}, key {:?} already exists with value {:?}",
            self.value,
            self.entry.key(),
            self.entry.get(),
        )
    }
}

impl<K: fmt::Debug + Ord, V: fmt::Debug, A: Allocator> core::error::Error
    for OccupiedError<'_, K, V, A>
{
}
