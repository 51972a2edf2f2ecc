//! Jobs on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// More threads would need too much memory.
const THREADS_MAX: usize = 4;

/// Runs `run` on each job and returns the results in the order of the jobs. `done` is called on
/// this thread with each result as soon as it is known.
pub(crate) fn parallel<J: Sync, R: Send>(
    jobs: &[J],
    run: impl Fn(&J) -> R + Sync,
    mut done: impl FnMut(&J, &R),
) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        for _ in 0..threads.min(THREADS_MAX) {
            let (sender, next, run) = (sender.clone(), &next, &run);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else {
                        break;
                    };
                    // The receiver is gone when `done` has panicked.
                    if sender.send((index, run(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        receiver
            .iter()
            .inspect(|(index, result)| done(&jobs[*index], result))
            .collect()
    });
    results.sort_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_jobs() {
        let jobs: Vec<u32> = (0..100).collect();
        let mut seen = 0;
        let squares = parallel(&jobs, |job| job * job, |_, _| seen += 1);
        assert_eq!(seen, 100);
        assert!(
            squares
                .iter()
                .eq(&jobs.iter().map(|job| job * job).collect::<Vec<u32>>())
        );
    }
}
