//! The workloads, a module for each crate under test.

#[cfg(feature = "apps")]
pub mod apps;
pub mod ccmalloc;
pub mod ccmorph;
pub mod ctree;
pub mod model;
pub mod olden;
pub mod scaling;

use std::cell::Cell;
use std::fmt;
use std::hint::black_box;
use std::time::Duration;

use crate::rng::Rng;
use crate::search_tree::SearchTree;
use crate::source::{Source, allocate_from};
use crate::timing::{timed, times_in_turns};
use ccmodel::counters::Counters;

use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Workload, WrongAnswer, covers};

/// Every workload, suite by suite. Names are stable: figures are compared with earlier ones by
/// name.
pub const WORKLOADS: &[Workload] = &[
    ccmalloc::BST_HINTED_SEARCH_2M,
    ccmalloc::BST_HINTED_INSERT_2M,
    ccmalloc::CHAIN_HINTED_WALK_2M,
    ccmalloc::HINTED_MEMORY_BST,
    ccmalloc::UNHINTED,
    ccmalloc::SMALL_RSS,
    ccmalloc::BUILD_ONCE_TREE,
    ccmalloc::NULL_HINT_CONTROL,
    ccmalloc::HINTED_ALLOC_COST,
    ccmorph::BST_RANDOM_DEPENDENT_2M,
    ccmorph::BST_RANDOM_4M,
    ccmorph::LIST_CHURNED_WALK,
    ccmorph::HASH_CHAINS_WALK,
    ccmorph::OCTREE_QUERIES,
    ccmorph::AUTO_REGRET,
    ccmorph::WEIGHTED_ZIPF,
    ccmorph::MORPH_COST,
    ctree::LOOKUPS_2M,
    ctree::LOOKUPS_33M,
    ctree::UPDATES_2M,
    ctree::MIXED_2M,
    ctree::WHOLE_MAPS_1M,
    ctree::SMALL_MAPS,
    ctree::MEMORY,
    ctree::STRINGS_1M,
    ctree::CLUSTERED_KEYS_2M,
    ctree::TUPLES_2M,
    ctree::PREFIXED_STRINGS_1M,
    ctree::FROZEN_2M,
    ctree::FROZEN_U32_SET_2M,
    #[cfg(feature = "bbtree")]
    ctree::MAPPED_2M,
    model::PREDICT_BST_2M,
    olden::TREEADD,
    olden::PERIMETER,
    olden::BISORT,
    olden::HEALTH,
    olden::MST,
    olden::EM3D,
    olden::TSP,
    olden::MEANS,
    scaling::MT_2_THREADS_SCALING,
    scaling::MAP_READS_2_THREADS_SCALING,
    scaling::LOOKUP,
    #[cfg(feature = "apps")]
    apps::APP_1,
    #[cfg(feature = "apps")]
    apps::APP_2,
    #[cfg(feature = "apps")]
    apps::APP_3,
    #[cfg(feature = "apps")]
    apps::APP_4,
];

/// Seed of all keys and queries, so that figures are compared like with like.
const SEED: u64 = 0x5EED;

/// `count` different keys, even over all of `u64`, in random order.
fn random_keys(count: usize) -> Vec<u64> {
    let mut rng = Rng::new(SEED);
    // The generator's step is a bijection of its counter, so no number comes twice.
    (0..count).map(|_| rng.next_u64()).collect()
}

/// A search tree with `keys`, inserted in their order, in memory from `source`.
fn plain_tree(source: Source, keys: &[u64]) -> SearchTree {
    allocate_from(source, || {
        let mut tree = SearchTree::default();
        for &key in keys {
            tree.insert(key, ());
        }
        tree
    })
}

/// The low half of `key` as the tree holds it. Read through a reference that the compiler knows
/// nothing about: told from the query alone, lookups would not wait for each other.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is asked for"
)]
fn tree_answer(tree: &SearchTree, key: u64) -> u32 {
    tree.lower_bound(key)
        .map_or(u32::MAX, |node| black_box(node).key as u32)
}

