//! Calls on whole maps, ours and std's. Each call gets a map of its own, which is built before the
//! clock starts, and whose entries are summed after it has stopped.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use ctree::CTreeMap;

use super::{KEYS_1M, Parts, WARM_BYTES};
use crate::keys;
use crate::ordered_map::{Key, OrderedMap, Passes, value_of};
use crate::rivals::maps::{BTREEMAP, BTREEMAP_NAME};
use crate::rounds::Rounds;
use crate::sys::warm_memory;
use crate::timing::timed;
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Rows, SEED, Workload, agree};

/// The time of a call, and a sum over what it left.
type Timed = (Duration, u64);
type Call<M> = fn(&mut M, &mut M);

fn inserted<K: Key, M: OrderedMap<K>>(keys: &[K]) -> M {
    let mut map = M::default();
    map.insert_all(keys);
    map
}

fn collected<K: Key, M: FromIterator<(K, u64)>>(keys: &[K]) -> M {
    let keys = keys.iter().enumerate();
    let entries = keys.map(|(place, key)| (key.clone(), value_of(place)));
    entries.collect()
}

fn made<K: Key, M: OrderedMap<K>>(mut map: M, call: impl FnOnce(&mut M) -> M) -> Timed {
    let (time, made) = timed(|| call(&mut map));
    (time, map.iterate() ^ made.iterate().rotate_left(1))
}

/// Appends a map for each of `groups`, one after the other.
fn append<K: Key, M: OrderedMap<K>>(mut map: M, groups: &[&[K]], call: Call<M>) -> Timed {
    let mut others: Vec<M> = groups.iter().map(|keys| inserted(keys)).collect();
    let (time, ()) = timed(|| others.iter_mut().for_each(|other| call(&mut map, other)));
    let left = others.iter().map(Passes::iterate);
    (time, left.fold(map.iterate(), u64::wrapping_add))
}

fn end<K: Key, M: OrderedMap<K>>(map: M, call: impl FnOnce(M) -> Option<M>) -> Timed {
    let sum = map.iterate();
    let (time, left) = timed(|| call(map));
    (time, left.map_or(sum, |left| sum ^ left.iterate()))
}

/// [`Parts::calls`] of `$time` on what `$build` gives, as our map and as std's.
macro_rules! duel {
    ($parts:ident, $part:expr, $operations:expr, $build:expr => $time:ident($($more:expr),*)) => {{
        let ours: &dyn Fn() -> Timed = &|| {
            let map: CTreeMap<_, u64> = $build;
            $time(map, $($more),*)
        };
        let stds: &dyn Fn() -> Timed = &|| {
            let map: BTreeMap<_, u64> = $build;
            $time(map, $($more),*)
        };
        $parts.calls($part, $operations, [ours, stds])
    }};
}

impl Parts<'_> {
    /// Times ours and std's in turns.
    fn calls(
        &mut self,
        part: &str,
        operations: usize,
        [ours, theirs]: [&dyn Fn() -> Timed; 2],
    ) -> Result<(), Failure> {
        if !self.wants(part) {
            return Ok(());
        }
        let mut expected = None;
        let times = Rounds::in_turns(self.effort.process_rounds, 2, operations, |which| {
            let (time, sum) = if which == 0 { ours() } else { theirs() };
            agree(&mut expected, sum, part, BTREEMAP_NAME).map(|()| time)
        })?;
        let name = format!("{part}_vs_{BTREEMAP}");
        let row = Comparison::new(name, BTREEMAP_NAME, "ns", &times[0], &times[1]);
        self.rows.push(row);
        Ok(())
    }

    /// `drop` and `clear` of maps of `count` keys.
    fn ends<K: Key>(
        &mut self,
        [drops, clears]: [&str; 2],
        count: usize,
        keys: impl Fn(usize) -> Vec<K>,
    ) -> Result<(), Failure> {
        if !self.wants(drops) && !self.wants(clears) {
            return Ok(());
        }
        let keys = &*keys(count);
        duel!(self, drops, count, collected(keys) => end(|map| { drop(map); None }))?;
        duel!(self, clears, count, collected(keys) => end(|mut map| { map.clear(); Some(map) }))
    }
}

