//! Chooses a layout.
//!
//! Each candidate is placed and its cost predicted, on a sample of the nodes: all nodes of a large
//! structure would take longer than a morph.
//!
//! 1. **Some structures leave no choice.** Lists are laid out depth-first, and a structure of the
//!    second cache's size differs by a few percent between good layouts ([`Basis`] says which rule
//!    decided).
//! 2. **A sample stands for the rest** (`sample`): the top of the trees and some bundles of
//!    bottoms, at most one node in a hundred.
//! 3. **Layouts that never win are left out.** Over random-insert and complete trees, recursive
//!    trees and forests of 2^14 to 2^18 nodes of 24 to 64 bytes, breadth-first, depth-first and
//!    subtree clusters were predicted at most 2 % cheaper than the best candidate. Breadth-first
//!    order is a candidate where nodes have several children.
//!
//! [`rank_layouts`] ranks every layout on all nodes. Compared with it, the predictions of the
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
    /// What was compared, the layout taken first, then by predicted time: predictions from a sample
    /// of the nodes, a few percent from what a [`Predictor`] says of all of them. Empty when
    /// nothing had to be compared.
    pub ranking: Vec<(Layout, Prediction)>,
    /// What the choice rests on.
    pub basis: Basis,
}

/// What a [`Choice`] rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Basis {
    /// No node has two children, or paths are so long (hundreds of nodes) that the structure is
    /// nearly a list: depth-first.
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
/// Another layout is taken if its predicted cost is below this share of the default's.
///
/// Predictions compare layouts within some 8 %, and do not model the prefetch of the next line,
/// which hierarchical order is made for. On trees of 2^16 to 2^20 nodes, it took at most 1.06 times
/// what the best of seven layouts took in 34 of 36 cases.
const PREFERENCE: f64 = 0.92;
/// Children of an inner node from which on breadth-first order is a candidate.
const WIDE_CHILDREN: usize = 3;
/// A cut of this many times the square root of all nodes means long paths: operations visit
/// hundreds of nodes.
const CUT_SHARE: f64 = 16.0;

/// Whether breadth-first order is a candidate: nodes have several children, and are numbered in
/// that order, so that their places are known.
///
/// The sample overestimates its cost by a few percent.
fn breadth_first_may_win(shape: &Shape) -> bool {
    shape.len() >= WIDE_CHILDREN * shape.inner_nodes() && shape.is_breadth_first()
}

/// The layout that is taken unless another is much better.
///
/// Nodes larger than a line share none, so that layouts differ in pages only. Depth-first order
/// then serves searches as well (within 2 %, 96 and 120 bytes) and range queries better.
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
    let mut candidates = vec![
        default,
        Layout::VanEmdeBoas,
        Layout::ClusterVanEmdeBoas {
            block_bytes: line_bytes,
        },
        Layout::ClusterVanEmdeBoas { block_bytes: 256 },
        Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
    ];
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
    let others = [
        Layout::DepthFirst,
        Layout::Preorder,
        Layout::SubtreeCluster { block_bytes },
        Layout::BreadthFirst,
    ];
    for layout in others {
        if !layouts.contains(&layout) {
            layouts.push(layout);
        }
    }
    layouts
}