/// A structure under measurement: its name for complaints, and a pass over all operations that
/// returns a sum of the answers.
type Pass<'a> = (String, Box<dyn FnMut() -> u64 + 'a>);

/// Times of the passes in nanoseconds, taken in turns; all of them must always return the same sum.
///
/// One pass each is run before, untimed: it fills the caches and says which sum is right. Where the
/// machine has hardware counters, one each is run after, and counted.
fn compare(
    workload: &'static str,
    effort: &Effort,
    passes: Vec<Pass<'_>>,
) -> Result<Vec<Rounds>, WrongAnswer> {
    let (names, mut runs): (Vec<String>, Vec<_>) = passes.into_iter().unzip();
    let wrong = |who: usize| WrongAnswer {
        workload,
        who: names[who].clone(),
    };
    let mut expected = None;
    for (index, run) in runs.iter_mut().enumerate() {
        let sum = run();
        if *expected.get_or_insert(sum) != sum {
            return Err(wrong(index));
        }
    }
    let differs = Cell::new(None);
    let mut timed_runs: Vec<_> = runs
        .iter_mut()
        .enumerate()
        .map(|(index, run)| {
            let differs = &differs;
            move || {
                let (time, sum) = timed(&mut *run);
                if expected != Some(sum) {
                    differs.set(Some(index));
                }
                time
            }
        })
        .collect();
    let mut subjects: Vec<&mut dyn FnMut() -> Duration> = Vec::new();
    subjects.extend(
        timed_runs
            .iter_mut()
            .map(|run| run as &mut dyn FnMut() -> Duration),
    );
    let times = times_in_turns(effort.rounds, &mut subjects);
    let mut rounds: Vec<Rounds> = times.into_iter().map(Rounds::of_times).collect();
    if let Ok(mut counters) = Counters::new() {
        let counted = rounds.into_iter().zip(subjects);
        rounds = counted
            .map(|(rounds, subject)| {
                rounds.counted(&mut counters, || {
                    subject();
                })
            })
            .collect();
    }
    differs.get().map_or(Ok(rounds), |index| Err(wrong(index)))
}

/// `comparisons` with one rival each, and in front of them the one with the best of these rivals,
/// under the workload's own name.
fn against_the_best(workload: &Workload, comparisons: Vec<Comparison>) -> Vec<Comparison> {
    best_first(workload.name, comparisons)
}

/// The same, with `name` for the one in front.
fn best_first(name: &str, comparisons: Vec<Comparison>) -> Vec<Comparison> {
    let best = comparisons
        .iter()
        .min_by(|a, b| a.theirs.total_cmp(&b.theirs))
        .map(|best| Comparison {
            name: name.to_owned(),
            ..best.clone()
        });
    best.into_iter().chain(comparisons).collect()
}

/// The workloads that `suite` and `only` leave, in the order of the list; without either, all.
///
/// `only` is a workload's name or the beginning of one comparison's name that goes on with `_`.
///
/// # Errors
/// When `only` names nothing, or nothing in this build; the message lists what there is.
pub fn select(
    suite: Option<&str>,
    only: Option<&str>,
) -> Result<Vec<&'static Workload>, UnknownName> {
    let in_suite: Vec<&Workload> = WORKLOADS
        .iter()
        .filter(|workload| suite.is_none_or(|name| name == workload.suite))
        .collect();
    let chosen: Vec<&Workload> = in_suite
        .iter()
        .copied()
        .filter(|workload| {
            let mut beginnings = workload.also.iter().chain([&workload.name]);
            only.is_none_or(|only| beginnings.any(|beginning| covers(beginning, only)))
        })
        .collect();
    if chosen.is_empty() {
        return Err(UnknownName {
            name: only.or(suite).unwrap_or_default().to_owned(),
            known: in_suite.iter().map(|workload| workload.name).collect(),
        });
    }
    Ok(chosen)
}

/// A workload that does not exist, or not in this build.
#[derive(Clone, Debug)]
pub struct UnknownName {
    name: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.join(", ");
        write!(
            f,
            "this build has no workload {:?}; it has {known}",
            self.name
        )
    }
}

impl std::error::Error for UnknownName {}
