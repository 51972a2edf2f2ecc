//! Index trees: nodes in a slice, whose children are numbers.
//!
//! A `Vec<Node>` with `left: u32` needs no allocator that places nodes: to move them is to permute the slice. So this works
//! under any allocator, for vectors, arrays, memory maps and shared memory alike, and in safe code:
//!
//! ```text
//! walk      show every index of every node: borrow all of them at once       user's code, changes nothing
//! plan      a layout's order of the nodes, the first one found or the best of several
//! renumber  write the new numbers                                            no code of the user's from here on
//! permute   swap the nodes into their places
//! ```
//!
//! A panic in the walk leaves the slice as it was, but for what the traversal itself did; behind it there is nothing that can panic.
//!
//! # What differs from boxes
//!
//! * An index is no proof of ownership. Children may be shared, and cycles are fine: the first way on which a node is reached
//!   makes it a child, breadth-first from the roots. Parents and all other indices are shown as
//!   [references](IndexVisit::reference), which are renumbered and have no say.
//! * Nodes that cannot be reached are visited as well, since they may hold indices, and since the slice has no place to leave them out: they go to its end.
//! * A slice has no gaps. Where a layout leaves a place free, a node from the end of the order takes it if blocks hold a number of whole nodes, so that
//!   the clusters behind it still begin with blocks; else everything behind moves up. The choice is made by predictions for the addresses that result.
//! * A slice begins where it begins, which need not be a block's border: glibc gives vectors 16 bytes behind one. If some nodes later there is such a
//!   border, as many nodes from the end of an order of clusters come first. The orders without clusters are exactly what their names say.
//!
//! Both matter. Predicted nanoseconds of a search in a random-insert tree of a million nodes under `cluster-veb`, on the machine that the crate was built on:
//!
//! | node | with gaps, as boxes lie | gaps closed by moving up | gaps filled from the end |
//! |---|---|---|---|
//! | 8 B | 131.4 | 137.4 | 129.3 |
//! | 16 B | 226.4 | 255.0 | 230.0 |
//! | 24 B | 350.5 | 333.1 | - |
//!
//! | 32 B, slice begins behind a border | 0 B | 32 B | 16 B |
//! |---|---|---|---|
//! | order as it comes | 350.5 | 417.8 | 423.6 |
//! | a node from the end comes first | | 350.7 | - |
//!
//! The last column is the caller's to avoid: `#[repr(align(32))]` on a node of 32 bytes, likewise 16 and 64, lets vectors begin where a whole number of nodes fits.
//! Borders of pages were tried, too: no prediction changed by a hundredth.

mod link;
mod permutation;
mod report;
mod walk;

pub use link::{IndexVisit, Indices, NodeIndex};
pub use permutation::Permutation;
pub use report::{IndexReport, IndexTimes};

use crate::{LayoutChoice, Map, MorphError, Nearness};
use ccmodel::{
    Layout, Machine, NO_NODE, NodeExtent, PageSize, Placement, Prediction, Predictor, Shape,
};
use std::time::Instant;
use walk::Walk;

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
/// assert_eq!((report.nodes, report.reached), (10_000, 10_000));
/// assert!(report.near_after.same_64 > 10 * report.near_before.same_64);
/// assert!(nodes[root as usize].parent == NONE);
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a morph does nothing before `run`"]
pub struct IndexMorph<'m> {
    layout: LayoutChoice,
    machine: Option<&'m Machine>,
    pages: PageSize,
    first_index: usize,
}

impl Default for IndexMorph<'_> {
    fn default() -> Self {
        IndexMorph::new()
    }
}

