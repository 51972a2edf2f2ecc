//! Formulas of chapter 3 that only the figures and their checks need.

/// Latencies of a two-level hierarchy in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latencies {
    /// First-level hit, `t_h`.
    pub(crate) hit: f64,
    /// First-level miss, `t_mL1`.
    pub(crate) l1_miss: f64,
    /// Second-level miss, `t_mL2`.
    pub(crate) l2_miss: f64,
}

/// 1, 6 and 64 cycles (section 2.3.1).
pub(crate) const THESIS_LATENCIES: Latencies = Latencies {
    hit: 1.0,
    l1_miss: 6.0,
    l2_miss: 64.0,
};

impl Latencies {
    /// Cycles of a reference that always misses the first level and the second in a share of
    /// `l2_rate`, `t_memory` (section 3.1.1).
    pub(crate) fn reference_cycles(self, l2_rate: f64) -> f64 {
        self.hit + self.l1_miss + l2_rate * self.l2_miss
    }

    /// Speedup over a layout that always misses, figure 3-2.
    pub(crate) fn best_case_speedup(self, l2_rate: f64) -> f64 {
        self.reference_cycles(1.0) / self.reference_cycles(l2_rate)
    }
}

/// Misses of the `search`-th worst-case search alone, log_(k+1)(n + 1) less the levels of blocks
/// that those before it have brought in (the table of section 3.3.1).
pub(crate) fn worst_case_misses(nodes: u64, nodes_per_block: u64, search: u64) -> f64 {
    let step = nodes_per_block + 1;
    let (mut cached_levels, mut reach) = (0u32, 1u64);
    // In whole numbers: the logarithm of a power need not come out whole.
    while reach < search {
        reach *= step;
        cached_levels += 1;
    }
    let all = (nodes as f64 + 1.0).ln() / (step as f64).ln();
    (all - f64::from(cached_levels)).max(0.0)
}
