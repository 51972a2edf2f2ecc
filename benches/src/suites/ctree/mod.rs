//! Ordered maps against each other.
//!
//! Each workload runs in a process of its own under the system's malloc: no map finds a heap that
//! another workload left, and no allocation asks for its source ([`crate::source`]). Within the
//! process, ours and the rivals take turns.
//!
//! Names: `dependent` lookups wait for the answer before ([`Chain`]), `independent` ones are a loop
//! over a list of queries, `many` passes the list at once where the map takes that. Queries are
//! drawn evenly from the keys, unless the name says otherwise. Values are `u64`.

mod frozen;
mod updates;

use std::iter::repeat_with;

use super::{compare, pass};
use crate::keys;
use crate::ordered_map::{Key, Kind, ManyPasses, Passes, add_in_order};
use crate::programs::Scale;
use crate::queries::{Chain, Zipf};
use crate::rivals::{self, maps::OURS};
use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::sys::warm_memory;
use crate::workload::{Comparison, Effort, KEYS_2M, Rows, SEED, Workload, against_each};

#[cfg(feature = "bbtree")]
pub(super) use frozen::mapped_2m;
pub(super) use frozen::{frozen_2m, frozen_u32_set};
pub(super) use updates::{memory, mixed_2m, updates_2m, whole_maps};

/// As much as the maps of a workload take together, but for those of 33 million keys.
const WARM_BYTES: usize = 512 << 20;

const KEYS_1M: usize = 1 << 20;

/// Those of `kinds` that `--only` leaves: with `get_many_2m_vs_bbtree`, ours and bbtree. Ours is
/// first.
fn wanted<K>(mut kinds: Vec<Kind<K>>, effort: &Effort) -> Vec<Kind<K>> {
    let only = effort.only.as_deref();
    if let Some((_, rival)) = only.and_then(|only| only.rsplit_once("_vs_")) {
        kinds.retain(|kind| kind.slug == OURS || kind.slug == rival);
    }
    kinds
}

/// Ours and std's, where the others would take too long; or ours and the one that the user named.
fn few<K>(kinds: Vec<Kind<K>>, effort: &Effort) -> Vec<Kind<K>> {
    let mut kinds = wanted(kinds, effort);
    kinds.truncate(2);
    kinds
}

/// [`few`] in a quick run.
fn few_if_quick<K>(kinds: Vec<Kind<K>>, effort: &Effort) -> Vec<Kind<K>> {
    match effort.scale {
        Scale::Quick => few(kinds, effort),
        Scale::Full => wanted(kinds, effort),
    }
}

/// Ours, the first of `figures`, against the others; they are in the order of `kinds`.
fn against_kinds<K>(
    part: &str,
    kinds: &[Kind<K>],
    figures: &[Rounds],
    unit: &str,
) -> Vec<Comparison> {
    let rivals = kinds.iter().zip(figures).skip(1);
    let rivals = rivals.map(|(kind, theirs)| (kind.slug, kind.name, theirs));
    against_each(part, unit, &figures[0], rivals)
}

/// Times `run`, of `operations`, on each of `maps`, which are in the order of `kinds`.
fn race<K, M: ?Sized>(
    part: &str,
    effort: &Effort,
    operations: usize,
    kinds: &[Kind<K>],
    maps: &mut [Box<M>],
    run: impl Fn(&mut M) -> u64,
) -> Rows {
    let run = &run;
    let passes = kinds.iter().zip(maps);
    let passes = passes.map(|(kind, map)| pass(kind.name, move || run(&mut **map)));
    let times = compare(part, effort, operations, passes.collect())?;
    Ok(against_kinds(part, kinds, &times, "ns"))
}

/// Maps of several kinds with the same entries.
struct Maps<'a, K> {
    workload: &'a Workload,
    effort: &'a Effort,
    /// Ours first.
    kinds: Vec<Kind<K>>,
    maps: Vec<Box<dyn Passes<K>>>,
}

impl<'a, K: Key> Maps<'a, K> {
    /// Maps of `kinds`, with `keys`, inserted in their order.
    fn with_keys(
        workload: &'a Workload,
        effort: &'a Effort,
        kinds: Vec<Kind<K>>,
        keys: &[K],
    ) -> Self {
        Maps {
            workload,
            effort,
            maps: kinds.iter().map(|kind| kind.with_keys(keys)).collect(),
            kinds,
        }
    }

    fn wants(&self, part: &str) -> bool {
        !part.is_empty() && self.effort.wants(self.workload, part)
    }

    /// Times `run`, of `operations`, on all maps, if this run is to measure the part.
    fn measure(
        &mut self,
        part: &str,
        operations: usize,
        run: impl Fn(&mut dyn Passes<K>) -> u64,
    ) -> Rows {
        if !self.wants(part) {
            return Ok(Vec::new());
        }
        let (kinds, maps) = (&self.kinds, &mut self.maps);
        race(part, self.effort, operations, kinds, maps, |map| run(map))
    }

