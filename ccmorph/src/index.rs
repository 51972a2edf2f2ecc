//! Index trees: nodes in a slice, whose children are numbers.
//!
//! A `Vec<Node>` with `left: u32` needs no allocator that places nodes: to move them is to permute
//! the slice. So this works under any allocator, for vectors, arrays, memory maps and shared memory
//! alike, and in safe code:
//!
//! ```text
//! walk      show every index of every node: borrow all of them at once       user's code, changes nothing
//! plan      a layout's order of the nodes, for a slice that has no gaps
//! renumber  write the new numbers                                            no code of the user's from here on
//! permute   swap the nodes into their places
//! ```
//!
//! A panic in the walk leaves the slice as it was, but for what the traversal itself did; behind it
//! there is nothing that can panic.
//!
//! # What differs from boxes
//!
//! * An index is no proof of ownership. Children may be shared, and cycles are fine: the first way
//!   on which a node is reached makes it a child, breadth-first from the roots. Parents and all
//!   other indices are shown as [references](IndexVisit::reference), which are renumbered and have
//!   no say.
//! * Nodes that cannot be reached are visited as well, since they may hold indices, and since the
//!   slice has no place to leave them out: they go to its end.
//! * A slice has no gaps and begins where it begins. What becomes of a layout that was made for
//!   memory with gaps, from a border on, says the module `plan`.

mod link;
mod permutation;
mod plan;
#[cfg(test)]
mod tests;
mod walk;

pub use link::{IndexVisit, Indices, NodeIndex};
pub use permutation::Permutation;

use crate::plan::{LayoutChoice, Operation, Settings};
use crate::report::Clock;
use crate::{Map, MorphError, Report};
use ccmodel::{Machine, PageSize};
use plan::Slice;
use std::fmt;
use walk::{Walk, Weigh};

/// A morph of nodes that lie in a slice and have numbers for links.
///
/// # Examples
///
/// ```
/// use ccmorph::IndexMorph;
///
/// const NONE: u32 = u32::MAX;
/// struct Node {
///     key: u64,
///     left: u32,
///     right: u32,
///     parent: u32,
/// }
///
/// // A search tree that grew by random inserts.
/// let mut nodes: Vec<Node> = Vec::new();
/// let mut root = NONE;
/// for i in 0..10_000u64 {
///     let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
///     let new = nodes.len() as u32;
///     let (mut parent, mut link) = (NONE, &mut root);
///     while *link != NONE {
///         parent = *link;
///         let node = &mut nodes[parent as usize];
///         link = if key < node.key { &mut node.left } else { &mut node.right };
///     }
///     *link = new;
///     nodes.push(Node { key, left: NONE, right: NONE, parent });
/// }
///
/// let report = IndexMorph::new().run(&mut nodes, &mut root, |node, visit| {
///     visit.child(&mut node.left);
///     visit.child(&mut node.right);
///     visit.reference(&mut node.parent);
/// })?;
/// assert_eq!((report.morph.nodes, report.reached), (10_000, 10_000));
/// assert!(report.morph.near_after.same_64 > 10 * report.morph.near_before.same_64);
/// assert!(nodes[root as usize].parent == NONE);
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a morph does nothing before `run`"]
pub struct IndexMorph<'m> {
    settings: Settings<'m>,
    first_index: usize,
}

impl Default for IndexMorph<'_> {
    fn default() -> Self {
        IndexMorph::new()
    }
}

