//! Heaps of one's own: random programs over several of them, what becomes of their memory, threads,
//! misuse.

use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::{Mutex, mpsc};

use ccmalloc::{CcMalloc, Heap, HintAllocator, Policy, cc_alloc, cc_dealloc, cc_realloc, stats};
use quickcheck::{Arbitrary, Gen, quickcheck};

use crate::operation::any_bytes;
use crate::shadow::{Object, Ranges};
use crate::times;

#[derive(Clone, Debug)]
enum Hint {
    None,
    /// A live object of any heap, or of the thread's.
    Live(usize),
    /// An address that was freed, or went with its heap.
    Stale(usize),
    Wild(usize),
}

#[derive(Clone, Debug)]
enum Op {
    Make(u8),
    Drop(usize),
    Clear(usize),
    Alloc {
        heap: usize,
        layout: Layout,
        zeroed: bool,
        hint: Hint,
    },
    /// An object of the thread's heap: something for hints to point at.
    AllocOutside(Layout),
    Free(usize, usize),
    /// Unsafe code may hand an object of a heap to `cc_dealloc` or `cc_realloc`, on another thread
    /// at that.
    FreeElsewhere(usize, usize),
    ResizeElsewhere(usize, usize),
    Resize {
        heap: usize,
        object: usize,
        layout: Layout,
        hint: Hint,
    },
    Check,
}

fn any_layout(g: &mut Gen) -> Layout {
    let align_log2 = *g
        .choose(&[0, 0, 1, 2, 3, 3, 3, 3, 4, 4, 5, 6, 7, 9, 12, 14, 16, 21])
        .unwrap();
    Layout::from_size_align(any_bytes(g), 1 << align_log2).unwrap()
}

impl Arbitrary for Hint {
    fn arbitrary(g: &mut Gen) -> Self {
        match u8::arbitrary(g) % 8 {
            0 => Hint::None,
            1..=5 => Hint::Live(usize::arbitrary(g)),
            6 => Hint::Stale(usize::arbitrary(g)),
            _ => Hint::Wild(usize::arbitrary(g)),
        }
    }
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Self {
        match u8::arbitrary(g) % 64 {
            0 | 1 => Op::Make(u8::arbitrary(g)),
            2 => Op::Drop(usize::arbitrary(g)),
            3 => Op::Clear(usize::arbitrary(g)),
            4..=5 => Op::AllocOutside(any_layout(g)),
            6..=25 => Op::Free(usize::arbitrary(g), usize::arbitrary(g)),
            26..=28 => Op::FreeElsewhere(usize::arbitrary(g), usize::arbitrary(g)),
            29 => Op::ResizeElsewhere(usize::arbitrary(g), usize::arbitrary(g)),
            30..=35 => Op::Resize {
                heap: usize::arbitrary(g),
                object: usize::arbitrary(g),
                layout: any_layout(g),
                hint: Hint::arbitrary(g),
            },
            36 | 37 => Op::Check,
            _ => Op::Alloc {
                heap: usize::arbitrary(g),
                layout: any_layout(g),
                zeroed: u8::arbitrary(g) < 20,
                hint: Hint::arbitrary(g),
            },
        }
    }
}

/// A heap and what lives in it.
struct Populated {
    heap: Heap,
    live: Vec<Object>,
}

#[derive(Default)]
struct World {
    heaps: Vec<Populated>,
    outside: Vec<Object>,
    ranges: Ranges,
    stale: Vec<NonNull<u8>>,
    step: usize,
}

// SAFETY: addresses in `stale` are only ever hints; the rest is `Send` by itself.
unsafe impl Send for World {}

impl World {
    fn hint(&self, hint: &Hint) -> Option<NonNull<u8>> {
        let live = || {
            let inside = self.heaps.iter().flat_map(|heap| &heap.live);
            inside.chain(&self.outside)
        };
        match *hint {
            Hint::None => None,
            Hint::Live(n) => live()
                .nth(n % live().count().max(1))
                .map(|object| object.start),
            Hint::Stale(n) => self.stale.get(n % self.stale.len().max(1)).copied(),
            Hint::Wild(address) => NonNull::new(std::ptr::without_provenance_mut(address)),
        }
    }

