//! Machines that are known without measuring: those of the thesis, and some current processors.
//!
//! The geometry and the latencies of caches and TLBs are those of the sources that
//! [`Preset::sources`] names. What no source publishes is a round figure, the same for all of a
//! kind:
//!
//! | not published | taken as |
//! |---|---|
//! | latency of memory, which depends on the modules | 80 ns on desktops, 110 ns on servers |
//! | a walk through the page table | 10 ns, as [`Machine::this`] |
//! | instruction costs, overlap, neighbour shares | as [`Machine::this`] |
//! | replacement | LRU where sets are modelled, random where capacities are |
//!
//! Third-level caches are given whole, though other cores use them too: for one of many busy
//! threads, divide `levels[2].steps[0].capacity_bytes`.

use std::fmt;

use super::{
    DEFAULT_NEIGHBOURS, DEFAULT_SEARCH, Evidence, Level, LevelKind, LookAhead, Machine, PageSize,
    SearchCosts,
};
use crate::footprint::Replacement;
use crate::geometry::CacheGeometry;
use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion};

use Latency::{Cycles, Ns};

/// A machine with a name for the command line.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    name: &'static str,
    title: &'static str,
    sources: &'static [&'static str],
    kind: Kind,
}

impl Preset {
    /// What [`Machine::preset`] and `--machine` call it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Where its numbers come from.
    pub fn sources(&self) -> &'static [&'static str] {
        self.sources
    }

    /// The machine itself.
    pub fn machine(&self) -> Machine {
        match self.kind {
            Kind::Counted(counted) => counted.machine(self.title),
            Kind::Processor(processor) => processor.machine(self.title),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Counted(Counted),
    Processor(Processor),
}

/// Caches of a preset: a name, sets, bytes of a block, ways.
fn levels<'a>(caches: impl IntoIterator<Item = (&'a str, u64, u64, u64)>) -> Vec<CacheLevel> {
    let level = |(name, sets, block_bytes, ways)| match CacheGeometry::new(sets, block_bytes, ways)
    {
        Ok(geometry) => CacheLevel::lru(name, geometry),
        Err(error) => unreachable!("a preset's cache: {error}"),
    };
    caches.into_iter().map(level).collect()
}

fn hierarchy(
    caches: Vec<CacheLevel>,
    inclusion: Inclusion,
    tlbs: Vec<CacheLevel>,
) -> Option<Hierarchy> {
    match Hierarchy::new(caches, inclusion, tlbs) {
        Ok(hierarchy) => Some(hierarchy),
        Err(error) => unreachable!("a preset's caches: {error}"),
    }
}

/// The levels of caches, with what a miss of each costs.
fn data_levels<'a>(
    caches: &'a [CacheLevel],
    step_ns: impl IntoIterator<Item = f64> + 'a,
) -> impl Iterator<Item = Level> + 'a {
    caches.iter().zip(step_ns).map(|(cache, step_ns)| {
        let block_bytes = cache.geometry.block_bytes();
        let bytes = cache.bytes() as f64;
        Level::new(&cache.name, LevelKind::Data, block_bytes, bytes, step_ns)
    })
}

/// A machine of the thesis: two caches, costs in cycles, a cycle for each node.
#[derive(Clone, Copy, Debug)]
struct Counted {
    cycle_ns: f64,
    /// Sets, bytes of a block and ways of L1 and L2.
    caches: [(u64, u64, u64); 2],
    /// Cycles that a miss of each costs more.
    miss_cycles: [f64; 2],
    overlap: LookAhead,
}

impl Counted {
    fn machine(self, title: &str) -> Machine {
        let caches = { ["L1", "L2"].into_iter() }.zip(self.caches);
        let caches = levels(caches.map(|(name, (sets, block, ways))| (name, sets, block, ways)));
        let step_ns = self.miss_cycles.map(|cycles| cycles * self.cycle_ns);
        let search = SearchCosts {
            operation_ns: 0.0,
            node_ns: self.cycle_ns,
            misprediction_ns: 0.0,
            branch_free_node_ns: self.cycle_ns,
        };
        let levels = data_levels(&caches, step_ns).collect();
        Machine {
            overlap: self.overlap,
            hierarchy: hierarchy(caches, Inclusion::NonInclusive, Vec::new()),
            ..Machine::of_levels(title, search, levels)
        }
    }
}

