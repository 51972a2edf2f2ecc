//! Sets of keys, the same in every run and on every machine.

use std::collections::HashSet;

use crate::rng::{Rng, scale};

/// `count` different numbers, even over all of `u64` but the largest, in random order.
pub fn random(count: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    // The generator's step is a bijection, so no number comes twice.
    let keys = std::iter::repeat_with(|| rng.next_u64()).filter(|&key| key != u64::MAX);
    keys.take(count).collect()
}

/// `count` different numbers in random order: runs of 1 to 1024 consecutive ones, and between two
/// runs a gap below 2^10 to 2^50, each power of two as likely as the others. Hard for a prefix that
/// all share.
pub fn clustered(count: usize, seed: u64) -> Vec<u64> {
    const RUN_MAX: usize = 1024;
    const GAP_BITS: std::ops::RangeInclusive<u32> = 10..=50;
    let mut rng = Rng::new(seed);
    let mut keys = Vec::with_capacity(count);
    let mut next = 0;
    while keys.len() < count {
        let run = (1 + rng.below(RUN_MAX)).min(count - keys.len());
        keys.extend((next..).take(run));
        let bits = GAP_BITS.start() + small(rng.below(GAP_BITS.count()));
        // Their mean is below 2^45, so that the 2^18 gaps of 2^27 keys do not overflow.
        next += run as u64 + (rng.next_u64() >> (64 - bits));
    }
    rng.shuffle(&mut keys);
    keys
}

/// `count` different tuples of an account and a time in random order: accounts even over `u32`,
/// each with a hundred times on average, in nanoseconds within a year. Hard for heads that hold the
/// first field only.
pub fn events(count: usize, seed: u64) -> Vec<(u32, u64)> {
    const YEAR_NS: usize = 365 * 24 * 3600 * 1_000_000_000;
    let mut rng = Rng::new(seed);
    let accounts = (0..count.div_ceil(100)).map(|_| small(rng.below(1 << 32)));
    let accounts: Vec<u32> = accounts.collect();
    let mut seen = HashSet::with_capacity(count);
    let mut keys = Vec::with_capacity(count);
    while keys.len() < count {
        let account = accounts[rng.below(accounts.len())];
        let key = (account, rng.below(YEAR_NS) as u64);
        if seen.insert(key) {
            keys.push(key);
        }
    }
    keys
}

/// `count` different strings of 8 to 40 bytes in random order: names of Unicode characters, and
/// paths such as `musical/symbol/phonetic-extension.rs`, of the first one to three words of a name
/// and the last one or two of another. Hard for comparisons, each of which may miss.
pub fn words_and_paths(count: usize, seed: u64) -> Vec<String> {
    const BYTES: std::ops::RangeInclusive<usize> = 8..=40;
    const ENDINGS: [&str; 8] = ["rs", "md", "txt", "toml", "html", "json", "png", "c"];
    let names = unicode_names();
    let mut rng = Rng::new(seed);
    let fitting = names.iter().filter(|name| BYTES.contains(&name.len()));
    let mut seen: HashSet<String> = fitting.take(count).cloned().collect();
    while seen.len() < count {
        let folders: Vec<&str> = names[rng.below(names.len())].split(' ').collect();
        let file: Vec<&str> = names[rng.below(names.len())].split(' ').collect();
        let folders = &folders[..folders.len().min(1 + rng.below(3))];
        let file = &file[file.len().saturating_sub(1 + rng.below(2))..];
        let ending = ENDINGS[rng.below(ENDINGS.len())];
        let path = format!("{}/{}.{ending}", folders.join("/"), file.join("-"));
        if BYTES.contains(&path.len()) {
            seen.insert(path);
        }
    }
    // A hash set's order differs between processes.
    let mut keys: Vec<String> = seen.into_iter().collect();
    keys.sort_unstable();
    rng.shuffle(&mut keys);
    keys
}

/// `count` different paths in random order: files in eight folders, named by 16 hexadecimal digits.
/// 48 of the 64 bytes of a key are those of its folder: hard for heads of the first bytes.
pub fn long_prefixes(count: usize, seed: u64) -> Vec<String> {
    let path = |number| {
        let folder = number % 8;
        format!("/data/storage/projects/team-{folder}/artifacts/objects/{number:016x}")
    };
    random(count, seed).into_iter().map(path).collect()
}

/// The names of all characters whose names are words, in code point order.
fn unicode_names() -> Vec<String> {
    let ends_in_code_point = |name: &str| {
        name.rsplit_once('-').is_some_and(|(_, end)| {
            end.len() >= 4 && end.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let is_a_number = |name: &str| name.starts_with("HANGUL SYLLABLE") || ends_in_code_point(name);
    ('\0'..=char::MAX)
        .filter_map(unicode_names2::name)
        .map(|name| name.to_string())
        .filter(|name| !is_a_number(name))
        .map(|name| name.to_lowercase())
        .collect()
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("it is below 2^32")
}

/// The bucket of `key` in a hash table with `buckets`.
#[inline]
pub(crate) fn bucket_of(key: u64, buckets: usize) -> usize {
    scale(key.wrapping_mul(0x9E37_79B9_7F4A_7C15), buckets)
}
