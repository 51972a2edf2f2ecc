//! Numbers, sorted.
//!
//! A sort reads its vector in order, and what it waits for are comparisons. A sorted collection
//! does no better.

use super::mix;
use ctree::CTreeMap;

pub(super) fn before(size: usize) -> u64 {
    let mut numbers: Vec<u64> = numbers(size).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().fold(0, mix)
}

pub(super) fn after(size: usize) -> u64 {
    let numbers: CTreeMap<u64, ()> = numbers(size).map(|number| (number, ())).collect();
    numbers.into_keys().fold(0, mix)
}

fn numbers(size: usize) -> impl Iterator<Item = u64> {
    let mut random = fastrand::Rng::with_seed(22);
    (0..size).map(move |_| random.u64(..))
}
