//! The accesses of a profile's windows, replayed: which caches they miss, and what that costs.
//!
//! [`ReplayedWindows`] serves all that speak of misses or waiting: [`misses`](super::misses) and
//! [`waits`](super::waits), and advice, which replays the same accesses where a change would let
//! them go.
//!
//! Two parts. [`Simulator`] says which levels an access misses. The windows are replayed as if
//! nothing had happened between them: those at random times of a steady program are then as good as
//! one long window. What no window has accessed before may still lie in a cache; how probable that
//! is follows from the number of blocks that the program uses, of which the windows show a part (A.
//! Chao, *Nonparametric Estimation of the Number of Classes in a Population*, 1984). Then a
//! processor of a few rules (`processor.rs`) says how long that takes.

pub(crate) mod processor;
pub(crate) mod trace;

use std::collections::HashMap;

use ccmodel::{
    CacheGeometry, CacheLevel, Frames, Hierarchy, LevelKind, Machine, PageSize, Simulator, Step,
};

use crate::profile::Profile;
use processor::{AHEAD, CpuModel};
use trace::{Trace, index_32};

/// The part of a miss's latency that a line's transfer takes. Where accesses go on from line to
/// line, as prefetchers foresee, that is all that is waited for.
const FORESEEN: f64 = 0.04;
/// Lines that a foreseen access may be away from the last one: elements that are larger than a line
/// have lines between them that nobody accesses.
const STRIDE: u64 = 4;
/// The most that a miss near another one saves. Calibration measures them one behind the other, as
/// prefetchers like it; in structures there are other accesses between them.
const MAX_NEIGHBOURS: f64 = 0.5;

/// Blocks that a window's history remembers without a look into its table.
const LATEST: usize = 1024;

/// Bits of the size of a page.
const PAGE_BITS: u32 = 12;

/// The windows of a profile, replayed as they are.
#[derive(Debug)]
pub struct ReplayedWindows {
    pub(crate) trace: Trace,
    pub(crate) replay: Replay,
    pub(crate) baseline: Replayed,
    /// How fast programs go of which nothing more is known.
    pub(crate) cpu: CpuModel,
    /// What the whole run takes on that model.
    pub(crate) run_ns: f64,
    /// By site, [`trace::NONE`] outside the heap: the part of the time that is waited for.
    pub(crate) waits: HashMap<u32, f64>,
}

impl ReplayedWindows {
    /// Replays the windows on a machine. `None` without windows, or if its caches are not known.
    ///
    /// O(accesses in the windows), of which at most 2^21 are replayed, in whole windows.
    #[must_use]
    pub fn new(profile: &Profile, machine: &Machine) -> Option<ReplayedWindows> {
        let trace = Trace::new(profile);
        let replay = Replay::new(machine)?;
        if trace.steps.is_empty() {
            return None;
        }
        let baseline = replay.run(&trace, &mut unchanged);
        let cpu = CpuModel::usual(&replay);
        let window_ns: f64 = baseline.window_ns(&trace, cpu, PROBABLE).iter().sum();
        Some(ReplayedWindows {
            waits: baseline.waits(&trace, cpu, PROBABLE),
            run_ns: window_ns * trace.scale,
            trace,
            replay,
            baseline,
            cpu,
        })
    }
}

/// What a processor has to do for an access, besides its misses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    /// What the program does for each of its accesses.
    Usual,
    /// Other code: so many nanoseconds, and the room of so many accesses.
    Own { ns: f32, accesses: u8 },
    /// There is no access any more. What is more than `SEARCH_NS` is other work, and stays.
    Rest,
}

/// Where an access goes, as a change would place it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlacedAccess {
    pub(crate) address: u64,
    pub(crate) size: u8,
    /// Waits for what is before it: the last place of another step, or of its own step all since
    /// the last that waited. The link that led here is new.
    pub(crate) after: bool,
    pub(crate) work: Work,
}

impl PlacedAccess {
    /// The access as it is.
    pub(crate) fn unchanged(step: &trace::Step) -> PlacedAccess {
        PlacedAccess {
            address: step.address,
            size: step.size,
            after: false,
            work: Work::Usual,
        }
    }

    /// No access, in the place of one.
    pub(crate) fn nowhere() -> PlacedAccess {
        PlacedAccess {
            address: 0,
            size: 0,
            after: false,
            work: Work::Rest,
        }
    }

    /// The same at another address.
    pub(crate) fn at(address: u64, step: &trace::Step) -> PlacedAccess {
        PlacedAccess {
            address,
            ..PlacedAccess::unchanged(step)
        }
    }
}

