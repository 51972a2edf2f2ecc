//! Insertion, removal, both beside lookups; and what maps weigh.

use std::time::Duration;

use super::{FEW, KEYS_1M, Maps, Parts, WARM_BYTES, few_if_quick, wanted};
use crate::keys;
use crate::ordered_map::{Kind, Updates};
use crate::rivals;
use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::sys::{heap_bytes, resident_bytes, warm_memory};
use crate::timing::{timed, turns};
use crate::workload::{
    Comparison, Effort, KEYS_2M, Rows, SEED, Side, Workload, against_each, agree,
};

/// Ours, the first of `figures`, against the others; they are in the order of `kinds`.
fn against_kinds<K>(
    part: &str,
    unit: &str,
    kinds: &[Kind<K>],
    figures: Vec<Rounds>,
) -> Vec<Comparison> {
    let sides = kinds.iter().zip(figures);
    let sides = sides.map(|(kind, rounds)| Side::new(kind.slug, kind.name, rounds));
    let sides: Vec<Side<'_>> = sides.collect();
    against_each(part, unit, &sides[0].rounds, &sides[1..])
}

/// 2^21 keys, inserted one by one in random, ascending and descending order, and removed in another
/// random order; and the memory of a map.
pub(in crate::suites) fn updates_2m(workload: &Workload, effort: &Effort) -> Rows {
    let [insert, weight, remove] = ["insert_random_2m", "bytes_per_key_2m", "remove_random_2m"];
    warm_memory(WARM_BYTES);
    let kinds = few_if_quick(rivals::integer_maps(), effort);
    let mut keys = keys::random(KEYS_2M, SEED);
    let wants = |part| effort.wants(workload, part);
    let mut comparisons = Vec::new();
    // First, in a young process.
    if wants(weight) {
        comparisons.extend(resident_bytes_per_key(weight, &kinds, &keys)?);
    }
    if wants(insert) || wants(remove) {
        let mut removals = keys.clone();
        Rng::new(SEED).shuffle(&mut removals);
        let removals = wants(remove).then_some((remove, &*removals));
        comparisons.extend(insert_and_remove(insert, removals, &kinds, &keys, effort)?);
    }
    keys.sort_unstable();
    for part in ["insert_sorted_2m", "insert_reverse_2m"] {
        if wants(part) {
            comparisons.extend(insert_and_remove(part, None, &kinds, &keys, effort)?);
        }
        keys.reverse();
    }
    Ok(comparisons)
}

/// Counting requests would leave out headers, rounding and whole pages of arenas. All maps live
/// until the last is weighed, so none is built in memory that another one freed.
fn resident_bytes_per_key(part: &str, kinds: &[Kind<u64>], keys: &[u64]) -> Rows {
    let (mut maps, mut bytes, mut expected) = (Vec::new(), Vec::new(), None);
    for kind in kinds {
        let before = resident_bytes();
        let mut map = (kind.empty)();
        agree(&mut expected, map.insert_all(keys), part, kind.name)?;
        let taken = resident_bytes().saturating_sub(before) as f64;
        bytes.push(Rounds::once(taken / keys.len() as f64));
        maps.push(map);
    }
    Ok(against_kinds(part, "B", kinds, bytes))
}

fn insert_and_remove(
    insert: &str,
    remove: Option<(&str, &[u64])>,
    kinds: &[Kind<u64>],
    keys: &[u64],
    effort: &Effort,
) -> Rows {
    let mut inserts: Vec<Vec<Duration>> = vec![Vec::new(); kinds.len()];
    let mut removals = inserts.clone();
    let mut sums = vec![0_u64; kinds.len()];
    for which in turns(effort.process_rounds, kinds.len()) {
        let mut map = (kinds[which].empty)();
        let (time, mut sum) = timed(|| map.insert_all(keys));
        inserts[which].push(time);
        if let Some((_, keys)) = remove {
            let (time, removed) = timed(|| map.remove_all(keys));
            removals[which].push(time);
            sum = sum.wrapping_add(removed);
        }
        // What was not removed is left.
        sum = sum.wrapping_add(map.iterate());
        sums[which] = sum.wrapping_add(sums[which].rotate_left(1));
    }
    let mut expected = None;
    for (kind, sum) in kinds.iter().zip(sums) {
        agree(&mut expected, sum, insert, kind.name)?;
    }
    let rows = |part, times: Vec<Vec<Duration>>| {
        let rounds = |times: &Vec<_>| Rounds::of_times(times, keys.len());
        against_kinds(part, "ns", kinds, times.iter().map(rounds).collect())
    };
    let mut comparisons = rows(insert, inserts);
    if let Some((remove, _)) = remove {
        comparisons.extend(rows(remove, removals));
    }
    Ok(comparisons)
}

