//! Insertion, removal, both beside lookups; calls on whole maps; and what maps weigh.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use ctree::CTreeMap;

use super::{KEYS_1M, Maps, WARM_BYTES, against_kinds, few, few_if_quick};
use crate::keys;
use crate::ordered_map::{Key, Kind, OrderedMap, Passes, Updates};
use crate::programs::Scale;
use crate::rivals;
use crate::rivals::maps::{BTREEMAP, BTREEMAP_NAME};
use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::sys::{heap_bytes, resident_bytes, warm_memory};
use crate::timing::{timed, turns};
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Rows, SEED, Workload, wrong_answer};

/// The number of rounds, where each builds all maps.
fn build_rounds(effort: &Effort) -> usize {
    match effort.scale {
        Scale::Quick => 3,
        Scale::Full => effort.process_rounds,
    }
}

/// 2^21 keys, inserted one by one into an empty map in random, ascending and descending order; all
/// of them removed again, in another random order; and the memory of a map whose keys came in
/// random order.
pub(in crate::suites) fn updates_2m(workload: &Workload, effort: &Effort) -> Rows {
    let [insert, weight, remove] = ["insert_random_2m", "bytes_per_key_2m", "remove_random_2m"];
    warm_memory(WARM_BYTES);
    let kinds = few_if_quick(rivals::integer_maps(), effort);
    let mut keys = keys::random(KEYS_2M, SEED);
    let wants = |part| effort.wants(workload, part);
    let mut comparisons = Vec::new();
    // First, in a young process.
    if wants(weight) {
        let bytes = resident_bytes_per_key(weight, &kinds, &keys)?;
        comparisons.extend(against_kinds(weight, &kinds, &bytes, "B"));
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

/// Resident bytes for each key of a map of each kind.
///
/// Counting requests to the allocator would leave out headers, rounding and whole pages of arenas.
/// All maps live until the last is weighed, so none is built in memory that another one freed.
fn resident_bytes_per_key(
    part: &str,
    kinds: &[Kind<u64>],
    keys: &[u64],
) -> Result<Vec<Rounds>, Failure> {
    let (mut maps, mut bytes, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for kind in kinds {
        let before = resident_bytes();
        let mut map = (kind.empty)();
        sums.push(map.insert_all(keys));
        let taken = resident_bytes().saturating_sub(before) as f64;
        bytes.push(Rounds::once(taken / keys.len() as f64));
        maps.push(map);
    }
    agree(part, kinds, &sums)?;
    Ok(bytes)
}

/// In each round, builds each kind of map from `keys` and, where that is measured, removes keys in
/// another order.
fn insert_and_remove(
    insert: &str,
    remove: Option<(&str, &[u64])>,
    kinds: &[Kind<u64>],
    keys: &[u64],
    effort: &Effort,
) -> Rows {
    let rounds = build_rounds(effort);
    let mut inserts: Vec<Vec<Duration>> = vec![Vec::new(); kinds.len()];
    let mut removals = inserts.clone();
    let mut sums = vec![0_u64; kinds.len()];
    for which in turns(rounds, kinds.len()) {
        let mut map: Box<dyn Passes<u64>> = (kinds[which].empty)();
        let (time, mut sum) = timed(|| map.insert_all(keys));
        inserts[which].push(time);
        if let Some((_, keys)) = remove {
            let (time, removed) = timed(|| map.remove_all(keys));
            removals[which].push(time);
            sum = sum.wrapping_add(removed);
        }
        // What was not removed is left.
        sums[which] = sum
            .wrapping_add(map.iterate())
            .wrapping_add(sums[which].rotate_left(1));
    }
    agree(insert, kinds, &sums)?;
    let parts = [
        Some((insert, inserts)),
        remove.map(|(part, _)| (part, removals)),
    ];
    let rows = parts.into_iter().flatten().flat_map(|(part, times)| {
        let times = times
            .iter()
            .map(|times| Rounds::of_times(times, keys.len()));
        against_kinds(part, kinds, &times.collect::<Vec<_>>(), "ns")
    });
    Ok(rows.collect())
}

/// All maps must have given the same answers as the first.
fn agree<K>(part: &str, kinds: &[Kind<K>], sums: &[u64]) -> Result<(), Failure> {
    let differs = kinds.iter().zip(sums).find(|&(_, sum)| *sum != sums[0]);
    differs.map_or(Ok(()), |(kind, _)| Err(wrong_answer(part, kind.name)))
}

/// A map of 2^21 keys that keeps its size: half of the operations are lookups, the others insert
/// and remove in turns. See [`Updates`].
pub(in crate::suites) fn mixed_2m(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    let pairs = effort.lookups / 8;
    let mut keys = keys::random(KEYS_2M + pairs, SEED);
    let arriving = keys.split_off(KEYS_2M);
    let kinds = few_if_quick(rivals::integer_maps(), effort);
    let mut maps = Maps::with_keys(workload, effort, kinds, &keys);
    let mut rng = Rng::new(SEED);
    rng.shuffle(&mut keys);
    let leaving = keys.split_off(KEYS_2M - pairs);
    let updates = Updates {
        queries: (0..4 * pairs)
            .map(|_| keys[rng.below(keys.len())])
            .collect(),
        leaving,
        arriving,
    };
    maps.measure(workload.name, updates.operations(), |map| {
        map.mixed(&updates)
    })
}

/// The calls on whole maps, of either map.
trait Whole<K>: OrderedMap<K> + Clone {
    fn split_off(&mut self, key: &K) -> Self;
    fn append(&mut self, other: &mut Self);
}

macro_rules! whole {
    ($($map:ident)*) => {$(
        impl<K: Key> Whole<K> for $map<K, u64> {
            fn split_off(&mut self, key: &K) -> Self {
                $map::split_off(self, key)
            }

            fn append(&mut self, other: &mut Self) {
                $map::append(self, other);
            }
        }
    )*};
}

whole!(CTreeMap BTreeMap);

/// The time of a call on a new map of `keys`, and a sum over the entries of all maps that it left.
fn time_of_call<K: Key, M: Whole<K>>(part: &str, keys: &[K], others: &[K]) -> (Duration, u64) {
    let filled = |keys: &[K]| {
        let mut map = M::default();
        map.insert_all(keys);
        map
    };
    let (mut map, mut other) = (filled(keys), filled(others));
    let (time, made) = timed(|| match part {
        "split_off_1m" => map.split_off(&others[0]),
        "append_1m" => {
            map.append(&mut other);
            M::default()
        }
        _ => black_box(&map).clone(),
    });
    let left = map.iterate().rotate_left(1).wrapping_add(made.iterate());
    (time, left)
}

/// Times a call on both maps that have it, in turns.
fn measure_call<K: Key>(
    part: &str,
    effort: &Effort,
    keys: &[K],
    others: &[K],
) -> Result<Comparison, Failure> {
    let mut expected = None;
    let times = Rounds::in_turns(build_rounds(effort), 2, keys.len(), |which| {
        let (time, sum) = match which {
            0 => time_of_call::<K, CTreeMap<K, u64>>(part, keys, others),
            _ => time_of_call::<K, BTreeMap<K, u64>>(part, keys, others),
        };
        match *expected.get_or_insert(sum) == sum {
            true => Ok(time),
            false => Err(wrong_answer(part, BTREEMAP_NAME)),
        }
    })?;
    let name = format!("{part}_vs_{BTREEMAP}");
    let [ours, theirs] = [&times[0], &times[1]];
    Ok(Comparison::new(name, BTREEMAP_NAME, "ns", ours, theirs))
}

/// Maps of 2^20 keys, inserted one by one in random order: `split_off` in the middle, `clone`, also
/// of strings, and `append` of as many other keys.
pub(in crate::suites) fn whole_maps(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    let wants = |part| effort.wants(workload, part);
    let mut comparisons = Vec::new();
    let mut keys = keys::random(2 * KEYS_1M, SEED);
    let others = keys.split_off(KEYS_1M);
    let mut sorted = keys.clone();
    let middle = *sorted.select_nth_unstable(KEYS_1M / 2).1;
    for (part, others) in [
        ("split_off_1m", &[middle][..]),
        ("clone_1m", &[]),
        ("append_1m", &others[..]),
    ] {
        if wants(part) {
            comparisons.push(measure_call(part, effort, &keys, others)?);
        }
    }
    if wants("clone_string_1m") {
        let mut keys = keys::words_and_paths(KEYS_1M, SEED);
        Rng::new(SEED).shuffle(&mut keys);
        comparisons.push(measure_call("clone_string_1m", effort, &keys, &[])?);
    }
    Ok(comparisons)
}

/// The bytes that each kind's `make` leaves allocated, less `others`, for one of `count`. The
/// system's malloc counts them: headers and rounding included, freed memory that it keeps left out.
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
    bytes.map_or_else(Vec::new, |bytes| against_kinds(part, kinds, &bytes, "B"))
}

/// Bytes of a map value; of a map of one entry, its value included; of a map of 2^20 entries after
/// nine of ten were removed, an entry; and of a map of 2^20 strings, inserted in random order, an
/// entry without the strings' own bytes.
pub(in crate::suites) fn memory(workload: &Workload, effort: &Effort) -> Rows {
    let wants = |part| effort.wants(workload, part);
    let mut comparisons = Vec::new();
    for (part, keys) in [
        ("memory_map_value", vec![]),
        ("memory_one_entry", vec![1_u64]),
    ] {
        if wants(part) {
            let groups = vec![keys; 1 << 12];
            let kinds = few(rivals::maps(), effort);
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
        let kinds = few(rivals::integer_maps(), effort);
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
        let kinds = few(rivals::maps(), effort);
        let with_keys = |kind: &Kind<String>| kind.with_keys(&keys);
        comparisons.extend(weigh("memory_string_1m", &kinds, own, KEYS_1M, with_keys));
    }
    Ok(comparisons)
}
