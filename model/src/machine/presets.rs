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

use super::{
    DEFAULT_NEIGHBOURS, DEFAULT_SEARCH, Level, LevelKind, LookAhead, Machine, PageSize,
    SearchCosts, WALK_NS,
};
use crate::Error;
use crate::footprint::Replacement;
use crate::geometry::CacheGeometry;
use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion};
use crate::layout::{did_you_mean, nearest_of};

/// A machine with a name for the command line.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name by which [`Machine::preset`] and `--machine` know it.
    pub name: &'static str,
    /// A description for people.
    pub title: &'static str,
    /// Where its numbers come from.
    pub sources: &'static [&'static str],
    /// Cycles in a nanosecond, with one core busy.
    ghz: f64,
    /// Sets, bytes of a block and ways of L1, L2 and perhaps L3.
    caches: &'static [[u64; 3]],
    /// Cycles from the address of a load to its value, where each cache serves it, then memory.
    hit_cycles: &'static [f64],
    inclusion: Inclusion,
    /// The TLBs for pages of 4 KiB: sets and ways of both levels, and the cycles that a miss of the
    /// first one adds. `None` for the machines of the thesis, which count cycles: one for each
    /// node, none for translations.
    tlbs: Option<([u64; 2], [u64; 2], f64)>,
    overlap: LookAhead,
}

impl Preset {
    /// The machine of this preset.
    pub fn machine(&self) -> Machine {
        let caches: Vec<CacheLevel> = { ["L1", "L2", "L3"].into_iter().zip(self.caches) }
            .map(|(name, &size)| cache(name, size))
            .collect();
        let hits = self.hit_cycles.windows(2);
        let levels = caches.iter().zip(hits).map(|(cache, hits)| {
            let (block_bytes, bytes) = (cache.geometry.block_bytes(), cache.bytes() as f64);
            let step_ns = (hits[1] - hits[0]) / self.ghz;
            Level::new(&cache.name, LevelKind::Data, block_bytes, bytes, step_ns)
        });
        let node_ns = 1.0 / self.ghz;
        let counted = SearchCosts {
            operation_ns: 0.0,
            node_ns,
            misprediction_ns: 0.0,
            branch_free_node_ns: node_ns,
        };
        let mut machine = Machine::of_levels(self.title, counted, levels.collect());
        machine.overlap = self.overlap;
        let mut translation = Vec::new();
        if let Some((first, second, miss_cycles)) = self.tlbs {
            let page_bytes = PageSize::Small4K.bytes();
            translation = [("dTLB", first), ("STLB", second)]
                .map(|(name, [sets, ways])| cache(name, [sets, page_bytes, ways]))
                .to_vec();
            machine.levels.push(Level::of_small_pages([
                (translation[0].bytes(), miss_cycles / self.ghz),
                (translation[1].bytes(), WALK_NS),
            ]));
            machine.search = DEFAULT_SEARCH;
            machine.replacement = Replacement::Random;
            machine.neighbours = DEFAULT_NEIGHBOURS.to_vec();
            machine.evidence.hit_ns = Some(self.hit_cycles[0] / self.ghz);
        }
        machine.hierarchy = match Hierarchy::new(caches, self.inclusion, translation) {
            Ok(hierarchy) => Some(hierarchy),
            Err(error) => unreachable!("a preset's caches: {error}"),
        };
        machine
    }
}

fn cache(name: &str, [sets, block_bytes, ways]: [u64; 3]) -> CacheLevel {
    match CacheGeometry::new(sets, block_bytes, ways) {
        Ok(geometry) => CacheLevel::lru(name, geometry),
        Err(error) => unreachable!("a preset's cache: {error}"),
    }
}

