//! Keys that are harder than even integers: see [`crate::keys`] for what each set is made of.

use crate::rng::Rng;

use super::{Comparison, Effort, Failure, LookupParts, Maps, SEED, SUITE, WARM_BYTES};
use super::{alone, few_if_quick, warm_memory};
use crate::keys;
use crate::ordered_map::{Key, Kind};
use crate::rivals;
use crate::workload::{KEYS_2M, Workload};

/// Runs of consecutive integers with gaps between them, which a prefix common to all nodes cannot
/// tell apart; the first comparison's lookups are dependent.
pub const CLUSTERED_KEYS_2M: Workload = Workload {
    suite: SUITE,
    name: "clustered_2m",
    also: &[
        "clustered_keys_get_2m",
        "clustered_keys_get_independent_2m",
        "clustered_keys_get_many_2m",
    ],
    run: |effort| alone("clustered_2m", effort, clustered_2m),
};

/// Tuples of a `u32` and a `u64`.
pub const TUPLES_2M: Workload = Workload {
    suite: SUITE,
    name: "tuples_2m",
    also: &[
        "tuple_get_dependent_2m",
        "tuple_get_independent_2m",
        "tuple_get_many_2m",
    ],
    run: |effort| alone("tuples_2m", effort, tuples_2m),
};

/// Words and paths of 8 to 40 bytes; the first comparison's lookups are a plain loop over queries.
pub const STRINGS_1M: Workload = Workload {
    suite: SUITE,
    name: "strings_1m",
    also: &[
        "string_get_1m",
        "string_get_dependent_1m",
        "string_get_many_1m",
    ],
    run: |effort| alone("strings_1m", effort, strings_1m),
};

/// Paths of 64 bytes, of which the first 48 are those of one of eight folders.
pub const PREFIXED_STRINGS_1M: Workload = Workload {
    suite: SUITE,
    name: "prefixed_strings_1m",
    also: &[
        "prefixed_string_get_dependent_1m",
        "prefixed_string_get_independent_1m",
        "prefixed_string_get_many_1m",
    ],
    run: |effort| alone("prefixed_strings_1m", effort, prefixed_strings_1m),
};

/// Keys of the maps of strings.
const KEYS_1M: usize = 1 << 20;

fn clustered_2m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let parts = LookupParts {
        dependent: Some("clustered_keys_get_2m"),
        independent: Some("clustered_keys_get_independent_2m"),
        many: Some("clustered_keys_get_many_2m"),
    };
    let kinds = rivals::integer_maps();
    look_up(&CLUSTERED_KEYS_2M, effort, kinds, parts, || {
        keys::clustered(KEYS_2M, SEED)
    })
}

fn tuples_2m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let parts = LookupParts {
        dependent: Some("tuple_get_dependent_2m"),
        independent: Some("tuple_get_independent_2m"),
        many: Some("tuple_get_many_2m"),
    };
    look_up(&TUPLES_2M, effort, rivals::maps(), parts, || {
        keys::events(KEYS_2M, SEED)
    })
}

fn strings_1m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let parts = LookupParts {
        dependent: Some("string_get_dependent_1m"),
        independent: Some("string_get_1m"),
        many: Some("string_get_many_1m"),
    };
    look_up(&STRINGS_1M, effort, rivals::maps(), parts, || {
        keys::words_and_paths(KEYS_1M, SEED)
    })
}

fn prefixed_strings_1m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let parts = LookupParts {
        dependent: Some("prefixed_string_get_dependent_1m"),
        independent: Some("prefixed_string_get_independent_1m"),
        many: Some("prefixed_string_get_many_1m"),
    };
    look_up(&PREFIXED_STRINGS_1M, effort, rivals::maps(), parts, || {
        keys::long_prefixes(KEYS_1M, SEED)
    })
}

/// Lookups of keys drawn evenly. Queries are copies of the keys: those that own memory own other
/// memory than what is in the maps, and lie in it one behind the other.
fn look_up<K: Key>(
    workload: &Workload,
    effort: &Effort,
    kinds: Vec<Kind<K>>,
    parts: LookupParts,
    keys: impl FnOnce() -> Vec<K>,
) -> Result<Vec<Comparison>, Failure> {
    if parts.measured(workload.name, effort).is_empty() {
        return Ok(Vec::new());
    }
    warm_memory(WARM_BYTES);
    let keys = keys();
    let kinds = few_if_quick(kinds, effort);
    let mut maps = Maps::with_keys(workload.name, effort, kinds, &keys);
    let mut rng = Rng::new(SEED);
    maps.look_up(parts, || keys[rng.below(keys.len())].clone())
}
