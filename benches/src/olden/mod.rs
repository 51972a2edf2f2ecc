//! The Olden programs, written from their published descriptions, each over a choice of allocator
//! and placement. `docs/inside/olden.md` has results; [`runner`] runs one in its own process.
//!
//! Olden (A. Rogers, M. Carlisle, J. Reppy, L. Hendren, *Supporting Dynamic Data Structures on
//! Distributed-Memory Machines*, 1995) is the collection of pointer programs that the thesis
//! measures with (section 4.3.3, table 4.2, figure 4-5).

#![expect(missing_debug_implementations, reason = "no structure is printed")]

pub mod age;
pub mod bisort;
pub mod em3d;
pub mod health;
pub mod mst;
pub mod perimeter;
pub mod runner;
pub mod treeadd;
pub mod tsp;

use std::alloc::Layout;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};
use clap::ValueEnum;

use crate::placement::Placement;

/// How much data a program works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// For tests: one or two MiB of nodes, twice the second-level cache of the thesis's machine.
    Tiny,
    /// The thesis's input (table 4.2), or Olden's own where the thesis does not use the program.
    Thesis,
    /// For quick runs: some tens of MiB.
    Quick,
    /// At least four times a program's share of a last-level cache.
    Large,
}

/// One of the programs. Making its input is not timed, and its structure is never dropped.
pub trait Olden: Sized {
    const NAME: &'static str;

    /// The policy for its hints: the closest room for what is built in one go in the order in which
    /// it is walked, a block of its own for what grows at many places.
    const POLICY: Policy;

    /// What [`work`](Olden::work) returns for each [`Size`]. A second algorithm confirmed them.
    const RESULTS: [u64; 4];

    /// What is not part of the work, such as numbers drawn in advance.
    type Input;

    fn input(size: Size) -> Self::Input;

    /// Layouts of the nodes that the program will allocate, with how many of each.
    fn nodes(input: &Self::Input) -> Vec<(Layout, usize)>;

    /// Builds the structure: every node by [`Placement::new_near`].
    fn build<P: Placement>(input: &Self::Input, placement: P) -> Self;

    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError>;

    /// Does the work, once for each build, and returns a checksum of its results. Calls `relayout`
    /// from time to time if it changes the structure.
    fn work<P: Placement>(
        &mut self,
        input: &Self::Input,
        placement: P,
        relayout: impl Fn(&mut Self),
    ) -> u64;
}
