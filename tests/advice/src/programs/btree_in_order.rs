//! A `BTreeMap` whose entries are read in order.
//!
//! Its leaves were filled in order too, so the processor fetches them ahead, while the program
//! works on the entries.

use super::mix;

in_maps!(BTreeMap, CTreeMap, |size| {
    let map: Map<u64, u64> = entries(size).collect();
    let value = |sum, (key, value): (&u64, &u64)| mix(sum, work(*key, *value));
    (0..20).fold(0, |sum, _| map.iter().fold(sum, value))
});

fn entries(size: usize) -> impl Iterator<Item = (u64, u64)> {
    (0..size as u64).map(|key| (key * 3, key % 5))
}

/// The sum of the digits, multiplied.
fn work(mut key: u64, value: u64) -> u64 {
    let mut sum = value;
    while key > 0 {
        sum += key % 10;
        key /= 10;
    }
    sum * value
}