    /// Takes an object of a heap out of the books.
    fn take(&mut self, heap: usize, object: usize) -> Option<(usize, Object)> {
        let heap = heap % self.heaps.len().max(1);
        let live = &mut self.heaps.get_mut(heap)?.live;
        if live.is_empty() {
            return None;
        }
        let index = object % live.len();
        let object = live.swap_remove(index);
        self.forget(&object);
        Some((heap, object))
    }

    fn forget(&mut self, object: &Object) {
        if object.layout.size() != 0 {
            self.ranges.remove(object);
            self.stale.push(object.start);
        }
    }

    fn enter(&mut self, object: &Object) {
        // What has no bytes has no memory, and no address of its own.
        if object.layout.size() != 0 {
            self.ranges.insert(object);
        }
    }

    fn forget_all_of(&mut self, heap: usize) {
        for object in std::mem::take(&mut self.heaps[heap].live) {
            self.forget(&object);
            // Checks the contents once more; the memory goes with the heap.
            object.release();
        }
    }

    fn run(&mut self, op: &Op) {
        self.step += 1;
        match *op {
            Op::Make(policy) if self.heaps.len() < 6 => {
                let heap = match policy % 4 {
                    0 => Heap::with_policy(Policy::Closest),
                    1 => Heap::with_policy(Policy::FirstFit),
                    2 => Heap::with_policy(Policy::NewBlock),
                    _ => Heap::new(),
                }
                .expect("memory");
                self.heaps.push(Populated {
                    heap,
                    live: Vec::new(),
                });
            }
            Op::Drop(heap) if !self.heaps.is_empty() => {
                let heap = heap % self.heaps.len();
                self.forget_all_of(heap);
                drop(self.heaps.swap_remove(heap));
            }
            Op::Clear(heap) if !self.heaps.is_empty() => {
                let heap = heap % self.heaps.len();
                self.forget_all_of(heap);
                let heap = &mut self.heaps[heap].heap;
                heap.clear();
                assert_eq!(heap.stats(), Default::default());
                heap.check().unwrap();
            }
            Op::Alloc {
                heap,
                layout,
                zeroed,
                ref hint,
            } if !self.heaps.is_empty() => {
                let hint = self.hint(hint);
                let heap = heap % self.heaps.len();
                let start = if zeroed {
                    let start = self.heaps[heap].heap.alloc_zeroed(layout, hint).unwrap();
                    // SAFETY: fresh, initialised, and this large.
                    let bytes =
                        unsafe { std::slice::from_raw_parts(start.as_ptr(), layout.size()) };
                    assert!(bytes.iter().all(|&byte| byte == 0));
                    start
                } else {
                    self.heaps[heap].heap.alloc(layout, hint).unwrap()
                };
                assert!(
                    layout.size() == 0 || self.heaps[heap].heap.contains(start.as_ptr()),
                    "{layout:?}"
                );
                // SAFETY: fresh from the heap with this layout.
                let object = unsafe { Object::adopt(start, layout, self.step * 37) };
                self.enter(&object);
                self.heaps[heap].live.push(object);
            }
            Op::AllocOutside(layout) if self.outside.len() < 20 => {
                let start = cc_alloc(layout, None).unwrap();
                assert!(
                    self.heaps
                        .iter()
                        .all(|heap| !heap.heap.contains(start.as_ptr()))
                );
                // SAFETY: fresh from ccmalloc with this layout.
                let object = unsafe { Object::adopt(start, layout, self.step * 37) };
                self.ranges.insert(&object);
                self.outside.push(object);
            }
            Op::Free(heap, object) => {
                if let Some((heap, object)) = self.take(heap, object) {
                    let (start, layout) = object.release();
                    // SAFETY: allocated in this heap with this layout, and given up here.
                    unsafe { self.heaps[heap].heap.dealloc(start, layout) };
                }
            }
            Op::FreeElsewhere(heap, object) => {
                if let Some((_, object)) = self.take(heap, object)
                    && object.layout.size() != 0
                {
                    std::thread::spawn(move || object.free()).join().unwrap();
                }
            }
            Op::ResizeElsewhere(heap, object) => {
                if let Some((_, mut object)) = self.take(heap, object)
                    && object.layout.size() != 0
                {
                    let bytes = object.layout.size() * 3;
                    object.resize(bytes, None);
                    // It may have stayed where it was, or have become the thread's.
                    object.free();
                }
            }
            Op::Resize {
                heap,
                object,
                layout,
                ref hint,
            } => {
                let hint = self.hint(hint);
                if let Some((heap, mut object)) = self.take(heap, object) {
                    object.resize_by(layout, |start, old| {
                        // SAFETY: allocated in this heap with this layout; replaced by the result.
                        unsafe { self.heaps[heap].heap.realloc(start, old, layout, hint) }.unwrap()
                    });
                    self.enter(&object);
                    self.heaps[heap].live.push(object);
                }
            }
            Op::Check => {
                for Populated { heap, .. } in &self.heaps {
                    heap.check().unwrap();
                }
                ccmalloc::check().unwrap();
            }
            Op::Make(_) | Op::Drop(_) | Op::Clear(_) | Op::Alloc { .. } | Op::AllocOutside(_) => {}
        }
    }

