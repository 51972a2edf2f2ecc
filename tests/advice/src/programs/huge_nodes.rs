//! Buffers of four KiB in random order, each of which is read whole.
//!
//! The wait for the first line of a buffer is little beside the time for the others, which the
//! processor fetches ahead. Where in the buffer its header lies does not matter.

use super::mix;
use ccmorph::field_order;

pub(super) fn before(size: usize) -> u64 {
    let new = |number| Buffer {
        words: [number; 510],
        number,
        used: 500,
    };
    read(size, new, |buffer| {
        (buffer.number, &buffer.words[..buffer.used])
    })
}

pub(super) fn after(size: usize) -> u64 {
    let new = |number| Ordered {
        number,
        used: 500,
        words: [number; 510],
    };
    read(size, new, |buffer| {
        (buffer.number, &buffer.words[..buffer.used])
    })
}

#[repr(C)]
struct Buffer {
    words: [u64; 510],
    number: u64,
    used: usize,
}

#[field_order(size = 4096, offsets(number = 0, used = 8))]
struct Ordered {
    number: u64,
    used: usize,
    words: [u64; 510],
}

fn read<B>(size: usize, new: impl Fn(u64) -> B, parts: impl Fn(&B) -> (u64, &[u64])) -> u64 {
    let mut buffers: Vec<Box<B>> = (0..size as u64)
        .map(|number| Box::new(new(number)))
        .collect();
    fastrand::Rng::with_seed(24).shuffle(&mut buffers);
    (0..30).fold(0, |sum, _| {
        buffers.iter().fold(sum, |sum, buffer| {
            let (number, words) = parts(buffer);
            mix(sum, number ^ words.iter().sum::<u64>())
        })
    })
}
