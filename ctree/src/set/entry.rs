//! The entry of a key that was searched for in a set, with one search.

use core::fmt;

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeSet;
use crate::map;

/// The entry of a key, from [`CTreeSet::entry`].
pub enum Entry<'a, K, A: Allocator = Global> {
    /// The key is in the set.
    Occupied(OccupiedEntry<'a, K, A>),
    /// The key is not in the set.
    Vacant(VacantEntry<'a, K, A>),
}

/// A key that is in the set.
pub struct OccupiedEntry<'a, K, A: Allocator = Global> {
    inner: map::OccupiedEntry<'a, K, (), A>,
}

/// A key that is not in the set, and where it would be.
pub struct VacantEntry<'a, K, A: Allocator = Global> {
    inner: map::VacantEntry<'a, K, (), A>,
}

impl<K: Ord, A: Allocator> CTreeSet<K, A> {
    /// Searches for `key` once, to look at it, insert it or remove it.
    ///
    /// # Examples
    /// ```
    /// use ctree::CTreeSet;
    /// use ctree::set::Entry;
    ///
    /// let (mut once, mut again) = (CTreeSet::new(), CTreeSet::new());
    /// for word in ["a", "b", "a"] {
    ///     match once.entry(word) {
    ///         Entry::Vacant(entry) => entry.insert(),
    ///         Entry::Occupied(entry) => again.entry(*entry.get()).or_insert(),
    ///     }
    /// }
    /// assert_eq!((once.len(), again.len()), (2, 1));
    /// ```
    pub fn entry(&mut self, key: K) -> Entry<'_, K, A> {
        match self.map.entry(key) {
            map::Entry::Occupied(inner) => Entry::Occupied(OccupiedEntry { inner }),
            map::Entry::Vacant(inner) => Entry::Vacant(VacantEntry { inner }),
        }
    }
}

impl<'a, K: Ord, A: Allocator> Entry<'a, K, A> {
    /// Inserts the key if it is not in the set, and returns its entry.
    pub fn insert(self) -> OccupiedEntry<'a, K, A> {
        match self {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(VacantEntry { inner }) => OccupiedEntry {
                inner: inner.insert_entry(()),
            },
        }
    }

    /// Inserts the key if it is not in the set.
    pub fn or_insert(self) {
        if let Entry::Vacant(entry) = self {
            entry.insert();
        }
    }

    /// The key: the one in the set, or else the one searched for.
    pub fn get(&self) -> &K {
        match self {
            Entry::Occupied(entry) => entry.get(),
            Entry::Vacant(entry) => entry.get(),
        }
    }
}

impl<K: Ord, A: Allocator> OccupiedEntry<'_, K, A> {
    /// The key in the set.
    #[must_use]
    pub fn get(&self) -> &K {
        self.inner.key()
    }

    /// Removes the key from the set, and returns it.
    pub fn remove(self) -> K {
        self.inner.remove_entry().0
    }
}

impl<K: Ord, A: Allocator> VacantEntry<'_, K, A> {
    /// The key searched for.
    pub fn get(&self) -> &K {
        self.inner.key()
    }

    /// Returns the key searched for.
    pub fn into_value(self) -> K {
        self.inner.into_key()
    }

    /// Inserts the key.
    pub fn insert(self) {
        self.inner.insert(());
    }
}

impl<K: fmt::Debug + Ord, A: Allocator> fmt::Debug for Entry<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Vacant(entry) => f.debug_tuple("Entry").field(entry).finish(),
            Entry::Occupied(entry) => f.debug_tuple("Entry").field(entry).finish(),
        }
    }
}

impl<K: fmt::Debug + Ord, A: Allocator> fmt::Debug for OccupiedEntry<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OccupiedEntry")
            .field("value", self.get())
            .finish()
    }
}

impl<K: fmt::Debug + Ord, A: Allocator> fmt::Debug for VacantEntry<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VacantEntry").field(self.get()).finish()
    }
}
