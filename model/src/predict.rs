//! Misses and nanoseconds of one operation, from who is visited, where it lies, and what a miss costs.
//!
//! For each level of the machine, the [block probabilities](crate::BlockProbabilities) of the level's block size give the
//! misses at the level's capacities, and
//!
//! ```text
//! ns = operation_ns + node_ns x nodes visited + misprediction_ns x mispredictions
//!    + sum over levels, over their steps of waits(capacity) x step_ns
//! ```
//!
//! where the waits are the misses, less those that come with another one: both lines of a node that straddles are
//! requested at once.
//!
//! Where the machine says so, the misses of a far level cost less when they [lie near each
//! other](crate::NeighbourShare).
//!
//! What is assumed, and why it holds for the case this is made for, searches that depend on each other:
//!
//! - **Latencies add up.** The address of a child comes from its parent, so a node's miss cannot start before the
//!   parent's has ended. The processor runs ahead on a guessed branch, but only as far as data is there. Operations
//!   that do not wait for each other overlap: see [`Overlap`].
//! - **Mispredictions add up.** The compare that resolves a branch needs the same line as the next address, so the restart
//!   comes after the miss, not under it.
//! - **The wrong path's loads cost nothing.** They fetch siblings of visited nodes, with about the same probability at each
//!   depth; all blocks are then touched more often by one factor, which leaves what is cached as it was. This is the
//!   roughest of the three: random trees of 2^16 to 2^20 nodes took 0 to 20 % longer with branches than without,
//!   beyond the difference that the instruction costs predict.
//!
//! Measured against predicted nanoseconds, `cargo run --release -p ccmodel --example validate_bst`, 20 November 2026, a
//! virtual machine of two Emerald Rapids cores with other programs running: random-insert trees of 2^16 to 2^21 nodes of
//! 24 bytes, six layouts, both page sizes, calibrated before each set. Branch-free: 48 ratios from 0.79 to 1.27, 79 of 80
//! clearly different pairs of layouts ranked as measured. With branches: 46 of 48 ratios from 0.79 to 1.27, one of 1.37,
//! one of 2.30 in a disturbed set (the same layout had 1.24 in the other page size), 84 of 84 pairs. In later runs of the
//! same day, one each: branch-free 0.88 to 1.19, 77 of 77 pairs; with branches 0.88 to 1.18, 87 of 89.

use crate::colour::ColouredLevel;
use crate::footprint::{Replacement, absent};
use crate::machine::{ErrorBand, LevelKind, LookAhead, NeighbourShare};
use crate::neighbours::missed_blocks;
use crate::probability::BlockProbabilities;
use crate::{
    Footprint, FootprintBuilder, Level, Machine, NodeExtent, PageSize, Placement, SearchStyle,
    Shape, Visits,
};

/// Unit of [`SearchLevel::lines_per_visit`].
const LINE_BYTES: f64 = 64.0;

/// Misses of one operation at one level.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct LevelMisses {
    /// Name of the [`Level`].
    pub name: String,
    /// Loads of one operation that the level does not serve; for a level of several capacities their mean, weighted by
    /// the latencies.
    pub misses: f64,
    /// Nanoseconds of the operation that these misses cost.
    pub ns: f64,
    /// Blocks that one operation touches, over the blocks that the level holds.
    pub touched_share: f64,
}

impl LevelMisses {
    /// From this share of the level on, the order in which an operation touches its blocks counts: a long walk evicts what
    /// the next one starts with.
    ///
    /// Below it, lists were predicted at most 15 % too low in simulations and trees 2 %; at twice as much lists up to a
    /// third, trees 3 %; single lists that do not fit, whose share is a half and more, two times and more.
    pub const CROWDED_SHARE: f64 = 0.05;

    /// Whether the level misses, and one operation touches so much of it that more is missed than `misses` says.
    pub fn is_crowded(&self) -> bool {
        self.misses > 0.0 && self.touched_share > LevelMisses::CROWDED_SHARE
    }
}

