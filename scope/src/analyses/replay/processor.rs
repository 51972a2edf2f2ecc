//! A processor of a few rules: how long replayed accesses take.
//!
//! Accesses begin in order, at most [`AHEAD`] of them are under way, an access through a pointer
//! waits for the pointer, and one after a mispredicted branch for everything before it.
//! What one access costs besides misses is fitted to the time of the whole run where that is known,
//! so that a gain is never one of more time than there is.

use std::collections::HashMap;

use super::trace::{NONE, Trace};
use super::{Accessed, PROBABLE, Replay, Replayed, Work};
use crate::analyses::misses::student;

/// Accesses that a processor holds at a time: some four hundred instructions.
pub(super) const AHEAD: usize = 96;
/// A load from the first cache, for those that wait for it, in nanoseconds.
const HIT_NS: f64 = 1.2;
/// Shorter misses are not limited in number.
const FAR_NS: f64 = 10.0;
/// Nanoseconds for an access that hits: of the fastest code, and of most.
const FASTEST_NS: f64 = 0.25;
const USUAL_NS: f64 = 0.7;
/// A program that takes `f` times as long as the usual processor would, or `1 / f` times, is one
/// whose misses cost so many times as much, as a power of `f`, but at most that.
const OF_MISSES: f64 = 0.5;
const MOST_OF_MISSES: f64 = 2.0;
/// The logarithms between which a processor's pace is searched, and halvings of that range.
const PACES: [f64; 2] = [-9.0, 12.0];
const HALVINGS: u32 = 22;
/// What code that searches takes for each access, all in caches: 1.7 in lookups in a `BTreeMap` of
/// 2^14 entries (a virtual Zen 5, 23 November 2026).
pub(super) const SEARCH_NS: f64 = 1.7;
/// Lines that may be on their way; those with the same low bits count as one.
const ARRIVING: usize = 256;

#[expect(clippy::cast_possible_truncation, reason = "the low bits")]
fn slot(line: u64) -> usize {
    line as usize % ARRIVING
}

impl Replayed {
    /// The part of the time that is waited for, by site: that of all, shared by their latencies.
    /// `which` is as in [`Latency`](super::Latency).
    pub(crate) fn waits(&self, trace: &Trace, cpu: CpuModel, which: usize) -> HashMap<u32, f64> {
        let ns = |cpu| self.window_ns(trace, cpu, which).iter().sum::<f64>();
        let without = CpuModel {
            of_misses: 0.0,
            ..cpu
        };
        let waited = 1.0 - ns(without) / ns(cpu).max(f64::MIN_POSITIVE);
        let latency = |it: &Accessed| f64::from(it.latency[which]);
        let all: f64 = self.accesses.iter().map(latency).sum();
        let mut waits = HashMap::new();
        for it in self.accesses.iter().filter(|&it| latency(it) > 0.0) {
            let site = trace.site(&trace.steps[it.step as usize]);
            *waits.entry(site).or_default() += waited * latency(it) / all;
        }
        waits
    }

    /// Nanoseconds of each window. `which` is as in [`Latency`](super::Latency).
    pub(crate) fn window_ns(&self, trace: &Trace, cpu: CpuModel, which: usize) -> Vec<f64> {
        let mut ready = vec![0.0f64; trace.steps.len()];
        let mut retired = [0.0f64; AHEAD];
        // Lines that are on their way, and when they arrive.
        let mut arriving = [(u64::MAX, 0.0f64); ARRIVING];
        let (mut started, mut last_retired, mut before, mut fence) = (0.0f64, 0.0f64, 0.0, 0.0);
        // When the misses end that are under way. Other code asks for all lines of a node at once,
        // whatever the program's own code waits for.
        let mut ends = [cpu.in_flight, self.in_flight].map(|room| vec![0.0f64; room]);
        let (mut missed, mut count) = ([0usize; 2], 0usize);
        let (mut last_mispredicted, mut last_step) = (NONE, NONE);
        let mut windows = Vec::with_capacity(self.ends.len());
        let (mut at, mut window_start) = (0, 0.0);
        for &end in &self.ends {
            for it in &self.accesses[at..end] {
                let step = &trace.steps[it.step as usize];
                let (work_ns, room) = match it.work {
                    Work::Usual => (cpu.access_ns, 1),
                    Work::Own { ns, accesses } => (f64::from(ns), usize::from(accesses)),
                    Work::Rest => {
                        started += (cpu.access_ns - SEARCH_NS).max(0.0);
                        continue;
                    }
                };
                let latency = f64::from(it.latency[which]) * cpu.of_misses;
                let (transfer, latency) = match it.is_foreseen {
                    true => (latency, 0.0),
                    false => (0.0, latency),
                };
                // In order, as soon as there is room; one that waits does not hold up the next.
                count += room;
                started += work_ns + transfer;
                started = started.max(retired[count % AHEAD]).max(fence);
                let mut start = started;
                if it.after {
                    start = start.max(before);
                }
                let mut hit = 0.0;
                if let Some(&pointer) = ready.get(step.via as usize) {
                    start = start.max(pointer);
                    hit = HIT_NS;
                }
                let is_own = matches!(it.work, Work::Own { .. }) && room > 0;
                if step.mispredicted && last_mispredicted != it.step {
                    last_mispredicted = it.step;
                    // Other code has other branches.
                    if !is_own {
                        start = start.max(last_retired + self.misprediction_ns);
                        fence = start;
                    }
                }
                if latency > FAR_NS {
                    let is_own = usize::from(is_own);
                    let ends = &mut ends[is_own];
                    let at = missed[is_own] % ends.len();
                    let end = &mut ends[at];
                    start = start.max(*end);
                    *end = start + latency;
                    missed[is_own] += 1;
                }
                let mut done = start + hit + latency;
                let line = &mut arriving[slot(it.line)];
                if it.latency[which] > 0.0 {
                    *line = (it.line, done);
                } else if line.0 == it.line {
                    done = done.max(line.1);
                }
                // A write is done when it is under way.
                if step.write {
                    done = start;
                }
                before = match it.after || it.step != last_step {
                    true => done,
                    false => done.max(before),
                };
                last_step = it.step;
                ready[it.step as usize] = before;
                last_retired = last_retired.max(done);
                for back in 0..room {
                    retired[(count - back) % AHEAD] = last_retired;
                }
            }
            at = end;
            windows.push(last_retired.max(started) - window_start);
            window_start = last_retired.max(started);
        }
        windows
    }
}

