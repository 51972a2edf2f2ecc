//! Exact misses of operations that read one sequence of points from its beginning: walks, and
//! searches in one list.
//!
//! An operation reads the steps `0..=e`. The end `e` is random and independent of the operations
//! before; `reach_i = P(e >= i)`, which is 1 for every step of a walk. A cache with `W` ways and
//! least-recently-used replacement misses a block exactly when `W` other blocks of its set were
//! touched since its last touch:
//!
//! ```text
//! step i reads a block that the same operation has read before, at step h:
//!     the blocks between are those of the steps h+1 .. i-1          hit or miss for certain
//! step i reads block x for the first time; k blocks of its set come before:
//!     k >= W                                                        miss for certain
//!     else: the last operation that reached i ended at some e >= i, and touched x last at
//!           step o, i <= o <= e; those after it touched only blocks that come before x;
//!           so the blocks between are those k and the ones of the steps o+1 .. e
//! ```
//!
//! Cost: O(W) for each step; for each of the first `W` blocks of a set, as many steps as it takes
//! to meet `W` others.

use std::collections::HashMap;

use crate::Accesses;
use crate::hierarchy::{CacheLevel, Hierarchy, ReplacementPolicy};
use crate::simulator::Frames;

/// The least number of ways that stands for full associativity.
const WAYS: u64 = 16;
/// Larger capacities count as this one: 16 GiB of lines, whose sets take 128 MiB here.
const CAPACITY_BLOCKS_MAX: f64 = 268_435_456.0;
/// Bits of an address above this size choose no set where frames are random.
const FRAME_BYTES: u64 = 4096;

/// Operations that read one sequence.
#[derive(Debug)]
pub(crate) struct Sequence<'a> {
    accesses: &'a Accesses,
    /// Points with the probability that an operation reads them.
    steps: Vec<(u32, f64)>,
}

impl<'a> Sequence<'a> {
    /// `None` where operations differ by more than their ends.
    pub(crate) fn of(accesses: &'a Accesses) -> Option<Sequence<'a>> {
        let shape = accesses.shape();
        let steps = if let Some(points) = accesses.fixed_sequence() {
            points.iter().map(|&point| (point, 1.0)).collect()
        } else if accesses.reads_paths_on() && shape.is_chains() && shape.roots().count() <= 1 {
            // In a chain, an operation that reads a point has read those before.
            (0..shape.nodes())
                .map(|point| (point, accesses.reach(point)))
                .collect()
        } else {
            return None;
        };
        Some(Sequence { accesses, steps })
    }

    /// Misses of an operation in a cache of `capacity_blocks` blocks.
    pub(crate) fn misses(&self, block_bytes: u64, capacity_blocks: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to what both types hold"
        )]
        let capacity = capacity_blocks.clamp(1.0, CAPACITY_BLOCKS_MAX) as u64;
        // Sets of 16 to 32 ways hold what one set would, and are faster to search.
        let sets = 1 << (capacity / WAYS).max(1).ilog2();
        self.in_sets(block_bytes, sets, (capacity + sets / 2) / sets)
    }

    /// Misses of an operation at each cache and each TLB of a hierarchy with least-recently-used
    /// replacement; `None` with another one. Each level is taken as if it saw all reads.
    pub(super) fn predict(&self, hierarchy: &Hierarchy, frames: Frames) -> Option<Vec<f64>> {
        let (caches, tlbs) = (hierarchy.caches(), hierarchy.tlbs());
        let mut levels = caches.iter().chain(tlbs);
        if !levels.all(|level| level.policy == ReplacementPolicy::Lru) {
            return None;
        }
        let misses = |(i, level): (usize, &CacheLevel)| {
            let cache = level.geometry;
            let is_cache = i < caches.len();
            if is_cache && frames != Frames::Identity && cache.way_bytes() > FRAME_BYTES {
                return self.misses(cache.block_bytes(), cache.blocks() as f64);
            }
            let above = hierarchy.above_victim(i).map_or(0, CacheLevel::blocks);
            let ways = cache.associativity() + above / cache.sets();
            self.in_sets(cache.block_bytes(), cache.sets(), ways)
        };
        Some(caches.iter().chain(tlbs).enumerate().map(misses).collect())
    }

    fn in_sets(&self, block_bytes: u64, sets: u64, ways: u64) -> f64 {
        let ways = usize::try_from(ways).unwrap_or(usize::MAX);
        let is_fixed = self.accesses.fixed_sequence().is_some();
        let steps = self.steps_by_set(block_bytes, sets);
        let of_sets = steps.chunk_by(|a, b| a.set == b.set);
        let of_set = if is_fixed { walk_misses } else { search_misses };
        of_sets.map(|set| of_set(set, ways)).sum()
    }

    /// The blocks that are read, those of each set together and in the order of the sequence.
    fn steps_by_set(&self, block_bytes: u64, sets: u64) -> Vec<Step> {
        let shift = block_bytes.trailing_zeros();
        let read = || {
            self.steps.iter().flat_map(|&(point, reach)| {
                let access = self.accesses.access(point);
                let last_byte = access.address.saturating_add(u64::from(access.bytes) - 1);
                (access.address >> shift..=last_byte >> shift).map(move |block| Step {
                    set: usize::try_from(block & (sets - 1)).unwrap_or(usize::MAX),
                    block,
                    reach,
                })
            })
        };
        // A counting sort, which keeps the order within a set.
        let mut next = vec![0usize; usize::try_from(sets).unwrap_or(usize::MAX) + 1];
        read().for_each(|step| next[step.set + 1] += 1);
        let mut sum = 0;
        for start in &mut next {
            sum += *start;
            *start = sum;
        }
        let mut steps = vec![Step::default(); sum];
        for step in read() {
            steps[next[step.set]] = step;
            next[step.set] += 1;
        }
        // A block that its set reads twice in a row hits.
        steps.dedup_by_key(|step| (step.set, step.block));
        steps
    }
}

