//! What keeps an allocator out of production: how much memory is resident at the end of programs
//! that take large objects, sparse ones, many threads, or leave their memory to others.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::{Checksum, Outcome, Program, Scale, collect};
use crate::sys::resident_bytes;

pub(super) const PROGRAMS: &[Program] = &[
    Program::new("buffers_1mib", |scale| buffers(scale, 1 << 20)),
    Program::new("buffers_2mb", |scale| buffers(scale, 2_200_000)),
    Program::new("buffers_4mb", |scale| buffers(scale, 4_204_800)),
    Program::new("vectors", vectors),
    Program::new("sparse_zeros", sparse_zeros),
    Program::new("idle_threads", idle_threads),
    Program::new("ended_threads", ended_threads),
    Program::new("many_threads", many_threads),
];

/// That of `work`, whose result is dropped after the resident bytes have been counted.
fn weighed<B>(work: impl FnOnce(&mut Checksum) -> B) -> Outcome {
    let mut resident = 0;
    let outcome = Outcome::of(|sum| {
        let built = work(sum);
        resident = resident_bytes();
        built
    });
    Outcome {
        object_bytes: Some(resident as f64),
        ..outcome
    }
}

/// 1 GiB of filled objects of `bytes` bytes, or a quarter.
fn buffers(scale: Scale, bytes: usize) -> Outcome {
    weighed(|sum| {
        let count = scale.of(1 << 30) / bytes;
        let buffers = collect(count, |_| vec![1u8; bytes]);
        buffers.iter().for_each(|buffer| sum.add_bytes(buffer));
        buffers
    })
}

/// 2,000 vectors, or a quarter, that grow in turns to 128 KiB in the mean.
fn vectors(scale: Scale) -> Outcome {
    weighed(|sum| {
        let mut vectors = vec![Vec::new(); scale.of(2000)];
        for step in 1..=64 {
            for (number, vector) in vectors.iter_mut().enumerate() {
                vector.resize(number * 7919 % (256 << 10) * step / 64, 1u8);
            }
        }
        vectors.iter().for_each(|vector| sum.add_bytes(vector));
        vectors
    })
}

/// 1 GiB of zeros of which a byte is used each 2 MiB.
fn sparse_zeros(_scale: Scale) -> Outcome {
    weighed(|sum| {
        let mut table = vec![0u8; 1 << 30];
        table.iter_mut().step_by(2 << 20).for_each(|byte| *byte = 1);
        sum.add(u64::from(black_box(&table)[2 << 20]));
        table
    })
}

const THREADS: usize = 20;

/// Some 15 MB in objects of 40 to 120 bytes.
fn small_objects(seed: usize) -> Vec<Vec<u8>> {
    collect(200_000, |number| vec![1; 40 + (number * 7 + seed) % 81])
}

/// Threads that take 50 MB in large objects and 15 MB in small ones, free them, and wait while
/// another thread allocates now and then.
fn idle_threads(_scale: Scale) -> Outcome {
    let barrier = &Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let large = collect(10, |_| vec![1u8; 5_000_000]);
                drop((black_box(small_objects(thread)), black_box(large)));
                barrier.wait();
                barrier.wait();
            });
        }
        barrier.wait();
        let outcome = weighed(|sum| {
            for _ in 0..20 {
                thread::sleep(Duration::from_millis(100));
                (0..100).for_each(|_| drop(black_box(vec![1u8; 10_000])));
            }
            sum.add(THREADS as u64);
        });
        barrier.wait();
        outcome
    })
}

/// What threads have left that have ended, freed by another.
fn ended_threads(_scale: Scale) -> Outcome {
    let left = thread::scope(|scope| {
        let start = |thread| scope.spawn(move || small_objects(thread));
        let threads = collect(THREADS, start);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        threads.into_iter().map(join).collect::<Vec<_>>()
    });
    weighed(|sum| {
        sum.add(left.iter().map(Vec::len).sum::<usize>() as u64);
        drop(left);
    })
}

/// Threads with an object of 1,000 bytes each.
fn many_threads(scale: Scale) -> Outcome {
    let count = scale.of(10_000);
    let barrier = &Barrier::new(count + 1);
    thread::scope(|scope| {
        for _ in 0..count {
            let builder = thread::Builder::new().stack_size(64 << 10);
            let object = move || {
                let object = vec![1u8; 1000];
                barrier.wait();
                barrier.wait();
                drop(black_box(object));
            };
            builder.spawn_scoped(scope, object).expect("threads");
        }
        barrier.wait();
        let outcome = weighed(|sum| sum.add(count as u64));
        barrier.wait();
        outcome
    })
}
