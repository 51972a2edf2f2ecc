//! A large `BTreeMap` of which each lookup decides what is looked up next.
//!
//! Its nodes have at most eleven entries, and a search waits several times in each. `CTreeMap` has
//! fewer levels and waits once in each.

use super::{SPREAD, mix, shuffled};

in_maps!(BTreeMap, CTreeMap, |size| {
    let mut map = Map::new();
    map.extend(entries(size));
    look_up(size, |key| map.get(&key).copied())
});

fn entries(size: usize) -> impl Iterator<Item = (u64, u64)> {
    shuffled(size).zip(0..)
}

fn look_up(size: usize, get: impl Fn(u64) -> Option<u64>) -> u64 {
    let mut sum = 0;
    for _ in 0..3 * size / 2 {
        let key = (sum % size as u64).wrapping_mul(SPREAD);
        sum = mix(sum, get(key).expect("all keys are there"));
    }
    sum
}
