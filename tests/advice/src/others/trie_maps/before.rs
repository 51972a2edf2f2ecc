//! Completion of words: a trie with a map of children in each node.

use fastrand::Rng;
use std::collections::HashMap;

#[derive(Default)]
struct Node {
    children: HashMap<char, Box<Node>>,
    words: u64,
}

impl Node {
    fn insert(&mut self, word: &str) {
        let mut node = self;
        for letter in word.chars() {
            node.words += 1;
            node = node.children.entry(letter).or_default();
        }
        node.words += 1;
    }

    /// How many words begin so.
    fn starting_with(&self, start: &str) -> u64 {
        let mut node = self;
        for letter in start.chars() {
            match node.children.get(&letter) {
                Some(child) => node = child,
                None => return 0,
            }
        }
        node.words
    }
}

/// Syllables, some of which are used more than others.
pub(super) fn word(random: &mut Rng) -> String {
    const SYLLABLES: [&str; 16] = [
        "an", "be", "ro", "ti", "sch", "e", "ung", "la", "mo", "ver", "is", "ta", "o", "ge", "ne",
        "kl",
    ];
    let syllable = |_| SYLLABLES[random.usize(..16).min(random.usize(..16))];
    (0..5).map(syllable).collect()
}

pub fn run(size: usize) -> u64 {
    let (mut random, mut root, mut sum) = (Rng::with_seed(47), Node::default(), 0_u64);
    for _ in 0..size {
        root.insert(&word(&mut random));
    }
    for _ in 0..4 * size {
        let mut start = word(&mut random);
        start.truncate(8);
        sum = sum.rotate_left(1) ^ root.starting_with(&start);
    }
    sum
}
