//! Ordered maps against each other.
//!
//! | module | measures |
//! |---|---|
//! | [`lookups`] | lookups, iteration and ranges in large maps of integers |
//! | [`updates`] | insertion in several orders, removal, both beside lookups; memory |
//! | [`memory`] | what maps hold: a value, one entry, after removals, with strings |
//! | [`whole`] | calls on whole maps: split, clone, append |
//! | [`small`] | maps that fit into the nearest caches |
//! | [`key_types`] | keys that are harder than even integers: clustered, tuples, strings |
//! | [`frozen`] | the frozen map and set |
//! | [`mapped`] | the frozen map in a file |
//!
//! Each workload runs in a process of its own that the system's malloc serves, as it serves nearly
//! every program ([`alone`]): no map finds a heap that another workload left, and no allocation is
//! slowed down by questions that other suites ask ([`crate::source`]). Within the process, ours and
//! the rivals take turns.
//!
//! Names: `dependent` are lookups of which each waits for the answer before ([`Chain`]),
//! `independent` a loop over a list of queries, `many` the same list, handed over at once where the
//! map takes that. Queries are drawn evenly, with replacement, from the keys of the map, unless the
//! name says something else. Values are `u64`.

pub mod frozen;
pub mod key_types;
pub mod lookups;
#[cfg(feature = "bbtree")]
pub mod mapped;
pub mod memory;
pub mod small;
pub mod updates;
pub mod whole;

pub use frozen::{FROZEN_2M, FROZEN_U32_SET_2M};
pub use key_types::{CLUSTERED_KEYS_2M, PREFIXED_STRINGS_1M, STRINGS_1M, TUPLES_2M};
pub use lookups::{LOOKUPS_2M, LOOKUPS_33M};
#[cfg(feature = "bbtree")]
pub use mapped::MAPPED_2M;
pub use memory::MEMORY;
pub use small::SMALL_MAPS;
pub use updates::{MIXED_2M, UPDATES_2M};
pub use whole::WHOLE_MAPS_1M;

use super::{Pass, SEED, compare};
use crate::ordered_map::{Key, Kind, Passes, add_in_order};
use crate::programs::Scale;
use crate::queries::Chain;
use crate::rivals::ctree as ours;
use crate::rounds::Rounds;
use crate::sys::warm_memory;
use crate::worker::alone;
use crate::workload::{Comparison, Effort, Failure};

/// The suite's name.
const SUITE: &str = "ctree";

/// As much as the maps of a workload take together, but for those of 33 million keys.
const WARM_BYTES: usize = 512 << 20;

/// Those of `kinds` that the user's choice of names leaves: with `get_many_2m_vs_bbtree`, ours and
/// bbtree. Ours is always among them, and first.
fn wanted<K>(kinds: Vec<Kind<K>>, effort: &Effort) -> Vec<Kind<K>> {
    let rival = effort
        .only
        .as_deref()
        .and_then(|only| only.rsplit_once("_vs_"))
        .map(|(_, rival)| rival);
    let is_wanted =
        |kind: &Kind<K>| kind.slug == ours::NAME || rival.is_none_or(|rival| rival == kind.slug);
    kinds.into_iter().filter(is_wanted).collect()
}

/// Ours and std's, where the others would take too long; or ours and the one that the user named.
fn few<K>(kinds: Vec<Kind<K>>, effort: &Effort) -> Vec<Kind<K>> {
    let mut kinds = wanted(kinds, effort);
    kinds.truncate(2);
    kinds
}

/// Those of `kinds` that a table beside the main one, or one of many builds, has time for: in a
/// quick run [`few`], else all that are wanted.
fn few_if_quick<K>(kinds: Vec<Kind<K>>, effort: &Effort) -> Vec<Kind<K>> {
    match effort.scale {
        Scale::Quick => few(kinds, effort),
        Scale::Full => wanted(kinds, effort),
    }
}

/// Parts that only full runs measure, and runs that name them: tables beside the main one.
const BESIDE: [&str; 19] = [
    "zipf_get_dependent_2m",
    "zipf_get_independent_2m",
    "zipf_get_many_2m",
    "misses_get_independent_2m",
    "misses_get_many_2m",
    "mapped_get_dependent_2m",
    "mapped_get_independent_2m",
    "insert_sorted_2m",
    "insert_reverse_2m",
    "clustered_keys_get_independent_2m",
    "clustered_keys_get_many_2m",
    "tuple_get_dependent_2m",
    "tuple_get_independent_2m",
    "tuple_get_many_2m",
    "string_get_dependent_1m",
    "string_get_many_1m",
    "prefixed_string_get_dependent_1m",
    "prefixed_string_get_independent_1m",
    "prefixed_string_get_many_1m",
];

/// Whether a run is to measure `part` of `workload`.
fn measures(effort: &Effort, workload: &str, part: &str) -> bool {
    let is_named = effort.only.is_some();
    (effort.scale == Scale::Full || is_named || !BESIDE.contains(&part))
        && effort.wants(workload, part)
}

