//! Single allocations of 24 bytes: with a hint, without, and the system's malloc; alone and in a
//! crowd.
//!
//! `pair` frees each object at once, which is the shortest path through an allocator. `batch` makes
//! a thousand objects and frees them in the order of their birth, so that pages fill up and empty.
//! `churn` replaces random ones of 20,000 live objects by others of 8 to 407 bytes, as a program
//! does that has run for a while; each step frees one and allocates one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::NonNull;

use ccmalloc::{CcMalloc, cc_alloc};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use measure::rivals::ALLOCATORS;
use measure::rng::Rng;

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
    // SAFETY: `cycle` frees each object once, and those passed here all came from `cc_alloc` with
    // this layout.
    let free_ours = |object: NonNull<u8>| unsafe { CcMalloc.dealloc(object.as_ptr(), layout) };
    // SAFETY: the layout is not empty.
    let allocate_theirs = |_| NonNull::new(unsafe { System.alloc(layout) });
    // SAFETY: `cycle` frees each object once, and those passed here all came from `allocate_theirs`
    // with this layout.
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

/// Objects that live at any time in `churn`.
const LIVE: usize = 20_000;
/// Replacements an iteration.
const STEPS: usize = 10_000;

/// The objects of one allocator; frees them when dropped.
struct Crowd<'a> {
    allocator: &'a dyn GlobalAlloc,
    objects: Vec<(*mut u8, Layout)>,
}

impl<'a> Crowd<'a> {
    fn new(allocator: &'a dyn GlobalAlloc, rng: &mut Rng) -> Self {
        let objects = (0..LIVE).map(|_| any_object(allocator, rng)).collect();
        Crowd { allocator, objects }
    }

    fn replace_some(&mut self, rng: &mut Rng) {
        for _ in 0..STEPS {
            let place = &mut self.objects[rng.below(LIVE)];
            let (old, layout) = std::mem::replace(place, any_object(self.allocator, rng));
            // SAFETY: from this allocator with this layout, and out of the list since the line
            // above.
            unsafe { self.allocator.dealloc(old, layout) };
        }
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        for (object, layout) in self.objects.drain(..) {
            // SAFETY: from this allocator with this layout; each is in the list once.
            unsafe { self.allocator.dealloc(object, layout) };
        }
    }
}

fn any_object(allocator: &dyn GlobalAlloc, rng: &mut Rng) -> (*mut u8, Layout) {
    let layout = Layout::from_size_align(8 + rng.below(400), 8).expect("small sizes are fine");
    // SAFETY: the layout is not empty.
    let object = unsafe { allocator.alloc(layout) };
    assert!(!object.is_null(), "a machine that benchmarks has memory");
    // SAFETY: fresh, and at least 8 bytes.
    unsafe { object.write(1) };
    (object, layout)
}

fn churn(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("churn");
    group.throughput(Throughput::Elements(STEPS as u64));
    let named = std::iter::once(("ccmalloc", &CcMalloc as &dyn GlobalAlloc)).chain(
        ALLOCATORS
            .iter()
            .map(|rival| (rival.name, rival.allocator.0 as &dyn GlobalAlloc)),
    );
    for (name, allocator) in named {
        let mut rng = Rng::new(7);
        let mut crowd = Crowd::new(allocator, &mut rng);
        group.bench_function(name, |bencher| {
            bencher.iter(|| crowd.replace_some(&mut rng));
        });
    }
    group.finish();
}

criterion_group!(all, allocate, churn);
criterion_main!(all);
