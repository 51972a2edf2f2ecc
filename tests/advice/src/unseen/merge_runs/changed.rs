//! A sorted map in place of the heap, or a smaller heap.

use super::before::{add, runs};
use ctree::CTreeMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub fn container(size: usize) -> u64 {
    let runs = runs(size);
    let mut next: CTreeMap<(u64, u64), usize> = CTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        next.insert((run[0].key, number as u64), 0);
    }
    let mut sum = 0;
    while let Some(((_, number), at)) = next.pop_first() {
        let run = &runs[number as usize];
        sum = add(sum, &run[at]);
        if let Some(record) = run.get(at + 1) {
            next.insert((record.key, number), at + 1);
        }
    }
    sum
}

/// Entries of the heap without the place, which the run knows.
pub fn smaller(size: usize) -> u64 {
    let runs = runs(size);
    let mut rest: Vec<_> = runs.iter().map(|run| run.iter().peekable()).collect();
    let keys = { runs.iter() }
        .zip(0_u32..)
        .map(|(run, number)| Reverse((run[0].key, number)));
    let mut heap: BinaryHeap<Reverse<(u64, u32)>> = keys.collect();
    let mut sum = 0;
    while let Some(Reverse((_, number))) = heap.pop() {
        let run = &mut rest[number as usize];
        sum = run.next().map_or(sum, |record| add(sum, record));
        if let Some(next) = run.peek() {
            heap.push(Reverse((next.key, number)));
        }
    }
    sum
}
