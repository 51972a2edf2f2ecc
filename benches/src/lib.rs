//! Measurements against rivals.
//!
//! The `report` binary runs the workloads of [`suites`]; the `figures` binary makes the thesis's
//! figures 2-6 and 2-7. Every run checks the answers.
//!
//! - [`rng`], [`timing`], [`sys`]: random numbers, timing in turns, what the system tells;
//! - [`rounds`]: the rounds of a measurement, and their spread;
//! - [`keys`], [`queries`]: what maps hold, what structures are asked, lookups that wait for each
//!   other;
//! - [`ordered_map`]: the trait of ordered maps, and the passes that are timed;
//! - [`rivals`]: what ours is compared with;
//! - [`source`]: the allocator behind `Box` for a part of a thread's work;
//! - [`dispatch`]: the global allocator of `report`, which the environment chooses;
//! - [`placement`]: allocators of nodes, with and without hints;
//! - [`raw`]: a search tree and hash chains on an allocator of choice;
//! - [`search_tree`], [`survey`], [`structures`]: trees, lists, tables and octrees of boxes;
//! - [`programs`], `apps`: whole programs for allocators, applications of published crates;
//! - [`olden`]: the Olden programs, over allocators and placements;
//! - [`workload`], [`worker`]: what a workload is; processes of their own, allocators in turns;
//! - [`output`]: JSON lines, tables, Markdown, pictures, a page;
//! - [`suites`]: the list of workloads, a module for each crate under test.
//!
//! Ours and the rivals run in turns, in one process or in a process each, and the median over the
//! rounds counts. A ratio holds for the machine and the inputs that it was taken with. Keys are
//! drawn evenly, the hardest case for every layout.

// Modules, lowest first: `rng`, `timing`, `sys`, `rounds`, `keys`, `queries`,
// `ordered_map`, `rivals`, `source`, `dispatch`, `placement`, `raw`, `search_tree`, `survey`,
// `structures`, `programs`, `olden`, `apps`, `workload`, `output`, `worker`, `suites`, `figures`.

#[cfg(feature = "apps")]
pub mod apps;
pub mod dispatch;
pub mod figures;
pub mod keys;
pub mod olden;
pub mod ordered_map;
pub mod output;
pub mod placement;
pub mod programs;
pub mod queries;
pub mod raw;
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
