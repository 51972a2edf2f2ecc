//! The formulas of chapter 3 of T. Chilimbi, *Cache-Conscious Data Structures* (1999), as printed.
//!
//! They compare a layout with the naive layout of the same structure; they do not aim at the number
//! of misses. `docs/model-thesis.md` compares them with this crate's predictions and a simulation.
//!
//! | symbol | meaning | section | here |
//! |---|---|---|---|
//! | n, e | elements of the structure, bytes of one | 3.1.1 | [`CompleteTree`] |
//! | k | elements in a block, floor(b / e) | 3.1.1 | [`nodes_per_block`] |
//! | D | references of one access, log2(n + 1) for a search | 3.1.1 | [`search_references`] |
//! | K | elements of a block that one access needs | 3.1.1, 3.2.1 | [`Clustering::k`] |
//! | `R_s` | elements still cached from earlier accesses | 3.2.1 | [`coloured_reuse`] |
//! | m(i), `m_s` | miss rate of the i-th access, in the steady state | 3.1.1 | [`miss_rate`] |
//! | T | hits of i worst-case searches from cold | 3.3.1 | [`worst_case_hits`] |
//! | `t_h`, `t_m` | time of a hit, added by a miss | 3.1.1 | [`System`] |
//!
//! Miss rates are misses for each reference, so the thesis's rate of a second level, misses for
//! each first-level miss, is the quotient of two of them. Associativity counts as capacity alone.
//! K, D and R of trees with more than two children and of lists are ours, by the same argument.

mod report;
#[cfg(test)]
mod tests;

use crate::geometry::CacheGeometry;
use crate::machine::LevelKind;
use crate::{Machine, Structure};
pub use report::{LevelRate, Report, ReportRow, Transient, report};

/// Node size of the thesis's tree: three to a block of 64 bytes, 40 MB for 2,097,151 of them.
pub const THESIS_NODE_BYTES: u64 = 20;

/// First-level cache of the thesis's machine: 16 KB direct-mapped, lines of 16 bytes (section
/// 2.3.1).
pub const THESIS_L1: CacheGeometry = direct_mapped(1024, 16);

/// Second-level cache of the thesis's machine: 1 MB direct-mapped, lines of 64 bytes (section
/// 2.3.1).
pub const THESIS_L2: CacheGeometry = direct_mapped(16_384, 64);

const fn direct_mapped(sets: u64, block_bytes: u64) -> CacheGeometry {
    match CacheGeometry::new(sets, block_bytes, 1) {
        Ok(geometry) => geometry,
        Err(_) => panic!("not a cache"),
    }
}

/// Whole elements that fit into a block, k; 1 for an element larger than a block, which fills
/// several alone.
pub fn nodes_per_block(block_bytes: u64, node_bytes: u64) -> u64 {
    (block_bytes / node_bytes.max(1)).max(1)
}

/// Nodes at the top of a tree that fit into half of the sets, c/2 x k x a (section 3.2.1).
pub fn colourable_nodes(cache: CacheGeometry, node_bytes: u64) -> f64 {
    cache.blocks() as f64 / 2.0 * nodes_per_block(cache.block_bytes(), node_bytes) as f64
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
    /// K, elements of a block of `nodes_per_block` that one search of a binary tree needs: 1,
    /// 2 (1 - (1/2)^k), or log2(k + 1) (section 2.2.3).
    pub fn k(self, nodes_per_block: u64) -> f64 {
        self.k_of(nodes_per_block, 2)
    }

    /// K of a tree whose nodes have `arity` children: 1, 1 + 1/m + ... + 1/m^(k-1), or the levels
    /// of k nodes. For a list, which has one, both are k.
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

/// Levels of a complete tree of this many nodes; the nodes themselves for a list.
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
    let levels = (coloured_nodes.max(0.0) + 1.0).log2();
    levels.min(search_references(nodes))
}

/// `m = (1 - R / D) / K`, the miss rate of an access and, with `R_s`, of the steady state (section
/// 3.1.1); 0 where nothing is referenced.
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
        coloured_reuse(nodes, colourable_nodes(cache, node_bytes)),
        Clustering::Subtree.k(nodes_per_block(cache.block_bytes(), node_bytes)),
    )
}

/// log_(k+1) x.
fn log_blocks(x: f64, nodes_per_block: u64) -> f64 {
    x.ln() / (nodes_per_block.max(1) as f64 + 1.0).ln()
}