    fn finish(mut self) {
        for object in std::mem::take(&mut self.outside) {
            self.ranges.remove(&object);
            object.free();
        }
        self.run(&Op::Check);
        // Half of the heaps object by object, half as they are.
        for heap in (0..self.heaps.len()).rev() {
            if heap % 2 == 0 {
                self.forget_all_of(heap);
            }
            while let Some((_, object)) = self.take(heap, 0) {
                let (start, layout) = object.release();
                // SAFETY: allocated in this heap with this layout, and given up here.
                unsafe { self.heaps[heap].heap.dealloc(start, layout) };
            }
            self.heaps[heap].heap.check().unwrap();
            self.heaps.truncate(heap);
        }
        ccmalloc::check().unwrap();
    }
}

quickcheck! {
    fn any_program_over_heaps_keeps_contents_apart(programs: Vec<Vec<Op>>) -> bool {
        let mut world = World::default();
        world.run(&Op::Make(3));
        for op in programs.iter().flatten() {
            world.run(op);
        }
        world.finish();
        true
    }

    fn heaps_outlive_the_threads_that_made_them(programs: Vec<Vec<Op>>) -> bool {
        let mut world = World::default();
        for program in programs {
            // Each program on a thread of its own, which ends before the next begins.
            world = std::thread::spawn(move || {
                world.run(&Op::Make(0));
                program.iter().for_each(|op| world.run(op));
                world
            })
            .join()
            .unwrap();
        }
        std::thread::spawn(move || world.finish()).join().is_ok()
    }
}

/// Fills a heap with objects of every kind: slabs full, half full and empty, co-located pages,
/// spans, mappings.
fn populate(heap: &Heap) -> Vec<(NonNull<u8>, Layout)> {
    let mut objects: Vec<(NonNull<u8>, Layout)> = Vec::new();
    for bytes in [8, 24, 64, 200, 3000, 16 << 10] {
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        let mut hint = Some(NonNull::dangling());
        for i in 0..times(3000).min((1 << 21) / bytes) {
            if i % 2 == 0 {
                objects.push((heap.alloc(layout, None).unwrap(), layout));
            } else {
                hint = heap.alloc(layout, hint);
                objects.push((hint.unwrap(), layout));
            }
        }
    }
    for bytes in [40_000, 500_000, 1 << 20, 5 << 20] {
        let layout = Layout::from_size_align(bytes, 64).unwrap();
        objects.extend((0..4).map(|_| (heap.alloc(layout, None).unwrap(), layout)));
    }
    objects
}