/// Whether operations wait for each other.
///
/// With `c` the instruction part of a dependent operation, `w` what its misses cost, and the machine's
/// [`overlap`](Machine::overlap), an independent one takes
///
/// ```text
/// branch-free:    c / a + w / min(a, misses),        a = 1 + nodes_ahead / nodes visited
/// with branches:  c + w / min(branches, misses)
/// ```
///
/// Branch-free operations overlap as far as the processor holds instructions: `a` operations at once, and no more misses than it
/// can keep track of. With branches, every other guess is wrong where keys are random, and what was begun ahead of it is thrown
/// away.
///
/// **Only operations whose end can be foreseen overlap at all**: descents to leaves that are all as deep, walks of a known
/// length, batches. A search that stops where it finds its key ends with a guess that fails, and the next one begins after it,
/// independent or not: predict it as dependent. On an Emerald Rapids (two virtual processors, other programs running), independent
/// searches with an early exit in trees of 2^14 to 2^21 nodes took 0.96 to 1.02 of the time of dependent ones, whatever
/// layout and style. Branch-free descents of complete trees of 2^9 to 2^22 nodes of 64 bytes were 3.0 (2^9) to 1.9 (2^22) times faster,
/// where the formula with 20 nodes ahead says 3.2 to 1.9; those with branches 1.0 to 1.16 times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Overlap {
    /// What an operation does follows from the result of the one before.
    #[default]
    Dependent,
    /// The processor can begin operations before the ones before have ended, and tell where those end.
    Independent,
}

/// What one operation costs.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Prediction {
    /// Nanoseconds of one operation.
    pub ns: f64,
    /// Nanoseconds that it takes at least, and at most, as far as the [machine's numbers](Machine::error_band) can be trusted.
    pub ns_low: f64,
    /// See `ns_low`.
    pub ns_high: f64,
    /// The part of `ns` that has nothing to do with misses.
    pub cpu_ns: f64,
    /// Nodes that an operation visits.
    pub nodes_visited: f64,
    /// Misses for each level that the structure's pages meet, the level next to the processor first.
    pub levels: Vec<LevelMisses>,
}

impl Prediction {
    /// Misses at the level of this name, if the machine has one.
    pub fn misses(&self, level: &str) -> Option<f64> {
        self.levels
            .iter()
            .find(|other| other.name == level)
            .map(|level| level.misses)
    }

    /// Levels for which operations are too long for the model, lists and large nodes most of all: they
    /// [miss more](LevelMisses::is_crowded) than is predicted.
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

/// Sums a level's steps: misses (weighted mean) and nanoseconds.
fn level_misses(level: &Level, footprint: &Footprint, replacement: Replacement) -> LevelMisses {
    let (mut ns, mut weighted, mut plain) = (0.0, 0.0, 0.0);
    for step in &level.steps {
        let (misses, waits) =
            footprint.misses_and_waits(step.capacity_bytes / level.block_bytes as f64, replacement);
        ns += waits * step.step_ns;
        weighted += misses * step.step_ns;
        plain += misses;
    }
    let step_ns = level.step_ns();
    LevelMisses {
        name: level.name.clone(),
        misses: if step_ns > 0.0 {
            weighted / step_ns
        } else {
            plain / level.steps.len().max(1) as f64
        },
        ns,
        touched_share: touched_share(level, footprint),
    }
}

/// Blocks that an operation touches over those that the level holds.
fn touched_share(level: &Level, footprint: &Footprint) -> f64 {
    let capacity_blocks = level.capacity_bytes() / level.block_bytes as f64;
    if capacity_blocks > 0.0 {
        footprint.touches() / capacity_blocks
    } else {
        0.0
    }
}

/// Predicts searches in one shape under any number of placements.
///
/// Construction walks the shape once, O(n); each prediction then costs O(n) for each block size of the machine.
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

