//! What threads say to each other, apart from what it is about.
//!
//! Two threads meet in three places only: a thread frees another's object ([`RemoteWord`], [`DirtyStack`]), a heap changes hands
//! ([`TaggedStack`]), and a table of addresses is read while it grows (`registry`, which publishes each leaf once). The first two are small protocols whose
//! every interleaving matters, and here they are alone with their atomics: no chunk, no heap, nothing but what [`primitive`](crate::primitive) offers.
//! So a model checker can run these very files: `cargo test --release --manifest-path ccmalloc/loom/Cargo.toml` goes through the interleavings, and through
//! the values that each load may see, of small programs with two or three threads.

mod dirty;
mod remote_word;
mod tagged_stack;

pub(crate) use dirty::{Dirty, DirtyNode, DirtyStack};
pub(crate) use remote_word::RemoteWord;
pub(crate) use tagged_stack::{Linked, TaggedStack};
