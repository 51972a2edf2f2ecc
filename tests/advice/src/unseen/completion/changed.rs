//! Other maps.

use super::before::{best, log, type_all};
use ctree::{CTreeMap, FrozenCTreeMap};

fn counts(size: usize) -> CTreeMap<String, u64> {
    let mut counts: CTreeMap<String, u64> = CTreeMap::new();
    for (query, count) in log(size) {
        *counts.entry(query).or_default() += count;
    }
    counts
}

pub fn container(size: usize) -> u64 {
    let counts = counts(size);
    type_all(size, |typed| best(typed, counts.range(typed.to_owned()..)))
}

pub fn frozen(size: usize) -> u64 {
    let counts: FrozenCTreeMap<String, u64> = counts(size).into();
    type_all(size, |typed| best(typed, counts.range(typed.to_owned()..)))
}
