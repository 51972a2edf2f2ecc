//! The frozen map against std's `BTreeMap`, `u64` to `u64`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use ctree::FrozenCTreeMap;
use examples::chain::QueryChain;
use examples::rng::Rng;
use examples::timing::nanoseconds_each;

use super::{Pass, SEED, compare, random_keys};
use crate::rivals::btreemap;
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Nanoseconds, Workload};

/// Lookups that wait for each other: what a miss costs.
pub const FROZEN_GET_DEPENDENT_2M: Workload = Workload {
    suite: "ctree",
    name: "frozen_get_dependent_2m",
    also: &[],
    run: frozen_get_dependent,
};

/// Lookups that do not: how many misses overlap.
pub const FROZEN_GET_INDEPENDENT_2M: Workload = Workload {
    suite: "ctree",
    name: "frozen_get_independent_2m",
    also: &[],
    run: frozen_get_independent,
};

/// Lookups of which a batch is known at once, against single ones: what a level-synchronous batch gains.
pub const FROZEN_GET_MANY_2M: Workload = Workload {
    suite: "ctree",
    name: "frozen_get_many_2m",
    also: &[],
    run: frozen_get_many,
};

/// The same entries in both maps, and keys to ask for.
struct Maps {
    ours: FrozenCTreeMap<u64, u64>,
    theirs: BTreeMap<u64, u64>,
    keys: Vec<u64>,
}

impl fmt::Debug for Maps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maps")
            .field("len", &self.keys.len())
            .finish_non_exhaustive()
    }
}

impl Maps {
    fn build() -> Self {
        let keys = random_keys(KEYS_2M);
        let mut entries: Vec<(u64, u64)> =
            keys.iter().map(|&key| (key, key.rotate_left(32))).collect();
        let theirs = btreemap::build(&entries);
        entries.sort_unstable();
        let ours = entries.into_iter().collect();
        Maps { ours, theirs, keys }
    }
}

/// Half of a value: the answer that chooses the next query.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is asked for"
)]
fn low_half(value: Option<&u64>) -> u32 {
    value.map_or(u32::MAX, |&value| value as u32)
}

fn frozen_get_dependent(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let maps = Maps::build();
    let chain = QueryChain::sample(&maps.keys, effort.lookups, SEED);
    let passes: Vec<Pass<'_>> = vec![
        (
            "ctree".to_owned(),
            Box::new(|| chain.follow(|key| low_half(maps.ours.get(&key)))),
        ),
        (
            btreemap::NAME.to_owned(),
            Box::new(|| chain.follow(|key| low_half(maps.theirs.get(&key)))),
        ),
    ];
    let medians = compare(FROZEN_GET_DEPENDENT_2M.name, effort, passes)?;
    Ok(vec![against_btreemap(
        &FROZEN_GET_DEPENDENT_2M,
        &medians,
        chain.len(),
        effort,
    )])
}

fn frozen_get_independent(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let maps = Maps::build();
    let queries = queries(&maps.keys, effort.lookups);
    let passes: Vec<Pass<'_>> = vec![
        (
            "ctree".to_owned(),
            Box::new(|| sum_of(&queries, |key| maps.ours.get(&key))),
        ),
        (
            btreemap::NAME.to_owned(),
            Box::new(|| sum_of(&queries, |key| maps.theirs.get(&key))),
        ),
    ];
    let medians = compare(FROZEN_GET_INDEPENDENT_2M.name, effort, passes)?;
    Ok(vec![against_btreemap(
        &FROZEN_GET_INDEPENDENT_2M,
        &medians,
        queries.len(),
        effort,
    )])
}

fn frozen_get_many(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let maps = Maps::build();
    let queries = queries(&maps.keys, effort.lookups);
    let many = || {
        let mut sum = 0;
        maps.ours
            .get_many_with(&queries, |_, value| sum = add_in_order(sum, value));
        sum
    };
    let passes: Vec<Pass<'_>> = vec![
        ("ctree".to_owned(), Box::new(many)),
        (
            btreemap::NAME.to_owned(),
            Box::new(|| sum_of(&queries, |key| maps.theirs.get(&key))),
        ),
    ];
    let medians = compare(FROZEN_GET_MANY_2M.name, effort, passes)?;
    Ok(vec![against_btreemap(
        &FROZEN_GET_MANY_2M,
        &medians,
        queries.len(),
        effort,
    )])
}

/// `count` keys drawn evenly, with replacement.
fn queries(keys: &[u64], count: usize) -> Vec<u64> {
    let mut rng = Rng::new(SEED);
    (0..count).map(|_| keys[rng.below(keys.len())]).collect()
}

/// A sum over the answers in their order.
fn sum_of<'a>(queries: &[u64], mut get: impl FnMut(u64) -> Option<&'a u64>) -> u64 {
    queries
        .iter()
        .fold(0, |sum, &key| add_in_order(sum, get(key)))
}

/// `sum` with one more answer; another order of the same answers gives another sum.
fn add_in_order(sum: u64, value: Option<&u64>) -> u64 {
    sum.rotate_left(1)
        .wrapping_add(value.map_or(1, |&value| value))
}

fn against_btreemap(
    workload: &Workload,
    medians: &[Duration],
    operations: usize,
    effort: &Effort,
) -> Comparison {
    let ns = Nanoseconds {
        ours: nanoseconds_each(medians[0], operations),
        theirs: nanoseconds_each(medians[1], operations),
    };
    Comparison::of_times(workload, btreemap::SLUG, btreemap::NAME, ns, effort)
}