    /// Times the lookups of queries that `draw` gives: rows for dependent ones, for independent
    /// ones, and for many at once. A name may be empty, for no row.
    fn look_up(
        &mut self,
        [dependent, independent, many]: [&str; 3],
        mut draw: impl FnMut() -> K,
    ) -> Rows {
        let lookups = self.effort.lookups;
        let mut comparisons = Vec::new();
        if self.wants(dependent) {
            let chain = Chain::draw(lookups, &mut draw);
            comparisons.extend(self.measure(dependent, lookups, |map| map.get_dependent(&chain))?);
        }
        if self.wants(independent) || self.wants(many) {
            let queries: Vec<K> = repeat_with(draw).take(lookups).collect();
            let one_by_one = |map: &mut dyn Passes<K>| map.get_independent(&queries);
            comparisons.extend(self.measure(independent, lookups, one_by_one)?);
            comparisons.extend(self.measure(many, lookups, |map| map.get_many(&queries))?);
        }
        Ok(comparisons)
    }
}

/// Lookups of keys drawn evenly, of hot keys, and of keys that are not there; a walk over all
/// entries; ranges of a hundred. 2^21 keys.
pub(super) fn lookups_2m(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    // Of one stream of different numbers, the first half is in the maps and the second is not.
    let mut keys = keys::random(2 * KEYS_2M, SEED);
    let absent = keys.split_off(KEYS_2M);
    let kinds = wanted(rivals::integer_maps(), effort);
    let mut maps = Maps::with_keys(workload, effort, kinds, &keys);
    let mut rng = Rng::new(SEED);

    let evenly = ["get_dependent_2m", "get_independent_2m", "get_many_2m"];
    let mut comparisons = maps.look_up(evenly, || keys[rng.below(keys.len())])?;
    comparisons.extend(maps.measure("iterate_2m", keys.len(), |map| map.iterate())?);
    let starts = repeat_with(|| keys[rng.below(keys.len())]).take(effort.lookups / 10);
    let starts: Vec<u64> = starts.collect();
    let ranges = |map: &mut dyn Passes<u64>| map.ranges(&starts, 100);
    comparisons.extend(maps.measure("range_100_2m", starts.len(), ranges)?);

    let hot = [
        "zipf_get_dependent_2m",
        "zipf_get_independent_2m",
        "zipf_get_many_2m",
    ];
    if hot.iter().any(|part| maps.wants(part)) {
        let mut queries = Zipf::new(&keys, SEED);
        comparisons.extend(maps.look_up(hot, || queries.draw())?);
    }
    // All answers are the same, so there is no chain of them.
    let misses = ["", "misses_get_independent_2m", "misses_get_many_2m"];
    comparisons.extend(maps.look_up(misses, || absent[rng.below(absent.len())])?);
    Ok(comparisons)
}

/// Lookups among 2^25 keys, 768 MiB of entries: not even the upper levels of a tree fit the caches.
/// In full runs only.
pub(super) fn lookups_33m(workload: &Workload, effort: &Effort) -> Rows {
    if effort.scale == Scale::Quick {
        return Ok(Vec::new());
    }
    warm_memory(8 * WARM_BYTES);
    let keys = keys::random(1 << 25, SEED);
    let kinds = few(rivals::integer_maps(), effort);
    let mut maps = Maps::with_keys(workload, effort, kinds, &keys);
    let mut rng = Rng::new(SEED);
    maps.look_up(["get_dependent_33m", "", "get_many_33m"], || {
        keys[rng.below(keys.len())]
    })
}

/// Runs of consecutive integers with gaps between them, which a prefix common to all nodes cannot
/// tell apart.
pub(super) fn clustered_2m(workload: &Workload, effort: &Effort) -> Rows {
    let parts = [
        "clustered_keys_get_2m",
        "clustered_keys_get_independent_2m",
        "clustered_keys_get_many_2m",
    ];
    let keys = || keys::clustered(KEYS_2M, SEED);
    look_up(workload, effort, rivals::integer_maps(), parts, keys)
}

/// Tuples of a `u32` and a `u64`.
pub(super) fn tuples_2m(workload: &Workload, effort: &Effort) -> Rows {
    let parts = [
        "tuple_get_dependent_2m",
        "tuple_get_independent_2m",
        "tuple_get_many_2m",
    ];
    let keys = || keys::events(KEYS_2M, SEED);
    look_up(workload, effort, rivals::maps(), parts, keys)
}

/// Words and paths of 8 to 40 bytes.
pub(super) fn strings_1m(workload: &Workload, effort: &Effort) -> Rows {
    let parts = [
        "string_get_dependent_1m",
        "string_get_1m",
        "string_get_many_1m",
    ];
    let keys = || keys::words_and_paths(KEYS_1M, SEED);
    look_up(workload, effort, rivals::maps(), parts, keys)
}

