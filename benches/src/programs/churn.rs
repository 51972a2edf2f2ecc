//! Threads that replace their objects, one thread or two: how an allocator's throughput grows with
//! the threads.
//!
//! Each thread does the same work, whichever number there is: it replaces random objects of an
//! array by new ones, of 16 to 271 bytes. In the programs that hand over, it passes its array on
//! every so often, to the other thread, or to itself when it is the only one; one free in ten is
//! then of an object that the other thread made. In the others, every thread frees what it made. No
//! thread ever waits but for an array, and there is one in the channel at most times.

use std::sync::Barrier;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::rng::Rng;

use super::objects::marked;
use super::{Checksum, Outcome, Scale};

/// Objects in an array.
const SLOTS: usize = 2000;
/// Replacements before an array is handed over.
const STEPS: usize = 10 * SLOTS;
/// Arrays that a thread fills in its life.
const GENERATIONS: usize = 400;

/// Replacements that each thread makes in a run.
pub fn operations_each(scale: Scale) -> usize {
    scale.of(GENERATIONS) * STEPS
}

type Slots = Vec<Vec<u8>>;

pub(super) fn churn(scale: Scale, threads: usize, hands_over: bool) -> Outcome {
    // Thread i sends on the i-th channel and receives from the one before.
    let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(2)).unzip();
    receivers.rotate_right(1);
    let lives = senders
        .into_iter()
        .zip(receivers)
        .enumerate()
        .map(|(line, channel)| {
            let channel = hands_over.then_some(channel);
            move || live(line, scale.of(GENERATIONS), channel)
        })
        .collect();
    let (time, sums) = side_by_side(lives);
    let mut sum = Checksum::default();
    for thread in sums {
        sum.add(thread);
    }
    Outcome {
        checksum: sum.0,
        time,
        object_bytes: None,
    }
}

/// Runs each of `jobs` on a thread of its own, which waits for the others before it begins; the
/// time from the first one's beginning to the last one's end, and what they return, in their order.
///
/// The threads read the clock. The one that waits for them would want a processor to do so, which
/// they may have all.
///
/// # Panics
/// When there are no jobs, or when one panics.
pub(crate) fn side_by_side<R: Send>(jobs: Vec<impl FnOnce() -> R + Send>) -> (Duration, Vec<R>) {
    let start = &Barrier::new(jobs.len());
    let done: Vec<(Instant, Instant, R)> = thread::scope(|scope| {
        let threads: Vec<_> = jobs
            .into_iter()
            .map(|job| {
                scope.spawn(move || {
                    start.wait();
                    let begin = Instant::now();
                    let result = job();
                    (begin, Instant::now(), result)
                })
            })
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(|end| end.expect("the jobs do not panic"))
            .collect()
    });
    let begin = done.iter().map(|(begin, ..)| *begin).min();
    let end = done.iter().map(|(_, end, _)| *end).max();
    let (begin, end) = begin.zip(end).expect("there are jobs");
    let results = done.into_iter().map(|(.., result)| result).collect();
    (end.duration_since(begin), results)
}

/// A thread's life.
fn live(
    line: usize,
    generations: usize,
    channel: Option<(SyncSender<Slots>, Receiver<Slots>)>,
) -> u64 {
    let mut sum = Checksum::default();
    let mut rng = Rng::new(line as u64);
    let mut slots = vec![Vec::new(); SLOTS];
    for _ in 0..generations {
        for step in 0..STEPS {
            let object = marked(16 + rng.below(256), step);
            let slot = &mut slots[rng.below(SLOTS)];
            sum.add_bytes(&std::mem::replace(slot, object));
        }
        if let Some((sender, receiver)) = &channel {
            // The other one may have ended, having done its share.
            let handed = std::mem::take(&mut slots);
            slots = match sender.send(handed) {
                Ok(()) => receiver.recv().unwrap_or_default(),
                Err(returned) => returned.0,
            };
            slots.resize_with(SLOTS, Vec::new);
        }
    }
    sum.0
}
