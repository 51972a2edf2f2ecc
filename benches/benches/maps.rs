//! Ordered maps, from one that fits a few nodes to one that no cache holds: ctree, std's
//! `BTreeMap`, and the rivals. Times are those of a pass over many operations; its throughput is
//! that of single ones.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use measure::keys;
use measure::ordered_map::Passes;
use measure::queries::Chain;
use measure::rivals::integer_maps;
use measure::rng::Rng;

const SIZES: [usize; 4] = [16, 1000, 50_000, 4_000_000];

/// Lookups in one iteration.
const LOOKUPS: usize = 10_000;
/// Ranges in one iteration, and entries of each.
const RANGES: (usize, usize) = (1000, 10);

fn passes(criterion: &mut Criterion) {
    for size in SIZES {
        let keys = keys::random(size, 1);
        let mut rng = Rng::new(1);
        let mut draw = || keys[rng.below(size)];
        let chain = Chain::draw(LOOKUPS, &mut draw);
        let queries: Vec<u64> = (0..LOOKUPS).map(|_| draw()).collect();
        type Pass<'a> = &'a dyn Fn(&dyn Passes<u64>) -> u64;
        let passes: [(&str, usize, Pass<'_>); 5] = [
            ("dependent", LOOKUPS, &|map| map.get_dependent(&chain)),
            ("independent", LOOKUPS, &|map| map.get_independent(&queries)),
            ("many", LOOKUPS, &|map| map.get_many(&queries)),
            ("iterate", size, &|map| map.iterate()),
            ("ranges", RANGES.0, &|map| {
                map.ranges(&queries[..RANGES.0], RANGES.1)
            }),
        ];
        for kind in integer_maps() {
            let map = kind.with_keys(&keys);
            for (name, operations, pass) in passes {
                let mut group = criterion.benchmark_group(name);
                group.throughput(Throughput::Elements(operations as u64));
                group.bench_function(BenchmarkId::new(kind.name, size), |bencher| {
                    bencher.iter(|| pass(&*map));
                });
            }
        }
    }
}

fn updates(criterion: &mut Criterion) {
    for size in &SIZES[..3] {
        let keys = keys::random(*size, 1);
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        for kind in integer_maps() {
            let id = BenchmarkId::new(kind.name, size);
            for (name, keys) in [("insert", &keys), ("insert sorted", &sorted)] {
                let mut group = criterion.benchmark_group(name);
                group.throughput(Throughput::Elements(*size as u64));
                group.bench_function(id.clone(), |bencher| {
                    bencher.iter_with_large_drop(|| kind.with_keys(keys));
                });
            }
            let mut group = criterion.benchmark_group("remove");
            group.throughput(Throughput::Elements(*size as u64));
            group.bench_function(id, |bencher| {
                bencher.iter_batched_ref(
                    || kind.with_keys(&sorted),
                    |map| map.remove_all(&keys),
                    BatchSize::LargeInput,
                );
            });
        }
    }
}

criterion_group!(all, passes, updates);
criterion_main!(all);