/// Paths of 64 bytes; the first 48 are those of one of eight folders.
pub(super) fn prefixed_strings_1m(workload: &Workload, effort: &Effort) -> Rows {
    let parts = [
        "prefixed_string_get_dependent_1m",
        "prefixed_string_get_independent_1m",
        "prefixed_string_get_many_1m",
    ];
    let keys = || keys::long_prefixes(KEYS_1M, SEED);
    look_up(workload, effort, rivals::maps(), parts, keys)
}

/// Lookups of keys drawn evenly. Queries are copies of the keys: those that own memory own other
/// memory than what is in the maps, and lie in it one behind the other.
fn look_up<K: Key>(
    workload: &Workload,
    effort: &Effort,
    kinds: Vec<Kind<K>>,
    parts: [&str; 3],
    keys: impl FnOnce() -> Vec<K>,
) -> Rows {
    if !parts.iter().any(|part| effort.wants(workload, part)) {
        return Ok(Vec::new());
    }
    warm_memory(WARM_BYTES);
    let keys = keys();
    let mut maps = Maps::with_keys(workload, effort, few_if_quick(kinds, effort), &keys);
    let mut rng = Rng::new(SEED);
    maps.look_up(parts, || keys[rng.below(keys.len())].clone())
}

/// How many times shorter passes over small maps are than over large ones, and how many times as
/// many rounds there are: most passes then end before another process gets the processor.
const SHORTER: usize = 5;

/// Maps of 16 and of 1000 entries, which the nearest caches hold: lookups, insertion from empty and
/// dropping, iteration. A row without one of these in its name shows the one that ours does worst
/// in.
///
/// Each lookup goes to a random one of many maps, because a branch predictor learns all paths of a
/// single small map. All maps of 16 keys fit the first-level cache, those of 1000 keys the second.
pub(super) fn small_maps(workload: &Workload, effort: &Effort) -> Rows {
    let effort = &Effort {
        rounds: effort.rounds * SHORTER,
        lookups: effort.lookups / SHORTER,
        ..effort.clone()
    };
    let mut comparisons = Vec::new();
    for (part, entries, maps) in [("small_map_16", 16, 64), ("small_map_1000", 1000, 16)] {
        if effort.wants(workload, part) {
            comparisons.extend(small_maps_of(part, entries, maps, effort)?);
        }
    }
    Ok(comparisons)
}

fn small_maps_of(part: &str, entries: usize, count: usize, effort: &Effort) -> Rows {
    let keys = keys::random(count * entries, SEED);
    let groups: Vec<Vec<u64>> = keys.chunks(entries).map(<[u64]>::to_vec).collect();
    let kinds = wanted(rivals::integer_maps(), effort);
    let mut maps: Vec<_> = kinds.iter().map(|kind| (kind.many)(&groups)).collect();
    let mut rng = Rng::new(SEED);
    let queries: Vec<(usize, u64)> = (0..effort.lookups)
        .map(|_| {
            let map = rng.below(count);
            (map, groups[map][rng.below(entries)])
        })
        .collect();

    let repeats = effort.lookups.div_ceil(keys.len());
    let all = repeats * keys.len();
    type Run<'a> = &'a dyn Fn(&mut dyn ManyPasses<u64>) -> u64;
    let mut measure = |end: &str, repeats, operations, run: Run<'_>| {
        let part = format!("{part}_{end}");
        race(&part, effort, operations, &kinds, &mut maps, |maps| {
            (0..repeats).fold(0_u64, |sum, _| sum.rotate_left(1).wrapping_add(run(maps)))
        })
    };
    let get = measure("get", 1, queries.len(), &|maps| maps.get(&queries))?;
    let insert = measure("insert", repeats, all, &|maps| maps.build_and_drop(&groups))?;
    let iterate = measure("iterate", repeats, all, &|maps| maps.iterate())?;

    let mut comparisons = Vec::new();
    for (rival, kind) in kinds[1..].iter().enumerate() {
        let rows = [&get[rival], &insert[rival], &iterate[rival]].into_iter();
        let worst = rows.min_by(|a, b| a.ratio.total_cmp(&b.ratio));
        comparisons.extend(worst.map(|row| row.called(format!("{part}_vs_{}", kind.slug))));
    }
    comparisons.extend(get.into_iter().chain(insert).chain(iterate));
    Ok(comparisons)
}

/// A sum over the answers to `queries` in their order.
fn sum_of(queries: &[u64], mut get: impl FnMut(&u64) -> Option<u64>) -> u64 {
    queries
        .iter()
        .fold(0, |sum, key| add_in_order(sum, get(key)))
}
