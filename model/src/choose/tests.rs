use super::*;
use crate::{NO_NODE, SearchCosts};

fn node(bytes: u32) -> NodeExtent {
    NodeExtent::new(bytes, 8).unwrap()
}

fn forest(trees: u64, nodes_each: u32) -> Shape {
    let mut parents = Vec::new();
    for seed in 0..trees {
        let tree = Shape::random_binary(nodes_each, seed);
        let first = u32::try_from(parents.len()).unwrap();
        parents.extend((0..nodes_each).map(|v| match tree.parent(v) {
            NO_NODE => NO_NODE,
            parent => first + parent,
        }));
    }
    Shape::from_parents(&parents).unwrap()
}

/// Every node below a node chosen evenly from those before it.
fn recursive(nodes: u32) -> Shape {
    let mut state = 88_172_645_463_325_252u64;
    let parents: Vec<u32> = (0..nodes)
        .map(|v| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if v == 0 {
                NO_NODE
            } else {
                u32::try_from(state % u64::from(v)).unwrap()
            }
        })
        .collect();
    Shape::from_parents(&parents).unwrap()
}

/// A complete tree of eight children a node.
fn complete_octree(nodes: u32) -> Shape {
    let parents: Vec<u32> = (0..nodes)
        .map(|v| v.checked_sub(1).map_or(NO_NODE, |before| before / 8))
        .collect();
    Shape::from_parents(&parents).unwrap()
}

fn chains(nodes: u32, lists: u32) -> Shape {
    let parents: Vec<u32> = (0..nodes)
        .map(|v| v.checked_sub(lists).unwrap_or(NO_NODE))
        .collect();
    Shape::from_parents(&parents).unwrap()
}

/// A path of half the nodes, each with one more child.
fn caterpillar(nodes: u32) -> Shape {
    let parents: Vec<u32> = (0..nodes)
        .map(|v| match v {
            0 => NO_NODE,
            _ if v % 2 == 1 => v - 1,
            _ => v - 2,
        })
        .collect();
    Shape::from_parents(&parents).unwrap()
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
    let errors = (ranking.iter()).map(|(layout, sampled)| (sampled.ns / of(*layout) - 1.0).abs());
    let cheapest = ranking.iter().min_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
    let regret = |layout| of(layout) / full[0].1.ns - 1.0;
    // The one that is taken is the usual one, unless it is much dearer.
    assert!(regret(layout) < 1.0 / PREFERENCE - 1.0 + 0.05);
    (errors.fold(0.0, f64::max), regret(cheapest.unwrap().0))
}

/// A machine for which the shapes of these tests are large.
fn small_machine() -> Machine {
    let mut machine = Machine::this().clone();
    for level in &mut machine.levels {
        for step in &mut level.steps {
            step.capacity_bytes /= 8.0;
        }
    }
    machine
}

#[test]
fn a_sample_predicts_what_all_nodes_do() {
    let shapes = [
        ("random", Shape::random_binary(200_000, 3)),
        ("complete", Shape::complete_binary(150_000)),
        ("octree", complete_octree(150_000)),
        ("recursive", recursive(150_000)),
        ("trees of 7", forest(20_000, 7)),
        ("trees of 1000", forest(150, 1000)),
        ("trees of 40000", forest(4, 40_000)),
    ];
    // Samples of nodes fill no sets; what the sets of a preset do is no matter of how good the
    // sample is.
    let mut thesis = Machine::thesis();
    thesis.hierarchy = None;
    for (name, shape) in shapes {
        for bytes in [24, 32, 64] {
            for machine in [&small_machine(), &thesis] {
                let (error, regret) = error_and_regret(&shape, node(bytes), None, machine);
                assert!(error < 0.10, "{name}, {bytes} B, {}: {error}", machine.name);
                assert!(
                    regret < 0.05,
                    "{name}, {bytes} B, {}: {regret}",
                    machine.name
                );
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
    assert!(error < 0.10, "{error}");
    assert!(regret < 0.05, "{regret}");
}

#[test]
fn lists_are_laid_out_as_they_are_walked() {
    for shape in [
        chains(5000, 1),
        chains(100_000, 40_000),
        caterpillar(300_000),
        chains(0, 1),
    ] {
        let choice = choose_layout(&shape, node(24), PageSize::Small4K, &small_machine());
        assert_eq!(choice.layout, Layout::DepthFirst);
        assert_eq!(choice.basis, Basis::Chains);
        assert_eq!(choice.placement, Layout::DepthFirst.place(&shape, node(24)));
    }
}

#[test]
fn small_structures_are_not_searched_for() {
    let shape = Shape::random_binary(2000, 3);
    for bytes in [16, 24, 32, 64] {
        let choice = choose_layout(&shape, node(bytes), PageSize::Small4K, Machine::this());
        assert_eq!(choice.basis, Basis::Small);
        assert_eq!(choice.layout, Layout::Hierarchical);
        assert!(choice.ranking.is_empty());
    }
}

#[test]
fn the_choice_is_the_head_of_the_ranking() {
    for shape in [
        Shape::random_binary(200_000, 3),
        complete_octree(3000),
        recursive(40),
    ] {
        let choice = choose_layout(&shape, node(24), PageSize::Small4K, &Machine::thesis());
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
    let nothing = Machine::new(
        "no caches to speak of",
        SearchCosts {
            operation_ns: 1.0,
            node_ns: 1.0,
            misprediction_ns: 1.0,
            branch_free_node_ns: 1.0,
        },
        vec![crate::Level::new("L1", LevelKind::Data, 32, 1.0, 1.0)],
    )
    .unwrap();
    for machine in [Machine::this(), &nothing] {
        let choice = choose_layout_weighted(&shape, node(24), &weights, PageSize::Huge2M, machine);
        assert_eq!(choice.placement.len(), shape.len());
    }
}

#[test]
fn star_and_one_node() {
    let star: Vec<u32> = (0..100_000u32)
        .map(|v| if v == 0 { NO_NODE } else { 0 })
        .collect();
    let star = Shape::from_parents(&star).unwrap();
    let choice = choose_layout(&star, node(32), PageSize::Small4K, &Machine::thesis());
    assert!(matches!(choice.basis, Basis::Sample { nodes } if nodes < 10_000));
    let one = Shape::complete_binary(1);
    assert_eq!(
        choose_layout(&one, node(32), PageSize::Small4K, Machine::this()).basis,
        Basis::Chains
    );
}

#[test]
fn packed_offsets_are_those_of_breadth_first_order() {
    let shape = Shape::complete_binary(9000);
    for (bytes, align) in [
        (24, 8),
        (20, 4),
        (40, 16),
        (64, 64),
        (4096, 8),
        (5000, 8),
        (3, 1),
    ] {
        let node = NodeExtent::new(bytes, align).unwrap();
        let placement = Layout::BreadthFirst.place(&shape, node);
        assert!(
            (0..9000).all(|v| placement.offset(v) == packed_offset(v, node)),
            "{bytes} B"
        );
    }
    let huge = NodeExtent::new(8, 1 << 17).unwrap();
    assert_eq!(
        packed_offset(3, huge),
        Layout::BreadthFirst.place(&shape, huge).offset(3)
    );
}
