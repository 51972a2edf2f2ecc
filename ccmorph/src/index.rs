//! Index trees: nodes in a slice, whose children are numbers.
//!
//! To move the nodes of a `Vec<Node>` with `left: u32` is to permute the slice. The walk borrows
//! every index of every node, and is the only phase that runs user code: a panic leaves the slice
//! as it was, except for what the traversal itself changed. Then the new numbers are written, and
//! the nodes swapped into their places, which cannot panic.

mod link;
mod permutation;
mod plan;
mod walk;

pub use link::{Indices, NodeIndex};
pub use permutation::Permutation;
pub use walk::IndexVisit;

use crate::collect::Weigh;
use crate::error::MorphError;
use crate::map::Map;
use crate::morph::Morph;
use crate::plan::Settings;
use crate::report::{Clock, Report};
use plan::Slice;
use std::fmt;
use walk::Walk;

impl Morph<'_> {
    /// Sets the index of the first node of a [slice](Morph::run_slice), which is 0 by default.
    ///
    /// Use 1 for nodes that are counted from one, as with [`NonZero`](std::num::NonZero), or for a
    /// slice without the dummy at index 0: `run_slice(&mut nodes[1..], ..)`.
    pub fn first_index(mut self, index: usize) -> Self {
        self.settings.first_index = index;
        self
    }

    /// Moves all nodes of a slice that have numbers for links, and rewrites `roots` and all indices
    /// that `traverse` shows. Works under any allocator.
    ///
    /// `roots` are the indices by which the program enters the structure, such as the heads of a
    /// chained hash table. `traverse` is called once for each node and shows its indices; see
    /// [`IndexVisit`]. Children may be shared, and cycles are fine. Nodes below the roots come
    /// first, breadth-first, then those that cannot be reached, in the order of the slice.
    ///
    /// Only the numbers of the nodes change. [`IndexReport::permutation`] translates indices that
    /// are kept elsewhere. If the first node of the slice is the first root, it stays there.
    ///
    /// An index outside of the slice means "no node", be it `None`, `u32::MAX` or -1, and stays as
    /// it is. If 0 means "no node" because the root is at 0, show the root first.
    ///
    /// A slice has no gaps. Where 64 bytes hold a number of whole nodes, a node from the end of the
    /// order fills each gap of the layout. Otherwise the nodes behind a gap move up, and clusters
    /// lose their alignment; the model chooses no layout that loses it. [Colours](Morph::colour)
    /// are not used. Nodes that cannot be reached do not count in predictions.
    ///
    /// Takes at most O(n log n) time and some ten cache misses a node, most of which overlap. While
    /// it runs it takes 52 bytes a node, 20 for each index that names a node, and 8 for a weight.
    /// The permutation has 8 bytes a node. The stack does not grow with the structure.
    ///
    /// # Errors
    /// [`MorphError::TooManyNodes`], [`MorphError::IndexTooNarrow`] (a `u8` in a slice of 1000
    /// nodes; a `NonZero` when the first index is 0), [`MorphError::NodeTooLarge`] for nodes of 4
    /// GiB, [`MorphError::InvalidMachine`]. The slice is then as it was, as it is when `traverse`
    /// panics.
    ///
    /// # Examples
    /// ```
    /// use ccmorph::Morph;
    ///
    /// const NONE: u32 = u32::MAX;
    /// struct Node { key: u64, left: u32, right: u32, parent: u32 }
    ///
    /// // A search tree whose root came last.
    /// let node = |key, left, right, parent| Node { key, left, right, parent };
    /// let mut nodes = vec![node(3, NONE, NONE, 2), node(1, NONE, NONE, 2), node(2, 1, 0, NONE)];
    /// let mut root = 2;
    /// let report = Morph::new().run_slice(&mut nodes, &mut root, |node, visit| {
    ///     visit.child(&mut node.left);
    ///     visit.child(&mut node.right);
    ///     visit.reference(&mut node.parent);
    /// })?;
    /// assert_eq!((report.morph.nodes, report.reached, root), (3, 3, 0));
    /// let left = &nodes[nodes[root as usize].left as usize];
    /// assert_eq!((left.key, left.parent), (1, root));
    /// # Ok::<(), ccmorph::MorphError>(())
    /// ```
    pub fn run_slice<T, R, F>(
        &self,
        nodes: &mut [T],
        roots: &mut R,
        mut traverse: F,
    ) -> Result<IndexReport, MorphError>
    where
        R: Indices + ?Sized,
        F: for<'a, 'v, 'w> FnMut(&'a mut T, &'w mut IndexVisit<'v, 'a>),
    {
        run(&self.settings, nodes, roots, &mut traverse, None)
    }

    /// As [`run_slice`](Morph::run_slice), with weights as for
    /// [`run_weighted`](Morph::run_weighted). Those of nodes that cannot be reached do not count.
    pub fn run_slice_weighted<T, R, F, W>(
        &self,
        nodes: &mut [T],
        roots: &mut R,
        mut traverse: F,
        mut weigh: W,
    ) -> Result<IndexReport, MorphError>
    where
        R: Indices + ?Sized,
        F: for<'a, 'v, 'w> FnMut(&'a mut T, &'w mut IndexVisit<'v, 'a>),
        W: FnMut(&T) -> f64,
    {
        let weigh: Weigh<'_, T> = &mut weigh;
        run(&self.settings, nodes, roots, &mut traverse, Some(weigh))
    }

    /// Says where the nodes of a slice lie, without moving any. O(n log n).
    pub fn map_slice<T, R, F>(
        &self,
        nodes: &mut [T],
        roots: &mut R,
        mut traverse: F,
    ) -> Result<Map, MorphError>
    where
        R: Indices + ?Sized,
        F: for<'a, 'v, 'w> FnMut(&'a mut T, &'w mut IndexVisit<'v, 'a>),
    {
        let slice = Slice::of(nodes)?;
        let walk = Walk::run(nodes, self.settings.first_index, roots, &mut traverse, None);
        let addresses = slice.addresses_of(&walk.order);
        Map::new(&walk.parents, addresses, slice.node_bytes).map_err(|_| MorphError::TooManyNodes)
    }
}

