//! What threads say to each other, apart from what it is about.
//!
//! Two threads meet where a thread frees another's object ([`RemoteWord`], [`DirtyStack`]), where a
//! heap changes hands ([`TaggedStack`]), and on what is only added to or taken as a whole: the
//! `registry`, which publishes each leaf once, the list of all heaps, and the stack of a
//! first-class heap's freed mappings. The first two are small protocols whose every interleaving
//! matters, and here they are alone with their atomics: no chunk, no heap, nothing but what
//! [`primitive`](crate::primitive) offers. So a model checker can run these very files: `cargo test
//! --release --manifest-path ccmalloc/loom/Cargo.toml` goes through the interleavings, and through
//! the values that each load may see, of small programs with two or three threads.

mod dirty;
mod remote_word;
mod tagged_stack;

pub(crate) use dirty::{Dirty, DirtyNode, DirtyStack};
pub(crate) use remote_word::RemoteWord;
pub(crate) use tagged_stack::{Linked, TaggedStack};
