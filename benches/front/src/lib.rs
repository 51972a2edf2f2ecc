//! The command line of `report`, and the names that it takes.
//!
//! The rivals take minutes to build. The arguments, their help and the list of workloads need none
//! of them and live here; the package `measure` holds everything else.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;

/// The features of this package and of `measure`, and whether they are on: tables, rivals, `apps`.
pub const FEATURES: &[(&str, bool)] = &[
    ("parquet", cfg!(feature = "parquet")),
    ("mimalloc", cfg!(feature = "mimalloc")),
    ("jemalloc", cfg!(feature = "jemalloc")),
    ("snmalloc", cfg!(feature = "snmalloc")),
    ("bumpalo", cfg!(feature = "bumpalo")),
    ("bbtree", cfg!(feature = "bbtree")),
    ("brie-tree", cfg!(feature = "brie-tree")),
    ("indexset", cfg!(feature = "indexset")),
    ("apps", cfg!(feature = "apps")),
];

/// The values of `--suite` in the order in which they run, and what they measure.
#[rustfmt::skip]
pub const SUITES: &[(&str, &str)] = &[
    ("ccmalloc", "hinted structures, and whole programs without hints, against other allocators"),
    ("ccmorph", "morphed trees, lists, tables and octrees against what they were before"),
    ("ctree", "ordered maps against BTreeMap and others"),
    ("model", "predictions against the clock"),
    ("olden", "the Olden programs over allocators and placements"),
    ("scaling", "two threads, and structures of growing size"),
    ("scope", "programs under ccscope, against the same without; Linux on x86-64"),
    ("trace", "every access by ccscope trace, against other tracers; Linux on x86-64"),
    ("advice", "advice of ccscope against the clock; Linux on x86-64"),
    ("improve", "ccscope improve, rules and the learner against the clock; Linux on x86-64"),
    ("live", "ccscope on programs that run, and in their tests; Linux on x86-64"),
    ("apps", "applications of published crates; needs --features apps"),
];

/// Names, or beginnings of names.
pub type Names = &'static [&'static str];

/// What measures ours and its rivals. Suites know the names in the two lists by their places.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The suite that it belongs to.
    pub suite: &'static str,
    /// Its name for `--only`. Names of its comparisons begin so.
    pub name: &'static str,
    /// Names of further comparisons of the same runs begin so.
    pub also: Names,
    /// Beginnings of names that are measured by full runs, and by runs that name them.
    pub if_full: Names,
}

impl Workload {
    /// Whether `only` names all of it, or comparisons that it makes.
    pub fn covers(&self, only: &str) -> bool {
        let mut beginnings = self.also.iter().chain(self.if_full).chain([&self.name]);
        beginnings.any(|beginning| covers(beginning, only))
    }
}

