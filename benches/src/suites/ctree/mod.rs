//! Ordered maps against each other.
//!
//! Each workload runs in a process of its own under the system's malloc: no map finds a heap that
//! another workload left, and no allocation asks for its source ([`crate::source`]).
//!
//! Names: `dependent` lookups wait for the answer before ([`Chain`]), `independent` ones are a loop
//! over a list of queries, `many` passes the list at once where the map takes that. Queries are
//! drawn evenly from the keys, unless the name says otherwise. Values are `u64`.

mod frozen;
mod tiny;
mod updates;
mod whole;

use std::iter::repeat_with;

use super::{Pass, pass, race};
use crate::keys;
use crate::ordered_map::{Key, Kind, ManyPasses, Passes};
use crate::programs::Scale;
use crate::queries::{Chain, Zipf};
use crate::rivals::{self, maps::OURS};
use crate::rng::Rng;
use crate::sys::warm_memory;
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Rows, SEED, Workload};

#[cfg(feature = "bbtree")]
pub(super) use frozen::mapped_2m;
pub(super) use frozen::{frozen_2m, frozen_u32_set};
pub(super) use tiny::tiny_maps;
pub(super) use updates::{memory, mixed_2m, updates_2m};
pub(super) use whole::{ends, whole_maps, whole_maps_2m};

/// As much as the maps of a workload take together, but for those of 33 million keys.
const WARM_BYTES: usize = 512 << 20;

const KEYS_1M: usize = 1 << 20;

/// Ours and std's, where the others would take too long.
const FEW: usize = 2;
const ALL: usize = usize::MAX;

/// The first `count` of `kinds` that `--only` leaves, such as `get_many_2m_vs_bbtree`; ours first.
fn wanted<K>(mut kinds: Vec<Kind<K>>, effort: &Effort, count: usize) -> Vec<Kind<K>> {
    let only = effort.only.as_deref();
    if let Some((_, rival)) = only.and_then(|only| only.rsplit_once("_vs_")) {
        kinds.retain(|kind| kind.slug == OURS || kind.slug == rival);
    }
    kinds.truncate(count);
    kinds
}

fn few_if_quick<K>(kinds: Vec<Kind<K>>, effort: &Effort) -> Vec<Kind<K>> {
    wanted(kinds, effort, effort.scale.pick(FEW, ALL))
}

/// Passes of `run` over each of `maps`, which are in the order of `kinds`.
fn passes<'a, K, M: ?Sized>(
    kinds: &'a [Kind<K>],
    maps: &'a mut [Box<M>],
    run: &'a dyn Fn(&mut M) -> u64,
) -> Vec<Pass<'a>> {
    let pairs = kinds.iter().zip(maps);
    let passes = pairs.map(|(kind, map)| pass(kind.slug, kind.name, move || run(&mut **map)));
    passes.collect()
}

/// The rows of those parts of a workload that this run is to measure.
struct Parts<'a> {
    workload: &'a Workload,
    effort: &'a Effort,
    rows: Vec<Comparison>,
}

impl<'a> Parts<'a> {
    fn new(workload: &'a Workload, effort: &'a Effort) -> Self {
        Parts {
            workload,
            effort,
            rows: Vec::new(),
        }
    }

    /// An empty name is that of no part.
    fn wants(&self, part: &str) -> bool {
        !part.is_empty() && self.effort.wants(self.workload, part)
    }

    fn race(
        &mut self,
        part: &str,
        operations: usize,
        passes: Vec<Pass<'_>>,
    ) -> Result<(), Failure> {
        if self.wants(part) {
            let rows = race(part, self.effort, operations, passes)?;
            self.rows.extend(rows);
        }
        Ok(())
    }

    /// Lookups in two maps with the same entries: ours and the rival's.
    fn duel(
        &mut self,
        part: &str,
        (slug, rival): (&str, &str),
        ours: impl FnMut() -> u64,
        theirs: impl FnMut() -> u64,
    ) -> Result<(), Failure> {
        let passes = vec![pass(OURS, OURS, ours), pass(slug, rival, theirs)];
        self.race(part, self.effort.lookups, passes)
    }
}

