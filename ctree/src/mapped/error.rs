//! What can be wrong with a file, and what can go wrong while one is written.

use alloc::string::String;
use std::io;

use super::layout::VERSION;

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The operating system gave an error.
    #[error("the file cannot be read")]
    Io(#[from] io::Error),
    /// A directory, a device, a pipe or a socket.
    #[error("not a regular file")]
    NotAFile,
    /// Shorter than a header.
    #[error("{file_bytes} bytes are too few for a header")]
    TooShort {
        /// Length of the file.
        file_bytes: u64,
    },
    /// Not a file of this library.
    #[error("not a ctree file")]
    Magic,
    /// Written on a machine with the other byte order.
    #[error("written on a machine with the other byte order")]
    ByteOrder,
    /// The file has another version of the format.
    #[error("the file has format version {found}, and this library reads version {VERSION}")]
    Version {
        /// The version.
        found: u32,
    },
    /// The header is damaged.
    #[error("the header is damaged")]
    HeaderChecksum,
    /// The keys are of another type.
    #[error("the keys are of type `{found}`")]
    KeyType {
        /// Name of the type in the file.
        found: String,
    },
    /// The values are of another type.
    #[error("the values are of type `{found}`")]
    ValueType {
        /// Name of the type in the file.
        found: String,
    },
    /// The header contradicts itself, or the file is too large for this machine.
    #[error("the header contradicts itself")]
    Layout,
    /// Truncated or extended.
    #[error("the file has {found_bytes} bytes where its header says {expected_bytes}")]
    Length {
        /// What the header says.
        expected_bytes: u64,
        /// Length of the file.
        found_bytes: u64,
    },
    /// The index is damaged.
    #[error("the index is damaged")]
    IndexChecksum,
    /// The index contradicts itself: its keys are not in order.
    #[error("the keys of the index are not in order")]
    Index,
    /// The kernel does not protect the file against changes.
    #[error("the file is not protected against changes")]
    NotImmutable,
    /// The file is damaged, as `verify` has found.
    #[error("the file is damaged")]
    Verify(#[source] VerifyError),
}

/// Why a file was not written. The old file is still there, unless flushing the folder failed in
/// the end: then the new file is in place, but might not survive a loss of power.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system, or the writer given, gave an error.
    #[error("the file cannot be written")]
    Io(#[from] io::Error),
    /// The path names a directory, a device, a pipe or a socket, or nothing.
    #[error("the path names something that is not a regular file")]
    NotAFile,
    /// A key is not greater than the key before it.
    #[error("the key at index {index} is not greater than the key before it")]
    Order {
        /// Place in the input, counted from 0.
        index: usize,
    },
    /// A key or value of variable length has more than `u32::MAX` bytes.
    #[error("the entry at index {index} has more than {} bytes", u32::MAX)]
    TooLong {
        /// Place in the input, counted from 0.
        index: usize,
    },
    /// The name of a key or value type is longer than the header has room for.
    #[error("the type name `{name}` is too long")]
    TypeName {
        /// The name.
        name: String,
    },
    /// The file would be larger than a machine like this can map.
    #[error("the file would be too large to map")]
    TooLarge,
}

/// What [`verify`](super::MappedCTreeMap::verify) found in a file that could be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The table of checksums is damaged.
    #[error("the table of checksums is damaged")]
    Checksums,
    /// A page is damaged.
    #[error("page {page} is damaged")]
    Page {
        /// Its number in the file, in units of 4096 B; page 0 is the header.
        page: usize,
    },
    /// A key is not greater than the key before it. (This and the following do not occur in a file
    /// that this library wrote with a total order of the keys.)
    #[error("the key of rank {rank} is not greater than the key before it")]
    Order {
        /// Rank of the key.
        rank: usize,
    },
    /// A key is invalid for its type: text that is not UTF-8, a number that is no `char`.
    #[error("the key of rank {rank} is not a value of its type")]
    Key {
        /// Rank of the key.
        rank: usize,
    },
    /// A value is invalid for its type.
    #[error("the value of rank {rank} is not one of its type")]
    Value {
        /// Rank of the value.
        rank: usize,
    },
    /// A key or value of variable length is not where it should be.
    #[error("the entry of rank {rank} lies where it should not")]
    Heap {
        /// Rank of the entry.
        rank: usize,
    },
    /// A search for a key does not find it: a key of the index is wrong.
    #[error("a search for the key of rank {rank} does not find it")]
    Index {
        /// Rank of the key.
        rank: usize,
    },
    /// The free places of the last leaf are not filled as they should be.
    #[error("the last leaf is not filled up as it should be")]
    Filler,
}
