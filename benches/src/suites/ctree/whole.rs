//! What a call does to a whole map: a clone, a cut, a merge. Ours and std's alone have all three.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use crate::rng::Rng;
use crate::timing::timed;
use ctree::CTreeMap;

use super::{Comparison, Effort, Failure, SEED, SUITE, WARM_BYTES};
use super::{alone, measures, warm_memory};
use crate::keys;
use crate::ordered_map::{Key, OrderedMap, Passes};
use crate::programs::Scale;
use crate::rivals::btreemap;
use crate::rounds::Rounds;
use crate::workload::{Workload, WrongAnswer};

/// Maps of 2^20 keys, inserted one by one in random order: `split_off` in the middle, `clone`, also
/// of strings, and `append` of as many other keys.
pub const WHOLE_MAPS_1M: Workload = Workload {
    suite: SUITE,
    name: NAME,
    also: &[SPLIT_OFF, CLONE, CLONE_STRINGS, APPEND],
    run: |effort| alone(NAME, effort, whole_maps),
};

const NAME: &str = "whole_maps_1m";
const SPLIT_OFF: &str = "split_off_1m";
const CLONE: &str = "clone_1m";
const CLONE_STRINGS: &str = "clone_string_1m";
const APPEND: &str = "append_1m";

const KEYS_1M: usize = 1 << 20;

/// The calls that are timed, of either map.
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
fn time_of<K: Key, M: Whole<K>>(part: &str, keys: &[K], others: &[K]) -> (Duration, u64) {
    let filled = |keys: &[K]| {
        let mut map = M::default();
        map.insert_all(keys);
        map
    };
    let (mut map, mut other) = (filled(keys), filled(others));
    let (time, made) = timed(|| match part {
        SPLIT_OFF => map.split_off(&others[0]),
        APPEND => {
            map.append(&mut other);
            M::default()
        }
        _ => black_box(&map).clone(),
    });
    (
        time,
        map.iterate().rotate_left(1).wrapping_add(made.iterate()),
    )
}

/// Times a call on both maps, in turns.
fn measure<K: Key>(
    part: &'static str,
    effort: &Effort,
    keys: &[K],
    others: &[K],
) -> Result<Comparison, Failure> {
    let rounds = match effort.scale {
        Scale::Quick => 3,
        Scale::Full => effort.process_rounds,
    };
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let (time, sum) = time_of::<K, CTreeMap<K, u64>>(part, keys, others);
        let (their_time, their_sum) = time_of::<K, BTreeMap<K, u64>>(part, keys, others);
        if sum != their_sum {
            return Err(Failure::Answer(WrongAnswer {
                workload: part,
                who: btreemap::NAME.to_owned(),
            }));
        }
        times[0].push(time);
        times[1].push(their_time);
    }
    let [ours, theirs] = times.map(|times| Rounds::of_times(times).per_operation(keys.len()));
    let name = format!("{part}_vs_{}", btreemap::SLUG);
    Ok(Comparison::new(
        SUITE,
        name,
        btreemap::NAME,
        "ns",
        &ours,
        &theirs,
    ))
}

fn whole_maps(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    warm_memory(WARM_BYTES);
    let wants = |part| measures(effort, NAME, part);
    let mut comparisons = Vec::new();
    let mut keys = keys::random(2 * KEYS_1M, SEED);
    let others = keys.split_off(KEYS_1M);
    let mut sorted = keys.clone();
    let middle = *sorted.select_nth_unstable(KEYS_1M / 2).1;
    for (part, others) in [
        (SPLIT_OFF, &[middle][..]),
        (CLONE, &[]),
        (APPEND, &others[..]),
    ] {
        if wants(part) {
            comparisons.push(measure(part, effort, &keys, others)?);
        }
    }
    if wants(CLONE_STRINGS) {
        let mut keys = keys::words_and_paths(KEYS_1M, SEED);
        Rng::new(SEED).shuffle(&mut keys);
        comparisons.push(measure(CLONE_STRINGS, effort, &keys, &[])?);
    }
    Ok(comparisons)
}
