//! The dynamic map and set.

mod kinds;
mod operation;
mod program;
mod programs;
mod set_program;
