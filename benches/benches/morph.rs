//! The time of a morph, by layout and by structure; and of a copy, which a program can make by
//! itself.
//!
//! Each iteration morphs a fresh copy, made untimed. Nodes of a copy lie in the order in which
//! copying visits them, which is kinder to the first phase of a morph than the random order that
//! `report --only morph_vs_clone` begins with; in return, an iteration takes milliseconds.
//! `CcMalloc` serves everything.

use ccmalloc::CcMalloc;
use ccmodel::Layout;
use ccmorph::Morph;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use measure::keys;
use measure::structures::Structure;
use measure::structures::lists::Lists;
use measure::structures::octree::Octree;
use measure::structures::table::Table;
use measure::structures::tree::Plan;

#[global_allocator]
static GLOBAL: CcMalloc = CcMalloc::new();

/// Nodes of each structure: 2 MiB of a tree's, about a second-level cache.
const NODES_LOG2: u32 = 16;

/// Times copies of `structure`, and their morphs. The copies are dropped untimed.
fn morphs<S: Structure>(criterion: &mut Criterion, name: &str, structure: &S) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1 << NODES_LOG2));
    group.bench_function("copy", |bencher| {
        bencher.iter_with_large_drop(|| structure.clone());
    });
    for layout in [
        None,
        Some(Layout::DepthFirst),
        Some(Layout::BreadthFirst),
        Some(Layout::SubtreeCluster { block_bytes: 64 }),
        Some(Layout::VanEmdeBoas),
        Some(Layout::Hierarchical),
        Some(Layout::ClusterVanEmdeBoas { block_bytes: 64 }),
        Some(Layout::ClusterVanEmdeBoas { block_bytes: 4096 }),
    ] {
        let id = match layout {
            Some(layout) => BenchmarkId::from_parameter(layout),
            None => BenchmarkId::from_parameter("auto"),
        };
        let morph = Morph::new().layout(layout);
        group.bench_function(id, |bencher| {
            bencher.iter_batched(
                || structure.clone(),
                |mut copy| {
                    let report = copy.morph(&morph).expect("there is memory");
                    (copy, report)
                },
                BatchSize::PerIteration,
            );
        });
    }
}

fn structures(criterion: &mut Criterion) {
    let nodes = 1_usize << NODES_LOG2;
    let keys = keys::random(nodes, 1);
    morphs(criterion, "tree", &Plan::of_inserts(&keys).build());
    morphs(
        criterion,
        "complete tree",
        &Plan::complete(NODES_LOG2, 2).build(),
    );
    morphs(criterion, "lists", &Lists::churned(nodes, nodes / 2, 3));
    morphs(criterion, "table", &Table::with_keys(&keys));
    // Fewer nodes than points, but each with eight links to look at.
    morphs(criterion, "octree", &Octree::random(nodes, 4));
}

criterion_group!(all, structures);
criterion_main!(all);
