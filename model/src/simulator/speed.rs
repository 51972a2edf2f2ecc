//! How fast the simulator is, by the clock.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use super::{Frames, Simulator};
use crate::colour::{CacheGeometry, ColourError};
use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion};

/// Lines of the stream: half of what the first cache holds.
const LINES: u64 = 384;
/// Of a round: less than a millisecond, so that most rounds are not interrupted when others want
/// the processor, too.
const ACCESSES: u64 = 50_000;
const ROUNDS: usize = 400;

/// Million accesses a second on a stream that stays in the first cache: the median of 400 rounds of
/// 50 thousand reads of 8 bytes, each from a random one of 384 lines, in the caches of a desktop
/// processor (48 KiB of 12 ways, 1 MiB of 16, 32 MiB of 16, all LRU, no TLBs).
///
/// Takes a few tenths of a second; the making of the stream counts as the simulator's time. 120 on
/// an Emerald Rapids virtual machine.
///
/// It is no easy stream: which line is next, and in which way of its set it is, is a different
/// answer each time, where a program's own accesses often repeat the last line (eight words of each
/// line in turn: 220). TLBs and random frames together make an access to a random page 2.7 times as
/// dear.
pub fn simulator_speed() -> f64 {
    let mut simulator = simulator();
    let mut state = 1u64;
    let mut round = |accesses: u64| {
        let start = Instant::now();
        for _ in 0..accesses {
            // Knuth's MMIX constants; the upper half is random enough.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let line = ((state >> 32) * LINES) >> 32;
            black_box(simulator.access(line * 64, 8));
        }
        accesses as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    round(ACCESSES);
    let mut rates = [(); ROUNDS].map(|()| round(ACCESSES));
    rates.sort_by(f64::total_cmp);
    rates[ROUNDS / 2]
}

/// Caches of a desktop processor.
fn simulator() -> Simulator {
    let level = |name, sets, ways| -> Result<CacheLevel, ColourError> {
        Ok(CacheLevel::lru(name, CacheGeometry::new(sets, 64, ways)?))
    };
    let build = || -> Result<Hierarchy, Box<dyn Error>> {
        let caches = vec![
            level("L1", 64, 12)?,
            level("L2", 1024, 16)?,
            level("L3", 32768, 16)?,
        ];
        let hierarchy = Hierarchy::new(caches, Inclusion::NonInclusive, Vec::new());
        Ok(hierarchy?)
    };
    match build() {
        Ok(hierarchy) => Simulator::new(&hierarchy, Frames::Identity),
        Err(error) => unreachable!("these are caches: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented stream does what its documentation says: one miss a line, then none.
    #[test]
    fn the_stream_stays_in_the_first_cache() {
        let mut simulator = simulator();
        for address in (0..LINES * 64).step_by(64).cycle().take(10_000) {
            simulator.access(address, 8);
        }
        let counts = simulator.counts();
        assert_eq!(counts.caches[0].misses, LINES);
        assert!(simulator_speed() > 0.0);
    }
}
