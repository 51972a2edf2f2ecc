//! The thesis's machine, simulated: a Sun Ultraserver E5000 as its section 2.3.1 describes it.
//!
//! A hit in the first level (16 KB, direct-mapped, lines of 16 B) takes 1 cycle, a miss there 6
//! more, and a miss in the second (1 MB, direct-mapped, lines of 64 B) 64 more. The data TLB has 64
//! entries for pages of 8 KB (section 5.5.1). Virtual addresses index both caches, since the
//! operating system colours pages. Cycles leave out instructions and TLB misses.

use ccmodel::{CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Simulator};
use serde::Serialize;

#[derive(Debug)]
pub struct ThesisMachine {
    simulator: Simulator,
    reads: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct SearchCost {
    /// Words read.
    pub reads: f64,
    pub l1_misses: f64,
    pub l2_misses: f64,
    /// Data TLB misses, which are not in the cycles.
    pub tlb_misses: f64,
    pub cycles: f64,
}

impl ThesisMachine {
    pub fn cold() -> ThesisMachine {
        let level = |name, sets, block_bytes, ways| {
            let geometry = CacheGeometry::new(sets, block_bytes, ways);
            CacheLevel::lru(name, geometry.expect("powers of two"))
        };
        let caches = vec![level("L1", 1024, 16, 1), level("L2", 16_384, 64, 1)];
        let tlbs = vec![level("dTLB", 1, 8192, 64)];
        let hierarchy = Hierarchy::new(caches, Inclusion::NonInclusive, tlbs);
        ThesisMachine {
            simulator: Simulator::new(&hierarchy.expect("a machine"), Frames::Identity),
            reads: 0,
        }
    }

    pub fn read(&mut self, address: u64) {
        self.reads += 1;
        self.simulator.access(address, 4);
    }

    /// The cost of each of `searches` searches since the machine was cold.
    pub fn cost_of_each(&self, searches: u64) -> SearchCost {
        let each = |count: u64| count as f64 / searches.max(1) as f64;
        let [l1, l2, ..] = self.simulator.cache_misses();
        let (reads, l1_misses, l2_misses) = (each(self.reads), each(l1), each(l2));
        SearchCost {
            reads,
            l1_misses,
            l2_misses,
            tlb_misses: each(self.simulator.tlb_misses()[0]),
            cycles: reads + 6.0 * l1_misses + 64.0 * l2_misses,
        }
    }
}