const THESIS: Preset = Preset {
    name: "thesis",
    title: "Sun Ultraserver E5000 (thesis)",
    sources: &["T. Chilimbi, Cache-Conscious Data Structures (1999), section 2.3.1"],
    ghz: 0.167,
    caches: &[[1024, 16, 1], [16_384, 64, 1]],
    hit_cycles: &[0.0, 6.0, 70.0],
    inclusion: Inclusion::NonInclusive,
    tlbs: None,
    overlap: LookAhead::NONE,
};
const ZEN4: Preset = Preset {
    name: "zen4-desktop",
    title: "AMD Ryzen 7000 (Zen 4), 5 GHz",
    sources: &[
        "Software Optimization Guide for the AMD Zen4 Microarchitecture (publication 57647, 2023): \
         caches, their latencies, TLBs",
        "Chips and Cheese, AMD's Strix Point: Zen 5 Hits Mobile (2024): 7 cycles for a hit of the \
         second-level TLB",
    ],
    ghz: 5.0,
    caches: &[[64, 64, 8], [2048, 64, 8], [32_768, 64, 16]],
    hit_cycles: &[4.0, 14.0, 50.0, 80.0 * 5.0],
    inclusion: Inclusion::VictimLast,
    tlbs: Some(([1, 72], [128, 24], 7.0)),
    overlap: LookAhead::USUAL,
};
const SAPPHIRE_RAPIDS: Preset = Preset {
    name: "sapphire-rapids",
    title: "Intel Xeon Platinum 8480+ (Sapphire Rapids), 3.8 GHz",
    sources: &[
        "Intel 64 and IA-32 Architectures Optimization Reference Manual, Golden Cove: caches, \
         TLBs, latency of L1",
        "Intel perfmon, top-down metrics of Sapphire Rapids: L2 4.4 ns, L3 37 ns",
        "Chips and Cheese, Sapphire Rapids: Golden Cove Hits Servers (2023): clock; Intel ARK: \
         105 MB of L3, whose 15 ways count as 105 of 16384 sets",
    ],
    ghz: 3.8,
    caches: &[[64, 64, 12], [2048, 64, 16], [16_384, 64, 105]],
    hit_cycles: &[5.0, 4.4 * 3.8, 37.0 * 3.8, 110.0 * 3.8],
    inclusion: Inclusion::NonInclusive,
    tlbs: Some(([16, 6], [128, 16], 7.0)),
    overlap: LookAhead::USUAL,
};
const NEOVERSE_N1: Preset = Preset {
    name: "neoverse-n1",
    title: "AWS Graviton 2 (Neoverse N1), 2.5 GHz",
    sources: &[
        "Arm, Neoverse N1 Cloud-to-Edge Infrastructure SoCs, Hot Chips 31 (2019): caches, TLBs, 4 \
         and 11 cycles, system cache 22 ns",
        "AnandTech, Cloud Clash: Amazon Graviton2 (2020): 1 MB of L2, 32 MB of system cache, \
         memory 81 ns; 16 ways are assumed",
        "A hit of the second-level TLB as of Neoverse V2",
    ],
    ghz: 2.5,
    caches: &[[256, 64, 4], [2048, 64, 8], [32_768, 64, 16]],
    hit_cycles: &[4.0, 11.0, 22.0 * 2.5, 81.0 * 2.5],
    tlbs: Some(([1, 48], [256, 5], 6.0)),
    ..SAPPHIRE_RAPIDS
};