/// Comparisons called `part` of the first of `figures`, which is ours, with each other; they are in
/// the order of `kinds`.
fn against_each<K>(
    part: &str,
    kinds: &[Kind<K>],
    figures: &[Rounds],
    unit: &'static str,
) -> Vec<Comparison> {
    let mut rivals = kinds.iter().zip(figures);
    let Some((_, ours)) = rivals.next() else {
        return Vec::new();
    };
    rivals
        .map(|(rival, theirs)| {
            let name = format!("{part}_vs_{}", rival.slug);
            Comparison::new(SUITE, name, rival.name, unit, ours, theirs)
        })
        .collect()
}

/// A sum over the answers to `queries` in their order.
fn sum_of(queries: &[u64], mut get: impl FnMut(&u64) -> Option<u64>) -> u64 {
    queries
        .iter()
        .fold(0, |sum, key| add_in_order(sum, get(key)))
}

/// Times one pass of ours and one of a rival, of `effort.lookups` operations each; the comparison's
/// name is `name`.
fn duel(
    part: &'static str,
    name: String,
    rival: &str,
    effort: &Effort,
    ours: impl FnMut() -> u64,
    theirs: impl FnMut() -> u64,
) -> Result<Comparison, Failure> {
    let passes: Vec<Pass<'_>> = vec![
        (ours::NAME.to_owned(), Box::new(ours)),
        (rival.to_owned(), Box::new(theirs)),
    ];
    let times: Vec<Rounds> = compare(part, effort, passes)?
        .into_iter()
        .map(|rounds| rounds.per_operation(effort.lookups))
        .collect();
    Ok(Comparison::new(
        SUITE, name, rival, "ns", &times[0], &times[1],
    ))
}

/// Maps of all kinds with the same entries.
struct Maps<K> {
    /// Ours first.
    kinds: Vec<Kind<K>>,
    maps: Vec<Box<dyn Passes<K>>>,
    workload: &'static str,
    effort: Effort,
}

/// The parts of a workload that look keys up, by what their comparisons' names begin with. A part
/// may be missing.
#[derive(Clone, Copy, Debug, Default)]
struct LookupParts {
    dependent: Option<&'static str>,
    independent: Option<&'static str>,
    many: Option<&'static str>,
}

impl LookupParts {
    /// Those that this run is to measure.
    fn measured(self, workload: &str, effort: &Effort) -> Self {
        let measured = |part: &&str| measures(effort, workload, part);
        LookupParts {
            dependent: self.dependent.filter(measured),
            independent: self.independent.filter(measured),
            many: self.many.filter(measured),
        }
    }

    /// Whether there are none.
    fn is_empty(self) -> bool {
        self.dependent.or(self.independent).or(self.many).is_none()
    }
}

impl<K: Key> Maps<K> {
    /// Maps of `kinds`, with `keys`, inserted in their order.
    fn with_keys(workload: &'static str, effort: &Effort, kinds: Vec<Kind<K>>, keys: &[K]) -> Self {
        let maps = kinds.iter().map(|kind| kind.with_keys(keys)).collect();
        Maps {
            kinds,
            maps,
            workload,
            effort: effort.clone(),
        }
    }

    /// Times `pass`, of so many operations, over all maps, if the user wants this part.
    fn measure(
        &mut self,
        part: &'static str,
        operations: usize,
        pass: impl Fn(&mut dyn Passes<K>) -> u64,
    ) -> Result<Vec<Comparison>, Failure> {
        if !measures(&self.effort, self.workload, part) {
            return Ok(Vec::new());
        }
        let pass = &pass;
        let passes: Vec<Pass<'_>> = self
            .kinds
            .iter()
            .zip(&mut self.maps)
            .map(|(kind, map)| -> Pass<'_> {
                (kind.name.to_owned(), Box::new(move || pass(map.as_mut())))
            })
            .collect();
        let times: Vec<Rounds> = compare(part, &self.effort, passes)?
            .into_iter()
            .map(|rounds| rounds.per_operation(operations))
            .collect();
        Ok(against_each(part, &self.kinds, &times, "ns"))
    }

    /// Times the lookups of queries that `draw` gives.
    fn look_up(
        &mut self,
        parts: LookupParts,
        mut draw: impl FnMut() -> K,
    ) -> Result<Vec<Comparison>, Failure> {
        let lookups = self.effort.lookups;
        let parts = parts.measured(self.workload, &self.effort);
        let mut comparisons = Vec::new();
        if let Some(part) = parts.dependent {
            let chain = Chain::draw(lookups, &mut draw);
            comparisons.extend(self.measure(part, lookups, |map| map.get_dependent(&chain))?);
        }
        if parts.independent.or(parts.many).is_none() {
            return Ok(comparisons);
        }
        let queries: Vec<K> = std::iter::repeat_with(draw).take(lookups).collect();
        if let Some(part) = parts.independent {
            comparisons.extend(self.measure(part, lookups, |map| map.get_independent(&queries))?);
        }
        if let Some(part) = parts.many {
            comparisons.extend(self.measure(part, lookups, |map| map.get_many(&queries))?);
        }
        Ok(comparisons)
    }
}
