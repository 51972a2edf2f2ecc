//! The footprint tier: how many blocks a number of operations touches, and what a cache of a given
//! capacity then misses.
//!
//! An operation touches block `b` with probability `p_b`, independently of the operations before
//! (the *independent reference model*). Time is counted in operations. In `t` of them
//!
//! ```text
//! U(t) = sum over blocks of 1 - (1 - p_b)^t
//! ```
//!
//! distinct blocks are touched. A cache of `C` blocks with least-recently-used replacement holds,
//! to a very good approximation, what was touched in the last `t_C` operations, where
//! `U(t_C) = C`: the *characteristic time* (Che, Tung and Wang, "Hierarchical Web Caching Systems",
//! IEEE JSAC 2002; Fricker, Robert and Roberts, "A Versatile and Accurate Approximation for LRU
//! Cache Performance", 2012, <https://arxiv.org/abs/1202.3974>). One operation misses
//!
//! ```text
//! M(C) = sum over blocks of p_b (1 - p_b)^(t_C)
//! ```
//!
//! Blocks are put into classes by probability, sixteen to the octave; everything after that costs
//! O(classes).
//!
//! **Replacement.** Large shared caches are not LRU. With *random* replacement the same argument
//! holds with another probability of being present (Fricker, Robert and Roberts, section 5;
//! Gelenbe, "A Unified Approach to the Evaluation of a Class of Replacement Algorithms", IEEE
//! Transactions on Computers 1973):
//!
//! ```text
//! LRU:     present = 1 - (1 - p)^t        random:  present = p t / (1 + p t)
//! sum of present over blocks = C
//! ```
//!
//! On an Emerald Rapids virtual machine, random trees of 2^16 to 2^20 nodes took 1.09 to 1.24 times
//! what the LRU formula predicts, and 0.91 to 1.08 times what the other does. Uniform accesses hit
//! with `C / blocks` under both, so a calibration by uniform accesses serves both.
//!
//! **Limits.** The cache counts as fully associative. The model ignores the order of the blocks of
//! an operation, so it must be short compared with the cache: a long walk evicts the blocks that
//! the next walk starts with. Predicted over simulated misses (LRU, 1000 blocks, structures 1.2 to
//! 4 times the cache):
//!
//! | touches of an operation over capacity | 1 % | 2 % | 5 % | 10 % | 20 % |
//! |---|---|---|---|---|---|
//! | many lists (chains of a table) | 0.97-1.00 | 0.96-0.99 | 0.85-0.98 | 0.69-0.97 | 0.45-0.96 |
//! | complete trees, 1 to 32 blocks a node | 1.00 | 1.00 | 0.98-0.99 | 0.97-0.99 | 0.94-0.98 |

/// Bits of a probability's mantissa that tell classes apart: 2^4 classes to the octave.
const CLASS_MANTISSA_BITS: u32 = 4;
/// Shift that leaves exponent and class bits of an `f64`.
const CLASS_SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - CLASS_MANTISSA_BITS;
/// Class index of probability 1, the largest.
const CLASS_OF_ONE: u64 = 1.0f64.to_bits() >> CLASS_SHIFT;
/// Octaves below 1 that have classes of their own; a block touched once in 2^64 operations is as
/// good as untouched.
const OCTAVES: usize = 64;
/// Blocks whose probability is this close to 1 are touched by every operation: sums over all nodes
/// round that far.
const CERTAIN: f64 = 1.0 - 1e-9;
/// More than Newton's method takes: near a full cache an LRU cache's time grows by steps of a
/// constant, and the logarithm of what rounding leaves is below 40.
const NEWTON_STEPS: u32 = 200;
/// Number of classes.
const CLASSES: usize = (OCTAVES << CLASS_MANTISSA_BITS) + 1;

/// Which block a full cache gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "lowercase"))]
pub enum Replacement {
    /// The least recently used one: what simulators and the literature assume.
    #[default]
    Lru,
    /// Any one: what large shared caches with hashed sets and approximate recency behave like.
    Random,
}

