//! Protocols between threads: remote frees ([`RemoteWord`], [`DirtyStack`]), and arenas that change
//! hands ([`TaggedStack`]).
//!
//! They use only [`primitive`](crate::primitive), so that the model checker loom can run these
//! files: `cargo test --release --manifest-path ccmalloc/loom/Cargo.toml`.

mod dirty;
mod remote_word;
mod tagged_stack;

pub(crate) use dirty::{Dirty, DirtyNode, DirtyStack};
pub(crate) use remote_word::RemoteWord;
pub(crate) use tagged_stack::{Linked, TaggedStack};
