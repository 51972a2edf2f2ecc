//! Orders of nodes in memory, and the offsets that follow from them.
//!
//! A search for a uniform one of the n keys visits node v with probability `subtree(v) / n`. Its
//! cost is the number of *different* blocks of its nodes, for each size of block that the machine
//! moves. No layout is best for all of them. Expected blocks a search in a random-insert tree of
//! 2^18 nodes (the test `the_table_holds` counts again), and the speedup of dependent searches over
//! random places in 2^22 nodes and 2 MiB pages, on an Emerald Rapids virtual machine:
//!
//! | layout | 24 B: 64 B | 256 B | 4 KiB | speedup | 32 B: 64 B | 256 B | 4 KiB | speedup |
//! |---|---|---|---|---|---|---|---|---|
//! | `bfs` | 28.73 | 22.40 | 17.38 | | 23.27 | 21.91 | 17.95 | |
//! | `dfs` | 14.25 | 7.52 | 5.08 | 2.83 | 15.03 | 7.87 | 5.19 | 2.33 |
//! | `veb` | 15.68 | 8.33 | 3.76 | | 16.28 | 8.72 | 3.90 | 2.16 |
//! | `cluster` | 13.86 | 7.53 | 5.10 | 2.88 | 13.86 | 7.53 | 5.10 | 2.51 |
//! | `cluster-veb` | 13.86 | 8.34 | 3.96 | 2.77 | 13.86 | 8.34 | 3.96 | 2.41 |
//! | `cluster-veb:256` | 13.69 | 5.68 | 3.65 | | 14.80 | 6.18 | 3.75 | |
//! | `cluster-veb:4096` | 15.05 | 7.63 | 2.89 | | 15.71 | 8.33 | 2.94 | 2.06 |
//! | `hierarchical` | 12.47 | 6.44 | 3.21 | 3.14 | 13.86 | 6.75 | 3.10 | 2.49 |

mod allocated;
mod cluster;
mod grid;
mod hierarchical;
mod hinted;
mod levels;
mod name;
mod order;
mod preorder;
#[cfg(test)]
mod tests;
mod weighted;

use crate::shape::random;
use crate::{Error, Shape};
use cluster::{Blocks, Clusters};
use grid::Grid;
pub use hinted::HintPolicy;
pub(crate) use name::{did_you_mean, nearest_of};
use preorder::Preorder;

const BIRTH_SEED: u64 = 0;

/// An order of the nodes of a forest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// A random order, the same for equal seeds: the heap of a long-running program.
    Random {
        /// Chooses the order.
        seed: u64,
    },
    /// One behind the other in the order in which random insertions allocate them, each after its
    /// parent: a structure that grows in a fresh heap.
    Allocated,
    /// Each near its parent, in that order: what an allocator with hints, such as `ccmalloc`,
    /// gives.
    Hinted {
        /// Where a node goes whose parent's block is full.
        policy: HintPolicy,
    },
    /// Each node before its subtrees, the heaviest subtree first.
    DepthFirst,
    /// Each node before its subtrees, these in the order of the links: the order of a walk through
    /// all of it.
    Preorder,
    /// Level by level.
    BreadthFirst,
    /// As many nodes of one subtree as fit share a block, greedily the most probable; blocks in
    /// depth-first order.
    SubtreeCluster {
        /// The size of a block, such as 64 (a cache line), 256 (what memory delivers) or 4096 (a
        /// page). Rounded down to a power of two and limited to 65536.
        block_bytes: u32,
    },
    /// The recursive order that suits every block size, cut by weight rather than by height.
    VanEmdeBoas,
    /// The clusters of [`SubtreeCluster`](Layout::SubtreeCluster), with the blocks in van Emde Boas
    /// order.
    ClusterVanEmdeBoas {
        /// As in [`SubtreeCluster`](Layout::SubtreeCluster).
        block_bytes: u32,
    },
    /// Clusters at each grain at once: lines of 64 B in 256 B in pages of 4 KiB in huge pages of 2
    /// MiB. Each place takes the most visited node whose parent has a place nearby.
    Hierarchical,
    /// The nodes that operations visit most, in [`Hierarchical`](Layout::Hierarchical) order among
    /// themselves, before all others. Made for [`place_weighted`](Layout::place_weighted) with
    /// skewed weights.
    Weighted,
}

