//! The trees of the experiments: complete binary trees of nodes of 20 bytes, in the arrangements of
//! section 3.4.
//!
//! Trees without a layout are packed; the others have slots, three to a block of 64 bytes. Coloured
//! nodes lie in the first sets of the second-level cache, all others in the rest.
//!
//! ```text
//! slots         0  1  2 |  3  4  5 |  6  7  8 | ...        block = slot / 3
//! depth-first   v0 v1 v3| v7 ...                           parent, child, grandchild, ...
//! clusters      v0 v1 v2| v3 v7 v8 | v4 v9 v10 | ...       subtrees of three, level by level
//! ```

use crate::thesis::{L2, NODE_BYTES};
use ccmodel::{Layout, NodeExtent, Placement, Shape};

use super::nodes_of;
use crate::sample::node;

/// Nodes to a block: floor(64 / 20).
pub(super) const BLOCK_NODES: u64 = L2.block_bytes() / NODE_BYTES;
/// A node: a key, two links and a value of two words.
const NODE: NodeExtent = NodeExtent {
    bytes: 20,
    align: 4,
};
const _: () = assert!(NODE.bytes as u64 == NODE_BYTES);
/// Levels of a subtree of three nodes.
const CLUSTER_LEVELS: u32 = 2;
const SEED: u64 = 34;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// At random, packed: the naive layout.
    PackedRandom,
    /// A node before its subtrees, the left one first; packed.
    PackedDepthFirst,
    /// At random; the first `coloured_nodes` by level among themselves, in sets of their own.
    Random { coloured_nodes: u64 },
    /// As this crate's [`Layout::DepthFirst`]: packed within segments of 64 KiB.
    DepthFirst,
    /// Subtrees of three, cut off from the root downwards (section 3.3.1), blocks level by level
    /// (figure 4-2); the first `coloured_nodes` in sets of their own.
    Clusters { coloured_nodes: u64 },
    /// The same, cut off from the leaves upwards: with an odd number of levels, the root is alone.
    ClustersFromBottom,
    /// As this crate's [`Layout::SubtreeCluster`]: cut off from the leaves, blocks in depth-first
    /// order.
    ClustersDepthFirst,
}

impl Arrangement {
    /// Where the nodes of a complete tree of `levels` levels lie.
    pub(super) fn place(self, levels: u32, shape: &Shape) -> Placement {
        let nodes = (1 << levels) - 1;
        let packed = |slots: Vec<u64>| {
            let offsets = slots.into_iter().map(|slot| slot * NODE_BYTES);
            Placement::from_offsets(offsets.collect())
        };
        let (slots, coloured_nodes) = match self {
            Arrangement::PackedRandom => return packed(random_slots(nodes, 0)),
            Arrangement::PackedDepthFirst => return packed(order(Layout::Preorder, nodes)),
            Arrangement::Random { coloured_nodes } => {
                (random_slots(nodes, coloured_nodes), coloured_nodes)
            }
            Arrangement::Clusters { coloured_nodes } => {
                (cluster_slots(levels, CLUSTER_LEVELS), coloured_nodes)
            }
            Arrangement::ClustersFromBottom => {
                let top_levels = (levels - 1) % CLUSTER_LEVELS + 1;
                (cluster_slots(levels, top_levels), 0)
            }
            Arrangement::DepthFirst => return Layout::DepthFirst.place(shape, NODE),
            Arrangement::ClustersDepthFirst => {
                return Layout::SubtreeCluster { block_bytes: 64 }.place(shape, NODE);
            }
        };
        let hot_blocks = coloured_nodes / BLOCK_NODES;
        let offsets = slots.into_iter().map(|slot| address(slot, hot_blocks));
        Placement::from_offsets(offsets.collect())
    }
}

/// Where a slot lies when the first `hot_blocks` blocks have as many sets of the cache for
/// themselves.
fn address(slot: u64, hot_blocks: u64) -> u64 {
    let (mut block, in_block, sets) = (slot / BLOCK_NODES, slot % BLOCK_NODES, L2.sets());
    if block >= hot_blocks {
        let (cold, cold_sets) = (block - hot_blocks, sets - hot_blocks);
        block = cold / cold_sets * sets + hot_blocks + cold % cold_sets;
    }
    block * L2.block_bytes() + in_block * NODE_BYTES
}

/// The first `hot_nodes` nodes anywhere in as many slots at the start, the others anywhere behind.
fn random_slots(nodes: u32, hot_nodes: u64) -> Vec<u64> {
    let hot_nodes = u32::try_from(hot_nodes).unwrap_or(nodes).min(nodes);
    let random = |seed, count| order(Layout::Random { seed }, count);
    let mut slots = random(SEED, hot_nodes);
    let cold = random(SEED + 1, nodes - hot_nodes);
    slots.extend(cold.into_iter().map(|slot| slot + u64::from(hot_nodes)));
    slots
}

