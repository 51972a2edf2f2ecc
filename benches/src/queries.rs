//! What structures are asked: keys drawn evenly, keys some of which are hot, and chains.

use crate::chain::QueryChain;
use crate::rng::Rng;

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
    /// `lookups` steps over queries of the caller's choice; `query` is called twice for each.
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
    ///
    /// # Panics
    /// When there are no items.
    pub fn new(items: &[K], skew: Skew, seed: u64) -> Queries<K> {
        assert!(!items.is_empty(), "no items, no queries");
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