/// Picks the layout in which uniform searches are predicted to take least time:
/// [hierarchical](Layout::Hierarchical), or for nodes larger than a line
/// [depth-first](Layout::DepthFirst), unless another is better by more than predictions err.
///
/// O(n) with a small constant (some 10 ns a node, and a sample of at most a few ten thousand nodes
/// placed in each candidate), plus one placement of all nodes, that of the chosen layout.
///
/// Lists and other structures whose searches touch a good part of a cache are ranked with less
/// certainty: see [`Prediction::crowded_levels`].
///
/// # Panics
/// When the machine was changed into one whose block sizes are no powers of two, which
/// [`Machine::check`] tells.
///
/// # Examples
/// ```
/// use ccmodel::{Layout, Machine, NodeExtent, PageSize, Shape, choose_layout};
///
/// let shape = Shape::random_binary(100_000, 1);
/// let node = NodeExtent::new(24, 8)?;
/// let choice = choose_layout(&shape, node, PageSize::Small4K, &Machine::thesis());
/// assert_eq!(choice.ranking[0].0, choice.layout);
/// assert_ne!(choice.layout, Layout::BreadthFirst);
/// # Ok::<(), ccmodel::ExtentError>(())
/// ```
pub fn choose_layout(
    shape: &Shape,
    node: NodeExtent,
    pages: PageSize,
    machine: &Machine,
) -> Choice {
    choose(shape, node, None, pages, machine)
}

/// Picks the layout in which operations are predicted to take least time that end at node `v` with
/// a frequency in proportion to `weights[v]`, as in [`Visits::weighted`](crate::Visits::weighted):
/// [weighted](Layout::Weighted) unless another is better by more than predictions err. All are
/// placed [by weight](Layout::place_weighted).
///
/// As [`choose_layout`], with two more passes over the nodes.
///
/// # Panics
/// When there is not exactly one weight for each node, and as [`choose_layout`].
pub fn choose_layout_weighted(
    shape: &Shape,
    node: NodeExtent,
    weights: &[f64],
    pages: PageSize,
    machine: &Machine,
) -> Choice {
    assert_eq!(
        weights.len(),
        shape.len(),
        "one weight for each node is needed"
    );
    choose(shape, node, Some(weights), pages, machine)
}

fn choose(
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
    match ranking.into_iter().next() {
        Some((_, prediction)) => prediction,
        None => {
            let placement = place(layout, shape, node, weights);
            predictor.predict(&placement, node, pages, machine)
        }
    }
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
    machine
        .levels_for(pages)
        .map(|level| level.block_bytes)
        .find(|&bytes| bytes >= 64)
        .and_then(|bytes| u32::try_from(bytes).ok())
        .unwrap_or(64)
}

/// What fits into the second cache; 0 when there are not two before memory.
fn small_bytes(machine: &Machine) -> f64 {
    let mut caches = machine
        .levels
        .iter()
        .filter(|level| level.kind == LevelKind::Data)
        .skip(1);
    match (caches.next(), caches.next()) {
        (Some(second), Some(_)) => second.capacity_bytes(),
        _ => 0.0,
    }
}

/// Every layout without parameters, placed and predicted in full, best first; with `weights` for
/// operations that end at nodes in proportion to them.
///
/// The long way to what [`choose_layout`] estimates: O(n log n) for placing each layout, O(n) for
/// each of them and each block size of the machine; seconds for millions of nodes. Ties go to the
/// smaller span.
///
/// # Panics
/// When there is not one weight for each node, and as [`choose_layout`].
pub fn rank_layouts(
    shape: &Shape,
    node: NodeExtent,
    weights: Option<&[f64]>,
    pages: PageSize,
    machine: &Machine,
) -> Vec<(Layout, Prediction)> {
    let predictor = match weights {
        Some(weights) => Predictor::weighted(shape, weights),
        None => Predictor::new(shape),
    };
    let layouts = morph_layouts(node, weights.is_some(), pages, machine);
    let mut ranking: Vec<(u64, Layout, Prediction)> = layouts
        .into_iter()
        .map(|layout| {
            let placement = place(layout, shape, node, weights);
            let prediction = predictor.predict(&placement, node, pages, machine);
            (placement.span_bytes(node), layout, prediction)
        })
        .collect();
    ranking.sort_by(|a, b| a.2.ns.total_cmp(&b.2.ns).then(a.0.cmp(&b.0)));
    ranking
        .into_iter()
        .map(|(_, layout, prediction)| (layout, prediction))
        .collect()
}

#[cfg(test)]
mod tests;
