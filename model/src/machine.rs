//! What a prediction knows of a machine: levels of the memory hierarchy as capacities and steps of
//! latency.
//!
//! Nominal sizes do not predict time: other programs use a shared cache, pages move the latency,
//! replacement is not quite LRU. So a level is a list of measured [`Step`]s: *a load whose block is
//! not in a cache of `capacity_bytes` costs `step_ns` more*. With `M(C)` the misses of an operation
//! at capacity `C` ([`Footprint::misses`](crate::Footprint)),
//!
//! ```text
//! ns = CPU part + sum over levels, over steps of M(capacity) x step_ns
//! ```

use std::sync::OnceLock;

#[cfg(feature = "json")]
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::footprint::Replacement;
use crate::geometry::PageSize;
use crate::hierarchy::Hierarchy;
use crate::topology::Topology;

mod check;
mod confidence;
mod evidence;
mod parts;
mod presets;

pub use confidence::ErrorBand;
pub use evidence::{
    ChaseReading, ColourProbe, CurvePoint, Evidence, Quietness, TranslationLevel, TranslationProbe,
    Verdict,
};
pub use parts::{
    Level, LevelKind, LookAhead, NeighbourShare, Origin, SearchCosts, SearchStyle, Step,
};
pub use presets::Preset;

/// Version of the machine file format; files of another version are refused.
pub(crate) const MACHINE_FORMAT: u32 = 2;

/// Nanoseconds of a walk through the page table, where nothing was measured.
const WALK_NS: f64 = 10.0;
/// Instruction costs where nothing was measured.
const DEFAULT_SEARCH: SearchCosts = SearchCosts {
    operation_ns: 8.0,
    node_ns: 1.5,
    misprediction_ns: 6.0,
    branch_free_node_ns: 3.0,
};

/// Neighbour shares where nothing was measured: between an AMD Zen 5, which delivers 256 bytes at
/// once, and an Intel Emerald Rapids, on which the 4 KiB page counts most.
const DEFAULT_NEIGHBOURS: [NeighbourShare; 2] = [
    NeighbourShare {
        block_bytes: 256,
        share: 0.4,
    },
    NeighbourShare {
        block_bytes: 4096,
        share: 0.3,
    },
];

/// A machine as the predictor sees it.
///
/// [`Machine::this`] costs nothing and knows sizes. [`Machine::calibrate`](Machine::calibrate)
/// takes some seconds and knows latencies; only its predictions can be compared with a clock.
///
/// What a constructor returns passes [`check`](Machine::check). The fields are public, to ask what
/// a larger cache or a cheaper miss would change. Numbers that `check` refuses give predictions
/// without meaning, or a panic where it is documented.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct Machine {
    pub(crate) format: u32,
    /// Name of the processor or of the preset.
    pub name: String,
    /// Where the numbers come from.
    pub origin: Origin,
    /// Instruction costs of a search.
    pub search: SearchCosts,
    /// How far independent work overlaps.
    pub overlap: LookAhead,
    /// How its caches replace.
    pub replacement: Replacement,
    /// The levels, the one next to the processor first.
    pub levels: Vec<Level>,
    /// What far misses near each other save, by ascending block size.
    #[cfg_attr(feature = "json", serde(default))]
    pub neighbours: Vec<NeighbourShare>,
    /// The caches and translation buffers as they are built, with their nominal sizes, where that
    /// is known.
    #[cfg_attr(feature = "json", serde(default))]
    pub hierarchy: Option<Hierarchy>,
    /// Measurements behind the levels; empty unless calibrated.
    #[cfg_attr(feature = "json", serde(default))]
    pub evidence: Evidence,
    /// What went wrong when the machine was measured and what is in doubt, a line each.
    #[cfg_attr(
        feature = "json",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub notes: Vec<String>,
}

impl Machine {
    /// A machine of the given levels with LRU replacement, origin [`Origin::Preset`], on which
    /// nothing overlaps and whose geometry is not known.
    ///
    /// # Errors
    /// Those of [`check`](Machine::check).
    pub fn new(name: &str, search: SearchCosts, levels: Vec<Level>) -> Result<Machine, Error> {
        let machine = Machine::of_levels(name, search, levels);
        machine.check()?;
        Ok(machine)
    }

