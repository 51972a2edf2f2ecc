//! The profile file: `docs/inside/ccscope-format.md` describes it byte by byte.
//!
//! After a header come sections, each with checksums of its own, compressed and of bounded size.
//! A reader sees where each section lies without reading it, so that what does not grow with the
//! program's run is at hand at once, whatever the size of the file.
//!
//! Files come from strangers. No length is believed before the file is seen to be as long; a
//! section unpacks to at most `section::MAX_CONTENT` bytes and to `section::MAX_RATIO` times
//! its stored size. Of a file that was cut short, what is whole is read, and the profile says so.

mod check;
mod reader;
mod section;
mod writer;

use std::path::Path;

pub use reader::{Chunks, Reader, Windows};
pub use writer::write;
#[doc(hidden)]
pub use writer::{create, is_stream};

use crate::Error;
use crate::profile::{Access, Chunk, Profile};

/// Most accesses in one item of the section of windows.
const PART_LEN: usize = 8192;

/// A burst of accesses, or the next part of it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct WindowPart<'p> {
    continues: bool,
    time: u64,
    from_start: bool,
    thread: u32,
    accesses: std::borrow::Cow<'p, [Access]>,
}

impl Profile {
    /// Reads a profile with all its chunks and windows.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is no profile, of another version, or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Profile, Error> {
        Reader::open(path)?.everything()
    }

    /// Writes the profile to `path`, or nothing if that fails.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.save_with(std::iter::empty(), path)
    }

    /// Writes the profile with `chunks` after its own, which need not be in memory at once.
    ///
    /// # Errors
    ///
    /// As for [`save`](Self::save).
    pub fn save_with(
        &self,
        chunks: impl IntoIterator<Item = Chunk>,
        path: impl AsRef<Path>,
    ) -> Result<(), Error> {
        writer::save(self, chunks, path.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use crate::analyses::test_profile::profile;

    /// Where this fails, what a section holds has changed, or only `test_profile`: in the first
    /// case, older files must be refused, by a new [`VERSION`](super::section::VERSION).
    #[test]
    fn a_change_of_the_layout_changes_the_version() {
        let bytes = postcard::to_allocvec(&profile()).unwrap();
        assert_eq!(
            (super::section::VERSION, crc32fast::hash(&bytes)),
            (3, 3_106_335_285)
        );
    }
}
