//! The dynamic map and set.

mod allocators;
pub(crate) mod edges;
mod iterators;
pub(crate) mod kinds;
pub(crate) mod lawless;
pub(crate) mod operation;
pub(crate) mod panics;
mod parts;
pub(crate) mod program;
mod programs;
mod set_program;
