//! Sites whose blocks, bytes and accesses by byte can be told.

use std::hint::black_box;
use std::ptr::{read_volatile, write_volatile};

struct Node {
    key: u64,
    next: *mut Node,
    value: u32,
    _spare: [u32; 3],
}

/// 100 nodes of 40 bytes, of which the last 12 bytes are never touched.
#[inline(never)]
fn site_nodes() -> *mut Node {
    let mut list = std::ptr::null_mut();
    for key in 0..100 {
        let node = Box::into_raw(Box::<Node>::new_uninit()).cast::<Node>();
        unsafe {
            write_volatile(&raw mut (*node).key, key);
            write_volatile(&raw mut (*node).next, list);
            write_volatile(&raw mut (*node).value, 1);
        }
        list = node;
    }
    list
}

fn walk(list: *mut Node) -> u64 {
    let (mut at, mut sum) = (list, 0);
    while !at.is_null() {
        unsafe {
            sum += read_volatile(&raw const (*at).key);
            at = read_volatile(&raw const (*at).next);
        }
    }
    sum
}

/// Blocks of 30 sizes, each freed before the next.
#[inline(never)]
fn site_temporaries() {
    for size in 1..=30 {
        let mut block = Vec::<u8>::with_capacity(black_box(size * 10));
        unsafe { write_volatile(block.as_mut_ptr(), 1) };
        black_box(&block);
    }
}

/// The largest part of the peak.
#[inline(never)]
fn site_peak() -> Vec<u64> {
    black_box(Vec::with_capacity(100_000))
}

/// 500 bytes, whose first is written 7 times and last read 3 times.
#[inline(never)]
fn site_bytes() -> Vec<u8> {
    let mut bytes = Vec::<u8>::with_capacity(black_box(500));
    let first = bytes.as_mut_ptr();
    for _ in 0..7 {
        unsafe { write_volatile(first, 1) };
    }
    for _ in 0..3 {
        unsafe { read_volatile(first.add(499)) };
    }
    bytes
}

/// Lives for a fifth of the time of `site_peak`.
#[inline(never)]
fn site_short() -> Vec<u64> {
    black_box(Vec::with_capacity(10))
}

/// Whether the sums are right. What is left at the end is alive.
pub fn work() -> bool {
    let list = site_nodes();
    site_temporaries();
    let bytes = site_bytes();
    // At the peak.
    let (short, peak) = (site_short(), site_peak());
    // Longer by far than what else happens.
    let mut sum = (0..40).map(|_| walk(list)).sum::<u64>();
    drop(short);
    sum += (0..160).map(|_| walk(list)).sum::<u64>();
    drop(peak);
    site_temporaries();
    drop(bytes);
    sum == 200 * 4950
}

fn main() {
    std::process::exit(i32::from(!work()));
}
