//! Golden values of the text, limits of the formulas, and the worst case counted block by block.

use quickcheck::quickcheck;

use super::*;
use crate::{Growth, Layout, Links, Machine, Structure};

const NODES: u64 = 2_097_151;

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance
}

fn uncoloured(clustering: Clustering) -> MissRates {
    MissRates {
        l1: 1.0,
        l2: miss_rate(search_references(NODES), 0.0, clustering.k(3)),
    }
}

#[test]
fn the_miss_rates_that_the_text_prints() {
    assert!(close(uncoloured(Clustering::Subtree).l2, 0.5, 1e-12));
    assert!(close(uncoloured(Clustering::DepthFirst).l2, 0.571, 5e-4));
    assert!(close(uncoloured(Clustering::None).l2, 1.0, 1e-12));
}

#[test]
fn three_nodes_fit_a_block() {
    assert_eq!(THESIS_L2.nodes_per_block(THESIS_NODE_BYTES), 3);
    // An element larger than a block has one to itself.
    assert_eq!(THESIS_L1.nodes_per_block(THESIS_NODE_BYTES), 1);
    assert_eq!(THESIS_L2.nodes_per_block(0), 64);
    // 64 pages of 384 nodes are half of the cache (section 3.4).
    assert!(close(
        THESIS_L2.colourable_nodes(THESIS_NODE_BYTES),
        64.0 * 384.0,
        1e-9
    ));
    // "consumed 40 MB of memory (forty times the size of the L2 cache)" (section 2.3.2).
    let megabytes = (NODES * THESIS_NODE_BYTES) as f64 / f64::from(1 << 20);
    assert!(close(megabytes, 40.0, 1e-3));
}

#[test]
fn associativity_counts_as_capacity() {
    let wide = CacheGeometry::new(2048, 64, 8).unwrap();
    assert_eq!(wide.blocks(), THESIS_L2.blocks());
    assert!(close(
        c_tree_miss_rate(NODES, 20, wide),
        c_tree_miss_rate(NODES, 20, THESIS_L2),
        1e-12
    ));
    assert!(close(reuse_bound(wide, 20, 21.0), 21.0, 1e-12));
    let tiny = CacheGeometry::new(2, 64, 2).unwrap();
    assert!(close(reuse_bound(tiny, 20, 21.0), 12.0, 1e-12));
}

#[test]
fn figure_3_3_is_the_general_formula_with_both_techniques() {
    let printed = (1.0 - (64.0f64 * 384.0 + 1.0).log2() / 2_097_152f64.log2()) / 4f64.log2();
    assert!(close(
        c_tree_miss_rate(NODES, THESIS_NODE_BYTES, THESIS_L2),
        printed,
        1e-12
    ));
    // Colouring alone: 1 - log2(coloured + 1) / log2(n + 1) (section 3.4).
    let alone = miss_rate(search_references(NODES), coloured_reuse(NODES, 384.0), 1.0);
    assert!(close(alone, 1.0 - 385f64.log2() / 21.0, 1e-12));
}

#[test]
fn speedups_of_the_formulas() {
    let clusters = THESIS_LATENCIES.best_case_speedup(uncoloured(Clustering::Subtree));
    assert!(close(clusters, 71.0 / 39.0, 1e-12));
    let c_tree = THESIS_LATENCIES.best_case_speedup(MissRates {
        l1: 1.0,
        l2: c_tree_miss_rate(NODES, THESIS_NODE_BYTES, THESIS_L2),
    });
    assert!(close(c_tree, 4.23, 0.01), "{c_tree}");
    assert!(close(THESIS_LATENCIES.best_case_speedup(NAIVE), 1.0, 1e-12));
    // Figure 3-1 between two layouts is the quotient of figure 3-2 for each.
    let depth_first = uncoloured(Clustering::DepthFirst);
    let between = THESIS_LATENCIES.speedup(depth_first, uncoloured(Clustering::Subtree));
    let quotient = clusters / THESIS_LATENCIES.best_case_speedup(depth_first);
    assert!(close(between, quotient, 1e-12));
}

