//! The formulas of chapter 3 of T. Chilimbi, *Cache-Conscious Data Structures* (1999), as printed.
//!
//! They compare a layout with its naive self; they do not aim at the absolute number of misses, and on uncoloured trees
//! they are far from it (the chapter says so in section 3.1). [`predict_tree`](crate::predict_tree) is what this crate
//! offers for that. The formulas stand here beside it, for whoever wants to compare.
//!
//! | symbol | meaning | here |
//! |---|---|---|
//! | n | elements of the structure | `nodes` |
//! | e | size of an element, bytes | `node_bytes` |
//! | c, b, a | sets, block bytes, ways of a cache | [`CacheGeometry`] |
//! | k | elements in a block, floor(b / e) | [`CacheGeometry::nodes_per_block`] |
//! | D | references of one access, log2(n + 1) for a search | [`search_references`] |
//! | K | elements of a block that one access needs | [`Clustering::k`] |
//! | R(i), R_s | elements still cached from earlier accesses | [`transient_reuse`], [`coloured_reuse`] |
//! | m(i), m_s | miss rate of the i-th access, in the steady state | [`miss_rate`] |

/// A cache as the thesis describes it: C = (c, b, a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGeometry {
    /// Number of sets, c.
    pub sets: u64,
    /// Block size in bytes, b.
    pub block_bytes: u64,
    /// Blocks in a set, a.
    pub ways: u64,
}

/// Second-level cache of the thesis's machine: 1 MB direct-mapped, lines of 64 bytes (section 2.3.1).
pub const THESIS_L2: CacheGeometry = CacheGeometry {
    sets: 16_384,
    block_bytes: 64,
    ways: 1,
};

/// Node size of the thesis's tree: three to a block of 64 bytes, 40 MB for 2,097,151 of them.
pub const THESIS_NODE_BYTES: u64 = 20;

impl CacheGeometry {
    /// Whole elements that fit into a block, k = floor(b / e); at least 1, for an element larger than a block fills
    /// several alone.
    pub fn nodes_per_block(self, node_bytes: u64) -> u64 {
        (self.block_bytes / node_bytes.max(1)).max(1)
    }

    /// Nodes at the top of a tree that fit into half of the sets, c/2 x k x a (section 3.2.1).
    pub fn colourable_nodes(self, node_bytes: u64) -> f64 {
        self.sets as f64 / 2.0 * self.nodes_per_block(node_bytes) as f64 * self.ways as f64
    }
}

/// Latencies of a two-level hierarchy in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latencies {
    /// First-level hit, `t_h`.
    pub hit: f64,
    /// First-level miss, `t_mL1`.
    pub l1_miss: f64,
    /// Second-level miss, `t_mL2`.
    pub l2_miss: f64,
}

/// 1, 6 and 64 cycles (section 2.3.1).
pub const THESIS_LATENCIES: Latencies = Latencies {
    hit: 1.0,
    l1_miss: 6.0,
    l2_miss: 64.0,
};

/// Miss rates of the two levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissRates {
    /// Misses for each reference, `m_L1`.
    pub l1: f64,
    /// Misses for each first-level miss, `m_L2`.
    pub l2: f64,
}

/// K = 1, R = 0: each block holds one useful element and nothing is reused (end of section 3.1.2).
pub const NAIVE: MissRates = MissRates { l1: 1.0, l2: 1.0 };

impl Latencies {
    /// Time of one memory reference in cycles, `t_memory` for one reference (section 3.1.1).
    pub fn reference_cycles(self, rates: MissRates) -> f64 {
        self.hit + rates.l1 * self.l1_miss + rates.l1 * rates.l2 * self.l2_miss
    }

    /// Cache-conscious speedup, figure 3-1.
    pub fn speedup(self, naive: MissRates, conscious: MissRates) -> f64 {
        self.reference_cycles(naive) / self.reference_cycles(conscious)
    }

