//! Misses and nanoseconds of one operation.
//!
//! For each level of the machine, the [block probabilities](crate::BlockProbabilities) at the
//! level's block size give the misses at the level's capacities, and
//!
//! ```text
//! ns = operation_ns + node_ns x nodes visited + misprediction_ns x mispredictions
//!    + sum over levels, over their steps of waits(capacity) x step_ns
//! ```
//!
//! Waits are the misses that an operation waits for: both lines of a node that straddles are
//! requested at once. The misses of a far level cost less when they [lie near each
//! other](crate::NeighbourShare). A measured machine has capacities, which say what a program gets
//! of caches that it shares. A [preset](Machine::preset) has sets: there, the misses of
//! [`Predictor::predict_accesses`] are those of [`predict_misses`](crate::predict_misses).
//!
//! Measured over predicted nanoseconds on a virtual machine of two Emerald Rapids cores, November
//! 2026: searches in random-insert and complete trees of 2^16 to 2^22 nodes of 24 bytes, six
//! layouts, both page sizes, calibrated before each set: 0.79 to 1.27 in 190 of 192 timings.

mod levels;
mod search_levels;

use levels::BlockSizes;
#[cfg(feature = "calibrate")]
pub(crate) use levels::far_costs;
pub(crate) use levels::{ColouredLevel, Known, TierMisses, geometry_for};
pub use search_levels::{SearchLevel, predict_levels};

use crate::machine::{ErrorBand, LevelKind, LookAhead};
use crate::probability::Reads;
use crate::simulator::Frames;
use crate::{
    Accesses, Lengths, Machine, NodeExtent, PageSize, Placement, SearchStyle, Shape, Tier, Visits,
    tiers,
};

/// Chooses the frames that a replay of a preset's caches takes.
const FRAMES_SEED: u64 = 0;

/// Misses of one operation at one level.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct LevelMisses {
    /// Name of the [`Level`](crate::Level).
    pub name: String,
    /// Loads of one operation that the level does not serve; for a level of several capacities
    /// their mean, weighted by the latencies.
    pub misses: f64,
    /// Nanoseconds of the operation that these misses cost.
    pub ns: f64,
    /// Blocks that one operation touches, over the blocks that the level holds.
    pub touched_share: f64,
    /// Whether the order in which operations touch blocks is known, and `misses` counts with it: of
    /// walks, and of searches in a single list.
    pub order_known: bool,
}

impl LevelMisses {
    /// From this share of the level on, `misses` is too low where the order of the reads is not
    /// known: a long operation evicts what the next one starts with. Trees that touch less were
    /// predicted a few percent too low at most.
    pub const CROWDED_SHARE: f64 = 0.2;

    /// Whether one operation touches so much of the level that more is missed than `misses` says.
    pub fn is_crowded(&self) -> bool {
        let is_long = self.touched_share > LevelMisses::CROWDED_SHARE;
        is_long && self.misses > 0.0 && !self.order_known
    }
}

/// Whether operations wait for each other.
///
/// With `c` the instruction part of a dependent operation, `w` what its misses cost, and the
/// machine's [`overlap`](Machine::overlap), an independent one takes
///
/// ```text
/// branch-free:    c / a + w / min(a, misses),        a = 1 + nodes_ahead / nodes visited
/// with branches:  c + w / min(branches, misses)
/// ```
///
/// Only operations whose end can be foreseen overlap at all: descents to leaves that are all as
/// deep, walks of a known length, batches. Predict a search that stops where it finds its key as
/// dependent: it ends with a wrong guess, and the next one begins after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Overlap {
    /// What an operation does follows from the result of the one before.
    #[default]
    Dependent,
    /// The processor can begin operations before the ones before have ended, and tell where those
    /// end.
    Independent,
}

/// What one operation costs.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Prediction {
    /// Nanoseconds of one operation.
    pub ns: f64,
    /// The least nanoseconds to expect, by the [machine's error band](Machine::error_band).
    pub ns_low: f64,
    /// The most nanoseconds to expect.
    pub ns_high: f64,
    /// The part of `ns` that has nothing to do with misses.
    pub cpu_ns: f64,
    /// Nodes that an operation visits.
    pub nodes_visited: f64,
    /// Misses for each level, the level next to the processor first.
    pub levels: Vec<LevelMisses>,
}

impl Prediction {
    /// Misses at the level of this name, if the machine has one.
    pub fn misses(&self, level: &str) -> Option<f64> {
        let mut levels = self.levels.iter();
        Some(levels.find(|other| other.name == level)?.misses)
    }

