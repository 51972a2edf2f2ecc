//! Integration tests, in one binary: each module is of one part.

mod allocators;
mod analyses;
mod aside;
mod browser;
mod building;
mod builds;
mod capture;
mod cli;
mod dhat;
mod ends;
mod family;
mod full;
mod hostile;
mod improve;
mod improve_package;
mod lackey;
mod leaks;
mod live;
mod memory;
mod misses;
mod page;
mod page_profile;
mod page_views;
#[path = "../pprof/mod.rs"]
mod pprof;
mod programs;
mod regions;
mod sampled;
mod serve;
mod shown;
#[path = "../../../tests/skipped.rs"]
mod skipped;
mod store;
mod tools;
mod top;
mod types;
mod unmodified;
mod valgrind;
mod vectors;
mod views;

use tools::missing;
