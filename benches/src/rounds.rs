//! The figures of a measurement's rounds, and how far apart they are.
//!
//! Rounds of ours and of the rival run next to each other, so each pair measures the ratio;
//! [`Spread`] says how these ratios lie. It does not cover what all rounds of a run have in common,
//! such as where the system's heap begins.

use std::time::Duration;

use crate::timing::{median, nanoseconds_each, turns};
use ccmodel::counters::{Counters, Event};
use serde::{Deserialize, Serialize};

/// What one side took, in the order of the rounds.
#[derive(Clone, Debug)]
pub struct Rounds {
    median: f64,
    /// Never empty.
    each: Vec<f64>,
    /// Events of one more round, counted by the processor.
    events: Vec<(Event, f64)>,
}

impl Rounds {
    /// Panics without figures, as every constructor here.
    pub fn new(each: Vec<f64>) -> Self {
        Rounds {
            median: median(&each),
            each,
            events: Vec::new(),
        }
    }

    pub fn once(figure: f64) -> Self {
        Rounds::new(vec![figure])
    }

    /// The times of some rounds, in nanoseconds for each of `operations`.
    pub fn of_times(times: &[Duration], operations: usize) -> Self {
        let each = times.iter().map(|&time| nanoseconds_each(time, operations));
        Rounds::new(each.collect())
    }

    /// The times of `subjects` in turns, in nanoseconds for each of `operations`.
    pub fn in_turns<E>(
        rounds: usize,
        subjects: usize,
        operations: usize,
        mut time: impl FnMut(usize) -> Result<Duration, E>,
    ) -> Result<Vec<Self>, E> {
        let mut times = vec![Vec::with_capacity(rounds); subjects];
        for which in turns(rounds, subjects) {
            times[which].push(time(which)?);
        }
        let rounds = |times: &Vec<_>| Rounds::of_times(times, operations);
        Ok(times.iter().map(rounds).collect())
    }

    /// The geometric mean of several figures: of their medians, and of each round that all have.
    pub fn geometric_mean(figures: &[Rounds]) -> Self {
        let mean = |figure: &dyn Fn(&Rounds) -> f64| {
            let logarithms: f64 = figures.iter().map(|rounds| figure(rounds).ln()).sum();
            (logarithms / figures.len() as f64).exp()
        };
        let rounds = figures.iter().map(|rounds| rounds.each.len()).min();
        let rounds = rounds.expect("no figures, no mean");
        let each = (0..rounds).map(|round| mean(&|rounds| rounds.each[round]));
        Rounds {
            median: mean(&Rounds::median),
            each: each.collect(),
            events: Vec::new(),
        }
    }

    /// Adds what `counters` count while `pass`, of `operations`, runs once more. Timed rounds are
    /// not counted, because counting costs system calls.
    pub fn count(&mut self, counters: &mut Counters, operations: usize, pass: impl FnOnce()) {
        if let Ok(((), counts)) = counters.around(pass) {
            let each = |event| Some((event, counts.get(event)? / operations as f64));
            self.events = Event::ALL.into_iter().filter_map(each).collect();
        }
    }

    pub fn median(&self) -> f64 {
        self.median
    }

    pub fn each(&self) -> &[f64] {
        &self.each
    }
}

/// The ends and quartiles of the ratios of single rounds. The ratio of the medians can lie outside,
/// because the two medians may come from different rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub least: f64,
    pub lower: f64,
    pub upper: f64,
    pub most: f64,
}

impl Spread {
    /// The spread of `ratios`; `None` for fewer than two, or where one of them is not a number.
    pub fn of(ratios: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = ratios.into_iter().collect();
        if sorted.len() < 2 || !sorted.iter().all(|ratio| ratio.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        let quartile = |quarter: usize| {
            let (whole, rest) = (last * quarter / 4, last * quarter % 4);
            let (low, high) = (sorted[whole], sorted[(whole + 1).min(last)]);
            low + (high - low) * rest as f64 / 4.0
        };
        Some(Spread {
            least: sorted[0],
            lower: quartile(1),
            upper: quartile(3),
            most: sorted[last],
        })
    }

    /// The spread of a rival's figures over ours, round by round.
    pub fn of_rounds(ours: &Rounds, theirs: &Rounds) -> Option<Self> {
        let pairs = ours.each.iter().zip(&theirs.each);
        let ratios = pairs.map(|(ours, theirs)| theirs / ours);
        (ours.each.len() == theirs.each.len()).then(|| Spread::of(ratios))?
    }

    /// Whether 1 lies between the quartiles: then the run does not say which side is better.
    pub fn straddles_one(&self) -> bool {
        self.lower < 1.0 && self.upper > 1.0
    }
}

/// An event beside the times, for each operation, counted by the processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    pub event: String,
    pub ours: f64,
    pub theirs: f64,
}

impl Count {
    pub fn of_rounds(ours: &Rounds, theirs: &Rounds) -> Vec<Count> {
        let count = |&(event, ours): &(Event, f64)| {
            let (_, theirs) = theirs.events.iter().find(|(other, _)| *other == event)?;
            Some(Count {
                event: event.name().to_owned(),
                ours,
                theirs: *theirs,
            })
        };
        ours.events.iter().filter_map(count).collect()
    }
}
