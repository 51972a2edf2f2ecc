//! Freed chunks on their way from the runtime's ring to the profile: compressed in a file without a
//! name, so that a program may have more of them than memory holds.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::FileExt;

use crate::capture_format::{self, FreedChunk, Header, layout};

/// Chunks that are taken at once.
const BATCH: u64 = 1 << 14;
const BYTES: u64 = size_of::<FreedChunk>() as u64;

#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    taken: u64,
}

impl Spool {
    pub(super) fn new() -> io::Result<Spool> {
        Ok(Spool {
            file: tempfile::tempfile()?,
            taken: 0,
        })
    }

    /// Empties the ring of `capture`.
    pub(super) fn drain(&mut self, capture: &File, header: &Header) -> io::Result<()> {
        // A capture with a wrong count ends in an error, not in a long loop.
        if header.freed_put.wrapping_sub(self.taken) > layout::FREED_LEN {
            return Err(io::Error::other("the ring of freed chunks is damaged"));
        }
        while self.taken < header.freed_put {
            let index = self.taken % layout::FREED_LEN;
            let len = BATCH
                .min(header.freed_put - self.taken)
                .min(layout::FREED_LEN - index);
            let mut bytes = vec![0; usize::try_from(len * BYTES).map_err(io::Error::other)?];
            capture.read_exact_at(&mut bytes, layout::FREED + index * BYTES)?;
            self.taken += len;
            let at = layout::HEADER + std::mem::offset_of!(Header, freed_taken) as u64;
            capture.write_all_at(&self.taken.to_ne_bytes(), at)?;
            let packed = lz4_flex::block::compress_prepend_size(&bytes);
            let len = u32::try_from(packed.len()).map_err(io::Error::other)?;
            self.file.write_all(&len.to_ne_bytes())?;
            self.file.write_all(&packed)?;
        }
        Ok(())
    }

    /// All chunks in the order of their death.
    pub(super) fn read(mut self) -> io::Result<Chunks> {
        self.file.rewind()?;
        Ok(Chunks {
            file: BufReader::new(self.file),
            batch: Vec::new(),
            next: 0,
        })
    }
}

#[derive(Debug)]
pub(super) struct Chunks {
    file: BufReader<File>,
    batch: Vec<u8>,
    next: u64,
}

impl Chunks {
    /// Reads the next batch; false at the end.
    fn refill(&mut self) -> io::Result<bool> {
        let mut len = [0; 4];
        match self.file.read_exact(&mut len) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            other => other?,
        }
        let mut packed = vec![0; u32::from_ne_bytes(len) as usize];
        self.file.read_exact(&mut packed)?;
        self.batch =
            lz4_flex::block::decompress_size_prepended(&packed).map_err(io::Error::other)?;
        self.next = 0;
        Ok(true)
    }
}

impl Iterator for Chunks {
    type Item = io::Result<FreedChunk>;

    fn next(&mut self) -> Option<io::Result<FreedChunk>> {
        loop {
            if let Some(dead) = capture_format::read(&self.batch, self.next) {
                self.next += BYTES;
                return Some(Ok(dead));
            }
            match self.refill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
