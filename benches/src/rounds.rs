//! What the rounds of a measurement gave, how far they were apart, and what came beside them.
//!
//! A figure of the report is a median over rounds, and a ratio one of two medians. How far to trust
//! it, the rounds themselves say: those of ours and of the rival that were measured next to each
//! other met the same machine, so their quotients, round by round, are as many measurements of the
//! ratio. [`Spread`] is what is kept of them. It is not an error bar: it knows the noise within one
//! run, and nothing of what the run had in common, such as where the system's heap began.

use std::time::Duration;

use crate::timing::{median, nanoseconds_each};
use ccmodel::counters::{Counters, Event};
use serde::{Deserialize, Serialize};

/// What one side took, a figure a round, in the order of the rounds.
#[derive(Clone, Debug)]
pub struct Rounds {
    median: f64,
    /// Never empty.
    each: Vec<f64>,
    /// Events of one more round, counted by the processor.
    events: Vec<(Event, f64)>,
}

impl Rounds {
    /// The figures of some rounds.
    ///
    /// # Panics
    /// When there are none.
    pub fn new(each: Vec<f64>) -> Self {
        Rounds {
            median: median(&each),
            each,
            events: Vec::new(),
        }
    }

    /// A figure that was taken once: a weight, a prediction, the least of many times.
    pub fn once(figure: f64) -> Self {
        Rounds::new(vec![figure])
    }

    /// The times of some rounds, in nanoseconds.
    ///
    /// # Panics
    /// When there are none.
    pub fn of_times(times: Vec<Duration>) -> Self {
        let each = times.iter().map(|&time| nanoseconds_each(time, 1));
        Rounds::new(each.collect())
    }

    /// The geometric mean of several figures: that of the medians, and for the spread that of each
    /// round.
    ///
    /// Rounds that not all of them have are left out.
    ///
    /// # Panics
    /// When there are none.
    pub fn geometric_mean(figures: &[Rounds]) -> Self {
        let mean = |logarithms: &mut dyn Iterator<Item = f64>| {
            (logarithms.sum::<f64>() / figures.len() as f64).exp()
        };
        let rounds = figures.iter().map(Rounds::len).min().unwrap_or(0);
        assert!(rounds > 0, "no figures, no mean");
        Rounds {
            median: mean(&mut figures.iter().map(|figure| figure.median.ln())),
            each: (0..rounds)
                .map(|round| mean(&mut figures.iter().map(|figure| figure.each[round].ln())))
                .collect(),
            events: Vec::new(),
        }
    }

    /// For each of `operations`, where the figures are for all of them together.
    #[must_use]
    pub fn per_operation(mut self, operations: usize) -> Self {
        let operations = operations as f64;
        self.median /= operations;
        for figure in &mut self.each {
            *figure /= operations;
        }
        for (_, count) in &mut self.events {
            *count /= operations;
        }
        self
    }

    /// With what `counters` see while `pass` runs once more.
    ///
    /// Not in the rounds that are timed: starting and reading counters costs system calls. An event
    /// that cannot be read is left out.
    #[must_use]
    pub fn counted(mut self, counters: &mut Counters, pass: impl FnOnce()) -> Self {
        if let Ok(((), counts)) = counters.around(pass) {
            let events = Event::ALL.into_iter();
            self.events = events
                .filter_map(|event| Some((event, counts.get(event)?)))
                .collect();
        }
        self
    }

    /// The middle figure; of an even number, the upper of the two in the middle.
    pub fn median(&self) -> f64 {
        self.median
    }

    /// How many rounds there were.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// The figures, in the order of the rounds.
    pub fn each(&self) -> &[f64] {
        &self.each
    }
}

/// How the ratios of single rounds lie: their quartiles and their ends.
///
/// Quartiles are interpolated between the two nearest ratios, so of three rounds they lie halfway
/// between the middle one and the ends. The ratio of the medians can lie outside of them: the
/// middle round of ours need not be the middle one of the rival's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The smallest ratio of a round.
    pub least: f64,
    /// The first quartile: a quarter of the rounds had no larger ratio.
    pub lower: f64,
    /// The third quartile.
    pub upper: f64,
    /// The largest ratio of a round.
    pub most: f64,
}

impl Spread {
    /// That of `ratios`; `None` for fewer than two, or where one of them is not a number.
    pub fn of(ratios: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = ratios.into_iter().collect();
        if sorted.len() < 2 || !sorted.iter().all(|ratio| ratio.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        Some(Spread {
            least: sorted[0],
            lower: quantile(&sorted, 1),
            upper: quantile(&sorted, 3),
            most: sorted[last],
        })
    }

    /// That of a rival's figures over ours, round by round; `None` where the two sides do not have
    /// the same rounds.
    pub fn of_rounds(ours: &Rounds, theirs: &Rounds) -> Option<Self> {
        let pairs = ours.each.iter().zip(&theirs.each);
        (ours.len() == theirs.len())
            .then(|| Spread::of(pairs.map(|(ours, theirs)| theirs / ours)))
            .flatten()
    }

    /// Whether the middle half of the rounds lies on both sides of 1: then the run does not say who
    /// is better.
    pub fn straddles_one(&self) -> bool {
        self.lower < 1.0 && self.upper > 1.0
    }
}

/// The quartile of this number, of at least one figure in ascending order.
fn quantile(sorted: &[f64], quarter: usize) -> f64 {
    let (whole, rest) = (
        (sorted.len() - 1) * quarter / 4,
        (sorted.len() - 1) * quarter % 4,
    );
    let low = sorted[whole];
    let high = sorted[(whole + 1).min(sorted.len() - 1)];
    low + (high - low) * rest as f64 / 4.0
}

/// An event beside the times, for each operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// What was counted, in words.
    pub event: String,
    /// How often with ours.
    pub ours: f64,
    /// How often with the rival's.
    pub theirs: f64,
    /// Whether a simulator counted, and not the processor.
    pub simulated: bool,
}

impl Count {
    /// What the processor counted on both sides.
    pub fn of_rounds(ours: &Rounds, theirs: &Rounds) -> Vec<Count> {
        let of_ours = ours.events.iter();
        of_ours
            .filter_map(|&(event, ours)| {
                let (_, theirs) = theirs.events.iter().find(|(other, _)| *other == event)?;
                Some(Count {
                    event: event.name().to_owned(),
                    ours,
                    theirs: *theirs,
                    simulated: false,
                })
            })
            .collect()
    }
}
