//! Boxed records of several cache lines, of which each visit reads three fields.
//!
//! The fields lie where history put them, in three lines. Side by side they take one line, or two
//! where the allocator does not align the record.

use super::mix;
use ccmorph::field_order;

pub(super) fn before(size: usize) -> u64 {
    let new = |price| Scattered {
        price,
        count: 2,
        rate: 3,
        ..Scattered::default()
    };
    visit(size, new, |item| item.price + item.count * item.rate)
}

pub(super) fn after(size: usize) -> u64 {
    let new = |price| Ordered {
        price,
        count: 2,
        rate: 3,
        ..Ordered::default()
    };
    visit(size, new, |item| item.price + item.count * item.rate)
}

#[derive(Default)]
#[repr(C)]
struct Scattered {
    price: u64,
    name: [u64; 10],
    count: u64,
    origin: [u64; 10],
    rate: u64,
}

#[derive(Default)]
#[field_order(size = 184, offsets(price = 0, count = 8, rate = 16))]
struct Ordered {
    price: u64,
    count: u64,
    rate: u64,
    name: [u64; 10],
    origin: [u64; 10],
}

fn visit<T>(size: usize, new: impl Fn(u64) -> T, value: impl Fn(&T) -> u64) -> u64 {
    let items: Vec<Box<T>> = (0..size as u64).map(|n| Box::new(new(n))).collect();
    let mut orders = fastrand::Rng::with_seed(14);
    (0..25 * size).fold(0, |sum, _| mix(sum, value(&items[orders.usize(..size)])))
}