impl<'m> IndexMorph<'m> {
    /// The layout chosen by the model, for this machine and pages of 4 KiB; the first node of the slice has the index 0.
    pub fn new() -> IndexMorph<'m> {
        IndexMorph {
            layout: LayoutChoice::Auto,
            machine: None,
            pages: PageSize::Small4K,
            first_index: 0,
        }
    }

    /// Sets the layout.
    pub fn layout(mut self, layout: impl Into<LayoutChoice>) -> IndexMorph<'m> {
        self.layout = layout.into();
        self
    }

    /// Chooses for this machine rather than for [`Machine::this`]. It must pass [`Machine::check`], as all do that were not
    /// changed by hand.
    pub fn machine(mut self, machine: &'m Machine) -> IndexMorph<'m> {
        self.machine = Some(machine);
        self
    }

    /// Chooses for a slice that lies in pages of this size. Which ones the allocator got cannot be told from a slice.
    pub fn pages(mut self, pages: PageSize) -> IndexMorph<'m> {
        self.pages = pages;
        self
    }

    /// The index of the first node of the slice.
    ///
    /// 1 is for nodes that are counted from one, as [`NonZero`](std::num::NonZero) indices often are, and for a slice without
    /// the dummy at index 0: `run(&mut nodes[1..], ..)`. Any number is for a part of a larger slice. Indices outside of the part mean
    /// "no node" and stay as they are.
    pub fn first_index(mut self, index: usize) -> IndexMorph<'m> {
        self.first_index = index;
        self
    }

    /// Moves all nodes of the slice, and rewrites all indices that `traverse` shows, and those of `roots`.
    ///
    /// `roots` are the indices by which the structure is entered: one, or an array or vector of them, such as the heads of
    /// a chained hash table. `traverse` is called once for each node of the slice and shows it the indices of children and others;
    /// see [`IndexVisit`]. Indices that it hides are not renumbered. First come the nodes below the roots, breadth-first, then those that cannot
    /// be reached from there, in the order of the slice.
    ///
    /// Afterwards the structure is equal in every respect but the numbers of its nodes;
    /// [`IndexReport::permutation`] translates those that are kept elsewhere. A node that has the first place and is the first root keeps
    /// it, so that a program may take for granted that its root is there.
    ///
    /// "No node" is told by an index outside of the slice, be it `None`, `u32::MAX` or -1. Where 0 tells it because the root is at 0 and nobody's child, nothing
    /// has to be done: the root was shown first and stays. Where it does because a dummy is at 0, the dummy has to be left out:
    /// [`first_index(1)`](IndexMorph::first_index).
    ///
    /// Costs O(n log n) time at worst, some ten cache misses a node of which most overlap, and memory until the end: 52 bytes a node and
    /// 20 for each index shown that names a node, under a fixed layout. A search tree of 4 M nodes, where that is a child and a parent for each, takes 92 to 98 bytes a node,
    /// and 137 under [`LayoutChoice::Auto`], which takes four times as long as well. The permutation has 8 bytes a node. The stack does not grow with the structure.
    ///
    /// # Errors
    ///
    /// [`MorphError::TooManyNodes`] for slices of `u32::MAX` nodes or more, [`MorphError::IndexTooNarrow`] when the type of an index cannot hold its new
    /// number (a `u8` in a slice of 1000 nodes; a `NonZero` when the first index is 0), [`MorphError::NodeTooLarge`] for nodes of 4 GiB,
    /// [`MorphError::InvalidMachine`]. Nothing has changed then.
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
        let slice = Slice::of(nodes)?;
        if self.machine.is_some_and(|machine| machine.check().is_err()) {
            return Err(MorphError::InvalidMachine);
        }
        let mut times = IndexTimes::default();
        let mut clock = Instant::now();
        let mut lap = || {
            let begin = std::mem::replace(&mut clock, Instant::now());
            clock - begin
        };
        let walk = Walk::run(
            &mut *nodes,
            self.first_index,
            |visit| visit.child(roots),
            &mut traverse,
        );
        times.traverse = lap();
        let report = self.plan(&walk, slice)?;
        times.plan = lap();
        walk.renumber(&report.permutation)
            .map_err(|index| MorphError::IndexTooNarrow { index })?;
        report.permutation.apply(nodes);
        times.permute = lap();
        Ok(IndexReport { times, ..report })
    }

    /// Says where the nodes of the slice lie, without moving any: those below the roots and the others, as in
    /// [`run`](IndexMorph::run). O(n log n).
    ///
    /// # Errors
    ///
    /// [`MorphError::TooManyNodes`] for slices of `u32::MAX` nodes or more, [`MorphError::NodeTooLarge`] for nodes of 4 GiB.
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
        );
        let addresses = walk
            .order()
            .iter()
            .map(|&at| slice.address_of(at))
            .collect();
        Map::new(walk.parents(), addresses, slice.node_bytes).map_err(|_| MorphError::TooManyNodes)
    }

    /// Decides where the nodes go. Not generic, so compiled once.
    fn plan(&self, walk: &Walk<'_>, slice: Slice) -> Result<IndexReport, MorphError> {
        let parents = walk.parents();
        // Without roots, the trees found on the way are the structure.
        let live = match walk.reached() {
            0 => parents.len(),
            reached => reached,
        };
        let (live_parents, others) = parents.split_at(live);
        // A node that was not reached hangs below another one that was not.
        let first_other = u32::try_from(live).map_err(|_| MorphError::TooManyNodes)?;
        let other_parents: Vec<u32> = others
            .iter()
            .map(|parent| {
                parent
                    .checked_sub(first_other)
                    .filter(|_| *parent != NO_NODE)
            })
            .map(|parent| parent.unwrap_or(NO_NODE))
            .collect();
        // Parents come before their children by construction, so only their number can be wrong.
        let shape = |parents| Shape::from_parents(parents).map_err(|_| MorphError::TooManyNodes);
        let (live, others) = (shape(live_parents)?, shape(&other_parents)?);
        let rest: Vec<u32> = places(Layout::DepthFirst, &others, slice)
            .into_iter()
            .filter(|&number| number != NO_NODE)
            .map(|number| number + first_other)
            .collect();
        // A root in the first place stays there.
        let fixed = (walk.order().first() == Some(&0) && walk.reached() > 0).then_some(0);
        let order = |layout| {
            let mut order = places(layout, &live, slice);
            order.extend_from_slice(&rest);
            slice.close_gaps(&mut order);
            if has_clusters(layout) {
                order.rotate_right(slice.nodes_before_border().min(parents.len()));
            }
            if let Some(root) = fixed
                && let Some(place) = order.iter().position(|&number| number == root)
            {
                order.swap(0, place);
            }
            order
        };

        let (layout, order, ranking) = match self.layout {
            LayoutChoice::Fixed(layout) => (layout, order(layout), Vec::new()),
            LayoutChoice::Auto => self.best_order(&live, slice, order),
        };
        let addresses_after = slice.addresses(&order);
        let addresses_before: Vec<u64> = walk
            .order()
            .iter()
            .map(|&at| slice.address_of(at))
            .collect();
        let old_of = order
            .iter()
            .map(|&number| walk.order()[number as usize])
            .collect();
        let permutation = Permutation::from_old_of(old_of);
        Ok(IndexReport {
            nodes: parents.len(),
            reached: walk.reached(),
            node_bytes: slice.node_bytes,
            layout,
            ranking,
            edges: parents.iter().filter(|&&parent| parent != NO_NODE).count(),
            near_before: Nearness::count(parents, |v| addresses_before[v as usize]),
            near_after: Nearness::count(parents, |v| addresses_after[v as usize]),
            permutation,
            times: IndexTimes::default(),
        })
    }

    /// The layout whose order makes the cheapest searches, at the addresses that it leads to.
    fn best_order(
        &self,
        live: &Shape,
        slice: Slice,
        order: impl Fn(Layout) -> Vec<u32>,
    ) -> (Layout, Vec<u32>, Vec<(Layout, Prediction)>) {
        let Some(node) = slice.extent else {
            return (CANDIDATES[0], order(CANDIDATES[0]), Vec::new());
        };
        let machine = self.machine.unwrap_or_else(|| Machine::this());
        let predictor = Predictor::new(live);
        let mut best: Option<(f64, Layout, Vec<u32>)> = None;
        let mut ranking = Vec::with_capacity(CANDIDATES.len());
        for layout in CANDIDATES {
            let order = order(layout);
            let mut addresses = slice.addresses(&order);
            addresses.truncate(live.len());
            let placement = Placement::from_offsets(addresses);
            let prediction = predictor.predict(&placement, node, self.pages, machine);
            if best.as_ref().is_none_or(|&(ns, ..)| prediction.ns < ns) {
                best = Some((prediction.ns, layout, order));
            }
            ranking.push((layout, prediction));
        }
        ranking.sort_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
        match best {
            Some((_, layout, order)) => (layout, order, ranking),
            None => (CANDIDATES[0], order(CANDIDATES[0]), ranking),
        }
    }
}

