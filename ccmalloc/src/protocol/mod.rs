//! What threads say to each other, apart from what it is about.
//!
//! Two threads meet in a remote free ([`RemoteWord`], [`DirtyStack`]) and where a heap changes
//! hands ([`TaggedStack`]). Elsewhere (the `registry`, the list of all heaps, the stack of a
//! first-class heap's freed mappings) memory is only added, or taken as a whole. These two
//! protocols use nothing but what [`primitive`](crate::primitive) offers, so that a model checker
//! can run these files: `cargo test --release --manifest-path ccmalloc/loom/Cargo.toml` goes
//! through the interleavings of small programs with two or three threads.

mod dirty;
mod remote_word;
mod tagged_stack;

pub(crate) use dirty::{Dirty, DirtyNode, DirtyStack};
pub(crate) use remote_word::RemoteWord;
pub(crate) use tagged_stack::{Linked, TaggedStack};
