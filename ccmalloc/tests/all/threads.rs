//! Threads: remote frees, memory of ended threads.

use std::alloc::Layout;
use std::sync::{Arc, Barrier, mpsc};

use ccmalloc::{cc_alloc, check, stats};

use crate::shadow::{Home, Object};
use crate::times;

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
        let (even, odd): (Vec<_>, Vec<_>) =
            (0..).zip(objects).partition(|(number, _)| number % 2 == 0);
        let workers = [even, odd].map(|half| {
            let barrier = Arc::clone(&barrier);
            std::thread::spawn(move || {
                barrier.wait();
                half.into_iter()
                    .for_each(|(_, object): (i32, Object)| object.free());
            })
        });
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
    let block = |object: &u64| (&raw const *object).addr() / 64;
    for (our, their) in ours.iter().zip(&theirs) {
        assert_eq!(**our, **their + 1);
        assert_ne!(
            block(our),
            block(their),
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
fn threads_take_over_the_memory_of_ended_ones() {
    if !crate::alone("threads::threads_take_over_the_memory_of_ended_ones") {
        return;
    }
    let survivors: Vec<Vec<u64>> = (0..4)
        .map(|i| crate::in_thread(move || vec![i; 1000]))
        .collect();
    let before = stats().chunk_bytes;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..times(300) {
                    crate::in_thread(|| {
                        let objects: Vec<Box<[u64; 3]>> =
                            (0..2000).map(|i| Box::new([i; 3])).collect();
                        assert!(crate::are_numbered(&objects));
                    });
                }
            });
        }
    });
    // Four threads that start others, and these; twelve hundred in all, which would take 2 GiB.
    let after = stats();
    assert!(
        after.heaps < 200 && after.chunk_bytes < before + (100 << 20),
        "{before} -> {after:?}"
    );
    for (i, survivor) in (0..).zip(&survivors) {
        assert!(survivor.iter().all(|&value| value == i));
    }
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
