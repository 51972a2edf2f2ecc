//! Misses counted over drawn operations, by the [`Simulator`].
//!
//! The caches are warmed first: each point is read once, in the order of drawn ages. A point that
//! an operation reads with probability `p` was last read an exponentially distributed time of mean
//! `1 / p` ago. That leaves least-recently-used caches nearly as they are in the steady state, and
//! operations take them the rest of the way. Then batches are counted until the means of all levels
//! are known well enough. From cold, the first operations are repeated with other keys and frames.

use crate::footprint::Replacement;
use crate::hierarchy::{CacheLevel, Hierarchy};
use crate::shape::random::SplitMix64;
use crate::simulator::{Frames, Simulator};
use crate::{Access, Accesses, Operations};

/// Characteristic times of a warm-up, and operations of one at least.
const WARM_TIMES: f64 = 0.1;
const WARM_OPERATIONS_MIN: f64 = 10_000.0;
/// Batches before the error is looked at.
const BATCHES_MIN: u64 = 16;
/// Batches that the allowed accesses are divided into.
const BATCHES_MAX: u64 = 256;
/// Repetitions of a cold start at most.
const COLD_STARTS_MAX: u64 = 256;

/// What to count, and how well.
pub(crate) struct Replay<'a> {
    pub(crate) accesses: &'a Accesses,
    pub(crate) hierarchy: &'a Hierarchy,
    pub(crate) frames: Frames,
    /// Chooses the operations.
    pub(crate) seed: u64,
    /// About how many accesses are made at most.
    pub(crate) accesses_max: u64,
    /// Counting ends when no level's standard error is larger, relative to its mean, or to `rare`
    /// for levels that miss less often than this in an operation.
    pub(crate) error_max: f64,
    pub(crate) rare: f64,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
#[cfg_attr(
    not(feature = "cli"),
    expect(dead_code, reason = "the command prints all of it")
)]
pub(crate) struct Counted {
    pub(crate) operations: u64,
    pub(crate) accesses: u64,
    /// Mean misses of an operation and their standard error: at each cache, then at each TLB.
    pub(crate) levels: Vec<(f64, f64)>,
    /// Whether no error is larger than allowed.
    pub(crate) is_exact: bool,
}

impl Replay<'_> {
    /// Counts operations in the steady state, `operations` of them where given. Calls `told` with
    /// the accesses made so far, from time to time.
    pub(crate) fn steady(&self, operations: Option<u64>, told: &mut dyn FnMut(u64)) -> Counted {
        let is_fixed = self.accesses.fixed_sequence().is_some();
        let mut stream = self.stream(0);
        let warm_up = if is_fixed {
            stream.run(1, u64::MAX)
        } else {
            stream.fill(self.accesses);
            stream.run(self.warm_up_operations(), self.accesses_max / 2)
        };
        let reads = stream.accesses / warm_up.max(1);
        let (batches_max, batch) = match operations {
            // As many as asked for, rounded up to equal batches.
            Some(operations) => {
                let batches = operations.clamp(1, 2 * BATCHES_MIN);
                (batches, operations.max(1).div_ceil(batches))
            }
            // All operations are alike.
            None if is_fixed => (1, 1),
            None => {
                let batch = self.accesses_max / BATCHES_MAX / reads.max(1);
                (u64::MAX, batch.clamp(1, 20_000))
            }
        };
        let mut sums = Sums::default();
        loop {
            told(stream.accesses);
            stream.simulator.reset_counts();
            let before = stream.accesses;
            let run = stream.run(batch, u64::MAX);
            sums.add(&stream.simulator, run, stream.accesses - before);
            let enough = operations.is_none() && sums.batches >= BATCHES_MIN;
            let counted = sums.counted(self);
            if sums.batches >= batches_max
                || enough && (counted.is_exact || stream.accesses > self.accesses_max)
            {
                return counted;
            }
        }
    }

    /// Counts the first operations from empty caches, several times; means are of one operation.
    pub(crate) fn first(&self, operations: u64, told: &mut dyn FnMut(u64)) -> Counted {
        // Making caches takes time too.
        let made: u64 = self.hierarchy.caches().iter().map(CacheLevel::blocks).sum();
        let mut sums = Sums::default();
        for start in 0..COLD_STARTS_MAX {
            let mut stream = self.stream(start);
            let run = stream.run(operations.max(1), self.accesses_max);
            sums.add(&stream.simulator, run, stream.accesses);
            let done = sums.accesses + made * (start + 1);
            told(done);
            let enough = sums.batches >= BATCHES_MIN;
            if (enough && sums.counted(self).is_exact) || done > self.accesses_max {
                break;
            }
        }
        let mut counted = sums.counted(self);
        if counted.operations < operations {
            // The rest is as in the steady state.
            counted.is_exact = false;
            let share = counted.operations as f64 / operations as f64;
            let rest = self.steady(None, &mut |_| ());
            for (level, rest) in counted.levels.iter_mut().zip(rest.levels) {
                level.0 += (1.0 - share) * (rest.0 - level.0);
            }
        }
        counted
    }

    fn stream(&self, start: u64) -> Stream<'_> {
        let mut frames = self.frames;
        if let Frames::Random { seed, .. } = &mut frames {
            *seed = seed.wrapping_add(start);
        }
        Stream {
            simulator: Simulator::new(self.hierarchy, frames),
            generated: self.accesses.operations(self.seed.wrapping_add(start)),
            reads: Vec::new(),
            accesses: 0,
        }
    }

    fn warm_up_operations(&self) -> u64 {
        let levels = self.hierarchy.caches().iter().chain(self.hierarchy.tlbs());
        let size = |(i, level): (usize, &CacheLevel)| {
            let above = self.hierarchy.above_victim(i).map_or(0, CacheLevel::blocks);
            (level.geometry.block_bytes(), level.blocks() + above)
        };
        let mut sizes: Vec<(u64, u64)> = levels.enumerate().map(size).collect();
        sizes.sort_unstable();
        let mut longest = WARM_OPERATIONS_MIN;
        for of_size in sizes.chunk_by(|a, b| a.0 == b.0) {
            let footprint = self.accesses.block_probabilities(of_size[0].0).footprint();
            for &(_, blocks) in of_size {
                let time = footprint.characteristic_time(blocks as f64, Replacement::Lru);
                if time.is_finite() {
                    longest = longest.max(WARM_TIMES * time);
                }
            }
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 10^4 to 10^12"
        )]
        let operations = longest.min(1e12) as u64;
        operations
    }
}