static PRESETS: [Preset; 10] = [
    THESIS,
    Preset {
        name: "thesis-rsim",
        title: "RSIM as simulated for the thesis (1 cycle = 1 ns)",
        sources: &[
            "T. Chilimbi, Cache-Conscious Data Structures (1999), table 4.1: caches, latencies, 8 \
             outstanding misses; cycles are not given a length there and count as nanoseconds",
        ],
        ghz: 1.0,
        caches: &[[128, 128, 1], [1024, 128, 2]],
        hit_cycles: &[0.0, 9.0, 69.0],
        // A reorder buffer of 64 instructions holds the visits of some eight nodes.
        overlap: LookAhead {
            misses: 8.0,
            nodes_ahead: 8.0,
            branches: 1.0,
        },
        ..THESIS
    },
    ZEN4,
    Preset {
        name: "zen4-server",
        title: "AMD EPYC 9004 (Zen 4), 3.7 GHz, one chiplet's L3",
        sources: &[
            "Software Optimization Guide for the AMD Zen4 Microarchitecture (publication 57647, \
             2023): caches, their latencies, TLBs",
            "Chips and Cheese, Genoa-X: Server V-Cache Round 2 (2023): clock, memory about as far \
             as that of Sapphire Rapids",
        ],
        ghz: 3.7,
        hit_cycles: &[4.0, 14.0, 50.0, 110.0 * 3.7],
        ..ZEN4
    },
    Preset {
        name: "zen5-desktop",
        title: "AMD Ryzen 9000 (Zen 5), 5.5 GHz",
        sources: &[
            "Software Optimization Guide for the AMD Zen5 Microarchitecture (publication 58455, \
             2024): caches, latency of L1 and L2, TLBs",
            "AMD, Next Generation Zen 5 Core, Hot Chips 2024: TLBs",
            "Latency of L3 as of Zen 4, which it takes its complex of eight cores and 32 MB from",
        ],
        ghz: 5.5,
        caches: &[[64, 64, 12], [1024, 64, 16], [32_768, 64, 16]],
        hit_cycles: &[4.0, 14.0, 50.0, 80.0 * 5.5],
        tlbs: Some(([1, 96], [256, 16], 7.0)),
        ..ZEN4
    },
    Preset {
        name: "alder-lake",
        title: "Intel Core i9-12900K (Golden Cove), 5 GHz",
        sources: &[
            "Intel 64 and IA-32 Architectures Optimization Reference Manual, Golden Cove: caches, \
             TLBs, latency of L1 and L2",
            "J. Chen, Intel Golden Cove (jia.je, 2025): the same measured, 7 cycles for a hit of \
             the second-level TLB",
            "AIDA64 readings of 2022: L3 15.5 ns; its 40960 sets of 12 ways count as 32768 of 15",
        ],
        ghz: 5.0,
        caches: &[[64, 64, 12], [2048, 64, 10], [32_768, 64, 15]],
        hit_cycles: &[5.0, 15.0, 15.5 * 5.0, 80.0 * 5.0],
        ..SAPPHIRE_RAPIDS
    },
    SAPPHIRE_RAPIDS,
    Preset {
        name: "emerald-rapids",
        title: "Intel Xeon Platinum 8592+ (Emerald Rapids), 3.8 GHz",
        sources: &[
            "As sapphire-rapids, whose core it has; L3 of 320 MB in 20 ways (Intel ARK, and sysfs \
             of such a machine)",
        ],
        caches: &[[64, 64, 12], [2048, 64, 16], [262_144, 64, 20]],
        ..SAPPHIRE_RAPIDS
    },
    NEOVERSE_N1,
    Preset {
        name: "neoverse-v2",
        title: "AWS Graviton 4 (Neoverse V2), 2.8 GHz",
        sources: &[
            "Arm Neoverse V2 Core Technical Reference Manual (102375): caches, TLBs, 10 cycles \
             for L2, 6 for a hit of the second-level TLB",
            "J. Chen, ARM Neoverse V2 (jia.je, 2024): 4 cycles for L1, measured",
            "Chips and Cheese, Arm's Neoverse V2, in AWS's Graviton 4 (2024): 36 MB of L3; 18 \
             ways and a latency between N1's 22 ns and Sapphire Rapids' 37 ns are assumed",
        ],
        ghz: 2.8,
        caches: &[[256, 64, 4], [4096, 64, 8], [32_768, 64, 18]],
        hit_cycles: &[4.0, 10.0, 30.0 * 2.8, 110.0 * 2.8],
        tlbs: Some(([1, 48], [256, 8], 6.0)),
        ..NEOVERSE_N1
    },
];

impl Machine {
    /// The Sun Ultraserver E5000 of the thesis's section 2.3.1: 16 KB L1 with 16 B lines, 1 MB L2
    /// with 64 B lines, a hit in 1 cycle of 167 MHz, misses 6 and 64 cycles more.
    ///
    /// The caches are direct-mapped, which its [`hierarchy`](Machine::hierarchy) says. The
    /// footprint tier takes them as fully associative and so predicts fewer misses than the machine
    /// had.
    pub fn thesis() -> Machine {
        THESIS.machine()
    }

