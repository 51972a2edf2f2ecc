//! What a workload is, and what it returns.

use std::error::Error;

use serde::{Deserialize, Deserializer, Serialize};

pub use benches::{Workload, covers};

use crate::programs::Scale;
use crate::rounds::{Count, Rounds, Spread};

/// Keys in workloads whose name ends in `2m`: with 24-byte nodes 48 MiB, more than the caches hold.
pub const KEYS_2M: usize = 1 << 21;

pub const SEED: u64 = 0x5EED;

/// The end of the names of comparisons that are points of curves.
pub const POINT_SUFFIX: &str = "_vs_measured";

pub type Failure = Box<dyn Error + Send + Sync>;

pub type Rows = Result<Vec<Comparison>, Failure>;

/// Fails when `who` computed something else than the first, whose result becomes `expected`.
pub fn agree<T: Copy + PartialEq>(
    expected: &mut Option<T>,
    result: T,
    workload: &str,
    who: &str,
) -> Result<(), Failure> {
    match result == *expected.get_or_insert(result) {
        true => Ok(()),
        false => Err(format!("{workload}: {who} answers differently").into()),
    }
}

#[derive(Clone, Debug)]
pub struct Effort {
    pub rounds: usize,
    /// Operations in a round of lookups.
    pub lookups: usize,
    pub process_rounds: usize,
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

    pub const QUICK: Effort = Effort {
        rounds: 5,
        lookups: 200_000,
        process_rounds: 3,
        scale: Scale::Quick,
        only: None,
    };

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
    /// [`measure`](crate::suites::measure) sets it.
    pub suite: String,
    /// Unique among all comparisons, and stable.
    pub name: String,
    #[serde(deserialize_with = "number")]
    pub ours: f64,
    #[serde(deserialize_with = "number")]
    pub theirs: f64,
    /// Above 1, ours is better; in the suite `model`, the smaller over the larger, so 1 is exact.
    #[serde(deserialize_with = "number")]
    pub ratio: f64,
    pub unit: String,
    pub rival: String,
    pub runs: usize,
    /// `None` where there was one round, or where rounds of the two do not belong together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
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
            runs: ours.each().len().max(theirs.each().len()),
            spread: Spread::of_rounds(ours, theirs),
            counts: Count::of_rounds(ours, theirs),
        }
    }

    /// A prediction in nanoseconds, as ours, against the clock.
    pub fn of_prediction(name: impl Into<String>, predicted: f64, measured: &Rounds) -> Self {
        let agreement = |figure: f64| predicted.min(figure) / predicted.max(figure);
        let ours = Rounds::once(predicted);
        Comparison {
            ratio: agreement(measured.median()),
            spread: Spread::of(measured.each().iter().copied().map(agreement)),
            ..Comparison::new(name, "the clock", "ns", &ours, measured)
        }
    }

    #[must_use]
    pub fn called(&self, name: impl Into<String>) -> Self {
        let name = name.into();
        Comparison {
            name,
            ..self.clone()
        }
    }
}

#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// In names of comparisons.
    pub slug: &'a str,
    pub name: &'a str,
    pub rounds: Rounds,
}

impl<'a> Side<'a> {
    pub fn new(slug: &'a str, name: &'a str, rounds: Rounds) -> Self {
        Side { slug, name, rounds }
    }

    pub fn best<'s>(all: &'s [Side<'a>]) -> Option<&'s Side<'a>> {
        all.iter()
            .min_by(|a, b| a.rounds.median().total_cmp(&b.rounds.median()))
    }
}

/// Comparisons called `NAME_vs_SLUG`, of ours with each rival.
pub fn against_each(name: &str, unit: &str, ours: &Rounds, rivals: &[Side<'_>]) -> Vec<Comparison> {
    let row = |theirs: &Side<'_>| {
        let name = format!("{name}_vs_{}", theirs.slug);
        Comparison::new(name, theirs.name, unit, ours, &theirs.rounds)
    };
    rivals.iter().map(row).collect()
}

/// `comparisons`, and in front of them, called `name`, the one with the best of their rivals.
pub fn best_first(name: &str, mut comparisons: Vec<Comparison>) -> Vec<Comparison> {
    let best = comparisons
        .iter()
        .min_by(|a, b| a.theirs.total_cmp(&b.theirs));
    let best = best.map(|best| best.called(name));
    comparisons.splice(0..0, best);
    comparisons
}