impl Layout {
    /// No node of up to [`SEGMENT_NODE_BYTES_MAX`](Layout::SEGMENT_NODE_BYTES_MAX) lies across a
    /// multiple of this.
    pub const SEGMENT_BYTES: u64 = 65536;
    /// The largest node for which a placement keeps to segments.
    pub const SEGMENT_NODE_BYTES_MAX: u32 = 4096;

    /// Where each node of `shape` lies.
    ///
    /// Offsets begin at 0, are multiples of the alignment, and any two are at least
    /// [`NodeExtent::stride_bytes`] apart. Layouts without clusters place nodes at that stride,
    /// also across block borders. Cluster layouts never put a node that fits into a block across a
    /// border. Hinted nodes of up to 512 B start at granules of 8 B and stay within pages of 4 KiB.
    /// The hierarchical and the weighted layout keep nodes within lines of 64 B where that wastes
    /// at most 8 B of a line.
    ///
    /// O(n) for random, preorder, breadth-first; O(n log n) for the others; never recursive.
    ///
    /// # Panics
    /// When `node` has no bytes or an alignment that is not a power of two.
    pub fn place(self, shape: &Shape, node: NodeExtent) -> Placement {
        node.check();
        self.place_by(shape, node, None)
    }

    /// Where each node of `shape` lies when an operation ends at node `v` with a frequency in
    /// proportion to `weights[v]`.
    ///
    /// As [`place`](Layout::place), but a subtree weighs the sum of its nodes' weights. Weights
    /// that are negative or no numbers count as 0. Random, preorder, breadth-first, allocated and
    /// hinted nodes ignore weights.
    ///
    /// # Panics
    /// As [`place`](Layout::place), and when there is not exactly one weight for each node.
    pub fn place_weighted(self, shape: &Shape, node: NodeExtent, weights: &[f64]) -> Placement {
        node.check();
        shape.check_len(weights.len(), "weight");
        let sums = weighted::subtree_weights(shape, weights);
        self.place_by(shape, node, sums.as_deref())
    }

    fn place_by(self, shape: &Shape, node: NodeExtent, weights: Option<&[f32]>) -> Placement {
        let packed = Grid::packed(node);
        let in_order = |order: &[u32]| Placement::in_order(order, node);
        match self {
            Layout::Random { seed } => return in_order(&random::permutation(shape.nodes(), seed)),
            Layout::Preorder => return in_order(&shape.preorder()),
            Layout::BreadthFirst => return in_order(&order::breadth_first(shape)),
            Layout::Allocated => return in_order(&allocated::birth_order(shape, BIRTH_SEED)),
            Layout::Hinted { policy } => return hinted::place(shape, node, policy, BIRTH_SEED),
            _ => {}
        }
        let preorder = Preorder::new(shape, weights);
        let (tree, numbers) = (preorder.tree(), preorder.numbers());
        if let Layout::SubtreeCluster { block_bytes } | Layout::ClusterVanEmdeBoas { block_bytes } =
            self
            && let Some(blocks) = Blocks::new(block_bytes, node)
        {
            // The blocks of a complete tree are aligned with its leaves.
            let first = cluster::top_levels_capacity(shape, blocks.slots).unwrap_or(blocks.slots);
            let clusters = Clusters::greedy(tree, blocks.slots, first);
            let offsets = match self {
                Layout::SubtreeCluster { .. } => clusters.pack(clusters.depth_first(), blocks),
                _ => clusters.pack(clusters.van_emde_boas().into_iter(), blocks),
            };
            return through(numbers, |v| offsets[v as usize]);
        }
        let (grid, places) = match self {
            Layout::VanEmdeBoas | Layout::ClusterVanEmdeBoas { .. } => {
                (packed, places(&order::van_emde_boas(tree)))
            }
            Layout::Hierarchical => {
                // The lines of a complete tree are aligned with its leaves where they hold whole
                // levels.
                let grid = Grid::in_lines(node);
                let slots = grid.nodes_per_line();
                let first = slots.and_then(|slots| cluster::top_levels_capacity(shape, slots));
                let grid = first.map_or(grid, |nodes| grid.with_first_row(nodes as u64));
                let roots: Vec<u32> = tree.roots().collect();
                let mut places = vec![0u32; shape.len()];
                hierarchical::fill(tree, roots.into_iter(), &grid, 0, |v, place| {
                    places[v as usize] = place;
                });
                (grid, places)
            }
            Layout::Weighted => {
                let grid = Grid::in_lines(node);
                (grid, weighted::places(tree, &grid))
            }
            // The depth-first numbers are the order.
            _ => return through(numbers, |place| packed.offset(place)),
        };
        through(numbers, |v| grid.offset(places[v as usize]))
    }
}

