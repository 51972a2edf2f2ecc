//! What structures are asked: keys drawn evenly, keys some of which are hot, and chains of lookups
//! that wait for each other.

use crate::rng::Rng;

/// Lookups that wait for each other: the answer before chooses one of two queries.
///
/// ```text
/// query(i) = pairs[i][answer(i - 1) & 1]
/// ```
///
/// Independent lookups would measure how many misses the processor overlaps, not what one costs.
/// The choice is an address, not a branch, so the processor cannot guess it. Structures that answer
/// alike get the same queries.
#[derive(Clone, Debug)]
pub struct QueryChain {
    pairs: Vec<[u64; 2]>,
}

impl QueryChain {
    /// `lookups` steps over queries drawn from `keys` with replacement.
    ///
    /// # Panics
    /// When `keys` is empty.
    pub fn sample(keys: &[u64], lookups: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        QueryChain::draw(lookups, || keys[rng.below(keys.len())])
    }

    /// `lookups` steps. Calls `query` twice for each.
    pub fn draw(lookups: usize, mut query: impl FnMut() -> u64) -> Self {
        QueryChain {
            pairs: (0..lookups).map(|_| [query(), query()]).collect(),
        }
    }

    /// Number of lookups.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Follows the chain through `lookup` and returns a sum over the answers in their order.
    ///
    /// `lookup` must read its answer from the structure: an answer that follows from the query
    /// alone lets the processor run ahead.
    #[inline]
    pub fn follow(&self, mut lookup: impl FnMut(u64) -> u32) -> u64 {
        let mut answer = 0_u32;
        let mut sum = 0_u64;
        for pair in &self.pairs {
            answer = lookup(pair[(answer & 1) as usize]);
            sum = add_in_order(sum, u64::from(answer));
        }
        sum
    }
}

/// A checksum of numbers in their order: `sum` with one more.
#[inline]
pub fn add_in_order(sum: u64, number: u64) -> u64 {
    sum.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number)
}

/// A chain of lookups by keys of any type, as [`QueryChain`] by integers.
///
/// The answer chooses a place in a list that is in the order of the chain, so that prefetchers
/// bring the keys to the caches.
#[derive(Clone, Debug)]
pub struct Chain<K> {
    places: QueryChain,
    queries: Vec<K>,
}

impl<K> Chain<K> {
    /// `lookups` steps. Calls `query` twice for each.
    pub fn draw(lookups: usize, query: impl FnMut() -> K) -> Self {
        let mut places = 0..;
        Chain {
            places: QueryChain::draw(lookups, || places.next().unwrap_or_default()),
            queries: std::iter::repeat_with(query).take(2 * lookups).collect(),
        }
    }

    /// Follows the chain, as [`QueryChain::follow`].
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "places are indices of a list"
    )]
    pub fn follow(&self, mut lookup: impl FnMut(&K) -> u32) -> u64 {
        self.places
            .follow(|place| lookup(&self.queries[place as usize]))
    }
}

/// How queries are spread over the items of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// Each item as often as each other.
    Uniform,
    /// The i-th most popular item with a frequency in proportion to 1 / i^0.99, as in the benchmark
    /// YCSB (Cooper et al., `SoCC` 2010).
    Zipf,
}

impl Skew {
    /// Both, with their names in names of comparisons.
    pub const ALL: [(Skew, &'static str); 2] = [(Skew::Uniform, "uniform"), (Skew::Zipf, "zipf")];
}

/// A stream of queries.
#[derive(Clone, Debug)]
pub struct Queries<K = u64> {
    /// The most popular first.
    items: Vec<K>,
    /// For each item the sum of the frequencies up to it, itself included; empty when all are
    /// equal.
    up_to: Vec<f64>,
    rng: Rng,
}

impl<K: Clone> Queries<K> {
    /// Queries for `items`; popular ones are drawn at random, whatever their order.
    pub fn new(items: &[K], skew: Skew, seed: u64) -> Queries<K> {
        let mut items = items.to_vec();
        let mut rng = Rng::new(seed);
        let mut up_to = Vec::new();
        if skew == Skew::Zipf {
            rng.shuffle(&mut items);
            let mut sum = 0.0;
            up_to.extend((1..=items.len()).map(|rank| {
                sum += (rank as f64).powf(-0.99);
                sum
            }));
        }
        Queries { items, up_to, rng }
    }

    /// The next query. O(log n) when some are hot.
    ///
    /// # Panics
    /// When there are no items.
    pub fn draw(&mut self) -> K {
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        let index = match self.up_to.last() {
            None => self.rng.below(self.items.len()),
            Some(total) => {
                let point = (self.rng.next_u64() >> 11) as f64 * UNIT * total;
                let rank = self.up_to.partition_point(|&up_to| up_to <= point);
                rank.min(self.items.len() - 1)
            }
        };
        self.items[index].clone()
    }
}

impl Queries {
    /// A chain of `lookups` of them.
    pub fn chain(&mut self, lookups: usize) -> QueryChain {
        QueryChain::draw(lookups, || self.draw())
    }
}
