//! `simulator_speed`: how fast the simulator is, by the clock.

use std::hint::black_box;
use std::time::Instant;

use ccmodel::{Frames, Inclusion, Simulator};

use super::{Bound, Row};
use crate::sample::{Simulated, level};

/// Lines of the stream: half of what the first cache holds.
const LINES: u64 = 384;
/// Accesses of a round: less than a millisecond, so that most rounds are not interrupted.
const ACCESSES: u64 = 50_000;
const ROUNDS: usize = 400;

/// Million accesses a second, the median of many rounds. Each access reads 8 bytes of a random one
/// of 384 lines, in the caches of a desktop processor. Which line is next is a different answer
/// each time, so this is slower than the accesses of most programs.
pub(super) fn simulator_speed_row() -> Row {
    let mut simulator = simulator();
    let mut state = 1u64;
    let mut round = || {
        let start = Instant::now();
        for _ in 0..ACCESSES {
            // Knuth's MMIX constants; the upper half is random enough.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let line = ((state >> 32) * LINES) >> 32;
            black_box(simulator.access(line * 64, 8));
        }
        ACCESSES as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    round();
    let mut rates = [(); ROUNDS].map(|()| round());
    rates.sort_by(f64::total_cmp);
    Row {
        name: "simulator_speed",
        value: Some(rates[ROUNDS / 2]),
        allowed: 50.0,
        bound: Bound::AtLeast,
        note: "Millions of simulated accesses a second. Each reads one line that a cache holds."
            .to_owned(),
    }
}

fn simulator() -> Simulator {
    let caches = vec![
        level("L1", 48 << 10, 12, 64),
        level("L2", 1 << 20, 16, 64),
        level("L3", 32 << 20, 16, 64),
    ];
    let machine = Simulated::new("desktop", caches, Inclusion::NonInclusive, Vec::new());
    Simulator::new(&machine.hierarchy, Frames::Identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_stays_in_the_first_cache() {
        let mut simulator = simulator();
        for address in (0..LINES * 64).step_by(64).cycle().take(10_000) {
            simulator.access(address, 8);
        }
        assert_eq!(simulator.counts().caches[0].misses, LINES);
    }
}
