//! How a file is written: page after page, then the header, then its name.
//!
//! ```text
//! entry -> leaf -> page + checksum -> file         at once
//!       -> values, heaps                           kept back (spool), appended after the last leaf
//!       -> separator, one for each leaf            kept in memory, appended after the heaps
//!          checksums, one for each page            kept in memory, appended at the end
//!          header                                  over the zeros that the file began with
//! ```
//!
//! The file is written under another name in the same folder, flushed, and renamed over the old one
//! in one step. Then the folder is flushed, so that the new name survives a loss of power. An error
//! or a panic before removes the new file; a process that is killed leaves a file named
//! `.ctree-*.tmp`.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::lane::{LaneKind, by_lane};

use super::error::WriteError;
use super::header::{self, Sums, TypeNames};
use super::layout::{FreeSizes, Layout, PAGE_BYTES, Shape, checksum};
use super::spool::Spool;
use super::stored::{AsStored, HEAP_CELL_BYTES, Stored, StoredKey};

/// Bytes per call of the operating system.
const BUFFER_BYTES: usize = 1 << 18;

/// Cuts what is written into pages, and sums them up.
struct Pages<W> {
    writer: W,
    /// The page that is not full yet.
    page: Vec<u8>,
    /// Checksums of the pages written.
    sums: Vec<u8>,
}

impl<W: Write> Pages<W> {
    fn new(writer: W) -> Pages<W> {
        Pages {
            writer,
            page: Vec::with_capacity(PAGE_BYTES),
            sums: Vec::new(),
        }
    }

    /// Fills the page up, unless a new one has just begun.
    fn end_section(&mut self) -> io::Result<()> {
        if self.page.is_empty() {
            return Ok(());
        }
        let free = PAGE_BYTES - self.page.len();
        self.write_all(&[0; PAGE_BYTES][..free])
    }
}

impl<W: Write> Write for Pages<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PAGE_BYTES - self.page.len())];
        self.page.extend_from_slice(bytes);
        if self.page.len() == PAGE_BYTES {
            self.sums
                .extend_from_slice(&checksum(&self.page).to_ne_bytes());
            self.writer.write_all(&self.page)?;
            self.page.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Appends a heap entry, and returns the cell that refers to it.
///
/// # Errors
/// `TooLong`, or that of a file.
fn push_entry(
    heap: &mut Spool,
    bytes: &[u8],
    index: usize,
) -> Result<[u8; HEAP_CELL_BYTES], WriteError> {
    let at = heap.bytes();
    let length = u32::try_from(bytes.len()).map_err(|_| WriteError::TooLong { index })?;
    heap.push(&length.to_ne_bytes())?;
    heap.push(bytes)?;
    Ok(at.to_ne_bytes())
}

/// What absent lanes hold: the largest integer, which is less than no query.
pub(super) fn filler(kind: LaneKind) -> ([u8; 8], usize) {
    let mut bytes = [0; 8];
    by_lane!(kind, Lane => {
        bytes[..size_of::<Lane>()].copy_from_slice(&Lane::MAX.to_ne_bytes());
    });
    (bytes, kind.bytes())
}

/// Writes a file of `entries` from the start of `out` on, and returns their number. Large parts are
/// kept back in `folder`, if given.
pub(super) fn write_entries<K, V, B, C>(
    out: impl Write + Seek,
    folder: Option<&Path>,
    entries: impl IntoIterator<Item = (B, C)>,
) -> Result<usize, WriteError>
where
    K: StoredKey + ?Sized,
    V: Stored + ?Sized,
    B: AsStored<K>,
    C: AsStored<V>,
{
    let shape = Shape::of::<K, V>();
    let names = TypeNames::for_writing::<K, V>()?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&[0; PAGE_BYTES])?;

    let mut pages = Pages::new(out);
    let (mut values, mut key_heap, mut value_heap) =
        (Spool::new(folder), Spool::new(folder), Spool::new(folder));
    let (mut separators, mut separator_ends) = (Vec::new(), Vec::new());
    let mut leaf = vec![0; shape.leaf_bytes];
    let mut last_key = Vec::new();
    let (mut len, mut slot) = (0, 0);
    for (key, value) in entries {
        let (key, value) = (key.as_stored(), value.as_stored());
        let key_bytes = key.stored_bytes();
        if len > 0 {
            if K::compare_stored(&last_key, key) != Ordering::Less {
                return Err(WriteError::Order { index: len });
            }
            if slot == shape.leaf_keys {
                pages.write_all(&leaf)?;
                leaf.fill(0);
                slot = 0;
                separators.extend_from_slice(K::separator(&last_key, key_bytes));
                if shape.keys_in_heap {
                    separator_ends.extend_from_slice(&(separators.len() as u64).to_ne_bytes());
                }
            }
        }
        last_key.clear();
        last_key.extend_from_slice(key_bytes);

        let key_at = slot * shape.key_bytes;
        let key_cell = &mut leaf[key_at..key_at + shape.key_bytes];
        if shape.keys_in_heap {
            key_cell.copy_from_slice(&push_entry(&mut key_heap, key_bytes, len)?);
        } else {
            key_cell.copy_from_slice(key_bytes);
        }
        let in_heap;
        let value_bytes = if shape.values_in_heap {
            in_heap = push_entry(&mut value_heap, value.stored_bytes(), len)?;
            &in_heap[..]
        } else {
            value.stored_bytes()
        };
        if shape.joined {
            let value_at = shape.leaf_values_at + slot * shape.value_bytes;
            leaf[value_at..value_at + shape.value_bytes].copy_from_slice(value_bytes);
        } else {
            values.push(value_bytes)?;
        }
        slot += 1;
        len += 1;
    }
    if len > 0 {
        if let Some(kind) = shape.lane {
            let (filler, bytes) = filler(kind);
            leaf[slot * bytes..shape.leaf_values_at]
                .chunks_exact_mut(bytes)
                .for_each(|lane| lane.copy_from_slice(&filler[..bytes]));
        }
        pages.write_all(&leaf)?;
    }

    let size = |bytes: u64| usize::try_from(bytes).map_err(|_| WriteError::TooLarge);
    let sizes = FreeSizes {
        key_heap_bytes: size(key_heap.bytes())?,
        value_heap_bytes: size(value_heap.bytes())?,
        separator_bytes: if shape.keys_in_heap {
            separators.len()
        } else {
            0
        },
    };
    let layout = Layout::new(shape, len, sizes).ok_or(WriteError::TooLarge)?;
    pages.end_section()?;
    for section in [values, key_heap, value_heap] {
        section.drain(&mut pages)?;
        pages.end_section()?;
    }
    let mut index = separator_ends;
    index.append(&mut separators);
    pages.write_all(&index)?;
    pages.end_section()?;

    let Pages {
        writer: mut out,
        sums,
        ..
    } = pages;
    assert_eq!(
        (sums.len(), index.len()),
        (layout.sums.bytes, layout.index.bytes),
        "sections are not where the layout says"
    );
    out.write_all(&sums)?;
    let sums = Sums {
        index: checksum(&index),
        sums: checksum(&sums),
    };
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&header::build(shape, &layout, &names, sums))?;
    out.flush()?;
    Ok(len)
}

