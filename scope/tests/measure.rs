//! Heap budgets in tests, as users write them: tests run in parallel.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::thread;

use ccscope::{Heap, Profiled, measure, measure_with_threads};

#[global_allocator]
static GLOBAL: Profiled<System> = Profiled::new(System);

ccscope::count_threads!();

/// Allocates and frees `count` boxes of 8 bytes, one at a time.
fn boxes(count: u64) {
    for number in 0..count {
        drop(black_box(Box::new(number)));
    }
}

/// Allocations, frees, reallocations, bytes, peak and live bytes.
fn numbers<T>(heap: &Heap<T>) -> (u64, u64, u64, u64, u64, i64) {
    (
        heap.allocations,
        heap.frees,
        heap.reallocations,
        heap.bytes,
        heap.peak,
        heap.live,
    )
}

#[test]
fn what_a_closure_allocates_is_counted() {
    let heap = measure(|| {
        let mut list: Vec<u64> = black_box(Vec::with_capacity(4));
        list.extend([1, 2, 3, 4]);
        list.reserve_exact(4);
        let zeros = black_box(vec![0_u8; 100]);
        list.len() + zeros.len()
    });
    assert_eq!(numbers(&heap), (2, 2, 1, 32 + 32 + 100, 164, 0));
    assert_eq!(heap.value, 104);
    assert!(heap.allocations <= 3 && heap.peak <= 4096);
    assert_eq!(numbers(&measure(|| ())), (0, 0, 0, 0, 0, 0));
    assert_eq!(measure(|| boxes(1000)).allocations, 1000);
}

#[test]
fn what_stays_alive_is_the_value_and_what_leaks() {
    let heap = measure(|| black_box(vec![1_u8; 50]));
    assert_eq!(numbers(&heap), (1, 0, 0, 50, 50, 50));
    let value = heap.value;
    assert_eq!(value.len(), 50);
    let heap = measure(|| {
        Box::leak(black_box(Box::new([1_u8; 70])));
    });
    assert_eq!(heap.live, 70);
}

#[test]
fn what_was_there_before_may_be_freed_and_resized() {
    let [before, mut grown] = [vec![1_u8; 1000], vec![1_u8; 100]].map(black_box);
    let heap = measure(|| {
        drop(before);
        boxes(1);
        grown.reserve_exact(50);
    });
    assert_eq!(numbers(&heap), (1, 2, 1, 58, 0, 50 - 1000));
    let heap = measure(|| grown.shrink_to(0));
    assert_eq!(numbers(&heap), (0, 0, 1, 0, 0, -50));
}

#[test]
fn nested_measures_count_for_those_around_them() {
    let outer = measure(|| {
        boxes(1);
        let kept = black_box(vec![0_u8; 24]);
        let inner = measure(|| boxes(10));
        assert_eq!(numbers(&inner), (10, 10, 0, 80, 8, 0));
        boxes(1);
        kept
    });
    assert_eq!(numbers(&outer), (13, 12, 0, 120, 32, 24));
}

#[test]
fn a_panic_ends_the_measure() {
    let outer = measure(|| {
        let caught = catch_unwind(|| measure(|| boxes(5 / black_box(0))));
        assert!(caught.is_err());
    });
    let after = measure(|| boxes(3));
    assert!(outer.allocations > 0);
    assert_eq!(numbers(&after), (3, 3, 0, 24, 8, 0));
}

#[test]
fn a_panic_in_a_measure_with_threads_leaves_no_count() {
    // Without the message, for which the test harness allocates.
    let panics = || resume_unwind(Box::new(()));
    let plain = measure(|| drop(catch_unwind(panics)));
    let nested = measure(|| drop(catch_unwind(|| measure_with_threads(panics))));
    assert_eq!(numbers(&nested), numbers(&plain));
    assert_eq!(nested.live, 0);
}

#[test]
fn an_allocator_that_is_wrapped_twice_counts_once() {
    let twice: Profiled<Profiled<System>> = Profiled::new(Profiled::new(System));
    let layout = Layout::array::<u8>(100).unwrap();
    let larger = Layout::array::<u8>(150).unwrap();
    let heap = measure(|| {
        // SAFETY: the layouts are not empty, and the block is freed once, by the allocator that it
        // is of, with the layout that it has then.
        unsafe {
            let block = twice.alloc(layout);
            assert!(!block.is_null());
            let block = twice.realloc(block, layout, larger.size());
            assert!(!block.is_null());
            twice.dealloc(block, larger);
            let zeros = twice.alloc_zeroed(layout);
            assert!(!zeros.is_null());
            twice.dealloc(zeros, layout);
        }
    });
    assert_eq!(numbers(&heap), (2, 2, 1, 250, 150, 0));
}

#[test]
fn other_threads_are_not_counted() {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            barrier.wait();
            let heap = measure(|| boxes(5000));
            barrier.wait();
            numbers(&heap)
        });
        barrier.wait();
        let heap = measure(|| {
            boxes(10);
            barrier.wait();
        });
        assert_eq!(numbers(&heap), (10, 10, 0, 80, 8, 0));
        assert_eq!(other.join().unwrap(), (5000, 5000, 0, 40_000, 8, 0));
    });
    let heap = measure(|| thread::spawn(|| boxes(100_000)).join().unwrap());
    assert!(heap.allocations < 100, "{}", heap.allocations);
}

#[test]
fn spawned_threads_are_counted_on_request() {
    let spawn = || thread::spawn(|| thread::spawn(|| boxes(1000)).join().unwrap());
    let none = measure_with_threads(|| thread::spawn(|| ()).join().unwrap());
    let heap = measure_with_threads(|| {
        let inner = measure_with_threads(|| spawn().join().unwrap());
        let apart = measure(|| spawn().join().unwrap());
        (inner.allocations, apart.allocations)
    });
    let (inner, apart) = heap.value;
    // A thread needs some allocations of its own.
    let of_spawn = none.allocations..none.allocations + 20;
    assert!(of_spawn.contains(&(inner - 1000 - none.allocations)));
    assert!(apart < 50, "{apart}");
    assert!(heap.allocations >= 2000 + 2 * none.allocations);
    assert_eq!(none.live, 0);
    assert_eq!(heap.live, 0);
    assert_eq!(heap.allocations, heap.frees);
}

#[test]
fn a_thread_may_outlive_the_measure() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let heap = measure_with_threads(|| {
        thread::spawn(move || {
            receiver.recv().unwrap();
            boxes(10);
            measure_with_threads(|| thread::spawn(|| boxes(20)).join().unwrap()).allocations
        })
    });
    assert!(heap.allocations < 50);
    sender.send(()).unwrap();
    assert!(heap.value.join().unwrap() >= 20);
}

#[test]
fn destructors_of_thread_local_variables_may_measure() {
    struct AtEnd(std::sync::mpsc::Sender<u64>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0.send(measure(|| boxes(7)).allocations).unwrap();
        }
    }
    thread_local! {
        static LAST: std::cell::RefCell<Option<AtEnd>> = const { std::cell::RefCell::new(None) };
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || LAST.set(Some(AtEnd(sender))));
    thread.join().unwrap();
    assert_eq!(receiver.recv(), Ok(7));
}

#[test]
fn a_failure_unwinds_as_usual() {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let heap = measure(|| boxes(4));
        assert!(heap.allocations <= 3, "too many: {}", heap.allocations);
    }));
    let text = caught.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(*text, "too many: 4");
}
