//! The second half of a sort of more records than fit into memory: sorted runs become one.

use fastrand::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) struct Record {
    pub(super) key: u64,
    pub(super) payload: [u32; 4],
}

const RUNS: usize = 100;

pub(super) fn runs(size: usize) -> Vec<Vec<Record>> {
    let mut random = Rng::with_seed(130);
    let run = |_| {
        let mut key = 0;
        let record = |_| {
            key += random.u64(1..1000);
            Record {
                key,
                payload: [random.u32(..); 4],
            }
        };
        (0..size / RUNS + 1).map(record).collect()
    };
    (0..RUNS).map(run).collect()
}

pub(super) fn add(sum: u64, record: &Record) -> u64 {
    sum.rotate_left(1) ^ record.key ^ u64::from(record.payload[3])
}

pub fn run(size: usize) -> u64 {
    let runs = runs(size);
    let first = |(number, run): (usize, &Vec<Record>)| Some(Reverse((run.first()?.key, number, 0)));
    let mut heap: BinaryHeap<Reverse<(u64, usize, usize)>> =
        runs.iter().enumerate().filter_map(first).collect();
    let mut sum = 0;
    while let Some(Reverse((_, number, at))) = heap.pop() {
        sum = add(sum, &runs[number][at]);
        if let Some(next) = runs[number].get(at + 1) {
            heap.push(Reverse((next.key, number, at + 1)));
        }
    }
    sum
}
