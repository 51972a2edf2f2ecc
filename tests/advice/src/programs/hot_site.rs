//! Small counters that are read all the time, allocated in turn with larger texts that are not.
//!
//! Each counter lies between two texts, alone in its cache line. A heap of their own brings several
//! into a line, and all of them onto few pages.

use super::mix;
use allocator_api2::boxed::Box as BoxIn;
use ccmalloc::Heap;

pub(super) fn before(size: usize) -> u64 {
    let mut entries = entries(size, Box::new);
    let sum = passes(&mut entries, |entry| &mut entry.0);
    mix(sum, entries.iter().map(|entry| entry.1.len() as u64).sum())
}

pub(super) fn after(size: usize) -> u64 {
    let heap = Heap::new().expect("memory");
    let mut entries = entries(size, |counter| BoxIn::new_in(counter, &heap));
    let sum = passes(&mut entries, |entry| &mut entry.0);
    mix(sum, entries.iter().map(|entry| entry.1.len() as u64).sum())
}

struct Counter {
    hits: u64,
    limit: u64,
}

fn entries<B>(size: usize, new: impl Fn(Counter) -> B) -> Vec<(B, String)> {
    let mut random = fastrand::Rng::with_seed(15);
    let entry = |_| {
        let counter = new(Counter {
            hits: 0,
            limit: random.u64(1..20),
        });
        (counter, "x".repeat(random.usize(40..120)))
    };
    (0..size).map(entry).collect()
}

fn passes<B>(
    entries: &mut [(B, String)],
    counter: impl Fn(&mut (B, String)) -> &mut Counter,
) -> u64 {
    (0..40).fold(0, |sum, _| {
        let hits = entries.iter_mut().map(|entry| {
            let counter = counter(entry);
            counter.hits = (counter.hits + 1) % counter.limit;
            counter.hits
        });
        mix(sum, hits.sum())
    })
}