struct Maps<'a, K> {
    parts: Parts<'a>,
    kinds: Vec<Kind<K>>,
    maps: Vec<Box<dyn Passes<K>>>,
}

impl<'a, K: Key> Maps<'a, K> {
    fn with_keys(parts: Parts<'a>, kinds: Vec<Kind<K>>, keys: &[K]) -> Self {
        let maps = kinds.iter().map(|kind| kind.with_keys(keys)).collect();
        Maps { parts, kinds, maps }
    }

    fn measure(
        &mut self,
        part: &str,
        operations: usize,
        run: impl Fn(&mut dyn Passes<K>) -> u64,
    ) -> Result<(), Failure> {
        let run = |map: &mut (dyn Passes<K> + 'static)| run(map);
        let passes = passes(&self.kinds, &mut self.maps, &run);
        self.parts.race(part, operations, passes)
    }

    /// Times dependent lookups, independent ones, and many at once.
    fn look_up(
        &mut self,
        [dependent, independent, many]: [&str; 3],
        mut draw: impl FnMut() -> K,
    ) -> Result<(), Failure> {
        let lookups = self.parts.effort.lookups;
        if self.parts.wants(dependent) {
            let chain = Chain::draw(lookups, &mut draw);
            self.measure(dependent, lookups, |map| map.get_dependent(&chain))?;
        }
        if self.parts.wants(independent) || self.parts.wants(many) {
            let queries: Vec<K> = repeat_with(draw).take(lookups).collect();
            self.measure(independent, lookups, |map| map.get_independent(&queries))?;
            self.measure(many, lookups, |map| map.get_many(&queries))?;
        }
        Ok(())
    }
}

/// Keys drawn evenly, hot keys, and keys that are not there; all entries; ranges of a hundred.
pub(super) fn lookups_2m(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    // Of one stream of different numbers, the first half is in the maps and the second is not.
    let mut keys = keys::random(2 * KEYS_2M, SEED);
    let absent = keys.split_off(KEYS_2M);
    let kinds = wanted(rivals::integer_maps(), effort, ALL);
    let mut maps = Maps::with_keys(Parts::new(workload, effort), kinds, &keys);
    let mut rng = Rng::new(SEED);

    let evenly = ["get_dependent_2m", "get_independent_2m", "get_many_2m"];
    maps.look_up(evenly, || keys[rng.below(keys.len())])?;
    maps.measure("iterate_2m", keys.len(), |map| map.iterate())?;
    let starts = repeat_with(|| keys[rng.below(keys.len())]).take(effort.lookups / 10);
    let starts: Vec<u64> = starts.collect();
    maps.measure("range_100_2m", starts.len(), |map| map.ranges(&starts, 100))?;

    let hot = [0, 1, 2].map(|part| workload.if_full[part]);
    if hot.iter().any(|part| maps.parts.wants(part)) {
        let mut queries = Zipf::new(&keys, SEED);
        maps.look_up(hot, || queries.draw())?;
    }
    // All answers are the same, so there is no chain of them.
    let misses = ["", workload.if_full[3], workload.if_full[4]];
    maps.look_up(misses, || absent[rng.below(absent.len())])?;
    Ok(maps.parts.rows)
}

/// 2^25 keys, 768 MiB: not even the upper levels of a tree fit the caches. In full runs only.
pub(super) fn lookups_33m(workload: &Workload, effort: &Effort) -> Rows {
    if effort.scale == Scale::Quick {
        return Ok(Vec::new());
    }
    warm_memory(8 * WARM_BYTES);
    let keys = keys::random(1 << 25, SEED);
    let kinds = wanted(rivals::integer_maps(), effort, FEW);
    let mut maps = Maps::with_keys(Parts::new(workload, effort), kinds, &keys);
    let mut rng = Rng::new(SEED);
    let parts = ["get_dependent_33m", "", "get_many_33m"];
    maps.look_up(parts, || keys[rng.below(keys.len())])?;
    Ok(maps.parts.rows)
}

/// Keys that are strings, tuples, or not spread evenly.
pub(super) fn other_keys(workload: &Workload, effort: &Effort) -> Rows {
    let parts = Parts::new(workload, effort);
    let [first, second, many] = [workload.also, workload.if_full].concat()[..] else {
        return Err("it has three kinds of lookups".into());
    };
    if ![first, second, many].iter().any(|part| parts.wants(part)) {
        return Ok(Vec::new());
    }
    warm_memory(WARM_BYTES);
    let names = [first, second, many];
    match workload.name {
        // Words and paths of 8 to 40 bytes. The main row is that of independent lookups.
        "strings_1m" => {
            let keys = keys::words_and_paths(KEYS_1M, SEED);
            look_up(parts, rivals::maps(), [second, first, many], &keys)
        }
        // Paths of 64 bytes; the first 48 are those of one of eight folders.
        "prefixed_strings_1m" => {
            let keys = keys::long_prefixes(KEYS_1M, SEED);
            look_up(parts, rivals::maps(), names, &keys)
        }
        // A `u32` and a `u64`.
        "tuples_2m" => look_up(parts, rivals::maps(), names, &keys::events(KEYS_2M, SEED)),
        // Runs of consecutive integers with gaps, which no common prefix tells apart.
        _ => {
            let keys = keys::clustered(KEYS_2M, SEED);
            look_up(parts, rivals::integer_maps(), names, &keys)
        }
    }
}

/// Queries are copies of the keys, so strings do not share their memory with the maps.
fn look_up<K: Key>(parts: Parts<'_>, kinds: Vec<Kind<K>>, names: [&str; 3], keys: &[K]) -> Rows {
    let kinds = few_if_quick(kinds, parts.effort);
    let mut maps = Maps::with_keys(parts, kinds, keys);
    let mut rng = Rng::new(SEED);
    maps.look_up(names, || keys[rng.below(keys.len())].clone())?;
    Ok(maps.parts.rows)
}

/// Passes over small maps are so much shorter, and rounds more: most then end before another
/// process gets the processor.
const SHORTER: usize = 5;

/// Maps that the nearest caches hold: lookups, insertion from empty and dropping, iteration. A row
/// without one of these in its name shows the one that ours does worst in.
///
/// Each lookup goes to one of many maps, because a branch predictor learns all paths of one. All
/// maps of 16 keys fit the first-level cache, those of 1000 the second.
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
    let kinds = wanted(rivals::integer_maps(), effort, ALL);
    let mut maps: Vec<_> = kinds.iter().map(|kind| (kind.many)(&groups)).collect();
    let mut rng = Rng::new(SEED);
    let queries = repeat_with(|| {
        let map = rng.below(count);
        (map, groups[map][rng.below(entries)])
    });
    let queries: Vec<(usize, u64)> = queries.take(effort.lookups).collect();

