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
//! turn that it could not foresee, for everything before it. What one access costs besides misses is
//! fitted to the time of the whole run, so that a gain is never one of more time than there is.

use std::collections::HashMap;

use ccmodel::{CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Machine, Simulator};

use super::trace::{NONE, Step, Trace, index_32};
use crate::analyses::misses::{costs, student};

/// Accesses that a processor holds at a time: some four hundred instructions.
const AHEAD: usize = 96;
/// A load from the first cache, for those that wait for it, in nanoseconds.
const HIT_NS: f64 = 1.2;
/// The part of a miss that is waited for where accesses go on from block to block, as prefetchers
/// foresee.
const FORESEEN: f64 = 0.15;
/// Nanoseconds for an access that hits, if the run's time is not known.
pub(crate) const USUAL_NS: f64 = 0.7;
/// Between those of the fastest programs and of those that do other work.
const ACCESS_NS: [f64; 2] = [0.1, 1e4];
/// Bits of the address of a page, and of what is fetched along with a block.
const PAGE_BITS: u32 = 12;

/// Where an access goes, as a change would place it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: u64,
    pub(crate) size: u8,
    /// In a huge page, whose translation no program of this size misses.
    pub(crate) huge: bool,
    /// Waits for the place before it: the link that led here is new.
    pub(crate) after: bool,
}

impl Place {
    /// Where the access goes today.
    pub(crate) fn today(step: &Step) -> Place {
        Place {
            address: step.address,
            size: step.size,
            huge: false,
            after: false,
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

/// The accesses of a trace with a change, or without.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// By access: step and latency.
    accesses: Vec<(u32, bool, Latency)>,
    /// Indices of the first access after each window.
    ends: Vec<usize>,
    /// In the windows, by level: certain ones, probable ones, possible ones.
    pub(crate) misses: Vec<[f64; 3]>,
}

/// Simulates a machine.
pub(crate) struct Replay {
    caches: Hierarchy,
    /// Simulated apart, since what lies in huge pages does not ask it.
    tlbs: Option<Hierarchy>,
    /// Of a miss of each cache and then of each translation buffer, in nanoseconds.
    costs: Vec<f64>,
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
        let caches = Hierarchy::new(caches, nominal.inclusion(), Vec::new())
            .or_else(|_| Hierarchy::new(nominal.caches().to_vec(), nominal.inclusion(), vec![]));
        let caches = caches.ok()?;
        // A simulator has a cache at least: one that never says anything about translations.
        let tlbs = nominal.tlbs().to_vec();
        let page = CacheLevel::lru("page", CacheGeometry::new(1, 64, 1).ok()?);
        let has_tlbs = !tlbs.is_empty();
        let tlbs = Hierarchy::new(vec![page], Inclusion::NonInclusive, tlbs);
        let levels = nominal.caches().iter().chain(nominal.tlbs());
        Some(Replay {
            caches,
            tlbs: tlbs.ok().filter(|_| has_tlbs),
            costs: costs(machine),
            neighbours: machine
                .neighbours
                .iter()
                .map(|it| (it.block_bytes.trailing_zeros(), it.share))
                .collect(),
            levels: levels.map(|level| level.name.clone()).collect(),
        })
    }

    /// O(accesses).
    pub(crate) fn run(&self, trace: &Trace, rewrite: &mut dyn Rewrite) -> Replayed {
        let mut simulator = Simulator::new(&self.caches, Frames::Identity);
        let mut pages = self
            .tlbs
            .as_ref()
            .map(|tlbs| Simulator::new(tlbs, Frames::Identity));
        let cache_levels = self.caches.caches().len();
        let levels = self.levels.len();
        let mut seen = [Seen::default(), Seen::default()];
        let mut streams = Streams::default();
        // By access: levels missed, as bits; whether each kind's block was new; its part of the cost.
        let mut found: Vec<(u32, bool, u16, [bool; 2], f32)> = Vec::new();
        let mut ends = Vec::with_capacity(trace.ends.len());
        let mut places = Vec::new();
        for window in trace.windows() {
            seen.iter_mut().for_each(Seen::next_window);
            for index in window {
                let step = &trace.steps[index];
                places.clear();
                rewrite.places(index, step, &mut places);
                for place in &places {
                    let before = simulator.cache_misses();
                    let mut missed = 0u16;
                    let mut new = [false; 2];
                    let line = place.address >> LINE_BITS;
                    new[0] = seen[0].is_new(line);
                    if simulator.access(place.address, u32::from(place.size)) {
                        let after = simulator.cache_misses();
                        for level in 0..cache_levels {
                            missed |= u16::from(before[level] != after[level]) << level;
                        }
                    }
                    if let Some(pages) = pages.as_mut().filter(|_| !place.huge) {
                        new[1] = seen[1].is_new(place.address >> PAGE_BITS);
                        let before = pages.tlb_misses();
                        pages.access(place.address, 1);
                        let after = pages.tlb_misses();
                        for level in 0..levels - cache_levels {
                            let is_missed = before[level] != after[level];
                            missed |= u16::from(is_missed) << (cache_levels + level);
                        }
                    }
                    let part = match missed {
                        0 => 0.0,
                        _ => streams.part(line, &self.neighbours),
                    };
                    found.push((index_32(index), place.after, missed, new, part));
                }
            }
            ends.push(found.len());
        }
        let blocks = seen.each_ref().map(Seen::estimate);
        self.cost(&found, ends, blocks)
    }

    /// From misses to nanoseconds. `blocks`: lines and pages that the program uses.
    fn cost(
        &self,
        found: &[(u32, bool, u16, [bool; 2], f32)],
        ends: Vec<usize>,
        blocks: [f64; 2],
    ) -> Replayed {
        let cache_levels = self.caches.caches().len();
        let none = [].as_slice();
        let tlbs = self.tlbs.as_ref().map_or(none, |tlbs| tlbs.tlbs());
        let held = { self.caches.caches().iter() }.map(|cache| cache.blocks() as f64 / blocks[0]);
        let held = held.chain(tlbs.iter().map(|tlb| tlb.blocks() as f64 / blocks[1]));
        // How probable it is that a level does not hold what no window has accessed.
        let absent: Vec<f64> = held.map(|held| (1.0 - held).max(0.0)).collect();
        let mut misses = vec![[0.0; 3]; self.levels.len()];
        let access = |&(step, after, missed, new, part): &(u32, bool, u16, [bool; 2], f32)| {
            let mut latency = [0.0f64; 3];
            for level in (0..self.levels.len()).filter(|level| missed >> level & 1 == 1) {
                let is_new = new[usize::from(level >= cache_levels)];
                let chances = match is_new {
                    true => [0.0, absent.get(level).copied().unwrap_or(1.0), 1.0],
                    false => [1.0; 3],
                };
                // Translations are not fetched ahead, but the walks of neighbours are short.
                let cost = self.costs.get(level).copied().unwrap_or(0.0) * f64::from(part);
                for (which, chance) in chances.into_iter().enumerate() {
                    latency[which] += chance * cost;
                    misses[level][which] += chance;
                }
            }
            (step, after, latency.map(narrow))
        };
        Replayed {
            accesses: found.iter().map(access).collect(),
            ends,
            misses,
        }
    }
}

const LINE_BITS: u32 = 6;

/// A latency has few digits.
#[expect(clippy::cast_possible_truncation, reason = "latencies are rounded")]
fn narrow(number: f64) -> f32 {
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
        narrow(part.max(FORESEEN))
    }
}

