//! What a prediction knows of a machine: levels of the memory hierarchy as capacities and steps of latency.
//!
//! Nominal sizes do not predict time on today's machines. A last-level cache of 260 MB that a virtual machine shares with
//! strangers serves a few megabytes of it; pages move the latency; replacement is not quite LRU. So a level is described
//! by what can be measured: a list of [`Step`]s, each of which says *a load whose block is not in a cache of
//! `capacity_bytes` costs `step_ns` more*. With `M(C)` the misses of an operation at capacity `C`
//! ([`Footprint::misses`](crate::Footprint::misses)),
//!
//! ```text
//! ns = CPU part + sum over levels, over steps of M(capacity) x step_ns
//! ```
//!
//! A level that has one capacity has one step. A cache whose hit ratio falls off gradually has several, and
//! [calibration](crate::CalibrateOptions) finds them from a latency curve without knowing the levels in advance.

use std::fmt;
use std::sync::OnceLock;

use crate::footprint::Replacement;
use crate::topology::Topology;

/// Version of the machine file format; files of another version are refused.
pub const MACHINE_FORMAT: u32 = 1;

/// Bounds that no real machine leaves; files outside are refused as absurd.
const MAX_NS: f64 = 1e6;
const MAX_CAPACITY_BYTES: f64 = (1u64 << 50) as f64;
const MAX_BLOCK_BYTES: u64 = 1 << 30;
/// Each level costs a pass over the structure, each block size one more, so that a file must not ask for many.
const MAX_LEVELS: usize = 16;
const MAX_STEPS: usize = 256;
const MAX_NOTES: usize = 16;
/// Smallest block whose lines are neighbours. Sizes ascend, so that up to `MAX_BLOCK_BYTES` there are 25 of them.
const MIN_NEIGHBOUR_BYTES: u64 = 64;

/// Neighbour shares where nothing was measured: between an AMD Zen 5, which delivers 256 bytes at once, and an Intel
/// Emerald Rapids, on which the 4 KiB page counts most.
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

/// Size of the pages that the structure lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
pub enum PageSize {
    /// 4 KiB, what `malloc` gives unless told otherwise.
    #[default]
    #[cfg_attr(feature = "json", serde(rename = "4k"))]
    Small4K,
    /// 2 MiB, what `madvise(MADV_HUGEPAGE)` asks for.
    #[cfg_attr(feature = "json", serde(rename = "2m"))]
    Huge2M,
}

impl PageSize {
    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            PageSize::Small4K => 4 << 10,
            PageSize::Huge2M => 2 << 20,
        }
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PageSize::Small4K => "4k",
            PageSize::Huge2M => "2m",
        })
    }
}

/// How a search goes from a node to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SearchStyle {
    /// A conditional jump to one of two loads: what a compiler makes of a search that does anything else on the way.
    /// The processor runs ahead on its guess and loses time when it is wrong.
    #[default]
    Branches,
    /// Both links are loaded and one is selected: what a compiler makes of the smallest search loops.
    BranchFree,
}

/// Costs of a search that have nothing to do with misses.
///
/// A search with branches takes `operation_ns + node_ns x nodes visited + misprediction_ns x mispredictions`, a
/// branch-free one `operation_ns + branch_free_node_ns x nodes visited`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct SearchCosts {
    /// Fixed part of an operation, the misprediction at its end included, in nanoseconds.
    pub operation_ns: f64,
    /// Visiting one node that lies in the first-level cache, its branch predicted, in nanoseconds.
    pub node_ns: f64,
    /// One mispredicted branch, in nanoseconds.
    pub misprediction_ns: f64,
    /// Visiting one node that lies in the first-level cache without a branch, in nanoseconds.
    pub branch_free_node_ns: f64,
}

/// A load that misses a cache of `capacity_bytes` costs `step_ns` more.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct Step {
    /// Effective capacity in bytes.
    pub capacity_bytes: f64,
    /// Added latency of a miss in nanoseconds.
    pub step_ns: f64,
}

/// What a level caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "lowercase"))]
pub enum LevelKind {
    /// Data: counts whatever the page size is.
    Data,
    /// Translations of pages of this size: counts for structures in such pages.
    Pages(PageSize),
}