#[test]
fn a_heap_is_dropped_with_all_that_lives_in_it() {
    if !crate::alone("heaps::a_heap_is_dropped_with_all_that_lives_in_it") {
        return;
    }
    let before = stats();
    let mut heap = Heap::new().unwrap();
    for round in 0..3 {
        assert_eq!(heap.stats(), Default::default());
        let objects = populate(&heap);
        heap.check().unwrap();
        assert!(heap.stats().chunk_bytes >= 2 << 20 && heap.stats().large_bytes >= 24 << 20);
        let sums = stats();
        assert_eq!(
            sums.large_bytes,
            before.large_bytes + heap.stats().large_bytes
        );
        assert!(objects.iter().all(|(object, layout)| {
            heap.contains(object.as_ptr())
                && heap.contains(object.as_ptr().wrapping_add(layout.size() - 1))
        }));
        if round == 1 {
            heap.clear();
        } else {
            drop(heap);
            heap = Heap::new().unwrap();
        }
        assert!(objects.iter().all(|(object, _)| {
            !heap.contains(object.as_ptr()) && !ccmalloc::contains(object.as_ptr())
        }));
        // The test's own vectors come from the thread's heap.
        assert!(stats().chunk_bytes <= before.chunk_bytes + (4 << 20));
        assert_eq!(stats().large_bytes, before.large_bytes);
    }
}

#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "counts megabytes")]
#[test]
fn many_heaps_come_and_go_without_a_trace() {
    if !crate::alone("heaps::many_heaps_come_and_go_without_a_trace") {
        return;
    }
    let mut first = (0, 0);
    for round in 0..600 {
        let mut heaps: Vec<Heap> = (0..round % 5 + 1).map(|_| Heap::new().unwrap()).collect();
        for heap in &heaps {
            let layout = Layout::from_size_align(24 + round % 100, 8).unwrap();
            let mut hint = None;
            for i in 0..3000 {
                let object = heap.alloc(layout, hint.filter(|_| i % 3 > 0));
                hint = object;
                assert!(object.is_some());
            }
            let large = Layout::from_size_align((1 << 20) + round * 5000, 8).unwrap();
            assert!(heap.alloc_zeroed(large, None).is_some());
        }
        if round % 2 == 0 {
            heaps.truncate(1);
            std::thread::spawn(move || drop(heaps)).join().unwrap();
        }
        if round == 20 {
            first = (crate::process::limits::mapped_bytes(), stats().heaps);
        }
    }
    let last = (crate::process::limits::mapped_bytes(), stats().heaps);
    assert!(last.0 < first.0 + (8 << 20), "{first:?} -> {last:?}");
    assert!(last.1 <= first.1 + 1, "{first:?} -> {last:?}");
}

#[test]
fn mappings_are_resized_freed_and_left_to_their_heap() {
    let heap = Heap::new().unwrap();
    let mebibytes = |count: usize| Layout::from_size_align(count << 20, 4096).unwrap();
    let mut object = heap.alloc_zeroed(mebibytes(3), None).unwrap();
    let written = if cfg!(miri) { 4096 } else { 2 << 20 };
    // SAFETY: this large.
    unsafe { object.write_bytes(7, written) };
    let mut old = 3;
    for new in [5, 40, 41, 6, 2, 9] {
        // SAFETY: allocated with this layout; replaced by the result.
        object = unsafe { heap.realloc(object, mebibytes(old), mebibytes(new), None) }.unwrap();
        // SAFETY: this much was written before, and no size here is smaller.
        let bytes = unsafe { std::slice::from_raw_parts(object.as_ptr(), written) };
        assert!(bytes.iter().all(|&byte| byte == 7), "{old} -> {new}");
        assert!(heap.stats().large_bytes >= new << 20);
        // Whole chunks, one more at most for a start off the front.
        assert!(heap.stats().large_bytes <= (new << 20) + (4 << 20));
        assert!(heap.contains(object.as_ptr().wrapping_add((new << 20) - 1)));
        heap.check().unwrap();
        old = new;
    }
    // A larger alignment than a chunk's, and down to a span and to an object of a slab.
    let odd = Layout::from_size_align(2 << 20, 4 << 20).unwrap();
    let span = Layout::from_size_align(100_000, 8).unwrap();
    let small = Layout::from_size_align(100, 8).unwrap();
    let mut old = mebibytes(old);
    for new in [odd, span, odd, small, span, small] {
        // SAFETY: allocated with this layout; replaced by the result.
        object = unsafe { heap.realloc(object, old, new, None) }.unwrap();
        assert_eq!(object.addr().get() % new.align(), 0);
        // SAFETY: 100 bytes were written at least.
        let bytes = unsafe { std::slice::from_raw_parts(object.as_ptr(), 100) };
        assert!(bytes.iter().all(|&byte| byte == 7));
        heap.check().unwrap();
        old = new;
    }
    assert_eq!(heap.stats().large_bytes, 0);
    // Left to the heap by others, which it notices when it maps again.
    let address = heap.alloc(mebibytes(3), None).unwrap().addr();
    // SAFETY: none but that ccmalloc takes its objects from any thread; the heap lives on.
    let free = move || unsafe { cc_dealloc(NonNull::without_provenance(address), mebibytes(3)) };
    std::thread::spawn(free).join().unwrap();
    let object = heap.alloc(mebibytes(3), None).unwrap();
    assert!(heap.stats().large_bytes <= 4 << 20);
    // SAFETY: as above; the result is the thread's object.
    let outside = unsafe { cc_realloc(object, mebibytes(3), 6 << 20, None) }.unwrap();
    assert!(!heap.contains(outside.as_ptr()));
    // SAFETY: allocated just above with this layout.
    unsafe { cc_dealloc(outside, mebibytes(6)) };
    heap.check().unwrap();
}

