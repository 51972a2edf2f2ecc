//! Searches that wait for each other, and their time.
//!
//! Which key is next follows from the word that the search before has read from the structure: the
//! thesis's processor finishes one search before it begins the next, one of today only if it must.
//! All structures hold the same keys and answer with the key itself, so all walk through the same
//! searches.

use std::hint::black_box;

use super::btree::{InCoreBTree, Word};
use super::cold::Cold;
use crate::rng::Rng;
use crate::search_tree::{Node, Tree};

/// The next search, and with it all later ones. The keys are the numbers below `keys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    state: u64,
    keys: usize,
}

impl Chain {
    /// The chain that belongs to `seed`.
    pub fn new(keys: usize, seed: u64) -> Chain {
        let state = mix(seed);
        Chain { state, keys }
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
    fn flush_path(&self, key: usize, cold: &Cold);

    /// Flushes all of it.
    fn flush(&self, cold: &Cold);

    /// `searches` searches, one after the other.
    fn follow(&self, mut chain: Chain, searches: u64) -> Chain {
        for _ in 0..searches {
            chain = chain.after(self.answer(chain.key()));
        }
        chain
    }
}

/// The nodes that a search for `key` reads, from the root down.
pub fn path(tree: &Tree<u64>, key: u64) -> impl Iterator<Item = &Node<u64>> {
    std::iter::successors(tree.root.as_deref(), move |node| {
        let next = if key < node.key {
            &node.left
        } else {
            &node.right
        };
        next.as_deref().filter(|_| key != node.key)
    })
}

/// A binary tree whose values are its keys.
impl Searched for Tree<u64> {
    #[inline]
    fn answer(&self, key: usize) -> u64 {
        // The black box keeps the compiler from answering with what was asked.
        self.get(key as u64)
            .map_or(u64::MAX, |value| *black_box(value))
    }

    fn flush_path(&self, key: usize, cold: &Cold) {
        for node in path(self, key as u64) {
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

    fn flush_path(&self, key: usize, cold: &Cold) {
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

/// Nanoseconds that this thread has run: other programs put a thread off for milliseconds, and a
/// run of a million searches meets some of that each time. Reading it takes some hundred
/// nanoseconds, about a fiftieth of ten searches.
#[cfg(target_os = "linux")]
pub fn thread_ns() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills the structure that it is given, which is alive.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "Linux tells each thread its time");
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds of wall time, where nothing better is known.
#[cfg(not(target_os = "linux"))]
pub fn thread_ns() -> f64 {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let begin = BEGIN.get_or_init(std::time::Instant::now);
    begin.elapsed().as_secs_f64() * 1e9
}