/// One level of the memory hierarchy.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct Level {
    /// `L1`, `L2`, `L3`, `TLB-4k`, ...; unique within a machine. A miss of level `L1` is a load that
    /// `L1` does not serve.
    pub name: String,
    /// Data or translations.
    pub kind: LevelKind,
    /// Unit that moves on a miss, in bytes; a power of two.
    pub block_bytes: u64,
    /// Effective capacities with the latency that missing them adds, smallest capacity first; at least one.
    pub steps: Vec<Step>,
}

impl Level {
    /// A level of one capacity.
    pub fn new(
        name: &str,
        kind: LevelKind,
        block_bytes: u64,
        capacity_bytes: f64,
        step_ns: f64,
    ) -> Level {
        Level {
            name: name.to_owned(),
            kind,
            block_bytes,
            steps: vec![Step {
                capacity_bytes,
                step_ns,
            }],
        }
    }

    /// Added latency of a load that misses all capacities of the level, in nanoseconds.
    pub fn step_ns(&self) -> f64 {
        self.steps.iter().map(|step| step.step_ns).sum()
    }

    /// Effective capacity in bytes: the mean of the steps' capacities, weighted by their latencies.
    pub fn capacity_bytes(&self) -> f64 {
        let total = self.step_ns();
        if total > 0.0 {
            let weighted = |step: &Step| step.capacity_bytes * step.step_ns;
            self.steps.iter().map(weighted).sum::<f64>() / total
        } else {
            self.steps.first().map_or(0.0, |step| step.capacity_bytes)
        }
    }
}

/// A part of the latency of far misses (of all data levels but the first) that is paid once for each block of this size
/// in which an operation misses a line, however many lines that are.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct NeighbourShare {
    /// Size of the block in bytes, a power of two.
    pub block_bytes: u64,
    /// The part, from 0 to 1; the parts of one machine add up to 1 at most.
    pub share: f64,
}

/// Where a machine's numbers come from.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "lowercase", deny_unknown_fields))]
pub enum Origin {
    /// Cache sizes of this machine, latencies that are usual for its kind.
    Defaults,
    /// A published machine.
    Preset,
    /// Measured.
    Calibrated {
        /// When, in seconds since 1970.
        unix_seconds: u64,
        /// Whether the short form of the calibration was used.
        quick: bool,
    },
}

/// One point of a measured latency curve: dependent loads of random lines in a working set.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct CurvePoint {
    /// Size of the working set.
    pub bytes: f64,
    /// Nanoseconds a load.
    pub ns: f64,
}

/// What calibration measured, kept beside what was concluded from it.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct Evidence {
    /// Latency curve in 4 KiB pages.
    pub small_pages: Vec<CurvePoint>,
    /// Latency curve in 2 MiB pages.
    pub huge_pages: Vec<CurvePoint>,
    /// Nanoseconds of a search in a tree whose aligned blocks of this many bytes were scattered; the last entry is the
    /// tree as it was.
    pub scattered: Vec<CurvePoint>,
    /// Whether colours keep parts of a cache apart, for each cache that was probed.
    #[cfg_attr(feature = "json", serde(default))]
    pub colours: Vec<ColourProbe>,
}

/// What loads of a few hot lines cost beside many cold ones, of the same colour of a cache and of another one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct ColourProbe {
    /// The size of a way of the cache.
    pub way_bytes: u64,
    /// Nanoseconds of a hot load and some cold ones, when the cold lines are of another colour.
    pub other_ns: f64,
    /// The same, when they are of the same colour.
    pub same_ns: f64,
    /// What a miss of the cache costs.
    pub miss_ns: f64,
}

impl ColourProbe {
    /// Of the hot loads, this part must be saved from missing.
    const SAVED_SHARE_MIN: f64 = 0.15;

    /// The part of the hot loads that the other colour saved from missing, about.
    pub fn saved_share(&self) -> f64 {
        if self.miss_ns > 0.0 {
            (self.same_ns - self.other_ns) / self.miss_ns
        } else {
            0.0
        }
    }