#[test]
fn what_others_free_is_used_again() {
    let heap = Heap::new().unwrap();
    let layout = Layout::new::<[u64; 4]>();
    for _ in 0..10 {
        let objects: Vec<_> = (0..times(10_000))
            .map(|i| {
                let hint = (i % 2 == 0).then(NonNull::dangling);
                heap.alloc(layout, hint).unwrap().addr()
            })
            .collect();
        std::thread::spawn(move || {
            for object in objects {
                // SAFETY: none but that ccmalloc takes its objects from any thread; the heap lives
                // on.
                unsafe { cc_dealloc(NonNull::without_provenance(object), layout) };
            }
        })
        .join()
        .unwrap();
        heap.check().unwrap();
    }
    assert!(
        heap.stats().chunk_bytes <= 4 << 20,
        "{:?} for 320 KB at a time",
        heap.stats()
    );
}

#[test]
fn others_free_while_the_heap_allocates() {
    let heap = Heap::new().unwrap();
    let (sender, receiver) = mpsc::sync_channel::<Vec<Object>>(4);
    std::thread::scope(|scope| {
        scope.spawn(move || receiver.into_iter().flatten().for_each(Object::free));
        let mut kept: Vec<Object> = Vec::new();
        for round in 0..times(300) {
            let mut hint = None;
            let batch: Vec<Object> = (0..60)
                .map(|i| {
                    let bytes = match (round % 20, i) {
                        (0, 0) => 2 << 20,
                        (_, 0) => 70_000,
                        _ => 8 + (i * 7 + round) % 300,
                    };
                    let layout = Layout::from_size_align(bytes, 8).unwrap();
                    let start = heap.alloc(layout, hint.filter(|_| i % 2 == 0)).unwrap();
                    hint = Some(start);
                    // SAFETY: fresh from the heap with this layout.
                    unsafe { Object::adopt(start, layout, round + i) }
                })
                .collect();
            // Every other one is left to the other thread, which frees it while this one goes on.
            let (even, odd): (Vec<_>, Vec<_>) =
                (batch.into_iter().enumerate()).partition(|(i, _)| (i + round) % 2 == 0);
            sender
                .send(even.into_iter().map(|(_, object)| object).collect())
                .unwrap();
            kept.extend(odd.into_iter().map(|(_, object)| object));
            if round % 10 == 9 {
                for object in kept.drain(..) {
                    let (start, layout) = object.release();
                    // SAFETY: allocated in this heap with this layout, and given up here.
                    unsafe { heap.dealloc(start, layout) };
                }
                heap.check().unwrap();
            }
        }
        drop(sender);
    });
    heap.check().unwrap();
}

