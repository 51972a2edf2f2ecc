//! A `BTreeMap` in which each request looks up many keys.
//!
//! The keys of a request do not depend on each other, so `CTreeMap::get_many` waits for all of them
//! at once.

use super::{SPREAD, mix, shuffled};
use ctree::CTreeMap;
use std::collections::BTreeMap;

pub(super) fn before(size: usize) -> u64 {
    let map: BTreeMap<u64, u64> = entries(size).collect();
    requests(size, |keys| keys.iter().map(|key| map[key]).sum())
}

pub(super) fn after(size: usize) -> u64 {
    let map: CTreeMap<u64, u64> = entries(size).collect();
    requests(size, |keys| {
        let mut values = [None; BATCH];
        map.get_many(keys, &mut values);
        values.iter().flatten().copied().sum()
    })
}

/// Keys of one request.
const BATCH: usize = 128;

fn entries(size: usize) -> impl Iterator<Item = (u64, u64)> {
    shuffled(size).zip(0..)
}

fn requests(size: usize, answer: impl Fn(&[u64; BATCH]) -> u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(13);
    (0..5 * size / BATCH).fold(0, |sum, _| {
        let keys = [(); BATCH].map(|()| random.u64(..size as u64).wrapping_mul(SPREAD));
        mix(sum, answer(&keys))
    })
}
