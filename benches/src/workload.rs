//! What a workload is, and what it returns.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::programs::Scale;
use crate::rounds::{Count, Rounds, Spread};

/// Keys in workloads whose name ends in `2m`: 2^21, 48 MiB of 24-byte nodes, several times what a
/// last-level cache gives a program.
pub const KEYS_2M: usize = 1 << 21;

/// The end of the names of comparisons that are points of curves.
pub const POINT_SUFFIX: &str = "_vs_measured";

/// The name of a point of a curve: the prediction and the measurement of `line` with 2^`log2_n`
/// elements.
pub fn point_name(family: &str, log2_n: u32, line: &str) -> String {
    format!("{family}_n{log2_n}_{line}{POINT_SUFFIX}")
}

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
    /// Whether the user asked for comparisons whose names begin with `part`, or for all of
    /// `workload`.
    pub fn wants(&self, workload: &str, part: &str) -> bool {
        self.only
            .as_deref()
            .is_none_or(|only| only == workload || covers(part, only))
    }
}

/// Ours against one rival: one line of the report.
///
/// Made by [`Comparison::new`] from the rounds of both sides; what is special goes on top:
/// `Comparison { counts, ..Comparison::new(..) }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The crate under test.
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
    /// Events beside the times: those of the processor where the machine counts them, or simulated
    /// ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Count>,
}

/// A figure; JSON has `null` for what is not a number.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let figure = Option::<f64>::deserialize(deserializer)?;
    Ok(figure.unwrap_or(f64::NAN))
}

impl Comparison {
    /// A comparison of figures of which less is better: medians, their ratio, its spread, and what
    /// was counted beside.
    pub fn new(
        suite: &'static str,
        name: String,
        rival: &str,
        unit: &'static str,
        ours: &Rounds,
        theirs: &Rounds,
    ) -> Self {
        Comparison {
            suite: suite.to_owned(),
            name,
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

    /// A comparison of figures of which more is better.
    pub fn of_gains(
        suite: &'static str,
        name: String,
        rival: &str,
        unit: &'static str,
        ours: &Rounds,
        theirs: &Rounds,
    ) -> Self {
        Comparison {
            ratio: ours.median() / theirs.median(),
            spread: Spread::of_rounds(theirs, ours),
            ..Comparison::new(suite, name, rival, unit, ours, theirs)
        }
    }

    /// A prediction, as ours, against what the clock said: the ratio is the smaller over the
    /// larger.
    pub fn of_prediction(
        suite: &'static str,
        name: String,
        unit: &'static str,
        predicted: f64,
        measured: &Rounds,
    ) -> Self {
        let agreement = |figure: f64| predicted.min(figure) / predicted.max(figure);
        let ours = Rounds::once(predicted);
        Comparison {
            ratio: agreement(measured.median()),
            spread: Spread::of(measured.each().iter().copied().map(agreement)),
            ..Comparison::new(suite, name, "the clock", unit, &ours, measured)
        }
    }

    /// A comparison of times, in nanoseconds, that is called after its workload and the rival.
    pub fn of_times(
        workload: &Workload,
        rival_slug: &str,
        rival: &str,
        ours: &Rounds,
        theirs: &Rounds,
    ) -> Self {
        let name = format!("{}_vs_{rival_slug}", workload.name);
        Comparison::new(workload.suite, name, rival, "ns", ours, theirs)
    }
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

/// Whether `name` is `beginning`, or begins with it and goes on with `_`.
pub fn covers(beginning: &str, name: &str) -> bool {
    name.strip_prefix(beginning)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}
