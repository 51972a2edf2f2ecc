//! How many blocks a number of operations touches, and what a cache of some capacity then misses.
//!
//! An operation touches block `b` with probability `p_b`, independently of the operations before.
//! In `t` operations, `U(t) = sum over blocks of 1 - (1 - p_b)^t` distinct blocks are touched. A
//! cache of `C` blocks with least-recently-used replacement holds, to a very good approximation,
//! what was touched in the last `t_C` operations, where `U(t_C) = C`: the *characteristic time*
//! (Che, Tung and Wang, "Hierarchical Web Caching Systems", IEEE JSAC 2002). One operation misses
//! `M(C) = sum over blocks of p_b (1 - p_b)^(t_C)`. For *random* replacement, which large shared
//! caches come closer to, another probability takes the place of `(1 - p)^t` (Fricker, Robert and
//! Roberts, <https://arxiv.org/abs/1202.3974>, section 5):
//!
//! ```text
//! absent:   LRU (1 - p)^t     random 1 / (1 + p t)      sum of 1 - absent over blocks = C
//! ```
//!
//! On an Emerald Rapids virtual machine, random trees of 2^16 to 2^20 nodes took 1.09 to 1.24 times
//! what the LRU formula predicts, and 0.91 to 1.08 times what the other does.
//!
//! **Limits.** The cache counts as fully associative. The model ignores the order of the blocks of
//! an operation, so it must be short compared with the cache. Predicted over simulated misses (LRU,
//! 1000 blocks, structures 1.2 to 4 times the cache):
//!
//! | touches of an operation over capacity | 1 % | 2 % | 5 % | 10 % | 20 % |
//! |---|---|---|---|---|---|
//! | many lists (chains of a table) | 0.97-1.00 | 0.96-0.99 | 0.85-0.98 | 0.69-0.97 | 0.45-0.96 |
//! | complete trees, 1 to 32 blocks a node | 1.00 | 1.00 | 0.98-0.99 | 0.97-0.99 | 0.94-0.98 |

/// Classes of probabilities to the octave, as bits of the mantissa.
const CLASS_MANTISSA_BITS: u32 = 4;
/// Shift that leaves exponent and class bits of an `f64`.
const CLASS_SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - CLASS_MANTISSA_BITS;
/// Class index of probability 1, the largest.
const CLASS_OF_ONE: u64 = 1.0f64.to_bits() >> CLASS_SHIFT;
/// Number of classes, for 64 octaves: rarer blocks are as good as untouched.
const CLASSES: usize = (64 << CLASS_MANTISSA_BITS) + 1;
/// Blocks whose probability is this close to 1 are touched by every operation: sums over all nodes
/// round that far.
const CERTAIN: f64 = 1.0 - 1e-9;
/// More than Newton's method takes: near a full cache an LRU cache's time grows by steps of a
/// constant, and the logarithm of what rounding leaves is below 40.
const NEWTON_STEPS: u32 = 200;

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

/// Block probabilities of one structure at one block size, as a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footprint {
    /// The most probable first.
    classes: Vec<Class>,
    blocks: f64,
    touches: f64,
}

/// Blocks that are touched with about the same probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Class {
    /// Mean probability that one operation touches a block of the class, in `(0, 1]`.
    probability: f64,
    /// As `probability`, that one operation waits for the block.
    exposed: f64,
    /// How many blocks the class has; above 0.
    blocks: f64,
}

impl Class {
    /// Whether every operation touches the blocks of the class.
    fn is_certain(&self) -> bool {
        self.probability >= 1.0
    }
}

impl Footprint {
    /// The histogram of one probability for each block. O(blocks).
    ///
    /// Blocks that are never touched (probability not above 0, or no number) are left out. A
    /// probability that differs from 1 by no more than rounding does, or lies above, counts as 1.
    pub fn from_probabilities(probabilities: impl IntoIterator<Item = f64>) -> Footprint {
        Footprint::of_classes(probabilities.into_iter().map(|p| (p, p, 1.0)))
    }

