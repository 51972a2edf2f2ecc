//! Objects that one thread makes and another frees.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::rng::Rng;

use super::objects::marked;
use super::{Checksum, Outcome, Scale, live};

/// Threads at a time in `larson`, and arrays.
const LINES: usize = 4;
/// Objects in an array.
const SLOTS: usize = 2000;
/// Replacements in the life of a thread.
const STEPS: usize = 25_000;

type Slots = Vec<Vec<u8>>;

/// Threads replace random objects in an array, hand the array to a new thread and end, as the
/// connections of a server do.
///
/// After P. Larson and M. Krishnan, *Memory Allocation for Long-Running Server Applications* (ISMM
/// 1998).
pub(super) fn larson(scale: Scale) -> Outcome {
    Outcome::of(|| {
        let mut sum = Checksum::default();
        let mut arrays: Vec<Slots> = (0..LINES)
            .map(|_| vec![Vec::new(); live(SLOTS, 14)])
            .collect();
        for generation in 0..scale.of(80) {
            let threads: Vec<_> = arrays
                .drain(..)
                .enumerate()
                .map(|(line, slots)| {
                    let seed = (generation * LINES + line) as u64;
                    thread::spawn(move || replace_some(slots, seed))
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
        sum.0
    })
}

/// The life of one thread: objects of 16 to 1000 bytes take the place of others.
fn replace_some(mut slots: Slots, seed: u64) -> (Slots, u64) {
    let mut rng = Rng::new(seed);
    let mut sum = Checksum::default();
    let count = slots.len();
    for step in 0..STEPS {
        let object = marked(16 + rng.below(985), step);
        let slot = &mut slots[rng.below(count)];
        sum.add_bytes(&std::mem::replace(slot, object));
    }
    (slots, sum.0)
}

/// Messages that a channel holds.
const CHANNEL_MESSAGES: usize = 64;
/// Objects in a batch.
const BATCH: usize = 100;

type Message = Box<[u64; 6]>;

/// Messages of each kind.
#[derive(Clone, Copy)]
struct Counts {
    singles: u64,
    batches: u64,
}

/// Two pairs of threads: one makes objects and the other frees them, singly and in batches.
pub(super) fn producer_consumer(scale: Scale) -> Outcome {
    Outcome::of(|| {
        let counts = Counts {
            singles: scale.of(100_000) as u64,
            batches: scale.of(40_000) as u64,
        };
        let pairs: Vec<_> = (0..2_u64)
            .map(|pair| {
                let (send_one, receive_one) = sync_channel(live(CHANNEL_MESSAGES, 2));
                let (send_batch, receive_batch) = sync_channel(live(CHANNEL_MESSAGES, 2));
                let producer = thread::spawn(move || produce(pair, counts, send_one, &send_batch));
                let consumer = thread::spawn(move || consume(&receive_one, &receive_batch));
                (producer, consumer)
            })
            .collect();
        let mut sum = Checksum::default();
        for (producer, consumer) in pairs {
            producer.join().expect("the threads do not panic");
            sum.add(consumer.join().expect("the threads do not panic"));
        }
        sum.0
    })
}

/// Sends `singles` objects one by one, hangs up, and sends `batches` of them.
fn produce(
    pair: u64,
    counts: Counts,
    send_one: SyncSender<Message>,
    send_batch: &SyncSender<Vec<Message>>,
) {
    let message = |number: u64| black_box(Box::new([number ^ pair; 6]));
    for number in 0..counts.singles {
        send_one
            .send(message(number))
            .expect("the consumer waits for all of them");
    }
    drop(send_one);
    for number in 0..counts.batches {
        let batch = (0..BATCH as u64).map(|index| message(number + index));
        send_batch
            .send(batch.collect())
            .expect("the consumer waits for all of them");
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
