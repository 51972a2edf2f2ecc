//! How many far misses are outstanding at once: several chains of dependent loads side by side.
//!
//! With `k` chains, `k` loads are outstanding, until the processor cannot track another one. Then
//! the time of a load stops falling:
//!
//! ```text
//! outstanding misses = ns(1 chain) / least ns(k chains)
//! ```

use super::{line_start, lines_of, typical};
use crate::PagedMemory;
use crate::machine::CurvePoint;
use crate::probe::{next_state, ns_each, scale};
use crate::shape::random::SplitMix64;

/// Loads of a run, over all chains: at most about a quarter of a millisecond.
const LOADS: u32 = 2400;
/// Runs for each timed run of other measurements.
const TIMES: u32 = 5;

/// Nanoseconds of a load, from one chain to 32.
pub(super) fn measure(memory: &PagedMemory, runs: u32) -> Vec<CurvePoint> {
    type Run = fn(&[u64], u64, &mut SplitMix64) -> f64;
    const RUNS: [(u32, Run); 7] = [
        (1, run::<1>),
        (4, run::<4>),
        (8, run::<8>),
        (12, run::<12>),
        (16, run::<16>),
        (24, run::<24>),
        (32, run::<32>),
    ];
    let (words, lines) = (memory.as_slice(), lines_of(memory));
    let mut random = SplitMix64::new(1);
    let mut samples = RUNS.map(|_| Vec::new());
    for _ in 0..TIMES * runs.max(1) {
        for ((_, run), samples) in RUNS.iter().zip(&mut samples) {
            samples.push(run(words, lines, &mut random));
        }
    }
    let points = RUNS.iter().zip(samples);
    points
        .map(|(&(chains, _), samples)| CurvePoint {
            at: f64::from(chains),
            ns: typical(samples),
        })
        .collect()
}

/// The most misses that are outstanding at once, the first point being that of one chain; 1 when
/// nothing was measured.
pub(super) fn misses(points: &[CurvePoint]) -> f64 {
    let least = points.iter().map(|point| point.ns);
    let least = least.fold(f64::INFINITY, f64::min);
    match points {
        [alone, ..] if least > 0.0 => alone.ns / least,
        _ => 1.0,
    }
}

/// Nanoseconds of a load when `K` chains go side by side. Their states are far apart in the one
/// sequence of the generator, or one chain would load what the next is about to.
fn run<const K: usize>(words: &[u64], lines: u64, random: &mut SplitMix64) -> f64 {
    let mut states = [(); K].map(|()| random.next_u64());
    #[expect(clippy::cast_possible_truncation, reason = "at most 32")]
    let chains = K as u32;
    let ns = ns_each(&mut states, (LOADS / chains).max(1), |states| {
        for state in states {
            *state = next_state(*state);
            // The words are all 0, which the compiler does not know: the next address of the chain
            // waits for the load.
            *state = state.wrapping_add(words[line_start(scale(*state, lines))]);
        }
    });
    ns / f64::from(chains)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageSize;

    #[test]
    fn the_fastest_point_gives_the_number_of_misses() {
        let points = [(1.0, 120.0), (4.0, 32.0), (16.0, 9.0), (32.0, 10.0)];
        let points = points.map(|(at, ns)| CurvePoint { at, ns });
        assert!((misses(&points) - 120.0 / 9.0).abs() < 1e-9);
        let stopped_clock = [CurvePoint { at: 1.0, ns: 0.0 }];
        for points in [&[][..], &stopped_clock] {
            assert!((misses(points) - 1.0).abs() < 1e-9);
        }
        let memory = PagedMemory::new(1 << 17, PageSize::Small4K).unwrap();
        let points = measure(&memory, 1);
        assert!(points.is_sorted_by(|a, b| a.at < b.at));
        assert!(points.iter().all(|point| point.ns > 0.0));
    }
}