/// Blocks that are touched with about the same probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockClass {
    /// Mean probability `p` that one operation touches a block of the class.
    pub probability: f64,
    /// How many blocks the class has.
    pub blocks: f64,
    /// Mean share of its touches that a block is *waited for*: below 1 where several blocks of one
    /// node are requested together, since only one latency shows then.
    pub exposure: f64,
    /// `ln(1 - p)`.
    log_untouched: f64,
}

impl BlockClass {
    fn new(probability: f64, blocks: f64, exposure: f64) -> BlockClass {
        let probability = probability.clamp(0.0, 1.0);
        BlockClass {
            probability,
            blocks,
            exposure,
            log_untouched: (-probability).ln_1p(),
        }
    }

    /// Whether every operation touches the blocks of the class.
    fn is_certain(&self) -> bool {
        self.probability >= 1.0
    }

    /// Probability that a block of the class is touched within `operations`: `1 - (1 - p)^t`.
    fn touched_within(&self, operations: f64) -> f64 {
        if self.is_certain() {
            return if operations > 0.0 { 1.0 } else { 0.0 };
        }
        -(self.log_untouched * operations).exp_m1()
    }

    /// Probability that a block of the class is in a cache of this characteristic time.
    fn present(&self, time: f64, replacement: Replacement) -> f64 {
        match replacement {
            Replacement::Lru => self.touched_within(time),
            Replacement::Random if time.is_infinite() => 1.0,
            Replacement::Random => {
                let expected_touches = self.probability * time;
                expected_touches / (1.0 + expected_touches)
            }
        }
    }
}

/// Block probabilities of one structure at one block size, as a histogram.
///
/// Invariant: classes have positive block counts and probabilities in `(0, 1]`, the most probable
/// first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footprint {
    classes: Vec<BlockClass>,
    blocks: f64,
    touches: f64,
}

/// Collects block probabilities into a [`Footprint`].
#[derive(Clone, Debug)]
pub struct FootprintBuilder {
    sums: Vec<ClassSums>,
}

/// Sums over the blocks of one class.
#[derive(Clone, Copy, Debug, Default)]
struct ClassSums {
    probability: f64,
    exposed: f64,
    blocks: f64,
}

impl Default for FootprintBuilder {
    fn default() -> FootprintBuilder {
        FootprintBuilder::new()
    }
}

impl FootprintBuilder {
    /// An empty collection.
    pub fn new() -> FootprintBuilder {
        FootprintBuilder {
            sums: vec![ClassSums::default(); CLASSES],
        }
    }

    /// Adds `blocks` blocks, each touched with probability `probability` and waited for each time.
    /// O(1).
    ///
    /// Blocks that are never touched (probability not above 0, or no number) are left out; a
    /// probability that differs from 1 by no more than rounding does, or lies above, counts as 1.
    pub fn add(&mut self, probability: f64, blocks: f64) {
        self.add_exposed(probability, probability, blocks);
    }

    /// Adds `blocks` blocks, each touched with probability `probability` and waited for with
    /// probability `exposed`.
    pub fn add_exposed(&mut self, probability: f64, exposed: f64, blocks: f64) {
        if !(probability > 0.0 && blocks > 0.0) {
            return;
        }
        let probability = if probability > CERTAIN {
            1.0
        } else {
            probability
        };
        let below_one = CLASS_OF_ONE - (probability.to_bits() >> CLASS_SHIFT);
        let class = usize::try_from(below_one).map_or(CLASSES - 1, |class| class.min(CLASSES - 1));
        let sums = &mut self.sums[class];
        sums.probability += probability * blocks;
        // `min` and `max` also turn a NaN into a number.
        sums.exposed += exposed.max(0.0).min(probability) * blocks;
        sums.blocks += blocks;
    }

    /// The histogram of what was added.
    pub fn finish(self) -> Footprint {
        let classes: Vec<BlockClass> = self
            .sums
            .into_iter()
            .filter(|sums| sums.blocks > 0.0)
            .map(|sums| {
                let exposure = sums.exposed / sums.probability;
                BlockClass::new(sums.probability / sums.blocks, sums.blocks, exposure)
            })
            .filter(|class| class.probability > 0.0)
            .collect();
        Footprint {
            blocks: classes.iter().map(|class| class.blocks).sum(),
            touches: classes
                .iter()
                .map(|class| class.blocks * class.probability)
                .sum(),
            classes,
        }
    }
}

