//! Lookups, iteration and ranges in large maps of integers that came in random order.

use crate::rng::Rng;

use super::{Comparison, Effort, Failure, LookupParts, Maps, SEED, SUITE, WARM_BYTES};
use super::{alone, few, wanted, warm_memory};
use crate::keys;
use crate::programs::Scale;
use crate::queries::{Queries, Skew};
use crate::rivals;
use crate::workload::{KEYS_2M, Workload};

/// Lookups of keys drawn evenly, of hot keys, and of keys that are not there; a walk over all
/// entries; short ranges. 2^21 keys.
pub const LOOKUPS_2M: Workload = Workload {
    suite: SUITE,
    name: LOOKUPS_2M_NAME,
    also: &[
        "get_dependent_2m",
        "get_independent_2m",
        "get_many_2m",
        ITERATE_2M,
        RANGE_100_2M,
        "zipf_get_dependent_2m",
        "zipf_get_independent_2m",
        "zipf_get_many_2m",
        "misses_get_independent_2m",
        "misses_get_many_2m",
    ],
    run: |effort| alone(LOOKUPS_2M_NAME, effort, lookups_2m),
};

/// Lookups among 2^25 keys, which even the upper levels of a tree no longer fit the caches; in full
/// runs only.
pub const LOOKUPS_33M: Workload = Workload {
    suite: SUITE,
    name: LOOKUPS_33M_NAME,
    also: &["get_dependent_33m", "get_many_33m"],
    run: |effort| match effort.scale {
        Scale::Quick => Ok(Vec::new()),
        Scale::Full => alone(LOOKUPS_33M_NAME, effort, lookups_33m),
    },
};

const LOOKUPS_2M_NAME: &str = "lookups_2m";
const LOOKUPS_33M_NAME: &str = "lookups_33m";
const ITERATE_2M: &str = "iterate_2m";
const RANGE_100_2M: &str = "range_100_2m";

/// Keys of the largest maps: 768 MiB of entries of 24 bytes.
const KEYS_33M: usize = 1 << 25;

/// Entries of a short range.
const RANGE: usize = 100;

fn lookups_2m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    warm_memory(WARM_BYTES);
    // Of one stream of different numbers, the first half is in the maps and the second is not.
    let mut keys = keys::random(2 * KEYS_2M, SEED);
    let absent = keys.split_off(KEYS_2M);
    let kinds = wanted(rivals::integer_maps(), effort);
    let mut maps = Maps::with_keys(LOOKUPS_2M_NAME, effort, kinds, &keys);

    let mut rng = Rng::new(SEED);
    let evenly = LookupParts {
        dependent: Some("get_dependent_2m"),
        independent: Some("get_independent_2m"),
        many: Some("get_many_2m"),
    };
    let mut comparisons = maps.look_up(evenly, || keys[rng.below(keys.len())])?;

    comparisons.extend(maps.measure(ITERATE_2M, keys.len(), |map| map.iterate())?);
    let starts: Vec<u64> = (0..effort.lookups / 10)
        .map(|_| keys[rng.below(keys.len())])
        .collect();
    comparisons.extend(maps.measure(RANGE_100_2M, starts.len(), |map| map.ranges(&starts, RANGE))?);

    let hot = LookupParts {
        dependent: Some("zipf_get_dependent_2m"),
        independent: Some("zipf_get_independent_2m"),
        many: Some("zipf_get_many_2m"),
    };
    if !hot.measured(LOOKUPS_2M_NAME, effort).is_empty() {
        let mut queries = Queries::new(&keys, Skew::Zipf, SEED);
        comparisons.extend(maps.look_up(hot, || queries.draw())?);
    }

    // All answers are the same, so there is no chain of them.
    let misses = LookupParts {
        dependent: None,
        independent: Some("misses_get_independent_2m"),
        many: Some("misses_get_many_2m"),
    };
    comparisons.extend(maps.look_up(misses, || absent[rng.below(absent.len())])?);
    Ok(comparisons)
}

fn lookups_33m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    warm_memory(8 * WARM_BYTES);
    let keys = keys::random(KEYS_33M, SEED);
    let kinds = few(rivals::integer_maps(), effort);
    let mut maps = Maps::with_keys(LOOKUPS_33M_NAME, effort, kinds, &keys);
    let mut rng = Rng::new(SEED);
    let parts = LookupParts {
        dependent: Some("get_dependent_33m"),
        independent: None,
        many: Some("get_many_33m"),
    };
    maps.look_up(parts, || keys[rng.below(keys.len())])
}
