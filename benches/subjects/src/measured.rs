//! Prints what an allocation takes more within `ccscope::measure` than outside, with its free, in
//! nanoseconds: the median of rounds, the two taking turns.

use std::alloc::System;
use std::hint::black_box;

use ccscope::{Profiled, measure};

#[global_allocator]
static GLOBAL: Profiled<System> = Profiled::new(System);

/// Allocations of a pass.
const COUNT: u32 = 1_000_000;

/// Nanoseconds of the thread's processor time so far.
fn processor_ns() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds of an allocation with its free.
fn pass() -> f64 {
    let started = processor_ns();
    for number in 0..COUNT {
        drop(black_box(Box::new(number)));
    }
    (processor_ns() - started) / f64::from(COUNT)
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(15, |it| {
        it.parse().expect("the argument is a number of rounds")
    });
    let mut differences: Vec<f64> = (0..rounds)
        .map(|_| {
            let outside = pass();
            let heap = measure(pass);
            assert_eq!(heap.allocations, u64::from(COUNT));
            heap.value - outside
        })
        .collect();
    differences.sort_by(f64::total_cmp);
    println!("{}", differences[differences.len() / 2]);
}