/// Latency from the address of a load to its value, in the unit of the source.
#[derive(Clone, Copy, Debug)]
enum Latency {
    Cycles(f64),
    Ns(f64),
}

/// A current processor.
#[derive(Clone, Copy, Debug)]
struct Processor {
    /// Cycles in a nanosecond, with one core busy.
    ghz: f64,
    /// Sets and ways of L1, L2 and L3, with lines of 64 bytes.
    caches: [(u64, u64); 3],
    /// Latency of a hit of each.
    hits: [Latency; 3],
    inclusion: Inclusion,
    memory_ns: f64,
    /// Sets and ways of the first- and second-level TLB for pages of 4 KiB.
    tlbs: [(u64, u64); 2],
    /// Cycles that a miss of the first-level TLB costs more.
    tlb_miss_cycles: f64,
}

/// Latency of memory where no source publishes it.
const DESKTOP_MEMORY_NS: f64 = 80.0;
const SERVER_MEMORY_NS: f64 = 110.0;
/// A walk through the page table, as [`Machine::this`] has it.
const WALK_NS: f64 = 10.0;
/// Bytes of a line and of a small page.
const LINE: u64 = 64;
const PAGE: u64 = PageSize::Small4K.bytes();

impl Processor {
    fn machine(self, title: &str) -> Machine {
        let [l1, l2, l3] = self.caches;
        let caches = [("L1", l1), ("L2", l2), ("L3", l3)];
        let caches = levels(caches.map(|(name, (sets, ways))| (name, sets, LINE, ways)));
        let [dtlb, stlb] = self.tlbs;
        let tlbs = [("dTLB", dtlb), ("STLB", stlb)];
        let tlbs = levels(tlbs.map(|(name, (sets, ways))| (name, sets, PAGE, ways)));
        let [l1, l2, l3] = self.hits.map(|latency| match latency {
            Cycles(cycles) => cycles / self.ghz,
            Ns(ns) => ns,
        });
        let mut levels: Vec<Level> =
            data_levels(&caches, [l2 - l1, l3 - l2, self.memory_ns - l3]).collect();
        levels.push(Level::of_small_pages([
            (tlbs[0].bytes(), self.tlb_miss_cycles / self.ghz),
            (tlbs[1].bytes(), WALK_NS),
        ]));
        Machine {
            overlap: LookAhead::USUAL,
            replacement: Replacement::Random,
            neighbours: DEFAULT_NEIGHBOURS.to_vec(),
            hierarchy: hierarchy(caches, self.inclusion, tlbs),
            evidence: Evidence {
                hit_ns: Some(l1),
                ..Evidence::default()
            },
            ..Machine::of_levels(title, DEFAULT_SEARCH, levels)
        }
    }
}

const ZEN4: Processor = Processor {
    ghz: 5.0,
    caches: [(64, 8), (2048, 8), (32_768, 16)],
    hits: [Cycles(4.0), Cycles(14.0), Cycles(50.0)],
    inclusion: Inclusion::VictimLast,
    memory_ns: DESKTOP_MEMORY_NS,
    tlbs: [(1, 72), (128, 24)],
    tlb_miss_cycles: 7.0,
};
const SAPPHIRE_RAPIDS: Processor = Processor {
    ghz: 3.8,
    caches: [(64, 12), (2048, 16), (16_384, 105)],
    hits: [Cycles(5.0), Ns(4.4), Ns(37.0)],
    inclusion: Inclusion::NonInclusive,
    memory_ns: SERVER_MEMORY_NS,
    tlbs: [(16, 6), (128, 16)],
    tlb_miss_cycles: 7.0,
};
const NEOVERSE_N1: Processor = Processor {
    ghz: 2.5,
    caches: [(256, 4), (2048, 8), (32_768, 16)],
    hits: [Cycles(4.0), Cycles(11.0), Ns(22.0)],
    inclusion: Inclusion::NonInclusive,
    memory_ns: 81.0,
    tlbs: [(1, 48), (256, 5)],
    tlb_miss_cycles: 6.0,
};

