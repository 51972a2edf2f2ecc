//! The workloads, a module for each crate under test.

#[cfg(feature = "apps")]
mod apps;
mod ccmalloc;
mod ccmorph;
mod ctree;
pub mod olden;
mod predictions;
mod scaling;

use crate::rounds::Rounds;
use crate::timing::timed;
use crate::workload::{Effort, Failure, Workload, wrong_answer};
use ccmodel::counters::Counters;

/// A workload of the suite `ctree`, which runs in a process of its own.
const fn map(workload: Workload, if_full: &'static [&'static str]) -> Workload {
    Workload {
        if_full,
        alone: true,
        ..workload
    }
}

/// Every workload, suite by suite. Names are stable: figures are compared with earlier ones by
/// name.
#[rustfmt::skip]
pub const WORKLOADS: &[Workload] = &[
    Workload::new("ccmalloc", "bst_hinted_search_2m", &[], ccmalloc::bst_hinted_search),
    Workload::new("ccmalloc", "bst_hinted_insert_2m", &[], ccmalloc::bst_hinted_insert),
    Workload::new("ccmalloc", "chain_hinted_walk_2m", &[], ccmalloc::chain_hinted_walk),
    Workload::new("ccmalloc", "hinted_memory_bst", &[], ccmalloc::hinted_memory_bst),
    Workload::new("ccmalloc", "unhinted", &["rss"], ccmalloc::unhinted),
    Workload::new("ccmalloc", "small_rss", &[], ccmalloc::small_rss),
    Workload::new("ccmalloc", "build_once_tree", &[], ccmalloc::build_once_tree),
    Workload::new("ccmalloc", "null_hint_control", &["null_hint_bst", "null_hint_chain"],
        ccmalloc::null_hint_control),
    Workload::new("ccmalloc", "hinted_alloc_cost", &[], ccmalloc::hinted_alloc_cost),
    Workload::new("ccmorph", "bst_random_dependent_2m", &[], ccmorph::bst_random_2m),
    Workload::new("ccmorph", "bst_random_dependent_4m",
        &["bst_random_independent_4m", "bst_random_side_by_side_4m"], ccmorph::bst_random_4m),
    Workload::new("ccmorph", "list_churned_walk", &[], ccmorph::list_churned_walk),
    Workload::new("ccmorph", "hash_chains_walk", &[], ccmorph::hash_chains_walk),
    Workload::new("ccmorph", "octree_queries", &[], ccmorph::octree_queries),
    Workload::new("ccmorph", "auto_regret", &[], ccmorph::auto_regret),
    Workload::new("ccmorph", "weighted_zipf", &[], ccmorph::weighted_zipf),
    Workload::new("ccmorph", "morph_vs_clone", &["morph_memory"], ccmorph::morph_cost),
    map(Workload::new("ctree", "lookups_2m", &["get_dependent_2m", "get_independent_2m",
            "get_many_2m", "iterate_2m", "range_100_2m"], ctree::lookups_2m),
        &["zipf_get_dependent_2m", "zipf_get_independent_2m", "zipf_get_many_2m",
            "misses_get_independent_2m", "misses_get_many_2m"]),
    map(Workload::new("ctree", "lookups_33m", &["get_dependent_33m", "get_many_33m"],
        ctree::lookups_33m), &[]),
    map(Workload::new("ctree", "updates_2m",
        &["insert_random_2m", "bytes_per_key_2m", "remove_random_2m"], ctree::updates_2m),
        &["insert_sorted_2m", "insert_reverse_2m"]),
    map(Workload::new("ctree", "mixed_50_50_2m", &[], ctree::mixed_2m), &[]),
    map(Workload::new("ctree", "whole_maps_1m",
        &["split_off_1m", "clone_1m", "clone_string_1m", "append_1m"], ctree::whole_maps), &[]),
    map(Workload::new("ctree", "small_maps", &["small_map_16", "small_map_1000"],
        ctree::small_maps), &[]),
    map(Workload::new("ctree", "memory_1m", &["memory_map_value", "memory_one_entry",
        "memory_removed_1m", "memory_string_1m"], ctree::memory), &[]),
    map(Workload::new("ctree", "strings_1m", &["string_get_1m"], ctree::strings_1m),
        &["string_get_dependent_1m", "string_get_many_1m"]),
    map(Workload::new("ctree", "clustered_2m", &["clustered_keys_get_2m"], ctree::clustered_2m),
        &["clustered_keys_get_independent_2m", "clustered_keys_get_many_2m"]),
    map(Workload::new("ctree", "tuples_2m", &[], ctree::tuples_2m),
        &["tuple_get_dependent_2m", "tuple_get_independent_2m", "tuple_get_many_2m"]),
    map(Workload::new("ctree", "prefixed_strings_1m", &[], ctree::prefixed_strings_1m),
        &["prefixed_string_get_dependent_1m", "prefixed_string_get_independent_1m",
            "prefixed_string_get_many_1m"]),
    map(Workload::new("ctree", "frozen_2m", &["frozen_get_dependent_2m",
        "frozen_get_independent_2m", "frozen_get_many_2m"], ctree::frozen_2m), &[]),
    map(Workload::new("ctree", "frozen_u32_set_batch_2m_ns", &[], ctree::frozen_u32_set), &[]),
    #[cfg(feature = "bbtree")]
    map(Workload::new("ctree", "mapped_2m", &["mapped_get_many_2m"], ctree::mapped_2m),
        &["mapped_get_dependent_2m", "mapped_get_independent_2m"]),
    Workload::new("model", "predict_bst_2m", &[], predictions::predict_bst),
    Workload::new("olden", "olden_treeadd", &[], olden::of_program::<0>),
    Workload::new("olden", "olden_perimeter", &[], olden::of_program::<1>),
    Workload::new("olden", "olden_bisort", &[], olden::of_program::<2>),
    Workload::new("olden", "olden_health", &[], olden::of_program::<3>),
    Workload::new("olden", "olden_mst", &[], olden::of_program::<4>),
    Workload::new("olden", "olden_em3d", &[], olden::of_program::<5>),
    Workload::new("olden", "olden_tsp", &[], olden::of_program::<6>),
    Workload::new("olden", "olden_geomean", &["olden_thesis_sim"], olden::means),
    Workload::new("scaling", "mt_2_threads_scaling", &["mt_2_threads_ns"],
        scaling::allocator_threads),
    Workload::new("scaling", "map_reads_2_threads_scaling", &["map_reads_2_threads_ns"],
        scaling::map_threads),
    Workload::new("scaling", "lookup", &[], scaling::lookup),
    #[cfg(feature = "apps")]
    Workload::new("apps", "app_1", &[], apps::phrases),
    #[cfg(feature = "apps")]
    Workload::new("apps", "app_2", &[], apps::rays),
    #[cfg(feature = "apps")]
    Workload::new("apps", "app_3", &[], apps::diagrams),
    #[cfg(feature = "apps")]
    Workload::new("apps", "app_4", &[], apps::completions),
];

