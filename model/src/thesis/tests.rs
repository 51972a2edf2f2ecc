use super::*;
use crate::{Growth, Layout, Links};

const NODES: u64 = 2_097_151;

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance
}

#[test]
fn three_nodes_fit_a_block() {
    assert_eq!(nodes_per_block(64, THESIS_NODE_BYTES), 3);
    assert_eq!(nodes_per_block(16, THESIS_NODE_BYTES), 1);
    assert_eq!(nodes_per_block(64, 0), 64);
    // 64 pages of 384 nodes are half of the cache (section 3.4).
    assert!(close(
        colourable_nodes(THESIS_L2, THESIS_NODE_BYTES),
        64.0 * 384.0,
        1e-9
    ));
    // Associativity counts as capacity.
    let wide = CacheGeometry::new(2048, 64, 8).unwrap();
    let [wide, direct] = [wide, THESIS_L2].map(|cache| c_tree_miss_rate(NODES, 20, cache));
    assert!(close(wide, direct, 1e-12));
}

#[test]
fn speedups_of_the_thesis_machine() {
    let system = System::of_machine(&Machine::thesis());
    let speedup = |l2| system.best_case_speedup(&[1.0, l2]);
    assert!(close(speedup(0.5), 71.0 / 39.0, 1e-9));
    assert!(close(
        speedup(c_tree_miss_rate(NODES, 20, THESIS_L2)),
        4.23,
        0.01
    ));
    assert!(close(speedup(1.0), 1.0, 1e-12));
    assert!(close(system.caches[1].blocks, 16_384.0, 1e-9));
    let free = System {
        hit_time: 0.0,
        caches: Vec::new(),
        ..system
    };
    assert!(close(free.best_case_speedup(&[]), 1.0, 0.0));
}

#[test]
fn k_has_the_limits_of_the_text() {
    for k in 1..200 {
        for clustering in [
            Clustering::None,
            Clustering::DepthFirst,
            Clustering::Subtree,
        ] {
            let elements = clustering.k(k);
            let is_within = (1.0..=k as f64 + 1e-12).contains(&elements);
            assert!(is_within, "{clustering:?}, {k}");
        }
        // "greater than 2 for k > 3", "<= 2" (section 2.2.3).
        assert_eq!(Clustering::Subtree.k(k) > 2.0 + 1e-12, k > 3);
        assert!(Clustering::DepthFirst.k(k) <= 2.0);
    }
    // A node with one child has only the chain.
    assert!(close(Clustering::Subtree.k_of(7, 1), 7.0, 1e-12));
    assert!(close(Clustering::DepthFirst.k_of(7, 1), 7.0, 1e-12));
    // Five nodes of a tree of four children are two levels.
    assert!(close(Clustering::Subtree.k_of(5, 4), 2.0, 1e-12));
    assert!(close(Clustering::DepthFirst.k_of(2, 4), 1.25, 1e-12));
}

#[test]
fn structures_of_other_arity() {
    let tree = |nodes, arity| CompleteTree {
        nodes,
        node_bytes: 16,
        arity,
    };
    let quadtree = tree((1 << 20) / 3, 4);
    assert!(close(quadtree.references(), 10.0, 1e-4));
    assert!(close(quadtree.coloured_reuse(5.0), 2.0, 1e-12));
    let binary = CompleteTree::binary(NODES, 20);
    assert!(close(binary.references(), search_references(NODES), 1e-9));
    let reuse = coloured_reuse(NODES, 384.0);
    assert!(close(binary.coloured_reuse(384.0), reuse, 1e-9));
    // A list of 5 with 2 coloured: its searches need 1, 2, 2, 2, 2 of these.
    let list = tree(5, 1);
    assert!(close(list.references(), 3.0, 1e-12));
    assert!(close(list.coloured_reuse(2.0), 9.0 / 5.0, 1e-12));
    assert!(close(list.coloured_reuse(99.0), list.references(), 1e-12));
    let growth = Growth::Complete;
    let arity = |structure| CompleteTree::of(structure, 7, 20).map(|tree| tree.arity);
    assert_eq!(arity(Structure::SearchTree { growth }), Some(2));
    assert_eq!(arity(Structure::Tree { arity: 5, growth }), Some(5));
    let dimensions = 3;
    assert_eq!(arity(Structure::PointTree { dimensions, growth }), Some(8));
    let links = Links::Double;
    assert_eq!(arity(Structure::List { links }), Some(1));
    assert_eq!(arity(Structure::SortedArray), None);
}