#[test]
fn heaps_come_and_go_on_many_threads_at_once() {
    let (sender, receiver) = mpsc::channel::<Heap>();
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (sender, receiver) = (sender.clone(), &receiver);
            scope.spawn(move || {
                for round in 0..times(300) {
                    // Its own, or one that another thread has begun.
                    let heap = match receiver.lock().unwrap().try_recv() {
                        Ok(heap) => heap,
                        Err(_) => Heap::new().unwrap(),
                    };
                    for i in 0..50 {
                        let layout = Layout::from_size_align(1 + (i * round) % 500, 8).unwrap();
                        let hint = (i % 2 == thread % 2).then(NonNull::dangling);
                        let start = heap.alloc_zeroed(layout, hint).unwrap();
                        // SAFETY: fresh from the heap with this layout, which it goes with.
                        let object = unsafe { Object::adopt(start, layout, i) };
                        object.release();
                    }
                    heap.check().unwrap();
                    if round % 3 == 0 {
                        sender.send(heap).unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn a_heap_has_its_own_policy_and_counts_its_own_hints() {
    let layout = Layout::new::<[u64; 8]>();
    let small = Layout::new::<[u64; 4]>();
    for (policy, expected) in [
        (Policy::Closest, 5),
        (Policy::FirstFit, 2),
        (Policy::NewBlock, 8),
    ] {
        let before = ccmalloc::placement().hinted();
        let heap = Heap::with_policy(policy).unwrap();
        assert_eq!(heap.placement(), Default::default());
        // Blocks 0..8 of a fresh page are full, but half of block 2 and half of block 5 are free.
        let opening = heap.alloc(layout, Some(NonNull::dangling())).unwrap();
        let page = opening.addr().get();
        assert_eq!(page % 4096, 0, "the first opening of a fresh page");
        let mut blocks = vec![opening];
        blocks.extend((1..8).map(|_| heap.alloc(layout, Some(opening)).unwrap()));
        blocks.sort();
        for block in [2, 5] {
            // SAFETY: allocated just above with this layout.
            let half = unsafe { heap.realloc(blocks[block], layout, small, None) };
            assert_eq!(half, Some(blocks[block]));
        }
        let placed = heap.alloc(small, Some(blocks[4])).unwrap();
        assert_eq!((placed.addr().get() - page) / 64, expected, "{policy:?}");
        let counted = heap.placement().hinted();
        assert!(counted >= 9, "{counted}");
        drop(heap);
        assert!(
            ccmalloc::placement().hinted() >= before + counted,
            "counts stay when a heap goes"
        );
    }
}

#[test]
fn objects_without_bytes_have_no_memory() {
    let heap = Heap::new().unwrap();
    for align in [1, 8, 4096, 4 << 20] {
        let empty = Layout::from_size_align(0, align).unwrap();
        let some = Layout::from_size_align(100, align).unwrap();
        let before = heap.stats();
        for object in [heap.alloc(empty, None), heap.alloc_zeroed(empty, None)] {
            assert_eq!(object.unwrap().addr().get() % align, 0);
        }
        let object = heap.alloc(empty, None).unwrap();
        assert_eq!(heap.stats(), before);
        // SAFETY: allocated above with these layouts, one after the other.
        unsafe {
            heap.dealloc(object, empty);
            let object = heap.alloc(empty, None).unwrap();
            let object = heap.realloc(object, empty, some, None).unwrap();
            object.write_bytes(1, 100);
            let object = heap.realloc(object, some, empty, None).unwrap();
            heap.dealloc(object, empty);
            let object = CcMalloc.allocate_near(empty, None).unwrap();
            CcMalloc.free(object.cast(), empty);
        }
    }
    heap.check().unwrap();
    assert_eq!(heap.stats().large_bytes, 0);
}

/// Panics when it is dropped, if so told.
#[cfg(feature = "allocator-api2")]
struct Grenade(bool);

#[cfg(feature = "allocator-api2")]
impl Drop for Grenade {
    fn drop(&mut self) {
        assert!(!self.0, "as told");
    }
}

#[cfg(feature = "allocator-api2")]
#[test]
fn a_heap_survives_panics_of_what_lives_in_it() {
    use allocator_api2::{boxed::Box, vec::Vec};
    use std::panic::catch_unwind;

    let mut heap = Heap::new().unwrap();
    for round in 0..times(100) {
        // No `AssertUnwindSafe`: a reference to a heap may cross.
        let caught = catch_unwind(|| {
            let mut grenades = Vec::new_in(&heap);
            grenades.extend((0..50).map(|i| Box::new_in(Grenade(i == round % 50), heap.near(&i))));
            let other = Box::new_in([round; 1000], &heap);
            drop(grenades);
            unreachable!("{other:?}");
        });
        let message = caught.unwrap_err();
        assert_eq!(message.downcast_ref::<&str>(), Some(&"as told"));
        heap.check().unwrap();
        if round % 10 == 9 {
            // Whatever the panic has left behind goes.
            heap.clear();
            assert_eq!(heap.stats().chunk_bytes, 0);
        }
    }
}

thread_local! {
    static LATE: RefCell<Option<(Heap, Vec<Object>)>> = const { RefCell::new(None) };
}

#[test]
fn heaps_die_with_thread_locals_and_after_their_threads() {
    if !crate::alone("heaps::heaps_die_with_thread_locals_and_after_their_threads") {
        return;
    }
    let before = stats().chunk_bytes;
    let layout = Layout::new::<[u64; 5]>();
    let some = move |heap: &Heap| -> Vec<Object> {
        (0..times(2000))
            // SAFETY: fresh from the heap with this layout.
            .map(|i| unsafe { Object::adopt(heap.alloc(layout, None).unwrap(), layout, i) })
            .collect()
    };
    for _ in 0..20 {
        let (heap, objects) = std::thread::spawn(move || {
            let heap = Heap::new().unwrap();
            let objects = some(&heap);
            (heap, objects)
        })
        .join()
        .unwrap();
        // The thread that made the heap has ended, and its own heap may be another thread's by now.
        std::thread::spawn(move || {
            heap.check().unwrap();
            let more = some(&heap);
            LATE.set(Some((heap, more)));
        })
        .join()
        .unwrap();
        // Gone with that thread's locals.
        drop(objects);
    }
    let after = stats().chunk_bytes;
    assert!(
        after <= before + (8 << 20),
        "{before} -> {after}: twenty heaps, 2 MiB each"
    );
    ccmalloc::check().unwrap();
}

const WHAT: &str = "CCMALLOC_TEST_HEAP_MISUSE";

/// Not a test of its own: does what [`WHAT`] names, in the child.
#[test]
fn child() {
    let Ok(what) = std::env::var(WHAT) else {
        return;
    };
    let heap = Heap::new().unwrap();
    let layout = Layout::new::<[u64; 3]>();
    let large = Layout::from_size_align(3 << 20, 8).unwrap();
    let (layout, hint) = match what.split(' ').next() {
        Some("plain") => (layout, None),
        Some("hinted") => (layout, Some(NonNull::dangling())),
        Some("large") => (large, None),
        _ => unreachable!("{what}"),
    };
    let object = heap.alloc(layout, hint).unwrap();
    let address = object.addr();
    // SAFETY: none: this is called twice, and the process is expected to abort.
    let elsewhere = move || unsafe { cc_dealloc(NonNull::without_provenance(address), layout) };
    // SAFETY: none: each of these breaks the contract, and the process is expected to abort.
    unsafe {
        match what.split_once(' ').unwrap().1 {
            "twice" => {
                heap.dealloc(object, layout);
                heap.dealloc(object, layout);
            }
            "twice elsewhere" => {
                std::thread::spawn(elsewhere).join().unwrap();
                std::thread::spawn(elsewhere).join().unwrap();
            }
            "elsewhere and here" => {
                std::thread::spawn(elsewhere).join().unwrap();
                heap.dealloc(object, layout);
                // What others have freed is seen when it is taken in.
                heap.check().unwrap();
            }
            "inside" => {
                let inside = NonNull::new(object.as_ptr().wrapping_add(4)).unwrap();
                heap.dealloc(inside, layout);
            }
            _ => unreachable!("{what}"),
        }
    }
    println!("survived {what}");
}

#[cfg_attr(miri, ignore = "starts processes")]
#[test]
fn misuse_of_a_heap_aborts_with_one_line() {
    for object in ["plain", "hinted", "large"] {
        for misuse in ["twice", "twice elsewhere", "elsewhere and here", "inside"] {
            let what = format!("{object} {misuse}");
            crate::aborts_with_one_line("heaps::child", WHAT, &what);
        }
    }
}
