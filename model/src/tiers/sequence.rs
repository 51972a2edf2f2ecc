//! Exact misses of operations that read one sequence of points from its beginning: searches in one
//! list, and walks.
//!
//! Other tiers take the blocks of an operation to be touched independently of the operation before,
//! which fails where operations touch a good part of a cache. Let an operation read the steps
//! `0..=e`, where the end `e` is random and independent from operation to operation;
//! `reach_i = P(e >= i)`. A cache with `W` ways and least-recently-used replacement misses a block
//! exactly when `W` other blocks of its set were touched since its last touch:
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
//! For a list of `n` blocks searched to any of its places, in a fully associative cache of `C < n`,
//! this is `C (n - C) / n` misses for the first `C` blocks and `(n - C)^2 / 2n` for the rest. With
//! one end for all operations it is the cyclic walk, in which a set with more blocks than ways
//! misses all of them.
//!
//! Cost: O(W) for each step, and for each step that reads one of the first `W` blocks of its set as
//! many as it takes to meet `W` others.
//!
//! Levels in a row are each predicted as if they saw all reads. A victim cache has the room of the
//! one above it too.

use std::collections::HashMap;

use super::cascade::FRAME_BYTES;
use super::{FrameMap, LevelPrediction, Tier};
use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion, ReplacementPolicy};
use crate::shape::random::SplitMix64;
use crate::{Accesses, CacheGeometry};

impl Accesses {
    /// Misses of one operation in a cache with least-recently-used replacement, exactly, when all
    /// operations read one sequence from its beginning: searches and ranges in one list, walks of
    /// any structure; `None` for others.
    ///
    /// `set_block` gives, for the number of a block (address over block size), the number that
    /// chooses its set: the same number where caches see the addresses of the program, else that of
    /// the frame.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::{CacheGeometry, KeyDistribution, Layout, Links, NodeExtent, Operation, Sizes, Structure};
    ///
    /// // A list of 1000 blocks in a fully associative cache of 600.
    /// let list = Structure::List { links: Links::Single };
    /// let built = list.build(1000, &Sizes::of(NodeExtent::new(64, 64)?))?;
    /// let placement = built.place(Layout::DepthFirst);
    /// let accesses = built.accesses(&placement, Operation::Search, &KeyDistribution::Uniform)?;
    /// let misses = accesses.sequence_misses(CacheGeometry::new(1, 64, 600)?, |block| block);
    /// let (n, c) = (1000.0, 600.0);
    /// let expected = c * (n - c) / n + (n - c) * (n - c + 1.0) / (2.0 * n);
    /// assert!((misses.unwrap() - expected).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sequence_misses(
        &self,
        cache: CacheGeometry,
        set_block: impl Fn(u64) -> u64,
    ) -> Option<f64> {
        let steps = self.sequence_steps()?;
        let sets = self.steps_by_set(&steps, cache.block_bytes(), cache.sets(), set_block);
        Some(misses(&sets, cache.associativity(), None).0)
    }

    /// The points of the sequence with the probability that an operation reads them.
    fn sequence_steps(&self) -> Option<Vec<(u32, f64)>> {
        if let Some(points) = self.fixed_sequence() {
            return Some(points.iter().map(|&point| (point, 1.0)).collect());
        }
        // In a chain, an operation that reads a point has read those before.
        let shape = self.shape();
        if !self.reads_paths_on() || !shape.is_chains() || shape.roots().count() > 1 {
            return None;
        }
        Some(
            (0..shape.nodes())
                .map(|point| (point, self.reach(point)))
                .collect(),
        )
    }

    /// The blocks that are read, those of each set together and in the order of the sequence. A
    /// set is chosen by the low bits of what `set_block` gives for a block; `sets` is a power of
    /// two.
    fn steps_by_set(
        &self,
        points: &[(u32, f64)],
        block_bytes: u64,
        sets: u64,
        set_block: impl Fn(u64) -> u64,
    ) -> Vec<(usize, Step)> {
        let shift = block_bytes.trailing_zeros();
        let read = || {
            points.iter().flat_map(|&(point, reach)| {
                let access = self.access(point);
                let last_byte = access.address.saturating_add(u64::from(access.bytes) - 1);
                (access.address >> shift..=last_byte >> shift).map(move |block| (block, reach))
            })
        };
        let set_of = |block| usize::try_from(set_block(block) & (sets - 1)).unwrap_or(usize::MAX);
        // A counting sort, which keeps the order within a set.
        let mut next = vec![0usize; usize::try_from(sets).unwrap_or(usize::MAX) + 1];
        for (block, _) in read() {
            next[set_of(block) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut next {
            sum += *start;
            *start = sum;
        }
        let nothing = Step {
            block: 0,
            reach: 0.0,
        };
        let mut steps = vec![(0, nothing); sum];
        for (block, reach) in read() {
            let set = set_of(block);
            let place = &mut next[set];
            steps[*place] = (set, Step { block, reach });
            *place += 1;
        }
        // A block that its set reads twice in a row hits.
        steps.dedup_by_key(|&mut (set, step)| (set, step.block));
        steps
    }
}

/// A sequence that all operations read from its beginning, in caches of known capacity.
#[derive(Debug)]
pub(crate) struct Sequence<'a> {
    accesses: &'a Accesses,
    steps: Vec<(u32, f64)>,
    /// Misses that were asked for: block size, capacity in blocks, misses.
    known: Vec<(u64, u64, f64)>,
}

