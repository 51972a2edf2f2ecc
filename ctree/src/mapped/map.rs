//! [`MappedCTreeMap`]: how it is made, and everything that looks up.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::ops::{Range, RangeBounds};
use std::io::{self, Cursor, Seek, Write};
use std::path::Path;

use super::error::{OpenError, VerifyError, WriteError};
use super::iter::{Iter, Keys, Values};
use super::open::OpenOptions;
use super::stored::{AsStored, Stored, StoredKey};
use super::tree::Tree;
use super::write;
use crate::rank_iter;

/// An ordered map that is a file: written once, then looked up in place.
///
/// Keys and values are integers, floats, `bool`, `char`, arrays of numbers, `str`, `[u8]`, or types
/// of your own that are [`Plain`](super::Plain). Types of variable length are named without their
/// reference: `MappedCTreeMap<str, [u8]>`.
///
/// # Writing
/// [`write`](Self::write) takes entries in the order of their keys from any iterator,
/// [`write_unsorted`](Self::write_unsorted) in any order. The file appears complete or not at all.
///
/// # Opening
/// Opening reads and checks the header and the index, which has about 1/16 of the size of the keys.
/// The rest is read as lookups touch it.
///
/// - [`open`](Self::open) maps the file. It is `unsafe`: the file must not change while it is open.
/// - [`open_immutable`](Self::open_immutable) maps files that the kernel protects: sealed memory
///   files, fs-verity.
/// - [`read`](Self::read) copies the file into memory, on huge pages;
///   [`from_bytes`](Self::from_bytes) copies a slice.
///
/// Mapping is unsafe because a lookup gives `&str` and `&[u8]` that lie in the file. Their bytes
/// change if another process writes to the file, and no check or lock prevents that. Replacing the
/// file as a whole, as [`write`](Self::write) does, is fine. A page of a mapped file that cannot be
/// read raises `SIGBUS`, which ends the process; `read` reports it as an error.
///
/// # Untrusted files
/// Whatever bytes a file holds, there is no undefined behaviour and no panic. Truncated files,
/// files of other types or versions, and damage in header or index are refused with an
/// [`OpenError`]. [`verify`](Self::verify) reads the whole file and finds damage elsewhere; lookups
/// check no sums, and may give wrong answers in a damaged file.
///
/// # Cost
/// A lookup searches the index in memory, as [`FrozenCTreeMap`](crate::FrozenCTreeMap) does, and
/// one leaf of the file, which does not cross a page. Keys and values of variable length cost one
/// more miss each.
///
/// # A wrong `Ord`
/// If the order of `K` is not total, or not that of the program that wrote the file, lookups may
/// miss keys. It is never undefined behaviour.
///
/// # Examples
/// ```
/// use ctree::MappedCTreeMap;
///
/// # let folder = std::env::temp_dir().join(format!("ctree-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let path = folder.join("squares.ctree");
/// MappedCTreeMap::<u64, u64>::write(&path, (0..1000).map(|n| (n * n, n)))?;
///
/// // SAFETY: nothing else changes the file.
/// let squares = unsafe { MappedCTreeMap::<u64, u64>::open(&path) }?;
/// assert_eq!(squares.get(&144), Some(12));
/// assert_eq!(squares.rank(&145), 13); // thirteen squares are less than 145
/// assert_eq!(squares.range(100..=200).map(|(square, _)| square).next(), Some(100));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MappedCTreeMap<K: StoredKey + ?Sized, V: Stored + ?Sized> {
    tree: Tree<K, V>,
}

impl<K: StoredKey + ?Sized, V: Stored + ?Sized> MappedCTreeMap<K, V> {
    /// A map of an open file.
    pub(super) fn new(tree: Tree<K, V>) -> Self {
        MappedCTreeMap { tree }
    }

