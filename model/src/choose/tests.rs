use super::*;
use crate::shape::random::SplitMix64;
use crate::{NO_NODE, SearchCosts};

fn node(bytes: u32) -> NodeExtent {
    NodeExtent::new(bytes, 8).unwrap()
}

fn choose(shape: &Shape, bytes: u32, machine: &Machine) -> Choice {
    choose_layout(shape, node(bytes), None, PageSize::Small4K, machine)
}

/// A shape of `nodes` nodes with these parents.
fn shape(nodes: u32, parent: impl FnMut(u32) -> Option<u32>) -> Shape {
    let parents = (0..nodes)
        .map(parent)
        .map(|parent| parent.unwrap_or(NO_NODE));
    Shape::from_generated(parents.collect())
}

/// Every node below a node chosen evenly from those before it.
fn recursive(nodes: u32) -> Shape {
    let mut random = SplitMix64::new(1);
    shape(nodes, |v| (v > 0).then(|| random.below(v)))
}

fn complete_octree(nodes: u32) -> Shape {
    shape(nodes, |v| Some(v.checked_sub(1)? / 8))
}

fn forest(trees: u32, nodes_each: u32) -> Shape {
    let tree = |i: u32| Shape::random_binary(nodes_each, u64::from(i));
    let parents = (0..trees).flat_map(|i| {
        let shift = move |parent| match parent {
            NO_NODE => NO_NODE,
            parent => i * nodes_each + parent,
        };
        tree(i).parents().to_vec().into_iter().map(shift)
    });
    Shape::from_generated(parents.collect())
}

/// The choice's ranking against all layouts in full: how far its predictions are off, and what the
/// layout that it predicts to be the cheapest costs more than the best.
fn error_and_regret(
    shape: &Shape,
    node: NodeExtent,
    weights: Option<&[f64]>,
    machine: &Machine,
) -> (f64, f64) {
    let pages = PageSize::Small4K;
    let (layout, ranking, basis) = decide(shape, node, weights, pages, machine);
    assert!(matches!(basis, Basis::Sample { nodes } if nodes * 3 < shape.len()));
    let full = rank_layouts(shape, node, weights, pages, machine);
    let of = |wanted: Layout| {
        let found = full.iter().find(|(layout, _)| *layout == wanted);
        found.unwrap().1.ns
    };
    let error = |(layout, sampled): &(Layout, Prediction)| (sampled.ns / of(*layout) - 1.0).abs();
    let cheapest = ranking.iter().min_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
    let regret = |layout| of(layout) / full[0].1.ns - 1.0;
    // The default is taken unless it is much more expensive.
    assert!(regret(layout) < 1.0 / PREFERENCE - 1.0 + 0.05);
    let errors = ranking.iter().map(error);
    (errors.fold(0.0, f64::max), regret(cheapest.unwrap().0))
}

/// A machine for which the shapes of these tests are large.
fn small_machine() -> Machine {
    let mut machine = Machine::this().clone();
    for step in machine.levels.iter_mut().flat_map(|level| &mut level.steps) {
        step.capacity_bytes /= 8.0;
    }
    machine
}

#[test]
fn a_sample_predicts_what_all_nodes_do() {
    // Samples fill no sets, so the thesis's machine is known by its capacities.
    let mut thesis = Machine::thesis();
    thesis.hierarchy = None;
    for (name, shape) in [
        ("random", Shape::random_binary(200_000, 3)),
        ("complete", Shape::complete_binary(150_000)),
        ("octree", complete_octree(150_000)),
        ("recursive", recursive(150_000)),
        ("trees of 7", forest(20_000, 7)),
        ("trees of 1000", forest(150, 1000)),
        ("trees of 40000", forest(4, 40_000)),
    ] {
        for bytes in [24, 32, 64] {
            for machine in [&small_machine(), &thesis] {
                let (error, regret) = error_and_regret(&shape, node(bytes), None, machine);
                let what = format!("{name}, {bytes} B, {}: {error}, {regret}", machine.name);
                assert!(error < 0.10 && regret < 0.05, "{what}");
            }
        }
    }
}

