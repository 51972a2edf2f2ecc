//! Boxed records of which each pass reads every field.
//!
//! There is no cold part. With some fields in a table, each record is two misses.

use super::{arrive, mix};
use ccmorph::{ColdTable, split};

pub(super) fn before(size: usize) -> u64 {
    let records = records(size, |key| {
        Box::new(Record {
            key,
            sums: [key; 3],
            parts: [key; 8],
        })
    });
    let total = |record: &Record| mix(record.sums.iter().sum(), record.parts.iter().sum());
    passes(&records, |record| record.key ^ total(record))
}

pub(super) fn after(size: usize) -> u64 {
    let mut cold = ColdTable::new();
    let records = records(size, |key| {
        Box::new(
            SlimFields {
                key,
                sums: [key; 3],
                parts: [key; 8],
            }
            .split_into(&mut cold),
        )
    });
    passes(&records, |record| {
        let parts = record.parts(&cold).iter().sum();
        record.key ^ mix(record.sums.iter().sum(), parts)
    })
}

struct Record {
    key: u64,
    sums: [u64; 3],
    parts: [u64; 8],
}

#[split(cold(parts), cold = "table")]
struct Slim {
    key: u64,
    sums: [u64; 3],
    parts: [u64; 8],
}

fn records<R>(size: usize, mut new: impl FnMut(u64) -> Box<R>) -> Vec<Box<R>> {
    arrive(size, |key| new(key as u64))
        .into_iter()
        .flatten()
        .collect()
}

fn passes<R>(records: &[Box<R>], total: impl Fn(&R) -> u64) -> u64 {
    (0..12).fold(0, |sum, _| {
        records
            .iter()
            .fold(sum, |sum, record| mix(sum, total(record)))
    })
}