impl Footprint {
    /// The histogram of one probability for each block. O(blocks).
    pub fn from_probabilities(probabilities: impl IntoIterator<Item = f64>) -> Footprint {
        let mut builder = FootprintBuilder::new();
        for probability in probabilities {
            builder.add(probability, 1.0);
        }
        builder.finish()
    }

    /// The classes, the most probable first.
    pub fn classes(&self) -> &[BlockClass] {
        &self.classes
    }

    /// Number of blocks that are ever touched.
    pub fn blocks(&self) -> f64 {
        self.blocks
    }

    /// Blocks that one operation touches on average: the misses of a cache that holds nothing.
    pub fn touches(&self) -> f64 {
        self.touches
    }

    /// Expected number of distinct blocks that `operations` operations touch, `U(t)`. O(classes).
    pub fn distinct_blocks(&self, operations: f64) -> f64 {
        self.classes
            .iter()
            .map(|class| class.blocks * class.touched_within(operations))
            .sum()
    }

    /// Number of blocks that every operation touches.
    fn certain_blocks(&self) -> f64 {
        // Certainty is a class of its own, the first.
        match self.classes.first() {
            Some(class) if class.is_certain() => class.blocks,
            _ => 0.0,
        }
    }

    /// Expected number of blocks in a cache of this characteristic time, and how fast it grows with
    /// the time. At 0, what is there right after.
    fn present_blocks(&self, time: f64, replacement: Replacement) -> (f64, f64) {
        let (mut present, mut slope) = (0.0, 0.0);
        for class in &self.classes {
            let (share, growth) = match replacement {
                Replacement::Lru if class.is_certain() => (1.0, 0.0),
                Replacement::Lru => {
                    let absent = (class.log_untouched * time).exp();
                    (1.0 - absent, -class.log_untouched * absent)
                }
                Replacement::Random => {
                    let absent = 1.0 / (1.0 + class.probability * time);
                    (1.0 - absent, class.probability * absent * absent)
                }
            };
            present += class.blocks * share;
            slope += class.blocks * growth;
        }
        (present, slope)
    }

    /// The characteristic time of a cache of `capacity_blocks` blocks, in operations. O(classes).
    ///
    /// For LRU it is the number of operations after which that many distinct blocks have been
    /// touched, `U(t_C) = C`. Infinite when the structure has no more blocks than that, 0 when the
    /// capacity is 0. Also 0 for LRU when the blocks that *every* operation touches do not leave
    /// room for one more: they follow each other in turns, and each is evicted before its turn
    /// comes again.
    pub fn characteristic_time(&self, capacity_blocks: f64, replacement: Replacement) -> f64 {
        if capacity_blocks >= self.blocks {
            return f64::INFINITY;
        }
        if capacity_blocks.is_nan() || capacity_blocks <= 0.0 {
            return 0.0;
        }
        if replacement == Replacement::Lru && capacity_blocks <= self.certain_blocks() {
            return 0.0;
        }
        // Presence is concave in time, so that Newton's method comes from the left and never passes
        // the solution.
        let mut time = 0.0;
        for _ in 0..NEWTON_STEPS {
            let (present, slope) = self.present_blocks(time, replacement);
            let step = (capacity_blocks - present) / slope;
            // Rounding can bring it to the solution's other side, and a slope of 0 far beyond it.
            if !(step > time * 1e-12 && step.is_finite()) {
                break;
            }
            time += step;
            if step < time * 1e-10 {
                break;
            }
        }
        time
    }

    /// Misses of one operation in a cache of `capacity_blocks` blocks, in the steady state: `M(C)`.
    /// O(classes).
    ///
    /// Falls from [`touches`](Footprint::touches) at capacity 0 to 0 when all blocks fit.
    pub fn misses(&self, capacity_blocks: f64, replacement: Replacement) -> f64 {
        self.misses_and_waits(capacity_blocks, replacement).0
    }

    /// Misses of one operation, and how many of them it waits for: fewer, where the blocks of a
    /// node are requested together.
    pub fn misses_and_waits(&self, capacity_blocks: f64, replacement: Replacement) -> (f64, f64) {
        let time = self.characteristic_time(capacity_blocks, replacement);
        self.misses_and_waits_at(time, replacement)
    }

