//! What a writer keeps back: the parts of a file that follow one of unknown length.
//!
//! Entries arrive one by one. Leaves are written at once; values and heaps wait for the last leaf,
//! in memory, or in a temporary file if they are large.

use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use tempfile::{SpooledTempFile, spooled_tempfile_in};

/// Bytes that are held in memory before a file is made. (Few in tests of this crate, so that they
/// see both.)
const MEMORY_BYTES_MAX: usize = if cfg!(test) { 256 } else { 16 << 20 };

/// Bytes that are written to a file at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// Bytes that are written once, and then read once.
#[derive(Debug)]
pub(super) struct Spool {
    writer: BufWriter<SpooledTempFile>,
    bytes: u64,
}

impl Spool {
    /// An empty spool that may make a temporary file in `folder`, if given.
    pub(super) fn new(folder: Option<&Path>) -> Spool {
        let file = match folder {
            Some(folder) => spooled_tempfile_in(MEMORY_BYTES_MAX, folder),
            None => SpooledTempFile::new(usize::MAX),
        };
        Spool {
            writer: BufWriter::with_capacity(BUFFER_BYTES, file),
            bytes: 0,
        }
    }

    /// Number of bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.writer.write_all(bytes)
    }

    /// Copies all bytes to `out`.
    pub(super) fn drain(self, out: &mut impl Write) -> io::Result<()> {
        let mut file = self
            .writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        io::copy(&mut file, out)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Spool;

    #[test]
    #[cfg_attr(miri, ignore = "makes files")]
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
                let mut found = Vec::new();
                spool.drain(&mut found).unwrap();
                assert_eq!(found, expected);
            }
        }
    }
}
