//! Phase 2: decide where the nodes go. Treats addresses as numbers, and moves nothing.

use crate::colour::{self, ColourChoice, ColourReport};
use crate::error::MorphError;
use crate::size::node_extent;
use ccmodel::{
    Accesses, Basis, ColourError, Coloured, Colouring, Gain, Layout, Machine, NodeExtent, PageSize,
    Placement, Prediction, Predictor, Shape,
};

/// What the program does with the structure: the unit of all predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// It goes from a root to a node; each node is the end equally often, or by the weights.
    Search,
    /// It goes from a root to a leaf, each equally often: to the end of a hash chain, down a trie.
    Path,
    /// It reads all nodes, parents first, in the order of the links, or in an
    /// [order](crate::Morph::run_ordered_by) of its own: an evaluation of a syntax tree, a loop
    /// over a list.
    Walk,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Operation::Search => "search",
            Operation::Path => "path",
            Operation::Walk => "walk",
        })
    }
}

/// The settings of a morph.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings<'m> {
    /// `None` for the one that the model chooses.
    pub(crate) layout: Option<Layout>,
    pub(crate) operation: Option<Operation>,
    pub(crate) machine: Option<&'m Machine>,
    /// The pages to choose and predict for; `None` to go by what is known of the places.
    pub(crate) pages: Option<PageSize>,
    pub(crate) predict: bool,
    /// Whether weights count all operations that pass a node, rather than those that end there.
    pub(crate) weights_are_accesses: bool,
    pub(crate) colour: Option<ColourChoice>,
    pub(crate) any_allocator: bool,
    /// Whether the nodes lie in a slice, which has no gaps, and the index of its first node.
    pub(crate) in_slice: bool,
    pub(crate) first_index: usize,
}

impl Settings<'_> {
    pub(crate) fn check(&self) -> Result<(), MorphError> {
        match self.machine {
            Some(machine) if machine.check().is_err() => Err(MorphError::InvalidMachine),
            _ => Ok(()),
        }
    }

    fn machine_or_this(&self) -> &Machine {
        self.machine.unwrap_or_else(|| Machine::this())
    }

    /// The pages that the nodes will lie in, as far as that is known before they have places.
    fn pages(&self, nodes: usize, node: NodeExtent) -> PageSize {
        let by_size = pages(nodes as u64 * node.stride_bytes() >= HUGE_FROM_BYTES as u64);
        self.pages.unwrap_or(by_size)
    }

    /// What a report on no nodes names as its layout.
    pub(crate) fn layout_of_nothing(&self) -> Layout {
        self.layout.unwrap_or(Layout::DepthFirst)
    }
}

/// Where the nodes shall go, and why.
pub(crate) struct Plan {
    pub(crate) operation: Option<Operation>,
    /// The nodes in the order of the operation, where that is a walk.
    walk: Vec<u32>,
    /// The structure, where predictions or colours need it.
    shape: Option<Shape>,
    pub(crate) node: NodeExtent,
    /// By node number how often operations end there, or empty for equally often.
    weights: Vec<f64>,
    pub(crate) layout: Layout,
    placement: Placement,
    /// The placement that holds instead, when there are colours.
    coloured: Option<Coloured>,
    /// Where the last node ends, if sizes differ.
    end_bytes: Option<u64>,
    /// The prediction of each layout, the best first; empty when none was predicted.
    pub(crate) ranking: Vec<(Layout, Prediction)>,
    /// The pages that the ranking assumes.
    pub(crate) ranked_for: Option<PageSize>,
    /// What the choice rests on, if there was one.
    pub(crate) basis: Option<Basis>,
    /// What the lists took, in bytes. Offsets become places and are counted there.
    pub(crate) list_bytes: u64,
}

impl Plan {
    /// A placement of nodes, with nothing else known.
    fn new(operation: Option<Operation>, node: NodeExtent, placed: (Layout, Placement)) -> Plan {
        Plan {
            operation,
            walk: Vec::new(),
            shape: None,
            node,
            weights: Vec::new(),
            layout: placed.0,
            placement: placed.1,
            coloured: None,
            end_bytes: None,
            ranking: Vec::new(),
            ranked_for: None,
            basis: None,
            list_bytes: 0,
        }
    }

