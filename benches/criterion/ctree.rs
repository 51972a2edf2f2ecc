//! Functions of the ordered maps beside `BTreeMap` and bbtree.

use std::collections::BTreeMap;
use std::hint::black_box;

use bbtree::unsync::BBTreeMap;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ctree::{CTreeMap, FrozenCTreeMap};

/// Few enough for the caches, and more than they hold.
const SIZES: [usize; 2] = [1000, 1_000_000];
/// Keys of a batch.
const BATCH: usize = 1000;

/// Distinct keys in random order: an odd factor permutes the numbers of 64 bits.
fn keys(count: usize) -> Vec<u64> {
    let odd = 0x9E37_79B9_7F4A_7C15_u64;
    (1..=count as u64).map(|n| n.wrapping_mul(odd)).collect()
}

/// Measures `$body` with `$map` being each of the maps with the keys `$keys`.
macro_rules! for_each_map {
    ($group:ident, $count:expr, $keys:expr, |$bencher:ident, $map:ident| $body:expr) => {
        for_each_map!(
            CTreeMap,
            "ctree",
            $group,
            $count,
            $keys,
            |$bencher, $map| $body
        );
        for_each_map!(BTreeMap, "std", $group, $count, $keys, |$bencher, $map| {
            $body
        });
        for_each_map!(
            BBTreeMap,
            "bbtree",
            $group,
            $count,
            $keys,
            |$bencher, $map| $body
        );
    };
    ($type:ident, $name:literal, $group:ident, $count:expr, $keys:expr,
        |$bencher:ident, $map:ident| $body:expr) => {{
        let mut $map: $type<u64, u64> = $type::new();
        for &key in $keys {
            $map.insert(key, key);
        }
        $group.bench_function(BenchmarkId::new($name, $count), |$bencher| $body);
    }};
}

fn lookups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("get");
    for count in SIZES {
        let keys = keys(count);
        let mut random = fastrand::Rng::with_seed(1);
        for_each_map!(group, count, &keys, |bencher, map| bencher.iter(|| {
            let key = keys[random.usize(..count)];
            assert_eq!(map.get(black_box(&key)), Some(&key));
        }));
    }
    group.finish();
}

fn insertions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("insert and remove");
    for count in SIZES {
        let keys = keys(2 * count);
        let (present, absent) = keys.split_at(count);
        let mut random = fastrand::Rng::with_seed(1);
        for_each_map!(group, count, present, |bencher, map| bencher.iter(|| {
            let key = absent[random.usize(..count)];
            map.insert(key, key);
            assert_eq!(map.remove(&key), Some(key));
        }));
    }
    group.finish();
}

fn walks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("iterate");
    for count in SIZES {
        let keys = keys(count);
        group.throughput(Throughput::Elements(count as u64));
        for_each_map!(group, count, &keys, |bencher, map| bencher
            .iter(|| map.iter().fold(0_u64, |sum, (_, value)| sum ^ *value)));
    }
    group.finish();
}

/// Many lookups in one call, whose misses overlap.
fn batches(criterion: &mut Criterion) {
    let count = SIZES[1];
    let all = keys(count);
    let map: CTreeMap<u64, u64> = all.iter().map(|&key| (key, key)).collect();
    let frozen = FrozenCTreeMap::from(map.clone());
    let mut random = fastrand::Rng::with_seed(1);
    let mut batch = || &all[random.usize(..count - BATCH)..][..BATCH];
    let mut found = [None; BATCH];
    let mut group = criterion.benchmark_group("get_many");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("CTreeMap", |bencher| {
        bencher.iter(|| map.get_many(black_box(batch()), &mut found));
    });
    let mut found = [None; BATCH];
    group.bench_function("FrozenCTreeMap", |bencher| {
        bencher.iter(|| frozen.get_many(black_box(batch()), &mut found));
    });
    group.finish();
}

criterion_group!(benches, lookups, insertions, walks, batches);
criterion_main!(benches);