/// How a change rewrites the accesses: gives for a step, by its index, the places that it goes to.
/// None if it would not happen any more.
pub(crate) trait Rewrite {
    fn places(&mut self, index: usize, step: &trace::Step, into: &mut Vec<PlacedAccess>);
}

impl<F: FnMut(usize, &trace::Step, &mut Vec<PlacedAccess>)> Rewrite for F {
    fn places(&mut self, index: usize, step: &trace::Step, into: &mut Vec<PlacedAccess>) {
        self(index, step, into);
    }
}

/// Nothing is changed.
pub(crate) fn unchanged(_: usize, step: &trace::Step, into: &mut Vec<PlacedAccess>) {
    into.push(PlacedAccess::unchanged(step));
}

/// What one access waits for, in nanoseconds, if what is not known hits, hits as often as is
/// probable, and misses.
type Latency = [f32; 3];
/// See [`Latency`].
pub(crate) const PROBABLE: usize = 1;
/// See [`Latency`].
pub(crate) const LEAST: usize = 0;

/// When a line or page was accessed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Before {
    /// In no window: whether a cache holds it is not known.
    Never,
    /// In an earlier window, which may be long ago.
    Earlier,
    InWindow,
}

/// An access to a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessed {
    /// Index of its step.
    pub(crate) step: u32,
    /// See [`PlacedAccess`].
    after: bool,
    work: Work,
    pub(crate) line: u64,
    /// Levels, as bits.
    pub(crate) missed: u16,
    /// Its line, and its page.
    pub(crate) before: [Before; 2],
    latency: Latency,
    /// The line is on its way before it is asked for. What it costs is its transfer, which holds up
    /// all others.
    is_foreseen: bool,
}

/// The accesses of a trace with a change, or without.
#[derive(Debug)]
pub(crate) struct Replayed {
    accesses: Vec<Accessed>,
    /// Indices of the first access after each window.
    ends: Vec<usize>,
    /// In the windows, by level, as in [`Latency`].
    pub(crate) misses: Vec<[f64; 3]>,
    /// By level: how probable it is that it does not hold what no window has accessed.
    pub(crate) absent: Vec<f64>,
    /// Nanoseconds of a turn that the processor did not foresee.
    misprediction_ns: f64,
    /// See [`Replay`].
    in_flight: usize,
}