/// By node: its place in an order of all nodes.
fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0u32; order.len()];
    for (place, &v) in (0..).zip(order) {
        places[v as usize] = place;
    }
    places
}

fn through(numbers: &[u32], offset: impl Fn(u32) -> u64) -> Placement {
    Placement::from_offsets(numbers.iter().map(|&number| offset(number)).collect())
}

/// Where the node at index `position` of an order lies in the layouts that fill memory without
/// gaps.
pub(crate) fn packed_offset(position: u32, node: NodeExtent) -> u64 {
    Grid::packed(node).offset(position)
}

/// The size and alignment of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeExtent {
    /// How many bytes a node has; at least 1.
    pub bytes: u32,
    /// What its address must be a multiple of, in bytes; a power of two.
    pub align: u32,
}

impl NodeExtent {
    /// An extent, checked.
    ///
    /// # Errors
    /// When `bytes` is 0 or `align` is not a power of two.
    pub fn new(bytes: u32, align: u32) -> Result<NodeExtent, Error> {
        if bytes > 0 && align.is_power_of_two() {
            return Ok(NodeExtent { bytes, align });
        }
        Err(Error::new(format!(
            "a node needs at least one byte and an alignment that is a power of two, not {bytes} \
             and {align}"
        )))
    }

    fn check(self) {
        if let Err(error) = NodeExtent::new(self.bytes, self.align) {
            panic!("{error}");
        }
    }

    /// The distance between the starts of neighbours: the size, rounded up to the alignment.
    pub fn stride_bytes(self) -> u64 {
        u64::from(self.bytes).next_multiple_of(u64::from(self.align))
    }
}

/// Where each node lies, in bytes: offsets from the start of some memory, or addresses as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    offsets: Vec<u64>,
}

impl Placement {
    /// Node `v` lies at `offsets[v]`. Any numbers will do, such as the addresses of an existing
    /// heap.
    pub fn from_offsets(offsets: Vec<u64>) -> Placement {
        Placement { offsets }
    }

    /// One node behind the other, in an order that names each once. O(n).
    ///
    /// # Panics
    /// When `order` names a number beyond its length.
    pub fn in_order(order: &[u32], node: NodeExtent) -> Placement {
        let grid = Grid::packed(node);
        through(&places(order), |place| grid.offset(place))
    }

    /// Where node `v` begins.
    ///
    /// # Panics
    /// When there is no node `v`.
    pub fn offset(&self, v: u32) -> u64 {
        self.offsets[v as usize]
    }

    /// Where each node begins, by node number.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// [`offsets`](Placement::offsets) without a copy.
    pub fn into_offsets(self) -> Vec<u64> {
        self.offsets
    }

    /// How many nodes are placed.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether no node is placed.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// From the first byte of the lowest node to the last of the highest; 0 for no nodes. O(n).
    pub fn span_bytes(&self, node: NodeExtent) -> u64 {
        match (self.offsets.iter().min(), self.offsets.iter().max()) {
            (Some(&low), Some(&high)) => (high - low).saturating_add(u64::from(node.bytes)),
            _ => 0,
        }
    }
}
