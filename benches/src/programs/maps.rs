//! Ordered and hashed maps of strings.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};

use crate::rng::Rng;

use super::{Outcome, Scale, live};

/// Different keys of the ordered map.
const USERS: usize = 60_000;

/// A `BTreeMap<String, String>`: inserted into, looked up in, removed from, iterated over, dropped.
pub(super) fn btree_strings(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(6);
        let mut map = BTreeMap::new();
        for step in 0..scale.of(400_000) {
            let key = user(&mut rng);
            match step % 8 {
                0..4 => {
                    let value = format!("{step} {}", "v".repeat(rng.below(60)));
                    if let Some(old) = map.insert(key, value) {
                        sum.add_bytes(old.as_bytes());
                    }
                }
                4..6 => {
                    let found: Option<&String> = map.get(&key);
                    sum.add_bytes(found.map_or("", String::as_str).as_bytes());
                }
                6 => {
                    let next = map.range(key..).next();
                    sum.add_bytes(next.map_or("", |(key, _)| key).as_bytes());
                }
                _ => {
                    let removed: Option<String> = map.remove(&key);
                    sum.add_bytes(removed.unwrap_or_default().as_bytes());
                }
            }
        }
        let copy = map.clone();
        map.retain(|key, _| key.len() % 2 == 0);
        for (key, value) in copy.iter().chain(&map) {
            sum.add_bytes(key.as_bytes());
            sum.add_bytes(value.as_bytes());
        }
        drop(copy);
        drop(map);
    })
}

fn user(rng: &mut Rng) -> String {
    let number = rng.below(live(USERS, 10));
    format!("user:{:x}:{number}", number.wrapping_mul(0x9E37_79B9))
}

/// Different words of the index.
const VOCABULARY: usize = 40_000;

/// Without the random seed of std's default, so that iteration has one order.
type Index = HashMap<String, Vec<u32>, BuildHasherDefault<DefaultHasher>>;

/// An index as a `HashMap<String, Vec<u32>>`: lists that grow, words that go.
pub(super) fn hash_lists(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(7);
        let mut index = Index::default();
        for position in 0..scale.of(1_600_000) {
            let word = word(&mut rng);
            let mark = position.to_le_bytes()[0];
            if rng.below(20) == 0 {
                let positions = index.remove(&word).unwrap_or_default();
                sum.add(positions.iter().map(|&mark| u64::from(mark)).sum());
            } else {
                index.entry(word).or_default().push(u32::from(mark));
            }
        }
        for (word, positions) in &index {
            sum.add_bytes(word.as_bytes());
            sum.add(positions.iter().map(|&mark| u64::from(mark)).sum());
        }
        drop(index);
    })
}

/// A word; low numbers come more often, as frequent words do.
fn word(rng: &mut Rng) -> String {
    let words = live(VOCABULARY, 7);
    let number = rng.below(words).min(rng.below(words));
    let mut word = format!("{number:x}");
    if number.is_multiple_of(3) {
        word.push_str("-and-a-longer-ending-of-it");
    }
    word
}
