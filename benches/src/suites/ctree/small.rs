//! Maps of 16 and of 1000 entries, which the nearest caches hold: where `BTreeMap` is at its best,
//! and ours is to be no worse.
//!
//! Not one map but many, side by side, and each lookup goes to another one that is drawn at random:
//! in a single map of 16 keys a branch predictor learns its way after a few rounds, which no
//! program with many small maps has. All maps of 16 keys together fit the first-level cache, those
//! of 1000 keys the second-level one.

use crate::rng::Rng;

use super::{Comparison, Effort, Failure, Pass, SEED, SUITE};
use super::{against_each, alone, compare, wanted};
use crate::keys;
use crate::ordered_map::{Kind, ManyPasses};
use crate::rivals;
use crate::rounds::Rounds;
use crate::workload::Workload;

/// Lookups, insertion from empty and dropping, iteration; the comparisons without one of these in
/// their names show the one that ours does worst in.
pub const SMALL_MAPS: Workload = Workload {
    suite: SUITE,
    name: NAME,
    also: &["small_map_16", "small_map_1000"],
    run: |effort| alone(NAME, effort, small_maps),
};

const NAME: &str = "small_maps";

/// Passes are so much shorter and rounds so many more than in large maps: most passes then end
/// before another process gets the processor.
const SHORTER: usize = 5;

/// How many entries in how many maps.
#[derive(Clone, Copy)]
struct Size {
    /// What names of comparisons begin with.
    part: &'static str,
    get: &'static str,
    insert: &'static str,
    iterate: &'static str,
    entries: usize,
    maps: usize,
}

const SIZES: [Size; 2] = [
    Size {
        part: "small_map_16",
        get: "small_map_16_get",
        insert: "small_map_16_insert",
        iterate: "small_map_16_iterate",
        entries: 16,
        maps: 64,
    },
    Size {
        part: "small_map_1000",
        get: "small_map_1000_get",
        insert: "small_map_1000_insert",
        iterate: "small_map_1000_iterate",
        entries: 1000,
        maps: 16,
    },
];

fn small_maps(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let effort = &Effort {
        rounds: effort.rounds * SHORTER,
        lookups: effort.lookups / SHORTER,
        ..effort.clone()
    };
    let mut comparisons = Vec::new();
    for size in SIZES {
        if effort.wants(NAME, size.part) {
            comparisons.extend(small_maps_of(size, effort)?);
        }
    }
    Ok(comparisons)
}

/// The keys of each map, and maps of each kind with them.
struct Small {
    groups: Vec<Vec<u64>>,
    kinds: Vec<Kind<u64>>,
    maps: Vec<Box<dyn ManyPasses<u64>>>,
}

impl Small {
    /// Times `pass`, of so many operations.
    fn measure(
        &self,
        part: &'static str,
        effort: &Effort,
        operations: usize,
        pass: impl Fn(&dyn ManyPasses<u64>) -> u64,
    ) -> Result<Vec<Comparison>, Failure> {
        let pass = &pass;
        let passes: Vec<Pass<'_>> = self
            .kinds
            .iter()
            .zip(&self.maps)
            .map(|(kind, maps)| -> Pass<'_> {
                (kind.name.to_owned(), Box::new(move || pass(maps.as_ref())))
            })
            .collect();
        let times: Vec<Rounds> = compare(part, effort, passes)?
            .into_iter()
            .map(|rounds| rounds.per_operation(operations))
            .collect();
        Ok(against_each(part, &self.kinds, &times, "ns"))
    }
}

fn small_maps_of(size: Size, effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let keys = keys::random(size.maps * size.entries, SEED);
    let groups: Vec<Vec<u64>> = keys.chunks(size.entries).map(<[u64]>::to_vec).collect();
    let kinds = wanted(rivals::integer_maps(), effort);
    let maps = kinds.iter().map(|kind| kind.many(&groups)).collect();
    let small = Small {
        groups,
        kinds,
        maps,
    };
    let mut rng = Rng::new(SEED);
    let queries: Vec<(usize, u64)> = (0..effort.lookups)
        .map(|_| {
            let map = rng.below(size.maps);
            (map, small.groups[map][rng.below(size.entries)])
        })
        .collect();

    let entries = size.maps * size.entries;
    let repeats = effort.lookups.div_ceil(entries);
    let again = |pass: &dyn Fn() -> u64| {
        (0..repeats).fold(0_u64, |sum, _| sum.rotate_left(1).wrapping_add(pass()))
    };
    let get = small.measure(size.get, effort, queries.len(), |maps| maps.get(&queries))?;
    let insert = small.measure(size.insert, effort, repeats * entries, |maps| {
        again(&|| maps.build_and_drop(&small.groups))
    })?;
    let iterate = small.measure(size.iterate, effort, repeats * entries, |maps| {
        again(&|| maps.iterate())
    })?;

    let worst = (0..get.len()).filter_map(|rival| {
        let of_rival = [&get[rival], &insert[rival], &iterate[rival]];
        let worst = of_rival
            .into_iter()
            .min_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        let slug = small.kinds.get(rival + 1)?.slug;
        Some(Comparison {
            name: format!("{}_vs_{slug}", size.part),
            ..worst.clone()
        })
    });
    let mut comparisons: Vec<Comparison> = worst.collect();
    comparisons.extend(get.into_iter().chain(insert).chain(iterate));
    Ok(comparisons)
}
