//! Threads: frees from elsewhere, memory of ended threads, allocation in thread-local destructors.

use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::{Arc, Barrier, mpsc};

use ccmalloc::{cc_alloc, check, stats};

use crate::shadow::{Home, Object};
use crate::times;

#[test]
fn producers_and_consumers() {
    let (sender, receiver) = mpsc::sync_channel::<Vec<Object>>(4);
    std::thread::scope(|scope| {
        for producer in 0..2 {
            let sender = sender.clone();
            scope.spawn(move || {
                for round in 0..times(200) {
                    let mut previous: Option<NonNull<u8>> = None;
                    let batch = (0..100)
                        .map(|i| {
                            let layout =
                                Layout::from_size_align(8 + (i * 7 + round) % 200, 8).unwrap();
                            // Every other object is hinted at the one before it: co-location pages
                            // and slabs alike.
                            let start = cc_alloc(layout, previous.filter(|_| i % 2 == 0)).unwrap();
                            previous = Some(start);
                            // SAFETY: fresh from ccmalloc with this layout.
                            unsafe {
                                Object::adopt(start, layout, Home::Thread, producer * 100 + i)
                            }
                        })
                        .collect();
                    sender.send(batch).unwrap();
                }
                check().unwrap();
            });
        }
        drop(sender);
        for batch in receiver {
            for object in batch {
                object.free();
            }
        }
    });
    check().unwrap();
}

#[test]
fn two_threads_free_into_one_slab_at_once() {
    let layout = Layout::new::<[u64; 3]>();
    for _ in 0..times(20) {
        let objects: Vec<Object> = (0..times(4096))
            // SAFETY: fresh from ccmalloc with this layout.
            .map(|i| unsafe {
                Object::adopt(cc_alloc(layout, None).unwrap(), layout, Home::Thread, i)
            })
            .collect();
        let barrier = Arc::new(Barrier::new(2));
        let (mut even, mut odd) = (Vec::new(), Vec::new());
        for (i, object) in objects.into_iter().enumerate() {
            if i % 2 == 0 {
                even.push(object);
            } else {
                odd.push(object);
            }
        }
        let workers: Vec<_> = [even, odd]
            .into_iter()
            .map(|half| {
                let barrier = Arc::clone(&barrier);
                std::thread::spawn(move || {
                    barrier.wait();
                    half.into_iter().for_each(Object::free);
                })
            })
            .collect();
        for worker in workers {
            // Meanwhile the owner allocates from the same slabs.
            let own: Vec<Box<[u64; 3]>> =
                (0..times(1000)).map(|i| Box::new([i as u64; 3])).collect();
            assert!(crate::are_numbered(&own));
            worker.join().unwrap();
        }
    }
    check().unwrap();
}

#[test]
fn memory_of_ended_threads_is_used_again() {
    if !crate::alone("threads::memory_of_ended_threads_is_used_again") {
        return;
    }
    let survivors: Vec<Vec<u64>> = (0..4)
        .map(|i| crate::in_thread(move || vec![i; 1000]))
        .collect();
    let before = stats().chunk_bytes;
    for _ in 0..times(200) {
        crate::in_thread(|| {
            let objects: Vec<Box<u64>> = (0..2000).map(Box::new).collect();
            assert_eq!(
                objects.iter().map(|object| **object).sum::<u64>(),
                1999 * 1000
            );
        });
    }
    // 200 heaps of their own would take 400 MiB.
    assert!(
        stats().chunk_bytes < before + (100 << 20),
        "{before} -> {}",
        stats().chunk_bytes
    );
    for (i, survivor) in survivors.iter().enumerate() {
        assert!(survivor.iter().all(|&value| value == i as u64));
    }
}

struct Chatty(Vec<String>);

