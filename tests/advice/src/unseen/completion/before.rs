//! A search field that completes what was typed so far, the most popular queries first.

use fastrand::Rng;
use std::collections::BTreeMap;

const SYLLABLES: [&str; 16] = [
    "ba", "con", "de", "el", "fi", "gra", "ho", "in", "ka", "lo", "mer", "no", "pro", "ra", "ste",
    "ti",
];

fn query(random: &mut Rng) -> String {
    let syllables = random.usize(3..8);
    let syllable = |_| SYLLABLES[random.usize(..16).min(random.usize(..20))];
    (0..syllables).map(syllable).collect()
}

/// Queries with how often they were asked, in the order in which they came.
pub(super) fn log(size: usize) -> Vec<(String, u64)> {
    let mut random = Rng::with_seed(115);
    let entry = |_| (query(&mut random), random.u64(1..1000));
    (0..size).map(entry).collect()
}

/// The best of the queries that begin with what was typed, of the first fifty.
pub(super) fn best<'a>(
    typed: &str,
    queries: impl Iterator<Item = (&'a String, &'a u64)>,
) -> Option<(&'a String, &'a u64)> {
    let fitting = queries.take_while(|entry| entry.0.starts_with(typed));
    fitting.take(50).max_by_key(|entry| entry.1)
}

/// Users type until the first completion is what they mean, or all of it.
pub(super) fn type_all<'a>(
    size: usize,
    complete: impl Fn(&str) -> Option<(&'a String, &'a u64)>,
) -> u64 {
    let mut random = Rng::with_seed(116);
    let mut sum = 0_u64;
    for _ in 0..size / 10 {
        let meant = query(&mut random);
        for end in 2..=meant.len() {
            let Some((best, count)) = complete(&meant[..end]) else {
                break;
            };
            sum = sum.rotate_left(1) ^ count ^ best.len() as u64;
            if *best == meant {
                break;
            }
        }
    }
    sum
}

pub fn run(size: usize) -> u64 {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (query, count) in log(size) {
        *counts.entry(query).or_default() += count;
    }
    type_all(size, |typed| best(typed, counts.range(typed.to_owned()..)))
}
