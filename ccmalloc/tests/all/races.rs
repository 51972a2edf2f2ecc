//! Threads that meet in the allocator alone, for the thread sanitizer and Miri (`.ci/run`).
//!
//! The thread sanitizer runs with a standard library that is not instrumented, so it does not see
//! what channels and mutexes order. These tests hand objects over through atomics of their own. A
//! thread that must wait without learning of what was done before waits by relaxed loads.

use std::alloc::Layout;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread;

use ccmalloc::{Heap, cc_alloc, cc_dealloc};

use crate::times;

/// Waits until `counter` has reached `value`. Orders nothing.
fn wait_for(counter: &AtomicUsize, value: usize) {
    while counter.load(Ordering::Relaxed) < value {
        thread::yield_now();
    }
}

/// Frees what another thread has put into `place`, if there is something.
fn free_from(place: &AtomicPtr<u8>, layout: Layout) {
    if let Some(object) = NonNull::new(place.swap(ptr::null_mut(), Ordering::AcqRel)) {
        // SAFETY: readable and of this layout: objects are put there whole, by `put`.
        assert_eq!(unsafe { object.read() }, 7);
        // SAFETY: of this layout, and the swap has taken it from everybody else.
        unsafe { cc_dealloc(object, layout) };
    }
}

/// Puts an object into `place`, and frees the one that was there.
fn put(place: &AtomicPtr<u8>, object: NonNull<u8>, layout: Layout) {
    // SAFETY: a fresh object, of at least a byte.
    unsafe { object.write(7) };
    if let Some(before) = NonNull::new(place.swap(object.as_ptr(), Ordering::AcqRel)) {
        // SAFETY: of this layout, and the swap has taken it from everybody else.
        unsafe { cc_dealloc(before, layout) };
    }
}

#[test]
fn a_chunk_gets_its_first_pages_while_another_thread_frees_in_it() {
    let layout = Layout::new::<[u64; 3]>();
    // Kept until the end: a heap that has had pages keeps their metadata for its later chunks.
    let mut heaps = Vec::new();
    for _ in 0..times(100) {
        let heap = Heap::new().unwrap();
        let place: Arc<AtomicPtr<u8>> = Arc::default();
        let hinted = Arc::new(AtomicUsize::new(0));
        let other = thread::spawn({
            let (place, hinted) = (Arc::clone(&place), Arc::clone(&hinted));
            move || {
                while place.load(Ordering::Acquire).is_null() {
                    thread::yield_now();
                }
                wait_for(&hinted, 1);
                free_from(&place, layout);
            }
        });
        put(&place, heap.alloc(layout, None).unwrap(), layout);
        // The first pages of the heap's only chunk. Nothing tells the other thread of them.
        let hint = Some(NonNull::dangling());
        assert!(heap.alloc(layout, hint).is_some());
        hinted.store(1, Ordering::Relaxed);
        other.join().unwrap();
        heap.check().unwrap();
        heaps.push(heap);
    }
}

/// Sizes, and whether they are hinted: objects in slabs, in co-location pages (less than a block,
/// and more), in spans, and in mappings of their own.
const KINDS: [(usize, bool); 6] = [
    (40, false),
    (24, true),
    (200, true),
    (5000, false),
    (40_000, false),
    (3 << 20, false),
];

#[test]
#[cfg_attr(miri, ignore = "takes more than five minutes there")]
fn threads_free_what_others_allocate() {
    const THREADS: usize = 3;
    const PLACES: usize = 96;
    let places: Arc<Vec<AtomicPtr<u8>>> =
        Arc::new((0..PLACES).map(|_| AtomicPtr::default()).collect());
    let layout = |place: usize| Layout::from_size_align(KINDS[place % KINDS.len()].0, 8).unwrap();
    // Each generation adopts the heaps of the one before, in which objects are left.
    for generation in 0..3 {
        let workers: Vec<_> = (0..THREADS)
            .map(|number| {
                let places = Arc::clone(&places);
                thread::spawn(move || {
                    let mut state = generation * THREADS + number + 1;
                    for step in 0..times(4000) {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        let place = (state >> 33) % PLACES;
                        let (_, hinted) = KINDS[place % KINDS.len()];
                        // Any address is a hint, also that of an object that another thread frees.
                        let near = places[(place + KINDS.len()) % PLACES].load(Ordering::Relaxed);
                        let hint = NonNull::new(near).or(Some(NonNull::dangling()));
                        if step % 3 == 0 {
                            free_from(&places[place], layout(place));
                        } else if let Some(object) =
                            cc_alloc(layout(place), hint.filter(|_| hinted))
                        {
                            put(&places[place], object, layout(place));
                        }
                    }
                    ccmalloc::check().unwrap();
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
    }
    for (number, place) in places.iter().enumerate() {
        free_from(place, layout(number));
    }
    ccmalloc::check().unwrap();
}

#[test]
fn a_heap_changes_hands() {
    let layout = Layout::new::<[u64; 3]>();
    for _ in 0..times(100) {
        let turn = Arc::new(AtomicUsize::new(0));
        let heirs: Vec<_> = (0..2)
            .map(|_| {
                let turn = Arc::clone(&turn);
                thread::spawn(move || {
                    // Its first allocation. Nothing tells it that another thread has ended.
                    wait_for(&turn, 1);
                    let objects: Vec<_> = (0..50)
                        .map(|i| {
                            cc_alloc(layout, Some(NonNull::dangling()).filter(|_| i % 2 == 0))
                                .unwrap()
                        })
                        .collect();
                    ccmalloc::check().unwrap();
                    for object in objects {
                        // SAFETY: allocated above with this layout.
                        unsafe { cc_dealloc(object, layout) };
                    }
                })
            })
            .collect();
        let left = thread::spawn(move || {
            let hint = Some(NonNull::dangling());
            let left = [
                cc_alloc(layout, None).unwrap(),
                cc_alloc(layout, hint).unwrap(),
            ];
            left.map(|object| object.as_ptr().expose_provenance())
        });
        let left = left.join().unwrap();
        turn.store(1, Ordering::Relaxed);
        for address in left {
            let object = NonNull::new(ptr::with_exposed_provenance_mut(address)).unwrap();
            // SAFETY: allocated with this layout by a thread that has left it to this one.
            unsafe { cc_dealloc(object, layout) };
        }
        for heir in heirs {
            heir.join().unwrap();
        }
    }
}
