//! Time of a reference, and speedups (sections 3.1.1 and 3.1.2, figures 3-1 and 3-2).

use crate::Machine;
use crate::colour::CacheGeometry;
use crate::machine::LevelKind;

/// Node size of the thesis's tree: three to a block of 64 bytes, 40 MB for 2,097,151 of them.
pub const THESIS_NODE_BYTES: u64 = 20;

/// First-level cache of the thesis's machine: 16 KB direct-mapped, lines of 16 bytes (section
/// 2.3.1).
pub const THESIS_L1: CacheGeometry = CacheGeometry::constant(1024, 16, 1);

/// Second-level cache of the thesis's machine: 1 MB direct-mapped, lines of 64 bytes (section
/// 2.3.1).
pub const THESIS_L2: CacheGeometry = CacheGeometry::constant(16_384, 64, 1);

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

/// A machine as the formulas see it, with any number of levels: `t_memory` of section 3.1.1 has one
/// summand for each.
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
    /// The thesis's machine, in cycles.
    pub fn thesis() -> System {
        let cache = |name: &str, geometry: CacheGeometry, miss_time| SystemCache {
            name: name.to_owned(),
            blocks: geometry.blocks() as f64,
            block_bytes: geometry.block_bytes(),
            miss_time,
        };
        System {
            name: String::from("Sun Ultraserver E5000 (thesis)"),
            unit: "cycles",
            hit_time: THESIS_LATENCIES.hit,
            caches: vec![
                cache("L1", THESIS_L1, THESIS_LATENCIES.l1_miss),
                cache("L2", THESIS_L2, THESIS_LATENCIES.l2_miss),
            ],
        }
    }

    /// Any machine, in nanoseconds: its data levels, each step of latency as a cache of that
    /// capacity. What the formulas do not know is left out: translations, and misses near each
    /// other.
    ///
    /// `t_h` is what visiting a node takes when it lies in the first level, without branches.
    pub fn of_machine(machine: &Machine) -> System {
        let data = machine
            .levels
            .iter()
            .filter(|level| level.kind == LevelKind::Data);
        let mut caches = Vec::new();
        for level in data {
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
    /// without a rate count as missed always.
    pub fn reference_time(&self, rates: &[f64]) -> f64 {
        let rates = rates.iter().copied().chain(std::iter::repeat(1.0));
        let misses = self.caches.iter().zip(rates);
        self.hit_time
            + misses
                .map(|(cache, rate)| rate * cache.miss_time)
                .sum::<f64>()
    }

    /// How many times faster than a layout that misses always, figure 3-2; 1 where everything is
    /// free.
    pub fn best_case_speedup(&self, rates: &[f64]) -> f64 {
        let time = self.reference_time(rates);
        if time > 0.0 {
            self.reference_time(&[]) / time
        } else {
            1.0
        }
    }
}
