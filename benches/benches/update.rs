//! Insertion and removal in ordered maps, by size and by the order of the keys: ctree, std's
//! `BTreeMap`, and the rivals.
//!
//! `insert` builds a map from empty by single insertions, `remove` empties one that was built
//! untimed. Keys are even over `u64`. Maps of more than a cache's size are the `report` binary's.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use measure::keys;
use measure::rivals::integer_maps;
use measure::rng::Rng;

/// Sizes from one that fits a few nodes to one that fits a second-level cache.
const SIZES: [usize; 3] = [16, 1000, 50_000];

fn insert(criterion: &mut Criterion) {
    let in_order = |order: &str, size| {
        let mut keys = keys::random(size, 1);
        match order {
            "sorted" => keys.sort_unstable(),
            "reverse" => keys.sort_unstable_by(|a, b| b.cmp(a)),
            _ => {}
        }
        keys
    };
    for order in ["random", "sorted", "reverse"] {
        let mut group = criterion.benchmark_group(format!("insert {order}"));
        for size in SIZES {
            let keys = in_order(order, size);
            group.throughput(Throughput::Elements(size as u64));
            for kind in integer_maps() {
                group.bench_function(BenchmarkId::new(kind.name, size), |bencher| {
                    bencher.iter_with_large_drop(|| kind.with_keys(&keys));
                });
            }
        }
        group.finish();
    }
}

fn remove(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("remove random");
    for size in SIZES {
        let keys = keys::random(size, 1);
        let mut removals = keys.clone();
        Rng::new(2).shuffle(&mut removals);
        group.throughput(Throughput::Elements(size as u64));
        for kind in integer_maps() {
            group.bench_function(BenchmarkId::new(kind.name, size), |bencher| {
                bencher.iter_batched_ref(
                    || kind.with_keys(&keys),
                    |map| map.remove_all(&removals),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(all, insert, remove);
criterion_main!(all);