impl Replayed {
    /// By site: the part of the time of the windows that is waited for.
    pub(crate) fn waits(&self, trace: &Trace, window_ns: f64) -> HashMap<u32, f64> {
        let mut waits = HashMap::new();
        for &(index, _, latency) in &self.accesses {
            if latency[PROBABLE] > 0.0 {
                let site = trace.site(&trace.steps[index as usize]);
                *waits.entry(site).or_default() += f64::from(latency[PROBABLE]) / window_ns;
            }
        }
        waits
    }

    /// Nanoseconds of each window, if an access takes `access_ns` besides misses. `which` is as in
    /// [`Latency`].
    pub(crate) fn window_ns(&self, trace: &Trace, access_ns: f64, which: usize) -> Vec<f64> {
        let mut ready = vec![0.0f64; trace.steps.len()];
        let mut retired = [0.0f64; AHEAD];
        let (mut last_start, mut last_retired, mut before, mut fence) = (0.0f64, 0.0f64, 0.0, 0.0);
        let mut surprised = NONE;
        let mut windows = Vec::with_capacity(self.ends.len());
        let (mut at, mut window_start) = (0, 0.0);
        for &end in &self.ends {
            for (count, &(index, after, latency)) in (at..end).zip(&self.accesses[at..end]) {
                let step = &trace.steps[index as usize];
                let mut start = (last_start + access_ns)
                    .max(retired[count % AHEAD])
                    .max(fence);
                if after {
                    start = start.max(before);
                }
                let mut hit = 0.0;
                if let Some(&pointer) = ready.get(step.via as usize) {
                    start = start.max(pointer);
                    hit = HIT_NS;
                    if step.surprises && surprised != index {
                        surprised = index;
                        start = start.max(last_retired);
                        fence = start;
                    }
                }
                let done = start + hit + f64::from(latency[which]);
                // A write is done when it is under way.
                let done = if step.write { start } else { done };
                before = done;
                ready[index as usize] = done;
                last_start = start;
                last_retired = last_retired.max(done);
                retired[count % AHEAD] = last_retired;
            }
            at = end;
            windows.push(last_retired.max(last_start) - window_start);
            window_start = last_retired.max(last_start);
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
    access_ns: f64,
) -> Comparison {
    let part = |which: usize| {
        let old = before.window_ns(trace, access_ns, which);
        let new = after.window_ns(trace, access_ns, which);
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
    let [sure, probable, possible] = [0, PROBABLE, 2].map(part);
    let lowest = sure[0].min(probable[0]).min(possible[0]);
    let highest = sure[2].max(probable[2]).max(possible[2]);
    Comparison {
        left: [lowest.max(0.0), probable[1], highest],
    }
}

/// What an access costs besides misses, so that the windows take their part of the run's time.
pub(crate) fn fit(trace: &Trace, before: &Replayed, ns: f64) -> f64 {
    let total = |access_ns: f64| {
        let windows = before.window_ns(trace, access_ns, PROBABLE);
        windows.iter().sum::<f64>() * trace.scale
    };
    let [mut low, mut high] = ACCESS_NS;
    if total(low) >= ns {
        return low;
    }
    for _ in 0..FIT_STEPS {
        let middle = (low * high).sqrt();
        match total(middle) < ns {
            true => low = middle,
            false => high = middle,
        }
    }
    (low * high).sqrt()
}

/// Halves the exponent: to a thousandth of it.
const FIT_STEPS: usize = 14;
