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

/// Numbers of smaller keys, for batches of queries, in sets of 8 MiB, 64 MiB and 1 GiB of numbers
/// of 32 bits: what static search trees are measured by.
pub(in crate::suites) fn frozen_u32_set(workload: &Workload, effort: &Effort) -> Rows {
    let parts = [workload.also, workload.if_full].concat();
    let mut rows = Vec::new();
    for (part, count) in parts.into_iter().zip([KEYS_2M, 1 << 24, 1 << 28]) {
        if effort.wants(workload, part) {
            rows.extend(ranks(part, count, effort)?);
        }
    }
    Ok(rows)
}

fn ranks(part: &str, count: usize, effort: &Effort) -> Rows {
    // Larger sets are too slow for binary searches, and want more queries than the caches hold.
    let is_small = count == KEYS_2M;
    let lookups = effort.lookups.max(if is_small { 0 } else { 1 << 21 });
    warm_memory(WARM_BYTES.max(16 * count));
    let mut rng = Rng::new(SEED);
    let mut number = || u32::try_from(rng.next_u64() >> 32).unwrap_or_default();
    // Some come twice: 3 in 100 of 2^28.
    let mut keys: Vec<u32> = (0..count).map(|_| number()).collect();
    keys.sort_unstable();
    keys.dedup();
    let ours = FrozenCTreeSet::from_sorted_iter(keys.iter().copied())?;
    let queries: Vec<u32> = (0..lookups).map(|_| number()).collect();

    #[cfg(target_arch = "x86_64")]
    let tree = crate::rivals::static_tree::StaticTree::new(&keys);
    let add = |sum: u64, rank: usize| add_in_order(sum, Some(rank as u64));
    let in_batches = |rank_many: &dyn Fn(&[u32], &mut [usize])| {
        let mut ranks = [0; BATCH];
        queries.chunks(BATCH).fold(0, |sum, queries| {
            let ranks = &mut ranks[..queries.len()];
            rank_many(queries, ranks);
            ranks.iter().fold(sum, |sum, &rank| add(sum, rank))
        })
    };
    let mut passes = vec![pass(OURS, OURS, || {
        in_batches(&|queries, ranks| ours.rank_many(queries, ranks))
    })];
    #[cfg(target_arch = "x86_64")]
    passes.extend(tree.as_ref().map(|tree| {
        pass("static_tree", "static search tree", || {
            in_batches(&|queries, ranks| tree.rank_many(queries, ranks))
        })
    }));
    if is_small {
        passes.push(pass("", "binary search", || {
            let rank = |query| keys.partition_point(|key| key < query);
            queries.iter().fold(0, |sum, query| add(sum, rank(query)))
        }));
    }
    let mut rows = race(part, effort, lookups, passes)?;
    if let (true, Some(last)) = (is_small, rows.last_mut()) {
        *last = last.called(part);
    }
    Ok(rows)
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
    // SAFETY: this file lies in the same folder, and does not change.
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