/// The file that `path` names, symbolic links resolved, and its folder; what has the name already
/// must be a regular file.
fn target(path: &Path) -> Result<(PathBuf, PathBuf), WriteError> {
    let path = match fs::symlink_metadata(path) {
        // The link stays, and what it names is replaced.
        Ok(metadata) if metadata.is_symlink() => fs::canonicalize(path)?,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => path.to_path_buf(),
    };
    match fs::metadata(&path) {
        Ok(metadata) if !metadata.is_file() => return Err(WriteError::NotAFile),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    if path.file_name().is_none() {
        return Err(WriteError::NotAFile);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    Ok((path, folder))
}

/// Writes a file of `entries` under the name of `path`, as the module's documentation says, and
/// returns their number.
pub(super) fn write_file<K, V, B, C>(
    path: &Path,
    entries: impl IntoIterator<Item = (B, C)>,
) -> Result<usize, WriteError>
where
    K: StoredKey + ?Sized,
    V: Stored + ?Sized,
    B: AsStored<K>,
    C: AsStored<V>,
{
    let (path, folder) = target(path)?;
    let old = match fs::metadata(&path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    // Opened before anything is replaced, to be flushed in the end.
    let folder_file = if cfg!(unix) {
        Some(File::open(&folder)?)
    } else {
        None
    };
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(".ctree-").suffix(".tmp");
    if old.is_none() {
        // Less the process's mask. A replacement stays private until it has the permissions of the
        // old file.
        temporary.permissions(Permissions::from_mode(0o666));
    }
    let temporary = temporary.tempfile_in(&folder)?;
    if let Some(old) = old {
        temporary.as_file().set_permissions(old.permissions())?;
    }
    let len = write_entries::<K, V, B, C>(temporary.as_file(), Some(&folder), entries)?;
    temporary.as_file().sync_all()?;
    temporary.persist(&path).map_err(|error| error.error)?;
    if let Some(folder_file) = folder_file {
        folder_file.sync_all()?;
    }
    Ok(len)
}

/// Brings entries in any order into that of their keys; of equal keys the last stays.
pub(super) fn sorted<K, V, B, C>(entries: impl IntoIterator<Item = (B, C)>) -> Vec<(B, C)>
where
    K: StoredKey + ?Sized,
    V: Stored + ?Sized,
    B: AsStored<K>,
    C: AsStored<V>,
{
    let mut entries: Vec<(B, C)> = entries.into_iter().collect();
    entries.sort_by(|(left, _), (right, _)| left.as_stored().cmp(right.as_stored()));
    entries.dedup_by(|next, kept| {
        let equal = next.0.as_stored().cmp(kept.0.as_stored()) == Ordering::Equal;
        if equal {
            core::mem::swap(next, kept);
        }
        equal
    });
    entries
}
