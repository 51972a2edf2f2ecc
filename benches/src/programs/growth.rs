//! Vectors and strings that grow, text that is taken apart and put together.

use std::fmt::Write as _;
use std::hint::black_box;

use crate::rng::Rng;

use super::{Outcome, Scale, live};

/// Vectors that grow by turns.
const VECTORS: usize = 2000;
/// Items that they get in one generation, all together.
const PUSHES: usize = 500_000;
/// Items of a very large vector: 32 MiB.
const LARGE_ITEMS: usize = 4 << 20;
/// Bytes of a large string.
const TEXT_BYTES: usize = 4 << 20;

/// Many vectors that grow by turns, some very large ones, and strings that grow line by line.
pub(super) fn growing_vectors(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(4);
        for _ in 0..scale.of(12) {
            let mut vectors: Vec<Vec<u64>> = vec![Vec::new(); VECTORS];
            for item in 0..live(PUSHES, 44) as u64 {
                // The smaller of two draws: a few vectors grow long, most stay short.
                let index = rng.below(VECTORS).min(rng.below(VECTORS));
                let index = index * index / VECTORS;
                vectors[index].push(item);
            }
            for vector in &vectors {
                sum.add(vector.iter().sum());
            }
            drop(vectors);

            let mut large = Vec::new();
            for item in 0..live(LARGE_ITEMS, 44) as u64 {
                large.push(black_box(item));
            }
            sum.add(large[large.len() / 2]);
            large.truncate(1000);
            large.shrink_to_fit();
            sum.add(large.iter().sum());

            let mut text = String::new();
            while text.len() < live(TEXT_BYTES, 44) {
                text.push_str("another line of some forty characters..\n");
            }
            sum.add_bytes(text.as_bytes());
        }
    })
}

/// Lines made with `format!`, split, joined, collected, changed.
pub(super) fn string_building(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(5);
        let mut recent: Vec<String> = vec![String::new(); live(1000, 1)];
        for number in 0..scale.of(300_000) {
            let line = format!(
                "{number};{:x};{};{}",
                rng.next_u64(),
                WORDS[rng.below(WORDS.len())],
                "*".repeat(rng.below(40))
            );
            let mut fields: Vec<String> = line.split(';').map(str::to_owned).collect();
            fields.reverse();
            fields[1].make_ascii_uppercase();
            let joined = fields.join(", ");
            let initials: String = joined
                .split(", ")
                .filter_map(|field| field.chars().next())
                .collect();
            let mut summary = joined.replace(", ", " | ");
            write!(summary, " [{initials}]").expect("a String takes all that is written to it");
            sum.add_bytes(summary.as_bytes());
            let place = rng.below(recent.len());
            sum.add_bytes(std::mem::replace(&mut recent[place], summary).as_bytes());
        }
    })
}

/// Words of the lines.
const WORDS: &[&str] = &[
    "block",
    "hint",
    "neighbourhood",
    "a",
    "placement of nodes",
    "tree",
    "layout",
];