fn run<T, R, F>(
    settings: &Settings<'_>,
    nodes: &mut [T],
    roots: &mut R,
    traverse: &mut F,
    weigh: Option<Weigh<'_, T>>,
) -> Result<IndexReport, MorphError>
where
    R: Indices + ?Sized,
    F: for<'a, 'v, 'w> FnMut(&'a mut T, &'w mut IndexVisit<'v, 'a>),
{
    let slice = Slice::of(nodes)?;
    settings.check()?;
    let mut clock = Clock::start();
    let mut walk = Walk::run(&mut *nodes, settings.first_index, roots, traverse, weigh);
    let traverse = clock.lap();
    let mut report = plan::plan(settings, &mut walk, slice)?;
    let times = &mut report.morph.times;
    (times.traverse, times.plan) = (traverse, clock.lap());
    walk.renumber(&report.permutation)
        .map_err(|index| MorphError::IndexTooNarrow { index })?;
    report.permutation.apply(nodes);
    times.relocate = clock.lap();
    Ok(report)
}

/// What a morph of an index tree did.
#[derive(Clone, Debug)]
#[must_use = "indices kept outside of the nodes and the roots have to be translated"]
#[non_exhaustive]
pub struct IndexReport {
    /// Where each node went: for indices that are kept elsewhere, and for arrays that run beside
    /// the nodes.
    pub permutation: Permutation,
    /// How many nodes can be reached from the roots. The others are at the end of the slice.
    pub reached: usize,
    /// What a morph of boxes reports as well.
    pub morph: Report,
}

/// Some lines of text for people.
impl fmt::Display for IndexReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} nodes reached; {}", self.reached, self.morph)
    }
}
