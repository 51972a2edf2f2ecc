//! How fast the simulator and the predictor are.

use std::hint::black_box;
use std::time::Instant;

use ccmodel::{Frames, Inclusion, Layout, Simulator, Tier, predict_misses};

use super::Row;
use super::steady::{TreeCase, machines};
use crate::sample::{Simulated, level};

/// Lines of the stream: half of what the first cache holds.
const LINES: u64 = 384;
/// Accesses of a round: less than a millisecond, so that most rounds are not interrupted.
const ACCESSES: u64 = 50_000;
const ROUNDS: usize = 400;

/// Million accesses a second, the median of many rounds. Each access reads 8 bytes of a random one
/// of 384 lines, so that its way is as unpredictable as can be.
pub(super) fn simulator_row() -> Row {
    let caches = vec![
        level("L1", 48 << 10, 12, 64),
        level("L2", 1 << 20, 16, 64),
        level("L3", 32 << 20, 16, 64),
    ];
    let machine = Simulated::new("desktop", caches, Inclusion::NonInclusive, Vec::new());
    let mut simulator = Simulator::new(&machine.hierarchy, Frames::Identity);
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
    let note = "Millions of simulated accesses a second. Each reads one line that a cache holds.";
    let median = Some(rates[ROUNDS / 2]);
    Row::at_least("simulator_speed", 50.0, median, note.to_owned())
}

/// Seconds for 2^22 nodes at all levels by the per-set tier, the slower of two layouts.
pub(super) fn predictor_row() -> Row {
    let [machine, ..] = machines();
    let mut slowest = (0.0f64, "");
    for layout in [Layout::Random { seed: 1 }, Layout::VanEmdeBoas] {
        let accesses = TreeCase::new(22, 32, layout).accesses();
        let start = Instant::now();
        let (hierarchy, frames) = (&machine.hierarchy, Frames::Identity);
        predict_misses(&accesses, hierarchy, frames, Tier::PerSet, None);
        let seconds = start.elapsed().as_secs_f64();
        if seconds > slowest.0 {
            slowest = (seconds, layout.name());
        }
    }
    let note = format!("Seconds for the slowest layout, {}.", slowest.1);
    Row::at_most("predict_speed", 5.0, Some(slowest.0), note)
}