    /// All machines that [`preset`](Machine::preset) knows.
    pub fn presets() -> impl Iterator<Item = &'static Preset> {
        PRESETS.iter()
    }

    /// The machine of this name.
    ///
    /// # Errors
    /// When there is none; the message says which ones there are.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::Machine;
    ///
    /// let machine = Machine::preset("zen4-desktop")?;
    /// assert_eq!(machine.levels[1].capacity_bytes(), 1048576.0);
    /// let error = Machine::preset("zen4-dekstop").unwrap_err();
    /// assert!(error.to_string().contains("zen4-desktop"));
    /// # Ok::<(), ccmodel::Error>(())
    /// ```
    pub fn preset(name: &str) -> Result<Machine, Error> {
        let wanted = name.trim().to_lowercase();
        if let Some(preset) = PRESETS.iter().find(|preset| preset.name == wanted) {
            return Ok(preset.machine());
        }
        let name: String = name.chars().take(60).collect();
        let known = PRESETS.map(|preset| preset.name);
        let (advice, known) = (did_you_mean(nearest_of(&name, known)), known.join(", "));
        let what = format!("no machine is called {name:?}{advice} (known: {known})");
        Err(Error::new(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_machines_with_the_sizes_on_the_box() {
        // KiB of the caches and entries of the TLBs.
        let sizes: [(&str, &[u64], &[u64]); 10] = [
            ("thesis", &[16, 1024], &[]),
            ("thesis-rsim", &[16, 256], &[]),
            ("zen4-desktop", &[32, 1024, 32 << 10], &[72, 3072]),
            ("zen4-server", &[32, 1024, 32 << 10], &[72, 3072]),
            ("zen5-desktop", &[48, 1024, 32 << 10], &[96, 4096]),
            ("alder-lake", &[48, 1280, 30 << 10], &[96, 2048]),
            ("sapphire-rapids", &[48, 2048, 105 << 10], &[96, 2048]),
            ("emerald-rapids", &[48, 2048, 320 << 10], &[96, 2048]),
            ("neoverse-n1", &[64, 1024, 32 << 10], &[48, 1280]),
            ("neoverse-v2", &[64, 2048, 36 << 10], &[48, 2048]),
        ];
        assert_eq!(Machine::presets().count(), sizes.len());
        for (preset, (name, kib, entries)) in Machine::presets().zip(sizes) {
            let machine = preset.machine();
            assert_eq!((preset.name, machine.check()), (name, Ok(())));
            assert_eq!(Machine::preset(name).as_ref(), Ok(&machine));
            assert!(!preset.sources.is_empty());
            let hierarchy = machine.hierarchy.as_ref().unwrap();
            let caches = hierarchy.caches().iter().map(|cache| cache.bytes() >> 10);
            assert!(caches.eq(kib.iter().copied()), "{name}");
            let tlbs = hierarchy.tlbs().iter().map(CacheLevel::blocks);
            assert!(tlbs.eq(entries.iter().copied()), "{name}");
            // Capacities and sets describe the same caches.
            for (level, cache) in machine.levels.iter().zip(hierarchy.caches()) {
                assert_eq!((&level.name, level.kind), (&cache.name, LevelKind::Data));
                assert!((level.capacity_bytes() - cache.bytes() as f64).abs() < 0.5);
                assert!(level.step_ns() > 0.0, "{name}");
            }
        }
        // Nanoseconds of a load that memory serves, beyond those of the first level.
        let hits = [("zen4-server", 110.0 - 4.0 / 3.7), ("thesis-rsim", 69.0)];
        for (name, expected) in hits {
            let levels = Machine::preset(name).unwrap().levels;
            let data = levels.iter().filter(|level| level.kind == LevelKind::Data);
            let sum: f64 = data.map(Level::step_ns).sum();
            assert!((sum - expected).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn unknown_names_suggest_the_nearest() {
        let message = Machine::preset("zen5").unwrap_err().to_string();
        for part in ["did you mean `zen5-desktop`?", "thesis-rsim"] {
            assert!(message.contains(part), "{message}");
        }
        assert!(Machine::preset(" Thesis-RSIM ").is_ok());
        let odd = Machine::preset("\u{1b}[2J").unwrap_err().to_string();
        assert!(!odd.contains(char::is_control), "{odd:?}");
    }
}
