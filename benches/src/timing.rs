//! Times subjects in turns, so that noise of the machine falls on all of them.

use std::time::{Duration, Instant};

/// The numbers of `subjects`, each once a round. Each round begins with another one.
pub fn turns(rounds: usize, subjects: usize) -> impl Iterator<Item = usize> {
    (0..rounds).flat_map(move |round| (0..subjects).map(move |turn| (round + turn) % subjects))
}

#[inline]
pub fn timed<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// The middle figure; of an even number, the upper of the two in the middle.
pub fn median(figures: &[f64]) -> f64 {
    assert!(!figures.is_empty(), "no figures, no median");
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

pub fn nanoseconds_each(time: Duration, operations: usize) -> f64 {
    time.as_secs_f64() * 1e9 / operations as f64
}
