//! Timing several subjects in turns.
//!
//! Machines have moods: another tenant's load, a changed clock, a cold page cache. Measured one
//! after the other, two subjects meet different moods and their ratio is that of the moods.
//! Measured in turns, round after round, each mood falls on all of them, and the median over the
//! rounds drops the rounds that were disturbed for one subject alone.

use std::time::{Duration, Instant};

/// Runs all `subjects` once a round, `rounds` times, and returns the times that each returned, a
/// list a subject, in their order and in that of the rounds.
///
/// A subject takes its own time with [`timed`], so that it can get ready and clean up outside of
/// it. Each round begins with another subject, so that none is always the one that finds the caches
/// as its neighbour left them. Times of one round belong together: they met the same mood, so the
/// quotients of two subjects' times, round by round, say how far the quotient of their medians can
/// be trusted.
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

/// Runs all `subjects` as [`times_in_turns`] does, and returns the median of the times that each
/// returned, in their order.
///
/// # Panics
/// When `rounds` is 0, or when a subject panics.
pub fn medians_in_turns(
    rounds: usize,
    subjects: &mut [&mut dyn FnMut() -> Duration],
) -> Vec<Duration> {
    let times = times_in_turns(rounds, subjects);
    times.into_iter().map(median).collect()
}

/// How long `work` takes, and what it returns.
#[inline]
pub fn timed<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// The middle one of `times`; of an even number, the upper of the two in the middle.
///
/// # Panics
/// When `times` is empty.
pub fn median(mut times: Vec<Duration>) -> Duration {
    assert!(!times.is_empty(), "no times, no median");
    times.sort_unstable();
    times[times.len() / 2]
}

/// Nanoseconds for each of `operations` when all of them took `time`.
pub fn nanoseconds_each(time: Duration, operations: usize) -> f64 {
    time.as_secs_f64() * 1e9 / operations as f64
}

#[cfg(test)]
mod tests {
    use super::{Duration, median, medians_in_turns, nanoseconds_each, timed, times_in_turns};
    use std::cell::RefCell;

    #[test]
    fn every_subject_runs_once_a_round_in_changing_order() {
        let order = RefCell::new(String::new());
        let subject = |name, seconds| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                Duration::from_secs(seconds)
            }
        };
        let times = medians_in_turns(
            4,
            &mut [
                &mut subject('a', 1),
                &mut subject('b', 2),
                &mut subject('c', 3),
            ],
        );
        assert_eq!(times, [1, 2, 3].map(Duration::from_secs));
        assert_eq!(*order.borrow(), "abcbcacababc");
    }

    #[test]
    fn times_stay_in_the_order_of_the_rounds() {
        let mut seconds = 0;
        let mut growing = || {
            seconds += 1;
            Duration::from_secs(seconds)
        };
        let mut constant = || Duration::from_secs(7);
        let times = times_in_turns(3, &mut [&mut growing, &mut constant]);
        assert_eq!(times[0], [1, 2, 3].map(Duration::from_secs));
        assert_eq!(times[1], [Duration::from_secs(7); 3]);
    }

    #[test]
    fn median_is_the_middle() {
        let seconds = |list: &[u64]| list.iter().copied().map(Duration::from_secs).collect();
        assert_eq!(median(seconds(&[5])), Duration::from_secs(5));
        assert_eq!(median(seconds(&[9, 1, 5])), Duration::from_secs(5));
        assert_eq!(median(seconds(&[9, 1, 5, 7])), Duration::from_secs(7));
    }

    #[test]
    fn timing_passes_the_result_on() {
        let (time, result) = timed(|| 6 * 7);
        assert!(time < Duration::MAX);
        assert_eq!(result, 42);
    }

    #[test]
    fn time_is_shared_out() {
        assert!((nanoseconds_each(Duration::from_micros(3), 1000) - 3.0).abs() < 1e-9);
    }
}
