//! Maps and sets that are files: written once, opened without being read.
//!
//! ```text
//! memory:  index: a FrozenCTreeSet of one key between every two leaves       1/16 of the keys
//!                                   |  number of the leaf
//! file:    header | leaf 0 | leaf 1 | ... | values, heaps | separators | checksums
//! ```
//!
//! The file is a format, not an image of this library's memory: its leaves are searched in place,
//! but the index is built from a list of separators when the file is opened. The tree in memory can
//! change while files stay readable, and a forged file cannot forge its structure.
//!
//! | module | knows |
//! |---|---|
//! | `stored` | how types become bytes, and bytes types; how keys find their leaf |
//! | `layout` | where everything lies: arithmetic, computed rather than read |
//! | `header` | the first page |
//! | `write`, `spool` | how a file is made, at once or not at all |
//! | `source`, `open` | where the bytes come from, and what is checked before they are used |
//! | `tree` | lookups and verification, in terms of bytes and ranks |
//! | `map`, `set`, `iter` | the public face |

mod error;
mod header;
mod iter;
mod layout;
mod map;
mod open;
mod set;
mod source;
mod spool;
mod stored;
mod tree;
mod write;

#[cfg(test)]
mod tests;

pub use error::{OpenError, VerifyError, WriteError};
pub use map::MappedCTreeMap;
pub use open::OpenOptions;
pub use set::MappedCTreeSet;
pub use stored::{AsStored, Plain, Stored, StoredKey};

/// Iterators over [`MappedCTreeMap`].
pub mod mapped_map {
    pub use super::iter::{Iter, Keys, Values};
}

/// Iterators over [`MappedCTreeSet`].
pub mod mapped_set {
    /// The keys of a set in order, from both ends.
    pub type Iter<'a, K> = super::iter::Keys<'a, K, ()>;
}
