//! The command line of `report`, and the names that it takes.
//!
//! The rivals take minutes to build. The arguments, their help and the list of workloads need none
//! of them and live here; the package `measure` holds everything else.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;

/// The features of this package and of `measure`, and whether they are on: rivals, and `apps`.
pub const FEATURES: &[(&str, bool)] = &[
    ("mimalloc", cfg!(feature = "mimalloc")),
    ("jemalloc", cfg!(feature = "jemalloc")),
    ("snmalloc", cfg!(feature = "snmalloc")),
    ("bumpalo", cfg!(feature = "bumpalo")),
    ("bbtree", cfg!(feature = "bbtree")),
    ("brie-tree", cfg!(feature = "brie-tree")),
    ("indexset", cfg!(feature = "indexset")),
    ("apps", cfg!(feature = "apps")),
];

/// A group of workloads, one for each crate or question.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// The value of `--suite`.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// Values of `--only`: all rows of the workload.
    pub workloads: &'static [&'static str],
}

/// Every suite, in the order in which they run.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "ccmalloc",
        about: "hinted structures, and whole programs without hints, against other allocators",
        workloads: &[
            "bst_hinted_search_2m",
            "bst_hinted_insert_2m",
            "chain_hinted_walk_2m",
            "hinted_memory_bst",
            "unhinted",
            "small_rss",
            "build_once_tree",
            "null_hint_control",
            "hinted_alloc_cost",
        ],
    },
    Suite {
        name: "ccmorph",
        about: "morphed trees, lists, tables and octrees against what they were before",
        workloads: &[
            "bst_random_dependent_2m",
            "bst_random_dependent_4m",
            "list_churned_walk",
            "hash_chains_walk",
            "octree_queries",
            "auto_regret",
            "weighted_zipf",
            "morph_vs_clone",
        ],
    },
    Suite {
        name: "ctree",
        about: "ordered maps against BTreeMap and others",
        workloads: &[
            "lookups_2m",
            "lookups_33m",
            "updates_2m",
            "mixed_50_50_2m",
            "whole_maps_1m",
            "small_maps",
            "memory_1m",
            "strings_1m",
            "clustered_2m",
            "tuples_2m",
            "prefixed_strings_1m",
            "frozen_2m",
            "frozen_u32_set_batch_2m_ns",
            "mapped_2m",
        ],
    },
    Suite {
        name: "model",
        about: "predictions against the clock",
        workloads: &["predict_bst_2m"],
    },
    Suite {
        name: "olden",
        about: "the Olden programs over allocators and placements",
        workloads: &[
            "olden_treeadd",
            "olden_perimeter",
            "olden_bisort",
            "olden_health",
            "olden_mst",
            "olden_em3d",
            "olden_tsp",
            "olden_geomean",
        ],
    },
    Suite {
        name: "scaling",
        about: "two threads, and structures of growing size",
        workloads: &[
            "mt_2_threads_scaling",
            "map_reads_2_threads_scaling",
            "lookup",
        ],
    },
    Suite {
        name: "apps",
        about: "applications of published crates; needs --features apps",
        workloads: &["app_1", "app_2", "app_3", "app_4"],
    },
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
        PossibleValuesParser::new(SUITES.iter().map(|suite| suite.name)))]
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
    for suite in SUITES {
        text.push_str(&format!("{:9} {}\n", suite.name, suite.about));
        for workload in suite.workloads {
            text.push_str(&format!("    {workload}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{SUITES, list};

    #[test]
    fn the_list_names_every_suite_and_workload_once() {
        let list = list();
        for suite in SUITES {
            for workload in suite.workloads {
                let lines = list.lines().filter(|line| line.trim() == *workload);
                assert_eq!(lines.count(), 1, "{workload}");
            }
        }
    }
}
