//! Measurements of ours against rivals, which run in turns; medians over the rounds count.
//!
//! The `measure` binary runs the workloads of [`suites`]; the `figures` binary makes the thesis's
//! figures 2-6 and 2-7. Every run checks the answers.

#![expect(missing_docs, reason = "not published; most names say what they are")]

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