    /// Decides where the nodes go: in the given order, or, if it is empty, as the settings say. Not
    /// generic, so compiled once.
    ///
    /// `parents` has by node number the parent, or [`NO_NODE`](ccmodel::NO_NODE) for roots.
    pub(crate) fn make(
        settings: &Settings<'_>,
        parents: &[u32],
        mut weights: Vec<f64>,
        order: Vec<u32>,
        node: NodeExtent,
    ) -> Result<Plan, MorphError> {
        let has_order = !order.is_empty();
        let operation = (settings.operation).or(has_order.then_some(Operation::Walk));
        let is_walk = operation == Some(Operation::Walk);
        let pages = settings.pages(parents.len(), node);
        let needs_shape = has_order
            || is_walk
            || settings.predict
            || settings.colour.is_some()
            || !weights.is_empty();
        if !needs_shape && let Some(placement) = depth_first(settings, parents, node) {
            let is_choice = settings.layout.is_none();
            return Ok(Plan {
                ranked_for: is_choice.then_some(pages),
                basis: is_choice.then_some(Basis::Chains),
                ..Plan::new(operation, node, (Layout::DepthFirst, placement))
            });
        }
        // Parents come before their children by construction, so only their number can be wrong.
        let shape = Shape::from_parents(parents).map_err(|_| MorphError::TooManyNodes)?;
        weights = ends(settings, &shape, weights);
        let walk = match is_walk {
            true if has_order => order.clone(),
            true => shape.preorder(),
            false => Vec::new(),
        };
        let place = |layout: Layout| match &weights[..] {
            [] => (layout, layout.place(&shape, node)),
            weights => (layout, layout.place_weighted(&shape, node, weights)),
        };
        let mut ranked = (Vec::new(), None, None);
        let placed = match settings.layout {
            _ if has_order => (Layout::Preorder, Placement::in_order(&order, node)),
            Some(layout) => place(layout),
            None if is_walk => (Layout::Preorder, Placement::in_order(&walk, node)),
            None => {
                let machine = settings.machine_or_this();
                let by_weight = Some(&weights[..]).filter(|weights| !weights.is_empty());
                let mut choice = ccmodel::choose_layout(&shape, node, by_weight, pages, machine);
                let keeps = |layout| !settings.in_slice || keeps_clusters(layout, node);
                choice.ranking.retain(|&(layout, _)| keeps(layout));
                let best = choice.ranking.first().map(|&(layout, _)| layout);
                ranked = (choice.ranking, Some(pages), Some(choice.basis));
                if keeps(choice.layout) {
                    (choice.layout, choice.placement)
                } else {
                    let all = [Layout::Hierarchical, Layout::VanEmdeBoas];
                    let without = all.into_iter().find(|&layout| keeps(layout));
                    place(best.or(without).unwrap_or(Layout::VanEmdeBoas))
                }
            }
        };
        let (ranking, ranked_for, basis) = ranked;
        let list_bytes = shape.len() * SHAPE_NODE_BYTES + weights.capacity() * size_of::<f64>();
        let mut plan = Plan {
            walk,
            weights,
            ranking,
            ranked_for,
            basis,
            list_bytes: list_bytes as u64,
            ..Plan::new(operation, node, placed)
        };
        if let Some(colour) = settings.colour.as_ref().filter(|_| !has_order) {
            plan.colour(colour, &shape, settings.machine)?;
        }
        // What is not needed any more is memory for the new places.
        if settings.predict || plan.coloured.is_some() {
            plan.shape = Some(shape);
        }
        Ok(plan)
    }

