//! Chooses a layout: places each candidate and predicts its cost on a sample of the nodes.
//!
//! Lists, and structures of the second cache's size, leave no choice ([`Basis`]). Layouts that
//! never win are no candidates: over random-insert, complete and recursive trees and forests of
//! 2^14 to 2^18 nodes, breadth-first, depth-first and subtree clusters were predicted at most 2 %
//! cheaper than the best candidate. Breadth-first order is one where nodes have several children.
//! Compared with [`rank_layouts`], which ranks every layout on all nodes, the predictions of the
//! sample were wrong by 1 % in most of these cases, and by 9 % at most.

use crate::layout::packed_offset;
use crate::sample::{Sample, cut};
use crate::visits::subtree_probabilities;
use crate::{
    Layout, LevelKind, Machine, NodeExtent, PageSize, Placement, Prediction, Predictor, Shape,
};

/// The best layout with what it was compared with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// The layout that costs least.
    pub layout: Layout,
    /// Where it puts the nodes.
    pub placement: Placement,
    /// What was compared, the layout taken first, then by predicted time; from a sample of the
    /// nodes. Empty when nothing had to be compared.
    pub ranking: Vec<(Layout, Prediction)>,
    /// What the choice rests on.
    pub basis: Basis,
}

/// What a [`Choice`] rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Basis {
    /// No node has two children, or paths have hundreds of nodes: depth-first.
    Chains,
    /// The structure fits the second cache, where good layouts hardly differ: hierarchical.
    Small,
    /// The ranking of some candidates on a sample.
    Sample {
        /// How many nodes were placed for each candidate.
        nodes: usize,
    },
}

/// Nodes of the sample: this share of all, within the bounds.
const SAMPLED_SHARE: usize = 100;
const SAMPLED_NODES_MIN: usize = 1 << 11;
const SAMPLED_NODES_MAX: usize = 20_000;
/// Nodes of a bundle, at least: several pages, since at its borders a bundle has other neighbours
/// than in the whole.
const BUNDLE_NODES_MIN: u64 = 512;
/// Fewer bundles may be alike by chance.
const BUNDLES_MIN: usize = 3;
/// Another layout is taken if its predicted cost is below this share of the default's: predictions
/// compare layouts within some 8 %, and do not model the prefetch of the next line, which
/// hierarchical order is made for.
const PREFERENCE: f64 = 0.92;
/// Children of an inner node from which on breadth-first order is a candidate.
const WIDE_CHILDREN: usize = 3;
/// A cut of this many times the square root of all nodes means long paths: operations visit
/// hundreds of nodes.
const CUT_SHARE: f64 = 16.0;

/// Whether breadth-first order is a candidate: nodes have several children, and are numbered in
/// that order, so that their places are known.
fn breadth_first_may_win(shape: &Shape) -> bool {
    shape.len() >= WIDE_CHILDREN * shape.inner_nodes() && shape.is_breadth_first()
}

/// The layout that is taken unless another is much better.
///
/// Nodes larger than a line share none. Depth-first order then serves searches as well (within 2 %,
/// 96 and 120 bytes) and range queries better.
fn default_layout(line_bytes: u32, node: NodeExtent, weighted: bool) -> Layout {
    if weighted {
        Layout::Weighted
    } else if node.stride_bytes() > u64::from(line_bytes) {
        Layout::DepthFirst
    } else {
        Layout::Hierarchical
    }
}

/// The candidates for every shape; the first is the default.
fn candidates(line_bytes: u32, node: NodeExtent, weighted: bool) -> Vec<Layout> {
    let default = default_layout(line_bytes, node, weighted);
    let mut candidates = vec![default, Layout::VanEmdeBoas];
    let blocks = [line_bytes, 256, 4096].into_iter();
    candidates.extend(blocks.map(|block_bytes| Layout::ClusterVanEmdeBoas { block_bytes }));
    if default != Layout::Hierarchical {
        candidates.push(Layout::Hierarchical);
    }
    candidates
}

