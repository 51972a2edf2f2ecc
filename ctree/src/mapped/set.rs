//! [`MappedCTreeSet`]: a map whose values take no room.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::ops::RangeBounds;
use std::io::{self, Seek, Write};
use std::path::Path;

use super::error::{OpenError, VerifyError, WriteError};
use super::iter::Keys;
use super::map::MappedCTreeMap;
use super::stored::{AsStored, StoredKey};

/// An ordered set that is a file: written once, then looked up in place.
///
/// What [`MappedCTreeMap`] says about keys, writing, opening, errors, untrusted files and cost
/// holds here. A file of a set is a file of a map to `()`: a map from
/// [`OpenOptions`](super::OpenOptions) becomes a set by `From`.
///
/// # Examples
/// ```
/// use ctree::MappedCTreeSet;
///
/// let bytes = MappedCTreeSet::<str>::to_bytes(["oak", "pine", "yew"])?;
/// let trees = MappedCTreeSet::<str>::from_bytes(&bytes)?;
/// assert!(trees.contains("pine") && !trees.contains("palm"));
/// assert_eq!(trees.range("p"..).next(), Some("pine"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MappedCTreeSet<K: StoredKey + ?Sized> {
    map: MappedCTreeMap<K, ()>,
}

impl<K: StoredKey + ?Sized> MappedCTreeSet<K> {
    /// Writes a file of `keys`, which must be strictly ascending, and returns their number. See
    /// [`MappedCTreeMap::write`].
    pub fn write<B: AsStored<K>>(
        path: impl AsRef<Path>,
        keys: impl IntoIterator<Item = B>,
    ) -> Result<usize, WriteError> {
        MappedCTreeMap::<K, ()>::write(path, keys.into_iter().map(|key| (key, ())))
    }

    /// [`write`](Self::write) for keys in any order, which are sorted in memory; of equal keys the
    /// last stays.
    pub fn write_unsorted<B: AsStored<K>>(
        path: impl AsRef<Path>,
        keys: impl IntoIterator<Item = B>,
    ) -> Result<usize, WriteError> {
        MappedCTreeMap::<K, ()>::write_unsorted(path, keys.into_iter().map(|key| (key, ())))
    }

    /// Writes the bytes of a file, from the start of `out` on. See [`MappedCTreeMap::write_to`].
    pub fn write_to<B: AsStored<K>>(
        out: impl Write + Seek,
        keys: impl IntoIterator<Item = B>,
    ) -> Result<usize, WriteError> {
        MappedCTreeMap::<K, ()>::write_to(out, keys.into_iter().map(|key| (key, ())))
    }

    /// The bytes that a file of `keys` would have.
    pub fn to_bytes<B: AsStored<K>>(
        keys: impl IntoIterator<Item = B>,
    ) -> Result<Vec<u8>, WriteError> {
        MappedCTreeMap::<K, ()>::to_bytes(keys.into_iter().map(|key| (key, ())))
    }

    /// Maps a file. See [`OpenOptions::open`](super::OpenOptions::open).
    ///
    /// # Safety
    /// As for [`MappedCTreeMap::open`].
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        // SAFETY: the caller promises that nothing changes or shortens the file until the set is
        // dropped.
        unsafe { MappedCTreeMap::open(path) }.map(Self::from)
    }

    /// Maps a file that the kernel protects against changes. See
    /// [`OpenOptions::open_immutable`](super::OpenOptions::open_immutable).
    pub fn open_immutable(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        MappedCTreeMap::open_immutable(path).map(Self::from)
    }

    /// Reads a whole file into memory. See [`OpenOptions::read`](super::OpenOptions::read).
    pub fn read(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        MappedCTreeMap::read(path).map(Self::from)
    }

    /// Copies the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, OpenError> {
        MappedCTreeMap::from_bytes(bytes).map(Self::from)
    }

    /// Reads and checks the whole file. See [`MappedCTreeMap::verify`].
    pub fn verify(&self) -> Result<(), VerifyError> {
        self.map.verify()
    }

    /// Reads and maps all pages of the file. See [`MappedCTreeMap::warm`].
    pub fn warm(&self) -> io::Result<()> {
        self.map.warm()
    }

    /// Length of the file.
    pub fn file_bytes(&self) -> usize {
        self.map.file_bytes()
    }

    /// Bytes of this process's own memory. See [`MappedCTreeMap::memory_usage`].
    pub fn memory_usage(&self) -> usize {
        self.map.memory_usage()
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

    /// Whether `key` is in the set.
    #[inline]
    pub fn contains(&self, key: &K) -> bool {
        self.map.contains_key(key)
    }

    /// Whether many keys are in the set: `results[i]` becomes whether `keys[i]` is.
    ///
    /// # Panics
    /// If `keys` and `results` differ in length.
    pub fn contains_many<Q: Borrow<K>>(&self, keys: &[Q], results: &mut [bool]) {
        self.map.contains_many(keys, results);
    }

    /// Number of keys less than `query`.
    #[doc(alias = "lower_bound")]
    #[inline]
    pub fn rank(&self, query: &K) -> usize {
        self.map.rank(query)
    }

    /// Number of keys less than or equal to `query`.
    #[inline]
    pub fn rank_after(&self, query: &K) -> usize {
        self.map.rank_after(query)
    }

    /// [`rank`](Self::rank) of many queries: `ranks[i]` becomes that of `queries[i]`.
    ///
    /// # Panics
    /// If `queries` and `ranks` differ in length.
    pub fn rank_many<Q: Borrow<K>>(&self, queries: &[Q], ranks: &mut [usize]) {
        self.map.rank_many(queries, ranks);
    }

    /// The rank of `key`, if it is in the set.
    #[inline]
    pub fn get_index_of(&self, key: &K) -> Option<usize> {
        self.map.get_index_of(key)
    }

    /// The key of a rank, in constant time: the `rank`-th smallest, counted from 0.
    #[doc(alias = "select")]
    #[inline]
    pub fn get_index(&self, rank: usize) -> Option<K::Ref<'_>> {
        self.map.get_index(rank).map(|(key, ())| key)
    }

    /// The smallest key.
    pub fn first(&self) -> Option<K::Ref<'_>> {
        self.get_index(0)
    }

    /// The largest key.
    pub fn last(&self) -> Option<K::Ref<'_>> {
        self.get_index(self.len().wrapping_sub(1))
    }

    /// The keys in order.
    pub fn iter(&self) -> Keys<'_, K, ()> {
        self.map.keys()
    }

    /// The keys within bounds, in order. See [`MappedCTreeMap::range`].
    ///
    /// # Panics
    /// As [`MappedCTreeMap::range`].
    pub fn range<Q: Borrow<K> + ?Sized>(&self, range: impl RangeBounds<Q>) -> Keys<'_, K, ()> {
        self.map.key_range(&range)
    }
}

impl<K: StoredKey + ?Sized> From<MappedCTreeMap<K, ()>> for MappedCTreeSet<K> {
    fn from(map: MappedCTreeMap<K, ()>) -> Self {
        MappedCTreeSet { map }
    }
}

impl<'a, K: StoredKey + ?Sized> IntoIterator for &'a MappedCTreeSet<K> {
    type Item = K::Ref<'a>;
    type IntoIter = Keys<'a, K, ()>;

    fn into_iter(self) -> Keys<'a, K, ()> {
        self.iter()
    }
}

impl<K: StoredKey + ?Sized> fmt::Debug for MappedCTreeSet<K>
where
    for<'a> K::Ref<'a>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