/// Simulates a machine.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) hierarchy: Hierarchy,
    /// Name of the machine.
    pub(crate) machine: String,
    /// Bits of the size of a line, which is a block of the first cache.
    pub(crate) line_bits: u32,
    /// What a miss of each cache, then of each translation buffer, costs in nanoseconds: the steps
    /// of the machine's latency.
    steps: Vec<Vec<Step>>,
    /// How many misses the machine can have under way at a time.
    in_flight: usize,
    /// Nanoseconds that a mispredicted branch costs.
    misprediction_ns: f64,
    /// Bits of a block's size, and the part of a far miss that is paid once in a block.
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
            machine: machine.name.clone(),
            line_bits: nominal.caches()[0].geometry.block_bytes().trailing_zeros(),
            steps: steps(machine),
            in_flight: in_flight(machine.overlap.misses),
            misprediction_ns: machine.search.misprediction_ns,
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
            .zip(&self.steps)
            .map(|(absent, steps)| absent * total(steps))
            .sum()
    }

    /// O(accesses).
    pub(crate) fn run(&self, trace: &Trace, rewrite: &mut dyn Rewrite) -> Replayed {
        let mut simulator = Simulator::new(&self.hierarchy, Frames::Identity);
        let mut seen = [AccessHistory::default(), AccessHistory::default()];
        let mut streams = Streams::default();
        let mut accesses: Vec<Accessed> = Vec::new();
        let mut ends = Vec::with_capacity(trace.ends.len());
        let mut places = Vec::new();
        for window in trace.windows() {
            seen.iter_mut().for_each(AccessHistory::next_window);
            for index in window {
                let step = &trace.steps[index];
                places.clear();
                rewrite.places(index, step, &mut places);
                for place in &places {
                    let mut accessed = Accessed {
                        step: index_32(index),
                        after: place.after,
                        work: place.work,
                        line: u64::MAX,
                        missed: 0,
                        before: [Before::InWindow; 2],
                        latency: [0.0; 3],
                        is_foreseen: false,
                    };
                    if place.work == Work::Rest || place.size == 0 {
                        accesses.push(accessed);
                        continue;
                    }
                    let last = place.address.saturating_add(u64::from(place.size) - 1);
                    for line in place.address >> self.line_bits..=last >> self.line_bits {
                        let address = line << self.line_bits;
                        accessed.line = line;
                        accessed.before = {
                            let [lines, pages] = &mut seen;
                            [lines.see(line), pages.see(address >> PAGE_BITS)]
                        };
                        accessed.missed = self.missed(&mut simulator, address);
                        let (part, is_foreseen) = match accessed.missed {
                            0 => (0.0, false),
                            _ => streams.part(line, self.line_bits, &self.neighbours),
                        };
                        // See `cost`.
                        accessed.latency = [part; 3];
                        accessed.is_foreseen = is_foreseen;
                        accesses.push(accessed);
                        // The rest of an access is no more work.
                        accessed.after = false;
                        accessed.work = Work::Own {
                            ns: 0.0,
                            accesses: 0,
                        };
                    }
                }
            }
            ends.push(accesses.len());
        }
        let blocks = seen.each_ref().map(AccessHistory::estimate);
        self.cost(accesses, ends, blocks, trace.is_whole)
    }

    /// The levels that an access of a line misses, as bits.
    fn missed(&self, simulator: &mut Simulator, address: u64) -> u16 {
        let before = [simulator.cache_misses(), simulator.tlb_misses()];
        if !simulator.access(address, 1) {
            return 0;
        }
        let after = [simulator.cache_misses(), simulator.tlb_misses()];
        let cache_levels = self.hierarchy.caches().len();
        let is_missed = |level: &usize| {
            let tlb = usize::from(*level >= cache_levels);
            let at = level - tlb * cache_levels;
            before[tlb][at] != after[tlb][at]
        };
        let levels = (0..self.levels.len()).filter(is_missed);
        levels.fold(0, |missed, level| missed | 1 << level)
    }

    /// How probable it is that a level does not hold one of so many blocks.
    fn absent(&self, level: usize, blocks: f64) -> f64 {
        let mut levels = self.hierarchy.caches().iter().chain(self.hierarchy.tlbs());
        let held = levels.nth(level).map_or(0.0, |it| it.blocks() as f64);
        (1.0 - held / blocks).max(0.0)
    }

    /// From misses to nanoseconds: the latencies of `accesses` are the parts that are waited for of
    /// what their misses cost. `blocks`: lines and pages that the program uses. `is_whole`: see
    /// [`Trace`].
    fn cost(
        &self,
        mut accesses: Vec<Accessed>,
        ends: Vec<usize>,
        blocks: [f64; 2],
        is_whole: bool,
    ) -> Replayed {
        let cache_levels = self.hierarchy.caches().len();
        let absent: Vec<f64> = (0..self.levels.len())
            .map(|level| match is_whole {
                true => 1.0,
                false => self.absent(level, blocks[usize::from(level >= cache_levels)]),
            })
            .collect();
        let costs: Vec<f64> = self.steps.iter().map(|it| total(it)).collect();
        let mut misses = vec![[0.0; 3]; self.levels.len()];
        for it in &mut accesses {
            let mut latency = [0.0f64; 3];
            for level in (0..self.levels.len()).filter(|level| it.missed >> level & 1 == 1) {
                let chances = match it.before[usize::from(level >= cache_levels)] {
                    Before::Never => [0.0, absent[level], 1.0],
                    _ => [1.0; 3],
                };
                // Translations are not fetched ahead, but the walks of neighbours are short.
                let cost = costs.get(level).copied().unwrap_or(0.0);
                for (which, chance) in chances.into_iter().enumerate() {
                    latency[which] += chance * cost * f64::from(it.latency[which]);
                    misses[level][which] += chance;
                }
            }
            it.latency = latency.map(narrow);
        }
        Replayed {
            accesses,
            ends,
            misses,
            absent,
            misprediction_ns: self.misprediction_ns,
            in_flight: self.in_flight,
        }
    }
}

impl Replayed {
    /// The accesses of each window.
    pub(crate) fn windows(&self) -> impl Iterator<Item = &[Accessed]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.accesses[start..end])
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is clamped"
)]
fn in_flight(number: f64) -> usize {
    number.clamp(1.0, AHEAD as f64) as usize
}

/// A latency has few digits.
#[expect(clippy::cast_possible_truncation, reason = "latencies are rounded")]
pub(crate) fn narrow(number: f64) -> f32 {
    number as f32
}

/// What a miss costs.
fn total(steps: &[Step]) -> f64 {
    steps.iter().map(|it| it.step_ns).sum()
}

