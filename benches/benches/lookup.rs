//! Lookups in maps from one that fits the first-level cache to one that no cache holds: frozen map, `BTreeMap`, binary search.
//!
//! Each lookup's key depends on the answer before, so times are latencies. Larger and rival-rich comparisons are the `report` binary's.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ctree::FrozenCTreeMap;
use examples::chain::QueryChain;
use examples::rng::Rng;

/// Lookups in one iteration.
const LOOKUPS: usize = 10_000;

fn lookup(criterion: &mut Criterion) {
    for keys_log2 in [10, 17, 22] {
        let mut rng = Rng::new(keys_log2);
        let mut entries: Vec<(u64, u32)> = (0..1_u32 << keys_log2)
            .map(|value| (rng.next_u64(), value))
            .collect();
        let keys: Vec<u64> = entries.iter().map(|&(key, _)| key).collect();
        let chain = QueryChain::sample(&keys, LOOKUPS, 1);
        let theirs: BTreeMap<u64, u32> = entries.iter().copied().collect();
        entries.sort_unstable();
        let ours: FrozenCTreeMap<u64, u32> = entries.iter().copied().collect();

        let mut group = criterion.benchmark_group("lookup");
        group.throughput(Throughput::Elements(LOOKUPS as u64));
        let id = |name| BenchmarkId::new(name, format!("2^{keys_log2}"));
        let answer = |value: Option<&u32>| value.copied().unwrap_or(u32::MAX);
        group.bench_function(id("frozen ctree"), |bencher| {
            bencher.iter(|| black_box(chain.follow(|key| answer(ours.get(&key)))));
        });
        group.bench_function(id("BTreeMap"), |bencher| {
            bencher.iter(|| black_box(chain.follow(|key| answer(theirs.get(&key)))));
        });
        group.bench_function(id("sorted Vec"), |bencher| {
            let search = |key| {
                entries
                    .binary_search_by_key(&key, |entry| entry.0)
                    .ok()
                    .map(|place| &entries[place].1)
            };
            bencher.iter(|| black_box(chain.follow(|key| answer(search(key)))));
        });
        group.finish();
    }
}

criterion_group!(all, lookup);
criterion_main!(all);
