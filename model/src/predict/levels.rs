//! The misses of a machine's levels and what they cost.
//!
//! If a [tier](crate::Tier) or the order of the reads gives the misses better than a capacity does,
//! the footprint still gives the ratio of waits to misses.

use super::LevelMisses;
use crate::footprint::Replacement;
use crate::machine::{LevelKind, NeighbourShare, Origin};
use crate::neighbours::missed_blocks;
use crate::probability::{BlockProbabilities, Reads};
use crate::tiers::Sequence;
use crate::{Accesses, Footprint, Hierarchy, Level, LevelPrediction, Machine, PageSize, Tier};

/// What is known of operations and of their misses, besides the capacities of levels.
pub(crate) struct Known<'a> {
    /// The visits may be those of a sample.
    pub(crate) reads: Reads<'a>,
    /// The order of the reads, where it is the same for all operations.
    pub(crate) sequence: Option<Sequence<'a>>,
    /// Misses that a tier found.
    pub(crate) found: Option<&'a TierMisses>,
    /// Predict the mean of the first operations from empty caches, not the steady state.
    pub(crate) first: Option<f64>,
    /// The level that hot and other nodes divide.
    pub(crate) divided: Option<ColouredLevel<'a>>,
}

impl<'a> Known<'a> {
    pub(crate) fn of_reads(reads: Reads<'a>) -> Known<'a> {
        Known {
            reads,
            sequence: None,
            found: None,
            first: None,
            divided: None,
        }
    }

    pub(crate) fn of(accesses: &'a Accesses) -> Known<'a> {
        Known {
            sequence: Sequence::of(accesses),
            ..Known::of_reads(accesses.reads())
        }
    }
}

/// Misses of a hierarchy's caches, and of its translation buffers for one page size.
#[derive(Debug)]
pub(crate) struct TierMisses {
    found: Vec<LevelPrediction>,
    /// Names of the translation buffers.
    tlbs: Vec<String>,
}

impl TierMisses {
    pub(crate) fn new(
        found: Vec<LevelPrediction>,
        hierarchy: &Hierarchy,
        pages: PageSize,
    ) -> TierMisses {
        let tlbs = hierarchy.tlbs().iter();
        let tlbs = tlbs.filter(|tlb| tlb.geometry.block_bytes() == pages.bytes());
        let tlbs = tlbs.map(|tlb| tlb.name.clone()).collect();
        TierMisses { found, tlbs }
    }

    /// The prediction for one step of a level: a cache has the level's name, and the steps of
    /// translations are the buffers in order.
    pub(crate) fn level(&self, level: &Level, step: usize) -> Option<&LevelPrediction> {
        let name = match level.kind {
            LevelKind::Data => &level.name,
            LevelKind::Pages(_) => self.tlbs.get(step)?,
        };
        self.found.iter().find(|found| found.name == *name)
    }
}

/// The caches that `tier` predicts from, or `None` to predict from the capacities of levels.
///
/// Measured capacities say what a program gets of caches that it shares, and come first where no
/// tier needs sets. The caches of a preset are known as they are built.
pub(crate) fn geometry_for(machine: &Machine, tier: Tier) -> Option<&Hierarchy> {
    let needs_no_sets = matches!(tier, Tier::Auto | Tier::Footprint);
    machine
        .hierarchy
        .as_ref()
        .filter(|_| machine.origin == Origin::Preset || !needs_no_sets)
}

/// How a level of a machine is divided between hot and other nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColouredLevel<'a> {
    pub(crate) name: &'a str,
    /// By node, whether it is hot.
    pub(crate) hot: &'a [bool],
    /// The share of the capacity for hot nodes.
    pub(crate) hot_share: f64,
}

/// A miss beside a block that was read at most this many blocks ago counts as one of neighbours:
/// about the nodes that a search visits, for which the shares were measured.
const RECENT_BLOCKS: f64 = 32.0;

/// Block probabilities of a workload, computed once for each block size.
pub(super) struct BlockSizes<'a> {
    known: Known<'a>,
    replacement: Replacement,
    sizes: Vec<(BlockProbabilities, Footprint)>,
}

