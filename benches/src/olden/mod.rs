//! The Olden programs, written from their published descriptions, each over a choice of allocator
//! and placement.
//!
//! Olden (A. Rogers, M. Carlisle, J. Reppy, L. Hendren, *Supporting Dynamic Data Structures on
//! Distributed-Memory Machines*, 1995; M. Carlisle's thesis, 1996) is the collection of pointer
//! programs that the thesis measures with (section 4.3.3, table 4.2, figure 4-5).
//!
//! `docs/olden.md` lists the programs, their settings and sizes; [`runner`] runs one program in a
//! process of its own.

pub mod age;
pub mod bisort;
mod complete_tree;
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
    /// One or two megabytes of nodes, at least twice the second-level cache of the thesis's
    /// machine: for tests, and for simulations in quick runs.
    Tiny,
    /// The thesis's input (table 4.2), or Olden's own where the thesis does not use the program.
    Thesis,
    /// For quick runs: some tens of MiB.
    Quick,
    /// At least four times a program's share of a last-level cache.
    Large,
}

/// One of the programs.
///
/// A run makes the input (untimed), and then calls [`build`](Olden::build),
/// [`morph`](Olden::morph) where asked for, and [`work`](Olden::work). It never drops the
/// structure.
pub trait Olden: Sized {
    /// Its name in names of comparisons.
    const NAME: &'static str;

    /// The policy for its hints, by the rule of `docs/ccmalloc.md`: the closest room for what is
    /// built in one go and in the order in which it is walked, a block of its own for what grows at
    /// many places.
    const POLICY: Policy;

    /// What [`work`](Olden::work) returns for each [`Size`]. Recorded from runs whose results a
    /// second algorithm confirmed.
    const RESULTS: [u64; 4];

    /// What does not count as work of the program, such as numbers drawn in advance.
    type Input;

    /// Makes the input.
    fn input(size: Size) -> Self::Input;

    /// Layouts of the nodes that [`build`](Olden::build) and [`work`](Olden::work) will allocate,
    /// with how many of each.
    fn nodes(input: &Self::Input) -> Vec<(Layout, usize)>;

    /// Builds the pointer structure: every node by [`Placement::new_near`].
    fn build<P: Placement>(input: &Self::Input, placement: P) -> Self;

    /// Lays the structure out.
    ///
    /// # Errors
    /// Those of [`Morph::run`].
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError>;

    /// Does the program's work, once for each build, and returns a checksum of its results.
    ///
    /// A program that changes its structure lays it out again from time to time if there is a
    /// `relayout`.
    ///
    /// # Errors
    /// Those of [`Morph::run`].
    fn work<P: Placement>(
        &mut self,
        input: &Self::Input,
        placement: P,
        relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError>;
}