/// The steps of each level: caches first, then translation buffers.
fn steps(machine: &Machine) -> Vec<Vec<Step>> {
    let Some(hierarchy) = &machine.hierarchy else {
        return Vec::new();
    };
    let of_cache = |cache: &CacheLevel| {
        let named = machine.levels.iter().find(|level| level.name == cache.name);
        named.map_or(Vec::new(), |level| level.steps.clone())
    };
    // A calibrated machine has more steps than buffers: each is of the buffer whose reach is next.
    let pages = LevelKind::Pages(PageSize::Small4K);
    let levels = machine.levels.iter().filter(|level| level.kind == pages);
    let mut of_tlbs = vec![Vec::new(); hierarchy.tlbs().len()];
    for step in levels.flat_map(|level| &level.steps) {
        let far = |tlb: &CacheLevel| (step.capacity_bytes / tlb.bytes() as f64).ln().abs();
        let tlbs = (0..).zip(hierarchy.tlbs());
        let nearest = tlbs.min_by(|a, b| far(a.1).total_cmp(&far(b.1)));
        if let Some(of_tlb) = nearest.and_then(|(at, _): (usize, _)| of_tlbs.get_mut(at)) {
            of_tlb.push(*step);
        }
    }
    let caches = hierarchy.caches().iter().map(of_cache);
    caches.chain(of_tlbs).collect()
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
struct AccessHistory {
    window: u32,
    /// By block: the last window, and in how many of them it was, up to 3.
    blocks: HashMap<u64, (u32, u8)>,
    /// By the low bits, the block of the window that was accessed last: most are not looked up.
    latest: Vec<u64>,
}

impl Default for AccessHistory {
    fn default() -> AccessHistory {
        AccessHistory {
            window: 0,
            blocks: HashMap::new(),
            latest: vec![u64::MAX; LATEST],
        }
    }
}

impl AccessHistory {
    fn next_window(&mut self) {
        self.window += 1;
        self.latest.fill(u64::MAX);
    }

    /// Takes in an access of a block, of which there is none of number `u64::MAX`. When was the one
    /// before?
    fn see(&mut self, block: u64) -> Before {
        let at = usize::try_from(block).unwrap_or(0) % LATEST;
        if std::mem::replace(&mut self.latest[at], block) == block {
            return Before::InWindow;
        }
        let entry = self.blocks.entry(block).or_insert((0, 0));
        let before = match entry.0 {
            0 => Before::Never,
            last if last == self.window => return Before::InWindow,
            _ => Before::Earlier,
        };
        *entry = (self.window, (entry.1 + 1).min(3));
        before
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
    /// The part of a miss's latency that is waited for, by what missed just before, and whether the
    /// miss was foreseen.
    fn part(&mut self, line: u64, line_bits: u32, neighbours: &[(u32, f64)]) -> (f32, bool) {
        let is_foreseen = self.goes_on(line);
        let mut part = 1.0;
        if is_foreseen {
            part = FORESEEN;
        } else {
            for &(bits, share) in neighbours {
                let shift = bits.saturating_sub(line_bits);
                let block = line >> shift;
                if self.recent.iter().any(|recent| recent >> shift == block) {
                    part -= share;
                }
            }
        }
        self.recent[self.at % 32] = line;
        self.at += 1;
        (narrow(part), is_foreseen)
    }

    /// Whether the last two misses near this line lie before it, in the order of time.
    fn goes_on(&self, line: u64) -> bool {
        let newest = (1..=32).map(|back| self.recent[self.at.wrapping_sub(back) % 32]);
        let mut near = newest.filter(|&it| it != line && it.abs_diff(line) <= 2 * STRIDE);
        let (Some(last), Some(before)) = (near.next(), near.next()) else {
            return false;
        };
        let is_near = line.abs_diff(last) <= STRIDE && last.abs_diff(before) <= STRIDE;
        is_near && (before < last) == (last < line) && before != last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the misses of these lines are foreseen.
    fn foreseen(lines: impl IntoIterator<Item = u64>) -> usize {
        let mut streams = Streams::default();
        let is_foreseen = |line: &u64| streams.part(*line, 6, &[]).1;
        lines.into_iter().filter(is_foreseen).count()
    }

    #[test]
    fn what_goes_on_is_foreseen() {
        assert_eq!(foreseen(1000..1100), 98);
        assert_eq!(foreseen((1000..1100).rev()), 98);
        // Elements of 120 bytes, of which one line each is accessed.
        assert_eq!(foreseen((0..100).map(|it| 1000 + it * 120 / 64)), 98);
        // Two arrays at a time.
        assert_eq!(
            foreseen((0..100).flat_map(|it| [it + 1000, it + 9000])),
            196
        );
    }

    #[test]
    fn scattered_lines_are_not_foreseen() {
        assert_eq!(foreseen((0..100).map(|it| it * 7919 % 4096 * 16)), 0);
        assert_eq!(foreseen((0..100).map(|it| 1000 + it * 5)), 0);
        assert_eq!(foreseen([8, 9, 8, 9, 8, 9]), 0, "to and fro");
    }
}
