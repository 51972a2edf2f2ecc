//! A `BTreeMap` whose entries are read in order.
//!
//! The keys came in random order, so the leaves lie in the order in which they were split.
//! `CTreeMap` has fewer and larger ones.

use super::{mix, shuffled};
use crate::{Kind, Program};
use ctree::CTreeMap;
use std::collections::BTreeMap;

pub(super) const PROGRAM: Program = Program {
    name: "btree_walked",
    kind: Kind::Container("CTreeMap"),
    worth_it: true,
    note: "BTreeMap filled at random and read in order",
    size: 1_500_000,
    before: |size| {
        let mut map: BTreeMap<u64, u64> = BTreeMap::new();
        map.extend(entries(size));
        walks(|sum| {
            map.iter()
                .fold(sum, |sum, (key, value)| mix(sum, key ^ value))
        })
    },
    after: |size| {
        let mut map: CTreeMap<u64, u64> = CTreeMap::new();
        map.extend(entries(size));
        walks(|sum| {
            map.iter()
                .fold(sum, |sum, (key, value)| mix(sum, key ^ value))
        })
    },
};

fn entries(size: usize) -> impl Iterator<Item = (u64, u64)> {
    shuffled(size).zip(0..)
}

fn walks(walk: impl Fn(u64) -> u64) -> u64 {
    (0..20).fold(0, |sum, _| walk(sum))
}
