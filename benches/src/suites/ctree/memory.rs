//! What maps hold, as the system's malloc counts it: headers and rounding included, freed memory
//! that malloc keeps left out.

use crate::rng::Rng;

use super::{Comparison, Effort, Failure, SEED, SUITE};
use super::{against_each, alone, few, measures};
use crate::keys;
use crate::ordered_map::{Key, Kind};
use crate::rivals;
use crate::rounds::Rounds;
use crate::sys::heap_bytes;
use crate::workload::Workload;

/// Bytes of a map value; of a map of one entry, its value included; of a map of 2^20 entries after
/// nine of ten were removed, an entry; and of a map of 2^20 strings, inserted in random order, an
/// entry without the strings' own bytes.
pub const MEMORY: Workload = Workload {
    suite: SUITE,
    name: NAME,
    also: &[MAP_VALUE, ONE_ENTRY, REMOVED, STRINGS],
    run: |effort| alone(NAME, effort, memory),
};

const NAME: &str = "memory_1m";
const MAP_VALUE: &str = "memory_map_value";
const ONE_ENTRY: &str = "memory_one_entry";
const REMOVED: &str = "memory_removed_1m";
const STRINGS: &str = "memory_string_1m";

const KEYS_1M: usize = 1 << 20;
/// Small maps that are weighed together.
const MAPS: usize = 1 << 12;

/// The bytes that each kind's `make` leaves allocated, less `others`, for one of `count`.
fn weigh<K, T>(
    part: &'static str,
    kinds: Vec<Kind<K>>,
    others: u64,
    count: usize,
    make: impl Fn(&Kind<K>) -> T,
) -> Vec<Comparison> {
    let figures: Option<Vec<Rounds>> = kinds
        .iter()
        .map(|kind| {
            let before = heap_bytes()?;
            let made = make(kind);
            let bytes = heap_bytes()?.saturating_sub(before + others);
            drop(made);
            Some(Rounds::once(bytes as f64 / count as f64))
        })
        .collect();
    // Where malloc does not tell, there are no rows.
    figures.map_or_else(Vec::new, |figures| {
        against_each(part, &kinds, &figures, "B")
    })
}

fn small_maps<K: Key>(part: &'static str, effort: &Effort, groups: &[Vec<K>]) -> Vec<Comparison> {
    let kinds = few(rivals::maps::<K>(), effort);
    weigh(part, kinds, 0, groups.len(), |kind| kind.many(groups))
}

fn memory(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let wants = |part| measures(effort, NAME, part);
    let mut comparisons = Vec::new();
    if wants(MAP_VALUE) {
        let none = vec![Vec::<u64>::new(); MAPS];
        comparisons.extend(small_maps(MAP_VALUE, effort, &none));
    }
    if wants(ONE_ENTRY) {
        comparisons.extend(small_maps(ONE_ENTRY, effort, &vec![vec![1_u64]; MAPS]));
    }
    if wants(REMOVED) {
        let keys = keys::random(KEYS_1M, SEED);
        let mut removals = keys.clone();
        Rng::new(SEED).shuffle(&mut removals);
        removals.truncate(KEYS_1M / 10 * 9);
        let left = KEYS_1M - removals.len();
        let kinds = few(rivals::integer_maps(), effort);
        comparisons.extend(weigh(REMOVED, kinds, 0, left, |kind| {
            let mut map = kind.with_keys(&keys);
            map.remove_all(&removals);
            map
        }));
    }
    if wants(STRINGS) {
        let mut keys = keys::words_and_paths(KEYS_1M, SEED);
        Rng::new(SEED).shuffle(&mut keys);
        let mut copies = Vec::with_capacity(keys.len());
        let empty = heap_bytes().unwrap_or(0);
        copies.extend(keys.iter().cloned());
        let own = heap_bytes().unwrap_or(0) - empty;
        drop(copies);
        let kinds = few(rivals::maps(), effort);
        comparisons.extend(weigh(STRINGS, kinds, own, KEYS_1M, |kind| {
            kind.with_keys(&keys)
        }));
    }
    Ok(comparisons)
}