    type Run<'a> = &'a dyn Fn(&mut dyn ManyPasses<u64>) -> u64;
    let repeats = effort.lookups.div_ceil(keys.len());
    let all = repeats * keys.len();
    let runs: [(_, _, _, Run<'_>); 3] = [
        ("get", 1, queries.len(), &|maps| maps.get(&queries)),
        ("insert", repeats, all, &|maps| maps.build_and_drop(&groups)),
        ("iterate", repeats, all, &|maps| maps.iterate()),
    ];
    let mut comparisons = Vec::new();
    for (end, repeats, operations, run) in runs {
        let run = |maps: &mut (dyn ManyPasses<u64> + 'static)| {
            (0..repeats).fold(0_u64, |sum, _| sum.rotate_left(1).wrapping_add(run(maps)))
        };
        let passes = passes(&kinds, &mut maps, &run);
        comparisons.extend(race(&format!("{part}_{end}"), effort, operations, passes)?);
    }
    let worst = kinds[1..].iter().filter_map(|kind| {
        let rows = comparisons.iter().filter(|row| row.rival == kind.name);
        let worst = rows.min_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        Some(worst.called(format!("{part}_vs_{}", kind.slug)))
    });
    let mut all: Vec<Comparison> = worst.collect();
    all.extend(comparisons);
    Ok(all)
}
