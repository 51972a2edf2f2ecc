//! The dynamic map and set.

mod allocators;
mod edges;
mod iterators;
mod kinds;
mod lawless;
mod operation;
mod panics;
mod program;
mod programs;
mod set_program;
