//! Measurements against rivals.
//!
//! One list of workloads, one adapter file for each rival, and in every run the answers are checked before any figure is believed. The `report` binary
//! runs the list; the criterion benches look at single operations.
//!
//! | module | holds |
//! |---|---|
//! | [`workload`] | the list, and what a workload is told and returns |
//! | [`suites`] | the workloads, a module for each crate under test |
//! | [`rivals`] | what we are held against, a file each |
//! | [`raw_tree`] | a search tree whose nodes come from an allocator of choice |
//! | [`output`] | JSON lines, table, Markdown, SVG |
//!
//! What a figure can and cannot say: ours and the rivals run in one process, in turns, and the median over the rounds counts, so a ratio holds
//! on the machine and for the inputs that it was taken with. Keys are drawn evenly, which is the hardest case for every layout; programs with hot keys
//! gain less, because their hot paths lie in the cache anyway. Memory is freshly built, not aged.

pub mod output;
pub mod raw_tree;
pub mod rivals;
pub mod suites;
pub mod workload;
