//! Sets of keys, the same in every run and on every machine.

use std::collections::HashSet;

use crate::rng::Rng;

/// `count` different numbers, even over all of `u64`, in random order; the largest number is not
/// among them.
pub fn random(count: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    // The generator's step is a bijection of its counter, so no number comes twice.
    std::iter::repeat_with(|| rng.next_u64())
        .filter(|&key| key != u64::MAX)
        .take(count)
        .collect()
}

/// `count` different numbers in random order: runs of 1 to 1024 consecutive ones, and between two
/// runs a gap below 2^10 to 2^50, each power of two as likely as the others.
///
/// Identifiers are like that where blocks of them are given out. Hard for a prefix that all share.
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
        // Their mean is below 2^45, so that 2^18 of them, as 2^27 keys would have, do not overflow.
        next += run as u64 + (rng.next_u64() >> (64 - bits));
    }
    rng.shuffle(&mut keys);
    keys
}

/// `count` different tuples of an account and a time in random order: a hundred times an account on
/// average, in nanoseconds within a year. Accounts are even over `u32`. Hard for heads that hold
/// the first field only.
pub fn events(count: usize, seed: u64) -> Vec<(u32, u64)> {
    const YEAR_NS: usize = 365 * 24 * 3600 * 1_000_000_000;
    let mut rng = Rng::new(seed);
    let accounts: Vec<u32> = (0..count.div_ceil(100))
        .map(|_| small(rng.below(1 << 32)))
        .collect();
    let mut seen = HashSet::with_capacity(count);
    let mut keys = Vec::with_capacity(count);
    while keys.len() < count {
        let key = (
            accounts[rng.below(accounts.len())],
            rng.below(YEAR_NS) as u64,
        );
        if seen.insert(key) {
            keys.push(key);
        }
    }
    keys
}

/// `count` different strings of 8 to 40 bytes in random order: words of a large vocabulary, and
/// paths that are made of them. Hard for comparisons, each of which may miss.
///
/// The words are those of the names of Unicode characters (`musical symbol quarter rest`). First
/// come the names themselves, as far as their lengths fit, then paths such as
/// `musical/symbol/phonetic-extension.rs`: one to three words of a name as folders, and the last
/// one or two of another as a file. `latin/small` has thousands of files, other folders have one.
pub fn words_and_paths(count: usize, seed: u64) -> Vec<String> {
    const BYTES: std::ops::RangeInclusive<usize> = 8..=40;
    const ENDINGS: [&str; 8] = ["rs", "md", "txt", "toml", "html", "json", "png", "c"];
    let names = unicode_names();
    let mut rng = Rng::new(seed);
    let mut seen: HashSet<String> = names
        .iter()
        .filter(|name| BYTES.contains(&name.len()))
        .take(count)
        .cloned()
        .collect();
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
    // A hash set's order is another one in each process.
    let mut keys: Vec<String> = seen.into_iter().collect();
    keys.sort_unstable();
    rng.shuffle(&mut keys);
    keys
}

/// `count` different paths in random order: files in eight folders, named by 16 hexadecimal digits,
/// as caches and stores of objects have them. 48 of the 64 bytes of a key are those of its folder:
/// hard for heads of the first bytes.
pub fn long_prefixes(count: usize, seed: u64) -> Vec<String> {
    random(count, seed)
        .into_iter()
        .map(|number| {
            let folder = number % 8;
            format!("/data/storage/projects/team-{folder}/artifacts/objects/{number:016x}")
        })
        .collect()
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

/// A number that is known to be small.
fn small(number: usize) -> u32 {
    u32::try_from(number).expect("it is below 2^32")
}

/// The bucket of `key` in a hash table with `buckets`, by multiplication and shift.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the high half of the product is below the number of buckets"
)]
pub(crate) fn bucket_of(key: u64, buckets: usize) -> usize {
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}
