//! What a workload is, and the list of all of them.

use std::fmt;

use serde::Serialize;

use crate::programs::Scale;
#[cfg(feature = "apps")]
use crate::suites::apps;
use crate::suites::{ccmalloc, ccmorph, ctree, model};

/// Keys in workloads whose name ends in `2m`: 2^21, 48 MiB of 24-byte nodes, several times what a last-level cache gives a program.
pub const KEYS_2M: usize = 1 << 21;

/// Every workload, suite by suite. Names are stable: figures are compared with earlier ones by name.
pub const WORKLOADS: &[Workload] = &[
    ccmalloc::BST_HINTED_SEARCH_2M,
    ccmalloc::BST_HINTED_INSERT_2M,
    ccmalloc::CHAIN_HINTED_WALK_2M,
    ccmalloc::HINTED_MEMORY_BST,
    ccmalloc::UNHINTED,
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
    ctree::SMALL_MAPS,
    ctree::STRINGS_1M,
    ctree::CLUSTERED_KEYS_2M,
    ctree::TUPLES_2M,
    ctree::PREFIXED_STRINGS_1M,
    ctree::FROZEN_2M,
    ctree::FROZEN_U32_SET_2M,
    #[cfg(feature = "bbtree")]
    ctree::MAPPED_2M,
    model::PREDICT_BST_2M,
    #[cfg(feature = "apps")]
    apps::APP_1,
    #[cfg(feature = "apps")]
    apps::APP_2,
    #[cfg(feature = "apps")]
    apps::APP_3,
];

/// Something to measure ours and its rivals with.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The crate under test.
    pub suite: &'static str,
    /// What its comparisons' names begin with.
    pub name: &'static str,
    /// What names of further comparisons of the same runs begin with.
    pub also: &'static [&'static str],
    /// Measures.
    pub run: fn(&Effort) -> Result<Vec<Comparison>, Failure>,
}

/// How long to measure, and what.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Rounds over which the median is taken.
    pub rounds: usize,
    /// Operations in a round of lookups.
    pub lookups: usize,
    /// Rounds of whole programs, each in a process of its own.
    pub process_rounds: usize,
    /// How much a whole program does.
    pub scale: Scale,
    /// The name that the user asked for. Workloads may leave out what has no part in it.
    pub only: Option<String>,
}

impl Effort {
    /// A suite in less than a minute: for every day.
    pub const QUICK: Effort = Effort {
        rounds: 5,
        lookups: 200_000,
        process_rounds: 3,
        scale: Scale::Quick,
        only: None,
    };

    /// For figures that are kept.
    pub const FULL: Effort = Effort {
        rounds: 15,
        lookups: 1_000_000,
        process_rounds: 9,
        scale: Scale::Full,
        only: None,
    };
}

impl Effort {
    /// Whether the user asked for comparisons whose names begin with `part`, or for all of `workload`.
    pub fn wants(&self, workload: &str, part: &str) -> bool {
        self.only
            .as_deref()
            .is_none_or(|only| only == workload || covers(part, only))
    }
}

/// Ours against one rival: one line of the report.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The crate under test.
    pub suite: &'static str,
    /// Unique among all comparisons, and stable.
    pub name: String,
    /// What ours took, in `unit`.
    pub ours: f64,
    /// What the rival took, in `unit`.
    pub theirs: f64,
    /// Above 1, ours is better; in the suite `model`, the smaller over the larger, so 1 is exact.
    pub ratio: f64,
    /// The unit of `ours` and `theirs`.
    pub unit: &'static str,
    /// Who the rival is, in words.
    pub rival: String,
    /// Rounds behind the medians.
    pub runs: usize,
}

impl Comparison {
    /// A comparison of times, of which less is better.
    pub fn of_times(
        workload: &Workload,
        rival_slug: &str,
        rival: &str,
        ns: Nanoseconds,
        effort: &Effort,
    ) -> Self {
        Comparison {
            suite: workload.suite,
            name: format!("{}_vs_{rival_slug}", workload.name),
            ours: ns.ours,
            theirs: ns.theirs,
            ratio: ns.theirs / ns.ours,
            unit: "ns",
            rival: rival.to_owned(),
            runs: effort.rounds,
        }
    }
}

/// Times of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Nanoseconds {
    /// Of ours.
    pub ours: f64,
    /// Of the rival.
    pub theirs: f64,
}

/// Two structures answered differently: no figure of such a run is worth anything.
#[derive(Clone, Debug)]
pub struct WrongAnswer {
    /// Where.
    pub workload: &'static str,
    /// Who differs from the first.
    pub who: String,
}

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} answers differently", self.workload, self.who)
    }
}

impl std::error::Error for WrongAnswer {}

/// Why a workload gave no figures.
#[derive(Clone, Debug)]
pub enum Failure {
    /// An answer was wrong.
    Answer(WrongAnswer),
    /// A process that ran a whole program did not do its part.
    Worker {
        /// Which.
        program: String,
        /// What happened.
        what: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Answer(wrong) => wrong.fmt(f),
            Failure::Worker { program, what } => write!(f, "{program}: {what}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<WrongAnswer> for Failure {
    fn from(wrong: WrongAnswer) -> Self {
        Failure::Answer(wrong)
    }
}

/// The workloads that `suite` and `only` leave, in the order of the list; without either, all.
///
/// `only` is a workload's name or the beginning of one comparison's name that goes on with `_`.
///
/// # Errors
/// When `suite` or `only` names nothing; the message lists what there is.
pub fn select(
    suite: Option<&str>,
    only: Option<&str>,
) -> Result<Vec<&'static Workload>, UnknownName> {
    let mut suites: Vec<&str> = WORKLOADS.iter().map(|workload| workload.suite).collect();
    suites.dedup();
    if let Some(unknown) = suite.filter(|name| !suites.contains(name)) {
        return Err(UnknownName {
            kind: "suite",
            name: unknown.to_owned(),
            known: suites,
        });
    }
    let in_suite: Vec<&Workload> = WORKLOADS
        .iter()
        .filter(|workload| suite.is_none_or(|name| name == workload.suite))
        .collect();
    let Some(only) = only else {
        return Ok(in_suite);
    };
    let chosen: Vec<&Workload> = in_suite
        .iter()
        .copied()
        .filter(|workload| {
            let mut beginnings = workload.also.iter().chain([&workload.name]);
            beginnings.any(|beginning| covers(beginning, only))
        })
        .collect();
    if chosen.is_empty() {
        let known = in_suite.iter().map(|workload| workload.name).collect();
        return Err(UnknownName {
            kind: "name",
            name: only.to_owned(),
            known,
        });
    }
    Ok(chosen)
}

/// Whether `name` is `beginning`, or begins with it and goes on with `_`.
pub fn covers(beginning: &str, name: &str) -> bool {
    name.strip_prefix(beginning)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// A suite or workload that does not exist.
#[derive(Clone, Debug)]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no {} is called {:?}; there are {}",
            self.kind,
            self.name,
            self.known.join(", ")
        )
    }
}

impl std::error::Error for UnknownName {}