/// One block that is read.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    set: usize,
    block: u64,
    /// P(an operation reads it).
    reach: f64,
}

/// Misses of an operation that reads all steps of a set, after one like it.
fn walk_misses(steps: &[Step], ways: usize) -> f64 {
    let mut stack = Stack::new(ways);
    for step in steps {
        stack.touch(step.block);
    }
    let missed = steps.iter().filter(|step| !stack.touch(step.block));
    missed.count() as f64
}

/// Misses in a set of an operation that reads its steps up to a random end.
fn search_misses(steps: &[Step], ways: usize) -> f64 {
    // Blocks are ranked as they are first read. By step, the rank of its block, and the next step
    // that reads the same block, or the number of steps.
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    let mut last: Vec<usize> = Vec::new();
    let mut ranks = Vec::with_capacity(steps.len());
    let mut next_same = vec![steps.len(); steps.len()];
    for (i, step) in steps.iter().enumerate() {
        let rank = *numbers.entry(step.block).or_insert(last.len());
        match last.get_mut(rank) {
            Some(before) => next_same[std::mem::replace(before, i)] = i,
            None => last.push(i),
        }
        ranks.push(rank);
    }
    if last.len() <= ways {
        return 0.0;
    }
    let reach = |i: usize| steps.get(i).map_or(0.0, |step| step.reach);
    let mut stack = Stack::new(ways);
    // By rank, the step from which the block was met last.
    let mut met = vec![usize::MAX; last.len()];
    let (mut seen, mut misses) = (0, 0.0);
    for (i, &rank) in ranks.iter().enumerate() {
        let is_first = rank == seen;
        seen += usize::from(is_first);
        let is_present = stack.touch(rank as u64);
        if !is_first || rank >= ways {
            misses += if is_present { 0.0 } else { reach(i) };
            continue;
        }
        let mut touched = i;
        while touched < steps.len() {
            // The last operation may have ended before the block's next step.
            let next = next_same[touched];
            let mut needed = ways - rank;
            for (&other, step) in ranks.iter().zip(steps).take(next).skip(touched + 1) {
                if other > rank && std::mem::replace(&mut met[other], touched) != touched {
                    needed -= 1;
                    if needed == 0 {
                        misses += step.reach - reach(next);
                        break;
                    }
                }
            }
            touched = next;
        }
    }
    misses
}

/// The last blocks that were touched, the latest first.
struct Stack {
    blocks: Vec<u64>,
    ways: usize,
}

impl Stack {
    fn new(ways: usize) -> Stack {
        let blocks = Vec::new();
        Stack { blocks, ways }
    }

    /// Whether the block was among them.
    fn touch(&mut self, block: u64) -> bool {
        let place = self.blocks.iter().position(|&other| other == block);
        match place {
            Some(place) => self.blocks[..=place].rotate_right(1),
            None => {
                self.blocks.truncate(self.ways - 1);
                self.blocks.insert(0, block);
            }
        }
        place.is_some()
    }
}