#[test]
fn a_sample_sees_what_weights_change() {
    let shape = Shape::random_binary(200_000, 9);
    // Zipf over nodes in an order that has nothing to do with the tree.
    let weights: Vec<f64> = (0..200_000u32)
        .map(|v| 1.0 / f64::from(v.wrapping_mul(2_654_435_761) % 200_000 + 1))
        .collect();
    let (error, regret) = error_and_regret(&shape, node(32), Some(&weights), &small_machine());
    assert!(error < 0.10 && regret < 0.05, "{error}, {regret}");
}

#[test]
fn lists_and_small_structures_leave_no_choice() {
    // A path of half the nodes, each with one more child.
    let caterpillar = shape(300_000, |v| match v {
        0 => None,
        _ => Some(if v % 2 == 1 { v - 1 } else { v - 2 }),
    });
    let lists = [(5000, 1), (100_000, 40_000), (0, 1), (1, 1)];
    let lists = lists.map(|(nodes, lists)| shape(nodes, |v| v.checked_sub(lists)));
    for shape in lists.iter().chain([&caterpillar]) {
        let choice = choose(shape, 24, &small_machine());
        assert!(choice.layout == Layout::DepthFirst && choice.basis == Basis::Chains);
        assert_eq!(choice.placement, Layout::DepthFirst.place(shape, node(24)));
    }
    let shape = Shape::random_binary(2000, 3);
    for bytes in [16, 24, 32, 64] {
        let choice = choose(&shape, bytes, Machine::this());
        assert!(choice.layout == Layout::Hierarchical && choice.basis == Basis::Small);
        assert!(choice.ranking.is_empty());
    }
}

#[test]
fn the_choice_is_the_head_of_the_ranking() {
    let star = shape(100_000, |v| (v > 0).then_some(0));
    let random = Shape::random_binary(200_000, 3);
    for shape in [random, complete_octree(3000), recursive(40), star] {
        let choice = choose(&shape, 24, &Machine::thesis());
        assert!(matches!(choice.basis, Basis::Sample { nodes } if nodes < 25_000));
        assert_eq!(choice.ranking[0].0, choice.layout);
        assert_eq!(choice.placement, choice.layout.place(&shape, node(24)));
        assert!(choice.ranking[1..].is_sorted_by(|a, b| a.1.ns <= b.1.ns));
        assert!(choice.ranking[1].1.ns >= PREFERENCE * choice.ranking[0].1.ns);
    }
}

#[test]
fn hopeless_weights_and_odd_machines_still_choose() {
    let shape = Shape::random_binary(3000, 3);
    let weights = vec![f64::NAN; shape.len()];
    let search = SearchCosts {
        operation_ns: 1.0,
        node_ns: 1.0,
        misprediction_ns: 1.0,
        branch_free_node_ns: 1.0,
    };
    let tiny = crate::Level::new("L1", LevelKind::Data, 32, 1.0, 1.0);
    let nothing = Machine::new("no caches to speak of", search, vec![tiny]).unwrap();
    for machine in [Machine::this(), &nothing] {
        let choice = choose_layout(&shape, node(24), Some(&weights), PageSize::Huge2M, machine);
        assert_eq!(choice.placement.len(), shape.len());
    }
}

#[test]
fn packed_offsets_are_those_of_breadth_first_order() {
    let shape = Shape::complete_binary(9000);
    let small = [(3, 1), (20, 4), (24, 8), (40, 16), (64, 64)];
    for (bytes, align) in small
        .into_iter()
        .chain([(4096, 8), (5000, 8), (8, 1 << 17)])
    {
        let node = NodeExtent::new(bytes, align).unwrap();
        let placement = Layout::BreadthFirst.place(&shape, node);
        for v in 0..9000 {
            assert_eq!(placement.offset(v), packed_offset(v, node), "{bytes} B");
        }
    }
}
