//! What a writer keeps back: the parts of a file that come after one whose length is not known yet.
//!
//! Entries arrive one by one and leave as leaves at once, while values and heaps have to wait for
//! the last leaf. A [`Spool`] holds them in memory, and from some size on in a file of its own, so
//! that a writer needs room for a part of the index and not for the data.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

/// Bytes that are held in memory before a file is made. (Few in tests of this crate, so that they
/// see both.)
const MEMORY_BYTES_MAX: usize = if cfg!(test) { 256 } else { 16 << 20 };

/// Bytes that are taken from a file at a time.
const COPIED_BYTES: usize = 1 << 16;

/// A file that is removed again, unless it has got another name.
#[derive(Debug)]
pub(super) struct TempFile {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl TempFile {
    /// Makes a new file in `folder`, which nobody else has open, readable and writable.
    ///
    /// A private one can be opened by its owner alone, from the start: whoever opens a file before
    /// its permissions are changed goes on reading.
    pub(super) fn create(folder: &Path, is_private: bool) -> io::Result<TempFile> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".ctree-{}-{number}.tmp", process::id()));
            let mut options = File::options();
            options.read(true).write(true).create_new(true);
            if is_private {
                options.mode(0o600);
            }
            match options.open(&path) {
                Ok(file) => {
                    return Ok(TempFile {
                        path,
                        file,
                        kept: false,
                    });
                }
                // Left behind by a process of the same number that was killed, or made by one on
                // another machine.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The open file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, in place of what had it.
    pub(super) fn rename(mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.kept {
            // Nobody is left to tell; what cannot be removed stays as a file whose name says what
            // it is.
            let _unremovable = std::fs::remove_file(&self.path);
        }
    }
}

/// Bytes that are written one after the other, and then read once.
#[derive(Debug)]
pub(super) struct Spool<'a> {
    /// Where a file may be made, if at all.
    folder: Option<&'a Path>,
    memory: Vec<u8>,
    /// What came before `memory`.
    file: Option<TempFile>,
    file_bytes: u64,
}

impl<'a> Spool<'a> {
    /// Holds no bytes yet; those to come in memory, and in a file in `folder` if they are many.
    pub(super) fn new(folder: Option<&'a Path>) -> Spool<'a> {
        Spool {
            folder,
            memory: Vec::new(),
            file: None,
            file_bytes: 0,
        }
    }

    /// Number of bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.file_bytes + self.memory.len() as u64
    }

    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.memory.len() + bytes.len() > MEMORY_BYTES_MAX
            && let Some(folder) = self.folder
        {
            if self.file.is_none() {
                // For nobody else's eyes, whatever the target's permissions will be.
                self.file = Some(TempFile::create(folder, true)?);
            }
            if let Some(file) = &self.file {
                file.file().write_all(&self.memory)?;
                self.file_bytes += self.memory.len() as u64;
                self.memory.clear();
            }
        }
        self.memory.extend_from_slice(bytes);
        Ok(())
    }

    /// Hands all bytes over, in order and in pieces.
    pub(super) fn drain(self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if let Some(file) = &self.file {
            let mut file = file.file();
            file.seek(SeekFrom::Start(0))?;
            let mut piece = vec![0; COPIED_BYTES];
            loop {
                match file.read(&mut piece) {
                    Ok(0) => break,
                    Ok(bytes) => take(&piece[..bytes])?,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        take(&self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::{MEMORY_BYTES_MAX, Spool};

    #[test]
    fn bytes_come_back_from_memory_and_from_a_file() {
        let folder = std::env::temp_dir();
        for folder in [None, Some(folder.as_path())] {
            for pieces in [0usize, 1, 5, 500] {
                let mut spool = Spool::new(folder);
                let mut expected = Vec::new();
                for piece in 0..pieces {
                    let bytes = vec![u8::try_from(piece % 251).unwrap(); piece % 7];
                    spool.push(&bytes).unwrap();
                    expected.extend(bytes);
                }
                assert_eq!(spool.bytes(), expected.len() as u64);
                assert_eq!(
                    spool.file.is_some(),
                    folder.is_some() && expected.len() > MEMORY_BYTES_MAX
                );
                let temporary = spool.file.as_ref().map(|file| file.path.clone());
                assert!(temporary.as_ref().is_none_or(|path| path.exists()));
                let mut found = Vec::new();
                spool
                    .drain(|bytes| {
                        found.extend_from_slice(bytes);
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(found, expected);
                assert!(temporary.is_none_or(|path| !path.exists()));
            }
        }
    }
}