#[test]
fn any_number_of_levels_reduces_to_two() {
    let system = System::thesis();
    for (l1, l2) in [(1.0, 0.5), (0.7, 0.2), (0.0, 0.0)] {
        // Misses for each reference on one side, for each first-level miss on the other.
        let rates = MissRates { l1, l2 };
        assert!(close(
            system.reference_time(&[l1, l1 * l2]),
            THESIS_LATENCIES.reference_cycles(rates),
            1e-12
        ));
        assert!(close(
            system.best_case_speedup(&[l1, l1 * l2]),
            THESIS_LATENCIES.best_case_speedup(rates),
            1e-12
        ));
    }
    let of_machine = System::of_machine(&Machine::thesis());
    assert!(close(
        of_machine.best_case_speedup(&[1.0, 0.5]),
        71.0 / 39.0,
        1e-9
    ));
    assert!(close(of_machine.caches[1].blocks, 16_384.0, 1e-9));
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
            assert!(
                (1.0..=k as f64 + 1e-12).contains(&elements),
                "{clustering:?}, {k}"
            );
        }
        // "greater than 2 for k > 3", "<= 2" (section 2.2.3).
        assert_eq!(Clustering::Subtree.k(k) > 2.0 + 1e-12, k > 3);
        assert!(Clustering::DepthFirst.k(k) <= 2.0);
    }
    // Of a node with one child there is nothing but the chain.
    assert!(close(Clustering::Subtree.k_of(7, 1), 7.0, 1e-12));
    assert!(close(Clustering::DepthFirst.k_of(7, 1), 7.0, 1e-12));
    // Five nodes of a tree of four children are two levels.
    assert!(close(Clustering::Subtree.k_of(5, 4), 2.0, 1e-12));
    assert!(close(Clustering::DepthFirst.k_of(2, 4), 1.25, 1e-12));
}

#[test]
fn structures_of_other_arity() {
    let quadtree = CompleteTree {
        nodes: (1 << 20) / 3,
        node_bytes: 16,
        arity: 4,
    };
    assert!(close(quadtree.references(), 10.0, 1e-4));
    assert!(close(quadtree.coloured_reuse(5.0), 2.0, 1e-12));
    let binary = CompleteTree::binary(NODES, 20);
    assert!(close(binary.references(), search_references(NODES), 1e-9));
    assert!(close(
        binary.coloured_reuse(384.0),
        coloured_reuse(NODES, 384.0),
        1e-9
    ));
    // A list of 5 with 2 coloured: 1, 2, 2, 2, 2 of its searches' nodes are.
    let list = CompleteTree {
        nodes: 5,
        node_bytes: 16,
        arity: 1,
    };
    assert!(close(list.references(), 3.0, 1e-12));
    assert!(close(list.coloured_reuse(2.0), 9.0 / 5.0, 1e-12));
    assert!(close(list.coloured_reuse(99.0), list.references(), 1e-12));
}

#[test]
fn structures_are_taken_for_complete_trees() {
    let growth = Growth::Complete;
    let arity = |structure| CompleteTree::of(structure, 7, 20).map(|tree| tree.arity);
    assert_eq!(arity(Structure::SearchTree { growth }), Some(2));
    assert_eq!(arity(Structure::Tree { arity: 5, growth }), Some(5));
    let octree = Structure::PointTree {
        dimensions: 3,
        growth,
    };
    assert_eq!(arity(octree), Some(8));
    let links = Links::Double;
    assert_eq!(arity(Structure::List { links }), Some(1));
    assert_eq!(arity(Structure::SortedArray), None);
}

#[test]
fn the_worst_case_counted_block_by_block() {
    for (nodes_per_block, block_levels) in [(1u64, 12u32), (3, 6), (7, 4)] {
        let step = nodes_per_block + 1;
        let nodes = step.pow(block_levels) - 1;
        // The i-th search takes the i-th branch at each level in turn, so that after i of them
        // min(i, blocks) of each level have been seen.
        let mut before = 0;
        for search in 1..=step.pow(block_levels - 1) {
            let seen: u64 = (0..block_levels)
                .map(|level| search.min(step.pow(level)))
                .sum();
            let misses = (seen - before) as f64;
            assert!(
                close(
                    worst_case_misses(nodes, nodes_per_block, search),
                    misses,
                    1e-9
                ),
                "{nodes_per_block}, {search}"
            );
            before = seen;
            // T and the amortised form are for powers of k + 1.
            let is_power = (0..block_levels).any(|level| step.pow(level) == search);
            if is_power {
                let all = u64::from(block_levels) * search;
                let hits = (all - seen) as f64;
                assert!(close(worst_case_hits(nodes_per_block, search), hits, 1e-6));
                let mean = seen as f64 / search as f64;
                assert!(close(
                    transient_misses(nodes, nodes_per_block, search),
                    mean,
                    1e-9
                ));
            }
        }
    }
}

