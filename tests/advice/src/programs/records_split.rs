//! Boxed records in random order, of which most passes read two fields.
//!
//! Each record fills more than two cache lines. Without the fields that are seldom read, all of
//! them come close to fitting the cache.

use super::{arrive, mix};
use ccmorph::{ColdTable, split};

pub(super) fn before(size: usize) -> u64 {
    let new = |key, address| {
        Box::new(Record {
            key,
            age: 0,
            address,
            history: [key; 8],
        })
    };
    let mut records = records(size, new);
    let sum = passes(size, &mut records, |record| (record.key, &mut record.age));
    records
        .iter()
        .map(|record| record.address[0] & record.history[1])
        .fold(sum, mix)
}

pub(super) fn after(size: usize) -> u64 {
    let mut cold = ColdTable::new();
    let new = |key, address| {
        let fields = SlimFields {
            key,
            age: 0,
            address,
            history: [key; 8],
        };
        Box::new(fields.split_into(&mut cold))
    };
    let mut records = records(size, new);
    let sum = passes(size, &mut records, |record| (record.key, &mut record.age));
    let rare = |record: &Slim| record.address(&cold)[0] & record.history(&cold)[1];
    records.iter().map(|record| rare(record)).fold(sum, mix)
}

struct Record {
    key: u64,
    age: u32,
    address: [u64; 8],
    history: [u64; 8],
}

#[split(cold(address, history), cold = "table")]
struct Slim {
    key: u64,
    age: u32,
    address: [u64; 8],
    history: [u64; 8],
}

fn records<R>(size: usize, mut new: impl FnMut(u64, [u64; 8]) -> Box<R>) -> Vec<Box<R>> {
    let records = arrive(size, |key| new(key as u64, [key as u64; 8]));
    records.into_iter().flatten().collect()
}

/// Each pass ages the records of some keys.
fn passes<R>(size: usize, records: &mut [Box<R>], hot: impl Fn(&mut R) -> (u64, &mut u32)) -> u64 {
    (0..15).fold(0, |sum, pass| {
        let ages = records.iter_mut().map(|record| {
            let (key, age) = hot(record);
            *age += u32::from(key % 16 == pass);
            u64::from(*age)
        });
        mix(sum, ages.sum::<u64>() + size as u64)
    })
}
