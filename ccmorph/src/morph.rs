//! The entry points: collect, plan, place, move.

use crate::collect::Nodes;
use crate::relocate::{NewPlaces, Placer};
use crate::{Links, MorphError, Nearness, PhaseTimes, Report, Visit};
use ccmalloc::Region;
use ccmodel::{Layout, Machine, NodeExtent, PageSize, Placement, Prediction, Predictor, Shape};
use std::time::Instant;

/// Lays the nodes below `root` out for the cache, in the layout that the model predicts to be the best on this machine.
///
/// Shorthand for [`Morph::new().run(root, traverse)`](Morph::run), which says more.
///
/// # Errors
///
/// Those of [`Morph::run`]; the structure is then as it was.
pub fn ccmorph<T, R, F>(root: &mut R, traverse: F) -> Result<Report, MorphError>
where
    T: Unpin,
    R: Links<Node = T> + ?Sized,
    F: for<'n, 'v, 'w> FnMut(&'n mut T, &'w mut Visit<'v, 'n, T>),
{
    Morph::new().run(root, traverse)
}

/// Which layout a morph uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutChoice {
    /// The one for which [`ccmodel::choose_layout`] predicts the cheapest search.
    ///
    /// It thinks of searches that are short against the caches, as those of balanced trees and of hash tables with short
    /// chains are. For long lists, whose walks fill a good part of a cache, it predicts too few misses, before and after alike
    /// ([`Prediction::crowded_levels`] names the caches); a list that is always walked from its head is best laid out
    /// [depth-first](Layout::DepthFirst), which is the order of the walk.
    #[default]
    Auto,
    /// This one.
    Fixed(Layout),
}

impl From<Layout> for LayoutChoice {
    fn from(layout: Layout) -> LayoutChoice {
        LayoutChoice::Fixed(layout)
    }
}

/// A morph with settings.
///
/// # Examples
///
/// ```
/// # #[global_allocator]
/// # static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
/// use ccmodel::Layout;
/// use ccmorph::{Morph, TreeNode};
///
/// #[derive(TreeNode)]
/// struct Node {
///     key: u32,
///     #[child]
///     next: Option<Box<Node>>,
/// }
///
/// let mut list = None;
/// for key in 0..1000 {
///     list = Some(Box::new(Node { key, next: list }));
/// }
/// let report = Morph::new().layout(Layout::DepthFirst).run(&mut list, Node::children)?;
/// assert_eq!(report.nodes, 1000);
/// assert!(report.near_after.same_64 > 700);
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a morph does nothing before `run`"]
pub struct Morph<'m> {
    layout: LayoutChoice,
    machine: Option<&'m Machine>,
    predict: bool,
}

impl Default for Morph<'_> {
    fn default() -> Self {
        Morph::new()
    }
}

