//! A `HashMap` of integers, looked up at random.
//!
//! A lookup reads two lines at computed places, and lookups overlap. An ordered map has to do more,
//! however well its nodes lie.

use super::{SPREAD, mix, shuffled};
use crate::{Kind, Program};
use ctree::CTreeMap;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

pub(super) const PROGRAM: Program = Program {
    name: "flat_table",
    kind: Kind::Container("CTreeMap"),
    worth_it: false,
    note: "HashMap of integers",
    size: 2_000_000,
    before: |size| {
        let map: Hashed = shuffled(size).zip(0..).collect();
        look_up(size, |key| map.get(&key).copied())
    },
    after: |size| {
        let map: CTreeMap<u64, u64> = shuffled(size).zip(0..).collect();
        look_up(size, |key| map.get(&key).copied())
    },
};

/// The standard map with a hasher that starts the same way in each run.
type Hashed = HashMap<u64, u64, BuildHasherDefault<DefaultHasher>>;

fn look_up(size: usize, get: impl Fn(u64) -> Option<u64>) -> u64 {
    let mut random = fastrand::Rng::with_seed(21);
    (0..5 * size).fold(0, |sum, _| {
        let key = random.u64(..2 * size as u64).wrapping_mul(SPREAD);
        mix(sum, get(key).unwrap_or(1))
    })
}