    /// Misses of the first `operations` operations together, from an empty cache: all new blocks
    /// until it is full, then those of the steady state.
    pub(crate) fn first_misses(
        &self,
        capacity_blocks: f64,
        replacement: Replacement,
        operations: f64,
    ) -> f64 {
        let full = self.characteristic_time(capacity_blocks, Replacement::Lru);
        let steady = self.misses(capacity_blocks, replacement);
        self.distinct_blocks(operations.min(full)) + (operations - full).max(0.0) * steady
    }

    /// [`misses_and_waits`](Footprint::misses_and_waits) of a cache of this characteristic time.
    pub(crate) fn misses_and_waits_at(&self, time: f64, replacement: Replacement) -> (f64, f64) {
        if time.is_infinite() {
            return (0.0, 0.0);
        }
        self.classes
            .iter()
            .fold((0.0, 0.0), |(misses, waits), class| {
                let missed =
                    class.blocks * class.probability * (1.0 - class.present(time, replacement));
                (misses + missed, waits + missed * class.exposure)
            })
    }
}

/// Probability that a block which an operation touches with the given probability is not in a cache
/// of the given characteristic time.
pub(crate) fn absent(probability: f64, time: f64, replacement: Replacement) -> f64 {
    if time.is_infinite() {
        // Everything fits, also what is never touched.
        return 0.0;
    }
    match replacement {
        Replacement::Lru => 1.0 - BlockClass::new(probability, 1.0, 1.0).touched_within(time),
        Replacement::Random => 1.0 / (1.0 + probability * time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    /// Probabilities from arbitrary bytes: a mixture of hot and cold blocks.
    fn probabilities(seeds: &[u16]) -> Vec<f64> {
        seeds
            .iter()
            .map(|&seed| 0.5f64.powf(f64::from(seed) / 6000.0))
            .collect()
    }

    #[test]
    fn nothing_is_missed_when_nothing_exists_or_all_fits() {
        let empty = Footprint::from_probabilities([]);
        assert!(empty.misses(0.0, Replacement::Lru).abs() < 1e-12);
        assert!(
            empty
                .characteristic_time(0.0, Replacement::Lru)
                .is_infinite()
        );
        let two = Footprint::from_probabilities([1.0, 0.5]);
        assert!(two.misses(2.0, Replacement::Lru).abs() < 1e-12);
        assert!((two.misses(0.0, Replacement::Lru) - 1.5).abs() < 1e-12);
    }

    #[test]
    fn uniform_blocks_miss_in_proportion_to_what_does_not_fit() {
        // 1000 blocks, one touched by each operation: hit ratio C / 1000 exactly.
        let uniform = Footprint::from_probabilities(std::iter::repeat_n(0.001, 1000));
        for capacity in [1.0, 100.0, 500.0, 990.0] {
            let expected = 1.0 - capacity / 1000.0;
            for replacement in [Replacement::Lru, Replacement::Random] {
                let misses = uniform.misses(capacity, replacement);
                assert!(
                    (misses - expected).abs() < 1e-6,
                    "capacity {capacity}, {replacement:?}"
                );
            }
        }
    }

    #[test]
    fn blocks_in_turns_that_do_not_fit_are_all_missed_by_lru() {
        let turns = Footprint::from_probabilities([1.0; 10]);
        for capacity in [0.5, 1.0, 9.0, 9.99] {
            assert!((turns.misses(capacity, Replacement::Lru) - 10.0).abs() < 1e-12);
        }
        assert!(turns.misses(10.0, Replacement::Lru).abs() < 1e-12);
        // A sum over all nodes that comes out just below 1 is as certain.
        let mut builder = FootprintBuilder::new();
        builder.add(1.0 - f64::EPSILON, 6.0);
        builder.add(0.99, 4.0);
        let mixed = builder.finish();
        assert!((mixed.misses(6.0, Replacement::Lru) - mixed.touches()).abs() < 1e-12);
        assert!(mixed.misses(7.0, Replacement::Lru) < 4.0);
    }

    #[test]
    fn nothing_is_absent_where_all_fits() {
        for replacement in [Replacement::Lru, Replacement::Random] {
            for probability in [0.0, 1e-300, 0.5, 1.0] {
                assert!(absent(probability, f64::INFINITY, replacement).abs() < 1e-12);
            }
            assert!((absent(0.0, 5.0, replacement) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn odd_numbers_are_left_out_or_clamped() {
        let mut builder = FootprintBuilder::new();
        for probability in [f64::NAN, -1.0, 0.0, 1.0 + 1e-12, 7.0, 1e-300] {
            builder.add(probability, 1.0);
        }
        let footprint = builder.finish();
        assert!((footprint.blocks() - 3.0).abs() < 1e-12);
        assert!((footprint.touches() - 2.0).abs() < 1e-9);
        assert!(footprint.misses(f64::NAN, Replacement::Lru).is_finite());
    }

    #[test]
    fn classes_are_fine_enough() {
        // Summed by class or one by one, U(t) agrees within a tenth of a percent.
        let exact: Vec<f64> = (1..5000).map(|i| 1.0 / f64::from(i)).collect();
        let footprint = Footprint::from_probabilities(exact.iter().copied());
        for t in [1.0, 30.0, 900.0, 40_000.0] {
            let one_by_one: f64 = exact.iter().map(|p| 1.0 - (1.0 - p).powf(t)).sum();
            let error = footprint.distinct_blocks(t) / one_by_one - 1.0;
            assert!(error.abs() < 1e-3, "t {t}: {error}");
        }
    }

    #[test]
    fn nearly_certain_blocks_are_solved_for_too() {
        // Found by the property test below: one certain block and 62 that are touched by all but
        // one in 9000 operations.
        let mut seeds = vec![1; 62];
        seeds.push(0);
        let footprint = Footprint::from_probabilities(probabilities(&seeds));
        let time = footprint.characteristic_time(1.02, Replacement::Lru);
        assert!((footprint.distinct_blocks(time) - 1.02).abs() < 1e-5);
    }

    quickcheck! {
        fn distinct_blocks_grow_and_stay_below_all_blocks(seeds: Vec<u16>, a: u32, b: u32) -> bool {
            let footprint = Footprint::from_probabilities(probabilities(&seeds));
            let (less, more) = (f64::from(a.min(b)), f64::from(a.max(b)));
            let (u_less, u_more) = (
                footprint.distinct_blocks(less),
                footprint.distinct_blocks(more),
            );
            0.0 <= u_less && u_less <= u_more + 1e-9 && u_more <= footprint.blocks() + 1e-9
        }

        fn more_capacity_never_misses_more(seeds: Vec<u16>, a: u16, b: u16) -> bool {
            let footprint = Footprint::from_probabilities(probabilities(&seeds));
            let blocks = footprint.blocks();
            [Replacement::Lru, Replacement::Random]
                .into_iter()
                .all(|replacement| {
                    let at =
                        |x: u16| footprint.misses(blocks * f64::from(x) / 65_536.0, replacement);
                    at(a.max(b)) <= at(a.min(b)) + 1e-6
                        && at(a) <= footprint.touches() + 1e-9
                        && at(a) >= 0.0
                })
        }

        fn characteristic_time_solves_its_equation(seeds: Vec<u16>, a: u16) -> bool {
            let footprint = Footprint::from_probabilities(probabilities(&seeds));
            let capacity = footprint.blocks() * f64::from(a) / 65_536.0;
            let time = footprint.characteristic_time(capacity, Replacement::Lru);
            // Blocks touched by every operation make U jump at t = 0+: below, nothing stays until
            // it is touched again.
            let certain: f64 = footprint
                .classes()
                .iter()
                .filter(|c| c.probability >= 1.0)
                .map(|c| c.blocks)
                .sum();
            if time.is_infinite() {
                capacity >= footprint.blocks()
            } else if capacity <= certain {
                time <= 0.0
                    && (footprint.misses(capacity, Replacement::Lru) - footprint.touches()).abs()
                        <= 1e-9
            } else {
                (footprint.distinct_blocks(time) - capacity).abs() <= 1e-5 * footprint.blocks()
            }
        }
    }
}
