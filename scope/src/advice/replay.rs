//! What the accesses of a trace cost, where they go or where a change would let them go.
//!
//! Two parts. [`Simulator`] says which levels an access misses. The windows are replayed as if
//! nothing had happened between them: those at random times of a steady program are then as good as
//! one long window. What no window has accessed before may still lie in a cache; how probable that
//! is follows from the number of blocks that the program uses, of which the windows show a part (A.
//! Chao, *Nonparametric Estimation of the Number of Classes in a Population*, 1984).
//!
//! Then a processor of a few rules says how long that takes: accesses begin in order, at most
//! [`AHEAD`] of them are under way, an access through a pointer waits for the pointer, and after a
//! turn that it could not foresee, for everything before it. What one access costs besides misses
//! is fitted to the time of the whole run, so that a gain is never one of more time than there is.

use std::collections::HashMap;

use ccmodel::{CacheGeometry, CacheLevel, Frames, Hierarchy, Machine, Simulator};

use super::trace::{NONE, Step, Trace, index_32};
use crate::analyses::misses::{costs, student};

/// Accesses that a processor holds at a time: some four hundred instructions.
const AHEAD: usize = 96;
/// A load from the first cache, for those that wait for it, in nanoseconds.
const HIT_NS: f64 = 1.2;
/// Shorter misses are not limited in number.
const FAR_NS: f64 = 10.0;
/// The part of a miss that is waited for where accesses go on from block to block, as prefetchers
/// foresee.
const FORESEEN: f64 = 0.04;
/// The most that a miss near another one saves. Calibration measures them one behind the other, as
/// prefetchers like it; in structures there are other accesses between them.
const MAX_NEIGHBOURS: f64 = 0.5;
/// Nanoseconds for an access that hits: of the fastest code, of most, of code that computes much
/// between accesses, and of programs that do something else.
const FASTEST_NS: f64 = 0.25;
const USUAL_NS: f64 = 0.7;
const BUSY_NS: f64 = 1.0;
const SLOWEST_NS: f64 = 1e5;
/// What code that searches takes for each access, all in caches: 1.7 in lookups in a `BTreeMap` of
/// 2^14 entries (a virtual Zen 5, 23 November 2026).
const SEARCH_NS: f64 = 1.7;
/// Bits of the address of a page, and of what is fetched along with a block.
const PAGE_BITS: u32 = 12;

/// What a processor has to do for an access, besides its misses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    /// What the program does for each of its accesses.
    Usual,
    /// Other code: so many nanoseconds, and the room of so many accesses.
    Own { ns: f32, accesses: u8 },
    /// There is no access any more. What is more than [`SEARCH_NS`] is other work, and stays.
    Rest,
}

/// Where an access goes, as a change would place it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) address: u64,
    pub(crate) size: u8,
    /// Waits for what is before it: the last place of another step, or of its own step all since
    /// the last that waited. The link that led here is new.
    pub(crate) after: bool,
    pub(crate) work: Work,
}

impl Place {
    /// Where the access goes today.
    pub(crate) fn today(step: &Step) -> Place {
        Place {
            address: step.address,
            size: step.size,
            after: false,
            work: Work::Usual,
        }
    }

    /// No access, in the place of one.
    pub(crate) fn nowhere() -> Place {
        Place {
            address: 0,
            size: 0,
            after: false,
            work: Work::Rest,
        }
    }

    /// The same at another address.
    pub(crate) fn at(address: u64, step: &Step) -> Place {
        Place {
            address,
            ..Place::today(step)
        }
    }
}

/// How a change rewrites the accesses: gives for a step, by its index, the places that it goes to.
/// None if it would not happen any more.
pub(crate) trait Rewrite {
    fn places(&mut self, index: usize, step: &Step, into: &mut Vec<Place>);
}

impl<F: FnMut(usize, &Step, &mut Vec<Place>)> Rewrite for F {
    fn places(&mut self, index: usize, step: &Step, into: &mut Vec<Place>) {
        self(index, step, into);
    }
}

/// Nothing is changed.
pub(crate) fn today(_: usize, step: &Step, into: &mut Vec<Place>) {
    into.push(Place::today(step));
}

/// What one access waits for, in nanoseconds, if what is not known hits, hits as often as is
/// probable, and misses.
type Latency = [f32; 3];
/// See [`Latency`].
pub(crate) const PROBABLE: usize = 1;
/// See [`Latency`].
pub(crate) const LEAST: usize = 0;

