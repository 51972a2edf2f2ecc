//! Freed chunks on their way from the runtime's ring to the profile: compressed in a file without a
//! name, so that a program may have more of them than memory holds.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;

use crate::capture_format::{self, FreedChunk, Header, layout};

/// Chunks that are taken at once.
const BATCH: u64 = 1 << 14;
const BYTES: u64 = size_of::<FreedChunk>() as u64;

#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    taken: u64,
    /// Of a copy: how much of the file it has. No chunks are added to it.
    end: Option<u64>,
}

impl Spool {
    pub(super) fn new() -> io::Result<Spool> {
        Ok(Spool {
            file: tempfile::tempfile()?,
            taken: 0,
            end: None,
        })
    }

    /// Empties the ring of `capture`.
    pub(super) fn drain(&mut self, capture: &File, header: &Header) -> io::Result<()> {
        if self.end.is_some() {
            return Ok(());
        }
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

    /// The same chunks so far, for a copy.
    pub(super) fn share(&self) -> io::Result<Spool> {
        Ok(Spool {
            file: self.file.try_clone()?,
            taken: self.taken,
            end: Some(self.file.metadata()?.len()),
        })
    }

    /// All chunks so far, in the order of their death.
    pub(super) fn read(&self) -> io::Result<Chunks> {
        let file = Part {
            file: self.file.try_clone()?,
            at: 0,
            end: match self.end {
                Some(end) => end,
                None => self.file.metadata()?.len(),
            },
        };
        Ok(Chunks {
            file: BufReader::new(file),
            batch: Vec::new(),
            next: 0,
        })
    }
}

/// What a file had at a moment, while more is written to it.
#[derive(Debug)]
struct Part {
    file: File,
    at: u64,
    end: u64,
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let len = into.len().min(left);
        let read = self.file.read_at(&mut into[..len], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[derive(Debug)]
pub(super) struct Chunks {
    file: BufReader<Part>,
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