impl<'m> Morph<'m> {
    /// The layout chosen by the model, for this machine.
    pub fn new() -> Morph<'m> {
        Morph {
            layout: LayoutChoice::Auto,
            machine: None,
            predict: false,
        }
    }

    /// Sets the layout.
    pub fn layout(mut self, layout: impl Into<LayoutChoice>) -> Morph<'m> {
        self.layout = layout.into();
        self
    }

    /// Chooses and predicts for this machine rather than for [`Machine::this`], for instance a calibrated one. It must pass
    /// [`Machine::check`], as all do that were not changed by hand.
    pub fn machine(mut self, machine: &'m Machine) -> Morph<'m> {
        self.machine = Some(machine);
        self
    }

    /// Whether to predict the cost of a search before and after under a fixed layout too. [`LayoutChoice::Auto`] always
    /// does, since the choice needs most of it.
    pub fn predict(mut self, predict: bool) -> Morph<'m> {
        self.predict = predict;
        self
    }

    /// Moves every node below `root` that `traverse` shows.
    ///
    /// `traverse` is called once for each node, parents before their children, and calls what it is given for each
    /// field of the node that holds [`Links`]: [`TreeNode::children`](crate::TreeNode::children), or a closure such as
    /// `|node, visit| { visit(&mut node.left); visit(&mut node.right); }`. Nodes that it hides stay where they are.
    ///
    /// Afterwards the structure is equal in every respect but the nodes' addresses. Each node is a box of its own, as before:
    /// it can be replaced or dropped, and other boxes can take its place. To morph again is fine at any time. Raw pointers
    /// to nodes that the program kept, such as parent pointers, are left dangling. `T: Unpin` keeps types out that say that
    /// they must not move.
    ///
    /// Nodes of size zero have no place, and a structure of them is left alone; the report then counts no nodes.
    ///
    /// Costs O(n log n) time at worst, four to five cache misses a node of which most overlap, and until the end memory for
    /// a second set of nodes and some 70 bytes a node under a fixed layout. Predictions, which [`LayoutChoice::Auto`] needs,
    /// take more: 126 bytes a node in all for two million nodes of 24 bytes, up to some 600 for nodes of many lines. The
    /// stack does not grow with the structure.
    ///
    /// # Errors
    ///
    /// [`MorphError::NotCcMalloc`] when the program's global allocator is another one, [`MorphError::NodeTooLarge`],
    /// [`MorphError::TooManyNodes`], [`MorphError::OutOfMemory`], and [`MorphError::InvalidMachine`] when the
    /// [machine](Morph::machine) does not pass its check. Nothing has moved then.
    ///
    /// # Panics
    ///
    /// When `traverse` does. Nothing has moved then either.
    pub fn run<T, R, F>(&self, root: &mut R, mut traverse: F) -> Result<Report, MorphError>
    where
        T: Unpin,
        R: Links<Node = T> + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut T, &'w mut Visit<'v, 'n, T>),
    {
        self.run_with(root, &mut traverse, |span_bytes| {
            Region::reserve(span_bytes).map(|region| {
                let huge_pages = advise_huge_pages(&region, span_bytes);
                (region, huge_pages)
            })
        })
    }

    /// A morph whose places come from what `reserve` makes for a number of bytes.
    pub(crate) fn run_with<T, R, F, P>(
        &self,
        root: &mut R,
        traverse: &mut F,
        reserve: impl FnOnce(usize) -> Option<(P, bool)>,
    ) -> Result<Report, MorphError>
    where
        R: Links<Node = T> + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut T, &'w mut Visit<'v, 'n, T>),
        P: Placer,
    {
        if self.machine.is_some_and(|machine| machine.check().is_err()) {
            return Err(MorphError::InvalidMachine);
        }
        let layout = std::alloc::Layout::new::<T>();
        let mut times = PhaseTimes::default();
        let Some(node) = extent(layout)? else {
            return Ok(Report::of_nothing(self.layout_of_nothing(), 0, times));
        };

        let mut clock = Instant::now();
        let mut lap = || {
            let begin = std::mem::replace(&mut clock, Instant::now());
            clock - begin
        };
        let nodes: Nodes<'_, T> = Nodes::collect(root, traverse)?;
        times.traverse = lap();
        if nodes.len() == 0 {
            return Ok(Report::of_nothing(
                self.layout_of_nothing(),
                layout.size(),
                times,
            ));
        }

        let before = nodes.addresses();
        let plan = self.plan(nodes.parents(), node)?;
        let span_bytes = plan.placement.span_bytes(node);
        times.plan = lap();

        let (mut placer, huge_pages) = usize::try_from(span_bytes)
            .ok()
            .and_then(reserve)
            .ok_or(MorphError::OutOfMemory { bytes: span_bytes })?;
        let places = NewPlaces::allocate(&plan.placement, node, layout, &mut placer)?;
        times.allocate = lap();

        let after = places.addresses();
        let (near_before, near_after) = (
            Nearness::count(nodes.parents(), &before),
            Nearness::count(nodes.parents(), &after),
        );
        let (predicted_before, predicted_after) = self.predictions(&plan, before, huge_pages, node);
        let mut report = Report {
            nodes: nodes.len(),
            node_bytes: layout.size(),
            span_bytes,
            layout: plan.layout,
            ranking: plan.ranking,
            ranked_for: plan.ranked_for,
            predicted_before,
            predicted_after,
            edges: plan.shape.len() - plan.shape.roots().count(),
            near_before,
            near_after,
            huge_pages,
            times,
        };
        report.times.plan += lap();

        places.move_in(nodes);
        report.times.relocate = lap();
        Ok(report)
    }

    fn machine_or_this(&self) -> &Machine {
        self.machine.unwrap_or_else(|| Machine::this())
    }

    /// What a report on no nodes names as its layout.
    fn layout_of_nothing(&self) -> Layout {
        match self.layout {
            LayoutChoice::Fixed(layout) => layout,
            LayoutChoice::Auto => Layout::DepthFirst,
        }
    }

    /// Decides where the nodes go. Not generic, so compiled once.
    fn plan(&self, parents: &[u32], node: NodeExtent) -> Result<Plan, MorphError> {
        // Parents come before their children by construction, so only their number can be wrong.
        let shape = Shape::from_parents(parents).map_err(|_| MorphError::TooManyNodes)?;
        let hopes_for_huge_pages =
            shape.len() as u64 * node.stride_bytes() >= HUGE_FROM_BYTES as u64;
        Ok(match self.layout {
            LayoutChoice::Fixed(layout) => Plan {
                layout,
                placement: layout.place(&shape, node),
                ranking: Vec::new(),
                ranked_for: None,
                shape,
            },
            LayoutChoice::Auto => {
                let pages = pages(hopes_for_huge_pages);
                let choice = ccmodel::choose_layout(&shape, node, pages, self.machine_or_this());
                Plan {
                    layout: choice.layout,
                    placement: choice.placement,
                    ranking: choice.ranking,
                    ranked_for: Some(pages),
                    shape,
                }
            }
        })
    }

    /// The cost of a search before and after, once it is known which pages there are.
    ///
    /// The old places are taken to be in such pages too: they are `CcMalloc`'s, which asks for huge pages by itself as soon
    /// as a heap is of some size.
    fn predictions(
        &self,
        plan: &Plan,
        before: Vec<u64>,
        huge_pages: bool,
        node: NodeExtent,
    ) -> (Option<Prediction>, Option<Prediction>) {
        if !self.predict && self.layout != LayoutChoice::Auto {
            return (None, None);
        }
        let (pages, machine) = (pages(huge_pages), self.machine_or_this());
        let predictor = Predictor::new(&plan.shape);
        let after = match plan.ranking.first() {
            Some((_, prediction)) if plan.ranked_for == Some(pages) => prediction.clone(),
            _ => predictor.predict(&plan.placement, node, pages, machine),
        };
        let before = predictor.predict(&Placement::from_offsets(before), node, pages, machine);
        (Some(before), Some(after))
    }
}

