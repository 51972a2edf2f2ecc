//! Measurements against rivals.
//!
//! The `report` binary runs the list of workloads; the criterion benches look at single operations.
//! Every run checks the answers before it believes a figure.
//!
//! | module | holds |
//! |---|---|
//! | [`workload`] | the list, and what a workload is told and returns |
//! | [`suites`] | the workloads, a module for each crate under test |
//! | [`rivals`] | what ours is compared with, a file each |
//! | [`rng`], [`timing`], [`chain`] | random numbers, timing in turns, lookups that wait for each other |
//! | [`raw_tree`], [`raw_chains`] | a search tree and hash chains whose nodes come from an allocator of choice |
//! | [`search_tree`], [`survey`] | a search tree of 24-byte boxes, and where its nodes lie |
//! | [`structures`] | trees, lists, tables and octrees of boxes, as programs write them |
//! | [`ordered_map`] | ordered maps: the trait of their adapters, and the passes that are timed |
//! | [`keys`] | what keys they hold |
//! | [`queries`] | what structures are asked: keys drawn evenly, and hot keys |
//! | [`source`] | the allocator behind `Box` for a part of a thread's work |
//! | [`install`] | the methods of an allocator that can serve a whole process |
//! | [`olden`] | the Olden programs, over allocators and placements |
//! | [`programs`] | whole programs for allocators, each for a process of its own |
//! | `apps` | applications of published crates; with the feature `apps` |
//! | [`worker`] | those processes, allocators in turns; and workloads in processes of their own |
//! | [`figures`] | the thesis's figures 2-6 and 2-7, which the `figures` binary makes |
//! | [`dispatch`] | the global allocator of `report`, chosen by the environment when the process starts |
//! | [`rounds`] | what the rounds of a measurement gave, and their spread |
//! | [`curves`] | costs against the size of a structure, measured and predicted |
//! | [`output`] | JSON lines, tables, Markdown, pictures, a page |
//!
//! What a figure can and cannot say: ours and the rivals run in one process, in turns, or, where a
//! whole program is the subject, each in a process of its own, in turns, too; and the median over
//! the rounds counts, so a ratio holds on the machine and for the inputs that it was taken with.
//! Keys are drawn evenly, which is the hardest case for every layout; programs with hot keys gain
//! less, because their hot paths lie in the cache anyway. Memory is freshly built, not aged.

#[cfg(feature = "apps")]
pub mod apps;
pub mod chain;
pub mod curves;
pub mod dispatch;
pub mod figures;
pub mod install;
pub mod keys;
pub mod olden;
pub mod ordered_map;
pub mod output;
pub mod programs;
pub mod queries;
pub mod raw_chains;
pub mod raw_tree;
pub mod rivals;
pub mod rng;
pub mod rounds;
pub mod search_tree;
pub mod source;
pub mod structures;
pub mod suites;
pub mod survey;
pub mod sys;
pub mod timing;
pub mod worker;
pub mod workload;