static THESIS: Preset = Preset {
    name: "thesis",
    title: "Sun Ultraserver E5000 (thesis)",
    sources: &["T. Chilimbi, Cache-Conscious Data Structures (1999), section 2.3.1"],
    kind: Kind::Counted(Counted {
        cycle_ns: 1e3 / 167.0,
        caches: [(1024, 16, 1), (16_384, 64, 1)],
        miss_cycles: [6.0, 64.0],
        overlap: LookAhead::NONE,
    }),
};

static PRESETS: [&Preset; 10] = [
    &THESIS,
    &Preset {
        name: "thesis-rsim",
        title: "RSIM as simulated for the thesis (1 cycle = 1 ns)",
        sources: &[
            "T. Chilimbi, Cache-Conscious Data Structures (1999), table 4.1: caches, latencies, 8 \
             outstanding misses; cycles are not given a length there and count as nanoseconds",
        ],
        kind: Kind::Counted(Counted {
            cycle_ns: 1.0,
            caches: [(128, 128, 1), (1024, 128, 2)],
            miss_cycles: [9.0, 60.0],
            overlap: LookAhead {
                misses: 8.0,
                // A reorder buffer of 64 instructions, some eight of which make up the visit of a
                // node.
                nodes_ahead: 8.0,
                branches: 1.0,
            },
        }),
    },
    &Preset {
        name: "zen4-desktop",
        title: "AMD Ryzen 7000 (Zen 4), 5 GHz",
        sources: &[
            "Software Optimization Guide for the AMD Zen4 Microarchitecture (publication 57647, \
             2023): caches, their latencies, TLBs",
            "Chips and Cheese, AMD's Strix Point: Zen 5 Hits Mobile (2024): 7 cycles for a hit of \
             the second-level TLB",
        ],
        kind: Kind::Processor(ZEN4),
    },
    &Preset {
        name: "zen4-server",
        title: "AMD EPYC 9004 (Zen 4), 3.7 GHz, one chiplet's L3",
        sources: &[
            "Software Optimization Guide for the AMD Zen4 Microarchitecture (publication 57647, \
             2023): caches, their latencies, TLBs",
            "Chips and Cheese, Genoa-X: Server V-Cache Round 2 (2023): clock, memory about as far \
             as that of Sapphire Rapids",
        ],
        kind: Kind::Processor(Processor {
            ghz: 3.7,
            memory_ns: SERVER_MEMORY_NS,
            ..ZEN4
        }),
    },
    &Preset {
        name: "zen5-desktop",
        title: "AMD Ryzen 9000 (Zen 5), 5.5 GHz",
        sources: &[
            "Software Optimization Guide for the AMD Zen5 Microarchitecture (publication 58455, \
             2024): caches, latency of L1 and L2, TLBs",
            "AMD, Next Generation Zen 5 Core, Hot Chips 2024: TLBs",
            "Latency of L3 as of Zen 4, which it takes its complex of eight cores and 32 MB from",
        ],
        kind: Kind::Processor(Processor {
            ghz: 5.5,
            caches: [(64, 12), (1024, 16), (32_768, 16)],
            tlbs: [(1, 96), (256, 16)],
            ..ZEN4
        }),
    },
    &Preset {
        name: "alder-lake",
        title: "Intel Core i9-12900K (Golden Cove), 5 GHz",
        sources: &[
            "Intel 64 and IA-32 Architectures Optimization Reference Manual, Golden Cove: caches, \
             TLBs, latency of L1 and L2",
            "J. Chen, Intel Golden Cove (jia.je, 2025): the same measured, 7 cycles for a hit of \
             the second-level TLB",
            "AIDA64 readings of 2022: L3 15.5 ns; its 40960 sets of 12 ways count as 32768 of 15",
        ],
        kind: Kind::Processor(Processor {
            ghz: 5.0,
            caches: [(64, 12), (2048, 10), (32_768, 15)],
            hits: [Cycles(5.0), Cycles(15.0), Ns(15.5)],
            memory_ns: DESKTOP_MEMORY_NS,
            ..SAPPHIRE_RAPIDS
        }),
    },
    &Preset {
        name: "sapphire-rapids",
        title: "Intel Xeon Platinum 8480+ (Sapphire Rapids), 3.8 GHz",
        sources: &[
            "Intel 64 and IA-32 Architectures Optimization Reference Manual, Golden Cove: caches, \
             TLBs, latency of L1",
            "Intel perfmon, top-down metrics of Sapphire Rapids: L2 4.4 ns, L3 37 ns",
            "Chips and Cheese, Sapphire Rapids: Golden Cove Hits Servers (2023): clock; Intel \
             ARK: 105 MB of L3, whose 15 ways count as 105 of 16384 sets",
        ],
        kind: Kind::Processor(SAPPHIRE_RAPIDS),
    },
    &Preset {
        name: "emerald-rapids",
        title: "Intel Xeon Platinum 8592+ (Emerald Rapids), 3.8 GHz",
        sources: &[
            "As sapphire-rapids, whose core it has; L3 of 320 MB in 20 ways (Intel ARK, and sysfs \
             of such a machine)",
        ],
        kind: Kind::Processor(Processor {
            caches: [(64, 12), (2048, 16), (262_144, 20)],
            ..SAPPHIRE_RAPIDS
        }),
    },
    &Preset {
        name: "neoverse-n1",
        title: "AWS Graviton 2 (Neoverse N1), 2.5 GHz",
        sources: &[
            "Arm, Neoverse N1 Cloud-to-Edge Infrastructure SoCs, Hot Chips 31 (2019): caches, \
             TLBs, 4 and 11 cycles, system cache 22 ns",
            "AnandTech, Cloud Clash: Amazon Graviton2 (2020): 1 MB of L2, 32 MB of system cache, \
             memory 81 ns; 16 ways are assumed",
            "A hit of the second-level TLB as of Neoverse V2",
        ],
        kind: Kind::Processor(NEOVERSE_N1),
    },
    &Preset {
        name: "neoverse-v2",
        title: "AWS Graviton 4 (Neoverse V2), 2.8 GHz",
        sources: &[
            "Arm Neoverse V2 Core Technical Reference Manual (102375): caches, TLBs, 10 cycles \
             for L2, 6 for a hit of the second-level TLB",
            "J. Chen, ARM Neoverse V2 (jia.je, 2024): 4 cycles for L1, measured",
            "Chips and Cheese, Arm's Neoverse V2, in AWS's Graviton 4 (2024): 36 MB of L3; 18 \
             ways and a latency between N1's 22 ns and Sapphire Rapids' 37 ns are assumed",
        ],
        kind: Kind::Processor(Processor {
            ghz: 2.8,
            caches: [(256, 4), (4096, 8), (32_768, 18)],
            hits: [Cycles(4.0), Cycles(10.0), Ns(30.0)],
            memory_ns: SERVER_MEMORY_NS,
            tlbs: [(1, 48), (256, 8)],
            ..NEOVERSE_N1
        }),
    },
];

