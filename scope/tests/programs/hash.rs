//! Counts words in a hash table whose keys are strings of bytes.

#[path = "common/mod.rs"]
mod common;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// FNV: the same order in each run.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

fn main() {
    let mut random = common::Random::new();
    let mut words: HashMap<Box<[u8]>, u32, BuildHasherDefault<Fnv>> =
        HashMap::with_capacity_and_hasher(700, BuildHasherDefault::default());
    // Of the same memory as long as it lives; all are leaked, so no key lies where another was.
    for _ in 0..1000 {
        let mut number = random.next() % 500;
        let key: Box<[u8]> = (0..20)
            .map(|_| {
                number = number * 7 % 1009;
                b'a' + (number % 26) as u8
            })
            .collect();
        match words.get_mut(&key) {
            Some(count) => {
                *count += 1;
                Box::leak(key);
            }
            None => {
                words.insert(key, 1);
            }
        }
    }
    println!("{}", words.values().max().unwrap());
    let mut keys: Vec<_> = words.keys().collect();
    keys.sort_by_key(|key| key.as_ptr());
    for key in keys {
        common::print_chunk(key.as_ptr(), key.len());
    }
    common::end();
    std::mem::forget(words);
}
