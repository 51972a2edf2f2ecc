//! What a call of the allocator takes: with a hint, without, and from other threads' objects,
//! beside glibc's malloc and mimalloc.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::NonNull;

use ccmalloc::CcMalloc;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;

/// Objects that live at once.
const LIVE: usize = 1000;

/// Allocates [`LIVE`] objects and frees them in the order in which they were made.
fn make_and_free(allocator: &impl GlobalAlloc, layout: Layout, objects: &mut Vec<*mut u8>) {
    for _ in 0..LIVE {
        // SAFETY: the size is not 0.
        objects.push(black_box(unsafe { allocator.alloc(layout) }));
    }
    for object in objects.drain(..) {
        // SAFETY: allocated above, by this allocator with this layout, and freed once.
        unsafe { allocator.dealloc(object, layout) };
    }
}

fn pairs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("allocate and free");
    group.throughput(Throughput::Elements(LIVE as u64));
    for bytes in [16, 64, 1024] {
        let layout = Layout::from_size_align(bytes, 8).expect("a small size");
        let mut objects = Vec::with_capacity(LIVE);
        group.bench_function(BenchmarkId::new("ccmalloc", bytes), |bencher| {
            bencher.iter(|| make_and_free(&CcMalloc::new(), layout, &mut objects));
        });
        group.bench_function(BenchmarkId::new("mimalloc", bytes), |bencher| {
            bencher.iter(|| make_and_free(&MiMalloc, layout, &mut objects));
        });
        group.bench_function(BenchmarkId::new("glibc", bytes), |bencher| {
            bencher.iter(|| make_and_free(&System, layout, &mut objects));
        });
    }
    group.finish();
}

/// Each object beside the one before, as the nodes of a list.
fn hints(criterion: &mut Criterion) {
    let layout = Layout::new::<[u64; 3]>();
    let mut objects = Vec::with_capacity(LIVE);
    let mut make = |is_hinted: bool| {
        let mut before: Option<NonNull<u8>> = None;
        for _ in 0..LIVE {
            before = ccmalloc::cc_alloc(layout, before.filter(|_| is_hinted));
            objects.extend(before);
        }
        for object in objects.drain(..) {
            // SAFETY: allocated above with this layout, and freed once.
            unsafe { ccmalloc::cc_dealloc(object, layout) };
        }
    };
    let mut group = criterion.benchmark_group("allocate with a hint and free");
    group.throughput(Throughput::Elements(LIVE as u64));
    group.bench_function("hinted", |bencher| bencher.iter(|| make(true)));
    group.bench_function("not hinted", |bencher| bencher.iter(|| make(false)));
    group.finish();
}

criterion_group!(benches, pairs, hints);
criterion_main!(benches);
