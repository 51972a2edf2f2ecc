//! Subtree clusters: as many nodes of one subtree as fit share a block (T. Chilimbi,
//! *Cache-Conscious Data Structures*, 1999, section 2.1.1).
//!
//! The node below the cluster with the largest subtree joins it, until the block is full. What then
//! hangs below starts clusters of its own. Beyond the thesis:
//!
//! 1. **Fragments share blocks.** Each goes into the earlier block with the tightest room for it.
//! 2. **Complete trees are aligned from the bottom.** When a block holds exactly c levels and c
//!    does not divide the height, the topmost cluster takes the rest of the levels.
//! 3. **Order inside a block.** A cluster of more than a few nodes is laid out in van Emde Boas
//!    order, so that the lines within a page-sized block are used well too.

use super::NodeExtent;
use super::order::{self, Cutter};
use super::preorder::{Candidate, Tree, count_u32};
use crate::Shape;
use std::collections::BinaryHeap;

/// A division of a forest's nodes into connected clusters.
///
/// Invariants: each node is in exactly one cluster; a cluster's nodes are connected and its first
/// is its root; clusters are numbered depth-first.
pub(super) struct Clusters {
    /// Depth-first numbers.
    nodes: Vec<u32>,
    /// Cluster `c` is `nodes[start[c]..start[c + 1]]`.
    start: Vec<u32>,
    /// How many clusters hang at a cluster, itself included.
    size: Vec<u32>,
}

/// Up to this many candidates, a scan is faster than a heap.
const SCANNED_MAX: usize = 8;

impl Clusters {
    /// Greedy clusters of up to `capacity` nodes, the first of up to `first_capacity`, numbered
    /// depth-first, the heaviest first. O(n log n).
    pub(super) fn greedy(tree: Tree<'_>, capacity: usize, first_capacity: usize) -> Clusters {
        let mut capacity_now = first_capacity.min(capacity);
        let mut clusters = Clusters {
            nodes: Vec::with_capacity(tree.len()),
            start: vec![0],
            size: Vec::new(),
        };
        // Roots of clusters to come, with the cluster above each.
        let mut stack: Vec<(u32, u32)> = tree.roots().map(|root| (root, u32::MAX)).collect();
        stack.reverse();
        let (mut parent, mut below, mut order) = (Vec::new(), Vec::new(), Vec::new());
        let (mut heap, mut cutter) = (BinaryHeap::new(), Cutter::default());
        while let Some((root, above)) = stack.pop() {
            let number = count_u32(parent.len());
            parent.push(above);
            let first = clusters.nodes.len();
            let mut next = Some(root);
            while let Some(v) = next {
                clusters.nodes.push(v);
                below.extend(tree.children(v).map(|child| tree.candidate(child)));
                next = match clusters.nodes.len() - first < capacity_now {
                    true => take_heaviest(&mut below, &mut heap).map(Candidate::node),
                    false => None,
                };
            }
            if clusters.nodes.len() - first > order::WHOLE_NODES_MAX {
                // The numbers are depth-first, which is what the cutter wants.
                clusters.nodes[first..].sort_unstable();
                order.clear();
                cutter.lay_out_piece(tree, &clusters.nodes[first..], &mut order);
                clusters.nodes[first..].copy_from_slice(&order);
            }
            clusters.start.push(count_u32(clusters.nodes.len()));
            if !heap.is_empty() {
                below.extend(heap.drain());
            }
            below.sort_unstable();
            for candidate in below.drain(..) {
                stack.push((candidate.node(), number));
            }
            capacity_now = capacity;
        }
        clusters.size = vec![1; parent.len()];
        for number in (0..parent.len()).rev() {
            let size = clusters.size[number];
            if let Some(above) = clusters.size.get_mut(parent[number] as usize) {
                *above += size;
            }
        }
        clusters
    }

    /// The clusters in the order that they are numbered in.
    pub(super) fn depth_first(&self) -> std::ops::Range<u32> {
        0..count_u32(self.size.len())
    }

    fn nodes(&self, cluster: u32) -> &[u32] {
        let ends = &self.start[cluster as usize..];
        &self.nodes[ends[0] as usize..ends[1] as usize]
    }

    /// The clusters in van Emde Boas order of the tree that they form among themselves.
    pub(super) fn van_emde_boas(&self) -> Vec<u32> {
        order::van_emde_boas(Tree::new(&self.size, None))
    }

