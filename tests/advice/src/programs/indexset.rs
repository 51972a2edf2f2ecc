//! The ordered map of `indexset`, filled at random and then looked up.
//!
//! It keeps sorted vectors of up to a thousand keys, and a binary search in one touches line after
//! line. A node of `CTreeMap` is read in one step.

use super::{mix, shuffled};
use crate::{Kind, Program};
use ctree::CTreeMap;
use indexset::BTreeMap;

pub(super) const PROGRAM: Program = Program {
    name: "indexset",
    kind: Kind::Container,
    worth_it: true,
    note: "indexset, ordered map",
    size: 1_000_000,
    before: |size| {
        let mut map = BTreeMap::new();
        for (key, value) in shuffled(size).zip(0..) {
            map.insert(key, value);
        }
        look_up(size, |key| map.get(&key).copied())
    },
    after: |size| {
        let mut map = CTreeMap::new();
        for (key, value) in shuffled(size).zip(0..) {
            map.insert(key, value);
        }
        look_up(size, |key| map.get(&key).copied())
    },
};

fn look_up(size: usize, get: impl Fn(u64) -> Option<u64>) -> u64 {
    let keys = shuffled(size).chain(shuffled(size));
    keys.fold(0, |sum, key| mix(sum, get(key).unwrap_or(0)))
}
