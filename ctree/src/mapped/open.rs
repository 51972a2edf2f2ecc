//! How a file is opened: header first, then the bytes, then the index.

use std::path::Path;

use super::error::OpenError;
use super::header::{self, Page, Sums};
use super::layout::{Layout, PAGE_BYTES};
use super::map::MappedCTreeMap;
use super::source::{Opened, Source};
use super::stored::{Stored, StoredKey};
use super::tree::Tree;

/// What to do when a file is opened, beyond reading its header and its index.
///
/// # Examples
/// ```no_run
/// use ctree::{MappedCTreeMap, OpenOptions};
///
/// // An untrusted file: check every byte once.
/// let map: MappedCTreeMap<str, u64> = OpenOptions::new().verify(true).read("downloaded.ctree")?;
/// # Ok::<(), ctree::OpenError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    verify: bool,
    warm: bool,
}

impl OpenOptions {
    /// Header and index only.
    pub const fn new() -> OpenOptions {
        OpenOptions {
            verify: false,
            warm: false,
        }
    }

    /// Whether the whole file is read and checked, as [`MappedCTreeMap::verify`] does.
    pub const fn verify(mut self, verify: bool) -> OpenOptions {
        self.verify = verify;
        self
    }

    /// Whether all pages of the file are brought into memory, as [`MappedCTreeMap::warm`] does.
    pub const fn warm(mut self, warm: bool) -> OpenOptions {
        self.warm = warm;
        self
    }

    /// Maps a file: reads header and index, and of the rest what lookups touch.
    ///
    /// # Errors
    /// All of [`OpenError`] but `NotImmutable`; `Verify` only on demand.
    ///
    /// # Safety
    /// As for [`MappedCTreeMap::open`].
    pub unsafe fn open<K: StoredKey + ?Sized, V: Stored + ?Sized>(
        self,
        path: impl AsRef<Path>,
    ) -> Result<MappedCTreeMap<K, V>, OpenError> {
        let mut file = Opened::open(path.as_ref())?;
        let page = file.header()?;
        let (layout, sums) = header::parse::<K, V>(&page, file.file_bytes)?;
        // SAFETY: `parse` has compared the lengths; the caller promises that nothing changes or
        // shortens the file before the map, which owns `source`, is dropped.
        let source = unsafe { file.map(layout.file_bytes) }?;
        self.finish(source, layout, sums)
    }

    /// Maps a file that the kernel keeps from being changed: a memory file that is sealed, or a
    /// file under fs-verity on ext4, F2FS or Btrfs (Linux).
    ///
    /// # Errors
    /// All of [`OpenError`]; `NotImmutable` for any other file.
    pub fn open_immutable<K: StoredKey + ?Sized, V: Stored + ?Sized>(
        self,
        path: impl AsRef<Path>,
    ) -> Result<MappedCTreeMap<K, V>, OpenError> {
        let mut file = Opened::open(path.as_ref())?;
        let page = file.header()?;
        let (layout, sums) = header::parse::<K, V>(&page, file.file_bytes)?;
        let source = file.map_immutable(layout.file_bytes)?;
        self.finish(source, layout, sums)
    }

    /// Reads a whole file into memory, on huge pages where possible. What happens to the file
    /// afterwards does not matter.
    ///
    /// # Errors
    /// All of [`OpenError`] but `NotImmutable`; `Verify` only on demand.
    pub fn read<K: StoredKey + ?Sized, V: Stored + ?Sized>(
        self,
        path: impl AsRef<Path>,
    ) -> Result<MappedCTreeMap<K, V>, OpenError> {
        let mut file = Opened::open(path.as_ref())?;
        let page = file.header()?;
        let (layout, sums) = header::parse::<K, V>(&page, file.file_bytes)?;
        let source = file.read(&page, layout.file_bytes)?;
        self.finish(source, layout, sums)
    }

    /// Copies the bytes of a file.
    ///
    /// # Errors
    /// All of [`OpenError`] but `NotAFile` and `NotImmutable`; `Verify` only on demand.
    pub fn from_bytes<K: StoredKey + ?Sized, V: Stored + ?Sized>(
        self,
        bytes: &[u8],
    ) -> Result<MappedCTreeMap<K, V>, OpenError> {
        let file_bytes = bytes.len() as u64;
        let Some(page) = bytes.first_chunk::<PAGE_BYTES>() else {
            return Err(OpenError::TooShort { file_bytes });
        };
        let (layout, sums) = header::parse::<K, V>(page as &Page, file_bytes)?;
        self.finish(Source::copy_of(bytes)?, layout, sums)
    }

    fn finish<K: StoredKey + ?Sized, V: Stored + ?Sized>(
        self,
        source: Source,
        layout: Layout,
        sums: Sums,
    ) -> Result<MappedCTreeMap<K, V>, OpenError> {
        if self.warm {
            source.warm()?;
        }
        let map = MappedCTreeMap::new(Tree::new(source, layout, sums)?);
        if self.verify {
            map.verify().map_err(OpenError::Verify)?;
        }
        Ok(map)
    }
}
