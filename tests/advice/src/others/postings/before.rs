//! A search engine: for each word the documents that have it, in order; queries intersect them.

use fastrand::Rng;
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Index {
    pub(super) documents: HashMap<String, Vec<u64>>,
}

/// Documents of words, some of which are used more than others.
pub(super) fn index(size: usize) -> Index {
    let (mut random, mut index) = (Rng::with_seed(78), Index::default());
    for document in 0..size as u64 {
        for _ in 0..30 {
            let word = (3000.0 * random.f64().powi(2)) as u32;
            let list = index.documents.entry(format!("word{word}")).or_default();
            if list.last() != Some(&document) {
                list.push(document);
            }
        }
    }
    index
}

pub(super) fn intersection<T: Copy + Ord>(a: &[T], b: &[T]) -> Vec<T> {
    let (mut i, mut j, mut both) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        let (first, second) = (a[i], b[j]);
        if first == second {
            both.push(first);
        }
        i += usize::from(first <= second);
        j += usize::from(second <= first);
    }
    both
}

pub(super) fn queries(size: usize, mut answer: impl FnMut(&str, &str) -> Option<u64>) -> u64 {
    let mut random = Rng::with_seed(79);
    (0..size / 10 + 20).fold(0, |sum: u64, _| {
        let [a, b] = [0, 1].map(|_| format!("word{}", random.u32(..3000)));
        sum.rotate_left(7) ^ answer(&a, &b).unwrap_or(1)
    })
}

pub fn run(size: usize) -> u64 {
    let index = index(size);
    queries(size, |a, b| {
        let both = intersection(index.documents.get(a)?, index.documents.get(b)?);
        Some(both.len() as u64 ^ both.last()?)
    })
}