impl Drop for Chatty {
    fn drop(&mut self) {
        // Allocates and frees while the thread's locals are being destroyed.
        let words: Vec<String> = self.0.iter().map(|word| word.repeat(3)).collect();
        assert_eq!(words.len(), self.0.len());
        LATE.with(|late| late.borrow_mut().extend(words));
    }
}

thread_local! {
    static LATE: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static CHATTY: RefCell<Option<Chatty>> = const { RefCell::new(None) };
}

#[test]
fn destructors_of_thread_locals_may_allocate() {
    for _ in 0..times(20) {
        crate::in_thread(|| {
            LATE.with(|late| late.borrow_mut().push(String::from("first")));
            CHATTY.with(|chatty| {
                *chatty.borrow_mut() = Some(Chatty((0..50).map(|i| i.to_string()).collect()));
            });
        });
    }
}

#[test]
fn hints_of_other_threads_are_harmless() {
    let theirs: Vec<Box<u64>> = crate::in_thread(|| {
        let root = Box::new(0);
        (0..100)
            .map(|i| ccmalloc::near(&*root, || Box::new(i)))
            .collect()
    });
    let ours: Vec<Box<u64>> = theirs
        .iter()
        .map(|their| ccmalloc::near(&**their, || Box::new(**their + 1)))
        .collect();
    for (our, their) in ours.iter().zip(&theirs) {
        assert_eq!(**our, **their + 1);
        assert_ne!(
            (&raw const **our).addr() / 64,
            (&raw const **their).addr() / 64,
            "no false sharing with another thread"
        );
    }
}

/// Runs `make` in one thread and drops what it makes in another, with few objects alive at a time;
/// returns by how much the chunks grew.
fn stream_between_threads<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync) -> usize {
    let before = stats().chunk_bytes;
    let (sender, receiver) = mpsc::sync_channel(8);
    std::thread::scope(|scope| {
        let make = &make;
        scope.spawn(move || (0..count).for_each(|i| sender.send(make(i)).unwrap()));
        receiver.iter().for_each(drop);
    });
    stats().chunk_bytes.saturating_sub(before)
}

#[test]
fn what_other_threads_free_is_used_again() {
    if !crate::alone("threads::what_other_threads_free_is_used_again") {
        return;
    }
    // Each would take hundreds of megabytes if it were not.
    let spans = stream_between_threads(times(10_000), |i| vec![i; 12_500]);
    assert!(spans < 200 << 20, "{spans}");
    let hinted = stream_between_threads(times(1_000_000), |i| {
        ccmalloc::near(&i, || Box::new([i; 8]))
    });
    assert!(hinted < 60 << 20, "{hinted}");
}

#[test]
fn heaps_are_as_many_as_threads_at_a_time() {
    if !crate::alone("threads::heaps_are_as_many_as_threads_at_a_time") {
        return;
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..times(300) {
                    crate::in_thread(move || vec![i; 100]);
                }
            });
        }
    });
    // Four threads that start others, and these; twelve hundred in all.
    assert!(stats().heaps < 200, "{}", stats().heaps);
}

#[cfg_attr(miri, ignore = "counts megabytes")]
#[test]
fn memory_freed_after_its_thread_ended_goes_back() {
    if !crate::alone("threads::memory_freed_after_its_thread_ended_goes_back") {
        return;
    }
    let objects: Vec<Vec<Box<[u64; 8]>>> = (0..4)
        .map(|_| std::thread::spawn(|| (0..200_000).map(|i| Box::new([i; 8])).collect()))
        .map(|thread| thread.join().unwrap())
        .collect();
    let with_all = stats().chunk_bytes;
    drop(objects);
    // Enough to need a new chunk, which is when other heaps are looked through.
    let more: Vec<Box<[u64; 8]>> = (0..40_000).map(|i| Box::new([i; 8])).collect();
    assert_eq!(more[39_999][7], 39_999);
    let after = stats().chunk_bytes;
    assert!(after + (25 << 20) < with_all, "{with_all} -> {after}");
}