/// Every layout that a morph can make, with blocks of the sizes of the machine's.
pub(crate) fn morph_layouts(
    node: NodeExtent,
    weighted: bool,
    pages: PageSize,
    machine: &Machine,
) -> Vec<Layout> {
    let block_bytes = line_bytes(machine, pages);
    let mut layouts = candidates(block_bytes, node, weighted);
    if layouts[0] != Layout::DepthFirst {
        layouts.push(Layout::DepthFirst);
    }
    let clusters = Layout::SubtreeCluster { block_bytes };
    layouts.extend([Layout::Preorder, clusters, Layout::BreadthFirst]);
    layouts
}

/// Picks the layout in which operations are predicted to take least time:
/// [hierarchical](Layout::Hierarchical), or for nodes larger than a line
/// [depth-first](Layout::DepthFirst), unless another is better by more than predictions err.
///
/// Operations end at each node equally often, or, with `weights`, at node `v` with a frequency in
/// proportion to `weights[v]`, as in [`Visits::weighted`](crate::Visits::weighted). All layouts are
/// then placed [by weight](Layout::place_weighted), and [weighted](Layout::Weighted) is the
/// default.
///
/// O(n) with a small constant (some 10 ns a node), plus one placement of all nodes. Structures
/// whose searches touch a good part of a cache are ranked with less certainty: see
/// [`Prediction::crowded_levels`].
///
/// # Panics
/// When there is not exactly one weight for each node, or the machine has block sizes that are no
/// powers of two, which [`Machine::check`] tells.
///
/// # Examples
/// ```
/// use ccmodel::{Layout, Machine, NodeExtent, PageSize, Shape, choose_layout};
///
/// let shape = Shape::random_binary(100_000, 1);
/// let node = NodeExtent::new(24, 8)?;
/// let choice = choose_layout(&shape, node, None, PageSize::Small4K, &Machine::thesis());
/// assert_eq!(choice.ranking[0].0, choice.layout);
/// assert_ne!(choice.layout, Layout::BreadthFirst);
/// # Ok::<(), ccmodel::Error>(())
/// ```
pub fn choose_layout(
    shape: &Shape,
    node: NodeExtent,
    weights: Option<&[f64]>,
    pages: PageSize,
    machine: &Machine,
) -> Choice {
    let (layout, ranking, basis) = decide(shape, node, weights, pages, machine);
    Choice {
        layout,
        placement: place(layout, shape, node, weights),
        ranking,
        basis,
    }
}

/// All nodes in this layout.
fn place(layout: Layout, shape: &Shape, node: NodeExtent, weights: Option<&[f64]>) -> Placement {
    match weights {
        Some(weights) => layout.place_weighted(shape, node, weights),
        None => layout.place(shape, node),
    }
}

/// The choice without its placement.
fn decide(
    shape: &Shape,
    node: NodeExtent,
    weights: Option<&[f64]>,
    pages: PageSize,
    machine: &Machine,
) -> (Layout, Vec<(Layout, Prediction)>, Basis) {
    if shape.is_chains() {
        return (Layout::DepthFirst, Vec::new(), Basis::Chains);
    }
    let line_bytes = line_bytes(machine, pages);
    let fits = shape.len() as f64 * node.stride_bytes() as f64 <= small_bytes(machine);
    if weights.is_none() && fits {
        let layout = default_layout(line_bytes, node, false);
        return (layout, Vec::new(), Basis::Small);
    }
    let Some(sample) = sample(shape, weights) else {
        return (Layout::DepthFirst, Vec::new(), Basis::Chains);
    };
    let predictor = Predictor::with_visits(sample.visits);
    let predict = |placement| predictor.predict(&placement, node, pages, machine);
    // By the weights that subtrees have in the whole.
    let place = |layout| place(layout, &sample.shape, node, Some(&sample.ends));
    let mut ranking: Vec<(Layout, Prediction)> = candidates(line_bytes, node, weights.is_some())
        .into_iter()
        .map(|layout| (layout, predict(place(layout))))
        .collect();
    if breadth_first_may_win(shape) {
        let offsets = sample.chosen.iter().map(|&v| packed_offset(v, node));
        let placement = Placement::from_offsets(offsets.collect());
        ranking.push((Layout::BreadthFirst, predict(placement)));
    }
    // The first is the default.
    let doubt_ns = PREFERENCE * ranking[0].1.ns;
    ranking[1..].sort_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
    if ranking[1].1.ns < doubt_ns {
        ranking.sort_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
    }
    let basis = Basis::Sample {
        nodes: sample.shape.len(),
    };
    (ranking[0].0, ranking, basis)
}