impl<'a> Sequence<'a> {
    /// `None` where operations differ by more than their ends.
    pub(crate) fn of(accesses: &'a Accesses) -> Option<Sequence<'a>> {
        Some(Sequence {
            steps: accesses.sequence_steps()?,
            accesses,
            known: Vec::new(),
        })
    }

    /// Misses of an operation in a cache that holds `capacity_blocks` blocks.
    pub(crate) fn misses(&mut self, block_bytes: u64, capacity_blocks: f64) -> f64 {
        let capacity = whole(capacity_blocks);
        let asked =
            |&&(block, blocks, _): &&(u64, u64, f64)| (block, blocks) == (block_bytes, capacity);
        if let Some(&(_, _, misses)) = self.known.iter().find(asked) {
            return misses;
        }
        let misses = self.at_capacity(block_bytes, capacity, None).0;
        self.known.push((block_bytes, capacity, misses));
        misses
    }

    /// Misses of the first `operations` operations together, from an empty cache.
    pub(crate) fn first_misses(
        &self,
        block_bytes: u64,
        capacity_blocks: f64,
        operations: f64,
    ) -> f64 {
        self.at_capacity(block_bytes, whole(capacity_blocks), Some(operations))
            .1
    }

    /// Sets of [`WAYS`] to twice as many ways hold what one set would, and are faster to search.
    fn at_capacity(&self, block_bytes: u64, capacity: u64, first: Option<f64>) -> (f64, f64) {
        const WAYS: u64 = 16;
        let sets = 1 << (capacity / WAYS).max(1).ilog2();
        let ways = (capacity + sets / 2) / sets;
        let steps = (self.accesses).steps_by_set(&self.steps, block_bytes, sets, |block| block);
        misses(&steps, ways, first)
    }
}

/// The whole blocks of a capacity; at least one.
fn whole(capacity_blocks: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number of blocks of a cache, at most those of the address space"
    )]
    let blocks = capacity_blocks.clamp(1.0, 2f64.powi(40)) as u64;
    blocks
}