/// T = i log_(k+1)(i) - (i - 1) / k: blocks that `searches` worst-case searches, a power of k + 1,
/// find in a cache that never evicts (section 3.3.1).
pub fn worst_case_hits(nodes_per_block: u64, searches: u64) -> f64 {
    let (k, i) = (nodes_per_block.max(1) as f64, searches.max(1) as f64);
    i * log_blocks(i, nodes_per_block) - (i - 1.0) / k
}

/// Worst-case misses for each of the first `searches` searches in a cache that never evicts
/// (section 3.3.1): log_(k+1)(n + 1) - log_(k+1)(i) + (i - 1) / (i k), at least 0.
///
/// Holds up to i = (n + 1) / (k + 1), after which all blocks may be cached.
pub fn transient_misses(nodes: u64, nodes_per_block: u64, searches: u64) -> f64 {
    let i = searches.max(1) as f64;
    let all = log_blocks(nodes as f64 + 1.0, nodes_per_block);
    (all - worst_case_hits(nodes_per_block, searches) / i).max(0.0)
}

/// (1 - log2(i) / log2(n + 1)) / log2(k + 1): m(i) with R(i) = log2(i), the rate that the chapter
/// ends with (section 3.3.1), up to a constant factor.
pub fn transient_miss_rate(nodes: u64, nodes_per_block: u64, search: u64) -> f64 {
    let references = search_references(nodes);
    let reuse = (search.max(1) as f64).log2().min(references);
    miss_rate(references, reuse, Clustering::Subtree.k(nodes_per_block))
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

    /// The complete tree that stands for a structure. `None` for structures without links between
    /// keys, or with more than one key to a node: B-trees, hash tables, arrays.
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
    /// Those of a tree are its first levels. In a list, an access to position i needs min(i, p) of
    /// the first p nodes: p - p (p - 1) / (2 n) on average.
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

/// A cache of a [`System`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct SystemCache {
    /// `L1`, `L2`, ...
    pub name: String,
    /// Blocks that it holds, c x a.
    pub blocks: f64,
    /// Bytes of a block, b.
    pub block_bytes: u64,
    /// What a miss adds, `t_m`, in the system's unit of time.
    pub miss_time: f64,
}

/// A machine as the formulas see it: `t_memory` of section 3.1.1 has a summand for each cache.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct System {
    /// What it is called.
    pub name: String,
    /// `cycles` or `ns`.
    pub unit: &'static str,
    /// A reference that hits the first level, `t_h`.
    pub hit_time: f64,
    /// The caches, the first level first.
    pub caches: Vec<SystemCache>,
}

impl System {
    /// A machine in nanoseconds: its data levels, each step of latency as a cache of that capacity.
    /// `t_h` is the time to visit a node in the first level, without branches. The formulas know
    /// neither translations nor what misses near each other save.
    pub fn of_machine(machine: &Machine) -> System {
        let data = machine.levels.iter();
        let mut caches = Vec::new();
        for level in data.filter(|level| level.kind == LevelKind::Data) {
            for (i, step) in level.steps.iter().enumerate() {
                caches.push(SystemCache {
                    name: match i {
                        0 => level.name.clone(),
                        _ => format!("{}.{}", level.name, i + 1),
                    },
                    blocks: step.capacity_bytes / level.block_bytes.max(1) as f64,
                    block_bytes: level.block_bytes,
                    miss_time: step.step_ns,
                });
            }
        }
        System {
            name: machine.name.clone(),
            unit: "ns",
            hit_time: machine.search.branch_free_node_ns,
            caches,
        }
    }

    /// `t_memory` for one reference, given the misses for each reference at each cache; caches
    /// without a rate always miss.
    pub fn reference_time(&self, rates: &[f64]) -> f64 {
        let rates = rates.iter().copied().chain(std::iter::repeat(1.0));
        let misses = self.caches.iter().zip(rates);
        let miss_time: f64 = misses.map(|(cache, rate)| rate * cache.miss_time).sum();
        self.hit_time + miss_time
    }

    /// How many times faster than a layout that always misses, figure 3-2.
    pub fn best_case_speedup(&self, rates: &[f64]) -> f64 {
        let time = self.reference_time(rates);
        if time > 0.0 {
            self.reference_time(&[]) / time
        } else {
            1.0
        }
    }
}