    /// Writes a file of `entries`, whose keys must be strictly ascending, and returns their number.
    ///
    /// The file at `path` is replaced in one step when all is written and flushed. If `path` is a
    /// symbolic link, the file that it names is replaced. The new file has the permissions of the
    /// old one. Holds a sixteenth of the keys in memory; values and heaps wait in memory or in
    /// temporary files in the same folder.
    ///
    /// # Errors
    /// All of [`WriteError`]. The old file is then untouched, and nothing is left behind; so also
    /// if the iterator panics.
    ///
    /// # Examples
    /// ```
    /// use ctree::MappedCTreeMap;
    /// use std::collections::BTreeMap;
    ///
    /// # let path = std::env::temp_dir().join(format!("ctree-doc-write-{}", std::process::id()));
    /// let trees = BTreeMap::from([("oak".to_string(), 500), ("yew".to_string(), 2000)]);
    /// MappedCTreeMap::<str, u32>::write(&path, &trees)?;
    /// assert_eq!(MappedCTreeMap::<str, u32>::read(&path)?.get("yew"), Some(2000));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write<B: AsStored<K>, C: AsStored<V>>(
        path: impl AsRef<Path>,
        entries: impl IntoIterator<Item = (B, C)>,
    ) -> Result<usize, WriteError> {
        write::write_file::<K, V, B, C>(path.as_ref(), entries)
    }

    /// [`write`](Self::write) for entries in any order, which are sorted in memory; of equal keys
    /// the last stays.
    pub fn write_unsorted<B: AsStored<K>, C: AsStored<V>>(
        path: impl AsRef<Path>,
        entries: impl IntoIterator<Item = (B, C)>,
    ) -> Result<usize, WriteError> {
        Self::write(path, write::sorted::<K, V, B, C>(entries))
    }

    /// Writes the bytes of a file from the start of `out` on, which should be empty. Values and
    /// heaps wait in memory.
    /// After an error `out` holds nothing that opens.
    pub fn write_to<B: AsStored<K>, C: AsStored<V>>(
        out: impl Write + Seek,
        entries: impl IntoIterator<Item = (B, C)>,
    ) -> Result<usize, WriteError> {
        write::write_entries::<K, V, B, C>(out, None, entries)
    }

    /// The bytes that a file of `entries` would have.
    pub fn to_bytes<B: AsStored<K>, C: AsStored<V>>(
        entries: impl IntoIterator<Item = (B, C)>,
    ) -> Result<Vec<u8>, WriteError> {
        let mut out = Cursor::new(Vec::new());
        Self::write_to(&mut out, entries)?;
        Ok(out.into_inner())
    }

    /// Maps a file. See [`OpenOptions::open`].
    ///
    /// # Safety
    /// Until the map is dropped, nothing, in this process or another, may write to the file or
    /// shorten it. (Renaming another file over it is fine, as [`write`](Self::write) does.)
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        // SAFETY: the caller promises that nothing writes to the file or shortens it while the map
        // lives.
        unsafe { OpenOptions::new().open(path) }
    }

    /// Maps a file that the kernel protects against changes. See [`OpenOptions::open_immutable`].
    pub fn open_immutable(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        OpenOptions::new().open_immutable(path)
    }

    /// Reads a whole file into memory. See [`OpenOptions::read`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        OpenOptions::new().read(path)
    }

    /// Copies the bytes of a file. See [`OpenOptions::from_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, OpenError> {
        OpenOptions::new().from_bytes(bytes)
    }

    /// Reads the whole file and checks that it is what was written: the checksum of every page, and
    /// all that the format demands of keys and values.
    ///
    /// # Errors
    /// The first fault.
    pub fn verify(&self) -> Result<(), VerifyError> {
        self.tree.verify()
    }

    /// Reads and maps all pages of the file, so that no later lookup waits for the disk.
    ///
    /// # Errors
    /// That of the operating system. A page that cannot be read is an error on Linux from 5.14 on,
    /// and raises `SIGBUS` elsewhere.
    pub fn warm(&self) -> io::Result<()> {
        self.tree.source().warm()
    }

    /// Length of the file.
    pub fn file_bytes(&self) -> usize {
        self.tree.source().bytes().len()
    }

    /// Bytes of this process's own memory: the index, and the copy of the file if there is one. The
    /// pages of a mapped file belong to the system.
    pub fn memory_usage(&self) -> usize {
        self.tree.memory_bytes()
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn key(&self, rank: usize) -> K::Ref<'_> {
        K::load(self.tree.key_bytes(rank))
    }

    #[inline]
    fn value(&self, rank: usize) -> V::Ref<'_> {
        V::load(self.tree.value_bytes(rank))
    }

    /// The value of `key`: a copy if it is of fixed width, else a reference into the file.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V::Ref<'_>> {
        self.tree.search(key).ok().map(|rank| self.value(rank))
    }

    /// The stored key that equals `key`, and its value.
    #[inline]
    pub fn get_key_value(&self, key: &K) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        self.tree
            .search(key)
            .ok()
            .map(|rank| (self.key(rank), self.value(rank)))
    }

    /// Whether there is an entry of `key`.
    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.tree.search(key).is_ok()
    }

    /// The values of many keys: `results[i]` becomes that of `keys[i]`. The misses of the searches
    /// overlap.
    ///
    /// # Panics
    /// If `keys` and `results` differ in length.
    ///
    /// # Examples
    /// ```
    /// use ctree::MappedCTreeMap;
    ///
    /// let bytes = MappedCTreeMap::<u64, str>::to_bytes([(5, "five"), (7, "seven")])?;
    /// let map = MappedCTreeMap::<u64, str>::from_bytes(&bytes)?;
    /// let mut results = [None; 3];
    /// map.get_many(&[7, 6, 5], &mut results);
    /// assert_eq!(results, [Some("seven"), None, Some("five")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_many<'a, Q: Borrow<K>>(&'a self, keys: &[Q], results: &mut [Option<V::Ref<'a>>]) {
        rank_iter::assert_same_length(keys.len(), results.len());
        self.get_many_with(keys, |index, value| results[index] = value);
    }

    /// Calls `use_value(i, value)` for each of many keys in turn, with the value of `keys[i]`.
    ///
    /// Unlike with [`get_many`](Self::get_many), each value is still in the cache.
    #[inline]
    pub fn get_many_with<'a, Q: Borrow<K>>(
        &'a self,
        keys: &[Q],
        mut use_value: impl FnMut(usize, Option<V::Ref<'a>>),
    ) {
        self.tree.search_many(keys, |index, rank| {
            use_value(index, rank.ok().map(|rank| self.value(rank)));
        });
    }

    /// Whether there are entries of many keys: `results[i]` becomes that of `keys[i]`.
    ///
    /// # Panics
    /// If `keys` and `results` differ in length.
    pub fn contains_many<Q: Borrow<K>>(&self, keys: &[Q], results: &mut [bool]) {
        rank_iter::assert_same_length(keys.len(), results.len());
        self.tree
            .search_many(keys, |index, rank| results[index] = rank.is_ok());
    }

    /// Number of keys less than `query`: the rank of the first key that is not, or `len`.
    #[doc(alias = "lower_bound")]
    #[inline]
    pub fn rank(&self, query: &K) -> usize {
        self.tree.search(query).unwrap_or_else(|rank| rank)
    }

    /// Number of keys less than or equal to `query`.
    #[inline]
    pub fn rank_after(&self, query: &K) -> usize {
        self.tree
            .search(query)
            .map_or_else(|rank| rank, |rank| rank + 1)
    }

    /// [`rank`](Self::rank) of many queries: `ranks[i]` becomes that of `queries[i]`.
    ///
    /// # Panics
    /// If `queries` and `ranks` differ in length.
    pub fn rank_many<Q: Borrow<K>>(&self, queries: &[Q], ranks: &mut [usize]) {
        rank_iter::assert_same_length(queries.len(), ranks.len());
        self.tree.search_many(queries, |index, rank| {
            ranks[index] = rank.unwrap_or_else(|rank| rank);
        });
    }

    /// The rank of `key`, if it is in the map.
    #[inline]
    pub fn get_index_of(&self, key: &K) -> Option<usize> {
        self.tree.search(key).ok()
    }

    /// The entry of a rank, in constant time: the `rank`-th smallest, counted from 0.
    #[doc(alias = "select")]
    #[inline]
    pub fn get_index(&self, rank: usize) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        (rank < self.len()).then(|| (self.key(rank), self.value(rank)))
    }

    /// The entry with the smallest key.
    pub fn first_key_value(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        self.get_index(0)
    }

    /// The entry with the largest key.
    pub fn last_key_value(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        self.get_index(self.len().wrapping_sub(1))
    }

    /// The entries in the order of their keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(&self.tree, 0..self.len())
    }

    /// The keys in order.
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys::new(&self.tree, 0..self.len())
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> Values<'_, K, V> {
        Values::new(&self.tree, 0..self.len())
    }

    fn ranks_within<Q: Borrow<K> + ?Sized>(&self, bounds: &impl RangeBounds<Q>) -> Range<usize> {
        rank_iter::ranks_within::<K>(
            (
                bounds.start_bound().map(Borrow::borrow),
                bounds.end_bound().map(Borrow::borrow),
            ),
            self.len(),
            |key| self.rank(key),
            |key| self.rank_after(key),
        )
    }

    /// The entries whose keys lie within bounds, in order. Bounds may be keys or what borrows as
    /// one: `"a".."b"` in a map of `str`.
    ///
    /// # Panics
    /// If the start is greater than the end, or both are equal and excluded, unless the map is
    /// empty.
    pub fn range<Q: Borrow<K> + ?Sized>(&self, range: impl RangeBounds<Q>) -> Iter<'_, K, V> {
        Iter::new(&self.tree, self.ranks_within(&range))
    }

    pub(super) fn key_range<Q: Borrow<K> + ?Sized>(
        &self,
        range: &impl RangeBounds<Q>,
    ) -> Keys<'_, K, V> {
        Keys::new(&self.tree, self.ranks_within(range))
    }
}

impl<'a, K: StoredKey + ?Sized, V: Stored + ?Sized> IntoIterator for &'a MappedCTreeMap<K, V> {
    type Item = (K::Ref<'a>, V::Ref<'a>);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<K: StoredKey + ?Sized, V: Stored + ?Sized> fmt::Debug for MappedCTreeMap<K, V>
where
    for<'a> K::Ref<'a>: fmt::Debug,
    for<'a> V::Ref<'a>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
