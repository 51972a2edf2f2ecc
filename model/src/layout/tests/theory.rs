//! Layouts compared with theory: edges within blocks of complete trees, memory, skewed weights.

use super::{LAYOUTS, blocks_per_search};
use crate::shape::random::SplitMix64;
use crate::{BlockProbabilities, Layout, NO_NODE, NodeExtent, Placement, Shape, Visits};

fn extent(bytes: u32, align: u32) -> NodeExtent {
    NodeExtent::new(bytes, align).unwrap()
}

/// Edges whose nodes begin in the same block.
fn edges_within(shape: &Shape, placement: &Placement, block_bytes: u64) -> u32 {
    let block = |v: u32| placement.offset(v) / block_bytes;
    let is_within = |v| shape.parent(v) != NO_NODE && block(v) == block(shape.parent(v));
    (0..shape.nodes()).map(|v| u32::from(is_within(v))).sum()
}

#[test]
fn lines_of_two_pair_a_third_of_a_complete_tree() {
    // A node that its parent does not take takes one of its two children: taken(d + 1) = 2^d -
    // taken(d). No matching of the tree has more pairs.
    let node = extent(32, 8);
    for levels in [1u32, 2, 3, 8, 13, 14] {
        let shape = Shape::complete_binary((1 << levels) - 1);
        let (mut taken, mut pairs) = (0, 0);
        for depth in 1..levels {
            taken = (1u32 << (depth - 1)) - taken;
            pairs += taken;
        }
        for layout in [
            Layout::SubtreeCluster { block_bytes: 64 },
            Layout::ClusterVanEmdeBoas { block_bytes: 64 },
            Layout::Hierarchical,
        ] {
            let within = edges_within(&shape, &layout.place(&shape, node), 64);
            assert_eq!(within, pairs, "{layout}, {levels} levels");
        }
    }
}

#[test]
fn lines_of_four_hold_a_greedy_share_of_a_complete_tree() {
    // A line takes a root, its children and one grandchild; below hang three trees two levels lower
    // and two that are three levels lower. The share of edges inside comes to 0.56, between that of
    // pairs and the 2/3 of triangles.
    let node = extent(16, 8);
    let mut inside = vec![0, 0, 2];
    for levels in 3..=15 {
        inside.push(3 + 3 * inside[levels - 2] + 2 * inside[levels - 3]);
    }
    for levels in [3, 10, 13, 14, 15] {
        let shape = Shape::complete_binary((1 << levels) - 1);
        let within = |layout: Layout| edges_within(&shape, &layout.place(&shape, node), 64);
        let cluster = within(Layout::SubtreeCluster { block_bytes: 64 });
        assert_eq!(cluster, inside[levels], "{levels} levels");
        // Where fragments fill a line, one or two of the edges of what comes next may be cut.
        let hierarchical = within(Layout::Hierarchical);
        let range = inside[levels] * 93 / 100..=inside[levels] * 101 / 100;
        assert!(
            range.contains(&hierarchical),
            "{levels} levels: {hierarchical}, {range:?}"
        );
    }
}

#[test]
fn pages_of_complete_trees_hold_most_of_the_edges() {
    // One connected piece a page would leave one edge a page outside, but pieces are cut where a
    // page ends.
    for (bytes, levels) in [(16, 13), (16, 14), (32, 13), (32, 15), (64, 12)] {
        let shape = Shape::complete_binary((1 << levels) - 1);
        let placement = Layout::Hierarchical.place(&shape, extent(bytes, 8));
        let outside = shape.nodes() - 1 - edges_within(&shape, &placement, 4096);
        let what = format!("{bytes} B, {levels} levels: {outside} edges leave their page");
        assert!(outside * 100 < shape.nodes() * 21, "{what}");
        // A search crosses a page border for each log2(nodes in a page) levels, and one more for
        // the pieces that are cut.
        let touched = blocks_per_search(&shape, &placement, extent(bytes, 8), 4096);
        let levels_in_page = (4096 / bytes).ilog2();
        let most = f64::from(levels) / f64::from(levels_in_page) + 1.0;
        assert!(
            touched < most,
            "{bytes} B, {levels} levels: {touched} pages a search"
        );
    }
}

#[test]
fn lines_of_three_end_with_the_leaves() {
    // 20 B: three nodes a line; with an odd number of levels, the root has a line of its own.
    let node = extent(20, 4);
    for levels in [5, 6, 11, 12] {
        let shape = Shape::complete_binary((1 << levels) - 1);
        let placement = Layout::Hierarchical.place(&shape, node);
        let line = |v| placement.offset(v) / 64;
        let mut leaves = shape.nodes() / 2..shape.nodes();
        assert!(leaves.all(|leaf| line(leaf) == line(shape.parent(leaf))));
        let lines = (u64::from(shape.nodes()) + 2).div_ceil(3);
        assert!(placement.span_bytes(node) <= lines * 64);
    }
}

