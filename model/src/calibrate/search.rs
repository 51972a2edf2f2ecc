//! Instruction costs of a search, and how far descents overlap that do not wait for each other.

use super::{overlap, typical};
use crate::machine::{CurvePoint, LookAhead, SearchCosts};
use crate::probe::TreeProbe;
use crate::{Layout, NodeExtent, Overlap, PageSize, SearchStyle, Shape, Visits};

/// Instruction costs of the textbook search, from runs in the first-level cache.
///
/// In a tree of one node, a search costs `operation + node`; with keys that repeat, `operation +
/// depth x node`. Random keys add mispredictions, one of them at the end of the search. The
/// branch-free search has only that last one.
pub(super) fn costs(runs: u32) -> Option<SearchCosts> {
    let node = NodeExtent::new(24, 8).ok()?;
    let nodes = 511;
    let shape = Shape::complete_binary(nodes);
    let build = |shape: &Shape| {
        let placement = Layout::DepthFirst.place(shape, node);
        TreeProbe::new(shape, &placement, node, PageSize::Small4K).ok()
    };
    let mut tree = build(&shape)?;
    let mut single = build(&Shape::complete_binary(1))?;
    let searches = 4000;
    // Two leaves far from each other.
    let keys = [0, u64::from(nodes) - 1];
    let depth = f64::from((nodes + 1).ilog2());
    let [mut alone, mut repeated, mut random, mut selected] = [const { Vec::new() }; 4];
    for _ in 0..=runs {
        alone.push(single.random_search_ns(SearchStyle::Branches, searches));
        repeated.push(tree.predictable_search_ns(keys, searches));
        random.push(tree.random_search_ns(SearchStyle::Branches, searches));
        selected.push(tree.random_search_ns(SearchStyle::BranchFree, searches));
    }
    let [alone, repeated, random, selected] = [alone, repeated, random, selected].map(typical);
    let visits = Visits::uniform(&shape);
    let node_ns = ((repeated - alone) / (depth - 1.0)).max(0.0);
    let smooth_ns = (alone - node_ns).max(0.0);
    let rest_ns = random - smooth_ns - node_ns * visits.nodes_per_operation();
    let misprediction_ns = (rest_ns / (visits.mispredictions_per_operation() + 1.0)).max(0.0);
    let operation_ns = smooth_ns + misprediction_ns;
    Some(SearchCosts {
        operation_ns,
        node_ns,
        misprediction_ns,
        branch_free_node_ns: ((selected - operation_ns) / visits.nodes_per_operation()).max(0.0),
    })
}

/// Nodes of the tree in which descents overlap, one to a line: 32 MB, most of it in no cache.
/// Complete, so that the processor can tell where a descent ends.
const FAR_NODES: u32 = (1 << 19) - 1;

/// How far independent descents get ahead in a tree that no cache holds.
///
/// Branch-free descents are bounded by the instructions that the processor holds, so the number of
/// nodes ahead is constant. Those with branches are bounded by the next wrong guess, after a node
/// or two, so the factor by which they get through their misses faster is constant.
pub(super) fn look_ahead(
    runs: u32,
    costs: SearchCosts,
    points: &[CurvePoint],
) -> Option<LookAhead> {
    let node = NodeExtent::new(64, 64).ok()?;
    let shape = Shape::complete_binary(FAR_NODES);
    let placement = Layout::Random { seed: 1 }.place(&shape, node);
    let mut tree = TreeProbe::new(&shape, &placement, node, PageSize::Huge2M).ok()?;
    let styles = [SearchStyle::BranchFree, SearchStyle::Branches];
    let mut samples = styles.map(|_| [Vec::new(), Vec::new()]);
    for round in 0..=4 * runs {
        for (style, [one, many]) in styles.into_iter().zip(&mut samples) {
            let searches = if round == 0 { 20_000 } else { 300 };
            let dependent = tree.random_descent_ns(style, Overlap::Dependent, searches);
            let independent = tree.random_descent_ns(style, Overlap::Independent, searches);
            if round > 0 {
                one.push(dependent);
                many.push(independent);
            }
        }
    }
    let [[one, many], [guessed_one, guessed_many]] = samples.map(|pair| pair.map(typical));
    // All descents are as long as the tree is deep, and mispredict at every second node.
    let nodes = f64::from((FAR_NODES + 1).ilog2());
    let cpu_ns = costs.operation_ns + (costs.node_ns + 0.5 * costs.misprediction_ns) * nodes;
    // The time of the misses, at least a tenth of the whole: noise must not make it 0.
    let waits = |ns: f64| (ns - cpu_ns).max(0.1 * ns);
    let look_ahead = LookAhead {
        misses: overlap::misses(points),
        nodes_ahead: ((one / many - 1.0) * nodes).max(0.0),
        branches: (waits(guessed_one) / waits(guessed_many)).max(1.0),
    };
    let finite = look_ahead.nodes_ahead.is_finite() && look_ahead.branches.is_finite();
    finite.then_some(look_ahead)
}
