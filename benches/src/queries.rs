//! What structures are asked: keys drawn evenly, keys of which some are hot, and chains of them.

use crate::chain::QueryChain;
use crate::rng::Rng;

/// A chain of lookups by keys of any type, as [`QueryChain`] by integers.
///
/// The answer chooses a place in a list that is in the order of the chain, and so comes to the
/// caches by itself.
#[derive(Clone, Debug)]
pub struct Chain<K> {
    places: QueryChain,
    queries: Vec<K>,
}

impl<K> Chain<K> {
    /// `lookups` steps over queries of the caller's choice; `query` is called twice for each.
    pub fn draw(lookups: usize, query: impl FnMut() -> K) -> Self {
        let mut places = 0..;
        Chain {
            places: QueryChain::draw(lookups, || places.next().unwrap_or_default()),
            queries: std::iter::repeat_with(query).take(2 * lookups).collect(),
        }
    }

    /// Number of lookups.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
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
    /// The i-th most popular item with a frequency in proportion to 1 / i^0.99: what the benchmark
    /// YCSB (Cooper et al., `SoCC` 2010) made the custom.
    Zipf,
}

impl Skew {
    /// Both, the uniform one first.
    pub const ALL: [Skew; 2] = [Skew::Uniform, Skew::Zipf];

    /// Its name in names of comparisons.
    pub fn name(self) -> &'static str {
        match self {
            Skew::Uniform => "uniform",
            Skew::Zipf => "zipf",
        }
    }
}

/// The exponent of [`Skew::Zipf`].
const ZIPF_EXPONENT: f64 = 0.99;

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
    /// Queries for `items`; which of them are popular is drawn at random, so it has nothing to do
    /// with their order.
    ///
    /// # Panics
    /// When there are no items.
    pub fn new(items: &[K], skew: Skew, seed: u64) -> Queries<K> {
        assert!(!items.is_empty(), "no items, no queries");
        let mut items = items.to_vec();
        let mut rng = Rng::new(seed);
        let up_to = match skew {
            Skew::Uniform => Vec::new(),
            Skew::Zipf => {
                rng.shuffle(&mut items);
                (1..=items.len())
                    .scan(0.0, |sum, rank| {
                        *sum += (rank as f64).powf(-ZIPF_EXPONENT);
                        Some(*sum)
                    })
                    .collect()
            }
        };
        Queries { items, up_to, rng }
    }

    /// The next query. O(log n) when some are hot.
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
