//! The workloads, a module for each crate under test.

mod advice;
mod advice_profiles;
mod advice_source;
#[cfg(feature = "apps")]
mod apps;
mod ccmalloc;
mod ccmorph;
mod ctree;
mod improve;
mod live;
mod live_measure;
pub mod olden;
mod predictions;
/// The one of the tests of `ccscope`.
#[path = "../../../scope/tests/all/regions/reference.rs"]
mod reference;
mod scaling;
mod scope;
mod scope_others;
mod scope_page;
mod scope_regions;
#[cfg(feature = "parquet")]
mod scope_tables;
mod scope_views;
#[cfg(feature = "parquet")]
mod trace;

use std::time::Duration;

use benches::WORKLOADS;
use ccmodel::counters::Counters;

use crate::dispatch::served_by;
use crate::output::Record;
use crate::programs::Scale;
use crate::rivals::{ALLOCATORS, SYSTEM};
use crate::rounds::Rounds;
use crate::timing::timed;
use crate::worker;
use crate::workload::{Comparison, Effort, Failure, Rows, Side, Workload, against_each, agree};

/// What measures the workload called `name`; `None` when this build leaves it out.
fn measure_of(name: &str) -> Option<fn(&Workload, &Effort) -> Rows> {
    let measure: fn(&Workload, &Effort) -> Rows = match name {
        "bst_hinted_search_2m" => ccmalloc::bst_hinted_search,
        "bst_hinted_insert_2m" => ccmalloc::bst_hinted_insert,
        "chain_hinted_walk_2m" => ccmalloc::chain_hinted_walk,
        "hinted_memory_bst" => ccmalloc::hinted_memory_bst,
        "unhinted" => ccmalloc::unhinted,
        "small_rss" => ccmalloc::small_rss,
        "build_once_tree" => ccmalloc::build_once_tree,
        "null_hint_control" => ccmalloc::null_hint_control,
        "hinted_alloc_cost" => ccmalloc::hinted_alloc_cost,
        "production" => ccmalloc::production,
        "bst_random_dependent_2m" => ccmorph::bst_random_2m,
        "bst_random_dependent_4m" => ccmorph::bst_random_4m,
        "list_churned_walk" => ccmorph::list_churned_walk,
        "hash_chains_walk" => ccmorph::hash_chains_walk,
        "octree_queries" => ccmorph::octree_queries,
        "auto_regret" => ccmorph::auto_regret,
        "weighted_zipf" => ccmorph::weighted_zipf,
        "morph_vs_clone" => ccmorph::morph_cost,
        "lookups_2m" => ctree::lookups_2m,
        "lookups_33m" => ctree::lookups_33m,
        "updates_2m" => ctree::updates_2m,
        "mixed_50_50_2m" => ctree::mixed_2m,
        "whole_maps_1m" => ctree::whole_maps,
        "whole_maps_2m" => ctree::whole_maps_2m,
        "ends_of_maps" => ctree::ends,
        "tiny_maps" => ctree::tiny_maps,
        "small_maps" => ctree::small_maps,
        "memory_1m" => ctree::memory,
        "strings_1m" | "clustered_2m" | "tuples_2m" | "prefixed_strings_1m" => ctree::other_keys,
        "frozen_2m" => ctree::frozen_2m,
        "frozen_u32_set" => ctree::frozen_u32_set,
        #[cfg(feature = "bbtree")]
        "mapped_2m" => ctree::mapped_2m,
        "predict_bst_2m" => predictions::predict_bst,
        "olden_geomean" => olden::means,
        "mt_2_threads_scaling" => scaling::allocator_threads,
        "map_reads_2_threads_scaling" => scaling::map_threads,
        "lookup" => scaling::lookup,
        "advice_right" => advice::judge,
        "improve_source_geomean" => advice_source::packages,
        "advise_seconds" => advice_profiles::seconds,
        "fields_misses" => advice::fields_misses,
        "split_misses" => advice_profiles::split_misses,
        "rules_vs_hand" => improve::against_hands,
        "rules_filter_ns" => improve::filter,
        "learn_overhead" => improve::learner,
        "improve_geomean" => improve::command,
        "scope_heap" => scope::programs,
        "scope_alloc_bound" => scope::allocations,
        "scope_open_1gb" => scope::open,
        "scope_others" => scope_others::programs,
        "scope_javac" | "scope_node" => scope_others::jitted,
        "scope_hello" => scope_others::hello,
        "live_attach" => live::attached,
        "live_sample" => live::sampled,
        "measure_overhead_ns" => live_measure::overhead,
        "regions" => scope_regions::programs,
        "scope_page_open_1e7" => scope_page::page_of_1e7,
        "scope_diff_1e5_sites" => scope_views::diff_sites,
        #[cfg(feature = "parquet")]
        "scope_export_parquet_mb_s" => scope_tables::export_parquet,
        #[cfg(feature = "parquet")]
        "trace_ns_per_access_vs_lackey" => trace::beside_lackey,
        #[cfg(feature = "parquet")]
        "trace_vs_madt" => trace::beside_madt,
        #[cfg(feature = "parquet")]
        "trace_hot_ns_vs_fault" => trace::patched,
        #[cfg(feature = "parquet")]
        "trace_bytes_per_access" => trace::bytes_per_access,
        #[cfg(feature = "apps")]
        "app_1" | "app_2" | "app_3" | "app_4" => apps::compare,
        name if name.starts_with("olden_") => olden::of_program,
        _ => return None,
    };
    Some(measure)
}

