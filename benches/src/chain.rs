//! Lookups that wait for each other: the answer before chooses one of two queries.
//!
//! ```text
//! query(i) = pairs[i][answer(i - 1) & 1]
//! ```
//!
//! Independent lookups would measure how many misses the processor overlaps, not what one costs.
//! The choice is an address, not a branch, so the processor cannot guess it. Structures that answer
//! alike get the same queries.

use crate::rng::Rng;

/// A fixed list of pairs of queries.
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