/// Operations that go into a simulator.
struct Stream<'a> {
    simulator: Simulator,
    generated: Operations<'a>,
    reads: Vec<Access>,
    /// Accesses that operations have made so far.
    accesses: u64,
}

impl Stream<'_> {
    /// Reads each point once, the one last read longest ago first.
    fn fill(&mut self, accesses: &Accesses) {
        let mut random = SplitMix64::new(1);
        let mut ages: Vec<(f64, u32)> = Vec::with_capacity(accesses.len());
        for point in (0u32..).take(accesses.len()) {
            let probability = accesses.reach(point);
            let unit = ((random.next_u64() >> 11) as f64 + 1.0) / 2f64.powi(53);
            if probability > 0.0 {
                ages.push((-unit.ln() / probability, point));
            }
        }
        ages.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        for (_, point) in ages {
            let read = accesses.access(point);
            self.simulator.access(read.address, read.bytes);
        }
    }

    /// Runs `operations` operations, or fewer if more than `accesses_max` accesses have been made;
    /// returns how many.
    fn run(&mut self, operations: u64, accesses_max: u64) -> u64 {
        let mut done = 0;
        while done < operations && self.accesses <= accesses_max {
            self.generated.next_into(&mut self.reads);
            for read in &self.reads {
                self.simulator.access(read.address, read.bytes);
            }
            done += 1;
            self.accesses += self.reads.len() as u64;
        }
        done
    }
}

/// Sums over batches.
#[derive(Default)]
struct Sums {
    batches: u64,
    operations: u64,
    accesses: u64,
    /// By level, misses of an operation and their squares.
    levels: Vec<(f64, f64)>,
}

impl Sums {
    /// Adds a batch of operations, whose misses are all that the simulator has counted.
    fn add(&mut self, simulator: &Simulator, operations: u64, accesses: u64) {
        self.batches += 1;
        self.operations += operations;
        self.accesses += accesses;
        let counts = simulator.counts();
        let levels = counts.caches.iter().chain(&counts.tlbs);
        self.levels.resize(levels.clone().count(), (0.0, 0.0));
        for (sum, level) in self.levels.iter_mut().zip(levels) {
            let misses = level.misses as f64 / operations.max(1) as f64;
            sum.0 += misses;
            sum.1 += misses * misses;
        }
    }

    fn counted(&self, replay: &Replay<'_>) -> Counted {
        let n = self.batches.max(1) as f64;
        let mean_and_error = |&(sum, squares): &(f64, f64)| {
            let mean = sum / n;
            let variance = (squares / n - mean * mean).max(0.0);
            (mean, (variance / (n - 1.0).max(1.0)).sqrt())
        };
        let levels: Vec<(f64, f64)> = self.levels.iter().map(mean_and_error).collect();
        let is_known =
            |&(mean, error): &(f64, f64)| error <= replay.error_max * mean.max(replay.rare);
        let is_enough = self.batches > 1 || replay.accesses.fixed_sequence().is_some();
        Counted {
            operations: self.operations,
            accesses: self.accesses,
            is_exact: is_enough && levels.iter().all(is_known),
            levels,
        }
    }
}