/// Whether `name` is `beginning`, or begins with it and goes on with `_`.
pub fn covers(beginning: &str, name: &str) -> bool {
    name.strip_prefix(beginning)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

const fn workload(
    suite: &'static str,
    name: &'static str,
    also: Names,
    if_full: Names,
) -> Workload {
    Workload {
        suite,
        name,
        also,
        if_full,
    }
}

/// Suite by suite. Names are stable: figures are compared with earlier ones by name.
#[rustfmt::skip]
pub const WORKLOADS: &[Workload] = &[
    workload("ccmalloc", "bst_hinted_search_2m", &[], &[]),
    workload("ccmalloc", "bst_hinted_insert_2m", &[], &[]),
    workload("ccmalloc", "chain_hinted_walk_2m", &[], &[]),
    workload("ccmalloc", "hinted_memory_bst", &[], &[]),
    workload("ccmalloc", "unhinted", &["rss"], &[]),
    workload("ccmalloc", "small_rss", &[], &[]),
    workload("ccmalloc", "build_once_tree", &[], &[]),
    workload("ccmalloc", "null_hint_control", &["null_hint_bst", "null_hint_chain"], &[]),
    workload("ccmalloc", "hinted_alloc_cost", &[], &[]),
    workload("ccmalloc", "production", &[], &[]),
    workload("ccmorph", "bst_random_dependent_2m", &[], &[]),
    workload("ccmorph", "bst_random_dependent_4m",
        &["bst_random_independent_4m", "bst_random_side_by_side_4m"], &[]),
    workload("ccmorph", "list_churned_walk", &[], &[]),
    workload("ccmorph", "hash_chains_walk", &[], &[]),
    workload("ccmorph", "octree_queries", &[], &[]),
    workload("ccmorph", "auto_regret", &[], &[]),
    workload("ccmorph", "weighted_zipf", &[], &[]),
    workload("ccmorph", "morph_vs_clone", &["morph_memory"], &[]),
    workload("ctree", "lookups_2m",
        &["get_dependent_2m", "get_independent_2m", "get_many_2m", "iterate_2m", "range_100_2m"],
        &["zipf_get_dependent_2m", "zipf_get_independent_2m", "zipf_get_many_2m",
            "misses_get_independent_2m", "misses_get_many_2m"]),
    workload("ctree", "lookups_33m", &["get_dependent_33m", "get_many_33m"], &[]),
    workload("ctree", "updates_2m", &["insert_random_2m", "bytes_per_key_2m", "remove_random_2m"],
        &["insert_sorted_2m", "insert_reverse_2m"]),
    workload("ctree", "mixed_50_50_2m", &[], &[]),
    workload("ctree", "whole_maps_1m",
        &["split_off_1m", "clone_1m", "clone_string_1m", "append_1m"], &[]),
    workload("ctree", "whole_maps_2m",
        &["split_off_middle_2m", "split_off_tenth_2m", "append_disjoint_2m", "append_small_2m",
            "drop_inserted_2m"], &[]),
    workload("ctree", "ends_of_maps",
        &["drop_5m", "clear_5m", "drop_string_1m"],
        &["clear_string_1m", "drop_50m", "clear_50m", "drop_string_5m", "clear_string_5m"]),
    workload("ctree", "tiny_maps", &["tiny_maps_100k"], &["tiny_maps_1m"]),
    workload("ctree", "small_maps", &["small_map_16", "small_map_1000"], &[]),
    workload("ctree", "memory_1m",
        &["memory_map_value", "memory_one_entry", "memory_removed_1m", "memory_string_1m"], &[]),
    workload("ctree", "strings_1m", &["string_get_1m"],
        &["string_get_dependent_1m", "string_get_many_1m"]),
    workload("ctree", "clustered_2m", &["clustered_keys_get_2m"],
        &["clustered_keys_get_independent_2m", "clustered_keys_get_many_2m"]),
    workload("ctree", "tuples_2m", &[],
        &["tuple_get_dependent_2m", "tuple_get_independent_2m", "tuple_get_many_2m"]),
    workload("ctree", "prefixed_strings_1m", &[],
        &["prefixed_string_get_dependent_1m", "prefixed_string_get_independent_1m",
            "prefixed_string_get_many_1m"]),
    workload("ctree", "frozen_2m",
        &["frozen_get_dependent_2m", "frozen_get_independent_2m", "frozen_get_many_2m"], &[]),
    workload("ctree", "frozen_u32_set",
        &["frozen_u32_set_batch_2m_ns", "frozen_u32_set_64mib"], &["frozen_u32_set_1gib"]),
    workload("ctree", "mapped_2m", &["mapped_get_many_2m"],
        &["mapped_get_dependent_2m", "mapped_get_independent_2m"]),
    workload("model", "predict_bst_2m", &[], &[]),
    workload("olden", "olden_treeadd", &[], &[]),
    workload("olden", "olden_perimeter", &[], &[]),
    workload("olden", "olden_bisort", &[], &[]),
    workload("olden", "olden_health", &[], &[]),
    workload("olden", "olden_mst", &[], &[]),
    workload("olden", "olden_em3d", &[], &[]),
    workload("olden", "olden_tsp", &[], &[]),
    workload("olden", "olden_geomean", &["olden_thesis_sim"], &[]),
    workload("scaling", "mt_2_threads_scaling", &["mt_2_threads_ns"], &[]),
    workload("scaling", "map_reads_2_threads_scaling", &["map_reads_2_threads_ns"], &[]),
    workload("scaling", "lookup", &[], &[]),
    workload("scope", "scope_heap",
        &["scope_alloc_geomean", "scope_alloc_of", "scope_counters_only", "scope_memory_geomean"],
        &[]),
    workload("scope", "scope_alloc_bound", &[], &["scope_vs_dhat"]),
    workload("scope", "scope_open_1gb", &[], &["scope_open_1gb"]),
    workload("scope", "scope_others", &[], &["scope_others"]),
    workload("scope", "scope_javac", &[], &["scope_javac"]),
    workload("scope", "scope_node", &[], &["scope_node"]),
    workload("scope", "scope_hello", &["scope_hello_seconds", "scope_hello_memory"], &[]),
    workload("scope", "regions", &[], &[]),
    workload("scope", "scope_page_open_1e7", &[],
        &["scope_page_open_1e7", "scope_page_frame", "scope_page_bytes_per_site"]),
    workload("scope", "scope_diff_1e5_sites", &[], &["scope_diff_1e5_sites"]),
    workload("scope", "scope_export_parquet_mb_s", &[], &["scope_export_parquet_mb_s"]),
    workload("live", "live_attach",
        &["live_attach_of", "live_attach_geomean", "live_attach_pause_ms"], &[]),
    workload("live", "live_sample",
        &["live_sample_of", "live_sample_geomean", "live_sample_memory_mib"], &[]),
    workload("trace", "trace_ns_per_access_vs_lackey", &[], &[]),
    workload("trace", "trace_vs_madt", &[], &[]),
    workload("trace", "trace_hot_ns_vs_fault", &[], &[]),
    workload("trace", "trace_bytes_per_access", &[], &[]),
    workload("advice", "advice_right",
        &["advice_of", "advice_found", "advice_worst", "advice_gain_error", "advice_range_holds",
            "advice_best_gain", "advice_fit", "training"], &[]),
    workload("advice", "improve_source_geomean",
        &["improve_source_of", "improve_source_worst", "improve_right", "improve_minutes"], &[]),
    workload("advice", "advise_seconds", &[], &[]),
    workload("advice", "fields_misses", &["fields_misses_of"], &[]),
    workload("advice", "split_misses", &[], &[]),
    workload("improve", "rules_vs_hand", &["rules_vs_hand_of"], &[]),
    workload("improve", "rules_filter_ns", &[], &[]),
    workload("improve", "learn_overhead", &[], &[]),
    workload("improve", "improve_geomean",
        &["improve_of", "improve_worst", "improve_others", "improve_memory"], &[]),
    workload("live", "measure_overhead_ns", &[], &[]),
    workload("apps", "app_1", &[], &[]),
    workload("apps", "app_2", &[], &[]),
    workload("apps", "app_3", &[], &[]),
    workload("apps", "app_4", &[], &[]),
];

/// Measures ours against the rivals; ratios above 1 mean that ours is better
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "report")]
pub struct Args {
    /// Fewer rounds, and the main figures only: each suite ends within a minute
    #[arg(long)]
    pub quick: bool,