/// A structure under measurement: its name for complaints, and a pass over all operations that
/// returns a sum of the answers.
type Pass<'a> = (String, Box<dyn FnMut() -> u64 + 'a>);

fn pass<'a>(name: impl Into<String>, run: impl FnMut() -> u64 + 'a) -> Pass<'a> {
    (name.into(), Box::new(run))
}

/// Times `passes`, of `operations` each, in turns; what each took for an operation. All of them
/// must always return the same sum.
///
/// One pass each is run before, untimed: it fills the caches and says which sum is right. Where the
/// machine has hardware counters, one each is run after, and counted.
fn compare(
    workload: &str,
    effort: &Effort,
    operations: usize,
    mut passes: Vec<Pass<'_>>,
) -> Result<Vec<Rounds>, Failure> {
    let mut expected = None;
    let mut time = |(name, run): &mut Pass<'_>| {
        let (time, sum) = timed(run);
        match *expected.get_or_insert(sum) == sum {
            true => Ok(time),
            false => Err(wrong_answer(workload, name)),
        }
    };
    for pass in &mut passes {
        time(pass)?;
    }
    let mut rounds = Rounds::in_turns(effort.rounds, passes.len(), operations, |which| {
        time(&mut passes[which])
    })?;
    if let Ok(mut counters) = Counters::new() {
        for (rounds, pass) in rounds.iter_mut().zip(&mut passes) {
            let mut result = Ok(());
            rounds.count(&mut counters, operations, || result = time(pass).map(drop));
            result?;
        }
    }
    Ok(rounds)
}

/// The workloads that `suite` and `only` leave, in the order of the list; without either, all.
///
/// `only` is a workload's name or the beginning of one comparison's name that goes on with `_`.
///
/// # Errors
/// When `only` names nothing, or nothing in this build; the message lists what there is.
pub fn select(suite: Option<&str>, only: Option<&str>) -> Result<Vec<&'static Workload>, String> {
    let in_suite = || {
        let all = WORKLOADS.iter();
        all.filter(move |workload| suite.is_none_or(|name| name == workload.suite))
    };
    let chosen: Vec<&Workload> = in_suite()
        .filter(|workload| only.is_none_or(|only| workload.covers(only)))
        .collect();
    if chosen.is_empty() {
        let name = only.or(suite).unwrap_or_default();
        let known: Vec<&str> = in_suite().map(|workload| workload.name).collect();
        let known = known.join(", ");
        return Err(format!(
            "this build has no workload {name:?}; it has {known}"
        ));
    }
    Ok(chosen)
}
