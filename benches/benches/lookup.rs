//! Lookups in maps from one that fits the first-level cache to one that no cache holds: the dynamic
//! map, std's `BTreeMap` and the rivals, the frozen map, binary search.
//!
//! `dependent`: each lookup's key depends on the answer before, so times are latencies.
//! `independent`: a plain loop over queries. `many`: the same queries at once.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ctree::FrozenCTreeMap;
use measure::keys;
use measure::queries::Chain;
use measure::rivals::integer_maps;
use measure::rng::Rng;

/// A thousand keys, as many as a second-level cache holds, and more than any holds.
const SIZES_LOG2: [u32; 3] = [10, 17, 22];

/// Lookups in one iteration.
const LOOKUPS: usize = 10_000;

fn dependent(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dependent");
    group.throughput(Throughput::Elements(LOOKUPS as u64));
    for keys_log2 in SIZES_LOG2 {
        let keys = keys::random(1 << keys_log2, 1);
        let id = |name| BenchmarkId::new(name, format!("2^{keys_log2}"));
        let mut rng = Rng::new(1);
        let chain = Chain::draw(LOOKUPS, || keys[rng.below(keys.len())]);
        for kind in integer_maps() {
            let map = kind.with_keys(&keys);
            group.bench_function(id(kind.name), |bencher| {
                bencher.iter(|| map.get_dependent(&chain));
            });
        }

        let mut entries: Vec<(u64, u32)> = keys.iter().copied().zip(0..).collect();
        entries.sort_unstable();
        let frozen: FrozenCTreeMap<u64, u32> = entries.iter().copied().collect();
        let answer = |value: Option<&u32>| value.copied().unwrap_or(u32::MAX);
        group.bench_function(id("frozen ctree"), |bencher| {
            bencher.iter(|| black_box(chain.follow(|key| answer(frozen.get(key)))));
        });
        group.bench_function(id("sorted Vec"), |bencher| {
            let search = |key| {
                entries
                    .binary_search_by_key(&key, |entry| entry.0)
                    .ok()
                    .map(|place| &entries[place].1)
            };
            bencher.iter(|| black_box(chain.follow(|&key| answer(search(key)))));
        });
    }
    group.finish();
}

fn independent(criterion: &mut Criterion) {
    for keys_log2 in SIZES_LOG2 {
        let keys = keys::random(1 << keys_log2, 1);
        let mut rng = Rng::new(1);
        let queries: Vec<u64> = (0..LOOKUPS).map(|_| keys[rng.below(keys.len())]).collect();
        let maps: Vec<_> = integer_maps()
            .into_iter()
            .map(|kind| (kind.name, kind.with_keys(&keys)))
            .collect();
        let id = |name| BenchmarkId::new(name, format!("2^{keys_log2}"));
        let mut group = criterion.benchmark_group("independent");
        group.throughput(Throughput::Elements(LOOKUPS as u64));
        for (name, map) in &maps {
            group.bench_function(id(*name), |bencher| {
                bencher.iter(|| map.get_independent(&queries));
            });
        }
        group.finish();
        let mut group = criterion.benchmark_group("many");
        group.throughput(Throughput::Elements(LOOKUPS as u64));
        for (name, map) in &maps {
            group.bench_function(id(*name), |bencher| {
                bencher.iter(|| map.get_many(&queries));
            });
        }
        group.finish();
    }
}

criterion_group!(all, dependent, independent);
criterion_main!(all);