    /// Packs nodes of different sizes in the order of the plan for nodes of their mean size. With
    /// colours, each node keeps a place for the largest.
    ///
    /// Gaps remain only for alignment and at the ends of segments, which no object may cross.
    pub(crate) fn pack(&mut self, layout_of: impl Fn(usize) -> Option<std::alloc::Layout>) {
        if self.coloured.is_some() {
            return;
        }
        let mut offsets = self.placement.offsets().to_vec();
        self.list_bytes = (self.list_bytes).max((offsets.len() * SHAPE_NODE_BYTES) as u64);
        let mut order: Vec<u32> = (0..).take(offsets.len()).collect();
        order.sort_unstable_by_key(|&v| offsets[v as usize]);
        let mut end = 0;
        for v in order.into_iter().map(|v| v as usize) {
            let extent = layout_of(v).map(node_extent);
            let Some(Ok(Some(node))) = extent else {
                continue;
            };
            let at = u64::next_multiple_of(end, u64::from(node.align));
            let last = at + u64::from(node.bytes) - 1;
            let crosses = at / Layout::SEGMENT_BYTES != last / Layout::SEGMENT_BYTES;
            offsets[v] = if crosses {
                last - last % Layout::SEGMENT_BYTES
            } else {
                at
            };
            end = offsets[v] + u64::from(node.bytes);
        }
        self.placement = Placement::from_offsets(offsets);
        self.end_bytes = Some(end);
    }

    /// Where the last node ends, counted from offset 0, and from where the first begins.
    pub(crate) fn extent_bytes(&self) -> (u64, u64) {
        if let Some(end) = self.end_bytes {
            return (end, end);
        }
        let mut extent = (u64::MAX, 0);
        for &offset in self.placement().offsets() {
            extent = (extent.0.min(offset), extent.1.max(offset));
        }
        let room_bytes = extent.1.saturating_add(u64::from(self.node.bytes));
        (room_bytes, room_bytes - extent.0.min(room_bytes))
    }

    /// What a morph of nodes at these addresses brings and costs.
    pub(crate) fn gain(
        settings: &Settings<'_>,
        parents: &[u32],
        weights: &[f64],
        addresses: Vec<u64>,
        node: NodeExtent,
    ) -> Result<Gain, MorphError> {
        let before = Placement::from_offsets(addresses);
        let pages = settings.pages(parents.len(), node);
        let machine = settings.machine_or_this();
        if settings.layout.is_none() && matches!(settings.operation, None | Some(Operation::Search))
        {
            let shape = Shape::from_parents(parents).map_err(|_| MorphError::TooManyNodes)?;
            let ends = ends(settings, &shape, weights.to_vec());
            let weights = (!ends.is_empty()).then_some(&ends[..]);
            let gain = ccmodel::morph_gain(&shape, &before, node, weights, pages, machine);
            return Ok(gain);
        }
        let settings = Settings {
            predict: true,
            colour: None,
            ..*settings
        };
        let plan = Plan::make(&settings, parents, weights.to_vec(), Vec::new(), node)?;
        let cost_ns = ccmodel::morph_cost(parents.len(), node, pages, machine);
        let shape = plan.shape.as_ref().ok_or(MorphError::TooManyNodes)?;
        // Offsets say nothing of the sets that the new nodes will share.
        let mut machine = machine.clone();
        machine.hierarchy = None;
        let predict = |placement| plan.predict(shape, placement, pages, &machine);
        let (before, after) = (predict(&before), predict(&plan.placement));
        Ok(Gain::new(before, after, cost_ns))
    }

    /// The nodes in the order of the operation, where that is a walk.
    pub(crate) fn walk(&self) -> Option<&[u32]> {
        (self.operation == Some(Operation::Walk)).then_some(&self.walk)
    }

    /// The cost of an operation on nodes that lie as in `placement`.
    fn predict(
        &self,
        shape: &Shape,
        placement: &Placement,
        pages: PageSize,
        machine: &Machine,
    ) -> Prediction {
        let node_bytes = self.node.bytes;
        let accesses = match self.walk() {
            Some(walk) => {
                let walk = walk.to_vec();
                Some(Accesses::in_order(shape, placement, node_bytes, walk))
            }
            // Searches in one list read in one order, which `Accesses` know.
            None if shape.is_chains() && self.operation != Some(Operation::Path) => {
                let weights = Some(&self.weights[..]).filter(|weights| !weights.is_empty());
                Some(Accesses::searches(shape, placement, node_bytes, weights))
            }
            None => None,
        };
        if let Some(accesses) = accesses {
            return Predictor::of(&accesses).predict_accesses(&accesses, pages, machine);
        }
        let predictor = match self.operation {
            Some(Operation::Path) => {
                let is_leaf = |v| f64::from(u8::from(shape.children(v).is_empty()));
                let leaves: Vec<f64> = (0..).take(shape.len()).map(is_leaf).collect();
                Predictor::weighted(shape, &leaves)
            }
            _ => self.predictor(shape),
        };
        predictor.predict(placement, self.node, pages, machine)
    }