    /// Whether colours keep the two apart.
    pub fn works(&self) -> bool {
        self.saved_share() > ColourProbe::SAVED_SHARE_MIN
    }
}

/// A machine as the predictor sees it.
///
/// [`Machine::this`] costs nothing and knows sizes, [`Machine::calibrate`](Machine::calibrate) costs a second and knows
/// latencies; only the latter predicts nanoseconds that can be held against a clock.
///
/// What a constructor returns passes [`check`](Machine::check). The fields are open, to ask what would be if a cache were
/// larger or a miss cheaper; whoever changes them into numbers that `check` refuses gets predictions without meaning, or a
/// panic where it is documented.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct Machine {
    pub(crate) format: u32,
    /// Name of the processor or of the preset.
    pub name: String,
    /// Where the numbers come from.
    pub origin: Origin,
    /// Instruction costs of a search.
    pub search: SearchCosts,
    /// How its caches replace.
    pub replacement: Replacement,
    /// The levels, the one next to the processor first.
    pub levels: Vec<Level>,
    /// What far misses near each other save, by ascending block size; empty when every miss costs the same.
    #[cfg_attr(feature = "json", serde(default))]
    pub neighbours: Vec<NeighbourShare>,
    /// Measurements behind the levels; empty unless calibrated.
    #[cfg_attr(feature = "json", serde(default))]
    pub evidence: Evidence,
    /// What went wrong when the machine was measured, a line each; empty when nothing did.
    #[cfg_attr(
        feature = "json",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub notes: Vec<String>,
}

impl Machine {
    /// A machine of the given levels with LRU replacement, origin [`Origin::Preset`].
    ///
    /// # Errors
    /// [`MachineError`] when a number is absurd (negative, not finite, out of any machine's range), a block size is no
    /// power of two, or a name is empty, used twice or not printable.
    pub fn new(
        name: &str,
        search: SearchCosts,
        levels: Vec<Level>,
    ) -> Result<Machine, MachineError> {
        let machine = Machine {
            format: MACHINE_FORMAT,
            name: name.to_owned(),
            origin: Origin::Preset,
            search,
            replacement: Replacement::Lru,
            levels,
            neighbours: Vec::new(),
            evidence: Evidence::default(),
            notes: Vec::new(),
        };
        machine.check()?;
        Ok(machine)
    }