/// An access to a place.
#[derive(Clone, Copy, Debug)]
struct Accessed {
    /// Index of its step.
    step: u32,
    /// See [`Place`].
    after: bool,
    work: Work,
    line: u64,
    latency: Latency,
}

/// What the simulator says of an access.
struct Found {
    step: u32,
    after: bool,
    work: Work,
    line: u64,
    /// Levels, as bits.
    missed: u16,
    /// Whether no access before it was to this line, and to this page.
    new: [bool; 2],
    /// The part of the latency that is waited for.
    part: f32,
}

/// The accesses of a trace with a change, or without.
#[derive(Debug)]
pub(crate) struct Replayed {
    accesses: Vec<Accessed>,
    /// Indices of the first access after each window.
    ends: Vec<usize>,
    /// In the windows, by level: certain ones, probable ones, possible ones.
    pub(crate) misses: Vec<[f64; 3]>,
    /// Nanoseconds of a turn that the processor did not foresee.
    turn_ns: f64,
}

/// Simulates a machine.
pub(crate) struct Replay {
    hierarchy: Hierarchy,
    /// Of a miss of each cache and then of each translation buffer, in nanoseconds.
    costs: Vec<f64>,
    /// How many misses the machine can have under way at a time.
    pub(crate) misses: usize,
    /// Of a turn that the processor did not foresee, in nanoseconds.
    turn_ns: f64,
    /// Of a far miss, the part that is paid once in a block of so many bits.
    neighbours: Vec<(u32, f64)>,
    /// Names of the levels.
    pub(crate) levels: Vec<String>,
}

impl Replay {
    /// `None` if the machine's caches are not known.
    pub(crate) fn new(machine: &Machine) -> Option<Replay> {
        let nominal = machine.hierarchy.as_ref()?;
        let caches: Vec<CacheLevel> = nominal
            .caches()
            .iter()
            .map(|cache| effective(cache, machine))
            .collect();
        let hierarchy = Hierarchy::new(caches, nominal.inclusion(), nominal.tlbs().to_vec());
        let levels = nominal.caches().iter().chain(nominal.tlbs());
        let shares: f64 = machine.neighbours.iter().map(|it| it.share).sum();
        let fair = (MAX_NEIGHBOURS / shares.max(f64::MIN_POSITIVE)).min(1.0);
        Some(Replay {
            // A cache that would be smaller than one that it includes is left as it is.
            hierarchy: hierarchy.unwrap_or_else(|_| nominal.clone()),
            costs: costs(machine),
            misses: misses(machine.overlap.misses),
            turn_ns: machine.search.misprediction_ns,
            neighbours: machine
                .neighbours
                .iter()
                .map(|it| (it.block_bytes.trailing_zeros(), it.share * fair))
                .collect(),
            levels: levels.map(|level| level.name.clone()).collect(),
        })
    }

    /// What it takes to access `bytes` bytes at random places, all levels together.
    pub(crate) fn latency_ns(&self, bytes: u64) -> f64 {
        let levels = self.hierarchy.caches().iter().chain(self.hierarchy.tlbs());
        let absent =
            levels.map(|level| (1.0 - level.bytes() as f64 / bytes.max(1) as f64).max(0.0));
        absent
            .zip(&self.costs)
            .map(|(absent, cost)| absent * cost)
            .sum()
    }

