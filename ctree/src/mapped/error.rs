//! What can be wrong with a file, and what can go wrong while one is written.

use alloc::string::String;
use core::error::Error;
use core::fmt;
use std::io;

use super::header::VERSION;

/// Why a file was not opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The operating system gave an error.
    Io(io::Error),
    /// A directory, a device, a pipe or a socket.
    NotAFile,
    /// Shorter than a header.
    TooShort {
        /// Length of the file.
        file_bytes: u64,
    },
    /// Not a file of this library.
    Magic,
    /// Written on a machine with the other byte order.
    ByteOrder,
    /// Of another version of the format.
    Version {
        /// The version.
        found: u32,
    },
    /// The header is damaged.
    HeaderChecksum,
    /// The keys are of another type.
    KeyType {
        /// Name of the type in the file.
        found: String,
    },
    /// The values are of another type.
    ValueType {
        /// Name of the type in the file.
        found: String,
    },
    /// The header contradicts itself, or the file is too large for this machine.
    Layout,
    /// Truncated or extended.
    Length {
        /// What the header says.
        expected_bytes: u64,
        /// Length of the file.
        found_bytes: u64,
    },
    /// The index is damaged.
    IndexChecksum,
    /// The index contradicts itself: its keys are not in order.
    Index,
    /// The kernel does not protect the file against changes.
    NotImmutable,
    /// Opened with `verify`, and damaged.
    Verify(VerifyError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(_) => f.write_str("the file cannot be read"),
            OpenError::NotAFile => f.write_str("not a regular file"),
            OpenError::TooShort { file_bytes } => {
                write!(f, "{file_bytes} bytes are too few for a header")
            }
            OpenError::Magic => f.write_str("not a ctree file"),
            OpenError::ByteOrder => f.write_str("written on a machine with the other byte order"),
            OpenError::Version { found } => write!(
                f,
                "the file has format version {found}, and this library reads version {VERSION}"
            ),
            OpenError::HeaderChecksum => f.write_str("the header is damaged"),
            OpenError::KeyType { found } => write!(f, "the keys are of type `{found}`"),
            OpenError::ValueType { found } => write!(f, "the values are of type `{found}`"),
            OpenError::Layout => f.write_str("the header contradicts itself"),
            OpenError::Length {
                expected_bytes,
                found_bytes,
            } => write!(
                f,
                "the file has {found_bytes} bytes where its header says {expected_bytes}"
            ),
            OpenError::IndexChecksum => f.write_str("the index is damaged"),
            OpenError::Index => f.write_str("the keys of the index are not in order"),
            OpenError::NotImmutable => f.write_str("the file is not protected against changes"),
            OpenError::Verify(_) => f.write_str("the file is damaged"),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OpenError::Io(error) => Some(error),
            OpenError::Verify(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Io(error)
    }
}

/// Why a file was not written. The old file is still there, unless flushing the folder failed in
/// the end: then the new file is in place, but might not survive a loss of power.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system, or the writer given, gave an error.
    Io(io::Error),
    /// The path names a directory, a device, a pipe or a socket, or nothing.
    NotAFile,
    /// A key is not greater than the key before it.
    Order {
        /// Place in the input, counted from 0.
        index: usize,
    },
    /// A key or value of variable length has more than `u32::MAX` bytes.
    TooLong {
        /// Place in the input, counted from 0.
        index: usize,
    },
    /// The name of a key or value type is longer than the header has room for.
    TypeName {
        /// The name.
        name: String,
    },
    /// The file would be larger than a machine like this can map.
    TooLarge,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Io(_) => f.write_str("the file cannot be written"),
            WriteError::NotAFile => {
                f.write_str("the path names something that is not a regular file")
            }
            WriteError::Order { index } => {
                write!(
                    f,
                    "the key at index {index} is not greater than the key before it"
                )
            }
            WriteError::TooLong { index } => {
                write!(
                    f,
                    "the entry at index {index} has more than {} bytes",
                    u32::MAX
                )
            }
            WriteError::TypeName { name } => write!(f, "the type name `{name}` is too long"),
            WriteError::TooLarge => f.write_str("the file would be too large to map"),
        }
    }
}

impl Error for WriteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            WriteError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::Io(error)
    }
}

/// What [`verify`](super::MappedCTreeMap::verify) found in a file that could be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// The table of checksums is damaged.
    Checksums,
    /// A page is damaged.
    Page {
        /// Its number in the file, in units of 4096 B; page 0 is the header.
        page: usize,
    },
    /// A key is not greater than the key before it. (This and the following do not occur in a file
    /// that this library wrote with a total order of the keys.)
    Order {
        /// Rank of the key.
        rank: usize,
    },
    /// A key is invalid for its type: text that is not UTF-8, a number that is no `char`.
    Key {
        /// Rank of the key.
        rank: usize,
    },
    /// A value is invalid for its type.
    Value {
        /// Rank of the value.
        rank: usize,
    },
    /// A key or value of variable length is not where it should be.
    Heap {
        /// Rank of the entry.
        rank: usize,
    },
    /// A search for a key does not find it: a key of the index is wrong.
    Index {
        /// Rank of the key.
        rank: usize,
    },
    /// The free places of the last leaf are not filled as they should be.
    Filler,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerifyError::Checksums => f.write_str("the table of checksums is damaged"),
            VerifyError::Page { page } => write!(f, "page {page} is damaged"),
            VerifyError::Order { rank } => {
                write!(
                    f,
                    "the key of rank {rank} is not greater than the key before it"
                )
            }
            VerifyError::Key { rank } => {
                write!(f, "the key of rank {rank} is not a value of its type")
            }
            VerifyError::Value { rank } => {
                write!(f, "the value of rank {rank} is not one of its type")
            }
            VerifyError::Heap { rank } => {
                write!(f, "the entry of rank {rank} lies where it should not")
            }
            VerifyError::Index { rank } => {
                write!(f, "a search for the key of rank {rank} does not find it")
            }
            VerifyError::Filler => f.write_str("the last leaf is not filled up as it should be"),
        }
    }
}

impl Error for VerifyError {}
