//! Single allocations of 24 bytes: with a hint, without, and the system's malloc; alone and in a crowd.
//!
//! `pair` frees each object at once, which is the shortest path through an allocator. `batch` makes a thousand objects and frees them in the order of their birth,
//! so that pages fill up and empty.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::NonNull;

use ccmalloc::{CcMalloc, cc_alloc};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const BATCH: usize = 1000;

fn node_layout() -> Layout {
    Layout::new::<[u64; 3]>()
}

/// Allocates and frees `count` objects; `allocate` gets the object before as a hint.
fn cycle(
    objects: &mut Vec<NonNull<u8>>,
    count: usize,
    mut allocate: impl FnMut(Option<NonNull<u8>>) -> Option<NonNull<u8>>,
    mut free: impl FnMut(NonNull<u8>),
) {
    for _ in 0..count {
        let object =
            allocate(objects.last().copied()).expect("a machine that benchmarks has memory");
        objects.push(black_box(object));
    }
    objects.drain(..).for_each(&mut free);
}

fn allocate(criterion: &mut Criterion) {
    let layout = node_layout();
    // SAFETY: `cycle` frees each object once, and those passed here all came from `cc_alloc` with this layout.
    let free_ours = |object: NonNull<u8>| unsafe { CcMalloc.dealloc(object.as_ptr(), layout) };
    // SAFETY: the layout is not empty.
    let allocate_theirs = |_| NonNull::new(unsafe { System.alloc(layout) });
    // SAFETY: `cycle` frees each object once, and those passed here all came from `allocate_theirs` with this layout.
    let free_theirs = |object: NonNull<u8>| unsafe { System.dealloc(object.as_ptr(), layout) };
    for (group_name, count) in [("pair", 1), ("batch", BATCH)] {
        let mut group = criterion.benchmark_group(group_name);
        group.throughput(Throughput::Elements(count as u64));
        let mut objects = Vec::with_capacity(count);
        group.bench_function("ccmalloc hinted", |bencher| {
            let hinted = |hint| cc_alloc(layout, hint);
            bencher.iter(|| cycle(&mut objects, count, hinted, free_ours));
        });
        group.bench_function("ccmalloc unhinted", |bencher| {
            let unhinted = |_| cc_alloc(layout, None);
            bencher.iter(|| cycle(&mut objects, count, unhinted, free_ours));
        });
        group.bench_function("system malloc", |bencher| {
            bencher.iter(|| cycle(&mut objects, count, allocate_theirs, free_theirs));
        });
        group.finish();
    }
}

criterion_group!(all, allocate);
criterion_main!(all);
