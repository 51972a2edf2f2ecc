//! First-class heaps: their memory and threads.

use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::{Mutex, mpsc};

use ccmalloc::{CcMalloc, Heap, HintAllocator, cc_dealloc, cc_realloc, stats};
use quickcheck::quickcheck;

use crate::operation::{Op, World};
use crate::shadow::{Home, Object};
use crate::times;

/// A world that changes threads.
struct Moved(World);

// SAFETY: it has no region, and addresses that were freed are only hints; the rest is `Send`.
unsafe impl Send for Moved {}

quickcheck! {
    fn heaps_outlive_the_threads_that_made_them(programs: Vec<Vec<Op>>) -> bool {
        let mut world = Moved(World::default());
        for program in programs {
            // Each program on a thread of its own, which ends before the next begins.
            world = crate::in_thread(move || {
                let mut moved = world;
                moved.0.run(&Op::Make(0));
                program.iter().for_each(|op| moved.0.run(op));
                moved.0.run(&Op::Settle);
                moved
            });
        }
        crate::in_thread(move || {
            let moved = world;
            moved.0.finish();
        });
        true
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
    // Without what is kept for a while, of which a slow machine keeps less.
    let held = || {
        ccmalloc::purge();
        (crate::process::limits::mapped_bytes(), stats().heaps)
    };
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
            crate::in_thread(move || drop(heaps));
        }
        if round == 20 {
            first = held();
        }
    }
    let last = held();
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
    crate::in_thread(free);
    let object = heap.alloc(mebibytes(3), None).unwrap();
    assert!(heap.stats().large_bytes <= 4 << 20);
    // SAFETY: the heap, which lives on, allocated the object with this layout; the result is the
    // thread's.
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
        crate::in_thread(move || {
            for object in objects {
                // SAFETY: none but that ccmalloc takes its objects from any thread; the heap lives
                // on.
                unsafe { cc_dealloc(NonNull::without_provenance(object), layout) };
            }
        });
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
                    unsafe { Object::adopt(start, layout, Home::Heap(0), round + i) }
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
                        let object = unsafe { Object::adopt(start, layout, Home::Heap(0), i) };
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
            .map(|i| unsafe {
                Object::adopt(heap.alloc(layout, None).unwrap(), layout, Home::Heap(0), i)
            })
            .collect()
    };
    for _ in 0..20 {
        let (heap, objects) = crate::in_thread(move || {
            let heap = Heap::new().unwrap();
            let objects = some(&heap);
            (heap, objects)
        });
        // The thread that made the heap has ended, and its own heap may be another thread's by now.
        crate::in_thread(move || {
            heap.check().unwrap();
            let more = some(&heap);
            LATE.set(Some((heap, more)));
        });
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
