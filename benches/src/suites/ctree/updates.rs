//! Insertion, removal, both beside lookups, and what the maps weigh.

use std::time::Duration;

use crate::rng::Rng;
use crate::timing::timed;

use super::{Comparison, Effort, Failure, Maps, SEED, SUITE, WARM_BYTES};
use super::{against_each, alone, few_if_quick, measures, warm_memory};
use crate::keys;
use crate::ordered_map::{Kind, Passes, Updates};
use crate::programs::Scale;
use crate::rivals;
use crate::rounds::Rounds;
use crate::sys::resident_bytes;
use crate::workload::{KEYS_2M, Workload, WrongAnswer};

/// 2^21 keys, inserted one by one into an empty map in random, ascending and descending order; all
/// of them removed again, in another random order than they came in; and the memory of a map whose
/// keys came in random order.
pub const UPDATES_2M: Workload = Workload {
    suite: SUITE,
    name: UPDATES_2M_NAME,
    also: &[
        INSERT_RANDOM,
        BYTES_PER_KEY,
        REMOVE_RANDOM,
        INSERT_SORTED,
        INSERT_REVERSE,
    ],
    run: |effort| alone(UPDATES_2M_NAME, effort, updates_2m),
};

/// A map of 2^21 keys that keeps its size: half of the operations are lookups, the others insert
/// and remove in turns. See [`Updates`].
pub const MIXED_2M: Workload = Workload {
    suite: SUITE,
    name: MIXED_50_50,
    also: &[],
    run: |effort| alone(MIXED_50_50, effort, mixed_2m),
};

const UPDATES_2M_NAME: &str = "updates_2m";
const INSERT_RANDOM: &str = "insert_random_2m";
const BYTES_PER_KEY: &str = "bytes_per_key_2m";
const REMOVE_RANDOM: &str = "remove_random_2m";
const INSERT_SORTED: &str = "insert_sorted_2m";
const INSERT_REVERSE: &str = "insert_reverse_2m";
const MIXED_50_50: &str = "mixed_50_50_2m";

fn updates_2m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    warm_memory(WARM_BYTES);
    let kinds = few_if_quick(rivals::integer_maps(), effort);
    let mut keys = keys::random(KEYS_2M, SEED);
    let mut comparisons = Vec::new();
    // First, in a young process.
    if measures(effort, UPDATES_2M_NAME, BYTES_PER_KEY) {
        let bytes = weigh(&kinds, &keys)?;
        comparisons.extend(against_each(BYTES_PER_KEY, &kinds, &bytes, "B"));
    }
    let wants = |part| measures(effort, UPDATES_2M_NAME, part);
    if wants(INSERT_RANDOM) || wants(REMOVE_RANDOM) {
        let mut removals = keys.clone();
        Rng::new(SEED).shuffle(&mut removals);
        let parts = Parts {
            insert: INSERT_RANDOM,
            remove: wants(REMOVE_RANDOM).then_some((REMOVE_RANDOM, &removals)),
        };
        comparisons.extend(parts.measure(&kinds, &keys, effort)?);
    }
    keys.sort_unstable();
    for (part, reversed) in [(INSERT_SORTED, false), (INSERT_REVERSE, true)] {
        if wants(part) {
            if reversed {
                keys.reverse();
            }
            let parts = Parts {
                insert: part,
                remove: None,
            };
            comparisons.extend(parts.measure(&kinds, &keys, effort)?);
        }
    }
    Ok(comparisons)
}

/// Resident bytes for each key of a map of each kind.
///
/// What the allocator was asked for would be less than the truth: it leaves out headers and
/// rounding of a malloc, whole pages of an arena, and all memory that a map takes from the
/// operating system itself. The process is young and all maps live until the last is weighed, so
/// none is built in what another one gave back.
fn weigh(kinds: &[Kind<u64>], keys: &[u64]) -> Result<Vec<Rounds>, Failure> {
    let mut maps = Vec::new();
    let mut bytes = Vec::new();
    let mut sums = Vec::new();
    for kind in kinds {
        let before = resident_bytes();
        let mut map = kind.empty();
        sums.push(map.insert_all(keys));
        let taken = resident_bytes().saturating_sub(before) as f64;
        bytes.push(Rounds::once(taken / keys.len() as f64));
        maps.push(map);
    }
    agree(BYTES_PER_KEY, kinds, &sums)?;
    Ok(bytes)
}

/// What is timed of the life of a map.
struct Parts<'a> {
    insert: &'static str,
    /// And the order in which the keys go.
    remove: Option<(&'static str, &'a [u64])>,
}

impl Parts<'_> {
    /// In each round each kind of map is built anew from `keys` and, where that is a part, emptied
    /// again.
    fn measure(
        &self,
        kinds: &[Kind<u64>],
        keys: &[u64],
        effort: &Effort,
    ) -> Result<Vec<Comparison>, Failure> {
        let rounds = match effort.scale {
            Scale::Quick => 3,
            Scale::Full => effort.process_rounds,
        };
        let mut inserts: Vec<Vec<Duration>> = vec![Vec::new(); kinds.len()];
        let mut removals = inserts.clone();
        for round in 0..rounds {
            let mut sums = vec![0; kinds.len()];
            for turn in 0..kinds.len() {
                // Each round begins with another one, so that none always comes after the same
                // neighbour.
                let which = (round + turn) % kinds.len();
                let mut map: Box<dyn Passes<u64>> = kinds[which].empty();
                let (time, sum) = timed(|| map.insert_all(keys));
                inserts[which].push(time);
                sums[which] = sum;
                if let Some((_, keys)) = self.remove {
                    let (time, sum) = timed(|| map.remove_all(keys));
                    removals[which].push(time);
                    sums[which] = sums[which].wrapping_add(sum);
                }
                // Whatever was not removed is left.
                sums[which] = sums[which].wrapping_add(map.iterate());
            }
            agree(self.insert, kinds, &sums)?;
        }
        let rows = |part: &str, times: Vec<Vec<Duration>>| {
            let each = |times| Rounds::of_times(times).per_operation(keys.len());
            let figures: Vec<Rounds> = times.into_iter().map(each).collect();
            against_each(part, kinds, &figures, "ns")
        };
        let mut comparisons = rows(self.insert, inserts);
        if let Some((part, _)) = self.remove {
            comparisons.extend(rows(part, removals));
        }
        Ok(comparisons)
    }
}

/// All maps must have given the same answers as the first.
fn agree<K>(part: &'static str, kinds: &[Kind<K>], sums: &[u64]) -> Result<(), Failure> {
    let differs = kinds.iter().zip(sums).find(|&(_, sum)| *sum != sums[0]);
    differs.map_or(Ok(()), |(kind, _)| {
        Err(Failure::Answer(WrongAnswer {
            workload: part,
            who: kind.name.to_owned(),
        }))
    })
}

fn mixed_2m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    warm_memory(WARM_BYTES);
    let pairs = effort.lookups / 8;
    let mut keys = keys::random(KEYS_2M + pairs, SEED);
    let arriving = keys.split_off(KEYS_2M);
    let kinds = few_if_quick(rivals::integer_maps(), effort);
    let mut maps = Maps::with_keys(MIXED_50_50, effort, kinds, &keys);
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
    maps.measure(MIXED_50_50, updates.len(), |map| map.mixed(&updates))
}
