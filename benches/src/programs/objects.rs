//! Single objects of one size, of mixed sizes, and large blocks.

use std::collections::VecDeque;
use std::hint::black_box;

use crate::rng::Rng;

use super::{Outcome, Scale, live};

/// Live objects at the height of a wave.
const WAVE: usize = 20_000;

/// Objects of 24, 32 and 64 bytes that come and go in waves, as a stack, as a queue, and in random
/// order.
pub(super) fn small_fixed(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(1);
        let mut order: Vec<usize> = (0..live(WAVE, 2)).collect();
        rng.shuffle(&mut order);
        for round in 0..scale.of(100) as u64 {
            sum.add(waves::<3>(round, &order));
            sum.add(waves::<4>(round, &order));
            sum.add(waves::<8>(round, &order));
        }
    })
}

/// An object that the compiler cannot do without.
#[inline]
fn object<const WORDS: usize>(value: u64) -> Box<[u64; WORDS]> {
    black_box(Box::new([value; WORDS]))
}

/// Each way to come and go once, with objects of `WORDS * 8` bytes; a random order of all numbers
/// of a wave is `order`.
fn waves<const WORDS: usize>(round: u64, order: &[usize]) -> u64 {
    let mut sum = 0_u64;
    let wave = order.len();
    let values = (0..wave as u64).map(|index| index ^ round);

    let mut stack: Vec<Box<[u64; WORDS]>> = values.clone().map(object).collect();
    // Half down, up again, and all the way down.
    for value in stack.drain(wave / 2..).rev() {
        sum = sum.wrapping_add(value[WORDS - 1]);
    }
    stack.extend(values.clone().take(wave / 2).map(object));
    while let Some(value) = stack.pop() {
        sum = sum.wrapping_add(value[0]);
    }

    let mut queue: VecDeque<Box<[u64; WORDS]>> =
        values.clone().take(wave / 4).map(object).collect();
    for value in values.clone() {
        queue.push_back(object(value));
        sum = sum.wrapping_add(queue.pop_front().map_or(0, |oldest| oldest[0]));
    }
    drop(queue);

    let mut slots: Vec<Option<Box<[u64; WORDS]>>> =
        values.map(|value| Some(object(value))).collect();
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

/// Objects that live at any time in `mixed_sizes`.
const MIXED_LIVE: usize = 20_000;

/// Random ones of 20,000 live objects of 8 B to 4 KiB are replaced, small sizes more often than
/// large ones.
pub(super) fn mixed_sizes(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(2);
        let count = live(MIXED_LIVE, 18);
        let mut objects: Vec<Vec<u8>> = (0..count)
            .map(|index| any_object(&mut rng, index))
            .collect();
        for step in 0..scale.of(4_000_000) {
            let index = rng.below(count);
            let new = any_object(&mut rng, step);
            sum.add_bytes(&std::mem::replace(&mut objects[index], new));
        }
    })
}

/// An object of 8 B to 4 KiB with a mark at its beginning; each power of two is as likely as the
/// next.
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

/// Blocks that live at any time in `large_blocks`.
const LARGE_LIVE: usize = 24;
/// Distance of touches: each page of any system is touched.
const TOUCH_BYTES: usize = 4096;

/// Random ones of 24 live blocks of 32 KiB to 8 MiB are replaced; each page is touched.
pub(super) fn large_blocks(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(3);
        let mut blocks: Vec<Vec<u8>> = vec![Vec::new(); LARGE_LIVE];
        for step in 0..scale.of(2000) {
            let least = live(32 << 10, 110) << rng.below(8);
            let size = least + rng.below(least);
            let index = rng.below(LARGE_LIVE);
            // Free first, as a program does that swaps buffers.
            sum.add_bytes(&std::mem::take(&mut blocks[index]));
            blocks[index] = if step % 4 == 0 {
                let mut zeroed = vec![0_u8; size];
                for byte in zeroed.iter_mut().step_by(TOUCH_BYTES) {
                    sum.add(u64::from(*byte));
                    *byte = 1;
                }
                zeroed
            } else {
                let mut block = marked(size, step);
                for byte in block.spare_capacity_mut().iter_mut().step_by(TOUCH_BYTES) {
                    byte.write(1);
                }
                black_box(block)
            };
        }
    })
}