/// By node of a complete tree, its place in the order of a layout.
fn order(layout: Layout, nodes: u32) -> Vec<u64> {
    // Nodes of 8 bytes leave no gaps.
    let placement = layout.place(&Shape::complete_binary(nodes), node(8));
    let offsets = placement.offsets().iter();
    offsets.map(|offset| offset / 8).collect()
}

/// Clusters level by level; the first has `top_levels` levels, the others two, the last what is
/// left.
fn cluster_slots(levels: u32, top_levels: u32) -> Vec<u64> {
    let mut slots = Vec::new();
    // The level that clusters begin at, how many levels they have, and the first slot of them all.
    let (mut root_level, mut cluster_levels, mut first_slot) = (0, top_levels, 0);
    while root_level < levels {
        let cluster_levels_here = cluster_levels.min(levels - root_level);
        let cluster_nodes = nodes_of(cluster_levels_here);
        // Clusters of one node share blocks; the root's has one for itself.
        let cluster_slots = if root_level == 0 || cluster_nodes == BLOCK_NODES {
            BLOCK_NODES
        } else {
            cluster_nodes
        };
        for below in 0..cluster_levels_here {
            for in_level in 0..1u64 << (root_level + below) {
                let cluster = in_level >> below;
                let in_cluster = (1 << below) - 1 + in_level % (1 << below);
                slots.push(first_slot + cluster * cluster_slots + in_cluster);
            }
        }
        first_slot += (1u64 << root_level) * cluster_slots;
        root_level += cluster_levels_here;
        cluster_levels = CLUSTER_LEVELS;
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(arrangement: Arrangement, levels: u32) -> (Shape, Placement) {
        let nodes = u32::try_from(nodes_of(levels)).unwrap();
        let shape = Shape::complete_binary(nodes);
        let placement = arrangement.place(levels, &shape);
        (shape, placement)
    }

    #[test]
    fn every_node_has_a_slot_of_its_own() {
        let random = |coloured_nodes| Arrangement::Random { coloured_nodes };
        let clusters = |coloured_nodes| Arrangement::Clusters { coloured_nodes };
        let mut arrangements = vec![random(0), random(384), clusters(0), clusters(768)];
        arrangements.push(Arrangement::ClustersFromBottom);
        arrangements.push(Arrangement::ClustersDepthFirst);
        let levels = |&arrangement| (1..=13).map(move |levels| (levels, arrangement));
        for (levels, arrangement) in arrangements.iter().flat_map(levels) {
            let (shape, placement) = placed(arrangement, levels);
            let mut offsets = placement.into_offsets();
            offsets.sort_unstable();
            offsets.dedup();
            assert_eq!(offsets.len(), shape.len(), "{arrangement:?}, {levels}");
            let in_block = |offset: &u64| [0, 20, 40].contains(&(offset % 64));
            assert!(offsets.iter().all(in_block), "{arrangement:?}, {levels}");
        }
        for arrangement in [Arrangement::PackedRandom, Arrangement::PackedDepthFirst] {
            let mut offsets = placed(arrangement, 10).1.into_offsets();
            offsets.sort_unstable();
            assert!((0..1023).map(|i| i * 20).eq(offsets), "{arrangement:?}");
        }
    }

    #[test]
    fn what_is_coloured_is_alone_in_its_sets() {
        let coloured_nodes = 768;
        for arrangement in [
            Arrangement::Random { coloured_nodes },
            Arrangement::Clusters { coloured_nodes },
        ] {
            let (_, placement) = placed(arrangement, 17);
            let way = L2.way_bytes();
            let hot = placement.offsets().iter().filter(|&at| at % way < 256 * 64);
            assert_eq!(hot.clone().count(), 768, "{arrangement:?}");
            assert!(hot.into_iter().all(|&at| at < way), "{arrangement:?}");
        }
    }

    #[test]
    fn clusters_are_families() {
        let from_root = Arrangement::Clusters { coloured_nodes: 0 };
        let four_levels = &[0, 0, 0, 1, 2, 3, 4, 1, 1, 2, 2, 3, 3, 4, 4][..];
        for (arrangement, levels, blocks) in [
            (from_root, 4, four_levels),
            // The leaves of three levels are alone, and share blocks.
            (from_root, 3, &[0, 0, 0, 1, 1, 1, 2]),
            (Arrangement::ClustersFromBottom, 3, &[0, 1, 2, 1, 1, 2, 2]),
        ] {
            let (_, placement) = placed(arrangement, levels);
            let found = placement.offsets().iter().map(|offset| offset / 64);
            assert!(found.eq(blocks.iter().copied()), "{arrangement:?}");
        }
    }

    #[test]
    fn depth_first_is_preorder() {
        // Until the end of the first segment, and in order beyond it.
        let (shape, packed) = placed(Arrangement::PackedDepthFirst, 13);
        let (_, ours) = placed(Arrangement::DepthFirst, 13);
        for v in (0u32..).take(shape.len()) {
            let (packed, ours) = (packed.offset(v), ours.offset(v));
            let gaps = ours / Layout::SEGMENT_BYTES;
            assert_eq!(ours, packed + 16 * gaps, "node {v}");
        }
    }
}