/// Measures `workload`. Those of `ctree` need a young heap: a process of their own under malloc.
pub fn measure(workload: &Workload, effort: &Effort) -> Rows {
    let allocator = SYSTEM.process;
    if workload.suite != "ctree" || served_by() == allocator {
        let measure = measure_of(workload.name).ok_or("this build leaves it out")?;
        let mut rows = measure(workload, effort)?;
        for row in &mut rows {
            workload.suite.clone_into(&mut row.suite);
        }
        return Ok(rows);
    }
    let mut arguments = vec!["--alone", workload.name];
    arguments.extend((effort.scale == Scale::Quick).then_some("--quick"));
    if let Some(only) = &effort.only {
        arguments.extend(["--only", only]);
    }
    let output = worker::run(&arguments, allocator)?;
    Ok(Record::read(&output)?.rows)
}

struct Pass<'a> {
    /// Its names, as in [`Side`].
    slug: &'a str,
    name: &'a str,
    /// Returns a sum of the answers to all operations.
    run: Box<dyn FnMut() -> u64 + 'a>,
}

fn pass<'a>(slug: &'a str, name: &'a str, run: impl FnMut() -> u64 + 'a) -> Pass<'a> {
    let run = Box::new(run);
    Pass { slug, name, run }
}

impl Pass<'_> {
    /// A pass must return the sum that the first pass of all returned.
    fn time(&mut self, workload: &str, expected: &mut Option<u64>) -> Result<Duration, Failure> {
        let (time, sum) = timed(&mut self.run);
        agree(expected, sum, workload, self.name).map(|()| time)
    }
}

/// Times `passes`, of `operations` each, in turns: nanoseconds for an operation.
///
/// An untimed pass each before fills the caches and says which sum is right. Where the machine has
/// hardware counters, another one after is counted.
fn compare<'a>(
    workload: &str,
    effort: &Effort,
    operations: usize,
    mut passes: Vec<Pass<'a>>,
) -> Result<Vec<Side<'a>>, Failure> {
    let mut sum = None;
    for pass in &mut passes {
        pass.time(workload, &mut sum)?;
    }
    let mut all = Rounds::in_turns(effort.rounds, passes.len(), operations, |which| {
        passes[which].time(workload, &mut sum)
    })?;
    if let Ok(mut counters) = Counters::new() {
        for (rounds, pass) in all.iter_mut().zip(&mut passes) {
            let mut result = Ok(Duration::ZERO);
            let run = || result = pass.time(workload, &mut sum);
            rounds.count(&mut counters, operations, run);
            result?;
        }
    }
    let sides = passes.iter().zip(all);
    let sides = sides.map(|(pass, rounds)| Side::new(pass.slug, pass.name, rounds));
    Ok(sides.collect())
}

/// [`compare`]s the first pass, which is ours, with each of the others.
fn race(name: &str, effort: &Effort, operations: usize, passes: Vec<Pass<'_>>) -> Rows {
    let sides = compare(name, effort, operations, passes)?;
    Ok(against_each(name, "ns", &sides[0].rounds, &sides[1..]))
}

/// Ours, the first of `figures`, against the rivals, each in a process of its own.
fn against_processes(name: &str, unit: &str, figures: &[Rounds]) -> Vec<Comparison> {
    let rivals = ALLOCATORS.iter().zip(&figures[1..]);
    let rivals = rivals.map(|(it, theirs)| Side::new(it.process, it.name, theirs.clone()));
    against_each(name, unit, &figures[0], &rivals.collect::<Vec<_>>())
}

/// The workloads that `suite` and `only` leave, in the order of the list. `only` is the name of a
/// workload or the beginning of one comparison's.
pub fn select(suite: Option<&str>, only: Option<&str>) -> Result<Vec<&'static Workload>, String> {
    let of_suite = |it: &&Workload| suite.is_none_or(|name| name == it.suite);
    let built = WORKLOADS.iter().filter(|it| measure_of(it.name).is_some());
    let known: Vec<&Workload> = built.filter(of_suite).collect();
    let is_chosen = |it: &&Workload| only.is_none_or(|only| it.covers(only));
    let chosen: Vec<&Workload> = known.iter().copied().filter(is_chosen).collect();
    if chosen.is_empty() {
        let name = only.or(suite).unwrap_or_default();
        let known: Vec<&str> = known.iter().map(|workload| workload.name).collect();
        let known = known.join(", ");
        return Err(format!(
            "this build has no workload {name:?}; it has {known}"
        ));
    }
    Ok(chosen)
}
