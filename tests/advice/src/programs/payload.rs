//! Entries whose values are boxes of their own, made later and read right after the entry.
//!
//! The values came in another order than the entries, so that an entry and its value are two
//! misses, one after the other. A hint puts the value into the entry's cache line.

use super::{mix, order};

pub(super) fn before(size: usize) -> u64 {
    let mut entries = entries(size, Box::new);
    fill(&mut entries, |_, value| Box::new(value));
    read(&entries)
}

pub(super) fn after(size: usize) -> u64 {
    let mut entries = entries(size, |entry| ccmalloc::near(&(), || Box::new(entry)));
    fill(&mut entries, |entry, value| {
        ccmalloc::near(entry, || Box::new(value))
    });
    read(&entries)
}

struct Entry {
    next: usize,
    value: Option<Box<Value>>,
}

type Link = Box<Entry>;

struct Value {
    height: u64,
    width: u64,
}

fn entries(size: usize, new: impl Fn(Entry) -> Link) -> Vec<Link> {
    let mut random = fastrand::Rng::with_seed(16);
    (0..size)
        .map(|_| {
            new(Entry {
                next: random.usize(..size),
                value: None,
            })
        })
        .collect()
}

fn fill(entries: &mut [Link], new: impl Fn(&Entry, Value) -> Box<Value>) {
    for at in order(entries.len()) {
        let entry = &mut *entries[at];
        let value = new(
            entry,
            Value {
                height: at as u64,
                width: 2 * at as u64,
            },
        );
        entry.value = Some(value);
    }
}

fn read(entries: &[Link]) -> u64 {
    let (mut at, mut sum) = (0, 0);
    for step in 0..4 * entries.len() {
        let entry = &entries[at];
        let value = entry
            .value
            .as_ref()
            .map_or(1, |value| value.height ^ value.width);
        sum = mix(sum, value);
        at = (entry.next + usize::from(value.is_multiple_of(3)) + step) % entries.len();
    }
    sum
}