    /// Only this suite
    #[arg(long, value_name = "NAME", value_parser =
        PossibleValuesParser::new(SUITES.iter().map(|(name, _)| *name)))]
    pub suite: Option<String>,

    /// Only this workload, this one comparison, or those whose names begin so
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,

    /// Print the suites and their workloads, and measure nothing
    #[arg(long)]
    pub list: bool,

    /// One JSON object a line instead of the table
    #[arg(long)]
    pub json: bool,

    /// Also write report.jsonl, report.md, report.html and pictures here, after each workload
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Measure nothing: write the files of --out from these report.jsonl
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "out",
        conflicts_with_all = ["quick", "suite", "only", "json"])]
    pub render: Vec<PathBuf>,

    /// Measure nothing: write the tables between the marks of these Markdown files again
    #[arg(long, value_name = "FILE", num_args = 1..,
        conflicts_with_all = ["quick", "suite", "only", "json", "out", "render"])]
    pub tables: Vec<PathBuf>,

    /// With --tables: change no file, and fail when one would change
    #[arg(long, requires = "tables")]
    pub check: bool,

    /// Run this program once under the allocator of the environment, and print one JSON object
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub worker: Option<String>,

    /// Run this one workload in place, and print one JSON object for each of its comparisons
    #[arg(long, value_name = "NAME", hide = true)]
    pub alone: Option<String>,
}

/// The suites and their workloads, a line each.
#[must_use]
pub fn list() -> String {
    let mut text = String::new();
    for (suite, about) in SUITES {
        text.push_str(&format!("{suite:9} {about}\n"));
        for workload in WORKLOADS.iter().filter(|workload| workload.suite == *suite) {
            text.push_str(&format!("    {}\n", workload.name));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_list_names_every_workload_once() {
        let list = super::list();
        for workload in super::WORKLOADS {
            let lines = list.lines().filter(|line| line.trim() == workload.name);
            assert_eq!(lines.count(), 1, "{workload:?}");
        }
    }
}
