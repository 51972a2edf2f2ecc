//! Walks through ordered maps, by size: all entries, and short ranges from random starts. ctree,
//! std's `BTreeMap`, and the rivals.
//!
//! Keys are even over `u64` and came in random order, so that the leaves lie in memory as a living
//! map's do.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use measure::keys;
use measure::rivals::integer_maps;

const SIZES: [usize; 3] = [16, 1000, 1_000_000];

/// Ranges in one iteration.
const RANGES: usize = 1000;

fn iterate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("iterate");
    for size in SIZES {
        let keys = keys::random(size, 1);
        group.throughput(Throughput::Elements(size as u64));
        for kind in integer_maps() {
            let map = kind.with_keys(&keys);
            group.bench_function(BenchmarkId::new(kind.name, size), |bencher| {
                bencher.iter(|| map.iterate());
            });
        }
    }
    group.finish();
}

fn ranges(criterion: &mut Criterion) {
    let keys = keys::random(1_000_000, 1);
    for entries in [1, 10, 100] {
        let mut group = criterion.benchmark_group(format!("range of {entries}"));
        group.throughput(Throughput::Elements(RANGES as u64));
        for kind in integer_maps() {
            let map = kind.with_keys(&keys);
            group.bench_function(kind.name, |bencher| {
                // In the order of insertion, which is a random one.
                bencher.iter(|| map.ranges(&keys[..RANGES], entries));
            });
        }
        group.finish();
    }
}

criterion_group!(all, iterate, ranges);
criterion_main!(all);