impl<'m> IndexMorph<'m> {
    /// Creates a morph in the layout that the model chooses among those that suit a slice, for this
    /// machine and pages of 4 KiB. The first node of the slice has the index 0.
    pub fn new() -> IndexMorph<'m> {
        IndexMorph {
            settings: Settings {
                pages: Some(PageSize::Small4K),
                ..Settings::default()
            },
            first_index: 0,
        }
    }

    /// Sets the layout.
    ///
    /// A slice has no gaps. Where 64 bytes hold a number of whole nodes, a node from the end of the
    /// order fills each gap of the layout. Otherwise the nodes behind a gap move up, and clusters
    /// lose their alignment. [`LayoutChoice::Auto`] takes no layout that loses it.
    pub fn layout(mut self, layout: impl Into<LayoutChoice>) -> IndexMorph<'m> {
        self.settings.layout = layout.into();
        self
    }

    /// Tells what the program does with the structure, as
    /// [`Morph::operation`](crate::Morph::operation) does.
    pub fn operation(mut self, operation: Operation) -> IndexMorph<'m> {
        self.settings.operation = Some(operation);
        self
    }

    /// Chooses and predicts for this machine rather than for [`Machine::this`]. It must pass
    /// [`Machine::check`], as every machine does that was not changed by hand.
    pub fn machine(mut self, machine: &'m Machine) -> IndexMorph<'m> {
        self.settings.machine = Some(machine);
        self
    }

    /// Sets whether to predict the cost of an operation before and after, as
    /// [`Morph::predict`](crate::Morph::predict) does. Nodes that cannot be reached do not count.
    pub fn predict(mut self, predict: bool) -> IndexMorph<'m> {
        self.settings.predict = predict;
        self
    }

    /// Chooses and predicts for a slice in pages of this size. A slice does not tell which pages
    /// its allocator got.
    pub fn pages(mut self, pages: PageSize) -> IndexMorph<'m> {
        self.settings.pages = Some(pages);
        self
    }

    /// The index of the first node of the slice.
    ///
    /// 1 is for nodes that are counted from one, as [`NonZero`](std::num::NonZero) indices often
    /// are, and for a slice without the dummy at index 0: `run(&mut nodes[1..], ..)`. Any number is
    /// for a part of a larger slice. Indices outside of the part mean "no node" and stay as they
    /// are.
    pub fn first_index(mut self, index: usize) -> IndexMorph<'m> {
        self.first_index = index;
        self
    }

    /// Moves all nodes of the slice, and rewrites all indices that `traverse` shows, and those of
    /// `roots`.
    ///
    /// `roots` are the indices by which the structure is entered: one, or an array or vector of
    /// them, such as the heads of a chained hash table. `traverse` is called once for each node of
    /// the slice and shows it the indices of children and others; see [`IndexVisit`]. Indices that
    /// it hides are not renumbered. First come the nodes below the roots, breadth-first, then those
    /// that cannot be reached from there, in the order of the slice.
    ///
    /// Afterwards the structure is equal in every respect but the numbers of its nodes;
    /// [`IndexReport::permutation`] translates those that are kept elsewhere. A node that has the
    /// first place and is the first root keeps it, so that a program may take for granted that its
    /// root is there.
    ///
    /// "No node" is told by an index outside of the slice, be it `None`, `u32::MAX` or -1. Where 0
    /// tells it because the root is at 0 and nobody's child, nothing has to be done: the root was
    /// shown first and stays. Where it does because a dummy is at 0, the dummy has to be left out:
    /// [`first_index(1)`](IndexMorph::first_index).
    ///
    /// Costs O(n log n) time at worst, some ten cache misses a node of which most overlap, and
    /// memory until the end: 52 bytes a node, 20 for each index shown that names a node, and 8 for
    /// the weight, if there is one. A search tree of 4 M nodes, where that is a child and a parent
    /// for each, takes 92 bytes a node. [`LayoutChoice::Auto`] takes little more of either: it
    /// decides on a sample. The permutation has 8 bytes a node. The stack does not grow with the
    /// structure.
    ///
    /// # Errors
    ///
    /// [`MorphError::TooManyNodes`] for slices of `u32::MAX` nodes or more,
    /// [`MorphError::IndexTooNarrow`] when the type of an index cannot hold its new number (a `u8`
    /// in a slice of 1000 nodes; a `NonZero` when the first index is 0),
    /// [`MorphError::NodeTooLarge`] for nodes of 4 GiB, [`MorphError::InvalidMachine`]. Nothing has
    /// changed then.
    ///
    /// # Panics
    ///
    /// When `traverse` does. Nothing has changed then either.
    pub fn run<T, R, F>(
        &self,
        nodes: &mut [T],
        roots: &mut R,
        mut traverse: F,
    ) -> Result<IndexReport, MorphError>
    where
        R: Indices + ?Sized,
        F: for<'a, 'v, 'w> FnMut(&'a mut T, &'w mut IndexVisit<'v, 'a>),
    {
        self.run_with(nodes, roots, &mut traverse, None)
    }

    /// As [`run`](IndexMorph::run), for operations that do not end at each node equally often.
    ///
    /// `weigh` tells for each node how many operations end there, in any unit: the popularity of
    /// its key, a count taken over a while. It is called once for each node, before `traverse` is.
    /// Negative weights and those that are no numbers count as 0, and those of nodes that cannot be
    /// reached from the roots do not count. [`Layout::Weighted`](crate::Layout::Weighted) is made
    /// for weights; all others but the random and the breadth-first one look at them, too, and so
    /// does [`LayoutChoice::Auto`]. For counts of *accesses*, which a node gets also from
    /// operations that go on to its children, see
    /// [`run_weighted_by_accesses`](IndexMorph::run_weighted_by_accesses).
    ///
    /// # Errors
    ///
    /// Those of [`run`](IndexMorph::run).
    ///
    /// # Panics
    ///
    /// When `traverse` or `weigh` does. Nothing has changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// use ccmorph::{IndexMorph, Layout};
    ///
    /// struct Word { text: &'static str, uses: u32, children: [Option<u32>; 2] }
    ///
    /// let word = |text, uses, children| Word { text, uses, children };
    /// let mut words = [
    ///     word("zygote", 1, [None; 2]),
    ///     word("a", 900, [None; 2]),
    ///     word("morph", 3, [Some(1), Some(0)]),
    /// ];
    /// let mut root = 2_u32;
    /// let report = IndexMorph::new().layout(Layout::Weighted).run_weighted(
    ///     &mut words,
    ///     &mut root,
    ///     |word, visit| visit.child(&mut word.children),
    ///     |word| f64::from(word.uses),
    /// )?;
    /// assert_eq!((report.nodes, words[root as usize].text), (3, "morph"));
    /// # Ok::<(), ccmorph::MorphError>(())
    /// ```
    pub fn run_weighted<T, R, F, W>(
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
        self.run_with(nodes, roots, &mut traverse, Some(&mut weigh))
    }

    /// As [`run_weighted`](IndexMorph::run_weighted), from counts of accesses, such as each node
    /// has that counts its visits (or every thousandth of them): an operation counts at each node
    /// on its way. Operations that end at a node are its accesses less those of its children.
    ///
    /// # Errors
    ///
    /// Those of [`run`](IndexMorph::run).
    ///
    /// # Panics
    ///
    /// When `traverse` or `accesses` does. Nothing has changed then.
    pub fn run_weighted_by_accesses<T, R, F, W>(
        &self,
        nodes: &mut [T],
        roots: &mut R,
        mut traverse: F,
        mut accesses: W,
    ) -> Result<IndexReport, MorphError>
    where
        R: Indices + ?Sized,
        F: for<'a, 'v, 'w> FnMut(&'a mut T, &'w mut IndexVisit<'v, 'a>),
        W: FnMut(&T) -> f64,
    {
        let mut morph = *self;
        morph.settings.weights_are_accesses = true;
        morph.run_with(nodes, roots, &mut traverse, Some(&mut accesses))
    }

    fn run_with<T, R, F>(
        &self,
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
        self.settings.check()?;
        let mut clock = Clock::start();
        let mut walk = Walk::run(
            &mut *nodes,
            self.first_index,
            |visit| visit.child(roots),
            traverse,
            weigh,
        );
        let traverse = clock.lap();
        let mut report = plan::plan(&self.settings, &mut walk, slice)?;
        let times = &mut report.morph.times;
        (times.traverse, times.plan) = (traverse, clock.lap());
        walk.renumber(&report.permutation)
            .map_err(|index| MorphError::IndexTooNarrow { index })?;
        report.permutation.apply(nodes);
        times.relocate = clock.lap();
        Ok(report)
    }

    /// Says where the nodes of the slice lie, without moving any: those below the roots and the
    /// others, as in [`run`](IndexMorph::run). O(n log n).
    ///
    /// # Errors
    ///
    /// [`MorphError::TooManyNodes`] for slices of `u32::MAX` nodes or more,
    /// [`MorphError::NodeTooLarge`] for nodes of 4 GiB.
    ///
    /// # Panics
    ///
    /// When `traverse` does.
    pub fn map<T, R, F>(
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
        let walk = Walk::run(
            nodes,
            self.first_index,
            |visit| visit.child(roots),
            &mut traverse,
            None,
        );
        Map::new(
            walk.parents(),
            slice.addresses_of(walk.order()),
            slice.node_bytes(),
        )
        .map_err(|_| MorphError::TooManyNodes)
    }
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
    /// What a morph of boxes reports, too.
    pub morph: Report,
}

/// Some lines for people; programs read the fields.
impl fmt::Display for IndexReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} nodes reached; {}", self.reached, self.morph)
    }
}