    /// The histogram of numbers of blocks, each with the probabilities that one operation touches
    /// and that it waits for such a block: `(touched, waited for, blocks)`.
    pub(crate) fn of_classes(parts: impl Iterator<Item = (f64, f64, f64)>) -> Footprint {
        let mut classes = vec![Class::default(); CLASSES];
        for (probability, exposed, blocks) in parts {
            if !(probability > 0.0 && blocks > 0.0) {
                continue;
            }
            let probability = if probability > CERTAIN {
                1.0
            } else {
                probability
            };
            let below_one = CLASS_OF_ONE - (probability.to_bits() >> CLASS_SHIFT);
            let class = usize::try_from(below_one)
                .unwrap_or(CLASSES)
                .min(CLASSES - 1);
            let sums = &mut classes[class];
            sums.probability += probability * blocks;
            // `min` and `max` also turn a NaN into a number.
            sums.exposed += exposed.max(0.0).min(probability) * blocks;
            sums.blocks += blocks;
        }
        for class in &mut classes {
            class.probability = (class.probability / class.blocks).min(1.0);
            class.exposed /= class.blocks;
        }
        // Also leaves out the classes of no blocks, whose mean is not a number.
        classes.retain(|class| class.probability > 0.0 && class.blocks > 0.0);
        let touches = classes.iter().map(|class| class.blocks * class.probability);
        Footprint {
            blocks: classes.iter().map(|class| class.blocks).sum(),
            touches: touches.sum(),
            classes,
        }
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
        let touched = |class: &Class| {
            class.blocks * (1.0 - absent(class.probability, operations, Replacement::Lru))
        };
        self.classes.iter().map(touched).sum()
    }

    /// Expected number of blocks in a cache of this characteristic time, and how fast it grows with
    /// the time. At 0, what is there right after.
    fn present_blocks(&self, time: f64, replacement: Replacement) -> (f64, f64) {
        let (mut present, mut slope) = (0.0, 0.0);
        for class in &self.classes {
            let absent = absent(class.probability, time, replacement);
            let (share, growth) = match replacement {
                Replacement::Lru if class.is_certain() => (1.0, 0.0),
                Replacement::Lru => (1.0 - absent, -(-class.probability).ln_1p() * absent),
                Replacement::Random => (1.0 - absent, class.probability * absent * absent),
            };
            present += class.blocks * share;
            slope += class.blocks * growth;
        }
        (present, slope)
    }

