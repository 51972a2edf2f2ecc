//! The misses of a machine's levels and what they cost.
//!
//! If a [tier](crate::Tier) or the order of the reads gives the misses better than a capacity does,
//! the footprint still gives the ratio of waits to misses.

use super::{LevelMisses, TierMisses, touched_share};
use crate::footprint::Replacement;
use crate::machine::NeighbourShare;
use crate::neighbours::missed_blocks;
use crate::probability::BlockProbabilities;
use crate::tiers::Sequence;
use crate::{Accesses, Footprint, Level, Placement, Visits};

/// What operations read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reads<'a> {
    Accesses(&'a Accesses),
    /// Searches of which only the visits are known, which may be those of a sample.
    Searches {
        visits: &'a Visits,
        placement: &'a Placement,
        touched_bytes: u32,
    },
}

/// What is known of misses beside the capacities of levels.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    /// Misses that a tier found.
    pub(crate) found: Option<&'a TierMisses>,
    /// Predict the mean of the first operations from empty caches, not the steady state.
    pub(crate) first: Option<f64>,
    /// The level that hot and other nodes divide.
    pub(crate) divided: Option<ColouredLevel<'a>>,
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
    reads: Reads<'a>,
    replacement: Replacement,
    sizes: Vec<(BlockProbabilities, Footprint)>,
    /// The order of the reads, where it is the same for all operations.
    sequence: Option<Sequence<'a>>,
}

impl<'a> BlockSizes<'a> {
    pub(super) fn new(reads: Reads<'a>, replacement: Replacement) -> BlockSizes<'a> {
        BlockSizes {
            reads,
            replacement,
            sizes: Vec::new(),
            sequence: match reads {
                Reads::Accesses(accesses) => Sequence::of(accesses),
                Reads::Searches { .. } => None,
            },
        }
    }

    fn index(&mut self, block_bytes: u64) -> usize {
        let mut sizes = self.sizes.iter();
        let known = sizes.position(|(blocks, _)| blocks.block_bytes() == block_bytes);
        known.unwrap_or_else(|| {
            let blocks = match self.reads {
                Reads::Accesses(accesses) => accesses.block_probabilities(block_bytes),
                Reads::Searches {
                    visits,
                    placement,
                    touched_bytes,
                } => BlockProbabilities::new(visits, placement, touched_bytes, block_bytes),
            };
            let footprint = blocks.footprint();
            self.sizes.push((blocks, footprint));
            self.sizes.len() - 1
        })
    }

    /// Misses and nanoseconds of one operation at a level.
    pub(super) fn level_misses(&mut self, level: &Level, known: Known<'_>) -> LevelMisses {
        if let Some(divided) = known.divided.filter(|divided| divided.name == level.name) {
            return self.divided_misses(level, divided);
        }
        let (block_bytes, replacement) = (level.block_bytes, self.replacement);
        let index = self.index(block_bytes);
        let (footprint, sequence) = (&self.sizes[index].1, &self.sequence);
        let mut misses = sum_of_steps(level, footprint, |step, capacity| {
            let (misses, waits) = footprint.misses_and_waits(capacity, replacement);
            let exposure = exposure(footprint, misses, waits);
            let found = known.found.and_then(|found| found.level(level, step));
            let steady = match (found, sequence) {
                (Some(found), _) => return (found.misses, found.misses * exposure),
                (None, Some(sequence)) => sequence.misses(block_bytes, capacity),
                (None, None) => misses,
            };
            let better = known.first.map_or(steady, |first| {
                footprint.first_misses(capacity, steady, first) / first
            });
            (better, better * exposure)
        });
        let found = known.found.and_then(|found| found.level(level, 0));
        misses.order_known = match found {
            Some(found) => found.tier.knows_order(),
            None => self.sequence.is_some(),
        };
        misses
    }

    /// Misses of a level that hot and other nodes divide.
    fn divided_misses(&self, level: &Level, divided: ColouredLevel<'_>) -> LevelMisses {
        let Reads::Searches {
            visits,
            placement,
            touched_bytes,
        } = self.reads
        else {
            unreachable!("only searches are divided");
        };
        let of = |is_hot: bool, share: f64| {
            let is_part = |v: u32| divided.hot[v as usize] == is_hot;
            let block_bytes = level.block_bytes;
            let blocks =
                BlockProbabilities::of_part(visits, placement, touched_bytes, block_bytes, is_part);
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
            name: hot.name,
            misses: hot.misses + cold.misses,
            ns: hot.ns + cold.ns,
            touched_share: hot.touched_share.max(cold.touched_share),
            order_known: false,
        }
    }

    /// What the misses of a level cost, as a share of what they would cost without neighbours.
    pub(super) fn neighbour_factor(&mut self, level: &Level, neighbours: &[NeighbourShare]) -> f64 {
        let larger_blocks = neighbours.iter();
        let mut larger_blocks = larger_blocks
            .filter(|other| other.block_bytes > level.block_bytes)
            .peekable();
        if larger_blocks.peek().is_none() {
            return 1.0;
        }
        let capacity = level.capacity_bytes() / level.block_bytes as f64;
        if let Some(sequence) = &self.sequence {
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
    placement: &Placement,
    levels: &[Level],
    replacement: Replacement,
    block_sizes: &[u64],
) -> Vec<f64> {
    let starts = Reads::Searches {
        visits: predictor.visits(),
        placement,
        touched_bytes: 1,
    };
    let mut blocks = BlockSizes::new(starts, replacement);
    let mut costs = vec![0.0; block_sizes.len()];
    let far = levels.iter().skip(1);
    for level in far.filter(|level| level.kind == crate::LevelKind::Data) {
        let ns = blocks.level_misses(level, Known::default()).ns;
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