    /// This machine without measuring anything: cache sizes from its [topology](Topology), documented default latencies.
    ///
    /// Computed once for the process; later calls return the same value.
    ///
    /// Defaults, rounded from desktop and server processors of 2020 to 2025: a miss of L1 costs 4 ns more than a hit, of
    /// L2 16 ns, of L3 90 ns; the first-level TLB holds 64 small pages (+2 ns), the second 1536 (+10 ns); huge pages never
    /// miss. An L3 counts as half of its nominal size, and as at most 8 MiB under a hypervisor, whose other guests
    /// use the rest. Of a far miss, 40 % are paid once for each 256 bytes and 30 % once for each 4 KiB. Replacement is
    /// taken as random.
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
            levels.push(Level::new(
                &format!("L{}", cache.level),
                LevelKind::Data,
                cache.line_bytes,
                capacity,
                step_ns,
            ));
        }
        // Whatever the last cache is, missing it goes to memory.
        if let Some(last) = levels.last_mut() {
            last.steps[0].step_ns = 90.0;
        }
        let small = PageSize::Small4K;
        let reach = |pages: u64| (pages * small.bytes()) as f64;
        levels.push(Level {
            name: "TLB-4k".to_owned(),
            kind: LevelKind::Pages(small),
            block_bytes: small.bytes(),
            steps: vec![
                Step {
                    capacity_bytes: reach(64),
                    step_ns: 2.0,
                },
                Step {
                    capacity_bytes: reach(1536),
                    step_ns: 10.0,
                },
            ],
        });
        Machine {
            format: MACHINE_FORMAT,
            name: topology.cpu_name.value.clone(),
            origin: Origin::Defaults,
            search: SearchCosts {
                operation_ns: 8.0,
                node_ns: 1.5,
                misprediction_ns: 6.0,
                branch_free_node_ns: 3.0,
            },
            replacement: Replacement::Random,
            levels,
            neighbours: DEFAULT_NEIGHBOURS.to_vec(),
            evidence: Evidence::default(),
            notes: Vec::new(),
        }
    }

    /// The Sun Ultraserver E5000 of the thesis's section 2.3.1: 16 KB L1 with 16 B lines, 1 MB L2 with 64 B lines, a hit
    /// in 1 cycle of 167 MHz, misses 6 and 64 cycles more.
    ///
    /// The caches are direct-mapped there; the footprint tier takes them as fully associative and so predicts fewer misses
    /// than the machine had.
    pub fn thesis() -> Machine {
        let cycle_ns = 1e3 / 167.0;
        Machine {
            format: MACHINE_FORMAT,
            name: "Sun Ultraserver E5000 (thesis)".to_owned(),
            origin: Origin::Preset,
            search: SearchCosts {
                operation_ns: 0.0,
                node_ns: cycle_ns,
                misprediction_ns: 0.0,
                branch_free_node_ns: cycle_ns,
            },
            replacement: Replacement::Lru,
            levels: vec![
                Level::new(
                    "L1",
                    LevelKind::Data,
                    16,
                    f64::from(16 << 10),
                    6.0 * cycle_ns,
                ),
                Level::new(
                    "L2",
                    LevelKind::Data,
                    64,
                    f64::from(1 << 20),
                    64.0 * cycle_ns,
                ),
            ],
            neighbours: Vec::new(),
            evidence: Evidence::default(),
            notes: Vec::new(),
        }
    }

    /// Levels that a structure in pages of this size meets.
    pub fn levels_for(&self, pages: PageSize) -> impl Iterator<Item = &Level> {
        self.levels.iter().filter(move |level| {
            level.kind == LevelKind::Data || level.kind == LevelKind::Pages(pages)
        })
    }

    /// The largest way of a cache whose sets addresses are known to choose: a page, or what [calibration](Machine::calibrate)
    /// found. Larger caches can be [coloured](crate::Colouring) by what addresses say, but nobody knows to what effect.
    pub fn colour_way_bytes(&self) -> u64 {
        let working = self.evidence.colours.iter().filter(|probe| probe.works());
        let ways = working.map(|probe| probe.way_bytes);
        ways.max().unwrap_or(0).max(PageSize::Small4K.bytes())
    }

    /// Checks every number and name. O(number of levels, squared, and of their steps).
    ///
    /// # Errors
    /// [`MachineError`] when a number is absurd (negative, not finite, out of any machine's range), a block size is no
    /// power of two, capacities or neighbours' block sizes do not ascend, there are more than 16 levels, or a name is
    /// empty, used twice or holds control characters.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::Machine;
    ///
    /// let mut machine = Machine::thesis();
    /// machine.levels[1].steps[0].capacity_bytes *= 4.0;
    /// assert!(machine.check().is_ok());
    /// machine.levels[1].block_bytes = 48;
    /// assert!(machine.check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), MachineError> {
        if self.format != MACHINE_FORMAT {
            return Err(MachineError::Format {
                found: u64::from(self.format),
            });
        }
        let absurd = |what: String| Err(MachineError::Absurd { what });
        let times = [
            ("search.operation_ns", self.search.operation_ns),
            ("search.node_ns", self.search.node_ns),
            ("search.misprediction_ns", self.search.misprediction_ns),
            (
                "search.branch_free_node_ns",
                self.search.branch_free_node_ns,
            ),
        ];
        if let Some((what, ns)) = times
            .into_iter()
            .find(|&(_, ns)| !(0.0..=MAX_NS).contains(&ns))
        {
            return absurd(format!("{what} is {ns}"));
        }
        let texts = std::iter::once(&self.name).chain(&self.notes);
        if let Some(text) = { texts }.find(|text| text.contains(char::is_control)) {
            return absurd(format!("name or note {text:?} has control characters"));
        }
        if self.notes.len() > MAX_NOTES {
            return absurd(format!("it has {} notes", self.notes.len()));
        }
        if self.levels.is_empty() || self.levels.len() > MAX_LEVELS {
            return absurd(format!(
                "it has {} levels, not 1 to {MAX_LEVELS}",
                self.levels.len()
            ));
        }
        for (i, level) in self.levels.iter().enumerate() {
            let name = &level.name;
            if name.is_empty() || self.levels[..i].iter().any(|other| other.name == *name) {
                return absurd(format!("level name {name:?} is empty or used twice"));
            }
            if name.contains(char::is_control) {
                return absurd(format!("level name {name:?} has control characters"));
            }
            if !level.block_bytes.is_power_of_two() || level.block_bytes > MAX_BLOCK_BYTES {
                return absurd(format!("block_bytes of {name} is {}", level.block_bytes));
            }
            if level.steps.is_empty() || level.steps.len() > MAX_STEPS {
                return absurd(format!(
                    "{name} has {} steps, not 1 to {MAX_STEPS}",
                    level.steps.len()
                ));
            }
            for step in &level.steps {
                if !(1.0..=MAX_CAPACITY_BYTES).contains(&step.capacity_bytes) {
                    return absurd(format!(
                        "a capacity_bytes of {name} is {}",
                        step.capacity_bytes
                    ));
                }
                if !(0.0..=MAX_NS).contains(&step.step_ns) {
                    return absurd(format!("a step_ns of {name} is {}", step.step_ns));
                }
            }
            if !level
                .steps
                .is_sorted_by(|a, b| a.capacity_bytes < b.capacity_bytes)
            {
                return absurd(format!("capacities of {name} do not ascend"));
            }
        }
        let shares: f64 = self
            .neighbours
            .iter()
            .map(|neighbour| neighbour.share)
            .sum();
        let fits = |neighbour: &NeighbourShare| {
            neighbour.block_bytes.is_power_of_two()
                && (MIN_NEIGHBOUR_BYTES..=MAX_BLOCK_BYTES).contains(&neighbour.block_bytes)
                && (0.0..=1.0).contains(&neighbour.share)
        };
        let ascending = self
            .neighbours
            .is_sorted_by(|a, b| a.block_bytes < b.block_bytes);
        if !ascending || shares > 1.0 + 1e-9 || !self.neighbours.iter().all(fits) {
            return absurd(
                "neighbours are not shares of ascending power-of-two blocks that add up to 1 at most"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(feature = "json")]
impl Machine {
    /// Reads a machine file.
    ///
    /// # Errors
    /// [`MachineError::Syntax`] when the text is not such a file, [`MachineError::Format`] when it is one of another
    /// version, [`MachineError::Absurd`] when its numbers describe no machine.
    pub fn from_json(text: &str) -> Result<Machine, MachineError> {
        let syntax = |error: serde_json::Error| MachineError::Syntax {
            message: printable(&error.to_string()),
        };
        // The version first: a file of another version must be told apart from a broken one.
        let value: serde_json::Value = serde_json::from_str(text).map_err(syntax)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format == u64::from(MACHINE_FORMAT) => {}
            Some(found) => return Err(MachineError::Format { found }),
            None => {
                return Err(MachineError::Syntax {
                    message: "no number called `format`".to_owned(),
                });
            }
        }
        let machine: Machine = serde_json::from_value(value).map_err(syntax)?;
        machine.check()?;
        Ok(machine)
    }

    /// The machine file of this machine, indented for people.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// The text with its control characters escaped: messages repeat what a file holds, and go to terminals.
#[cfg(feature = "json")]
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            printable.extend(c.escape_default());
        } else {
            printable.push(c);
        }
    }
    printable
}

/// Why a description is no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MachineError {
    /// Not the JSON of a machine file.
    Syntax {
        /// What is wrong, with line and column where known.
        message: String,
    },
    /// A machine file of another version.
    Format {
        /// The version that was found.
        found: u64,
    },
    /// Numbers that no machine has.
    Absurd {
        /// Which one.
        what: String,
    },
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineError::Syntax { message } => write!(f, "not a machine file: {message}"),
            MachineError::Format { found } => write!(
                f,
                "machine file has format {found}, this program reads format {MACHINE_FORMAT}: calibrate again"
            ),
            MachineError::Absurd { what } => write!(f, "machine file describes no machine: {what}"),
        }
    }
}

impl core::error::Error for MachineError {}

#[cfg(test)]
mod tests;
