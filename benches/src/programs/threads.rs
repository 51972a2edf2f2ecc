//! Threads that replace their objects, and objects that one thread makes and another frees.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::objects::marked;
use super::{Checksum, Outcome, Scale, live};
use crate::rng::Rng;

/// Objects in an array.
const SLOTS: usize = 2000;

type Slots = Vec<Vec<u8>>;

/// `steps` times, an object of 16 to `16 + sizes - 1` bytes takes the place of a random one.
fn replace_some(slots: &mut Slots, steps: usize, sizes: usize, rng: &mut Rng, sum: &mut Checksum) {
    let count = slots.len();
    for step in 0..steps {
        let object = marked(16 + rng.below(sizes), step);
        let slot = &mut slots[rng.below(count)];
        sum.add_bytes(&std::mem::replace(slot, object));
    }
}

/// Threads replace random objects in an array, hand the array to a new thread and end, as the
/// connections of a server do.
///
/// After P. Larson and M. Krishnan, *Memory Allocation for Long-Running Server Applications* (ISMM
/// 1998).
pub(super) fn larson(scale: Scale) -> Outcome {
    const LINES: usize = 4;
    const STEPS: usize = 25_000;
    Outcome::of(|sum| {
        let mut arrays: Vec<Slots> = (0..LINES)
            .map(|_| vec![Vec::new(); live(SLOTS, 14)])
            .collect();
        for generation in 0..scale.of(80) {
            let threads: Vec<_> = arrays
                .drain(..)
                .enumerate()
                .map(|(line, mut slots)| {
                    let mut rng = Rng::new((generation * LINES + line) as u64);
                    thread::spawn(move || {
                        let mut sum = Checksum::default();
                        replace_some(&mut slots, STEPS, 985, &mut rng, &mut sum);
                        (slots, sum.0)
                    })
                })
                .collect();
            for thread in threads {
                let (slots, part) = thread.join().expect("the threads do not panic");
                sum.add(part);
                arrays.push(slots);
            }
            // What a thread made is freed by the next one of another line.
            arrays.rotate_left(1);
        }
    })
}

type Message = Box<[u64; 6]>;

/// Two pairs of threads: one makes objects and the other frees them, singly and in batches.
pub(super) fn producer_consumer(scale: Scale) -> Outcome {
    let messages = || live(64, 2);
    Outcome::of(|sum| {
        let (singles, batches) = (scale.of(100_000) as u64, scale.of(40_000) as u64);
        let pairs: Vec<_> = (0..2_u64)
            .map(|pair| {
                let (send_one, receive_one) = sync_channel(messages());
                let (send_batch, receive_batch) = sync_channel(messages());
                let producer = thread::spawn(move || {
                    produce(pair, [singles, batches], send_one, &send_batch);
                });
                let consumer = thread::spawn(move || consume(&receive_one, &receive_batch));
                (producer, consumer)
            })
            .collect();
        for (producer, consumer) in pairs {
            producer.join().expect("the threads do not panic");
            sum.add(consumer.join().expect("the threads do not panic"));
        }
    })
}

/// Sends `singles` objects one by one, hangs up, and sends `batches` of a hundred.
fn produce(
    pair: u64,
    [singles, batches]: [u64; 2],
    send_one: SyncSender<Message>,
    send_batch: &SyncSender<Vec<Message>>,
) {
    let message = |number: u64| black_box(Box::new([number ^ pair; 6]));
    for number in 0..singles {
        let sent = send_one.send(message(number));
        sent.expect("the consumer waits for all of them");
    }
    drop(send_one);
    for number in 0..batches {
        let batch = (0..100).map(|index| message(number + index));
        let sent = send_batch.send(batch.collect());
        sent.expect("the consumer waits for all of them");
    }
}

/// Frees what comes, until the sender hangs up.
fn consume(receive_one: &Receiver<Message>, receive_batch: &Receiver<Vec<Message>>) -> u64 {
    let mut sum = Checksum::default();
    for message in receive_one {
        sum.add(message[0]);
    }
    for batch in receive_batch {
        for message in batch {
            sum.add(message[5]);
        }
    }
    sum.0
}

/// Replacements before an array is handed over.
const CHURN_STEPS: usize = 10 * SLOTS;
/// Arrays that a thread fills in its life.
const GENERATIONS: usize = 400;

/// Replacements that each thread makes in a run of `churn`.
pub fn churn_operations(scale: Scale) -> usize {
    scale.of(GENERATIONS) * CHURN_STEPS
}

/// How an allocator's throughput grows with the threads: one or two that each do the same work.
///
/// Each replaces random objects of an array by new ones, of 16 to 271 bytes. If it `hands_over`, it
/// passes its array on to the next thread from time to time, so that one free in ten is of an
/// object that the other thread made.
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
            move || churn_alone(line, scale.of(GENERATIONS), channel)
        })
        .collect();
    let (time, sums) = side_by_side(lives);
    let mut sum = Checksum::default();
    sums.into_iter().for_each(|thread| sum.add(thread));
    Outcome {
        checksum: sum.0,
        work: time,
        ..Outcome::default()
    }
}

/// A thread's life.
fn churn_alone(
    line: usize,
    generations: usize,
    channel: Option<(SyncSender<Slots>, Receiver<Slots>)>,
) -> u64 {
    let mut sum = Checksum::default();
    let mut rng = Rng::new(line as u64);
    let mut slots = vec![Vec::new(); SLOTS];
    for _ in 0..generations {
        replace_some(&mut slots, CHURN_STEPS, 256, &mut rng, &mut sum);
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

/// Runs each of `jobs` on a thread of its own, which waits for the others before it begins; the
/// time from the first one's beginning to the last one's end, and what they return, in their order.
///
/// The threads read the clock, because they may occupy all processors.
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