    /// Gives the first nodes a part of a cache for themselves.
    fn colour(
        &mut self,
        colour: &ColourChoice,
        shape: &Shape,
        machine: Option<&Machine>,
    ) -> Result<(), MorphError> {
        let geometry = colour.geometry(machine);
        if geometry.way_bytes() > colour::WAY_BYTES_MAX {
            return Err(MorphError::ColourWay {
                way_bytes: geometry.way_bytes(),
                way_bytes_max: colour::WAY_BYTES_MAX,
            });
        }
        let colouring =
            Colouring::new(geometry, colour.hot_share).map_err(|_| MorphError::ColourShare)?;
        let weights = (!self.weights.is_empty()).then_some(&self.weights[..]);
        let coloured = colouring.place(shape, self.node, self.layout, weights);
        self.coloured = Some(coloured.map_err(|error| match error {
            ColourError::NodeTooLarge {
                node_bytes,
                room_bytes,
            } => MorphError::ColourRoom {
                node_bytes: node_bytes as usize,
                room_bytes,
            },
            _ => MorphError::ColourShare,
        })?);
        Ok(())
    }

    /// Where each node goes.
    pub(crate) fn placement(&self) -> &Placement {
        match &self.coloured {
            Some(coloured) => &coloured.placement,
            None => &self.placement,
        }
    }

    /// The offset of each node. Takes the placement out, unless a prediction will need it.
    pub(crate) fn take_offsets(&mut self) -> Vec<u64> {
        if let Some(coloured) = &self.coloured {
            return coloured.placement.offsets().to_vec();
        }
        let empty = Placement::from_offsets(Vec::new());
        std::mem::replace(&mut self.placement, empty).into_offsets()
    }

    /// The size of a way, where addresses beyond a segment's matter.
    pub(crate) fn way_to_match(&self) -> Option<u64> {
        let coloured = self.coloured.as_ref()?;
        let way_bytes = coloured.colouring.geometry().way_bytes();
        (way_bytes > Layout::SEGMENT_BYTES).then_some(way_bytes)
    }

    /// Whether the placement has gaps of whole pages, which huge pages would fill with memory.
    pub(crate) fn has_page_gaps(&self) -> bool {
        let coloured = self.coloured.as_ref();
        coloured.is_some_and(|coloured| coloured.gap_bytes > coloured.lost_bytes)
    }

    /// What the colours are, and what they gain at each level.
    pub(crate) fn colour_report(
        &self,
        settings: &Settings<'_>,
        huge_pages: bool,
    ) -> Option<ColourReport> {
        let (coloured, shape) = (self.coloured.as_ref()?, self.shape.as_ref()?);
        let machine = settings.machine_or_this();
        let way_bytes = coloured.colouring.geometry().way_bytes();
        let gain = colour::level_of(machine, way_bytes).and_then(|level| {
            let (predictor, pages) = (self.predictor(shape), pages(huge_pages));
            let (plain, level) = (&self.placement, &level.name);
            let gain = coloured.gain(plain, &predictor, self.node, pages, machine, level);
            gain.ok()
        });
        Some(ColourReport {
            colouring: coloured.colouring,
            hot_nodes: coloured.hot_nodes,
            gap_bytes: coloured.gap_bytes,
            lost_bytes: coloured.lost_bytes,
            gain,
        })
    }

    fn predictor(&self, shape: &Shape) -> Predictor {
        if self.weights.is_empty() {
            Predictor::new(shape)
        } else {
            Predictor::weighted(shape, &self.weights)
        }
    }

