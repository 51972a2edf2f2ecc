//! A `HashMap` of integers, looked up at random.
//!
//! A lookup reads two lines at computed places, and lookups overlap. An ordered map has to do more,
//! however well its nodes lie.

use super::{SPREAD, mix, shuffled};
use ctree::CTreeMap;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

pub(super) fn before(size: usize) -> u64 {
    let map: Hashed = shuffled(size).zip(0..).collect();
    look_up(size, |key| map.get(&key).copied())
}

pub(super) fn after(size: usize) -> u64 {
    let map: CTreeMap<u64, u64> = shuffled(size).zip(0..).collect();
    look_up(size, |key| map.get(&key).copied())
}

/// The standard map with a hasher that starts the same way in each run.
type Hashed = HashMap<u64, u64, BuildHasherDefault<DefaultHasher>>;

fn look_up(size: usize, get: impl Fn(u64) -> Option<u64>) -> u64 {
    let mut random = fastrand::Rng::with_seed(21);
    (0..5 * size).fold(0, |sum, _| {
        let key = random.u64(..2 * size as u64).wrapping_mul(SPREAD);
        mix(sum, get(key).unwrap_or(1))
    })
}
