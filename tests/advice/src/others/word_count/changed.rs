//! Other maps of the words.

use super::before::{checksum, text};
use ctree::CTreeMap;
use std::collections::HashMap;

pub fn container(size: usize) -> u64 {
    let mut counts: CTreeMap<String, usize> = CTreeMap::new();
    for line in text(size).lines() {
        for word in line.split_whitespace() {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    checksum(counts.iter())
}

pub fn idea(size: usize) -> u64 {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for line in text(size).lines() {
        for word in line.split_whitespace() {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort();
    checksum(sorted.into_iter())
}
