use std::collections::BTreeMap;

use quickcheck::quickcheck;

use super::*;
use crate::{Layout, NO_NODE, NodeExtent, Shape};

/// Every block that node `v` covers.
fn blocks_of(
    placement: &Placement,
    v: u32,
    touched: u32,
    block: u64,
) -> std::ops::RangeInclusive<u64> {
    let start = placement.offset(v);
    start / block..=(start + u64::from(touched) - 1) / block
}

/// The definition, word for word: for each end node, the set of blocks on its path.
fn by_definition(
    shape: &Shape,
    placement: &Placement,
    touched: u32,
    block: u64,
) -> BTreeMap<u64, f64> {
    let mut probabilities = BTreeMap::new();
    for end in 0..u32::try_from(shape.len()).unwrap() {
        let mut path = std::collections::BTreeSet::new();
        let mut v = end;
        while v != NO_NODE {
            path.extend(blocks_of(placement, v, touched, block));
            v = shape.parent(v);
        }
        for b in path {
            *probabilities.entry(b).or_insert(0.0) += 1.0 / shape.len() as f64;
        }
    }
    probabilities
}

fn agrees(shape: &Shape, placement: &Placement, touched: u32, block: u64) -> bool {
    let computed = BlockProbabilities::new(&Visits::uniform(shape), placement, touched, block);
    let mut expected = by_definition(shape, placement, touched, block);
    let ends_agree = computed
        .end_blocks()
        .iter()
        .all(|(b, p)| expected.remove(b).is_some_and(|e| (e - p).abs() < 1e-9));
    // What is left are interior blocks.
    let left: f64 = expected.values().sum();
    let interior: f64 = computed
        .interior_blocks()
        .iter()
        .map(|&(p, n)| p * n as f64)
        .sum();
    let blocks: u64 = computed.interior_blocks().iter().map(|&(_, n)| n).sum();
    ends_agree && (left - interior).abs() < 1e-9 && blocks == expected.len() as u64
}

fn layout(choice: u8) -> Layout {
    match choice % 6 {
        0 => Layout::Random { seed: 7 },
        1 => Layout::DepthFirst,
        2 => Layout::BreadthFirst,
        3 => Layout::SubtreeCluster { block_bytes: 64 },
        4 => Layout::VanEmdeBoas,
        _ => Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    }
}

#[test]
fn three_nodes_on_one_line_are_one_touch() {
    let shape = Shape::complete_binary(3);
    let placement = Placement::from_offsets(vec![0, 16, 32]);
    let lines = BlockProbabilities::new(&Visits::uniform(&shape), &placement, 16, 64);
    assert_eq!(lines.end_blocks(), [(0, 1.0)]);
}

#[test]
fn a_path_that_returns_to_a_block_counts_it_once() {
    // A chain whose nodes alternate between two lines.
    let shape = Shape::from_parents(&[NO_NODE, 0, 1, 2]).unwrap();
    let placement = Placement::from_offsets(vec![0, 64, 16, 80]);
    assert!(agrees(&shape, &placement, 16, 64));
}

#[test]
fn a_huge_node_costs_no_walk() {
    let shape = Shape::complete_binary(1);
    let placement = Placement::from_offsets(vec![32]);
    let lines = BlockProbabilities::new(&Visits::uniform(&shape), &placement, u32::MAX, 64);
    let blocks = lines.footprint().blocks();
    assert!(
        (blocks - f64::from(1u32 << 26) - 1.0).abs() < 1.0,
        "{blocks}"
    );
}

#[test]
fn the_end_of_the_address_space_does_not_overflow() {
    let shape = Shape::complete_binary(2);
    let placement = Placement::from_offsets(vec![u64::MAX - 8, 0]);
    let lines = BlockProbabilities::new(&Visits::uniform(&shape), &placement, 64, 64);
    assert_eq!(lines.end_blocks().len(), 2);
}

#[test]
#[should_panic(expected = "not a power of two")]
fn odd_block_sizes_are_refused() {
    let shape = Shape::complete_binary(1);
    let placement = Placement::from_offsets(vec![0]);
    BlockProbabilities::new(&Visits::uniform(&shape), &placement, 8, 48);
}

quickcheck! {
    fn agrees_with_the_definition(
        nodes: u8,
        seed: u64,
        choice: u8,
        block_bits: u8,
        words: u8
    ) -> bool {
        let shape = Shape::random_binary(u32::from(nodes), seed);
        let node = NodeExtent::new(8 * (1 + u32::from(words % 20)), 8).unwrap();
        let placement = layout(choice).place(&shape, node);
        let block = 8u64 << (block_bits % 10);
        agrees(&shape, &placement, node.bytes, block) && agrees(&shape, &placement, 8, block)
    }

    fn every_operation_touches_a_block_and_no_more_than_it_visits(
        nodes: u16,
        seed: u64,
        choice: u8
    ) -> bool {
        let shape = Shape::random_binary(u32::from(nodes) + 1, seed);
        let visits = Visits::uniform(&shape);
        let placement = layout(choice).place(&shape, NodeExtent::new(32, 8).unwrap());
        let lines = BlockProbabilities::new(&visits, &placement, 32, 64).footprint();
        let pages = BlockProbabilities::new(&visits, &placement, 32, 4096).footprint();
        // Nodes of 32 bytes at multiples of 8 may straddle: two lines a node at most.
        1.0 - 1e-9 <= pages.touches()
            && pages.touches() <= lines.touches() + 1e-9
            && lines.touches() <= 2.0 * visits.nodes_per_operation() + 1e-9
    }

    fn sparse_addresses_give_what_dense_ones_give(nodes: u16, seed: u64, choice: u8) -> bool {
        let shape = Shape::random_binary(u32::from(nodes) + 2, seed);
        let visits = Visits::uniform(&shape);
        // Nodes of 32 bytes never lie across a multiple of 4096.
        let dense = layout(choice).place(&shape, NodeExtent::new(32, 32).unwrap());
        let half = dense.offsets().iter().max().unwrap() / 2 / 4096 * 4096;
        // The upper half moves away by a multiple of every block size in use, and all of it to a
        // high address.
        let offsets = dense
            .offsets()
            .iter()
            .map(|&o| 0x7f00_0000_0000 + if o >= half { o + (1 << 40) } else { o })
            .collect();
        let sparse = Placement::from_offsets(offsets);
        [64, 256, 4096].into_iter().all(|block| {
            let ends = |placement| {
                BlockProbabilities::new(&visits, placement, 32, block)
                    .end_blocks()
                    .iter()
                    .map(|&(_, p)| p)
                    .collect::<Vec<f64>>()
            };
            ends(&dense) == ends(&sparse)
        })
    }
}
