//! How many far misses are under way at once: several chains of dependent loads side by side.
//!
//! Each chain is a chase of the curve, in all of the memory. One chain waits for every load; with
//! `k` chains, `k` loads are under way, until the processor has no place to keep track of another
//! one. Then the time of a load stops falling:
//!
//! ```text
//! misses under way at once = ns(1 chain) / least ns(k chains)
//! ```

use std::hint::black_box;
use std::time::Instant;

use super::{line_start, lines_of, typical};
use crate::PagedMemory;
use crate::machine::OverlapPoint;
use crate::probe::{next_state, scale};

/// Loads of a run, over all chains: at most about a quarter of a millisecond.
const LOADS: u32 = 2400;
/// Runs for each timed run of other measurements.
const TIMES: u32 = 5;

/// Nanoseconds of a load, from one chain to 32.
pub(super) fn measure(memory: &PagedMemory, runs: u32) -> Vec<OverlapPoint> {
    type Run = fn(&[u64], u64, &mut u64) -> f64;
    const RUNS: [(u32, Run); 10] = [
        (1, run::<1>),
        (2, run::<2>),
        (3, run::<3>),
        (4, run::<4>),
        (6, run::<6>),
        (8, run::<8>),
        (12, run::<12>),
        (16, run::<16>),
        (24, run::<24>),
        (32, run::<32>),
    ];
    let (words, lines) = (memory.as_slice(), lines_of(memory));
    let mut state = 1;
    let mut samples = RUNS.map(|_| Vec::new());
    for _ in 0..TIMES * runs.max(1) {
        for ((_, run), samples) in RUNS.iter().zip(&mut samples) {
            samples.push(run(words, lines, &mut state));
        }
    }
    let points = RUNS.iter().zip(samples);
    points
        .map(|(&(chains, _), samples)| OverlapPoint {
            chains,
            ns: typical(samples),
        })
        .collect()
}

/// How many misses are under way at once at most; 1 when nothing was measured.
pub(super) fn misses(points: &[OverlapPoint]) -> f64 {
    let alone = points.iter().find(|point| point.chains == 1);
    let least = points
        .iter()
        .map(|point| point.ns)
        .fold(f64::INFINITY, f64::min);
    match alone {
        Some(alone) if least > 0.0 => (alone.ns / least).max(1.0),
        _ => 1.0,
    }
}

/// Nanoseconds of a load when `K` chains go side by side.
fn run<const K: usize>(words: &[u64], lines: u64, random: &mut u64) -> f64 {
    let mut states = [0; K];
    for state in &mut states {
        // All chains follow the one sequence of the generator: far from each other, or one would
        // load what the next is about to.
        *random = next_state(*random);
        *state = scatter(*random);
    }
    let rounds = (LOADS as usize / K).max(1);
    let start = Instant::now();
    for _ in 0..rounds {
        for state in &mut states {
            *state = next_state(*state);
            // The words are all 0, which the compiler does not know: the next address of the chain
            // waits for the load.
            *state = state.wrapping_add(words[line_start(scale(*state, lines))]);
        }
    }
    let ns = start.elapsed().as_nanos() as f64 / (rounds * K) as f64;
    // The next run goes on elsewhere.
    *random = black_box(states)
        .iter()
        .fold(*random, |sum, state| sum.wrapping_add(*state));
    ns
}

/// A state far along the generator's sequence: neighbours of the sequence give strangers (the
/// finalizer of `SplitMix64`).
fn scatter(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageSize;

    #[test]
    fn the_best_point_says_how_many() {
        let points = [(1, 120.0), (4, 32.0), (16, 9.0), (32, 10.0)];
        let points = points.map(|(chains, ns)| OverlapPoint { chains, ns });
        assert!((misses(&points) - 120.0 / 9.0).abs() < 1e-9);
        assert!((misses(&[]) - 1.0).abs() < 1e-9);
        let stopped_clock = [OverlapPoint { chains: 1, ns: 0.0 }];
        assert!((misses(&stopped_clock) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn chains_do_not_follow_each_other() {
        let lines = 1 << 20;
        let mut random = 1;
        let mut chains = [0; 8].map(|_: u64| {
            random = next_state(random);
            scatter(random)
        });
        let mut loaded = std::collections::HashSet::new();
        for _ in 0..1000 {
            for state in &mut chains {
                *state = next_state(*state);
                loaded.insert(scale(*state, lines));
            }
        }
        // 8000 draws out of a million hit some 30 lines twice.
        assert!(loaded.len() > 7900, "{}", loaded.len());
    }

    #[test]
    fn all_numbers_of_chains_are_measured() {
        let memory = PagedMemory::new(1 << 17, PageSize::Small4K).unwrap();
        let points = measure(&memory, 1);
        assert!(points.is_sorted_by(|a, b| a.chains < b.chains));
        assert!(points.iter().all(|point| point.ns > 0.0));
    }
}