#[test]
fn hierarchical_order_wastes_nothing() {
    let shape = Shape::random_binary(30_000, 3);
    for bytes in [1, 8, 12, 16, 20, 24, 28, 32, 40, 56, 64, 96, 1024, 5000] {
        let node = extent(bytes, 4);
        let stride = node.stride_bytes();
        let packed_bytes = u64::from(shape.nodes()) * stride;
        // What lines of whole nodes leave unused.
        let lost_in_64 = match 64 % stride {
            lost @ 1..=8 if stride <= 32 => lost,
            _ => 0,
        };
        // What the borders of segments cost, which all layouts keep to.
        let segments = packed_bytes / Layout::SEGMENT_BYTES + 1;
        let at_borders = match bytes <= Layout::SEGMENT_NODE_BYTES_MAX {
            true => segments * (Layout::SEGMENT_BYTES % stride),
            false => 0,
        };
        for layout in [Layout::Hierarchical, Layout::Weighted] {
            let span = layout.place(&shape, node).span_bytes(node);
            let most = packed_bytes * 64 / (64 - lost_in_64) + at_borders + 64;
            assert!(
                span <= most,
                "{layout} of {bytes} B: {span} for {packed_bytes}"
            );
            if 64 % stride == 0 {
                assert!(span <= packed_bytes);
            }
        }
    }
}

#[test]
fn ten_million_nodes_of_any_shape() {
    let nodes = if cfg!(miri) { 1_000 } else { 10_000_000u32 };
    let chain: Vec<u32> = (0..nodes).map(|v| v.wrapping_sub(1)).collect();
    let star: Vec<u32> = (0..nodes)
        .map(|v| if v == 0 { NO_NODE } else { 0 })
        .collect();
    let roots = vec![NO_NODE; nodes as usize];
    let node = extent(32, 8);
    for parents in [chain, star, roots] {
        let shape = Shape::from_parents(&parents).unwrap();
        drop(parents);
        for layout in [
            Layout::VanEmdeBoas,
            Layout::Hierarchical,
            Layout::SubtreeCluster { block_bytes: 4096 },
        ] {
            let span = layout.place(&shape, node).span_bytes(node);
            assert!(
                span <= u64::from(nodes) * 32 * 102 / 100 + 4096,
                "{layout}: {span}"
            );
        }
    }
}

/// Weights of Zipf's law with exponent 0.99, in a random order.
fn zipf(nodes: u32, seed: u64) -> Vec<f64> {
    let mut ranks: Vec<u32> = (1..=nodes).collect();
    SplitMix64::new(seed).shuffle(&mut ranks);
    ranks
        .into_iter()
        .map(|rank| f64::from(rank).powf(-0.99))
        .collect()
}

#[test]
fn weights_beat_every_layout_without_them() {
    for (nodes, bytes, seed) in [(1u32 << 14, 32, 1), (1 << 16, 32, 2), (1 << 14, 24, 3)] {
        let shape = Shape::random_binary(nodes, seed);
        let weights = zipf(nodes, seed + 10);
        let visits = Visits::weighted(&shape, &weights);
        let node = extent(bytes, 8);
        let touched = |placement: &Placement, block_bytes: u64| {
            let blocks = BlockProbabilities::new(&visits, placement, bytes, block_bytes);
            blocks.footprint().touches()
        };
        let by_weight = Layout::Weighted.place_weighted(&shape, node, &weights);
        for layout in LAYOUTS {
            let unweighted = layout.place(&shape, node);
            let (ours, theirs) = (touched(&by_weight, 64), touched(&unweighted, 64));
            assert!(
                ours < theirs,
                "{layout}, {nodes} nodes of {bytes} B: {ours}, {theirs} lines"
            );
            let weighted = layout.place_weighted(&shape, node, &weights);
            match layout {
                Layout::Random { .. } | Layout::BreadthFirst => assert_eq!(weighted, unweighted),
                Layout::DepthFirst
                | Layout::SubtreeCluster { block_bytes: 64 }
                | Layout::ClusterVanEmdeBoas { block_bytes: 64 }
                | Layout::Hierarchical => assert!(
                    touched(&weighted, 64) < touched(&unweighted, 64),
                    "{layout} by weight"
                ),
                _ => {}
            }
        }
    }
}

#[test]
fn the_hottest_lines_hold_hot_nodes_only() {
    let nodes = 1 << 16;
    let shape = Shape::random_binary(nodes, 5);
    let weights = zipf(nodes, 6);
    let placement = Layout::Weighted.place_weighted(&shape, extent(32, 8), &weights);
    let mut sums = weights;
    for v in (1..nodes).rev() {
        let sum = sums[v as usize];
        sums[shape.parent(v) as usize] += sum;
    }
    let mut by_heat: Vec<u32> = (0..nodes).collect();
    by_heat.sort_by(|&a, &b| sums[b as usize].total_cmp(&sums[a as usize]));
    // 24 KiB of 32 B; a few of equal weight to seven digits may differ.
    let hot = 768;
    let among_first = by_heat[..hot]
        .iter()
        .filter(|&&v| placement.offset(v) < hot as u64 * 32)
        .count();
    assert!(among_first + 4 >= hot, "{among_first} of {hot}");
}
