//! Types of chunks and of a static, with the symbols that the compiler makes by default.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

struct Node {
    key: u64,
    next: Option<Box<Node>>,
}

#[derive(Clone)]
struct Particle {
    mass: f64,
    name: String,
}

struct Counter {
    calls: AtomicU32,
    bytes: AtomicU32,
}

static COUNTERS: [Counter; 4] = [const {
    Counter {
        calls: AtomicU32::new(1),
        bytes: AtomicU32::new(2),
    }
}; 4];

#[inline(never)]
fn boxed(at: usize) -> Box<Node> {
    COUNTERS[at].bytes.fetch_add(16, Relaxed);
    COUNTERS[at].calls.fetch_add(1, Relaxed);
    let next = None;
    Box::new(Node { key: 3, next })
}

#[inline(never)]
fn grown(count: usize) -> Vec<Particle> {
    let mut all = Vec::new();
    for _ in 0..count {
        let name = "particle".to_owned();
        all.push(black_box(Particle { mass: 0.5, name }));
    }
    all
}

#[inline(never)]
fn mapped(keys: u64) -> HashMap<u64, f32> {
    (0..keys).map(|key| (key, 0.5)).collect()
}

fn main() {
    let count = black_box(3);
    let mut node = boxed(count);
    node.next = Some(boxed(0));
    let all = grown(count);
    let copy = all.clone();
    let mass: f64 = copy.iter().map(|it| it.mass).sum();
    let map = mapped(9);
    let sum = COUNTERS.iter().map(|it| it.calls.load(Relaxed) + it.bytes.load(Relaxed));
    let sum: u32 = sum.sum();
    println!("{} {mass} {} {} {sum}", node.key, copy[1].name, map.len());
}