    /// The offset of each node, by depth-first number, when clusters take blocks in this order and
    /// fragments share them. O(n).
    pub(super) fn pack(&self, order: impl Iterator<Item = u32>, blocks: Blocks) -> Vec<u64> {
        let mut offsets = vec![0u64; self.nodes.len()];
        let mut rooms = Rooms::new(blocks.slots);
        let mut begun = 0u64;
        for cluster in order {
            let nodes = self.nodes(cluster);
            let (block, room) = rooms.take(nodes.len()).unwrap_or_else(|| {
                begun += 1;
                (begun - 1, blocks.slots)
            });
            let used = (blocks.slots - room) as u64;
            let mut at = block * blocks.block_bytes + used * blocks.stride_bytes;
            for &v in nodes {
                offsets[v as usize] = at;
                at += blocks.stride_bytes;
            }
            rooms.put(block, room - nodes.len());
        }
        offsets
    }
}

/// Blocks that clusters are packed into.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    /// How many nodes fit; at least 1.
    pub(super) slots: usize,
    block_bytes: u64,
    stride_bytes: u64,
}

impl Blocks {
    /// Blocks of about `block_bytes` bytes; `None` when a node is larger than one.
    pub(super) fn new(block_bytes: u32, node: NodeExtent) -> Option<Blocks> {
        let block_bytes = 1 << block_bytes.clamp(1, 65536).ilog2();
        let stride_bytes = node.stride_bytes();
        // A stride is at least 1, and the quotient at most 65536.
        let slots = usize::try_from(block_bytes / stride_bytes).ok()?;
        (slots > 0).then_some(Blocks {
            slots,
            block_bytes,
            stride_bytes,
        })
    }
}

/// Takes out the heaviest of a list, which becomes a heap once it is long.
fn take_heaviest(list: &mut Vec<Candidate>, heap: &mut BinaryHeap<Candidate>) -> Option<Candidate> {
    if heap.is_empty() && list.len() <= SCANNED_MAX {
        let heaviest = (0..list.len()).max_by_key(|&at| list[at])?;
        return Some(list.swap_remove(heaviest));
    }
    heap.extend(list.drain(..));
    heap.pop()
}

/// Blocks that are not full, the latest for each number of free slots.
struct Rooms {
    /// Indexed by free slots; meaningful where `present` has the bit.
    block: Vec<u64>,
    present: Vec<u64>,
}

impl Rooms {
    fn new(capacity: usize) -> Rooms {
        Rooms {
            block: vec![0; capacity + 1],
            present: vec![0; capacity / 64 + 1],
        }
    }

    /// Takes out the block with the fewest free slots that are enough.
    fn take(&mut self, slots: usize) -> Option<(u64, usize)> {
        let mut word = slots / 64;
        let mut bits = self.present[word] & (u64::MAX << (slots % 64));
        while bits == 0 {
            word += 1;
            bits = *self.present.get(word)?;
        }
        let room = word * 64 + bits.trailing_zeros() as usize;
        self.present[word] &= !(1 << (room % 64));
        Some((self.block[room], room))
    }

    /// Remembers a block with `room` free slots, instead of an earlier one with as many.
    fn put(&mut self, block: u64, room: usize) {
        if room > 0 {
            self.block[room] = block;
            self.present[room / 64] |= 1 << (room % 64);
        }
    }
}

/// The size of the topmost cluster of a complete binary tree with which the clusters below end at
/// the leaves; `None` for other shapes and for blocks that do not hold a number of whole levels.
pub(super) fn top_levels_capacity(shape: &Shape, capacity: usize) -> Option<usize> {
    let levels_per_cluster = (capacity + 1).ilog2();
    if levels_per_cluster < 2 || !(capacity + 1).is_power_of_two() {
        return None;
    }
    let levels = complete_binary_levels(shape)?;
    match levels % levels_per_cluster {
        0 => None,
        rest => Some((1 << rest) - 1),
    }
}

/// The levels of a binary tree in which all levels are full, except perhaps the last one.
fn complete_binary_levels(shape: &Shape) -> Option<u32> {
    if (0..shape.nodes()).any(|v| shape.children(v).len() > 2) {
        return None;
    }
    let mut nodes_at: Vec<u32> = Vec::new();
    for depth in shape.depths() {
        let depth = depth as usize;
        // More than 32 levels cannot be full.
        if depth >= 32 {
            return None;
        }
        nodes_at.resize(nodes_at.len().max(depth + 1), 0);
        nodes_at[depth] += 1;
    }
    let full = (0..)
        .zip(&nodes_at)
        .take_while(|&(depth, &nodes)| nodes == 1u32 << depth)
        .count();
    (full + 1 >= nodes_at.len()).then_some(count_u32(nodes_at.len()))
}
