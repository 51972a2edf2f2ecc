//! What a search costs on the thesis's machine: as this crate predicts it, and as the simulator
//! counts it.
//!
//! A search reads the key and both links of each node that it visits, the first 12 bytes, and the
//! formulas count that as one reference. Ends are uniform over the keys. Neither instructions nor
//! translations are in the cycles: the thesis gives no cost of a TLB miss, so that one is a
//! parameter. Addresses choose sets as the program sees them: its operating system "maps
//! consecutive virtual pages to non-conflicting physical pages" (section 2.2.1).

use crate::thesis::{L1, L2};
use ccmodel::{
    Accesses, CacheLevel, Frames, Hierarchy, Inclusion, Simulator, Tier, predict_misses,
};
use serde::Serialize;

use crate::sample::{Simulated, level};

/// Cycles of the thesis's machine (section 2.3.1): a first-level hit `t_h`, and what misses of the
/// first level and of the second add, `t_mL1` and `t_mL2`.
const HIT_CYCLES: f64 = 1.0;
const L1_MISS_CYCLES: f64 = 6.0;
const L2_MISS_CYCLES: f64 = 64.0;

/// Cycles of a reference that always misses the first level and the second in a share of `l2_rate`,
/// `t_memory` (section 3.1.1).
pub(crate) fn reference_cycles(l2_rate: f64) -> f64 {
    HIT_CYCLES + L1_MISS_CYCLES + l2_rate * L2_MISS_CYCLES
}

/// Key and links.
pub(super) const TOUCHED_BYTES: u32 = 12;
/// The data TLB of the machine (section 5.5.1): fully associative.
const TLB_ENTRIES: u64 = 64;
/// Its pages; 384 nodes fit into one (section 3.4).
const PAGE_BYTES: u64 = 8192;
/// Searches before the first that counts, at most, in all and for each node. Leaves visit each of
/// 16,384 sets about once in as many searches, so after these only one set in 450 is still empty.
const WARM_UP: u64 = 100_000;
const WARM_UP_EACH: u64 = 16;
const SEED: u64 = 1999;

/// Nodes that one search visits, and what it misses, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct SearchCost {
    pub(crate) nodes: f64,
    pub(crate) l1_misses: f64,
    pub(crate) l2_misses: f64,
    pub(crate) tlb_misses: f64,
}

impl SearchCost {
    /// Memory cycles, with `refill_cycles` for each TLB miss; 0 leaves them out, as the thesis's
    /// formulas do.
    pub(crate) fn cycles(self, refill_cycles: f64) -> f64 {
        self.nodes * HIT_CYCLES
            + self.l1_misses * L1_MISS_CYCLES
            + self.l2_misses * L2_MISS_CYCLES
            + self.tlb_misses * refill_cycles
    }
}

fn hierarchy() -> Hierarchy {
    let caches = vec![CacheLevel::lru("L1", L1), CacheLevel::lru("L2", L2)];
    let tlb = level("dTLB", TLB_ENTRIES * PAGE_BYTES, TLB_ENTRIES, PAGE_BYTES);
    Simulated::new("thesis", caches, Inclusion::NonInclusive, vec![tlb]).hierarchy
}

/// Counts `searches` random searches in caches that are warm.
pub(super) fn simulated(accesses: &Accesses, searches: u64) -> SearchCost {
    let mut simulator = Simulator::new(&hierarchy(), Frames::Identity);
    let points = accesses.visits().len() as u64;
    let warm_up = WARM_UP.min(WARM_UP_EACH * points);
    let mut operations = accesses.operations(SEED);
    let mut reads = Vec::new();
    let mut nodes = 0;
    for search in 0..warm_up + searches {
        if search == warm_up {
            simulator.reset_counts();
            nodes = 0;
        }
        operations.next_into(&mut reads);
        nodes += reads.len();
        for read in &reads {
            simulator.access(read.address, read.bytes);
        }
    }
    let each = |count: u64| count as f64 / searches.max(1) as f64;
    let [l1_misses, l2_misses, ..] = simulator.cache_misses().map(each);
    let [tlb_misses, ..] = simulator.tlb_misses().map(each);
    SearchCost {
        nodes: each(nodes as u64),
        l1_misses,
        l2_misses,
        tlb_misses,
    }
}

/// What this crate predicts, by the tiers that it chooses.
pub(super) fn predicted(accesses: &Accesses) -> SearchCost {
    let levels = predict_misses(accesses, &hierarchy(), Frames::Identity, Tier::Auto, None);
    let misses = |name: &str| {
        let level = levels.iter().find(|level| level.name == name);
        level.map_or(0.0, |level| level.misses)
    };
    SearchCost {
        nodes: accesses.visits().nodes_per_operation(),
        l1_misses: misses("L1"),
        l2_misses: misses("L2"),
        tlb_misses: misses("dTLB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ccmodel::{NO_NODE, Placement, Shape};

    #[test]
    fn two_blocks_that_share_a_set_evict_each_other() {
        // Two roots, searched equally often; the second lies in the first one's set, or in the
        // next.
        let shape = Shape::from_parents(&[NO_NODE, NO_NODE]).unwrap();
        for (second, expected) in [(1u64 << 20, 0.5), (64, 0.0)] {
            let placement = Placement::from_offsets(vec![0, second]);
            let accesses = Accesses::searches(&shape, &placement, 4, None);
            let cost = predicted(&accesses);
            // Both levels lose the block at once; the tiers predict each level by itself.
            assert!((cost.l1_misses - expected).abs() < 0.01, "{cost:?}");
            assert!(cost.l2_misses <= cost.l1_misses + 1e-9, "{cost:?}");
            let counted = simulated(&accesses, 20_000);
            assert!((counted.l2_misses - expected).abs() < 0.02);
            assert!((counted.nodes - 1.0).abs() < 1e-12);
        }
    }
}
