//! A `BTreeMap` whose entries are read in order.
//!
//! Its leaves were filled in order too, so the processor fetches them ahead, while the program
//! works on the entries.

use super::mix;
use crate::{Kind, Program};
use ctree::CTreeMap;
use std::collections::BTreeMap;

pub(super) const PROGRAM: Program = Program {
    name: "btree_in_order",
    kind: Kind::Container("CTreeMap"),
    worth_it: false,
    note: "BTreeMap filled and read in order",
    size: 2_000_000,
    before: |size| {
        let map: BTreeMap<u64, u64> = entries(size).collect();
        walks(|sum| {
            map.iter()
                .fold(sum, |sum, (key, value)| mix(sum, work(*key, *value)))
        })
    },
    after: |size| {
        let map: CTreeMap<u64, u64> = entries(size).collect();
        walks(|sum| {
            map.iter()
                .fold(sum, |sum, (key, value)| mix(sum, work(*key, *value)))
        })
    },
};

fn entries(size: usize) -> impl Iterator<Item = (u64, u64)> {
    (0..size as u64).map(|key| (key * 3, key % 5))
}

fn walks(walk: impl Fn(u64) -> u64) -> u64 {
    (0..20).fold(0, |sum, _| walk(sum))
}

/// The sum of the digits, multiplied.
fn work(mut key: u64, value: u64) -> u64 {
    let mut sum = value;
    while key > 0 {
        sum += key % 10;
        key /= 10;
    }
    sum * value
}
