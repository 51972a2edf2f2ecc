//! Objects of one size and of mixed sizes, large blocks, vectors and strings that grow.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::hint::black_box;

use super::{Outcome, Scale, collect, live};
use crate::rng::Rng;

/// Objects of 24, 32 and 64 bytes come and go in waves, as stack, as queue, and in random order.
pub(super) fn small_fixed(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(1);
        let mut order = collect(live(20_000, 2), |index| index);
        rng.shuffle(&mut order);
        for round in 0..scale.of(100) as u64 {
            sum.add(waves::<3>(round, &order));
            sum.add(waves::<4>(round, &order));
            sum.add(waves::<8>(round, &order));
        }
    })
}

type Object<const WORDS: usize> = Box<[u64; WORDS]>;

/// An object that the compiler cannot do without.
#[inline]
fn object<const WORDS: usize>(value: u64) -> Object<WORDS> {
    black_box(Box::new([value; WORDS]))
}

/// Each of these once, with objects of `WORDS` words; `order` is a random order.
fn waves<const WORDS: usize>(round: u64, order: &[usize]) -> u64 {
    let mut sum = 0_u64;
    let wave = order.len();
    let values = (0..wave as u64).map(|index| index ^ round);

    let mut stack: Vec<Object<WORDS>> = values.clone().map(object).collect();
    // Half down, up again, and all the way down.
    for value in stack.drain(wave / 2..).rev() {
        sum = sum.wrapping_add(value[WORDS - 1]);
    }
    stack.extend(values.clone().take(wave / 2).map(object));
    while let Some(value) = stack.pop() {
        sum = sum.wrapping_add(value[0]);
    }

    let mut queue: VecDeque<Object<WORDS>> = values.clone().take(wave / 4).map(object).collect();
    for value in values.clone() {
        queue.push_back(object(value));
        sum = sum.wrapping_add(queue.pop_front().map_or(0, |oldest| oldest[0]));
    }
    drop(queue);

    let mut slots: Vec<Option<Object<WORDS>>> = values.map(|value| Some(object(value))).collect();
    for &index in order {
        sum = sum.wrapping_add(slots[index].take().map_or(0, |value| value[WORDS / 2]));
    }
    for &index in order {
        slots[index] = Some(object(round));
    }
    for slot in slots.iter_mut().step_by(2) {
        *slot = None;
    }
    for slot in slots.iter_mut().step_by(2) {
        *slot = Some(object(round + 1));
    }
    for slot in slots.into_iter().flatten() {
        sum = sum.wrapping_add(slot[0]);
    }
    sum
}

/// Random ones of 20,000 live objects of 8 B to 4 KiB are replaced, mostly small ones.
pub(super) fn mixed_sizes(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(2);
        let count = live(20_000, 18);
        let mut objects = collect(count, |index| any_object(&mut rng, index));
        for step in 0..scale.of(4_000_000) {
            let index = rng.below(count);
            let new = any_object(&mut rng, step);
            sum.add_bytes(&std::mem::replace(&mut objects[index], new));
        }
    })
}

/// An object of 8 B to 4 KiB with a mark; each power of two is as likely as the next.
fn any_object(rng: &mut Rng, mark: usize) -> Vec<u8> {
    let least = 8_usize << rng.below(9);
    marked(least + rng.below(least), mark)
}

/// An object of `size` bytes. Only the first eight are written: all of it would measure memset.
pub(super) fn marked(size: usize, mark: usize) -> Vec<u8> {
    let mut object = Vec::with_capacity(size);
    object.extend_from_slice(&mark.to_le_bytes());
    black_box(object)
}

const PAGE_BYTES: usize = 4096;

/// Random ones of 24 live blocks of 32 KiB to 8 MiB are replaced; each page is touched.
pub(super) fn large_blocks(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(3);
        let mut blocks: Vec<Vec<u8>> = vec![Vec::new(); 24];
        for step in 0..scale.of(2000) {
            let least = live(32 << 10, 110) << rng.below(8);
            let size = least + rng.below(least);
            let index = rng.below(blocks.len());
            // Free first, as a program does that swaps buffers.
            sum.add_bytes(&std::mem::take(&mut blocks[index]));
            blocks[index] = if step % 4 == 0 {
                let mut zeroed = vec![0_u8; size];
                for byte in zeroed.iter_mut().step_by(PAGE_BYTES) {
                    sum.add(u64::from(*byte));
                    *byte = 1;
                }
                zeroed
            } else {
                let mut block = marked(size, step);
                for byte in block.spare_capacity_mut().iter_mut().step_by(PAGE_BYTES) {
                    byte.write(1);
                }
                black_box(block)
            };
        }
    })
}

const VECTORS: usize = 2000;

/// Many vectors that grow by turns, some very large ones, and strings that grow line by line.
pub(super) fn growing_vectors(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(4);
        for _ in 0..scale.of(12) {
            let mut vectors: Vec<Vec<u64>> = vec![Vec::new(); VECTORS];
            for item in 0..live(500_000, 44) as u64 {
                // The smaller of two draws: a few vectors grow long, most stay short.
                let index = rng.below(VECTORS).min(rng.below(VECTORS));
                let index = index * index / VECTORS;
                vectors[index].push(item);
            }
            for vector in &vectors {
                sum.add(vector.iter().sum());
            }
            drop(vectors);

            let mut large = Vec::new();
            for item in 0..live(4 << 20, 44) as u64 {
                large.push(black_box(item));
            }
            sum.add(large[large.len() / 2]);
            large.truncate(1000);
            large.shrink_to_fit();
            sum.add(large.iter().sum());

            let mut text = String::new();
            while text.len() < live(4 << 20, 44) {
                text.push_str("another line of some forty characters..\n");
            }
            sum.add_bytes(text.as_bytes());
        }
    })
}

/// Lines made with `format!`, split, joined, collected, changed.
pub(super) fn string_building(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(5);
        let mut recent: Vec<String> = vec![String::new(); live(1000, 1)];
        for number in 0..scale.of(300_000) {
            let line = format!(
                "{number};{:x};{};{}",
                rng.next_u64(),
                WORDS[rng.below(WORDS.len())],
                "*".repeat(rng.below(40))
            );
            let mut fields: Vec<String> = line.split(';').map(str::to_owned).collect();
            fields.reverse();
            fields[1].make_ascii_uppercase();
            let joined = fields.join(", ");
            let firsts = joined.split(", ").filter_map(|field| field.chars().next());
            let initials: String = firsts.collect();
            let mut summary = joined.replace(", ", " | ");
            write!(summary, " [{initials}]").expect("a String takes all that is written to it");
            sum.add_bytes(summary.as_bytes());
            let place = rng.below(recent.len());
            sum.add_bytes(std::mem::replace(&mut recent[place], summary).as_bytes());
        }
    })
}

const WORDS: [&str; 7] = [
    "block",
    "hint",
    "neighbourhood",
    "a",
    "placement of nodes",
    "tree",
    "layout",
];