    /// O(accesses).
    pub(crate) fn run(&self, trace: &Trace, rewrite: &mut dyn Rewrite) -> Replayed {
        let mut simulator = Simulator::new(&self.hierarchy, Frames::Identity);
        let cache_levels = self.hierarchy.caches().len();
        let levels = self.levels.len();
        let mut seen = [Seen::default(), Seen::default()];
        let mut streams = Streams::default();
        let mut found: Vec<Found> = Vec::new();
        let mut ends = Vec::with_capacity(trace.ends.len());
        let mut places = Vec::new();
        for window in trace.windows() {
            seen.iter_mut().for_each(Seen::next_window);
            for index in window {
                let step = &trace.steps[index];
                places.clear();
                rewrite.places(index, step, &mut places);
                for place in &places {
                    if place.work == Work::Rest {
                        found.push(Found {
                            step: index_32(index),
                            after: false,
                            work: Work::Rest,
                            line: u64::MAX,
                            missed: 0,
                            new: [false; 2],
                            part: 0.0,
                        });
                        continue;
                    }
                    let line = place.address >> LINE_BITS;
                    let new = [
                        seen[0].is_new(line),
                        seen[1].is_new(place.address >> PAGE_BITS),
                    ];
                    let before = [simulator.cache_misses(), simulator.tlb_misses()];
                    let mut missed = 0u16;
                    if simulator.access(place.address, u32::from(place.size)) {
                        let after = [simulator.cache_misses(), simulator.tlb_misses()];
                        for level in 0..levels {
                            let tlb = usize::from(level >= cache_levels);
                            let at = level - tlb * cache_levels;
                            let is_missed = before[tlb][at] != after[tlb][at];
                            missed |= u16::from(is_missed) << level;
                        }
                    }
                    let part = match missed {
                        0 => 0.0,
                        _ => streams.part(line, &self.neighbours),
                    };
                    found.push(Found {
                        step: index_32(index),
                        after: place.after,
                        work: place.work,
                        line,
                        missed,
                        new,
                        part,
                    });
                }
            }
            ends.push(found.len());
        }
        let blocks = seen.each_ref().map(Seen::estimate);
        self.cost(&found, ends, blocks)
    }

    /// From misses to nanoseconds. `blocks`: lines and pages that the program uses.
    fn cost(&self, found: &[Found], ends: Vec<usize>, blocks: [f64; 2]) -> Replayed {
        let cache_levels = self.hierarchy.caches().len();
        let held = |level: &CacheLevel, blocks: f64| level.blocks() as f64 / blocks;
        let caches = self.hierarchy.caches().iter().map(|it| held(it, blocks[0]));
        let held = caches.chain(self.hierarchy.tlbs().iter().map(|it| held(it, blocks[1])));
        // How probable it is that a level does not hold what no window has accessed.
        let absent: Vec<f64> = held.map(|held| (1.0 - held).max(0.0)).collect();
        let mut misses = vec![[0.0; 3]; self.levels.len()];
        let access = |it: &Found| {
            let mut latency = [0.0f64; 3];
            for level in (0..self.levels.len()).filter(|level| it.missed >> level & 1 == 1) {
                let is_new = it.new[usize::from(level >= cache_levels)];
                let chances = match is_new {
                    true => [0.0, absent.get(level).copied().unwrap_or(1.0), 1.0],
                    false => [1.0; 3],
                };
                // Translations are not fetched ahead, but the walks of neighbours are short.
                let cost = self.costs.get(level).copied().unwrap_or(0.0) * f64::from(it.part);
                for (which, chance) in chances.into_iter().enumerate() {
                    latency[which] += chance * cost;
                    misses[level][which] += chance;
                }
            }
            Accessed {
                step: it.step,
                after: it.after,
                work: it.work,
                line: it.line,
                latency: latency.map(narrow),
            }
        };
        Replayed {
            accesses: found.iter().map(access).collect(),
            ends,
            misses,
            turn_ns: self.turn_ns,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is clamped"
)]
fn misses(number: f64) -> usize {
    number.clamp(1.0, AHEAD as f64) as usize
}

const LINE_BITS: u32 = 6;
/// Lines that may be on their way; those with the same low bits count as one.
const ARRIVING: usize = 256;

#[expect(clippy::cast_possible_truncation, reason = "the low bits")]
fn slot(line: u64) -> usize {
    line as usize % ARRIVING
}

/// A latency has few digits.
#[expect(clippy::cast_possible_truncation, reason = "latencies are rounded")]
pub(crate) fn narrow(number: f64) -> f32 {
    number as f32
}

/// The cache with as many ways as hold what the machine's level was measured to hold.
fn effective(cache: &CacheLevel, machine: &Machine) -> CacheLevel {
    let level = machine.levels.iter().find(|level| level.name == cache.name);
    let share = level.map_or(1.0, |level| level.capacity_bytes() / cache.bytes() as f64);
    let geometry = cache.geometry;
    let ways = (1..=geometry.associativity()).rfind(|&ways| {
        ways == 1 || ways as f64 <= (share * geometry.associativity() as f64).max(1.0).ceil()
    });
    let smaller = ways
        .and_then(|ways| CacheGeometry::new(geometry.sets(), geometry.block_bytes(), ways).ok());
    CacheLevel {
        geometry: smaller.unwrap_or(geometry),
        ..cache.clone()
    }
}

/// Blocks that windows have accessed.
#[derive(Default)]
struct Seen {
    window: u32,
    /// By block: the last window, and in how many of them it was, up to 3.
    blocks: HashMap<u64, (u32, u8)>,
}

impl Seen {
    fn next_window(&mut self) {
        self.window += 1;
    }

