//! A large table, read at places that are known beforehand.
//!
//! The reads do not depend on each other, so many are under way at once, and each needs one line in
//! any case. Where in its line the field lies does not matter.

use super::mix;
use ccmorph::field_order;

pub(super) fn before(size: usize) -> u64 {
    read(
        size,
        |price| Row {
            name: [1; 5],
            price,
            sold: 2,
        },
        |row| row.price,
    )
}

pub(super) fn after(size: usize) -> u64 {
    read(
        size,
        |price| Ordered {
            price,
            sold: 2,
            name: [1; 5],
        },
        |row| row.price,
    )
}

#[repr(C)]
struct Row {
    name: [u64; 5],
    price: u64,
    sold: u64,
}

#[field_order(size = 56, offsets(price = 0, sold = 8, name = 16))]
struct Ordered {
    price: u64,
    sold: u64,
    name: [u64; 5],
}

fn read<R>(size: usize, new: impl Fn(u64) -> R, price: impl Fn(&R) -> u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(20);
    let rows: Vec<R> = (0..size as u64).map(new).collect();
    let places: Vec<usize> = (0..2 * size).map(|_| random.usize(..size)).collect();
    (0..10).fold(0, |sum, _| {
        mix(sum, places.iter().map(|&place| price(&rows[place])).sum())
    })
}