    /// The cost of an operation before and after, as far as it is known. The arguments return
    /// addresses by node number.
    ///
    /// The old places count as being in such pages, too: `CcMalloc` asks for huge pages by itself.
    pub(crate) fn predictions(
        &self,
        settings: &Settings<'_>,
        before: impl FnOnce() -> Vec<u64>,
        after: impl FnOnce() -> Vec<u64>,
        pages: PageSize,
    ) -> (Option<Prediction>, Option<Prediction>) {
        let ranked = (self.ranking.first())
            .filter(|_| self.ranked_for == Some(pages) && self.coloured.is_none())
            .filter(|_| self.operation != Some(Operation::Path))
            .map(|(_, prediction)| prediction.clone());
        if !settings.predict {
            return (None, ranked);
        }
        let predict = |addresses| self.predict_at(settings, addresses, pages);
        let after = ranked.or_else(|| predict(after()));
        (predict(before()), after)
    }

    /// The cost of an operation on nodes at these addresses, if predictions were asked for.
    pub(crate) fn predict_at(
        &self,
        settings: &Settings<'_>,
        addresses: Vec<u64>,
        pages: PageSize,
    ) -> Option<Prediction> {
        let shape = self.shape.as_ref().filter(|_| settings.predict)?;
        let placement = Placement::from_offsets(addresses);
        Some(self.predict(shape, &placement, pages, settings.machine_or_this()))
    }
}

/// What a [`Shape`] takes for a node.
const SHAPE_NODE_BYTES: usize = 12;

/// Weights as counts of operations that end at the nodes.
fn ends(settings: &Settings<'_>, shape: &Shape, weights: Vec<f64>) -> Vec<f64> {
    if settings.weights_are_accesses && !weights.is_empty() {
        ccmodel::ends_of_accesses(shape, &weights)
    } else {
        weights
    }
}

/// The short path that needs only parents: depth-first order that was asked for, or of lists in
/// level order.
fn depth_first(settings: &Settings<'_>, parents: &[u32], node: NodeExtent) -> Option<Placement> {
    match settings.layout {
        Some(Layout::DepthFirst) => Placement::depth_first(parents, node),
        None if Shape::are_chains_in_level_order(parents) => Placement::depth_first(parents, node),
        _ => None,
    }
}

/// A cache line.
const BLOCK_BYTES: u64 = 64;

/// Whether blocks hold a number of whole nodes, so that nodes in a slice can fill gaps.
pub(crate) fn fills_blocks(node_bytes: u64) -> bool {
    node_bytes > 0 && BLOCK_BYTES.is_multiple_of(node_bytes)
}

/// Whether a layout depends on where blocks begin.
pub(crate) fn has_clusters(layout: Layout) -> bool {
    !matches!(
        layout,
        Layout::Random { .. }
            | Layout::DepthFirst
            | Layout::Preorder
            | Layout::BreadthFirst
            | Layout::VanEmdeBoas
    )
}

/// Whether the clusters of a layout keep their borders in a slice: its gaps can be filled, or,
/// between nodes of this size and but for the ends of segments, there are none.
fn keeps_clusters(layout: Layout, node: NodeExtent) -> bool {
    const BYTES: u64 = 2 * 4096;
    const NODES_MIN: u64 = 4;
    if fills_blocks(node.stride_bytes()) || !has_clusters(layout) {
        return true;
    }
    // A chain over some pages shows it. Of nodes of up to 4096 bytes, what is looked at lies in one
    // segment; larger ones are not kept to segments.
    let nodes = (BYTES / node.stride_bytes()).max(NODES_MIN);
    let parents = std::iter::once(ccmodel::NO_NODE).chain(0..);
    let parents = parents.take(usize::try_from(nodes).unwrap_or(usize::MAX));
    Shape::from_parent_vec(parents.collect()).is_ok_and(|chain| {
        let last = layout.place(&chain, node).offsets().iter().max().copied();
        last == Some((nodes - 1) * node.stride_bytes())
    })
}

/// Smaller structures do not ask for huge pages: rounding up to 2 MiB costs too much memory.
pub(crate) const HUGE_FROM_BYTES: usize = 8 << 20;

pub(crate) fn pages(huge: bool) -> PageSize {
    if huge {
        PageSize::Huge2M
    } else {
        PageSize::Small4K
    }
}