    /// Whether no window had it.
    fn is_new(&mut self, block: u64) -> bool {
        let mut is_new = false;
        let entry = self.blocks.entry(block).or_insert_with(|| {
            is_new = true;
            (0, 0)
        });
        if entry.0 != self.window {
            *entry = (self.window, (entry.1 + 1).min(3));
        }
        is_new
    }

    /// Blocks that the program uses, those that no window has shown included: the seen ones, and
    /// for `a` in one window only and `b` in two, `a (a - 1) / (2 b + 2)` more.
    fn estimate(&self) -> f64 {
        let [mut once, mut twice] = [0.0f64; 2];
        for &(_, windows) in self.blocks.values() {
            match windows {
                1 => once += 1.0,
                2 => twice += 1.0,
                _ => {}
            }
        }
        // One window shows nothing of the others.
        let more = match self.window {
            0 | 1 => 0.0,
            _ => once * (once - 1.0).max(0.0) / (2.0 * twice + 2.0),
        };
        (self.blocks.len() as f64 + more).max(1.0)
    }
}

/// Recent misses.
struct Streams {
    /// Lines that missed, the newest overwriting the oldest.
    recent: [u64; 32],
    at: usize,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            recent: [u64::MAX; 32],
            at: 0,
        }
    }
}

impl Streams {
    /// The part of a miss's latency that is waited for, by what missed just before.
    fn part(&mut self, line: u64, neighbours: &[(u32, f64)]) -> f32 {
        let has = |wanted: u64| self.recent.contains(&wanted);
        let up = has(line.wrapping_sub(1)) && has(line.wrapping_sub(2));
        let down = has(line.wrapping_add(1)) && has(line.wrapping_add(2));
        let mut part = 1.0;
        if up || down {
            part = FORESEEN;
        } else {
            for &(bits, share) in neighbours {
                let shift = bits.saturating_sub(LINE_BITS);
                let block = line >> shift;
                if self.recent.iter().any(|recent| recent >> shift == block) {
                    part -= share;
                }
            }
        }
        self.recent[self.at % 32] = line;
        self.at += 1;
        narrow(part)
    }
}

impl Replayed {
    /// The part of the time that is waited for, by site: that of all, shared by their latencies.
    /// `which` is as in [`Latency`].
    pub(crate) fn waits(&self, trace: &Trace, pace: Pace, which: usize) -> HashMap<u32, f64> {
        let ns = |pace| self.window_ns(trace, pace, which).iter().sum::<f64>();
        let without = Pace {
            of_misses: 0.0,
            ..pace
        };
        let waited = 1.0 - ns(without) / ns(pace).max(f64::MIN_POSITIVE);
        let latency = |it: &Accessed| f64::from(it.latency[which]);
        let all: f64 = self.accesses.iter().map(latency).sum();
        let mut waits = HashMap::new();
        for it in self.accesses.iter().filter(|&it| latency(it) > 0.0) {
            let site = trace.site(&trace.steps[it.step as usize]);
            *waits.entry(site).or_default() += waited * latency(it) / all;
        }
        waits
    }

