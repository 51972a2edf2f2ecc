//! What structures are asked: chains of lookups that wait for each other, and skewed keys.

use crate::rng::Rng;

/// Lookups that wait for each other: each answer chooses one of two queries for the next step.
///
/// Independent lookups would measure how many misses the processor overlaps, not what one costs.
/// The choice is an address, not a branch, so the processor cannot guess it. Structures that answer
/// alike get the same queries.
#[derive(Clone, Debug)]
pub struct Chain<K = u64> {
    pairs: Vec<[K; 2]>,
}

impl<K> Chain<K> {
    /// `lookups` steps over queries drawn from `keys`, which is not empty, with replacement.
    pub fn sample(keys: &[K], lookups: usize, seed: u64) -> Self
    where
        K: Clone,
    {
        let mut rng = Rng::new(seed);
        Chain::draw(lookups, || keys[rng.below(keys.len())].clone())
    }

    /// `lookups` steps. Calls `query` twice for each.
    pub fn draw(lookups: usize, mut query: impl FnMut() -> K) -> Self {
        let pairs = (0..lookups).map(|_| [query(), query()]).collect();
        Chain { pairs }
    }

    #[expect(clippy::len_without_is_empty, reason = "no caller asks")]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Follows the chain through `lookup` and returns a sum over the answers in their order.
    /// `lookup` must read its answer from the structure, or the processor runs ahead.
    #[inline]
    pub fn follow(&self, mut lookup: impl FnMut(&K) -> u32) -> u64 {
        let mut answer = 0_u32;
        let mut sum = 0_u64;
        for pair in &self.pairs {
            answer = lookup(&pair[(answer & 1) as usize]);
            sum = add_in_order(sum, u64::from(answer));
        }
        sum
    }
}

/// `sum` with one more number: a checksum of numbers in their order.
#[inline]
pub fn add_in_order(sum: u64, number: u64) -> u64 {
    sum.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number)
}

/// A stream of queries in which the i-th most popular item has a frequency in proportion to
/// 1 / i^0.99, as in the benchmark YCSB (Cooper et al., `SoCC` 2010).
#[derive(Clone, Debug)]
pub struct Zipf {
    /// The most popular first.
    items: Vec<u64>,
    /// The sums of the frequencies up to each item, itself included.
    up_to: Vec<f64>,
    rng: Rng,
}

impl Zipf {
    /// Queries for `items`; popular ones are drawn at random, whatever their order.
    pub fn new(items: &[u64], seed: u64) -> Self {
        let mut items = items.to_vec();
        let mut rng = Rng::new(seed);
        rng.shuffle(&mut items);
        let mut sum = 0.0;
        let mut sum_up_to = |rank: usize| {
            sum += (rank as f64).powf(-0.99);
            sum
        };
        let up_to = (1..=items.len()).map(&mut sum_up_to).collect();
        Zipf { items, up_to, rng }
    }

    /// The next query, if there are items. O(log n).
    pub fn draw(&mut self) -> u64 {
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        let last = self.items.len() - 1;
        let point = (self.rng.next_u64() >> 11) as f64 * UNIT * self.up_to[last];
        let rank = self.up_to.partition_point(|&up_to| up_to <= point);
        self.items[rank.min(last)]
    }
}