    /// Searches that end at node `v` with a frequency in proportion to `weights[v]`, as in [`Visits::weighted`].
    ///
    /// # Panics
    /// When there is not exactly one weight for each node.
    pub fn weighted(shape: &Shape, weights: &[f64]) -> Predictor {
        Predictor::with_visits(Visits::weighted(shape, weights))
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

    /// States that a visit reads only the first `bytes` bytes of a node, instead of its whole extent.
    #[must_use]
    pub fn touched_bytes(mut self, bytes: u32) -> Predictor {
        self.touched_bytes = Some(bytes);
        self
    }

    /// States how the search goes from node to node; [`SearchStyle::Branches`] unless told otherwise.
    #[must_use]
    pub fn style(mut self, style: SearchStyle) -> Predictor {
        self.style = style;
        self
    }

    /// States whether operations wait for each other; [`Overlap::Dependent`] unless told otherwise.
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Predictor {
        self.overlap = overlap;
        self
    }

    /// How often nodes are visited.
    pub fn visits(&self) -> &Visits {
        &self.visits
    }

    /// Misses and nanoseconds of one search.
    ///
    /// # Panics
    /// When the placement has not as many nodes as the shape, or the machine was changed into one whose block sizes are
    /// no powers of two, which [`Machine::check`] tells.
    pub fn predict(
        &self,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
    ) -> Prediction {
        self.predict_parts(placement, node, pages, machine, None)
    }

    /// As [`predict`](Predictor::predict), with one level divided among hot and other nodes, who share no block of it.
    pub(crate) fn predict_parts(
        &self,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
        parts: Option<ColouredLevel<'_>>,
    ) -> Prediction {
        let touched = self
            .touched_bytes
            .map_or(node.bytes, |bytes| bytes.min(node.bytes));
        let mut seen = SeenBlocks {
            predictor: self,
            placement,
            touched_bytes: touched,
            replacement: machine.replacement,
            sizes: Vec::new(),
        };
        let mut levels = Vec::new();
        for (i, level) in machine.levels_for(pages).enumerate() {
            let mut misses = match parts.filter(|parts| parts.name == level.name) {
                Some(parts) => seen.divided_misses(level, parts),
                None => level_misses(
                    level,
                    seen.footprint(level.block_bytes),
                    machine.replacement,
                ),
            };
            if i > 0 && level.kind == LevelKind::Data {
                misses.ns *= seen.neighbour_factor(level, &machine.neighbours);
            }
            levels.push(misses);
        }
        let (nodes, costs) = (self.visits.nodes_per_operation(), machine.search);
        let mut cpu_ns = if self.visits.is_empty() {
            0.0
        } else {
            let mispredictions = self.visits.mispredictions_per_operation();
            costs.operation_ns
                + match self.style {
                    SearchStyle::Branches => {
                        costs.node_ns * nodes + costs.misprediction_ns * mispredictions
                    }
                    SearchStyle::BranchFree => costs.branch_free_node_ns * nodes,
                }
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

    /// How many independent operations are under way at once, as far as instructions and as far as misses are concerned.
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

/// Block probabilities of one placement, computed once for each block size that is asked for.
struct SeenBlocks<'a> {
    predictor: &'a Predictor,
    placement: &'a Placement,
    touched_bytes: u32,
    replacement: Replacement,
    sizes: Vec<(BlockProbabilities, Footprint)>,
}

impl SeenBlocks<'_> {
    fn index(&mut self, block_bytes: u64) -> usize {
        let known = self
            .sizes
            .iter()
            .position(|(blocks, _)| blocks.block_bytes() == block_bytes);
        known.unwrap_or_else(|| {
            let visits = &self.predictor.visits;
            let blocks =
                BlockProbabilities::new(visits, self.placement, self.touched_bytes, block_bytes);
            let footprint = blocks.footprint();
            self.sizes.push((blocks, footprint));
            self.sizes.len() - 1
        })
    }

    fn footprint(&mut self, block_bytes: u64) -> &Footprint {
        let index = self.index(block_bytes);
        &self.sizes[index].1
    }

    /// Misses of a level that is divided among the nodes.
    fn divided_misses(&self, level: &Level, parts: ColouredLevel<'_>) -> LevelMisses {
        let of = |is_hot: bool, share: f64| {
            let blocks = BlockProbabilities::of_part(
                &self.predictor.visits,
                self.placement,
                self.touched_bytes,
                level.block_bytes,
                |v| parts.hot[v as usize] == is_hot,
            );
            let mut part = level.clone();
            for step in &mut part.steps {
                step.capacity_bytes *= share;
            }
            level_misses(&part, &blocks.footprint(), self.replacement)
        };
        let (hot, cold) = (of(true, parts.hot_share), of(false, 1.0 - parts.hot_share));
        LevelMisses {
            name: hot.name,
            misses: hot.misses + cold.misses,
            ns: hot.ns + cold.ns,
            // The fuller part is the one that is crowded.
            touched_share: hot.touched_share.max(cold.touched_share),
        }
    }

    /// What the misses of a level cost, as a share of what they would cost if none had a neighbour.
    fn neighbour_factor(&mut self, level: &Level, neighbours: &[NeighbourShare]) -> f64 {
        let mut larger_blocks = neighbours
            .iter()
            .filter(|other| other.block_bytes > level.block_bytes)
            .peekable();
        if larger_blocks.peek().is_none() {
            return 1.0;
        }
        let index = self.index(level.block_bytes);
        let footprint = &self.sizes[index].1;
        let capacity = level.capacity_bytes() / level.block_bytes as f64;
        let time = footprint.characteristic_time(capacity, self.replacement);
        // The costs count waits, so the share does too: the lines of one node are requested together, and that they have
        // neighbours is no news.
        let (_, waits) = footprint.misses_and_waits_at(time, self.replacement);
        if waits <= 0.0 {
            return 1.0;
        }
        let mut factor = 1.0;
        for neighbour in larger_blocks {
            let larger = self.index(neighbour.block_bytes);
            let blocks = missed_blocks(
                &self.sizes[index].0,
                &self.sizes[larger].0,
                time,
                self.replacement,
            );
            factor -= neighbour.share * (1.0 - (blocks / waits).min(1.0));
        }
        factor.max(0.0)
    }
}

/// Nanoseconds that the far misses of a search would cost if only the first missed line of each block did, for each of
/// `block_sizes`.
pub(crate) fn far_costs(
    predictor: &Predictor,
    placement: &Placement,
    levels: &[Level],
    replacement: Replacement,
    block_sizes: &[u64],
) -> Vec<f64> {
    let mut seen = SeenBlocks {
        predictor,
        placement,
        touched_bytes: 1,
        replacement,
        sizes: Vec::new(),
    };
    let mut costs = vec![0.0; block_sizes.len()];
    for level in levels
        .iter()
        .skip(1)
        .filter(|level| level.kind == LevelKind::Data)
    {
        let ns = level_misses(level, seen.footprint(level.block_bytes), replacement).ns;
        for (cost, &block_bytes) in costs.iter_mut().zip(block_sizes) {
            let all = NeighbourShare {
                block_bytes,
                share: 1.0,
            };
            *cost += ns * seen.neighbour_factor(level, &[all]);
        }
    }
    costs
}

/// Misses and nanoseconds of one successful search for a uniformly distributed key, each node being the goal equally
/// often and all of a visited node being read.
///
/// O(n) for each block size of the machine (about 0.1 s for two million nodes and two block sizes). For several
/// placements of one shape use a [`Predictor`].
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

/// One level of a structure whose search visits exactly one node on each level: a B-tree, an implicit search tree, a
/// directory over a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchLevel {
    /// Nodes on the level; a search visits each of them equally often.
    pub nodes: f64,
    /// Bytes from one node to the next.
    pub node_bytes: f64,
    /// 64-byte lines of the node that one visit reads, on average.
    pub lines_per_visit: f64,
    /// How many of these reads wait for each other: 1 when all lines are requested together, `lines_per_visit` when each
    /// address comes from the line before, 0 when the node was requested in time on the level above.
    pub rounds_per_visit: f64,
    /// Instructions of one visit whose data is in the first-level cache, in nanoseconds.
    pub cpu_ns_per_visit: f64,
}

impl SearchLevel {
    /// Blocks of `block_bytes` on the level, and how many of them one visit touches.
    fn blocks(&self, block_bytes: f64) -> (f64, f64) {
        let blocks = (self.nodes * self.node_bytes / block_bytes).max(1.0);
        let lines = self.lines_per_visit.max(0.0);
        let touched = if block_bytes <= LINE_BYTES {
            lines * LINE_BYTES / block_bytes
        } else {
            // All lines of one node lie in one larger block, unless the node spans several.
            lines.min((self.node_bytes / block_bytes).max(1.0))
        };
        (blocks, touched.min(blocks))
    }
}

/// Misses and nanoseconds of one search through `levels`, topmost first. O(levels), whatever the number of nodes.
///
/// `operation_ns` of the machine is added once; `node_ns` and mispredictions are replaced by each level's
/// `cpu_ns_per_visit`. Misses count lines; the time counts rounds of them.
pub fn predict_levels(levels: &[SearchLevel], pages: PageSize, machine: &Machine) -> Prediction {
    let usable: Vec<SearchLevel> = levels
        .iter()
        .copied()
        .filter(|level| level.nodes > 0.0 && level.node_bytes > 0.0)
        .collect();
    let misses = machine
        .levels_for(pages)
        .map(|level| {
            let block = level.block_bytes as f64;
            let mut builder = FootprintBuilder::new();
            for part in &usable {
                let (blocks, touched) = part.blocks(block);
                builder.add(touched / blocks, blocks);
            }
            let footprint = builder.finish();
            // Misses cost time by rounds: one for the whole node when its lines are requested together.
            let (mut ns, mut weighted) = (0.0, 0.0);
            for step in &level.steps {
                let time =
                    footprint.characteristic_time(step.capacity_bytes / block, machine.replacement);
                for part in &usable {
                    let (blocks, touched) = part.blocks(block);
                    let missed = absent(touched / blocks, time, machine.replacement);
                    let rounds = part.rounds_per_visit.max(0.0).min(touched);
                    ns += rounds * missed * step.step_ns;
                    weighted += touched * missed * step.step_ns;
                }
            }
            let step_ns = level.step_ns();
            LevelMisses {
                name: level.name.clone(),
                misses: if step_ns > 0.0 {
                    weighted / step_ns
                } else {
                    0.0
                },
                ns,
                touched_share: touched_share(level, &footprint),
            }
        })
        .collect();
    let cpu_ns = if usable.is_empty() {
        0.0
    } else {
        machine.search.operation_ns
            + usable
                .iter()
                .map(|level| level.cpu_ns_per_visit)
                .sum::<f64>()
    };
    Prediction::of(cpu_ns, usable.len() as f64, misses, machine.error_band())
}

#[cfg(test)]
mod tests;