/// What is predicted of the layout that would be chosen; `predictor` is for all nodes.
pub(crate) fn prediction_of_choice(
    shape: &Shape,
    predictor: &Predictor,
    node: NodeExtent,
    weights: Option<&[f64]>,
    pages: PageSize,
    machine: &Machine,
) -> Prediction {
    let (layout, ranking, _) = decide(shape, node, weights, pages, machine);
    let ranked = ranking.into_iter().next().map(|(_, prediction)| prediction);
    ranked.unwrap_or_else(|| {
        let placement = place(layout, shape, node, weights);
        predictor.predict(&placement, node, pages, machine)
    })
}

/// The part of the shape that the candidates are compared on; `None` when it is nearly a list.
fn sample(shape: &Shape, weights: Option<&[f64]>) -> Option<Sample> {
    let n = shape.len();
    // At most 16 times 2^16.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a square root of a number of 32 bits, times a small one"
    )]
    let cut_max = (CUT_SHARE * (n as f64).sqrt()) as u32;
    let subtree = shape.subtree_nodes();
    let cut = cut(&subtree, cut_max)?;
    let sums = weights.map(|weights| subtree_probabilities(shape, weights));
    let bundle_nodes = u64::from(cut).max(BUNDLE_NODES_MIN);
    let wanted = (n / SAMPLED_SHARE).clamp(SAMPLED_NODES_MIN, SAMPLED_NODES_MAX) as u64;
    let bundles = usize::try_from(wanted.saturating_sub(u64::from(cut)) / bundle_nodes);
    Some(Sample::new(
        shape,
        &subtree,
        sums.as_deref(),
        cut,
        bundle_nodes,
        bundles.unwrap_or(0).max(BUNDLES_MIN),
    ))
}

/// The line size of the machine: its smallest block of 64 bytes or more.
fn line_bytes(machine: &Machine, pages: PageSize) -> u32 {
    let mut blocks = machine.levels_for(pages).map(|level| level.block_bytes);
    let line_bytes = blocks.find(|&bytes| bytes >= 64).unwrap_or(64);
    u32::try_from(line_bytes).unwrap_or(64)
}

/// What fits into the second cache; 0 when there are not two before memory.
fn small_bytes(machine: &Machine) -> f64 {
    let levels = machine.levels.iter();
    let mut caches = levels.filter(|level| level.kind == LevelKind::Data).skip(1);
    match (caches.next(), caches.next()) {
        (Some(second), Some(_)) => second.capacity_bytes(),
        _ => 0.0,
    }
}

/// Every layout without parameters, placed and predicted in full, best first; with `weights` for
/// operations that end at nodes in proportion to them. Ties go to the smaller span.
///
/// O(n log n) for placing each layout, O(n) for each of them and each block size of the machine:
/// seconds for millions of nodes.
///
/// # Panics
/// As [`choose_layout`].
pub fn rank_layouts(
    shape: &Shape,
    node: NodeExtent,
    weights: Option<&[f64]>,
    pages: PageSize,
    machine: &Machine,
) -> Vec<(Layout, Prediction)> {
    let predictor = Predictor::of_ends(shape, weights);
    let layouts = morph_layouts(node, weights.is_some(), pages, machine).into_iter();
    let mut ranking: Vec<(u64, (Layout, Prediction))> = layouts
        .map(|layout| {
            let placement = place(layout, shape, node, weights);
            let prediction = predictor.predict(&placement, node, pages, machine);
            (placement.span_bytes(node), (layout, prediction))
        })
        .collect();
    ranking.sort_by(|(a_bytes, (_, a)), (b_bytes, (_, b))| {
        a.ns.total_cmp(&b.ns).then(a_bytes.cmp(b_bytes))
    });
    ranking.into_iter().map(|(_, ranked)| ranked).collect()
}

#[cfg(test)]
mod tests;
