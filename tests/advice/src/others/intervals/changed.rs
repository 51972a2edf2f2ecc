//! Other ordered maps.

use super::before::{Network, networks, visits};
use ctree::{CTreeMap, FrozenCTreeMap};

pub fn dynamic(size: usize) -> u64 {
    let map: CTreeMap<u32, Network> = networks(size).into_iter().collect();
    visits(size, |address| {
        map.range(..=address).next_back().map(|it| it.1)
    })
}

pub fn frozen(size: usize) -> u64 {
    let map: FrozenCTreeMap<u32, Network> = networks(size).into_iter().collect();
    visits(size, |address| {
        map.range(..=address).next_back().map(|it| it.1)
    })
}

/// A sorted vector.
pub fn idea(size: usize) -> u64 {
    let mut all = networks(size);
    all.sort_by_key(|it| it.0);
    visits(size, |address| {
        let next = all.partition_point(|it| it.0 <= address);
        all[..next].last().map(|it| &it.1)
    })
}
