//! Misses and nanoseconds of one operation, from who is visited, where it lies, and what a miss
//! costs.
//!
//! For each level of the machine, the [block probabilities](crate::BlockProbabilities) of the
//! level's block size give the misses at the level's capacities, and
//!
//! ```text
//! ns = operation_ns + node_ns x nodes visited + misprediction_ns x mispredictions
//!    + sum over levels, over their steps of waits(capacity) x step_ns
//! ```
//!
//! where the waits are the misses, less those that come with another one: both lines of a node that
//! straddles are requested at once.
//!
//! Capacities say what a program gets of caches that it shares, and are what a measured machine
//! has. Of a [preset](Machine::preset) the caches are known as they are built, and the misses are
//! those of the [tiers](crate::predict_misses), which know its sets.
//!
//! Where the machine says so, the misses of a far level cost less when they [lie near each
//! other](crate::NeighbourShare).
//!
//! What is assumed, and why it holds for the case this is made for, searches that depend on each
//! other:
//!
//! - **Latencies add up.** The address of a child comes from its parent, so a node's miss cannot
//!   start before the parent's has ended. The processor runs ahead on a guessed branch, but only as
//!   far as data is there. Operations that do not wait for each other overlap: see [`Overlap`].
//! - **Mispredictions add up.** The compare that resolves a branch needs the same line as the next
//!   address, so the restart comes after the miss, not under it.
//! - **The wrong path's loads cost nothing.** They fetch siblings of visited nodes, with about the
//!   same probability at each depth; all blocks are then touched more often by one factor, which
//!   leaves what is cached as it was. This is the roughest of the three: with scattered nodes of a
//!   line each and more, searches with branches took up to 7 ns more for each wrong guess than the
//!   instruction costs predict; with nodes of 24 bytes hardly any.
//!
//! Measured against predicted nanoseconds ([`validate`](crate::validate::clock) has the method), a
//! virtual machine of two Emerald Rapids cores, November 2026, searches with branches and without
//! in random-insert and complete trees of 2^16 to 2^22 nodes of 24 bytes, six layouts, both page
//! sizes, calibrated before each set:
//!
//! | running beside it | timings | measured over predicted | mean error | clearly different pairs ranked as measured |
//! |---|---|---|---|---|
//! | other programs, number not recorded; random-insert trees up to 2^21 | 96 | 0.79 to 1.27, one 1.37, one 2.30 | | 163 of 164 |
//! | the same, later that day | 96 | 0.88 to 1.19 | | 164 of 166 |
//! | five to seven programs for each processor | 168 | 0.77 to 1.30 | 7.6 % | 296 of 306 |
//!
//! What is left is systematic in part: searches with branches took 5 % longer than predicted on the
//! whole, branch-free ones as long.

mod accesses;

use accesses::exposure;

use crate::colour::ColouredLevel;
use crate::footprint::{Replacement, absent};
use crate::machine::{ErrorBand, LevelKind, LookAhead, NeighbourShare, Origin};
use crate::neighbours::missed_blocks;
use crate::probability::BlockProbabilities;
use crate::tiers::{FrameMap, Sequence, Source, Tier, outcomes};
use crate::{
    Accesses, Footprint, FootprintBuilder, Level, Machine, NodeExtent, PageSize, Placement,
    SearchStyle, Shape, Visits,
};

/// Unit of [`SearchLevel::lines_per_visit`].
const LINE_BYTES: f64 = 64.0;

/// Misses of one operation at one level.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct LevelMisses {
    /// Name of the [`Level`].
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
    /// From this share of the level on, the order in which an operation touches its blocks counts:
    /// a long walk evicts what the next one starts with.
    ///
    /// Below it, lists were predicted at most 15 % too low in simulations and trees 2 %; at twice
    /// as much lists up to a third, trees 3 %; single lists that do not fit, whose share is a half
    /// and more, two times and more.
    pub const CROWDED_SHARE: f64 = 0.05;

    /// Whether the level misses, and one operation touches so much of it that more is missed than
    /// `misses` says.
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
/// Branch-free operations overlap as far as the processor holds instructions: `a` operations at
/// once, and no more misses than it can keep track of. With branches, every other guess is wrong
/// where keys are random, and what was begun ahead of it is thrown away.
///
/// **Only operations whose end can be foreseen overlap at all**: descents to leaves that are all as
/// deep, walks of a known length, batches. A search that stops where it finds its key ends with a
/// guess that fails, and the next one begins after it, independent or not: predict it as dependent.
/// On an Emerald Rapids (two virtual processors, other programs running), independent searches with
/// an early exit in trees of 2^14 to 2^21 nodes took 0.96 to 1.02 of the time of dependent ones,
/// whatever layout and style. Branch-free descents of complete trees of 2^9 to 2^22 nodes of 64
/// bytes were 3.0 (2^9) to 1.9 (2^22) times faster, where the formula with 20 nodes ahead says 3.2
/// to 1.9; those with branches 1.0 to 1.16 times. Predicted whole, branch-free descents of nodes of
/// 24 bytes took 1.01 to 1.19 of what was said from 2^18 to 2^22 nodes, and 0.74 to 0.76 at 2^16.
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
    /// Nanoseconds that it takes at least, and at most, as far as the [machine's
    /// numbers](Machine::error_band) can be trusted.
    pub ns_low: f64,
    /// See `ns_low`.
    pub ns_high: f64,
    /// The part of `ns` that has nothing to do with misses.
    pub cpu_ns: f64,
    /// Nodes that an operation visits.
    pub nodes_visited: f64,
    /// Misses for each level that the structure's pages meet, the level next to the processor
    /// first.
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

    /// Levels for which operations are too long for the model, lists and large nodes most of all:
    /// they [miss more](LevelMisses::is_crowded) than is predicted.
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

