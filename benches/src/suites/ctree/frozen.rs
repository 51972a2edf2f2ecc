//! The frozen map against std's `BTreeMap`, `u64` to `u64`, and the frozen set of `u32`.

use std::collections::BTreeMap;

use crate::chain::QueryChain;
use crate::rng::Rng;
use ctree::{FrozenCTreeMap, FrozenCTreeSet};

use super::{Comparison, Effort, Failure, SEED, SUITE, WARM_BYTES};
use super::{alone, duel, measures, sum_of, warm_memory};
use crate::keys;
use crate::ordered_map::{add_in_order, low_half, value_of};
use crate::rivals::btreemap;
use crate::workload::{KEYS_2M, Workload};

/// Lookups that wait for each other: what a miss costs; lookups that do not: how many misses
/// overlap; and lookups of which a batch is known at once, against single ones: what a
/// level-synchronous batch gains.
pub const FROZEN_2M: Workload = Workload {
    suite: SUITE,
    name: FROZEN_2M_NAME,
    also: &[DEPENDENT, INDEPENDENT, MANY],
    run: |effort| alone(FROZEN_2M_NAME, effort, frozen_2m),
};

/// Numbers of smaller keys, for batches of queries, in a set of 2^21 numbers of 32 bits: what
/// static search trees are measured by. The rival is a binary search in the sorted keys.
pub const FROZEN_U32_SET_2M: Workload = Workload {
    suite: SUITE,
    name: U32_SET,
    also: &[],
    run: |effort| alone(U32_SET, effort, frozen_u32_set),
};

const FROZEN_2M_NAME: &str = "frozen_2m";
const DEPENDENT: &str = "frozen_get_dependent_2m";
const INDEPENDENT: &str = "frozen_get_independent_2m";
const MANY: &str = "frozen_get_many_2m";
const U32_SET: &str = "frozen_u32_set_batch_2m_ns";

/// Queries that are handed to the set at once: as many as a program could collect, and their
/// answers stay in the nearest cache.
const BATCH: usize = 1024;

fn frozen_2m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    warm_memory(WARM_BYTES);
    let keys = keys::random(KEYS_2M, SEED);
    let mut theirs = BTreeMap::new();
    for (place, &key) in keys.iter().enumerate() {
        theirs.insert(key, value_of(place));
    }
    let ours: FrozenCTreeMap<u64, u64> = theirs.iter().map(|(&key, &value)| (key, value)).collect();
    let chain = QueryChain::sample(&keys, effort.lookups, SEED);
    let mut rng = Rng::new(SEED);
    let queries: Vec<u64> = (0..effort.lookups)
        .map(|_| keys[rng.below(keys.len())])
        .collect();
    let many = || {
        let mut sum = 0;
        ours.get_many_with(&queries, |_, value| sum = add_in_order(sum, value.copied()));
        sum
    };
    let theirs_one_by_one = || sum_of(&queries, |key| theirs.get(key).copied());

    let mut comparisons = Vec::new();
    comparisons.extend(against_btreemap(
        DEPENDENT,
        effort,
        || chain.follow(|key| low_half(ours.get(&key))),
        || chain.follow(|key| low_half(theirs.get(&key))),
    )?);
    comparisons.extend(against_btreemap(
        INDEPENDENT,
        effort,
        || sum_of(&queries, |key| ours.get(key).copied()),
        theirs_one_by_one,
    )?);
    comparisons.extend(against_btreemap(MANY, effort, many, theirs_one_by_one)?);
    Ok(comparisons)
}

/// Times one pass of each, if this run is to measure the part.
fn against_btreemap(
    part: &'static str,
    effort: &Effort,
    ours: impl FnMut() -> u64,
    theirs: impl FnMut() -> u64,
) -> Result<Option<Comparison>, Failure> {
    if !measures(effort, FROZEN_2M_NAME, part) {
        return Ok(None);
    }
    let name = format!("{part}_vs_{}", btreemap::SLUG);
    duel(part, name, btreemap::NAME, effort, ours, theirs).map(Some)
}

fn frozen_u32_set(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
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
            ours.lower_bound_many(queries, ranks);
            ranks.iter().fold(sum, |sum, &rank| add(sum, rank))
        })
    };
    let one_by_one = || {
        queries.iter().fold(0, |sum, query| {
            add(sum, keys.partition_point(|key| key < query))
        })
    };
    let name = U32_SET.to_owned();
    let row = duel(U32_SET, name, "binary search", effort, batches, one_by_one)?;
    Ok(vec![row])
}