impl Machine {
    /// The Sun Ultraserver E5000 of the thesis's section 2.3.1: 16 KB L1 with 16 B lines, 1 MB L2
    /// with 64 B lines, a hit in 1 cycle of 167 MHz, misses 6 and 64 cycles more.
    ///
    /// The caches are direct-mapped there, which its [`hierarchy`](Machine::hierarchy) says; the
    /// footprint tier takes them as fully associative and so predicts fewer misses than the machine
    /// had.
    pub fn thesis() -> Machine {
        THESIS.machine()
    }

    /// All machines that [`preset`](Machine::preset) knows.
    pub fn presets() -> impl Iterator<Item = &'static Preset> {
        PRESETS.into_iter()
    }

    /// The machine of this name.
    ///
    /// # Errors
    /// [`UnknownPreset`], which names the nearest.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::Machine;
    ///
    /// let machine = Machine::preset("zen4-desktop")?;
    /// assert_eq!(machine.levels[1].capacity_bytes(), 1048576.0);
    /// let error = Machine::preset("zen4-dekstop").unwrap_err();
    /// assert!(error.to_string().contains("zen4-desktop"));
    /// # Ok::<(), ccmodel::UnknownPreset>(())
    /// ```
    pub fn preset(name: &str) -> Result<Machine, UnknownPreset> {
        let wanted = name.trim().to_lowercase();
        match PRESETS.iter().find(|preset| preset.name == wanted) {
            Some(preset) => Ok(preset.machine()),
            None => Err(UnknownPreset {
                name: name.chars().take(60).collect(),
            }),
        }
    }
}

