//! Threads that replace their objects, and objects that one thread makes and another frees.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use super::objects::marked;
use super::{Checksum, Outcome, Scale, collect, live};
use crate::queries::add_in_order;
use crate::rng::Rng;

const SLOTS: usize = 2000;

type Slots = Vec<Vec<u8>>;

/// `steps` times, an object of 16 to `15 + sizes` bytes takes the place of a random one.
fn replace_some(slots: &mut Slots, steps: usize, sizes: usize, rng: &mut Rng, sum: &mut Checksum) {
    let count = slots.len();
    for step in 0..steps {
        let object = marked(16 + rng.below(sizes), step);
        let slot = &mut slots[rng.below(count)];
        sum.add_bytes(&std::mem::replace(slot, object));
    }
}

/// Threads replace random objects in an array, hand the array to a new thread and end, as the
/// connections of a server do (P. Larson and M. Krishnan, *Memory Allocation for Long-Running
/// Server Applications*, ISMM 1998).
pub(super) fn larson(scale: Scale) -> Outcome {
    const LINES: usize = 4;
    const STEPS: usize = 25_000;
    Outcome::of(|sum| {
        let mut arrays = collect(LINES, |_| vec![Vec::new(); live(SLOTS, 14)]);
        for generation in 0..scale.of(80) {
            let lines = arrays.drain(..).enumerate();
            let threads = lines.map(|(line, mut slots): (usize, Slots)| {
                let mut rng = Rng::new((generation * LINES + line) as u64);
                thread::spawn(move || {
                    let mut sum = Checksum::default();
                    replace_some(&mut slots, STEPS, 985, &mut rng, &mut sum);
                    (slots, sum.0)
                })
            });
            let threads: Vec<_> = threads.collect();
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

/// Two pairs of threads: one makes objects, singly and in batches, and the other frees them.
pub(super) fn producer_consumer(scale: Scale) -> Outcome {
    let messages = || live(64, 2);
    Outcome::of(|sum| {
        let (singles, batches) = (scale.of(100_000) as u64, scale.of(40_000) as u64);
        let pairs = collect(2, |pair| {
            let (send_one, receive_one) = sync_channel(messages());
            let (send_batch, receive_batch) = sync_channel(messages());
            let message = move |number: u64| black_box(Box::new([number ^ pair as u64; 6]));
            let producer = thread::spawn(move || {
                for number in 0..singles {
                    let sent = send_one.send(message(number));
                    sent.expect("the consumer waits for all of them");
                }
                drop(send_one);
                for number in 0..batches {
                    let batch = (0..100).map(|index| message(number + index));
                    let sent = send_batch.send(batch.collect::<Vec<_>>());
                    sent.expect("the consumer waits for all of them");
                }
            });
            let consumer = thread::spawn(move || {
                let mut sum = Checksum::default();
                receive_one.iter().for_each(|message| sum.add(message[0]));
                for batch in receive_batch {
                    batch.into_iter().for_each(|message| sum.add(message[5]));
                }
                sum.0
            });
            (producer, consumer)
        });
        for (producer, consumer) in pairs {
            producer.join().expect("the threads do not panic");
            sum.add(consumer.join().expect("the threads do not panic"));
        }
    })
}

const CHURN_STEPS: usize = 10 * SLOTS;
const GENERATIONS: usize = 400;

/// Replacements that each thread makes in a run of `churn`.
pub fn churn_operations(scale: Scale) -> usize {
    scale.of(GENERATIONS) * CHURN_STEPS
}

/// How throughput grows with the threads: one or two, each of which does the same work.
///
/// Each replaces random objects of an array by new ones, of 16 to 271 bytes. If it `hands_over`, it
/// passes its array on from time to time, so that the other thread made one object in ten it frees.
pub(super) fn churn(scale: Scale, threads: usize, hands_over: bool) -> Outcome {
    // Thread i sends on the i-th channel and receives from the one before.
    let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(2)).unzip();
    receivers.rotate_right(1);
    let channels = senders.into_iter().zip(receivers);
    let lives = channels.enumerate().map(|(line, (sender, receiver))| {
        move || {
            let mut sum = Checksum::default();
            let mut rng = Rng::new(line as u64);
            let mut slots = vec![Vec::new(); SLOTS];
            for _ in 0..scale.of(GENERATIONS) {
                replace_some(&mut slots, CHURN_STEPS, 256, &mut rng, &mut sum);
                if hands_over {
                    // The other thread ends when it has done its share.
                    slots = match sender.send(std::mem::take(&mut slots)) {
                        Ok(()) => receiver.recv().unwrap_or_default(),
                        Err(returned) => returned.0,
                    };
                    slots.resize_with(SLOTS, Vec::new);
                }
            }
            sum.0
        }
    });
    let (time, sums) = side_by_side(lives.collect());
    Outcome::new(sums.into_iter().fold(0, add_in_order), time)
}

/// Runs each of `jobs` on a thread of its own, which waits for the others before it begins. Returns
/// the time from the first one's beginning to the last one's end, and the results in their order.
/// The threads read the clock, because they may occupy all processors.
pub(crate) fn side_by_side<R: Send>(jobs: Vec<impl FnOnce() -> R + Send>) -> (Duration, Vec<R>) {
    let start = &Barrier::new(jobs.len());
    let done: Vec<(Instant, Instant, R)> = thread::scope(|scope| {
        let threads = jobs.into_iter().map(|job| {
            scope.spawn(move || {
                start.wait();
                let begin = Instant::now();
                let result = job();
                (begin, Instant::now(), result)
            })
        });
        let threads: Vec<_> = threads.collect();
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
