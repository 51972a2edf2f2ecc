//! A `BTreeMap` that is built once from sorted data, then only looked up.
//!
//! `FrozenCTreeMap` needs no pointers and no free room, so that all but the last level of a search
//! stays in the cache.

use super::{SPREAD, mix};

in_maps!(BTreeMap, FrozenCTreeMap, |size| {
    let map: Map<u64, u64> = entries(size).collect();
    look_up(size, |key| map.range(key..).next().map(|(_, &value)| value))
});

/// Starts of intervals, and what holds from there.
fn entries(size: usize) -> impl Iterator<Item = (u64, u64)> {
    (1..=size as u64).map(|i| (i << 20 | i.wrapping_mul(SPREAD) >> 44, i))
}

fn look_up(size: usize, next: impl Fn(u64) -> Option<u64>) -> u64 {
    let mut random = fastrand::Rng::with_seed(12);
    let end = (size as u64) << 20;
    (0..size).fold(0, |sum, _| {
        mix(sum, next(random.u64(..end)).expect("before the last key"))
    })
}