    /// Levels that [miss more](LevelMisses::is_crowded) than is predicted.
    pub fn crowded_levels(&self) -> impl Iterator<Item = &LevelMisses> {
        self.levels.iter().filter(|level| level.is_crowded())
    }

    fn of(
        cpu_ns: f64,
        nodes_visited: f64,
        levels: Vec<LevelMisses>,
        band: ErrorBand,
    ) -> Prediction {
        let ns = cpu_ns + levels.iter().map(|level| level.ns).sum::<f64>();
        Prediction {
            ns,
            ns_low: ns * band.low,
            ns_high: ns * band.high,
            cpu_ns,
            nodes_visited,
            levels,
        }
    }
}

/// Predicts searches in one shape under any number of placements. Each prediction costs O(n) for
/// each block size of the machine.
#[derive(Clone, Debug)]
pub struct Predictor {
    visits: Visits,
    touched_bytes: Option<u32>,
    style: SearchStyle,
    overlap: Overlap,
}

impl Predictor {
    /// Searches that end at each node equally often.
    pub fn new(shape: &Shape) -> Predictor {
        Predictor::with_visits(Visits::uniform(shape))
    }

    /// Searches that end at node `v` with a frequency in proportion to `weights[v]`, as in
    /// [`Visits::weighted`].
    ///
    /// # Panics
    /// When there is not exactly one weight for each node.
    pub fn weighted(shape: &Shape, weights: &[f64]) -> Predictor {
        Predictor::with_visits(Visits::weighted(shape, weights))
    }

    /// [`new`](Predictor::new), or [`weighted`](Predictor::weighted) where there are weights.
    pub(crate) fn of_ends(shape: &Shape, weights: Option<&[f64]>) -> Predictor {
        match weights {
            Some(weights) => Predictor::weighted(shape, weights),
            None => Predictor::new(shape),
        }
    }

    /// Operations that read `accesses`.
    pub fn of(accesses: &Accesses) -> Predictor {
        Predictor::with_visits(accesses.visits().clone())
    }

    /// Searches with the given probabilities of visit.
    pub fn with_visits(visits: Visits) -> Predictor {
        Predictor {
            visits,
            touched_bytes: None,
            style: SearchStyle::default(),
            overlap: Overlap::default(),
        }
    }

    /// States that a visit reads only the first `bytes` bytes of a node.
    #[must_use]
    pub fn touched_bytes(mut self, bytes: u32) -> Predictor {
        self.touched_bytes = Some(bytes);
        self
    }

    /// States how the search goes from node to node; by default [`SearchStyle::Branches`].
    #[must_use]
    pub fn style(mut self, style: SearchStyle) -> Predictor {
        self.style = style;
        self
    }

    /// States whether operations wait for each other; by default [`Overlap::Dependent`].
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Predictor {
        self.overlap = overlap;
        self
    }

    /// How often nodes are visited.
    pub fn visits(&self) -> &Visits {
        &self.visits
    }

    /// Misses and nanoseconds of one search, from the effective capacities of the levels. Where
    /// the sets of a machine's caches are known, [`predict_accesses`](Predictor::predict_accesses)
    /// knows more.
    ///
    /// # Panics
    /// When the placement has not as many nodes as the shape, or the machine was changed into one
    /// whose block sizes are no powers of two, which [`Machine::check`] tells.
    pub fn predict(
        &self,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
    ) -> Prediction {
        self.predict_divided(placement, node, pages, machine, None)
    }

    /// As [`predict`](Predictor::predict), with one level divided among hot and other nodes.
    pub(crate) fn predict_divided(
        &self,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
        divided: Option<ColouredLevel<'_>>,
    ) -> Prediction {
        let touched = self.touched_bytes.unwrap_or(node.bytes).min(node.bytes);
        let lengths = Lengths::Uniform(touched);
        let known = Known {
            divided,
            ..Known::of_reads(Reads::new(&self.visits, placement, &lengths))
        };
        self.predict_known(known, pages, machine)
    }

