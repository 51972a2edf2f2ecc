//! The Olden programs, written from their published descriptions, each over a choice of allocator
//! and placement.
//!
//! Olden (A. Rogers, M. Carlisle, J. Reppy, L. Hendren, *Supporting Dynamic Data Structures on
//! Distributed-Memory Machines*, 1995; M. Carlisle's thesis, 1996) is the collection of pointer
//! programs that the thesis measures with (section 4.3.3, table 4.2, figure 4-5).
//!
//! | module | structure | what it does |
//! |---|---|---|
//! | [`treeadd`] | binary tree | builds it, adds its values up |
//! | [`perimeter`] | quadtree with parent pointers | perimeter of the regions of an image |
//! | [`bisort`] | binary tree | sorts its values forwards and backwards, bitonically |
//! | [`health`] | doubly linked lists that grow and shrink | a simulation of hospitals |
//! | [`mst`] | hash tables with chains, one for each vertex | a minimum spanning tree |
//! | [`em3d`] | lists of nodes that point at nodes of another list | the propagation of a wave |
//! | [`tsp`] | binary tree, rings through its nodes | a tour through cities |
//! | [`age`] | | ages the heap before a program runs |
//! | [`runner`] | | one run of one program in a process of its own |
//!
//! `docs/olden.md` has the settings, the sizes and the choices; [`crate::suites::olden`] measures.

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
    /// About a megabyte or two of nodes, at least twice the second-level cache of the thesis's
    /// machine: tests, and simulations in quick runs.
    Tiny,
    /// The thesis's input (table 4.2), or Olden's own where the thesis does not use the program:
    /// fits a last-level cache of today, and is what is simulated.
    Thesis,
    /// A quick run: some tens of MiB.
    Quick,
    /// At least four times what a last-level cache gives one program, so 128 MiB of nodes or more.
    Large,
}

/// One of the programs.
///
/// A run is: the input is made (untimed), [`build`](Olden::build), where asked for
/// [`morph`](Olden::morph), [`work`](Olden::work). The three are timed one by one; their sum is the
/// program's time, as in the thesis.
pub trait Olden: Sized {
    /// Its name in names of comparisons: `treeadd`.
    const NAME: &'static str;

    /// The policy that a programmer would choose for its hints, by the rule of `docs/ccmalloc.md`:
    /// the closest room for what is built in one go and in the order in which it is walked, a block
    /// of its own for what grows at many places.
    const POLICY: Policy;

    /// What does not count as work of the program: numbers drawn in advance, for instance.
    type Input;

    /// Makes the input.
    fn input(size: Size) -> Self::Input;

    /// Layouts of the nodes that [`build`](Olden::build) will allocate, with how many of each: what
    /// the heap is aged with.
    fn nodes(input: &Self::Input) -> Vec<(Layout, usize)>;

    /// Builds the pointer structure: every node by [`Placement::new_near`].
    fn build<P: Placement>(input: &Self::Input, placement: P) -> Self;

    /// Lays the structure out.
    ///
    /// # Errors
    /// Those of [`Morph::run`].
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError>;

    /// Does the program's work and returns a sum over its results, which is the same wherever the
    /// nodes lie.
    ///
    /// New nodes are placed, too, and with `relayout` given, a program that changes its structure
    /// lays it out again from time to time.
    ///
    /// # Errors
    /// Those of [`Morph::run`].
    fn work<P: Placement>(
        &mut self,
        input: &Self::Input,
        placement: P,
        relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError>;

    /// Checks the result of [`work`](Olden::work) against what is known of it: a closed form, a
    /// conserved quantity, another algorithm.
    ///
    /// # Errors
    /// What is wrong, in words.
    fn check(&self, input: &Self::Input, result: u64) -> Result<(), String>;
}

/// An error unless a result is the expected one.
fn check_equal(result: u64, expected: u64) -> Result<(), String> {
    let message = || format!("the result is {result}, not {expected}");
    (result == expected).then_some(()).ok_or_else(message)
}
