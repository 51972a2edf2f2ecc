//! Profiles of other tools, as far as they have what a [`Profile`] has.
//!
//! | module | files of | what is missing |
//! |---|---|---|
//! | [`dhat`] | valgrind's DHAT and the crate `dhat` | curves, types, times of accesses |
//! | [`heaptrack`] | heaptrack | accesses, types, threads |
//!
//! What is missing is 0 or unknown, and `Run::caveats` says so.

pub mod dhat;
pub mod heaptrack;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::Error;
use crate::profile::{Frame, Profile};
use crate::store::Reader;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Reads a profile of this tool, with its windows and without its chunks, or one of another tool;
/// the content says which.
///
/// # Errors
///
/// If the file cannot be read, or is of no known kind, or damaged.
pub fn open(path: impl AsRef<Path>) -> Result<Profile, Error> {
    let path = path.as_ref();
    let failed = |why: &dyn std::fmt::Display| Error::new(format!("{}: {why}", path.display()));
    let mut file = File::open(path).map_err(|why| failed(&why))?;
    if file.metadata().is_ok_and(|there| there.is_dir()) {
        return Err(failed(&"is a folder"));
    }
    let len = file.metadata().map_or(0, |there| there.len());
    let mut start = Vec::new();
    let read = file.by_ref().take(4).read_to_end(&mut start);
    read.and_then(|_| file.seek(SeekFrom::Start(0)))
        .map_err(|why| failed(&why))?;
    let import = |profile: Result<Profile, Error>| profile.map_err(|why| failed(&why));
    if start.starts_with(&GZIP) {
        return import(text(BufReader::new(MultiGzDecoder::new(file)), len));
    }
    if start.starts_with(&ZSTD) {
        let frame = StreamingDecoder::new(BufReader::new(file)).map_err(|why| failed(&why))?;
        return import(text(BufReader::new(Zstd { frame: Some(frame) }), len));
    }
    if start.starts_with(b"v ") || start.first().is_some_and(|first| b"{ \n\t".contains(first)) {
        return import(text(BufReader::new(file), len));
    }
    let mut reader = Reader::open(path)?;
    let mut profile = reader.profile()?;
    profile.windows = reader.windows().collect::<Result<_, _>>()?;
    Ok(profile)
}

/// As [`open`], with the chunks of our own profiles.
///
/// # Errors
///
/// As of [`open`].
pub fn open_with_chunks(path: impl AsRef<Path>) -> Result<Profile, Error> {
    let mut profile = open(&path)?;
    // Files of other tools have none.
    if let Ok(mut reader) = Reader::open(path) {
        for block in reader.chunks() {
            profile.chunks.extend(block?);
        }
    }
    Ok(profile)
}

/// The content of a file's frames, one after another.
struct Zstd<R: BufRead> {
    frame: Option<StreamingDecoder<R, FrameDecoder>>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(mut frame) = self.frame.take() {
            let len = frame.read(into)?;
            if len > 0 || into.is_empty() {
                self.frame = Some(frame);
                return Ok(len);
            }
            let mut rest = frame.into_inner();
            if !rest.fill_buf()?.is_empty() {
                self.frame = Some(StreamingDecoder::new(rest).map_err(io::Error::other)?);
            }
        }
        Ok(0)
    }
}

/// What another tool has written into a file of `len` bytes.
fn text(mut input: impl BufRead, len: u64) -> Result<Profile, Error> {
    let start = input
        .fill_buf()
        .map_err(|why| Error::new(why.to_string()))?;
    match start.starts_with(b"v ") {
        true => heaptrack::read(input, len),
        false => dhat::read(input, len),
    }
}

/// Most bytes that a file's content may take in memory: its length justifies them.
fn budget(len: u64) -> u64 {
    len.saturating_mul(256).saturating_add(1 << 20)
}

/// Frames, each once.
#[derive(Default)]
struct Frames {
    indices: HashMap<Frame, u32>,
    frames: Vec<Frame>,
}

impl Frames {
    fn add(&mut self, frame: Frame) -> u32 {
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        *self.indices.entry(frame).or_insert_with_key(|frame| {
            self.frames.push(frame.clone());
            next
        })
    }
}

/// The part of a path after the last slash.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