/// A level's misses and nanoseconds, by the footprint of its blocks.
///
/// `known` are the misses at each step where more than capacities are known; which share of them is
/// waited for is always taken from the capacity.
fn level_misses(
    level: &Level,
    footprint: &Footprint,
    replacement: Replacement,
    known: Option<&[f64]>,
) -> LevelMisses {
    sum_of_steps(level, footprint, |step, capacity_blocks| {
        let (misses, waits) = footprint.misses_and_waits(capacity_blocks, replacement);
        match known.and_then(|known| known.get(step)) {
            Some(&known) => (known, known * exposure(footprint, misses, waits)),
            None => (misses, waits),
        }
    })
}

/// Sums a level's steps: misses (their mean weighted by latency) and nanoseconds, from the misses
/// and waits of each step, by index and capacity in blocks.
fn sum_of_steps(
    level: &Level,
    footprint: &Footprint,
    mut misses_and_waits: impl FnMut(usize, f64) -> (f64, f64),
) -> LevelMisses {
    let (mut ns, mut weighted, mut plain) = (0.0, 0.0, 0.0);
    for (i, step) in level.steps.iter().enumerate() {
        let (misses, waits) = misses_and_waits(i, step.capacity_bytes / level.block_bytes as f64);
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
        order_known: false,
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
/// Construction walks the shape once, O(n); each prediction then costs O(n) for each block size of
/// the machine.
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

    /// Searches with the given probabilities of visit.
    pub fn with_visits(visits: Visits) -> Predictor {
        Predictor {
            visits,
            touched_bytes: None,
            style: SearchStyle::default(),
            overlap: Overlap::default(),
        }
    }

    /// States that a visit reads only the first `bytes` bytes of a node, instead of its whole
    /// extent.
    #[must_use]
    pub fn touched_bytes(mut self, bytes: u32) -> Predictor {
        self.touched_bytes = Some(bytes);
        self
    }

    /// States how the search goes from node to node; [`SearchStyle::Branches`] unless told
    /// otherwise.
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
    /// When the placement has not as many nodes as the shape, or the machine was changed into one
    /// whose block sizes are no powers of two, which [`Machine::check`] tells.
    pub fn predict(
        &self,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
    ) -> Prediction {
        self.predict_by(placement, node, pages, machine, Knowledge::Geometry)
    }

    /// As [`predict`](Predictor::predict), from the capacities of levels, whatever else is known of
    /// them: to be held against predictions that can know no more, of a sample of the nodes or of a
    /// divided level.
    pub(crate) fn predict_by_capacity(
        &self,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
    ) -> Prediction {
        self.predict_by(placement, node, pages, machine, Knowledge::Capacity)
    }

    /// As [`predict_by_capacity`](Predictor::predict_by_capacity), with one level divided among hot
    /// and other nodes, who share no block of it.
    pub(crate) fn predict_parts(
        &self,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
        parts: ColouredLevel<'_>,
    ) -> Prediction {
        self.predict_by(placement, node, pages, machine, Knowledge::Divided(parts))
    }

    fn predict_by(
        &self,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
        knowledge: Knowledge<'_>,
    ) -> Prediction {
        let touched = self
            .touched_bytes
            .map_or(node.bytes, |bytes| bytes.min(node.bytes));
        let nodes = Read::Nodes {
            visits: &self.visits,
            placement,
            touched_bytes: touched,
        };
        let mut seen = SeenBlocks::new(nodes, machine.replacement);
        let source = Source::Searches {
            visits: &self.visits,
            placement,
            touched_bytes: touched,
        };
        let (geometry, parts) = match knowledge {
            Knowledge::Geometry => (ByGeometry::of(&source, pages, machine), None),
            Knowledge::Capacity => (None, None),
            Knowledge::Divided(parts) => (None, Some(parts)),
        };
        let mut levels = Vec::new();
        for (i, level) in machine.levels_for(pages).enumerate() {
            let mut misses = match parts.filter(|parts| parts.name == level.name) {
                Some(parts) => {
                    self.divided_misses(placement, touched, level, machine.replacement, parts)
                }
                None => level_misses(
                    level,
                    seen.footprint(level.block_bytes),
                    machine.replacement,
                    geometry
                        .as_ref()
                        .and_then(|geometry| geometry.of_level(level)),
                ),
            };
            if i > 0 && level.kind == LevelKind::Data {
                misses.ns *= seen.neighbour_factor(level, &machine.neighbours);
            }
            levels.push(misses);
        }
        self.with_instructions(levels, machine)
    }

    /// Misses of a level that is divided among the nodes.
    fn divided_misses(
        &self,
        placement: &Placement,
        touched_bytes: u32,
        level: &Level,
        replacement: Replacement,
        parts: ColouredLevel<'_>,
    ) -> LevelMisses {
        let of = |is_hot: bool, share: f64| {
            let blocks = BlockProbabilities::of_part(
                &self.visits,
                placement,
                touched_bytes,
                level.block_bytes,
                |v| parts.hot[v as usize] == is_hot,
            );
            let mut part = level.clone();
            for step in &mut part.steps {
                step.capacity_bytes *= share;
            }
            level_misses(&part, &blocks.footprint(), replacement, None)
        };
        let (hot, cold) = (of(true, parts.hot_share), of(false, 1.0 - parts.hot_share));
        LevelMisses {
            name: hot.name,
            misses: hot.misses + cold.misses,
            ns: hot.ns + cold.ns,
            // The fuller part is the one that is crowded.
            touched_share: hot.touched_share.max(cold.touched_share),
            order_known: false,
        }
    }

    /// The whole of an operation whose misses are known.
    pub(crate) fn with_instructions(
        &self,
        mut levels: Vec<LevelMisses>,
        machine: &Machine,
    ) -> Prediction {
        let (nodes, costs) = (self.visits.nodes_per_operation(), machine.search);
        let mut cpu_ns = if nodes <= 0.0 {
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

/// What of a machine's levels a prediction goes by.
enum Knowledge<'a> {
    /// Their sets, where these are known.
    Geometry,
    /// Their capacities alone.
    Capacity,
    /// Capacities, one of which is divided. A coloured level has blocks of its own kind only; the
    /// geometry knows nothing of that.
    Divided(ColouredLevel<'a>),
}

/// What operations read.
#[derive(Clone, Copy)]
enum Read<'a> {
    /// The first bytes of nodes.
    Nodes {
        visits: &'a Visits,
        placement: &'a Placement,
        touched_bytes: u32,
    },
    /// Anything.
    Accesses(&'a Accesses),
}

/// Misses of a machine whose levels are its caches as they are built: by their sets, for each level
/// and step.
struct ByGeometry {
    levels: Vec<(String, Vec<f64>)>,
}

impl ByGeometry {
    /// `None` where levels are measured, which tells what the program really gets of them, where
    /// nothing is known of sets, and for samples of nodes.
    fn of(source: &Source<'_>, pages: PageSize, machine: &Machine) -> Option<ByGeometry> {
        let hierarchy = machine.hierarchy.as_ref()?;
        if machine.origin != Origin::Preset || !source.is_whole() {
            return None;
        }
        let frames = match pages {
            // A machine without translation shows its caches the program's addresses.
            PageSize::Small4K if !hierarchy.tlbs().is_empty() => FrameMap::Random,
            PageSize::Small4K | PageSize::Huge2M => FrameMap::Identity,
        };
        let outcomes = outcomes(source, hierarchy, frames, Tier::Auto, None);
        let (of_caches, of_tlbs) = outcomes.split_at(hierarchy.caches().len());
        let caches = hierarchy.caches().iter().zip(of_caches);
        let mut levels: Vec<(String, Vec<f64>)> = caches
            .map(|(cache, outcome)| (cache.name.clone(), vec![outcome.misses]))
            .collect();
        let page_bytes = hierarchy
            .tlbs()
            .first()
            .map(|tlb| tlb.geometry.block_bytes());
        let translating = machine.levels_for(pages).filter(|level| {
            level.kind == LevelKind::Pages(pages) && Some(level.block_bytes) == page_bytes
        });
        for level in translating {
            let misses = of_tlbs.iter().map(|outcome| outcome.misses);
            levels.push((level.name.clone(), misses.collect()));
        }
        Some(ByGeometry { levels })
    }

    /// Misses at each step of a level that is one cache, or as many translation buffers as it has
    /// steps.
    fn of_level(&self, level: &Level) -> Option<&[f64]> {
        let known = self.levels.iter().find(|(name, _)| *name == level.name);
        known
            .map(|(_, misses)| misses.as_slice())
            .filter(|misses| misses.len() == level.steps.len())
    }
}

/// Blocks that a cache held this shortly ago are near: a miss beside them counts as one of
/// neighbours. About as many nodes as a search visits, of which the neighbours' shares were
/// measured.
const RECENT_BLOCKS: f64 = 32.0;

/// Block probabilities, computed once for each block size that is asked for.
struct SeenBlocks<'a> {
    read: Read<'a>,
    replacement: Replacement,
    sizes: Vec<(BlockProbabilities, Footprint)>,
    /// The order of the reads, where it is the same for all operations.
    sequence: Option<Sequence<'a>>,
}

impl<'a> SeenBlocks<'a> {
    fn new(read: Read<'a>, replacement: Replacement) -> SeenBlocks<'a> {
        SeenBlocks {
            read,
            replacement,
            sizes: Vec::new(),
            sequence: match read {
                Read::Accesses(accesses) => Sequence::of(accesses),
                Read::Nodes { .. } => None,
            },
        }
    }

    fn index(&mut self, block_bytes: u64) -> usize {
        let known = self
            .sizes
            .iter()
            .position(|(blocks, _)| blocks.block_bytes() == block_bytes);
        known.unwrap_or_else(|| {
            let blocks = match self.read {
                Read::Nodes {
                    visits,
                    placement,
                    touched_bytes,
                } => BlockProbabilities::new(visits, placement, touched_bytes, block_bytes),
                Read::Accesses(accesses) => accesses.block_probabilities(block_bytes),
            };
            let footprint = blocks.footprint();
            self.sizes.push((blocks, footprint));
            self.sizes.len() - 1
        })
    }

    fn footprint(&mut self, block_bytes: u64) -> &Footprint {
        let index = self.index(block_bytes);
        &self.sizes[index].1
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
        let capacity = level.capacity_bytes() / level.block_bytes as f64;
        if let Some(sequence) = &mut self.sequence {
            // Each time that a walk comes to a larger block anew, one of its lines is paid in full.
            let misses = sequence.misses(level.block_bytes, capacity);
            let saved = larger_blocks.map(|larger| {
                let entered = sequence.misses(larger.block_bytes, RECENT_BLOCKS);
                larger.share * (1.0 - (entered / misses.max(f64::MIN_POSITIVE)).min(1.0))
            });
            return (1.0 - saved.sum::<f64>()).max(0.0);
        }
        let index = self.index(level.block_bytes);
        let footprint = &self.sizes[index].1;
        let time = footprint.characteristic_time(capacity, self.replacement);
        // The costs count waits, so the share does too: the lines of one node are requested
        // together, and that they have neighbours is no news.
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

/// Nanoseconds that the far misses of a search would cost if only the first missed line of each
/// block did, for each of `block_sizes`.
pub(crate) fn far_costs(
    predictor: &Predictor,
    placement: &Placement,
    levels: &[Level],
    replacement: Replacement,
    block_sizes: &[u64],
) -> Vec<f64> {
    let starts = Read::Nodes {
        visits: &predictor.visits,
        placement,
        touched_bytes: 1,
    };
    let mut seen = SeenBlocks::new(starts, replacement);
    let mut costs = vec![0.0; block_sizes.len()];
    for level in levels
        .iter()
        .skip(1)
        .filter(|level| level.kind == LevelKind::Data)
    {
        let footprint = seen.footprint(level.block_bytes);
        let ns = level_misses(level, footprint, replacement, None).ns;
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

/// Misses and nanoseconds of one successful search for a uniformly distributed key, each node being
/// the goal equally often and all of a visited node being read.
///
/// O(n) for each block size of the machine (about 0.1 s for two million nodes and two block sizes).
/// For several placements of one shape use a [`Predictor`].
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

/// One level of a structure whose search visits exactly one node on each level: a B-tree, an
/// implicit search tree, a directory over a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchLevel {
    /// Nodes on the level; a search visits each of them equally often.
    pub nodes: f64,
    /// Bytes from one node to the next.
    pub node_bytes: f64,
    /// 64-byte lines of the node that one visit reads, on average.
    pub lines_per_visit: f64,
    /// How many of these reads wait for each other: 1 when all lines are requested together,
    /// `lines_per_visit` when each address comes from the line before, 0 when the node was
    /// requested in time on the level above.
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

/// Misses and nanoseconds of one search through `levels`, topmost first. O(levels), whatever the
/// number of nodes.
///
/// `operation_ns` of the machine is added once; `node_ns` and mispredictions are replaced by each
/// level's `cpu_ns_per_visit`. Misses count lines; the time counts rounds of them.
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
            // Misses cost time by rounds: one for the whole node when its lines are requested
            // together.
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
                order_known: false,
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
