//! D, K, R and the miss rate (sections 2.2.3, 3.1.1 and 3.2.1).

use crate::Structure;
use crate::colour::CacheGeometry;

impl CacheGeometry {
    /// Whole elements that fit into a block, k = floor(b / e); at least 1, for an element larger
    /// than a block fills several alone (section 3.1.1).
    pub fn nodes_per_block(self, node_bytes: u64) -> u64 {
        nodes_per_block(self.block_bytes(), node_bytes)
    }

    /// Blocks that the cache holds, c x a.
    pub fn blocks(self) -> u64 {
        self.sets() * self.associativity()
    }

    /// Nodes at the top of a tree that fit into half of the sets, c/2 x k x a (section 3.2.1).
    pub fn colourable_nodes(self, node_bytes: u64) -> f64 {
        self.blocks() as f64 / 2.0 * self.nodes_per_block(node_bytes) as f64
    }
}

/// k, at least 1.
pub(super) fn nodes_per_block(block_bytes: u64, node_bytes: u64) -> u64 {
    (block_bytes / node_bytes.max(1)).max(1)
}

/// How elements share blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clustering {
    /// Unrelated elements share a block.
    None,
    /// A parent-child-grandchild chain of k elements (depth-first order).
    DepthFirst,
    /// A subtree of k elements.
    Subtree,
}

impl Clustering {
    /// K, elements of a block of `k` that one search of a binary tree needs: 1, 2 (1 - (1/2)^k), or
    /// log2(k + 1) (section 2.2.3).
    ///
    /// Lies between 1 and k, as section 3.1.1 demands.
    pub fn k(self, nodes_per_block: u64) -> f64 {
        self.k_of(nodes_per_block, 2)
    }

    /// K of a tree whose nodes have `arity` children: 1, 1 + 1/m + ... + 1/m^(k-1), or the levels
    /// of k nodes. For a list, which has one, both are k.
    ///
    /// Ours, by the same argument; the thesis's for two.
    pub fn k_of(self, nodes_per_block: u64, arity: u32) -> f64 {
        let (k, m) = (nodes_per_block.max(1) as f64, f64::from(arity.max(1)));
        match self {
            Clustering::None => 1.0,
            Clustering::DepthFirst if arity <= 1 => k,
            Clustering::DepthFirst => (1.0 - m.powf(-k)) / (1.0 - 1.0 / m),
            Clustering::Subtree => levels(k, arity),
        }
    }
}

/// Levels of a complete tree of so many nodes, `log_m(n (m - 1) + 1)`, not rounded; for one child a
/// node, n.
fn levels(nodes: f64, arity: u32) -> f64 {
    if arity <= 1 {
        return nodes;
    }
    let m = f64::from(arity);
    // For large trees the 1 is below the precision, for an empty one it is all.
    (nodes * (m - 1.0) + 1.0).ln() / m.ln()
}

/// D = log2(n + 1), references of a search in a complete binary tree (section 3.1.1).
///
/// The number of levels: the mean over all keys is about one less.
pub fn search_references(nodes: u64) -> f64 {
    (nodes as f64 + 1.0).log2()
}

/// `R_s = log2(coloured + 1)`: levels of the tree that colouring keeps in the cache (section
/// 3.2.1); at most D.
pub fn coloured_reuse(nodes: u64, coloured_nodes: f64) -> f64 {
    (coloured_nodes.max(0.0) + 1.0)
        .log2()
        .min(search_references(nodes))
}

/// The bound of R(i), min(floor(b/e) x c x a, D) (section 3.1.1): no more is reused than the cache
/// holds, nor than is needed.
pub fn reuse_bound(cache: CacheGeometry, node_bytes: u64, references: f64) -> f64 {
    (cache.nodes_per_block(node_bytes) as f64 * cache.blocks() as f64).min(references)
}

/// `m = (1 - R / D) / K`, the miss rate of an access and, with `R_s`, of the steady state (section
/// 3.1.1).
///
/// 0 where nothing is referenced; never negative.
pub fn miss_rate(references: f64, reuse: f64, k: f64) -> f64 {
    let rate = (1.0 - reuse / references) / k;
    if references > 0.0 && k > 0.0 && rate > 0.0 {
        rate
    } else {
        0.0
    }
}

/// `m_s` of a subtree-clustered, coloured complete tree, figure 3-3.
pub fn c_tree_miss_rate(nodes: u64, node_bytes: u64, cache: CacheGeometry) -> f64 {
    miss_rate(
        search_references(nodes),
        coloured_reuse(nodes, cache.colourable_nodes(node_bytes)),
        Clustering::Subtree.k(cache.nodes_per_block(node_bytes)),
    )
}

/// A complete tree, or a list: what the formulas know of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct CompleteTree {
    /// Number of elements, n.
    pub nodes: u64,
    /// Size of an element in bytes, e.
    pub node_bytes: u64,
    /// Children of a node; 1 for a list.
    pub arity: u32,
}

impl CompleteTree {
    /// A complete binary search tree.
    pub fn binary(nodes: u64, node_bytes: u64) -> CompleteTree {
        CompleteTree {
            nodes,
            node_bytes,
            arity: 2,
        }
    }

    /// What the formulas take a structure for: a tree, however it grew, for the complete one, a
    /// list for what it is. `None` for those that have no links between keys, or more than one key
    /// to a node: B-trees, hash tables, arrays.
    pub fn of(structure: Structure, nodes: u64, node_bytes: u64) -> Option<CompleteTree> {
        let arity = match structure {
            Structure::SearchTree { .. } => 2,
            Structure::Tree { arity, .. } => arity,
            Structure::PointTree { dimensions, .. } => 1u32.checked_shl(dimensions)?,
            Structure::List { .. } => 1,
            _ => return None,
        };
        Some(CompleteTree {
            nodes,
            node_bytes,
            arity,
        })
    }

    /// D: the levels of a tree, the mean position in a list.
    pub fn references(self) -> f64 {
        if self.arity <= 1 {
            (self.nodes as f64 + 1.0) / 2.0
        } else {
            levels(self.nodes as f64, self.arity)
        }
    }

    /// `R_s`: how many of the first `coloured_nodes` nodes an access needs; at most D.
    ///
    /// Those of a tree are its first levels. Of a list that is searched to each position equally
    /// often, an access to position i needs min(i, p) of the first p nodes: p - p (p - 1) / (2 n)
    /// on average.
    pub fn coloured_reuse(self, coloured_nodes: f64) -> f64 {
        let nodes = self.nodes as f64;
        let coloured = coloured_nodes.clamp(0.0, nodes);
        if self.arity <= 1 {
            coloured - coloured * (coloured - 1.0).max(0.0) / (2.0 * nodes.max(1.0))
        } else {
            levels(coloured, self.arity)
        }
    }
}