#[test]
fn transient_misses_fall_with_the_logarithm() {
    assert!(close(transient_misses(NODES, 3, 1), 10.5, 1e-9));
    assert!(close(transient_misses(NODES, 3, 4), 9.5 + 0.25, 1e-9));
    assert!(close(transient_reuse(NODES, 8), 3.0, 1e-12));
    // The rate of the last formula, over the references, less "the last term".
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
        assert!(worst_case_misses(3, 3, searches) >= 0.0);
        assert!(worst_case_hits(0, searches).is_finite());
    }
}

#[test]
fn amortised_rates_tend_to_the_steady_one() {
    let (references, k) = (21.0, 2.0);
    let bound = coloured_reuse(NODES, 24_576.0);
    let reuse = |i: u64| (i as f64).log2().min(bound);
    for accesses in [1, 2, 15, 16, 17, 1000, 100_000] {
        let summed = amortised_miss_rate(references, k, accesses, reuse);
        let closed = logarithmic_reuse_miss_rate(references, k, accesses, bound);
        assert!(close(closed / summed, 1.0, 1e-8), "{accesses}");
    }
    let steady = miss_rate(references, bound, k);
    let late = logarithmic_reuse_miss_rate(references, k, 1 << 40, bound);
    assert!(late > steady && close(late, steady, 1e-6));
    // From cold, and with no cache at all.
    let cold = logarithmic_reuse_miss_rate(references, k, 1, bound);
    assert!(close(cold, 0.5, 1e-12));
    assert!(close(
        logarithmic_reuse_miss_rate(references, k, 1 << 40, 0.0),
        0.5,
        1e-12
    ));
}

#[test]
fn odd_parameters_stay_finite() {
    for references in [0.0, f64::NAN, -1.0, f64::INFINITY] {
        for k in [0.0, f64::NAN, 1.0] {
            let rate = miss_rate(references, 0.0, k);
            assert!(rate.is_finite() && rate >= 0.0, "{references} {k}");
        }
    }
    assert!(close(c_tree_miss_rate(1, 1 << 40, THESIS_L2), 0.0, 1e-12));
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
    let rates: Vec<f64> = thesis
        .rows
        .iter()
        .map(|row| row.levels[1].miss_rate)
        .collect();
    assert_eq!(rates.len(), 5);
    for (rate, expected) in rates.iter().zip([1.0, 0.571_43, 0.5]) {
        assert!(close(*rate, expected, 1e-5));
    }
    assert!(close(thesis.rows[4].best_case_speedup, 4.23, 0.01));
    // Its first level always misses, as section 2.3.2 has it.
    assert!(
        thesis
            .rows
            .iter()
            .all(|row| close(row.levels[0].miss_rate, 1.0, 1e-12))
    );
    assert!(thesis.notes[0].contains("veb") && thesis.notes[0].contains("cluster:256"));
    let transient = thesis.transient.unwrap();
    assert!(close(
        transient.worst_case_misses,
        10.5 - 6.0 + 4095.0 / (4096.0 * 3.0),
        1e-9
    ));

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

quickcheck! {
    fn more_of_anything_never_misses_more(nodes: u32, coloured: u32, k: u8) -> bool {
        let (nodes, k) = (u64::from(nodes), u64::from(k) + 1);
        let references = search_references(nodes);
        let rate = |coloured: u32, k: u64| {
            let reuse = coloured_reuse(nodes, f64::from(coloured));
            miss_rate(references, reuse, Clustering::Subtree.k(k))
        };
        let rates = rate(coloured, k);
        (0.0..=1.0).contains(&rates)
            && rate(coloured.saturating_add(1), k) <= rates + 1e-12
            && rate(coloured, k + 1) <= rates + 1e-12
    }

    fn a_later_search_never_misses_more(nodes: u32, k: u8, search: u32) -> bool {
        let (nodes, k, search) = (u64::from(nodes), u64::from(k) + 1, u64::from(search) + 1);
        worst_case_misses(nodes, k, search + 1) <= worst_case_misses(nodes, k, search)
            && transient_miss_rate(nodes, k, search + 1) <= transient_miss_rate(nodes, k, search)
    }
}