    /// Best-case speedup, figure 3-2: against [`NAIVE`].
    pub fn best_case_speedup(self, conscious: MissRates) -> f64 {
        self.speedup(NAIVE, conscious)
    }
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
    /// K, elements of a block of `k` that one search needs: 1, 2 (1 - (1/2)^k), or log2(k + 1) (section 2.2.1).
    pub fn k(self, nodes_per_block: u64) -> f64 {
        let k = nodes_per_block.max(1) as f64;
        match self {
            Clustering::None => 1.0,
            Clustering::DepthFirst => 2.0 * (1.0 - 0.5f64.powf(k)),
            Clustering::Subtree => (k + 1.0).log2(),
        }
    }
}

/// D = log2(n + 1), references of a search in a complete binary tree (section 3.1.1).
pub fn search_references(nodes: u64) -> f64 {
    (nodes as f64 + 1.0).log2()
}

/// `R_s = log2(coloured + 1)`: levels of the tree that colouring keeps in the cache (section 3.2.1); at most D.
pub fn coloured_reuse(nodes: u64, coloured_nodes: f64) -> f64 {
    (coloured_nodes.max(0.0) + 1.0)
        .log2()
        .min(search_references(nodes))
}

/// R(i) = log2(i): elements that the i-th search finds cached in a cache that never evicts (section 3.3.1); at most D.
pub fn transient_reuse(nodes: u64, search: u64) -> f64 {
    (search.max(1) as f64).log2().min(search_references(nodes))
}

/// `m = (1 - R / D) / K`, the miss rate of an access and, with `R_s`, of the steady state (section 3.1.1).
pub fn miss_rate(references: f64, reuse: f64, k: f64) -> f64 {
    if references <= 0.0 || k <= 0.0 {
        return 0.0;
    }
    ((1.0 - reuse / references) / k).max(0.0)
}

/// `m_s` of a subtree-clustered, coloured complete tree, figure 3-3.
pub fn c_tree_miss_rate(nodes: u64, node_bytes: u64, cache: CacheGeometry) -> f64 {
    miss_rate(
        search_references(nodes),
        coloured_reuse(nodes, cache.colourable_nodes(node_bytes)),
        Clustering::Subtree.k(cache.nodes_per_block(node_bytes)),
    )
}

/// Worst-case misses for each of the first `searches` searches, amortised, in a cache that never evicts (section 3.3.1):
/// log_(k+1)(n + 1) - log_(k+1)(i) + (i - 1) / (i k).
pub fn transient_misses(nodes: u64, nodes_per_block: u64, searches: u64) -> f64 {
    let (k, i) = (nodes_per_block.max(1) as f64, searches.max(1) as f64);
    let log = |x: f64| x.ln() / (k + 1.0).ln();
    (log(nodes as f64 + 1.0) - log(i) + (i - 1.0) / (i * k)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // 64 pages of 384 nodes are half of the cache (section 3.4).
        assert!(close(
            THESIS_L2.colourable_nodes(THESIS_NODE_BYTES),
            64.0 * 384.0,
            1e-9
        ));
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
    }

    #[test]
    fn transient_misses_fall_with_the_logarithm() {
        // The first search misses one block for each two levels; the (k+1)-th power costs one block less each.
        assert!(close(transient_misses(NODES, 3, 1), 10.5, 1e-9));
        assert!(close(transient_misses(NODES, 3, 4), 9.5 + 0.25, 1e-9));
        assert!(close(transient_reuse(NODES, 8), 3.0, 1e-12));
        assert!(transient_misses(3, 3, u64::MAX) >= 0.0);
    }

    #[test]
    fn odd_parameters_stay_finite() {
        assert!(close(miss_rate(0.0, 0.0, 1.0), 0.0, 0.0));
        assert!(close(c_tree_miss_rate(1, 1 << 40, THESIS_L2), 0.0, 1e-12));
        assert_eq!(THESIS_L2.nodes_per_block(0), 64);
    }
}