    /// Nanoseconds of each window. `which` is as in [`Latency`].
    pub(crate) fn window_ns(&self, trace: &Trace, pace: Pace, which: usize) -> Vec<f64> {
        let mut ready = vec![0.0f64; trace.steps.len()];
        let mut retired = [0.0f64; AHEAD];
        // Lines that are on their way, and when they arrive.
        let mut arriving = [(u64::MAX, 0.0f64); ARRIVING];
        let (mut started, mut last_retired, mut before, mut fence) = (0.0f64, 0.0f64, 0.0, 0.0);
        // When the misses end that are under way.
        let mut ends = vec![0.0f64; pace.misses];
        let [mut missed, mut count] = [0usize; 2];
        let (mut surprised, mut last_step) = (NONE, NONE);
        let mut windows = Vec::with_capacity(self.ends.len());
        let (mut at, mut window_start) = (0, 0.0);
        for &end in &self.ends {
            for it in &self.accesses[at..end] {
                let step = &trace.steps[it.step as usize];
                let (work_ns, room) = match it.work {
                    Work::Usual => (pace.access_ns, 1),
                    Work::Own { ns, accesses } => (f64::from(ns), usize::from(accesses)),
                    Work::Rest => {
                        started += (pace.access_ns - SEARCH_NS).max(0.0);
                        continue;
                    }
                };
                // In order, as soon as there is room; one that waits does not hold up the next.
                count += room;
                started = (started + work_ns).max(retired[count % AHEAD]).max(fence);
                let mut start = started;
                if it.after {
                    start = start.max(before);
                }
                let mut hit = 0.0;
                if let Some(&pointer) = ready.get(step.via as usize) {
                    start = start.max(pointer);
                    hit = HIT_NS;
                }
                if step.surprises && surprised != it.step {
                    surprised = it.step;
                    start = start.max(last_retired + self.turn_ns);
                    fence = start;
                }
                let latency = f64::from(it.latency[which]) * pace.of_misses;
                if latency > FAR_NS {
                    let end = &mut ends[missed % pace.misses];
                    start = start.max(*end);
                    *end = start + latency;
                    missed += 1;
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
    /// Of the time of the windows, the part that the change leaves: low, estimate, high.
    pub(crate) left: [f64; 3],
}

/// Compares windows in pairs: what both have in common cancels out.
pub(crate) fn compare(
    trace: &Trace,
    before: &Replayed,
    after: &Replayed,
    [pace, least]: [Pace; 2],
) -> Comparison {
    let part = |which: usize, pace: Pace| {
        let old = before.window_ns(trace, pace, which);
        let new = after.window_ns(trace, pace, which);
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
    let probable = part(PROBABLE, pace);
    let mut all = vec![probable, part(0, pace), part(2, pace)];
    if least != pace {
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
pub(crate) struct Pace {
    /// Nanoseconds of an access, besides its misses.
    pub(crate) access_ns: f64,
    /// What misses cost, as a part of what they would by the machine.
    pub(crate) of_misses: f64,
    /// Misses under way at a time, at least 1.
    pub(crate) misses: usize,
}

impl Pace {
    /// If the time of the run is not known.
    pub(crate) fn usual(replay: &Replay) -> Pace {
        Pace {
            access_ns: USUAL_NS,
            of_misses: 1.0,
            misses: replay.misses,
        }
    }

    /// Two paces at which the windows take their part of a run of `ns` nanoseconds: a probable one
    /// and one with the least waiting.
    ///
    /// If even the fastest processor would need longer, misses cost less than the machine says.
    /// Where the program takes longer, it does more between accesses, which is the second pace; or
    /// it waits for addresses that it computes, so that fewer misses overlap. The first takes
    /// [`BUSY_NS`] for each access, and only what then is left for the former.
    pub(crate) fn fit(replay: &Replay, trace: &Trace, before: &Replayed, ns: f64) -> [Pace; 2] {
        let total = |pace: &Pace| {
            let windows = before.window_ns(trace, *pace, PROBABLE);
            windows.iter().sum::<f64>() * trace.scale
        };
        // The first of some paces, ever slower, that is slow enough.
        let first = |paces: Vec<Pace>| {
            let at = paces.partition_point(|pace| total(pace) < ns);
            paces[at.min(paces.len() - 1)]
        };
        let usual = Pace::usual(replay);
        let steps = |from: f64, to: f64| {
            (0..=STEPS).map(move |step| from * (to / from).powf(f64::from(step) / f64::from(STEPS)))
        };
        let slower = |from: Pace, to: f64| -> Vec<Pace> {
            let of = |access_ns| Pace { access_ns, ..from };
            steps(from.access_ns, to).map(of).collect()
        };
        let fastest = Pace {
            access_ns: FASTEST_NS,
            ..usual
        };
        if total(&fastest) >= ns {
            let of = |of_misses| Pace {
                of_misses,
                ..fastest
            };
            let pace = first(steps(1e-3, 1.0).map(of).collect());
            return [pace; 2];
        }
        let least = first(slower(fastest, SLOWEST_NS));
        if least.access_ns <= BUSY_NS {
            return [least; 2];
        }
        let busy = Pace {
            access_ns: BUSY_NS,
            ..usual
        };
        let fewer = |misses| Pace { misses, ..busy };
        let mut probable = first((1..=usual.misses).rev().map(fewer).collect());
        if probable.misses == 1 {
            probable = first(slower(probable, SLOWEST_NS));
        }
        [probable, least]
    }
}

/// Steps of a fit.
const STEPS: u32 = 1 << 10;