/// As [`super::predict`], if operations read one sequence and all levels replace the least recently
/// used block.
pub(super) fn predict(
    accesses: &Accesses,
    hierarchy: &Hierarchy,
    frames: FrameMap,
    first: Option<f64>,
) -> Option<Vec<LevelPrediction>> {
    let (caches, tlbs) = (hierarchy.caches(), hierarchy.tlbs());
    let is_lru = |level: &CacheLevel| level.policy == ReplacementPolicy::Lru;
    if !caches.iter().chain(tlbs).all(is_lru) {
        return None;
    }
    let points = accesses.sequence_steps()?;
    let predict = |level: &CacheLevel, frames: FrameMap, above: Option<&CacheLevel>| {
        let geometry = level.geometry;
        let in_a_page = FRAME_BYTES / geometry.block_bytes();
        let (block_bytes, sets) = (geometry.block_bytes(), geometry.sets());
        let sets = accesses.steps_by_set(&points, block_bytes, sets, |block| match frames {
            FrameMap::Random if in_a_page > 1 => {
                let frame = SplitMix64::new(block / in_a_page).next_u64();
                frame
                    .wrapping_mul(in_a_page)
                    .wrapping_add(block % in_a_page)
            }
            _ => block,
        });
        // Some sets have a way more than others where the cache above has fewer sets.
        let more = above.map_or(0.0, |above| above.blocks() as f64 / geometry.sets() as f64);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most the blocks of a cache"
        )]
        let whole = more as u64;
        let ways = geometry.associativity() + whole;
        let mut result = misses(&sets, ways, first);
        let share = more - whole as f64;
        if share > 0.0 {
            let other = misses(&sets, ways + 1, first);
            result.0 += share * (other.0 - result.0);
            result.1 += share * (other.1 - result.1);
        }
        LevelPrediction {
            name: level.name.clone(),
            misses: if first.is_some() { result.1 } else { result.0 },
            tier: Tier::Sequence,
            reason: "all operations read one sequence: what comes between two touches is known"
                .to_owned(),
        }
    };
    let last = caches.len() - 1;
    let is_victim = |i: usize| i == last && hierarchy.inclusion() == Inclusion::VictimLast;
    let of_caches = caches.iter().enumerate().map(|(i, level)| {
        let above = i.checked_sub(1).filter(|_| is_victim(i));
        predict(level, frames, above.map(|above| &caches[above]))
    });
    let of_tlbs = tlbs
        .iter()
        .map(|level| predict(level, FrameMap::Identity, None));
    Some(of_caches.chain(of_tlbs).collect())
}

/// Misses of an operation, and of the `first` operations together, over all sets.
fn misses(steps: &[(usize, Step)], ways: u64, first: Option<f64>) -> (f64, f64) {
    let ways = usize::try_from(ways).unwrap_or(usize::MAX);
    if first.is_none() && steps.iter().all(|(_, step)| step.reach >= 1.0) {
        return (walk_misses(steps, ways), 0.0);
    }
    let (mut steady, mut of_first) = (0.0, 0.0);
    let mut of_set = Vec::new();
    for set in steps.chunk_by(|a, b| a.0 == b.0) {
        of_set.clear();
        of_set.extend(set.iter().map(|&(_, step)| step));
        set_misses(&of_set, ways, |step, is_first, misses| {
            steady += misses;
            if let Some(operations) = first {
                // The first touch of all misses, those after it as in the steady state.
                let reads = operations * step.reach;
                let cold = if is_first && operations > 0.0 {
                    -(operations * (-step.reach).ln_1p()).exp_m1()
                } else {
                    0.0
                };
                let again = if reads > 0.0 {
                    (reads - cold).max(0.0) / reads
                } else {
                    0.0
                };
                of_first += cold + again * operations * misses;
            }
        });
    }
    (steady, of_first)
}

/// Misses of an operation that reads all steps, after one like it.
fn walk_misses(steps: &[(usize, Step)], ways: usize) -> f64 {
    let mut misses = 0;
    for set in steps.chunk_by(|a, b| a.0 == b.0) {
        let mut stack = Stack::new(ways);
        for (_, step) in set {
            stack.touch(step.block);
        }
        misses += (set.iter())
            .filter(|(_, step)| !stack.touch(step.block))
            .count();
    }
    misses as f64
}

/// One block that is read.
#[derive(Clone, Copy, Debug)]
struct Step {
    block: u64,
    /// P(an operation reads it).
    reach: f64,
}