#[test]
fn the_worst_case_counted_block_by_block() {
    for (nodes_per_block, block_levels) in [(1u64, 12u32), (3, 6), (7, 4)] {
        let step = nodes_per_block + 1;
        let nodes = step.pow(block_levels) - 1;
        for power in 0..block_levels {
            // The i-th search takes the i-th branch at each level in turn, so that after i of them
            // min(i, blocks) of each level have been seen.
            let searches = step.pow(power);
            let seen: u64 = { 0..block_levels }
                .map(|level| searches.min(step.pow(level)))
                .sum();
            let hits = (u64::from(block_levels) * searches - seen) as f64;
            assert!(close(
                worst_case_hits(nodes_per_block, searches),
                hits,
                1e-6
            ));
            let mean = seen as f64 / searches as f64;
            let misses = transient_misses(nodes, nodes_per_block, searches);
            assert!(close(misses, mean, 1e-9));
        }
    }
}

#[test]
fn transient_misses_fall_with_the_logarithm() {
    assert!(close(transient_misses(NODES, 3, 1), 10.5, 1e-9));
    assert!(close(transient_misses(NODES, 3, 4), 9.5 + 0.25, 1e-9));
    // The last formula leaves out the last term.
    for searches in [1, 64, 4096] {
        let kept = (searches as f64 - 1.0) / (searches as f64 * 3.0);
        let rate = transient_miss_rate(NODES, 3, searches) * search_references(NODES);
        assert!(close(
            transient_misses(NODES, 3, searches) - kept,
            rate,
            1e-9
        ));
    }
    for searches in [0, u64::MAX] {
        assert!(transient_misses(3, 3, searches) >= 0.0);
        assert!(worst_case_hits(0, searches).is_finite());
    }
}

#[test]
fn odd_parameters_stay_finite() {
    for references in [0.0, f64::NAN, -1.0, f64::INFINITY] {
        for k in [0.0, f64::NAN, 1.0] {
            let rate = miss_rate(references, 0.0, k);
            assert!(rate.is_finite() && rate >= 0.0, "{references} {k}");
        }
    }
    let report = report(CompleteTree::binary(0, 0), &Machine::thesis(), &[], Some(0));
    for row in &report.rows {
        assert!(row.time.is_finite() && row.best_case_speedup.is_finite());
    }
}

#[test]
fn the_report_is_of_the_machine_that_was_asked_for() {
    let tree = CompleteTree::binary(NODES, THESIS_NODE_BYTES);
    let layouts = [
        Layout::Random { seed: 0 },
        Layout::DepthFirst,
        Layout::SubtreeCluster { block_bytes: 64 },
        Layout::VanEmdeBoas,
        Layout::SubtreeCluster { block_bytes: 256 },
    ];
    let thesis = report(tree, &Machine::thesis(), &layouts, Some(4096));
    assert_eq!(thesis.rows.len(), 5);
    for (row, expected) in thesis.rows.iter().zip([1.0, 0.571_43, 0.5]) {
        assert!(close(row.levels[1].miss_rate, expected, 1e-5));
        // The first level always misses, as section 2.3.2 has it.
        assert!(close(row.levels[0].miss_rate, 1.0, 1e-12));
    }
    assert!(close(thesis.rows[4].best_case_speedup, 4.23, 0.01));
    assert!(thesis.notes[0].contains("veb") && thesis.notes[0].contains("cluster:256"));
    let transient = thesis.transient.unwrap();
    let expected = 10.5 - 6.0 + 4095.0 / (4096.0 * 3.0);
    assert!(close(transient.worst_case_misses, expected, 1e-9));

    let mut machine = Machine::thesis();
    machine.levels[1].steps[0].capacity_bytes *= 4.0;
    let larger = report(tree, &machine, &layouts, None);
    assert!(larger.rows[4].levels[1].reuse > thesis.rows[4].levels[1].reuse + 1.9);
    assert!(larger.transient.is_none());

    let text = thesis.to_string();
    for part in [
        "D = 21.00",
        "0.571",
        "cluster, coloured",
        "4.23x",
        "4096 searches",
        "note:",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
