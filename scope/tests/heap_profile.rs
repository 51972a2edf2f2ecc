//! A program that samples its own heap, as users write it. All tests share the samples: each looks
//! at functions of its own.

use std::alloc::System;
use std::hint::black_box;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ccscope::{Profiled, heap_profile, measure, sample_heap};

mod pprof;

use pprof::schema::File;

#[global_allocator]
static GLOBAL: Profiled<System> = Profiled::new(System);

const SAMPLE: usize = 64 << 10;
const LARGE: usize = 1 << 20;

fn now() -> File {
    pprof::open(&heap_profile().unwrap())
}

/// Sums over stacks with a function of this name: allocated chunks and bytes, live ones.
fn sums_of(file: &File, function: &str) -> [i64; 4] {
    sums_if(file, |functions| {
        functions.iter().any(|it| it.ends_with(function))
    })
}

fn sums_if(file: &File, is_counted: impl Fn(&[&str]) -> bool) -> [i64; 4] {
    let mut sums = [0; 4];
    for sample in &file.sample {
        if is_counted(&pprof::functions(file, sample)) {
            let values = sample.value.iter();
            sums.iter_mut().zip(values).for_each(|(sum, it)| *sum += it);
        }
    }
    sums
}

fn begin() {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| sample_heap(SAMPLE));
}

/// This many chunks and bytes.
fn of(chunks: usize, bytes: usize) -> [i64; 2] {
    [chunks, bytes].map(|it| i64::try_from(it).unwrap())
}

/// A function whose name is asked for calls it within `black_box`, or its frame may be gone.
fn blocks<const N: usize>() -> [Vec<u8>; N] {
    std::array::from_fn(|_| black_box(Vec::with_capacity(LARGE)))
}

#[test]
fn large_chunks_are_exact_and_those_that_are_freed_disappear() {
    #[inline(never)]
    fn makes_large_chunks() -> [Vec<u8>; 5] {
        black_box(blocks())
    }
    begin();
    let [_, _, kept @ ..] = makes_large_chunks();
    let file = now();
    let sums = sums_of(&file, "makes_large_chunks");
    assert_eq!(
        sums.as_chunks().0,
        [of(5, 5 * LARGE), of(3, 3 * LARGE)],
        "{sums:?}"
    );
    drop(kept);
    assert_eq!(sums_of(&now(), "makes_large_chunks")[2..], [0, 0]);
    // Neither frames of the allocator, nor what profiles allocate.
    let is_own = |it: &&str| it.starts_with("ccscope::") || it.contains("__rust_alloc");
    for sample in &file.sample {
        let functions = pprof::functions(&file, sample);
        assert!(!functions.iter().any(is_own), "{functions:?}");
    }
    let comment = &file.string_table[usize::try_from(file.comment[1]).unwrap()];
    assert!(comment.contains("chunks under 65536 bytes"), "{comment}");
}

#[test]
fn small_chunks_are_right_within_their_intervals() {
    const RUNS: usize = 20;
    const CHUNKS: usize = 50_000;
    /// A run is known by how often this is in its stack.
    #[inline(never)]
    fn makes_small_chunks(depth: usize, kept: &mut Vec<Vec<u8>>) {
        if depth > 0 {
            makes_small_chunks(depth - 1, kept);
            black_box(&kept);
        } else {
            (0..CHUNKS).for_each(|_| kept.push(black_box(Vec::with_capacity(100))));
        }
    }
    begin();
    let runs: Vec<_> = (0..RUNS)
        .map(|run| {
            let mut kept = Vec::with_capacity(CHUNKS);
            makes_small_chunks(run, &mut kept);
            kept
        })
        .collect();
    let file = now();
    let is = |it: &&&str| it.ends_with("makes_small_chunks");
    let sums = |run: usize| sums_if(&file, |it| it.iter().filter(is).count() == run + 1);
    let truth = (CHUNKS * 100) as f64;
    let deviation = (SAMPLE as f64 * truth).sqrt();
    let errors: Vec<f64> = (0..RUNS)
        .map(|run| {
            let [chunks, bytes, live_chunks, live_bytes] = sums(run);
            assert_eq!([live_chunks, live_bytes], [chunks, bytes]);
            assert_eq!(chunks * 100, bytes);
            (bytes as f64 - truth) / deviation
        })
        .collect();
    let within = errors.iter().filter(|error| error.abs() < 1.96).count();
    assert!(within >= 14, "{errors:?}");
    let mean = errors.iter().sum::<f64>() / (RUNS as f64).sqrt();
    assert!(mean.abs() < 4.5, "{errors:?}");
    drop(runs);
    assert_eq!(sums_of(&now(), "makes_small_chunks")[2..], [0, 0]);
}

