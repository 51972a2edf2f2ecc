//! What a morph takes: by layout, by size, and by structure; and beside it a copy, which is what a
//! program can do by itself.
//!
//! Each iteration morphs a fresh copy, made untimed. Nodes of a copy lie in the order in which
//! copying visits them, which is kinder to the first phase of a morph than the random order that
//! `report --only morph_vs_clone` begins with; in return, an iteration takes milliseconds.
//! Everything is served by `CcMalloc`.

use ccmalloc::CcMalloc;
use ccmodel::Layout;
use ccmorph::{LayoutChoice, Morph};
use criterion::{
    BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use measure::rng::Rng;
use measure::structures::Structure;
use measure::structures::lists::Lists;
use measure::structures::octree::Octree;
use measure::structures::table::Table;
use measure::structures::tree::Plan;

#[global_allocator]
static GLOBAL: CcMalloc = CcMalloc::new();

/// Nodes, where they are not what is varied: 2 MiB of a tree's, about a second-level cache.
const NODES_LOG2: u32 = 16;

fn random_keys(count: usize) -> Vec<u64> {
    let mut rng = Rng::new(1);
    (0..count).map(|_| rng.next_u64()).collect()
}

/// Times a morph of copies of `structure`. The copies are dropped untimed.
fn morph_copies<S: Structure>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    structure: &S,
    layout: LayoutChoice,
) {
    let morph = Morph::new().layout(layout);
    group.bench_function(id, |bencher| {
        bencher.iter_batched(
            || structure.copy(),
            |mut copy| {
                let report = copy.morph(&morph).expect("there is memory");
                (copy, report)
            },
            BatchSize::PerIteration,
        );
    });
}

fn layouts(criterion: &mut Criterion) {
    let keys = random_keys(1 << NODES_LOG2);
    let tree = Plan::of_inserts(&keys).build();
    let mut group = criterion.benchmark_group("morph a tree");
    group.throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function("copy", |bencher| {
        bencher.iter_with_large_drop(|| tree.copy());
    });
    let fixed = [
        Layout::DepthFirst,
        Layout::BreadthFirst,
        Layout::SubtreeCluster { block_bytes: 64 },
        Layout::VanEmdeBoas,
        Layout::Hierarchical,
        Layout::ClusterVanEmdeBoas { block_bytes: 64 },
        Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
    ];
    for layout in fixed {
        let id = BenchmarkId::from_parameter(layout);
        morph_copies(&mut group, id, &tree, LayoutChoice::Fixed(layout));
    }
    let id = BenchmarkId::from_parameter("auto");
    morph_copies(&mut group, id, &tree, LayoutChoice::Auto);
    group.finish();
}

fn sizes(criterion: &mut Criterion) {
    for nodes_log2 in [10, 14, 18] {
        let keys = random_keys(1 << nodes_log2);
        let tree = Plan::of_inserts(&keys).build();
        let mut group = criterion.benchmark_group("morph trees");
        group.sample_size(20);
        group.throughput(Throughput::Elements(keys.len() as u64));
        for (name, layout) in [
            ("veb", LayoutChoice::Fixed(Layout::VanEmdeBoas)),
            ("auto", LayoutChoice::Auto),
        ] {
            let id = BenchmarkId::new(name, format!("2^{nodes_log2}"));
            morph_copies(&mut group, id, &tree, layout);
        }
        group.finish();
    }
}

fn structures(criterion: &mut Criterion) {
    let nodes = 1_usize << NODES_LOG2;
    let mut group = criterion.benchmark_group("morph structures");
    group.throughput(Throughput::Elements(nodes as u64));
    for (name, layout) in [
        ("dfs", LayoutChoice::Fixed(Layout::DepthFirst)),
        ("auto", LayoutChoice::Auto),
    ] {
        let complete = Plan::complete(NODES_LOG2, 2).build();
        let id = BenchmarkId::new("complete tree", name);
        morph_copies(&mut group, id, &complete, layout);
        let lists = Lists::churned(nodes, nodes / 2, 3);
        morph_copies(&mut group, BenchmarkId::new("lists", name), &lists, layout);
        let table = Table::with_keys(&random_keys(nodes));
        morph_copies(&mut group, BenchmarkId::new("table", name), &table, layout);
        // Fewer nodes than points, but each with eight links to look at.
        let octree = Octree::random(nodes, 4);
        morph_copies(
            &mut group,
            BenchmarkId::new("octree", name),
            &octree,
            layout,
        );
    }
    group.finish();
}

criterion_group!(all, layouts, sizes, structures);
criterion_main!(all);