/// Two replays of one trace, side by side.
pub(crate) struct Comparison {
    /// The part of the windows' time that the change leaves: low, estimate, high.
    pub(crate) left: [f64; 3],
}

/// Compares windows in pairs: what both have in common cancels out.
pub(crate) fn compare(
    trace: &Trace,
    before: &Replayed,
    after: &Replayed,
    [cpu, least]: [CpuModel; 2],
) -> Comparison {
    let part = |which: usize, cpu: CpuModel| {
        let old = before.window_ns(trace, cpu, which);
        let new = after.window_ns(trace, cpu, which);
        let total: f64 = old.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let left = new.iter().sum::<f64>() / total;
        let windows = old.len() as f64;
        let residues: f64 = { old.iter().zip(&new) }
            .map(|(old, new)| (new - left * old).powi(2))
            .sum();
        let error = match old.len() {
            0 | 1 => 0.0,
            len => student(len - 1) * (residues * windows / (windows - 1.0)).sqrt() / total,
        };
        [left - error, left, left + error]
    };
    let probable = part(PROBABLE, cpu);
    let mut all = vec![probable, part(0, cpu), part(2, cpu)];
    if least != cpu {
        all.push(part(PROBABLE, least));
    }
    let lowest = all.iter().map(|it| it[0]).fold(f64::INFINITY, f64::min);
    let highest = all.iter().map(|it| it[2]).fold(0.0, f64::max);
    Comparison {
        left: [lowest.max(0.0), probable[1], highest],
    }
}

/// How fast the program goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CpuModel {
    /// Nanoseconds of an access, besides its misses.
    pub(crate) access_ns: f64,
    /// What misses cost, as a part of what they would by the machine.
    pub(crate) of_misses: f64,
    /// Misses under way at a time, at least 1.
    pub(crate) in_flight: usize,
}

impl CpuModel {
    /// If the time of the run is not known.
    pub(crate) fn usual(replay: &Replay) -> CpuModel {
        CpuModel {
            access_ns: USUAL_NS,
            of_misses: 1.0,
            in_flight: replay.in_flight,
        }
    }

    /// Two models with which the windows take their part of a run of `ns` nanoseconds: a probable
    /// one and one with the least waiting.
    ///
    /// Why a program takes longer than the usual processor would, or less long, does not show: it
    /// does more between accesses, or its misses cost more, or it waits for addresses that it
    /// computes, so that fewer misses overlap. The probable model has some of each. In the other
    /// one, misses cost what the machine says, and the rest is work.
    pub(crate) fn fit(replay: &Replay, trace: &Trace, before: &Replayed, ns: f64) -> [CpuModel; 2] {
        let is_faster = |cpu: &CpuModel| {
            let windows = before.window_ns(trace, *cpu, PROBABLE);
            windows.iter().sum::<f64>() * trace.scale < ns
        };
        let usual = CpuModel::usual(replay);
        let probable = slowed(is_faster, |pace| CpuModel {
            access_ns: (usual.access_ns * pace).max(FASTEST_NS),
            of_misses: pace.powf(OF_MISSES).min(MOST_OF_MISSES),
            in_flight: super::in_flight(usual.in_flight as f64 / pace.max(1.0)),
        });
        let fastest = CpuModel {
            access_ns: FASTEST_NS,
            ..usual
        };
        if !is_faster(&fastest) {
            return [probable; 2];
        }
        let least = slowed(is_faster, |pace| CpuModel {
            access_ns: (usual.access_ns * pace).max(FASTEST_NS),
            ..usual
        });
        [probable, least]
    }
}

/// The first of models, ever slower, that is not faster than the program.
fn slowed(is_faster: impl Fn(&CpuModel) -> bool, of: impl Fn(f64) -> CpuModel) -> CpuModel {
    let [mut low, mut high] = PACES;
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        match is_faster(&of(middle.exp())) {
            true => low = middle,
            false => high = middle,
        }
    }
    of(high.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_found() {
        let of = |access_ns| CpuModel {
            access_ns,
            of_misses: 1.0,
            in_flight: 1,
        };
        let found = slowed(|cpu| cpu.access_ns < 3.0, of);
        assert!((3.0..3.001).contains(&found.access_ns), "{found:?}");
        // What is faster or slower than any model ends at one of them.
        let ends = [false, true].map(|is| slowed(|_| is, of).access_ns);
        assert!(ends[0] < 1e-3 && ends[1] > 1e5, "{ends:?}");
    }
}