#[test]
fn a_chunk_that_is_resized_is_freed_and_allocated_anew() {
    #[inline(never)]
    fn makes_resized_chunks() -> [Vec<u8>; 2] {
        let mut list = [LARGE, 2 * LARGE].map(Vec::with_capacity);
        list[0].reserve_exact(2 * LARGE);
        list[1].push(1);
        list[1].shrink_to_fit();
        black_box(list)
    }
    begin();
    let kept = makes_resized_chunks();
    let sums = sums_of(&now(), "makes_resized_chunks");
    // The byte that is left may be recorded.
    assert_eq!(sums[0] - sums[2], 2, "{sums:?}");
    let small = [sums[2] - 1, sums[3] - i64::try_from(2 * LARGE).unwrap()];
    assert!(
        small == [0, 0] || small == of(SAMPLE, SAMPLE),
        "{small:?} {sums:?}"
    );
    drop(kept);
    assert_eq!(sums_of(&now(), "makes_resized_chunks")[2..], [0, 0]);
}

#[test]
fn threads_allocate_and_take_profiles_at_once() {
    #[inline(never)]
    fn makes_chunks_of_threads(rounds: usize) -> [Vec<u8>; 2] {
        (0..rounds).for_each(|_| drop(blocks::<1>()));
        // Freed by another thread.
        black_box(blocks())
    }
    begin();
    let work = || {
        let first = makes_chunks_of_threads(500);
        let sums = sums_of(&now(), "makes_chunks_of_threads");
        assert!(sums[2] >= 2, "{sums:?}");
        [first, makes_chunks_of_threads(500)]
    };
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(work)).collect();
    let kept: Vec<_> = (threads.into_iter())
        .map(|thread| thread.join().unwrap())
        .collect();
    let sums = sums_of(&now(), "makes_chunks_of_threads");
    assert_eq!(
        sums.as_chunks().0,
        [of(4016, 4016 * LARGE), of(16, 16 * LARGE)]
    );
    drop(kept);
    assert_eq!(sums_of(&now(), "makes_chunks_of_threads")[2..], [0, 0]);
}

/// Runs `work` in a child of `fork`, and says whether it has ended with `true`.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    let mut status = 0;
    // SAFETY: the child runs `work` and ends; the alarm ends it if it hangs.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(300);
            libc::_exit(i32::from(!work()));
        }
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
    }
    status == 0
}

#[test]
fn children_of_fork_go_on() {
    #[inline(never)]
    fn makes_chunks_before() -> [Vec<u8>; 3] {
        black_box(blocks())
    }
    #[inline(never)]
    fn makes_chunks_in_the_child() -> [Vec<u8>; 2] {
        black_box(blocks())
    }
    begin();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    drop(blocks::<3>());
                }
            });
        }
        let before = makes_chunks_before();
        let right = (0..20).all(|round| {
            in_child(|| {
                let kept = makes_chunks_in_the_child();
                drop(blocks::<100>());
                let live = |function| sums_of(&now(), function)[2];
                round > 0
                    || live("makes_chunks_in_the_child") == 2
                        && live("makes_chunks_before") == 3
                        && {
                            drop(kept);
                            live("makes_chunks_in_the_child") == 0
                        }
            })
        });
        is_done.store(true, Ordering::Relaxed);
        assert!(right);
        drop(before);
    });
}

#[test]
fn it_ends_and_begins_anew() {
    #[inline(never)]
    fn makes_chunks_between() -> [Vec<u8>; 1] {
        black_box(blocks())
    }
    begin();
    let right = in_child(|| {
        sample_heap(0);
        let error = heap_profile().unwrap_err();
        let first = makes_chunks_between();
        sample_heap(LARGE);
        let second = makes_chunks_between();
        drop(first);
        let sums = sums_of(&now(), "makes_chunks_between");
        drop(second);
        error.to_string().contains("is not sampled") && sums.as_chunks().0 == [of(1, LARGE); 2]
    });
    assert!(right);
}

#[test]
fn measures_do_not_count_what_sampling_allocates() {
    begin();
    let heap = measure(|| (0..1000).for_each(|_| drop(blocks::<1>())));
    assert_eq!((heap.allocations, heap.frees), (1000, 1000));
    assert_eq!((heap.reallocations, heap.live), (0, 0));
}