/// Where the nodes shall go, and why.
struct Plan {
    shape: Shape,
    layout: Layout,
    placement: Placement,
    /// What each layout promised, the best first; empty when none was asked.
    ranking: Vec<(Layout, Prediction)>,
    /// The pages that the ranking supposes.
    ranked_for: Option<PageSize>,
}

/// Structures that span as much ask for huge pages; in smaller ones, rounding up to 2 MiB would cost too much memory.
const HUGE_FROM_BYTES: usize = 8 << 20;

fn pages(huge: bool) -> PageSize {
    if huge {
        PageSize::Huge2M
    } else {
        PageSize::Small4K
    }
}

/// The extent to place a layout by: whole granules of 8 bytes, which is what an allocation takes. `None` for no bytes.
fn extent(layout: std::alloc::Layout) -> Result<Option<NodeExtent>, MorphError> {
    const GRANULE_BYTES: usize = 8;
    let (node_bytes, node_bytes_max) = (layout.size(), Region::OBJECT_BYTES_MAX);
    let too_large = MorphError::NodeTooLarge {
        node_bytes,
        node_bytes_max,
    };
    if node_bytes == 0 {
        return Ok(None);
    }
    if node_bytes > node_bytes_max {
        return Err(too_large);
    }
    let bytes = u32::try_from(node_bytes.next_multiple_of(GRANULE_BYTES)).map_err(|_| too_large)?;
    let align = u32::try_from(layout.align().max(GRANULE_BYTES)).map_err(|_| too_large)?;
    NodeExtent::new(bytes, align)
        .map(Some)
        .map_err(|_| too_large)
}

/// Asks for huge pages under a region of some size. Returns whether the system agreed to try, anywhere.
///
/// The allocator does so for large heaps on its own; here it is done for the chunks of 2 MiB as well that it got before.
fn advise_huge_pages(region: &Region, span_bytes: usize) -> bool {
    if span_bytes < HUGE_FROM_BYTES {
        return false;
    }
    let huge_bytes = usize::try_from(PageSize::Huge2M.bytes()).unwrap_or(usize::MAX);
    let mut chunks: Vec<*const u8> = (0..span_bytes)
        .step_by(Region::SEGMENT_BYTES)
        .map(|offset| {
            region
                .address(offset)
                .map_addr(|address| address & !(huge_bytes - 1))
                .cast_const()
        })
        .collect();
    chunks.dedup();
    // Chunks that follow one another are one piece of advice.
    let mut granted = false;
    for run in chunks.chunk_by(|chunk, next| next.addr().wrapping_sub(chunk.addr()) == huge_bytes) {
        granted |= ccmalloc::advise_huge_pages(run[0], run.len() * huge_bytes);
    }
    granted
}