/// Calls `tell` for each step of one set: with the step, whether it is the first of its block, and
/// how often an operation misses there.
fn set_misses(steps: &[Step], ways: usize, mut tell: impl FnMut(Step, bool, f64)) {
    let order = Order::of(steps);
    let has_room = order.blocks <= ways;
    let mut stack = Stack::new(ways);
    let mut others = Others::new(order.blocks);
    let mut seen = 0;
    for (i, (&rank, &step)) in order.ranks.iter().zip(steps).enumerate() {
        let is_first = rank == seen;
        seen += usize::from(is_first);
        if has_room {
            tell(step, is_first, 0.0);
            continue;
        }
        let is_present = stack.touch(rank as u64);
        let misses = match (is_first, is_present) {
            (true, _) if rank < ways => order.first_misses(steps, i, ways, &mut others),
            (false, true) => 0.0,
            _ => step.reach,
        };
        tell(step, is_first, misses);
    }
}

/// The blocks of a set, numbered as they are first read.
struct Order {
    /// By step.
    ranks: Vec<usize>,
    /// By step, the next one that reads the same block, or the number of steps.
    next_same: Vec<usize>,
    /// How many different blocks there are.
    blocks: usize,
}

impl Order {
    fn of(steps: &[Step]) -> Order {
        let mut numbers: HashMap<u64, usize> = HashMap::new();
        let mut last: Vec<usize> = Vec::new();
        let mut ranks = Vec::with_capacity(steps.len());
        let mut next_same = vec![steps.len(); steps.len()];
        for (i, step) in steps.iter().enumerate() {
            let fresh = numbers.len();
            let rank = *numbers.entry(step.block).or_insert(fresh);
            match last.get_mut(rank) {
                Some(before) => {
                    next_same[*before] = i;
                    *before = i;
                }
                None => last.push(i),
            }
            ranks.push(rank);
        }
        Order {
            ranks,
            next_same,
            blocks: numbers.len(),
        }
    }

    /// P(an operation reads the block that is first read at step `first`, and misses it there).
    fn first_misses(&self, steps: &[Step], first: usize, ways: usize, others: &mut Others) -> f64 {
        let rank = self.ranks[first];
        let reach = |i: usize| steps.get(i).map_or(0.0, |step| step.reach);
        let mut misses = 0.0;
        let mut touched = first;
        while touched < steps.len() {
            // The last operation may have ended before the block's next step.
            let next = self.next_same[touched];
            others.clear();
            let mut needed = ways - rank;
            for i in touched + 1..next {
                if self.ranks[i] > rank && others.insert(self.ranks[i]) {
                    needed -= 1;
                    if needed == 0 {
                        misses += reach(i) - reach(next);
                        break;
                    }
                }
            }
            touched = next;
        }
        misses
    }
}

/// A set of blocks that is emptied at once.
struct Others {
    /// By rank, when it was inserted.
    times: Vec<u64>,
    now: u64,
}

impl Others {
    fn new(blocks: usize) -> Others {
        Others {
            times: vec![0; blocks],
            now: 0,
        }
    }

    fn clear(&mut self) {
        self.now += 1;
    }

    /// Whether it was not in there.
    fn insert(&mut self, rank: usize) -> bool {
        std::mem::replace(&mut self.times[rank], self.now) != self.now
    }
}

/// The last blocks that were touched, the latest first.
struct Stack {
    blocks: Vec<u64>,
    ways: usize,
}

impl Stack {
    fn new(ways: usize) -> Stack {
        Stack {
            blocks: Vec::new(),
            ways,
        }
    }

    /// Whether the block was among them.
    fn touch(&mut self, block: u64) -> bool {
        match self.blocks.iter().position(|&other| other == block) {
            Some(place) => {
                self.blocks[..=place].rotate_right(1);
                true
            }
            None => {
                self.blocks.truncate(self.ways - 1);
                self.blocks.insert(0, block);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