    /// Misses and nanoseconds of one operation that reads `accesses`: from the effective
    /// capacities of the machine's levels, or, of a [preset](Machine::presets), from the sets of
    /// its caches.
    ///
    /// # Panics
    /// As [`predict`](Predictor::predict).
    ///
    /// # Examples
    /// ```
    /// use ccmodel::{
    ///     Growth, KeyDistribution, Layout, Machine, NodeExtent, Operation, PageSize, Predictor,
    ///     Sizes, Structure,
    /// };
    ///
    /// let sizes = Sizes::of(NodeExtent::new(40, 8)?);
    /// let growth = Growth::RandomInsert { seed: 1 };
    /// let quadtree = Structure::PointTree { dimensions: 2, growth }.build(50_000, &sizes)?;
    /// let machine = Machine::preset("zen4-desktop")?;
    /// let ns = |layout: Layout| -> Result<f64, Box<dyn std::error::Error>> {
    ///     let placement = quadtree.place(layout);
    ///     let keys = KeyDistribution::Uniform;
    ///     let accesses = quadtree.accesses(&placement, Operation::Search, &keys)?;
    ///     let predictor = Predictor::of(&accesses);
    ///     Ok(predictor.predict_accesses(&accesses, PageSize::Small4K, &machine).ns)
    /// };
    /// assert!(ns(Layout::Hierarchical)? < ns(Layout::Allocated)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn predict_accesses(
        &self,
        accesses: &Accesses,
        pages: PageSize,
        machine: &Machine,
    ) -> Prediction {
        let found = geometry_for(machine, Tier::Auto).map(|hierarchy| {
            let frames = match pages {
                // A machine without translation shows its caches the program's addresses.
                PageSize::Small4K if !hierarchy.tlbs().is_empty() => Frames::Random {
                    pages,
                    seed: FRAMES_SEED,
                },
                PageSize::Small4K | PageSize::Huge2M => Frames::Identity,
            };
            let found = tiers::predict_misses(accesses, hierarchy, frames, Tier::Auto, None);
            TierMisses::new(found, hierarchy, pages)
        });
        let known = Known {
            found: found.as_ref(),
            ..Known::of(accesses)
        };
        self.predict_known(known, pages, machine)
    }

    /// Every prediction: misses and waits level by level, then the time.
    pub(crate) fn predict_known(
        &self,
        known: Known<'_>,
        pages: PageSize,
        machine: &Machine,
    ) -> Prediction {
        let mut blocks = BlockSizes::new(known, machine.replacement);
        let mut levels = Vec::new();
        for (i, level) in machine.levels_for(pages).enumerate() {
            let mut misses = blocks.level_misses(level);
            if i > 0 && level.kind == LevelKind::Data {
                misses.ns *= blocks.neighbour_factor(level, &machine.neighbours);
            }
            levels.push(misses);
        }
        self.with_instructions(levels, machine)
    }

    /// The whole of an operation whose misses are known.
    pub(crate) fn with_instructions(
        &self,
        mut levels: Vec<LevelMisses>,
        machine: &Machine,
    ) -> Prediction {
        let (nodes, costs) = (self.visits.nodes_per_operation(), machine.search);
        let mispredictions = self.visits.mispredictions_per_operation();
        let visits_ns = match self.style {
            SearchStyle::Branches => {
                costs.node_ns * nodes + costs.misprediction_ns * mispredictions
            }
            SearchStyle::BranchFree => costs.branch_free_node_ns * nodes,
        };
        let mut cpu_ns = match nodes > 0.0 {
            true => costs.operation_ns + visits_ns,
            false => 0.0,
        };
        if self.overlap == Overlap::Independent {
            let (at_once, misses_at_once) = self.at_once(nodes, machine.overlap);
            cpu_ns /= at_once;
            for level in &mut levels {
                level.ns /= misses_at_once;
            }
        }
        Prediction::of(cpu_ns, nodes, levels, machine.error_band())
    }

    /// How many independent operations are under way at once, as far as instructions and as far as
    /// misses are concerned.
    fn at_once(&self, nodes: f64, look_ahead: LookAhead) -> (f64, f64) {
        let (operations, misses) = match self.style {
            SearchStyle::Branches => (1.0, look_ahead.branches),
            SearchStyle::BranchFree => {
                let operations = 1.0 + look_ahead.nodes_ahead / nodes.max(1.0);
                (operations, operations)
            }
        };
        (operations, misses.min(look_ahead.misses).max(1.0))
    }
}

/// Misses and nanoseconds of one successful search for a uniformly distributed key, all of a
/// visited node being read. For several placements of one shape use a [`Predictor`].
///
/// # Panics
/// As [`Predictor::predict`].
pub fn predict_tree(
    shape: &Shape,
    placement: &Placement,
    node: NodeExtent,
    pages: PageSize,
    machine: &Machine,
) -> Prediction {
    Predictor::new(shape).predict(placement, node, pages, machine)
}

#[cfg(test)]
mod tests;