/// A name that no preset has; its message says which ones there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPreset {
    name: String,
}

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        write!(f, "no machine is called {:?}", self.name)?;
        #[cfg(feature = "cli")]
        if let Some(name) = crate::layout::nearest_of(&self.name, known.iter().copied()) {
            write!(f, ", did you mean {name:?}?")?;
        }
        write!(f, " (known: {})", known.join(", "))
    }
}

impl core::error::Error for UnknownPreset {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_machines_with_sources() {
        for preset in Machine::presets() {
            let machine = preset.machine();
            assert_eq!(machine.check(), Ok(()), "{}", preset.name());
            assert_eq!(Machine::preset(preset.name()).as_ref(), Ok(&machine));
            assert!(!preset.sources().is_empty());
            let hierarchy = machine.hierarchy.as_ref().unwrap();
            // Capacities and sets describe the same caches.
            let data = machine
                .levels
                .iter()
                .filter(|level| level.kind == LevelKind::Data);
            for (level, cache) in data.zip(hierarchy.caches()) {
                assert_eq!(level.name, cache.name);
                assert!((level.capacity_bytes() - cache.bytes() as f64).abs() < 0.5);
                assert!(level.step_ns() > 0.0, "{}", preset.name());
            }
        }
    }

    #[test]
    fn nominal_sizes_are_as_on_the_box() {
        let kib = |name: &str| -> Vec<u64> {
            let machine = Machine::preset(name).unwrap();
            let hierarchy = machine.hierarchy.unwrap();
            let levels = hierarchy.caches().iter().chain(hierarchy.tlbs());
            levels.map(|level| level.bytes() >> 10).collect()
        };
        assert_eq!(kib("thesis"), [16, 1024]);
        assert_eq!(kib("thesis-rsim"), [16, 256]);
        assert_eq!(kib("zen4-server"), [32, 1024, 32 << 10, 72 * 4, 3072 * 4]);
        assert_eq!(kib("zen5-desktop"), [48, 1024, 32 << 10, 96 * 4, 4096 * 4]);
        assert_eq!(kib("alder-lake"), [48, 1280, 30 << 10, 96 * 4, 2048 * 4]);
        assert_eq!(
            kib("sapphire-rapids"),
            [48, 2048, 105 << 10, 96 * 4, 2048 * 4]
        );
        assert_eq!(
            kib("emerald-rapids"),
            [48, 2048, 320 << 10, 96 * 4, 2048 * 4]
        );
        assert_eq!(kib("neoverse-n1"), [64, 1024, 32 << 10, 48 * 4, 1280 * 4]);
        assert_eq!(kib("neoverse-v2"), [64, 2048, 36 << 10, 48 * 4, 2048 * 4]);
    }

    #[test]
    fn unknown_names_suggest_the_nearest() {
        let message = Machine::preset("zen5").unwrap_err().to_string();
        if cfg!(feature = "cli") {
            assert!(
                message.contains("did you mean \"zen5-desktop\""),
                "{message}"
            );
        }
        assert!(message.contains("thesis-rsim"), "{message}");
        assert!(Machine::preset(" Thesis-RSIM ").is_ok());
        let odd = Machine::preset("\u{1b}[2J").unwrap_err().to_string();
        assert!(!odd.contains(char::is_control), "{odd:?}");
    }
}
