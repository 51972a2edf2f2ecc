//! The thesis's machine, simulated: a Sun Ultraserver E5000 as its section 2.3.1 describes it.
//!
//! | | | |
//! |---|---|---|
//! | first level | 16 KB, direct-mapped, lines of 16 B | a hit takes 1 cycle |
//! | second level | 1 MB, direct-mapped, lines of 64 B | a first-level miss takes 6 cycles more |
//! | memory | | a second-level miss takes 64 cycles more |
//! | data TLB (section 5.5.1) | 64 entries, fully associative, pages of 8 KB | no cost is given |
//!
//! Both caches are indexed by virtual addresses, which is what its operating system's page colours
//! come to. Every read is a word of 4 B. The cycles are those of memory alone, without instructions
//! and TLB misses.

use ccmodel::{CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Simulator};
use serde::Serialize;

/// Cycles of a read that hits, of a miss of the first level, and of one of the second, each on top
/// of those before.
const HIT_CYCLES: f64 = 1.0;
const L1_MISS_CYCLES: f64 = 6.0;
const L2_MISS_CYCLES: f64 = 64.0;

/// The machine, and the reads since it was cold.
#[derive(Debug)]
pub struct ThesisMachine {
    simulator: Simulator,
    reads: u64,
}

/// What one search costs on average.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SearchCost {
    /// Words read.
    pub reads: f64,
    /// First-level misses.
    pub l1_misses: f64,
    /// Second-level misses.
    pub l2_misses: f64,
    /// Data TLB misses, which are not in the cycles; `None` where they are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlb_misses: Option<f64>,
    /// Cycles of all reads.
    pub cycles: f64,
}

impl ThesisMachine {
    /// The machine with nothing in its caches.
    ///
    /// # Panics
    /// Never: the machine is a valid one.
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

    /// Reads the word at `address`.
    pub fn read(&mut self, address: u64) {
        self.reads += 1;
        self.simulator.access(address, 4);
    }

    /// What each of `searches` searches has cost since the machine was cold.
    pub fn cost_of_each(&self, searches: u64) -> SearchCost {
        let each = |count: u64| count as f64 / searches.max(1) as f64;
        let [l1, l2, ..] = self.simulator.cache_misses();
        SearchCost {
            tlb_misses: Some(each(self.simulator.tlb_misses()[0])),
            ..SearchCost::of_memory(each(self.reads), each(l1), each(l2))
        }
    }
}

impl SearchCost {
    /// From reads and misses of the caches alone.
    pub fn of_memory(reads: f64, l1_misses: f64, l2_misses: f64) -> SearchCost {
        SearchCost {
            reads,
            l1_misses,
            l2_misses,
            tlb_misses: None,
            cycles: reads * HIT_CYCLES + l1_misses * L1_MISS_CYCLES + l2_misses * L2_MISS_CYCLES,
        }
    }
}
