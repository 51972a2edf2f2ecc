//! What the example programs and the benchmarks share.
//!
//! | module | holds |
//! |---|---|
//! | [`quickstart`] | the example program `quickstart` |
//! | [`placement`] | the example program `placement` |
//! | [`layout_map`] | the example program `layout_map` |
//! | [`guide`] | the example program `guide`, the worked example of `docs/guide.md` |
//! | [`switch`] | a global allocator that serves each thread from the system's malloc or from `CcMalloc`, as asked |
//! | [`search_tree`] | the binary search tree of `Box`ed nodes that every layout is shown on |
//! | [`survey`] | where the nodes of such a tree really lie: its shape and its addresses, for the model |
//! | [`chain`] | lookups of which each waits for the answer before |
//! | [`timing`] | timing several subjects in turns, so that they share the machine's moods |
//! | [`rng`] | a small seeded generator, so that two runs see the same data |
//!
//! None of this is published. A program of one's own needs the crates `ccmalloc`, `ccmorph`,
//! `ctree` and `ccmodel` only.

pub mod chain;
pub mod guide;
pub mod layout_map;
pub mod placement;
pub mod quickstart;
pub mod rng;
pub mod search_tree;
pub mod survey;
pub mod switch;
pub mod timing;

mod sys;