    /// The characteristic time of a cache of `capacity_blocks` blocks, in operations. O(classes).
    ///
    /// Infinite when the structure has no more blocks than that, 0 when the capacity is 0. Also 0
    /// for LRU when the blocks that *every* operation touches do not leave room for one more: they
    /// follow each other in turns, and each is evicted before its turn comes again.
    pub fn characteristic_time(&self, capacity_blocks: f64, replacement: Replacement) -> f64 {
        if capacity_blocks >= self.blocks {
            return f64::INFINITY;
        }
        let certain = self.classes.first().filter(|class| class.is_certain());
        let certain_blocks = match replacement {
            Replacement::Lru => certain.map_or(0.0, |class| class.blocks),
            Replacement::Random => 0.0,
        };
        if capacity_blocks.is_nan() || capacity_blocks <= certain_blocks {
            return 0.0;
        }
        // Presence is concave in time, so that Newton's method comes from the left and never passes
        // the solution.
        let mut time = 0.0;
        for _ in 0..NEWTON_STEPS {
            let (present, slope) = self.present_blocks(time, replacement);
            let step = (capacity_blocks - present) / slope;
            // Rounding can bring it to the solution's other side, and a slope of 0 far beyond it.
            if !(step > time * 1e-11 && step.is_finite()) {
                break;
            }
            time += step;
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

    /// [`misses_and_waits`](Footprint::misses_and_waits) of a cache of this characteristic time.
    pub(crate) fn misses_and_waits_at(&self, time: f64, replacement: Replacement) -> (f64, f64) {
        let (mut misses, mut waits) = (0.0, 0.0);
        for class in &self.classes {
            let absent = class.blocks * absent(class.probability, time, replacement);
            misses += class.probability * absent;
            waits += class.exposed * absent;
        }
        (misses, waits)
    }

    /// Misses of the first `operations` operations together, from an empty cache: all new blocks
    /// until it is full, then `steady` an operation.
    pub(crate) fn first_misses(&self, capacity_blocks: f64, steady: f64, operations: f64) -> f64 {
        let full = self.characteristic_time(capacity_blocks, Replacement::Lru);
        self.distinct_blocks(operations.min(full)) + (operations - full).max(0.0) * steady
    }
}

/// Probability that a block which an operation touches with the given probability is not in a cache
/// of the given characteristic time.
pub(crate) fn absent(probability: f64, time: f64, replacement: Replacement) -> f64 {
    match replacement {
        // Everything fits, also what is never touched.
        _ if time.is_infinite() => 0.0,
        Replacement::Lru if time > 0.0 => ((-probability.clamp(0.0, 1.0)).ln_1p() * time).exp(),
        Replacement::Lru => 1.0,
        Replacement::Random => 1.0 / (1.0 + probability * time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    const BOTH: [Replacement; 2] = [Replacement::Lru, Replacement::Random];

    /// Probabilities from arbitrary bytes: a mixture of hot and cold blocks.
    fn mixture(seeds: &[u16]) -> Footprint {
        let probabilities = seeds
            .iter()
            .map(|&seed| 0.5f64.powf(f64::from(seed) / 6000.0));
        Footprint::from_probabilities(probabilities)
    }

    #[test]
    fn known_footprints_miss_what_is_known() {
        let empty = Footprint::from_probabilities([]);
        let never = empty.characteristic_time(0.0, Replacement::Lru);
        assert!(never.is_infinite());
        let two = Footprint::from_probabilities([1.0, 0.5]);
        // 1000 blocks, one touched by each operation: hit ratio C / 1000 exactly.
        let uniform = Footprint::from_probabilities(std::iter::repeat_n(0.001, 1000));
        let turns = Footprint::from_probabilities([1.0; 10]);
        // A sum over all nodes that comes out just below 1 is as certain.
        let nearly = [1.0 - f64::EPSILON; 6].into_iter().chain([0.99; 4]);
        let nearly = Footprint::from_probabilities(nearly);
        for (footprint, capacity, expected) in [
            (&empty, 0.0, 0.0),
            (&two, 2.0, 0.0),
            (&two, 0.0, 1.5),
            (&uniform, 1.0, 0.999),
            (&uniform, 500.0, 0.5),
            (&uniform, 990.0, 0.01),
            (&turns, 0.5, 10.0),
            (&turns, 9.99, 10.0),
            (&turns, 10.0, 0.0),
            (&nearly, 6.0, 9.96),
        ] {
            let misses = footprint.misses(capacity, Replacement::Lru);
            assert!((misses - expected).abs() < 1e-6, "{misses} for {expected}");
        }
        assert!((uniform.misses(100.0, Replacement::Random) - 0.9).abs() < 1e-6);
        assert!(nearly.misses(7.0, Replacement::Lru) < 4.0);
    }

    #[test]
    fn odd_numbers_are_left_out_or_clamped() {
        for replacement in BOTH {
            for probability in [0.0, 1e-300, 0.5, 1.0] {
                assert!(absent(probability, f64::INFINITY, replacement).abs() < 1e-12);
            }
            assert!((absent(0.0, 5.0, replacement) - 1.0).abs() < 1e-12);
        }
        let odd = [f64::NAN, -1.0, 0.0, 1.0 + 1e-12, 7.0, 1e-300];
        let footprint = Footprint::from_probabilities(odd);
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

    /// Whether time and misses are those of the definition at a share of all blocks.
    fn solves(footprint: &Footprint, share: f64) -> bool {
        let capacity = footprint.blocks() * share;
        let time = footprint.characteristic_time(capacity, Replacement::Lru);
        let certain = footprint.classes.iter().filter(|class| class.is_certain());
        let certain: f64 = certain.map(|class| class.blocks).sum();
        if time.is_infinite() {
            capacity >= footprint.blocks()
        } else if capacity <= certain {
            // Nothing stays until it is touched again.
            time <= 0.0
        } else {
            (footprint.distinct_blocks(time) - capacity).abs() <= 1e-5 * footprint.blocks()
        }
    }

    quickcheck! {
        fn more_time_or_room_touches_more_and_misses_less(
            seeds: Vec<u16>, a: u16, b: u16
        ) -> bool {
            let footprint = mixture(&seeds);
            let blocks = footprint.blocks();
            let (less, more) = (f64::from(a.min(b)), f64::from(a.max(b)));
            let [few, many] = [less, more].map(|time| footprint.distinct_blocks(time));
            let misses_fall = BOTH.into_iter().all(|replacement| {
                let at = |x: f64| footprint.misses(blocks * x / 65_536.0, replacement);
                at(more) <= at(less) + 1e-6
                    && at(less) <= footprint.touches() + 1e-9
                    && at(less) >= 0.0
            });
            0.0 <= few && few <= many + 1e-9 && many <= blocks + 1e-9 && misses_fall
        }

        fn characteristic_time_solves_its_equation(seeds: Vec<u16>, share: u16) -> bool {
            // One certain block and 62 that are touched by all but one in 9000 operations.
            let nearly_certain = [[0; 1].as_slice(), &[1; 62]].concat();
            solves(&mixture(&nearly_certain), 1.02 / 63.0)
                && solves(&mixture(&seeds), f64::from(share) / 65_536.0)
        }
    }
}
