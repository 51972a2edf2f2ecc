//! Lookups of which each waits for the answer before.
//!
//! A processor overlaps lookups that do not depend on each other, and then measures how many misses
//! it can keep in flight, not what one costs. Programs that chase pointers seldom offer that: what
//! they look up next follows from what they found. So here each step has two queries to choose from
//! and the lowest bit of the answer before chooses:
//!
//! ```text
//! query(i) = pairs[i][answer(i - 1) & 1]
//! ```
//!
//! The choice is an address, not a branch, so it cannot be guessed ahead; the pairs lie in order,
//! so reading them costs next to nothing; and structures that answer alike walk through the same
//! queries.

use crate::rng::Rng;

/// A fixed list of pairs of queries.
#[derive(Clone, Debug)]
pub struct QueryChain {
    pairs: Vec<[u64; 2]>,
}

impl QueryChain {
    /// `lookups` steps over queries drawn evenly from `keys`, with replacement.
    ///
    /// # Panics
    /// When `keys` is empty.
    pub fn sample(keys: &[u64], lookups: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        QueryChain::draw(lookups, || keys[rng.below(keys.len())])
    }

    /// `lookups` steps over queries of the caller's choice; `query` is called twice for each.
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

    /// Follows the chain through `lookup` and returns a sum over the answers in their order: equal
    /// sums, equal answers, but for one chance in 2^64.
    ///
    /// For the chain to bind, `lookup` must read its answer from the structure; an answer that can
    /// be told from the query alone lets the processor run ahead.
    #[inline]
    pub fn follow(&self, mut lookup: impl FnMut(u64) -> u32) -> u64 {
        let mut answer = 0_u32;
        let mut sum = 0_u64;
        for pair in &self.pairs {
            answer = lookup(pair[(answer & 1) as usize]);
            sum = sum
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .wrapping_add(u64::from(answer));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::QueryChain;

    #[test]
    fn each_answer_chooses_the_next_query() {
        let chain = QueryChain {
            pairs: vec![[10, 11], [20, 21], [30, 31]],
        };
        let mut asked = Vec::new();
        let sum = chain.follow(|query| {
            asked.push(query);
            u32::from(query == 10)
        });
        assert_eq!(asked, [10, 21, 30]);
        assert_eq!(sum, chain.follow(|query| u32::from(query == 10)));
        assert_ne!(sum, chain.follow(|query| u32::from(query == 30)));
    }

    #[test]
    fn queries_are_keys() {
        let chain = QueryChain::sample(&[3, 5, 8], 50, 1);
        assert_eq!(chain.len(), 50);
        assert!(!chain.is_empty());
        chain.follow(|query| {
            assert!([3, 5, 8].contains(&query));
            0
        });
        assert!(QueryChain::sample(&[1], 0, 1).is_empty());
    }
}
