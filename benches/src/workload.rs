//! What a workload is, and what it returns.

use std::error::Error;

use serde::{Deserialize, Deserializer, Serialize};

pub use benches::{Workload, covers};

use crate::programs::Scale;
use crate::rounds::{Count, Rounds, Spread};

/// Keys in workloads whose name ends in `2m`: 2^21, 48 MiB of 24-byte nodes, several times what a
/// last-level cache gives a program.
pub const KEYS_2M: usize = 1 << 21;

/// The seed of all keys and queries, so that figures are compared like with like.
pub const SEED: u64 = 0x5EED;

/// The end of the names of comparisons that are points of curves.
pub const POINT_SUFFIX: &str = "_vs_measured";

/// Why a workload gave no figures.
pub type Failure = Box<dyn Error + Send + Sync>;

/// What a workload returns.
pub type Rows = Result<Vec<Comparison>, Failure>;

/// The failure of a run in which `who` computed something else than the first.
pub fn wrong_answer(workload: &str, who: &str) -> Failure {
    format!("{workload}: {who} answers differently").into()
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
    /// Whether this run is to measure the comparisons of `workload` whose names begin with `part`.
    pub fn wants(&self, workload: &Workload, part: &str) -> bool {
        match self.only.as_deref() {
            Some(only) => only == workload.name || covers(part, only),
            None => self.scale == Scale::Full || !workload.if_full.contains(&part),
        }
    }

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

/// Ours against one rival: one line of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The suite that it belongs to; [`measure`](crate::suites::measure) sets it.
    pub suite: String,
    /// Unique among all comparisons, and stable.
    pub name: String,
    /// What ours took, in `unit`.
    #[serde(deserialize_with = "number")]
    pub ours: f64,
    /// What the rival took, in `unit`.
    #[serde(deserialize_with = "number")]
    pub theirs: f64,
    /// Above 1, ours is better; in the suite `model`, the smaller over the larger, so 1 is exact.
    #[serde(deserialize_with = "number")]
    pub ratio: f64,
    /// The unit of `ours` and `theirs`.
    pub unit: String,
    /// The rival, in words.
    pub rival: String,
    /// Rounds behind the medians.
    pub runs: usize,
    /// How the ratio differed from round to round; `None` where there was one round, or where
    /// rounds of the two do not belong together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Events beside the times, counted by the processor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Count>,
}

/// A figure; JSON has `null` for what is not a number.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let figure = Option::<f64>::deserialize(deserializer)?;
    Ok(figure.unwrap_or(f64::NAN))
}

impl Comparison {
    /// A comparison of figures: less is better.
    pub fn new(
        name: impl Into<String>,
        rival: &str,
        unit: &str,
        ours: &Rounds,
        theirs: &Rounds,
    ) -> Self {
        Comparison {
            suite: String::new(),
            name: name.into(),
            ours: ours.median(),
            theirs: theirs.median(),
            ratio: theirs.median() / ours.median(),
            unit: unit.to_owned(),
            rival: rival.to_owned(),
            runs: ours.len().max(theirs.len()),
            spread: Spread::of_rounds(ours, theirs),
            counts: Count::of_rounds(ours, theirs),
        }
    }

    /// A prediction in nanoseconds, as ours, against the clock: the ratio is the smaller over the
    /// larger.
    pub fn of_prediction(name: impl Into<String>, predicted: f64, measured: &Rounds) -> Self {
        let agreement = |figure: f64| predicted.min(figure) / predicted.max(figure);
        let ours = Rounds::once(predicted);
        Comparison {
            ratio: agreement(measured.median()),
            spread: Spread::of(measured.each().iter().copied().map(agreement)),
            ..Comparison::new(name, "the clock", "ns", &ours, measured)
        }
    }

    /// The same figures under another name.
    #[must_use]
    pub fn called(&self, name: impl Into<String>) -> Self {
        Comparison {
            name: name.into(),
            ..self.clone()
        }
    }
}

/// Comparisons called `NAME_vs_SLUG`, of ours with each rival. A rival is a slug, a name in words
/// and its figures.
pub fn against_each<'a>(
    name: &str,
    unit: &str,
    ours: &Rounds,
    rivals: impl IntoIterator<Item = (&'a str, &'a str, &'a Rounds)>,
) -> Vec<Comparison> {
    let row = |(slug, rival, theirs): (&str, &str, &Rounds)| {
        Comparison::new(format!("{name}_vs_{slug}"), rival, unit, ours, theirs)
    };
    rivals.into_iter().map(row).collect()
}

/// `comparisons` with one rival each, and in front of them, called `name`, the one with the best of
/// these rivals.
pub fn best_first(name: &str, mut comparisons: Vec<Comparison>) -> Vec<Comparison> {
    let best = comparisons
        .iter()
        .min_by(|a, b| a.theirs.total_cmp(&b.theirs))
        .map(|best| best.called(name));
    comparisons.splice(0..0, best);
    comparisons
}
