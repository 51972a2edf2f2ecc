//! [`MappedCTreeMap`]: how it is made, and everything that looks up.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::ops::{Bound, RangeBounds};
use std::io::{self, Cursor, Seek, Write};
use std::path::Path;

use super::error::{OpenError, VerifyError, WriteError};
use super::iter::{Iter, Keys, Values};
use super::open::OpenOptions;
use super::stored::{AsStored, Stored, StoredKey};
use super::tree::Tree;
use super::write;

/// An ordered map that is a file: written once, and then looked up where it lies.
///
/// Keys and values are integers, floats, `bool`, `char`, arrays of numbers, `str`, `[u8]`, or types
/// of your own that are [`Plain`](super::Plain). Types of variable length are named without their
/// reference: `MappedCTreeMap<str, [u8]>`.
///
/// # Writing
/// [`write`](Self::write) takes entries in the order of their keys, from any iterator: a
/// `BTreeMap`'s, a [`FrozenCTreeMap`](crate::FrozenCTreeMap)'s, one that makes them up;
/// [`write_unsorted`](Self::write_unsorted) takes them in any order. The file appears complete and
/// under its name, or not at all.
///
/// # Opening
/// Opening reads the header and the index, which has about 1/16 of the keys' size, and checks both.
/// The rest is read as lookups touch it.
///
/// | | bytes are | is |
/// |---|---|---|
/// | [`open`](Self::open) | mapped | `unsafe`: nobody may change the file while it is open |
/// | [`open_immutable`](Self::open_immutable) | mapped | safe, for files that the kernel protects: sealed memory files, fs-verity |
/// | [`read`](Self::read) | copied into memory, on huge pages | safe |
/// | [`from_bytes`](Self::from_bytes) | copied from a slice | safe |
///
/// **Why is mapping unsafe?** A lookup gives `&str` and `&[u8]` that lie in the file, and such a
/// reference promises to the compiler that its bytes do not change, and to the program that they
/// can be read. Another process that writes to the file breaks the first, one that truncates it the
/// second: the next access raises `SIGBUS`. No lock hinders a process that does not ask for it, and
/// no check made when the file is opened holds afterwards. Who opens a file usually knows who else
/// can write to it; so the promise is asked for here, once. A file that is only ever replaced as a
/// whole, as [`write`](Self::write) does, keeps it.
///
/// **Broken media.** A page of a mapped file that cannot be read when it is first touched, because
/// of a broken disk or a network file system that went away, raises `SIGBUS` as well, however
/// immutable the file; that ends the process, and is no undefined behaviour. `read` reports it as
/// an error.
///
/// # Untrusted files
/// Whatever bytes a file holds, there is no undefined behaviour and no panic. A file that is
/// truncated, extended, damaged in header or index, of other types, of another version or from a
/// machine with the other byte order is refused with an [`OpenError`]. Damage elsewhere is found by
/// [`verify`](Self::verify), which reads the whole file; lookups do not check sums, since that
/// would mean to read 64 lines for the one that is wanted, and may give wrong answers in a damaged
/// file. Memory safety rests on no checksum.
///
/// # Cost
/// A lookup of an integer searches the index as [`FrozenCTreeMap`](crate::FrozenCTreeMap) does, in
/// memory, and one leaf of the file: two lines of keys and, for values as large as the keys, two of
/// values beside them; no leaf crosses a page. Keys of variable length cost one miss more, in the
/// heap, and so do such values.
///
/// # A wrong `Ord`
/// If the order of `K` is not a total one, or differs from that of the program that wrote the file,
/// lookups may miss keys. It is never undefined behaviour.
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
/// // SAFETY: the file has just been made, and nobody else knows of it.
/// let squares = unsafe { MappedCTreeMap::<u64, u64>::open(&path) }?;
/// assert_eq!(squares.get(&144), Some(12));
/// assert_eq!(squares.lower_bound(&145), 13); // thirteen squares are less than 145
/// assert_eq!(squares.range(100..=200).map(|(square, _)| square).collect::<Vec<_>>(), [100, 121, 144, 169, 196]);
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
    /// What had the name of `path` is replaced in one step when all is written and flushed; a
    /// symbolic link stays, and what it names is replaced. The new file has the permissions of the
    /// old one.
    ///
    /// Holds the separators in memory, which are a sixteenth of the keys, and eight bytes for each
    /// 4 KiB of the file; values and heaps that cannot be written at once wait in a file of their
    /// own, in the same folder.
    ///
    /// # Errors
    /// All of [`WriteError`]. The old file is then untouched, and nothing is left behind, unless
    /// the error came from flushing the folder at the very end: then the new file is in its place,
    /// and may not survive a loss of power.
    ///
    /// # Panics
    /// When the iterator or the order of the keys does; again the old file is untouched, and
    /// nothing is left behind.
    ///
    /// # Examples
    /// ```
    /// use ctree::MappedCTreeMap;
    /// use std::collections::BTreeMap;
    ///
    /// # let folder = std::env::temp_dir().join(format!("ctree-doc-write-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("capitals.ctree");
    /// let capitals = BTreeMap::from([("Oslo".to_string(), 709_000), ("Rome".to_string(), 2_746_000)]);
    /// MappedCTreeMap::<str, u32>::write(&path, &capitals)?;
    /// let capitals = MappedCTreeMap::<str, u32>::read(&path)?;
    /// assert_eq!(capitals.get("Rome"), Some(2_746_000));
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write<B: AsStored<K>, C: AsStored<V>>(
        path: impl AsRef<Path>,
        entries: impl IntoIterator<Item = (B, C)>,
    ) -> Result<usize, WriteError> {
        write::write_file::<K, V, B, C>(path.as_ref(), entries)
    }

    /// As [`write`](Self::write), with entries in any order, which are held in memory and sorted;
    /// of equal keys the last stays.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// When the iterator or the order of the keys does.
    pub fn write_unsorted<B: AsStored<K>, C: AsStored<V>>(
        path: impl AsRef<Path>,
        entries: impl IntoIterator<Item = (B, C)>,
    ) -> Result<usize, WriteError> {
        Self::write(path, write::sorted::<K, V, B, C>(entries))
    }

    /// Writes the bytes of a file, from the start of `out` on; what is to be done so that they
    /// appear at once and stay is left to the caller. All that cannot be written at once is held in
    /// memory. `out` should be empty: what it holds behind the last byte written stays, and makes
    /// it a file that does not open.
    ///
    /// # Errors
    /// All of [`WriteError`] but `NotAFile`. What `out` holds then is no file.
    pub fn write_to<B: AsStored<K>, C: AsStored<V>>(
        out: impl Write + Seek,
        entries: impl IntoIterator<Item = (B, C)>,
    ) -> Result<usize, WriteError> {
        write::write_entries::<K, V, B, C>(out, None, entries)
    }

    /// The bytes that a file of `entries` would have.
    ///
    /// # Errors
    /// All of [`WriteError`] but `NotAFile`, and `Io` only if there is no memory.
    pub fn to_bytes<B: AsStored<K>, C: AsStored<V>>(
        entries: impl IntoIterator<Item = (B, C)>,
    ) -> Result<Vec<u8>, WriteError> {
        let mut out = Cursor::new(Vec::new());
        Self::write_to(&mut out, entries)?;
        Ok(out.into_inner())
    }

    /// Maps a file. See [`OpenOptions::open`].
    ///
    /// # Errors
    /// See [`OpenError`].
    ///
    /// # Safety
    /// From now on until the map is dropped, nobody, in this process or another, may write to the
    /// file or shorten it. (Replacing it by renaming another over it is fine, which is what
    /// [`write`](Self::write) does.)
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        // SAFETY: the caller's promise.
        unsafe { OpenOptions::new().open(path) }
    }

    /// Maps a file that the kernel keeps from being changed. See [`OpenOptions::open_immutable`].
    ///
    /// # Errors
    /// See [`OpenError`]; `NotImmutable` for an ordinary file.
    pub fn open_immutable(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        OpenOptions::new().open_immutable(path)
    }

    /// Reads a whole file into memory. See [`OpenOptions::read`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        OpenOptions::new().read(path)
    }

    /// Copies the bytes of a file. See [`OpenOptions::from_bytes`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, OpenError> {
        OpenOptions::new().from_bytes(bytes)
    }

    /// Reads the whole file, and checks that it is what was written: every page by its checksum;
    /// then that keys ascend, that a search finds the first and last of each leaf, that keys and
    /// values are what their types are stored as, and that everything of variable length is where
    /// it should be.
    ///
    /// After it, every lookup gives what was written. Computes in O(length of the file).
    ///
    /// # Errors
    /// The first fault.
    pub fn verify(&self) -> Result<(), VerifyError> {
        self.tree.verify()
    }

    /// Brings all pages of the file into memory, and maps them, so that no later lookup waits for
    /// the disk. A copy in memory is warm.
    ///
    /// # Errors
    /// That of the operating system. A page that cannot be read is one on Linux from 5.14 on (where
    /// a disk fails, older ones of these kernels may try again for ever), and `SIGBUS` elsewhere.
    pub fn warm(&self) -> io::Result<()> {
        self.tree.source().warm()
    }

    /// Length of the file.
    pub fn file_bytes(&self) -> usize {
        self.tree.source().bytes().len()
    }

    /// Bytes of this process's own memory: the index, and the copy of the file if there is one; not
    /// the pages of a mapped file, which the system shares and takes back as it likes.
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

    /// The key of a rank below `len`.
    #[inline]
    fn key(&self, rank: usize) -> K::Ref<'_> {
        K::load(self.tree.key_bytes(rank))
    }

    /// The value of a rank below `len`.
    #[inline]
    fn value(&self, rank: usize) -> V::Ref<'_> {
        V::load(self.tree.value_bytes(rank))
    }

    /// The value of `key`: itself if it is of fixed width, else a reference into the file.
    ///
    /// For the cost see [the type](Self#cost).
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

    /// The values of many keys: `results[i]` becomes that of `keys[i]`. The searches go on
    /// together, so that their misses overlap.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
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
        assert!(
            keys.len() == results.len(),
            "{} keys but {} results",
            keys.len(),
            results.len()
        );
        self.get_many_with(keys, |index, value| results[index] = value);
    }

    /// Calls `use_value(i, value)` for each of many keys in turn, with the value of `keys[i]`.
    ///
    /// As [`get_many`](Self::get_many), but each value is handed over while its line is in the
    /// cache.
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

    /// Whether there are entries of many keys: `results[i]` becomes whether there is one of
    /// `keys[i]`.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    pub fn contains_many<Q: Borrow<K>>(&self, keys: &[Q], results: &mut [bool]) {
        assert!(
            keys.len() == results.len(),
            "{} keys but {} results",
            keys.len(),
            results.len()
        );
        self.tree
            .search_many(keys, |index, rank| results[index] = rank.is_ok());
    }

    /// Number of keys less than `query`: the rank of the first key that is not, or `len` when there
    /// is none.
    #[doc(alias = "rank")]
    #[inline]
    pub fn lower_bound(&self, query: &K) -> usize {
        self.tree.search(query).unwrap_or_else(|rank| rank)
    }

    /// Number of keys less than or equal to `query`: the rank of the first key greater than it, or
    /// `len` when there is none.
    #[inline]
    pub fn upper_bound(&self, query: &K) -> usize {
        self.tree
            .search(query)
            .map_or_else(|rank| rank, |rank| rank + 1)
    }

    /// [`lower_bound`](Self::lower_bound) of many queries: `ranks[i]` becomes that of `queries[i]`.
    ///
    /// # Panics
    /// When `queries` and `ranks` differ in length.
    pub fn lower_bound_many<Q: Borrow<K>>(&self, queries: &[Q], ranks: &mut [usize]) {
        assert!(
            queries.len() == ranks.len(),
            "{} queries but {} ranks",
            queries.len(),
            ranks.len()
        );
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
        Iter::new(&self.tree, 0, self.len())
    }

    /// The keys in order.
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys::new(&self.tree, 0, self.len())
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> Values<'_, K, V> {
        Values::new(&self.tree, 0, self.len())
    }

    /// The ranks that lie within bounds.
    ///
    /// # Panics
    /// As [`range`](Self::range).
    pub(super) fn ranks_within<Q: Borrow<K> + ?Sized>(
        &self,
        bounds: &impl RangeBounds<Q>,
    ) -> (usize, usize) {
        if self.is_empty() {
            return (0, 0);
        }
        let (start, end) = (
            bounds.start_bound().map(Borrow::borrow),
            bounds.end_bound().map(Borrow::borrow),
        );
        match (start, end) {
            (Bound::Excluded(start), Bound::Excluded(end)) if start == end => {
                panic!("range start and end are equal and excluded");
            }
            (
                Bound::Included(start) | Bound::Excluded(start),
                Bound::Included(end) | Bound::Excluded(end),
            ) if start > end => {
                panic!("range start is greater than range end");
            }
            _ => {}
        }
        let start = match start {
            Bound::Included(key) => self.lower_bound(key),
            Bound::Excluded(key) => self.upper_bound(key),
            Bound::Unbounded => 0,
        };
        let end = match end {
            Bound::Included(key) => self.upper_bound(key),
            Bound::Excluded(key) => self.lower_bound(key),
            Bound::Unbounded => self.len(),
        };
        (start, end)
    }

    /// The entries whose keys lie within bounds, in order. Bounds may be keys or what borrows as
    /// one: `"a".."b"` in a map of `str`.
    ///
    /// # Panics
    /// When the start is greater than the end, or both are the same and excluded, unless the map is
    /// empty.
    pub fn range<Q: Borrow<K> + ?Sized>(&self, range: impl RangeBounds<Q>) -> Iter<'_, K, V> {
        let (start, end) = self.ranks_within(&range);
        Iter::new(&self.tree, start, end)
    }

    /// The keys of [`range`](Self::range), for sets.
    pub(super) fn key_range<Q: Borrow<K> + ?Sized>(
        &self,
        range: &impl RangeBounds<Q>,
    ) -> Keys<'_, K, V> {
        let (start, end) = self.ranks_within(range);
        Keys::new(&self.tree, start, end)
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