    fn of_levels(name: &str, search: SearchCosts, levels: Vec<Level>) -> Machine {
        Machine {
            format: MACHINE_FORMAT,
            name: name.to_owned(),
            origin: Origin::Preset,
            search,
            overlap: LookAhead::NONE,
            replacement: Replacement::Lru,
            levels,
            neighbours: Vec::new(),
            hierarchy: None,
            evidence: Evidence::default(),
            notes: Vec::new(),
        }
    }

    /// This machine without measuring anything: cache sizes from its [topology](Topology),
    /// documented default latencies.
    ///
    /// Computed once for the process; later calls return the same value.
    ///
    /// Defaults, rounded from desktop and server processors of 2020 to 2025: a miss of L1 costs 4
    /// ns more than a hit, of L2 16 ns, of L3 90 ns; the first-level TLB holds 64 small pages (+2
    /// ns), the second 1536 (+10 ns); huge pages never miss. An L3 counts as half of its nominal
    /// size, and as at most 8 MiB under a hypervisor, whose other guests use the rest. Of a far
    /// miss, 40 % are paid once for each 256 bytes and 30 % once for each 4 KiB. Replacement is
    /// taken as random. [`hierarchy`](Machine::hierarchy) is [that of the
    /// topology](Topology::hierarchy).
    pub fn this() -> &'static Machine {
        static THIS: OnceLock<Machine> = OnceLock::new();
        THIS.get_or_init(|| Machine::from_topology(&Topology::this()))
    }

    /// The machine of a topology with the default latencies of [`Machine::this`].
    pub fn from_topology(topology: &Topology) -> Machine {
        let mut levels = Vec::new();
        for cache in topology.data_caches() {
            let size = cache.size_bytes as f64;
            let (capacity, step_ns) = match cache.level {
                1 => (size, 4.0),
                2 => (size, 16.0),
                _ if topology.virtualised.value => ((size / 2.0).min(8e6), 90.0),
                _ => (size / 2.0, 90.0),
            };
            let (name, line_bytes) = (format!("L{}", cache.level), cache.line_bytes);
            levels.push(Level::new(
                &name,
                LevelKind::Data,
                line_bytes,
                capacity,
                step_ns,
            ));
        }
        // Whatever the last cache is, missing it goes to memory.
        if let Some(last) = levels.last_mut() {
            last.steps[0].step_ns = 90.0;
        }
        let tlbs = [(64 << 12, 2.0), (1536 << 12, WALK_NS)];
        levels.push(Level::of_small_pages(tlbs));
        Machine {
            origin: Origin::Defaults,
            overlap: LookAhead::USUAL,
            replacement: Replacement::Random,
            neighbours: DEFAULT_NEIGHBOURS.to_vec(),
            hierarchy: topology.hierarchy(),
            ..Machine::of_levels(&topology.cpu_name.value, DEFAULT_SEARCH, levels)
        }
    }

    /// Levels that a structure in pages of this size meets.
    pub fn levels_for(&self, pages: PageSize) -> impl Iterator<Item = &Level> {
        self.levels.iter().filter(move |level| {
            level.kind == LevelKind::Data || level.kind == LevelKind::Pages(pages)
        })
    }

    /// The largest way of a cache whose sets addresses are known to choose: a page, or what
    /// [calibration](Machine::calibrate) found. [Colouring](crate::Colouring) larger caches may
    /// have no effect.
    pub fn colour_way_bytes(&self) -> u64 {
        let working = self.evidence.colours.iter().filter(|probe| probe.works());
        let ways = working.map(|probe| probe.way_bytes);
        ways.max().unwrap_or(0).max(PageSize::Small4K.bytes())
    }
}

#[cfg(feature = "json")]
impl Machine {
    /// Reads a machine file.
    ///
    /// # Errors
    /// When the text is no such file, or one of another version, or its numbers describe no
    /// machine.
    pub fn from_json(text: &str) -> Result<Machine, Error> {
        let syntax = |error| Error::new(format!("not a machine file: {error}"));
        // The version first: a file of another version must be told apart from a broken one.
        let value: serde_json::Value = serde_json::from_str(text).map_err(syntax)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            None => return Err(Error::new("not a machine file: no number called `format`")),
            Some(format) => check::check_format(format)?,
        }
        let machine: Machine = serde_json::from_value(value).map_err(syntax)?;
        machine.check()?;
        Ok(machine)
    }

    /// The machine file of this machine, indented for people.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests;
