//! What a morph takes, and a search in the tree before and after it.

use std::hint::black_box;

use ccmalloc::CcMalloc;
use ccmorph::{TreeNode, ccmorph};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

#[global_allocator]
static GLOBAL: CcMalloc = CcMalloc::new();

#[derive(TreeNode)]
struct Node {
    key: u32,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
}

type Root = Option<Box<Node>>;

/// More than the caches of most machines hold.
const NODES: u32 = 1 << 20;

/// A tree of `nodes` keys, inserted in random order.
fn grow(nodes: u32) -> Root {
    let mut keys: Vec<u32> = (0..nodes).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut keys);
    let mut root = None;
    for key in keys {
        let mut link: &mut Root = &mut root;
        while let Some(node) = link {
            link = match key < node.key {
                true => &mut node.left,
                false => &mut node.right,
            };
        }
        let (left, right) = (None, None);
        *link = Some(Box::new(Node { key, left, right }));
    }
    root
}

fn contains(mut link: &Root, key: u32) -> bool {
    while let Some(node) = link {
        if node.key == key {
            return true;
        }
        link = match key < node.key {
            true => &node.left,
            false => &node.right,
        };
    }
    false
}

fn searches(criterion: &mut Criterion) {
    let mut root = grow(NODES);
    let mut random = fastrand::Rng::with_seed(2);
    let mut group = criterion.benchmark_group("search");
    let mut search = |name: &str, root: &Root| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert!(contains(root, black_box(random.u32(..NODES)))));
        });
    };
    search("as inserted", &root);
    ccmorph(&mut root, Node::children).expect("a tree");
    search("morphed", &root);
    group.finish();
}

fn morphs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("morph");
    group.sample_size(10);
    let nodes = NODES / 16;
    group.throughput(Throughput::Elements(nodes.into()));
    group.bench_function("a tree", |bencher| {
        let morph = |mut root: Root| {
            ccmorph(&mut root, Node::children).expect("a tree");
            root
        };
        bencher.iter_batched(|| grow(nodes), morph, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, searches, morphs);
criterion_main!(benches);
