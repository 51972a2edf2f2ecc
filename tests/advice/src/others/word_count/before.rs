//! How often each word of a text is there.

use fastrand::Rng;
use std::collections::BTreeMap;

/// A text of words that are used very differently often.
pub(super) fn text(size: usize) -> String {
    let mut random = Rng::with_seed(73);
    let mut text = String::new();
    for _ in 0..size {
        let number = 1 + (4000.0 * random.f64().powi(4)) as u32;
        let word = number.wrapping_mul(2_654_435_761) >> 16;
        text.push_str(["re", "un", "over", ""][word as usize % 4]);
        for shift in 0..3 {
            let letter = (word >> (2 + 3 * shift)) % 8;
            text.push_str(["an", "e", "li", "or", "st", "u", "m", "k"][letter as usize]);
        }
        text.push(if number.is_multiple_of(20) { '\n' } else { ' ' });
    }
    text
}

pub(super) fn checksum<'t>(counts: impl Iterator<Item = (&'t String, &'t usize)>) -> u64 {
    counts.fold(0, |sum: u64, (word, &count)| {
        sum.rotate_left(3) ^ count as u64 ^ (word.len() as u64) << 40
    })
}

pub fn run(size: usize) -> u64 {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in text(size).lines() {
        for word in line.split_whitespace() {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    checksum(counts.iter())
}
