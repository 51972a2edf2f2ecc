//! Times subjects in turns, so that noise of the machine falls on all of them.

use std::time::{Duration, Instant};

/// Runs all `subjects` once a round and returns the times of each, in the order of the rounds.
///
/// A subject takes its own time with [`timed`], so it can set up and clean up outside of it. Each
/// round begins with another subject, so that none always runs after the same neighbour.
///
/// # Panics
/// When `rounds` is 0, or when a subject panics.
pub fn times_in_turns(
    rounds: usize,
    subjects: &mut [&mut dyn FnMut() -> Duration],
) -> Vec<Vec<Duration>> {
    assert!(rounds > 0, "no rounds, no median");
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(rounds); subjects.len()];
    for round in 0..rounds {
        for turn in 0..subjects.len() {
            let which = (round + turn) % subjects.len();
            times[which].push(subjects[which]());
        }
    }
    times
}

/// The time that `work` takes, and its result.
#[inline]
pub fn timed<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// The middle figure; of an even number, the upper of the two in the middle.
///
/// # Panics
/// When there are none.
pub fn median(figures: &[f64]) -> f64 {
    assert!(!figures.is_empty(), "no figures, no median");
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Nanoseconds for each of `operations` that together took `time`.
pub fn nanoseconds_each(time: Duration, operations: usize) -> f64 {
    time.as_secs_f64() * 1e9 / operations as f64
}