/// A map that keeps its size: half of the operations are lookups, the others [`Updates`].
pub(in crate::suites) fn mixed_2m(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    let pairs = effort.lookups / 8;
    let mut keys = keys::random(KEYS_2M + pairs, SEED);
    let arriving = keys.split_off(KEYS_2M);
    let kinds = few_if_quick(rivals::integer_maps(), effort);
    let mut maps = Maps::with_keys(Parts::new(workload, effort), kinds, &keys);
    let mut rng = Rng::new(SEED);
    rng.shuffle(&mut keys);
    let leaving = keys.split_off(KEYS_2M - pairs);
    let queries = (0..4 * pairs)
        .map(|_| keys[rng.below(keys.len())])
        .collect();
    let updates = Updates {
        queries,
        leaving,
        arriving,
    };
    maps.measure(workload.name, updates.operations(), |map| {
        map.mixed(&updates)
    })?;
    Ok(maps.parts.rows)
}

/// The bytes that `make` leaves allocated, less `others`, for one of `count`. The system's malloc
/// counts them: headers and rounding included, freed memory that it keeps left out.
fn weigh<K, T>(
    part: &str,
    kinds: &[Kind<K>],
    others: u64,
    count: usize,
    make: impl Fn(&Kind<K>) -> T,
) -> Vec<Comparison> {
    let bytes = kinds.iter().map(|kind| {
        let before = heap_bytes()?;
        let made = make(kind);
        let bytes = heap_bytes()?.saturating_sub(before + others);
        drop(made);
        Some(Rounds::once(bytes as f64 / count as f64))
    });
    // Where malloc does not tell, there are no rows.
    let bytes: Option<Vec<Rounds>> = bytes.collect();
    bytes.map_or_else(Vec::new, |bytes| against_kinds(part, "B", kinds, bytes))
}

/// Bytes of a map value; of a map of one entry; of an entry after nine of ten were removed; and of
/// an entry of strings without the strings' own bytes.
pub(in crate::suites) fn memory(workload: &Workload, effort: &Effort) -> Rows {
    let wants = |part| effort.wants(workload, part);
    let mut comparisons = Vec::new();
    for (part, keys) in [
        ("memory_map_value", vec![]),
        ("memory_one_entry", vec![1_u64]),
    ] {
        if wants(part) {
            let groups = vec![keys; 1 << 12];
            let kinds = wanted(rivals::maps(), effort, FEW);
            let rows = weigh(part, &kinds, 0, groups.len(), |kind| (kind.many)(&groups));
            comparisons.extend(rows);
        }
    }
    if wants("memory_removed_1m") {
        let keys = keys::random(KEYS_1M, SEED);
        let mut removals = keys.clone();
        Rng::new(SEED).shuffle(&mut removals);
        removals.truncate(KEYS_1M / 10 * 9);
        let left = KEYS_1M - removals.len();
        let kinds = wanted(rivals::integer_maps(), effort, FEW);
        comparisons.extend(weigh("memory_removed_1m", &kinds, 0, left, |kind| {
            let mut map = kind.with_keys(&keys);
            map.remove_all(&removals);
            map
        }));
    }
    if wants("memory_string_1m") {
        let mut keys = keys::words_and_paths(KEYS_1M, SEED);
        Rng::new(SEED).shuffle(&mut keys);
        let mut copies = Vec::with_capacity(keys.len());
        let empty = heap_bytes().unwrap_or(0);
        copies.extend(keys.iter().cloned());
        let own = heap_bytes().unwrap_or(0) - empty;
        drop(copies);
        let kinds = wanted(rivals::maps(), effort, FEW);
        let with_keys = |kind: &Kind<String>| kind.with_keys(&keys);
        comparisons.extend(weigh("memory_string_1m", &kinds, own, KEYS_1M, with_keys));
    }
    Ok(comparisons)
}