impl<'a> BlockSizes<'a> {
    pub(super) fn new(known: Known<'a>, replacement: Replacement) -> BlockSizes<'a> {
        BlockSizes {
            known,
            replacement,
            sizes: Vec::new(),
        }
    }

    fn index(&mut self, block_bytes: u64) -> usize {
        let mut sizes = self.sizes.iter();
        let known = sizes.position(|(blocks, _)| blocks.block_bytes() == block_bytes);
        known.unwrap_or_else(|| {
            let blocks = BlockProbabilities::of_reads(self.known.reads, block_bytes, |_| true);
            let footprint = blocks.footprint();
            self.sizes.push((blocks, footprint));
            self.sizes.len() - 1
        })
    }

    /// Misses and nanoseconds of one operation at a level.
    pub(super) fn level_misses(&mut self, level: &Level) -> LevelMisses {
        let divided = self.known.divided;
        if let Some(divided) = divided.filter(|divided| divided.name == level.name) {
            return self.divided_misses(level, divided);
        }
        let (block_bytes, replacement) = (level.block_bytes, self.replacement);
        let index = self.index(block_bytes);
        let (footprint, known) = (&self.sizes[index].1, &self.known);
        let found = |step| known.found.and_then(|found| found.level(level, step));
        let mut misses = sum_of_steps(level, footprint, |step, capacity| {
            let (misses, waits) = footprint.misses_and_waits(capacity, replacement);
            let exposure = exposure(footprint, misses, waits);
            let steady = match (found(step), &known.sequence) {
                (Some(found), _) => return (found.misses, found.misses * exposure),
                (None, Some(sequence)) => sequence.misses(block_bytes, capacity),
                (None, None) => misses,
            };
            let better = known.first.map_or(steady, |first| {
                footprint.first_misses(capacity, steady, first) / first
            });
            (better, better * exposure)
        });
        misses.order_known = match found(0) {
            Some(found) => found.tier.knows_order(),
            None => known.sequence.is_some(),
        };
        misses
    }

    /// Misses of a level that hot and other nodes divide.
    fn divided_misses(&self, level: &Level, divided: ColouredLevel<'_>) -> LevelMisses {
        let of = |is_hot: bool, share: f64| {
            let is_part = |v: u32| divided.hot[v as usize] == is_hot;
            let reads = self.known.reads;
            let blocks = BlockProbabilities::of_reads(reads, level.block_bytes, is_part);
            let mut part = level.clone();
            for step in &mut part.steps {
                step.capacity_bytes *= share;
            }
            let footprint = blocks.footprint();
            sum_of_steps(&part, &footprint, |_, capacity| {
                footprint.misses_and_waits(capacity, self.replacement)
            })
        };
        let share = divided.hot_share;
        let (hot, cold) = (of(true, share), of(false, 1.0 - share));
        LevelMisses {
            misses: hot.misses + cold.misses,
            ns: hot.ns + cold.ns,
            touched_share: hot.touched_share.max(cold.touched_share),
            ..hot
        }
    }

    /// What the misses of a level cost, as a share of what they would cost without neighbours.
    pub(super) fn neighbour_factor(&mut self, level: &Level, neighbours: &[NeighbourShare]) -> f64 {
        let larger = |other: &&NeighbourShare| other.block_bytes > level.block_bytes;
        let mut larger_blocks = neighbours.iter().filter(larger).peekable();
        if larger_blocks.peek().is_none() {
            return 1.0;
        }
        let capacity = level.capacity_bytes() / level.block_bytes as f64;
        if let Some(sequence) = &self.known.sequence {
            // Each time that a walk enters a larger block, one of its lines is paid in full.
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
        // Waits, not misses: the costs count them, and the lines of one node are requested
        // together.
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

/// Sums the steps of a level, from the misses and waits at each step's index and capacity in
/// blocks. Misses are their mean, weighted by latency.
pub(super) fn sum_of_steps(
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
    let capacity_blocks = level.capacity_bytes() / level.block_bytes as f64;
    LevelMisses {
        name: level.name.clone(),
        misses: match step_ns > 0.0 {
            true => weighted / step_ns,
            false => plain / level.steps.len().max(1) as f64,
        },
        ns,
        touched_share: match capacity_blocks > 0.0 {
            true => footprint.touches() / capacity_blocks,
            false => 0.0,
        },
        order_known: false,
    }
}

/// The share of misses that an operation waits for.
fn exposure(footprint: &Footprint, misses: f64, waits: f64) -> f64 {
    if misses > 0.0 {
        return waits / misses;
    }
    // All fits: take the share of a cache that holds nothing.
    let (touches, waits) = footprint.misses_and_waits(0.0, Replacement::Lru);
    if touches > 0.0 { waits / touches } else { 1.0 }
}

/// Nanoseconds of the far misses of a search if only the first missed line of each block cost time,
/// for each of `block_sizes`.
#[cfg(feature = "calibrate")]
pub(crate) fn far_costs(
    predictor: &super::Predictor,
    placement: &crate::Placement,
    levels: &[Level],
    replacement: Replacement,
    block_sizes: &[u64],
) -> Vec<f64> {
    let starts = crate::Lengths::Uniform(1);
    let reads = Reads::new(predictor.visits(), placement, &starts);
    let mut blocks = BlockSizes::new(Known::of_reads(reads), replacement);
    let mut costs = vec![0.0; block_sizes.len()];
    let far = levels.iter().skip(1);
    for level in far.filter(|level| level.kind == LevelKind::Data) {
        let ns = blocks.level_misses(level).ns;
        for (cost, &block_bytes) in costs.iter_mut().zip(block_sizes) {
            let all = NeighbourShare {
                block_bytes,
                share: 1.0,
            };
            *cost += ns * blocks.neighbour_factor(level, &[all]);
        }
    }
    costs
}