/// What [`LayoutChoice::Auto`] chooses from; the first of equals wins.
const CANDIDATES: [Layout; 6] = [
    Layout::VanEmdeBoas,
    Layout::DepthFirst,
    Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    Layout::ClusterVanEmdeBoas { block_bytes: 256 },
    Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
    Layout::BreadthFirst,
];

/// What moves between memory and cache.
const BLOCK_BYTES: usize = 64;
/// What an access to memory brings in, about: the border that orders begin at.
const BORDER_BYTES: u64 = 256;

/// A slice of nodes without the nodes.
#[derive(Clone, Copy)]
struct Slice {
    address: u64,
    node_bytes: usize,
    /// `None` when nodes have no bytes.
    extent: Option<NodeExtent>,
}

impl Slice {
    fn of<T>(nodes: &[T]) -> Result<Slice, MorphError> {
        if nodes.len() >= NO_NODE as usize {
            return Err(MorphError::TooManyNodes);
        }
        let node_bytes = size_of::<T>();
        let too_large = |_| MorphError::NodeTooLarge {
            node_bytes,
            node_bytes_max: u32::MAX as usize,
        };
        let bytes = u32::try_from(node_bytes).map_err(too_large)?;
        let align = u32::try_from(align_of::<T>()).map_err(too_large)?;
        Ok(Slice {
            address: nodes.as_ptr().addr() as u64,
            node_bytes,
            extent: NodeExtent::new(bytes, align).ok(),
        })
    }

