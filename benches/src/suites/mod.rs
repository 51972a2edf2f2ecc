//! The workloads, a module for each crate under test.

#[cfg(feature = "apps")]
mod apps;
mod ccmalloc;
mod ccmorph;
mod ctree;
pub mod olden;
mod predictions;
mod scaling;

use crate::dispatch::served_by;
use crate::programs::Scale;
use crate::rivals::SYSTEM;
use crate::rounds::Rounds;
use crate::timing::timed;
use crate::worker;
use crate::workload::{Effort, Failure, Rows, Workload, wrong_answer};
use benches::WORKLOADS;
use ccmodel::counters::Counters;

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
        "small_maps" => ctree::small_maps,
        "memory_1m" => ctree::memory,
        "strings_1m" => ctree::strings_1m,
        "clustered_2m" => ctree::clustered_2m,
        "tuples_2m" => ctree::tuples_2m,
        "prefixed_strings_1m" => ctree::prefixed_strings_1m,
        "frozen_2m" => ctree::frozen_2m,
        "frozen_u32_set_batch_2m_ns" => ctree::frozen_u32_set,
        #[cfg(feature = "bbtree")]
        "mapped_2m" => ctree::mapped_2m,
        "predict_bst_2m" => predictions::predict_bst,
        "olden_geomean" => olden::means,
        "mt_2_threads_scaling" => scaling::allocator_threads,
        "map_reads_2_threads_scaling" => scaling::map_threads,
        "lookup" => scaling::lookup,
        #[cfg(feature = "apps")]
        "app_1" | "app_2" | "app_3" | "app_4" => apps::compare,
        name if name.starts_with("olden_") => olden::of_program,
        _ => return None,
    };
    Some(measure)
}

/// Measures `workload`. Those of the suite `ctree` have a process of their own under the system's
/// malloc, because they need a young heap.
///
/// # Errors
/// Those of the workload, and when its process fails.
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
    let rows = output.lines().map(serde_json::from_str);
    Ok(rows.collect::<Result<_, _>>()?)
}

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
        let built = WORKLOADS.iter().filter(|it| measure_of(it.name).is_some());
        built.filter(move |workload| suite.is_none_or(|name| name == workload.suite))
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
