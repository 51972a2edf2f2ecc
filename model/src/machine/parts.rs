//! What a machine is made of: levels and their steps, instruction costs, where numbers come
//! from.

use crate::geometry::PageSize;
#[cfg(feature = "json")]
use serde::{Deserialize, Serialize};

/// How a search goes from a node to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SearchStyle {
    /// A conditional jump to one of two loads, as compilers make of most searches. The processor
    /// runs ahead on its guess and loses time when it is wrong.
    #[default]
    Branches,
    /// Both links are loaded and one is selected, as compilers make of the smallest search loops.
    BranchFree,
}

/// Costs of a search apart from misses.
///
/// A search with branches takes `operation_ns + node_ns x nodes visited + misprediction_ns x
/// mispredictions`, a branch-free one `operation_ns + branch_free_node_ns x nodes visited`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
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

/// How far independent operations overlap, such as the lookups of a batch.
///
/// The processor gets ahead as far as its outstanding misses, its instruction window and, with
/// branches, its wrong guesses allow; [`Overlap`](crate::Overlap) has the formula.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct LookAhead {
    /// Far misses under way at once, when all loads are independent; at least 1.
    pub misses: f64,
    /// Visits of nodes, without branches, that the processor holds at once beyond those of the
    /// operation that it waits for.
    pub nodes_ahead: f64,
    /// How many times faster independent operations with branches get through their misses than
    /// operations that wait for each other; at least 1.
    pub branches: f64,
}

impl LookAhead {
    /// A processor that waits for every load.
    pub const NONE: LookAhead = LookAhead {
        misses: 1.0,
        nodes_ahead: 0.0,
        branches: 1.0,
    };

    /// What an Emerald Rapids showed, rounded; a Zen 5 had 18 to 20 misses under way.
    pub const USUAL: LookAhead = LookAhead {
        misses: 14.0,
        nodes_ahead: 20.0,
        branches: 1.0,
    };
}

/// A load that misses a cache of `capacity_bytes` costs `step_ns` more.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct Step {
    /// Effective capacity in bytes.
    pub capacity_bytes: f64,
    /// Added latency of a miss in nanoseconds.
    pub step_ns: f64,
}

/// What a level caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "lowercase"))]
pub enum LevelKind {
    /// Data: counts whatever the page size is.
    Data,
    /// Translations of pages of this size: counts for structures in such pages.
    Pages(PageSize),
}

/// One level of the memory hierarchy.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct Level {
    /// `L1`, `L2`, `L3`, `TLB-4k`, ...; unique within a machine.
    pub name: String,
    /// Data or translations.
    pub kind: LevelKind,
    /// Unit that moves on a miss, in bytes; a power of two.
    pub block_bytes: u64,
    /// Effective capacities with the latency that missing them adds, smallest capacity first; at
    /// least one.
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

    /// The TLBs for pages of 4 KiB: bytes that each reaches, and what missing it costs.
    pub(super) fn of_small_pages(tlbs: [(u64, f64); 2]) -> Level {
        let pages = PageSize::Small4K;
        let steps = tlbs.map(|(bytes, step_ns)| Step {
            capacity_bytes: bytes as f64,
            step_ns,
        });
        Level {
            name: "TLB-4k".to_owned(),
            kind: LevelKind::Pages(pages),
            block_bytes: pages.bytes(),
            steps: steps.to_vec(),
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

/// A part of the latency of far misses (of all data levels but the first) that is paid once for
/// each block of this size in which an operation misses a line, however many lines that are.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "json", serde(deny_unknown_fields))]
pub struct NeighbourShare {
    /// Size of the block in bytes, a power of two.
    pub block_bytes: u64,
    /// The part, from 0 to 1; the parts of one machine add up to 1 at most.
    pub share: f64,
}

/// Where a machine's numbers come from.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
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