    fn address_of(&self, at: u32) -> u64 {
        self.address + u64::from(at) * self.node_bytes as u64
    }

    /// By number: the address of each node when they lie in this order.
    fn addresses(&self, order: &[u32]) -> Vec<u64> {
        let mut addresses = vec![0; order.len()];
        for (at, &number) in (0..).zip(order) {
            addresses[number as usize] = self.address_of(at);
        }
        addresses
    }

    /// Whether blocks hold a number of whole nodes.
    fn fills_blocks(&self) -> bool {
        self.node_bytes > 0 && BLOCK_BYTES.is_multiple_of(self.node_bytes)
    }

    /// How many nodes lie before the first border at which a node begins; 0 if there is none.
    fn nodes_before_border(&self) -> usize {
        let gap_bytes = (self.address.wrapping_neg() & (BORDER_BYTES - 1)) as usize;
        if self.fills_blocks() && gap_bytes.is_multiple_of(self.node_bytes) {
            gap_bytes / self.node_bytes
        } else {
            0
        }
    }

    /// Takes [`NO_NODE`] out of an order, and keeps what begins a block at a block's begin, where that can be.
    fn close_gaps(&self, order: &mut Vec<u32>) {
        if !self.fills_blocks() {
            order.retain(|&number| number != NO_NODE);
            return;
        }
        let mut at = 0;
        while let Some(&number) = order.get(at) {
            if number == NO_NODE {
                order.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }
}

/// Whether a layout cares where blocks begin.
fn has_clusters(layout: Layout) -> bool {
    !matches!(
        layout,
        Layout::Random { .. } | Layout::DepthFirst | Layout::BreadthFirst | Layout::VanEmdeBoas
    )
}

/// The nodes by their places, one stride each, with [`NO_NODE`] where the layout leaves one free.
fn places(layout: Layout, shape: &Shape, slice: Slice) -> Vec<u32> {
    let numbers = 0..u32::try_from(shape.len()).unwrap_or(NO_NODE);
    let Some(node) = slice.extent else {
        return numbers.collect();
    };
    let placement = layout.place(shape, node);
    // Offsets are multiples of the alignment and nodes do not overlap, so no two have the same quotient by the stride.
    let places = placement.span_bytes(node).div_ceil(node.stride_bytes());
    if places > 4 * shape.len() as u64 {
        let mut order: Vec<u32> = numbers.collect();
        order.sort_unstable_by_key(|&v| placement.offset(v));
        return order;
    }
    let mut at_place = vec![NO_NODE; usize::try_from(places).unwrap_or(usize::MAX)];
    for (v, offset) in numbers.zip(placement.offsets()) {
        let place = usize::try_from(offset / node.stride_bytes()).unwrap_or(usize::MAX);
        at_place[place] = v;
    }
    at_place
}
