//! The frozen map and set, against std's map, a binary search, and bbtree's map in a file.

use std::collections::BTreeMap;

use ctree::{FrozenCTreeMap, FrozenCTreeSet};

use super::{Parts, WARM_BYTES, pass, race};
use crate::keys;
use crate::ordered_map::{add_in_order, low_half, value_of};
use crate::queries::Chain;
use crate::rivals::maps::{BTREEMAP, BTREEMAP_NAME, OURS};
use crate::rng::Rng;
use crate::sys::warm_memory;
use crate::workload::{Effort, KEYS_2M, Rows, SEED, Workload};

fn queries(keys: &[u64], count: usize) -> Vec<u64> {
    let mut rng = Rng::new(SEED);
    (0..count).map(|_| keys[rng.below(keys.len())]).collect()
}

fn sum_of(queries: &[u64], mut get: impl FnMut(&u64) -> Option<u64>) -> u64 {
    let add = |sum, key| add_in_order(sum, get(key));
    queries.iter().fold(0, add)
}

/// Dependent lookups, independent ones, and a batch of them against single ones.
pub(in crate::suites) fn frozen_2m(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    let keys = keys::random(KEYS_2M, SEED);
    // One by one, because collecting sorts first and fills the nodes.
    let mut theirs = BTreeMap::new();
    for (place, &key) in keys.iter().enumerate() {
        theirs.insert(key, value_of(place));
    }
    let ours: FrozenCTreeMap<u64, u64> = theirs.iter().map(|(&key, &value)| (key, value)).collect();
    let chain = Chain::sample(&keys, effort.lookups, SEED);
    let queries = queries(&keys, effort.lookups);
    let their_queries = || sum_of(&queries, |key| theirs.get(key).copied());
    let (mut parts, rival) = (Parts::new(workload, effort), (BTREEMAP, BTREEMAP_NAME));
    parts.duel(
        workload.also[0],
        rival,
        || chain.follow(|key| low_half(ours.get(key))),
        || chain.follow(|key| low_half(theirs.get(key))),
    )?;
    let independent = || sum_of(&queries, |key| ours.get(key).copied());
    parts.duel(workload.also[1], rival, independent, their_queries)?;
    let many = || {
        let mut sum = 0;
        ours.get_many_with(&queries, |_, value| sum = add_in_order(sum, value.copied()));
        sum
    };
    parts.duel(workload.also[2], rival, many, their_queries)?;
    Ok(parts.rows)
}

/// Queries that are handed to the set at once; their answers stay in the nearest cache.
const BATCH: usize = 1024;

/// Numbers of smaller keys, for batches of queries, in a set of 2^21 numbers of 32 bits: what
/// static search trees are measured by.
pub(in crate::suites) fn frozen_u32_set(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    let mut rng = Rng::new(SEED);
    let mut number = || u32::try_from(rng.next_u64() >> 32).unwrap_or_default();
    // Some numbers come twice, so more are drawn than are kept.
    let mut keys: Vec<u32> = (0..KEYS_2M + KEYS_2M / 64).map(|_| number()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.truncate(KEYS_2M);
    let ours: FrozenCTreeSet<u32> = keys.iter().copied().collect();
    let queries: Vec<u32> = (0..effort.lookups).map(|_| number()).collect();

    let add = |sum: u64, rank: usize| add_in_order(sum, Some(rank as u64));
    let mut ranks = vec![0; BATCH];
    let batches = || {
        queries.chunks(BATCH).fold(0, |sum, queries| {
            let ranks = &mut ranks[..queries.len()];
            ours.rank_many(queries, ranks);
            ranks.iter().fold(sum, |sum, &rank| add(sum, rank))
        })
    };
    let one_by_one = || {
        let rank = |query| keys.partition_point(|key| key < query);
        queries.iter().fold(0, |sum, query| add(sum, rank(query)))
    };
    let name = workload.name;
    let passes = vec![
        pass(OURS, OURS, batches),
        pass("", "binary search", one_by_one),
    ];
    let rows = race(name, effort, effort.lookups, passes)?;
    Ok(rows.iter().map(|row| row.called(name)).collect())
}

/// Lookups in maps of 2^21 numbers that are files, mapped, with all of their pages in memory.
#[cfg(feature = "bbtree")]
pub(in crate::suites) fn mapped_2m(workload: &Workload, effort: &Effort) -> Rows {
    use crate::rivals::maps::bbtree::{get_many_of_file, write_file};
    use ctree::MappedCTreeMap;
    use std::fs::File;

    warm_memory(WARM_BYTES);
    let keys = keys::random(KEYS_2M, SEED);
    let folder = tempfile::tempdir()?;
    let (our_path, their_path) = (folder.path().join("ctree"), folder.path().join("bbtree"));
    let places = keys.iter().enumerate();
    let map: bbtree::unsync::BBTreeMap<u64, u64> =
        places.map(|(place, &key)| (key, value_of(place))).collect();
    MappedCTreeMap::<u64, u64>::write(&our_path, &map)?;
    write_file(&map, File::create_new(&their_path)?)?;
    drop(map);

    // SAFETY: the file lies in a folder that this process has made for itself, and does not change.
    let ours = unsafe { MappedCTreeMap::<u64, u64>::open(&our_path) }?;
    ours.warm()?;
    let their_file = File::open(&their_path)?;
    // SAFETY: as above.
    let their_bytes = unsafe { memmap2::Mmap::map(&their_file) }?;
    // Reads each page once.
    let theirs =
        bbtree::file::FileMap::<u64, u64>::open(&their_bytes).map_err(|error| error.to_string())?;

    let chain = Chain::sample(&keys, effort.lookups, SEED);
    let queries = queries(&keys, effort.lookups);
    let (mut parts, rival) = (
        Parts::new(workload, effort),
        ("bbtree_file", "bbtree file map"),
    );
    let our_batches = || {
        let mut sum = 0;
        ours.get_many_with(&queries, |_, value| sum = add_in_order(sum, value));
        sum
    };
    let their_batches = || {
        let mut sum = 0;
        let add = |value: Option<&u64>| sum = add_in_order(sum, value.copied());
        get_many_of_file(&theirs, &queries, add);
        sum
    };
    parts.duel(workload.also[0], rival, our_batches, their_batches)?;
    parts.duel(
        workload.if_full[0],
        rival,
        || chain.follow(|key| low_half(ours.get(key).as_ref())),
        || chain.follow(|key| low_half(theirs.get(key))),
    )?;
    parts.duel(
        workload.if_full[1],
        rival,
        || sum_of(&queries, |key| ours.get(key)),
        || sum_of(&queries, |key| theirs.get(key).copied()),
    )?;
    Ok(parts.rows)
}
