use quickcheck::quickcheck;

use super::*;
use crate::{Layout, NO_NODE, NodeExtent, Shape};

pub(crate) fn layout(choice: u8) -> Layout {
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
fn single_nodes_and_lists_touch_known_lines() {
    let lines = |parents: &[u32], offsets: &[u64], bytes: u32| {
        let shape = Shape::from_parents(parents).unwrap();
        let placement = Placement::from_offsets(offsets.to_vec());
        BlockProbabilities::new(&Visits::uniform(&shape), &placement, bytes, 64)
    };
    // Three nodes on one line are one touch.
    let one = lines(&[NO_NODE, 0, 0], &[0, 16, 32], 16);
    assert_eq!(one.end_blocks(), [(0, 1.0)]);
    // A path that returns to a line touches it once.
    let returning = lines(&[NO_NODE, 0, 1, 2], &[0, 64, 16, 80], 16);
    assert_eq!(returning.end_blocks(), [(0, 1.0), (1, 0.75)]);
    // A huge node costs no loop, and the end of the address space does not overflow.
    let blocks = lines(&[NO_NODE], &[32], u32::MAX).footprint().blocks();
    assert!((blocks - f64::from(1u32 << 26) - 1.0).abs() < 1.0);
    let at_end = lines(&[NO_NODE, 0], &[u64::MAX - 8, 0], 64);
    assert_eq!(at_end.end_blocks().len(), 2);
}

#[test]
#[should_panic(expected = "not a power of two")]
fn odd_block_sizes_are_refused() {
    let placement = Placement::from_offsets(vec![0]);
    let visits = Visits::uniform(&Shape::complete_binary(1));
    BlockProbabilities::new(&visits, &placement, 8, 48);
}

quickcheck! {
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
                let blocks = BlockProbabilities::new(&visits, placement, 32, block);
                blocks.end_blocks().iter().map(|&(_, p)| p).collect::<Vec<f64>>()
            };
            ends(&dense) == ends(&sparse)
        })
    }
}
