//! Searches that wait for each other: which key is next follows from the word that the search
//! before has read from the structure.
//!
//! The thesis's processor finishes one search before it begins the next, whatever these are. One of
//! today does not, unless it must. All structures hold the same keys and answer with the key
//! itself, so all walk through the same searches.

use std::hint::black_box;

use super::btree::{InCoreBTree, Word};
use super::c_tree::CTree;
use super::cold::Cold;
use crate::rng::Rng;

/// The next search, and with it all later ones. The keys are the numbers below `keys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    state: u64,
    keys: usize,
}

impl Chain {
    /// The chain that belongs to `seed`.
    pub fn new(keys: usize, seed: u64) -> Chain {
        Chain {
            state: mix(seed),
            keys,
        }
    }

    /// What is searched for next, each key with the same probability.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the high half of a product of two u64 fits a u64; the result is below a usize"
    )]
    pub fn key(self) -> usize {
        ((u128::from(self.state) * self.keys as u128) >> 64) as usize
    }

    /// The chain after an answer.
    #[inline]
    #[must_use]
    pub fn after(self, answer: u64) -> Chain {
        Chain {
            state: mix(self.state.wrapping_add(answer)),
            keys: self.keys,
        }
    }

    /// The keys of the next `searches` searches, when each finds its key.
    pub fn known_keys(self, searches: u64) -> impl Iterator<Item = usize> {
        let mut chain = self;
        (0..searches).map(move |_| {
            let key = chain.key();
            chain = chain.after(key as u64);
            key
        })
    }
}

/// Spreads what differs in few bits over all of them.
#[inline]
fn mix(state: u64) -> u64 {
    Rng::new(state).next_u64()
}

/// A structure of the keys below some number.
pub trait Searched {
    /// Searches for a key, and reads its answer, the key, from the structure.
    fn answer(&self, key: usize) -> u64;

    /// Flushes what a search for a key reads.
    fn flush_way(&self, key: usize, cold: &Cold);

    /// Flushes all of it.
    fn flush(&self, cold: &Cold);

    /// So many searches, one after the other.
    fn follow(&self, mut chain: Chain, searches: u64) -> Chain {
        for _ in 0..searches {
            chain = chain.after(self.answer(chain.key()));
        }
        chain
    }
}

impl Searched for CTree {
    #[inline]
    fn answer(&self, key: usize) -> u64 {
        // The black box keeps the compiler from answering with what was asked.
        self.get(key as u64)
            .map_or(u64::MAX, |value| *black_box(value))
    }

    fn flush_way(&self, key: usize, cold: &Cold) {
        for node in self.path(key as u64) {
            cold.flush_around(&node.key);
            cold.flush_around(&node.value);
        }
    }

    fn flush(&self, cold: &Cold) {
        for node in self.nodes() {
            cold.flush_line(&node.key);
            cold.flush_line(&node.value);
        }
    }
}

impl<W: Word> Searched for InCoreBTree<W> {
    #[inline]
    fn answer(&self, key: usize) -> u64 {
        self.get(W::new(key))
            .map_or(u64::MAX, |key| black_box(key).value() as u64)
    }

    fn flush_way(&self, key: usize, cold: &Cold) {
        let words = self.used_words();
        let mut read = Vec::new();
        let _found = self.get_watched(W::new(key), |offset| read.push(offset));
        for offset in read {
            cold.flush_around(&words[offset / size_of::<W>()]);
        }
    }

    fn flush(&self, cold: &Cold) {
        for word in self.used_words().iter().step_by(64 / size_of::<W>()) {
            cold.flush_line(word);
        }
    }
}