fn nth(keys: &[u64], rank: usize) -> u64 {
    *keys.to_vec().select_nth_unstable(rank).1
}

/// `split_off` in the middle, `clone`, also of strings, and `append` of as many other keys.
pub(in crate::suites) fn whole_maps(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    let mut parts = Parts::new(workload, effort);
    let mut keys = keys::random(2 * KEYS_1M, SEED);
    let others = keys.split_off(KEYS_1M);
    let middle = nth(&keys, KEYS_1M / 2);
    duel!(parts, "split_off_1m", KEYS_1M, inserted(&keys) => made(|map| map.split_off(&middle)))?;
    duel!(parts, "clone_1m", KEYS_1M, inserted(&keys) => made(|map| black_box(map).clone()))?;
    duel!(parts, "append_1m", KEYS_1M, inserted(&keys) => append(&[&others], |a, b| a.append(b)))?;
    let part = "clone_string_1m";
    if parts.wants(part) {
        let keys = keys::words_and_paths(KEYS_1M, SEED);
        duel!(parts, part, KEYS_1M, inserted(&keys) => made(|it| black_box(it).clone()))?;
    }
    Ok(parts.rows)
}

/// What is appended to a map of two million entries.
const SMALL_MAPS: usize = 20_000;
const SMALL_LEN: usize = 8;
/// std's map visits all entries for each `append`, at least to Rust 1.97: minutes for all maps.
const SMALL_MAPS_IF_SLOW: usize = 10;

/// Calls on maps of 2^21 numbers that were inserted one by one: `split_off` in the middle and at a
/// tenth, `append` of a map whose keys are all greater, and of small maps one after the other, the
/// time of a call; `drop`, the time of an entry.
pub(in crate::suites) fn whole_maps_2m(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    let mut parts = Parts::new(workload, effort);
    let mut keys = keys::random(KEYS_2M + SMALL_MAPS * SMALL_LEN, SEED);
    let others = keys.split_off(KEYS_2M);
    for (part, fraction) in [("split_off_middle_2m", 2), ("split_off_tenth_2m", 10)] {
        let at = nth(&keys, KEYS_2M / fraction);
        duel!(parts, part, 1, inserted(&keys) => made(|map| map.split_off(&at)))?;
    }
    let middle = nth(&keys, KEYS_2M / 2);
    let (lower, upper): (Vec<u64>, Vec<u64>) = keys.iter().partition(|&&key| key < middle);
    let part = "append_disjoint_2m";
    duel!(parts, part, 1, inserted(&lower) => append(&[&upper], |a, b| a.append(b)))?;
    if parts.wants("append_small_2m") {
        let mut groups: Vec<&[u64]> = others.chunks(SMALL_LEN).collect();
        if append(inserted(&keys), &groups[..1], BTreeMap::append)
            .0
            .as_millis()
            > 0
        {
            groups.truncate(SMALL_MAPS_IF_SLOW);
        }
        let (part, count) = ("append_small_2m", groups.len());
        duel!(parts, part, count, inserted(&keys) => append(&groups, |a, b| a.append(b)))?;
    }
    duel!(parts, "drop_inserted_2m", KEYS_2M, inserted(&keys) => end(|map| { drop(map); None }))?;
    Ok(parts.rows)
}

/// `drop` and `clear` of large maps that were collected, of numbers, and of strings, which have
/// destructors; the time of an entry.
pub(in crate::suites) fn ends(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    let mut parts = Parts::new(workload, effort);
    let numbers = |count| (0..count as u64).collect();
    let words = |count| keys::words_and_paths(count, SEED);
    parts.ends(["drop_5m", "clear_5m"], 5_000_000, numbers)?;
    parts.ends(["drop_50m", "clear_50m"], 50_000_000, numbers)?;
    parts.ends(["drop_string_1m", "clear_string_1m"], KEYS_1M, words)?;
    parts.ends(["drop_string_5m", "clear_string_5m"], 5 * KEYS_1M, words)?;
    Ok(parts.rows)
}
