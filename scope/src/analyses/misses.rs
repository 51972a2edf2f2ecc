//! Simulated cache misses by site and field, from the windows of a profile.
//!
//! [`ReplayedWindows`] are replayed one after another. What a cache held before a window began is
//! not known, so misses are of two kinds:
//!
//! * **certain**: the block was accessed before in this window, or so many other blocks of its set
//!   were that the set cannot hold it any more;
//! * **unknown**: any other first access to a block in a window.
//!
//! The interval of an estimate goes from all unknown ones hit to all missed, and is widened by the
//! sampling error between windows (95 %, ratio estimator with Student's factors). Within it lies
//! the estimate of the replay, which is that of advice, too: a block of an earlier window is where
//! the replay has it since, and one of no earlier window is held with the probability that the
//! [replay](super::replay) gives. All is scaled by accesses, of the site or of all, over those in
//! windows. The process's first window begins with caches that are empty indeed, so nothing is
//! unknown there; if it holds all accesses, there is no sampling error either.
//!
//! The bounds are strict for a first level with LRU replacement, for which the contents of a set
//! are its last accesses. Below it, and with other policies, they are those of LRU. Addresses are
//! taken as physical ones, threads as having caches of their own.
//!
//! A cache of twice the process's memory keeps whatever it has held, so that a block misses at most
//! once in the run: there, a site has at most as many misses as blocks that it touches.

use std::collections::{HashMap, HashSet};

use ccmodel::{CacheLevel, Hierarchy, Inclusion};
use serde::Serialize;

use crate::analyses::replay::trace::{NONE, Step};
use crate::analyses::replay::{Accessed, Before, ReplayedWindows};
use crate::analyses::types::field_at;
use crate::analyses::units::sum;
use crate::profile::{Profile, Site, Type};

/// A number that lies between two others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// It is probably no less.
    pub low: f64,
    /// The most probable value.
    pub estimate: f64,
    /// It is probably no more.
    pub high: f64,
}

impl Interval {
    /// The same, as no more than `limit` are possible.
    fn at_most(self, limit: f64) -> Interval {
        let high = self.high.min(limit.max(self.low));
        Interval {
            estimate: self.estimate.min((self.low + high) / 2.0),
            high,
            ..self
        }
    }

    fn map(self, change: impl Fn(f64) -> f64) -> Interval {
        Interval {
            low: change(self.low),
            estimate: change(self.estimate),
            high: change(self.high),
        }
    }
}

/// Misses of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Misses {
    /// Name of the machine.
    pub machine: String,
    /// Names of its caches and then of its translation buffers, in which order other lists are.
    pub levels: Vec<String>,
    /// Windows behind the numbers.
    pub windows: usize,
    /// Accesses to the heap in the windows.
    pub recorded: u64,
    /// Accesses to the heap in the run.
    pub accesses: u64,
    /// Whether the windows are the whole run.
    pub is_complete: bool,
    /// Accesses of the heap and their misses, by level.
    pub total: Vec<Interval>,
    /// Sites in the windows, those that wait longest first.
    pub sites: Vec<SiteMisses>,
    /// Pointers that were followed in the windows, by site, offset and target.
    pub edges: Vec<EdgeMisses>,
}

/// Misses of a site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteMisses {
    /// Index of the site.
    pub site: usize,
    /// Its accesses in the windows.
    pub recorded: u64,
    /// In the whole run, by level.
    pub misses: Vec<Interval>,
    /// By level, for a thousand accesses of the site.
    pub per_1000: Vec<Interval>,
    /// Its part of all misses, by level, from 0 to 1.
    pub share: Vec<f64>,
    /// How long the program waits for them, in nanoseconds: misses that the processor has under way
    /// together are waited for together.
    pub wait_ns: f64,
    /// That as a part of the run's time, from 0 to 1.
    pub wait_share: f64,
    /// By offset in the element, ascending; empty for chunks of no known structure.
    pub fields: Vec<FieldMisses>,
}

/// Misses of the accesses that begin at an offset, as counted in the windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FieldMisses {
    /// From the start of the element.
    pub offset: u64,
    /// Name of the field, where there is one.
    pub field: Option<String>,
    /// Accesses.
    pub recorded: u64,
    /// Certain misses, by level.
    pub certain: Vec<u64>,
    /// Certain and unknown ones.
    pub possible: Vec<u64>,
}

/// Touched bytes of larger chunks are counted in blocks.
const MAX_MAPPED: u64 = 1024;
/// Misses of the first accesses through a pointer, as counted in the windows: what it costs to go
/// along an [`Edge`](crate::profile::Edge).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EdgeMisses {
    /// As in [`Edge`](crate::profile::Edge).
    pub from: u32,
    /// See `from`.
    pub offset: u32,
    /// See `from`.
    pub to: u32,
    /// Loads after which the chunk was accessed.
    pub followed: u64,
    /// Certain misses, by level.
    pub certain: Vec<u64>,
    /// Certain and unknown ones.
    pub possible: Vec<u64>,
}

/// Elements without a known type have fields if they are not larger.
const MAX_FIELD_OFFSET: u64 = 1024;

/// Sums what the windows missed. `None` if nothing in them is of the heap.
///
/// O(accesses in the windows).
#[must_use]
pub fn misses(profile: &Profile, windows: &ReplayedWindows) -> Option<Misses> {
    let hierarchy = &windows.replay.hierarchy;
    let sums = Sums::new(profile, windows);
    let recorded = sums.total.recorded;
    if recorded == 0 {
        return None;
    }
    let accesses = profile
        .total
        .heap_reads
        .saturating_add(profile.total.heap_writes)
        .max(recorded);
    let is_complete = profile.windows.len() == 1 && recorded >= accesses;
    let resident = profile.resident.iter().map(|sample| sample.bytes).max();
    let memory = resident.map(|bytes| bytes.max(profile.total.peak_usable).saturating_mul(2));
    let limit = |intervals: &mut [Interval], blocks_of: &dyn Fn(u64) -> u64| {
        for (misses, cache) in intervals.iter_mut().zip(hierarchy.caches()) {
            let geometry = cache.geometry;
            if memory.is_some_and(|memory| geometry.blocks() * geometry.block_bytes() >= memory) {
                *misses = misses.at_most(blocks_of(geometry.block_bytes()) as f64);
            }
        }
    };
    let blocks = |site: &Site, block: u64| {
        // Of small chunks, single bytes are counted, which may lie in any block.
        let bytes = match site.smallest > MAX_MAPPED {
            true => site.touched_bytes,
            false => site.requested,
        };
        // A chunk begins and ends within a block.
        let ends = site.allocations.saturating_mul(2);
        (bytes / block).saturating_add(ends).min(site.touched_bytes)
    };
    let scale = Scale {
        accesses,
        is_complete,
    };
    let mut total: Vec<Interval> = scale.intervals(&sums.total);
    limit(&mut total, &|block| {
        sum(profile.sites.iter().map(|site| blocks(site, block)))
    });
    let mut fields = fields(profile, sums.fields);
    let mut sites: Vec<SiteMisses> = Vec::new();
    for (id, sampled) in &sums.sites {
        let index = usize::try_from(*id).ok()?;
        let site = &profile.sites[index];
        let accesses = match is_complete {
            true => sampled.recorded,
            false => site.reads.saturating_add(site.writes).max(sampled.recorded),
        };
        let scale = Scale {
            accesses,
            is_complete,
        };
        let mut misses = scale.intervals(sampled);
        limit(&mut misses, &|block| blocks(site, block));
        let per_access = |misses: &Interval| misses.map(|it| it * 1000.0 / accesses as f64);
        let part =
            |(own, total): (&Interval, &Interval)| share(own.estimate, total.estimate).min(1.0);
        let wait_share = windows.waits.get(id).copied().unwrap_or(0.0);
        sites.push(SiteMisses {
            site: index,
            recorded: sampled.recorded,
            per_1000: misses.iter().map(per_access).collect(),
            share: misses.iter().zip(&total).map(part).collect(),
            wait_ns: wait_share * windows.run_ns,
            wait_share,
            fields: fields.remove(id).unwrap_or_default(),
            misses,
        });
    }
    sites.sort_by(|a, b| b.wait_ns.total_cmp(&a.wait_ns).then(a.site.cmp(&b.site)));
    let mut edges: Vec<EdgeMisses> = sums.edges.into_values().collect();
    edges.sort_unstable_by_key(|edge| (edge.from, edge.offset, edge.to));
    Some(Misses {
        machine: windows.replay.machine.clone(),
        levels: windows.replay.levels.clone(),
        windows: windows.trace.ends.len(),
        recorded,
        accesses,
        is_complete,
        total,
        sites,
        edges,
    })
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// What is known of a cache in a window.
struct Level {
    block_shift: u32,
    sets: u64,
    /// So many blocks of a set make it forget all others.
    room: u64,
    /// Blocks that were accessed.
    seen: HashSet<u64>,
    /// Those of them that the level was certainly asked for, and their number by set.
    asked: HashSet<u64>,
    in_set: HashMap<u64, u64>,
}

impl Level {
    fn new(level: &CacheLevel) -> Level {
        Level {
            block_shift: level.geometry.block_bytes().trailing_zeros(),
            sets: level.geometry.sets().max(1),
            room: level.geometry.associativity(),
            seen: HashSet::new(),
            asked: HashSet::new(),
            in_set: HashMap::new(),
        }
    }

    fn clear(&mut self) {
        self.seen.clear();
        self.asked.clear();
        self.in_set.clear();
    }

    /// Takes in that the level is asked for an address. Whether it would miss for certain what the
    /// replay missed.
    fn ask(&mut self, address: u64, is_certain: bool) -> bool {
        let block = address >> self.block_shift;
        let in_set = self.in_set.entry(block % self.sets).or_default();
        let is_known = !self.seen.insert(block) || *in_set >= self.room;
        if is_certain && self.asked.insert(block) {
            *in_set += 1;
        }
        is_certain && is_known
    }
}

/// The caches. What a victim cache was asked for may lie in the one above.
fn levels_of(hierarchy: &Hierarchy) -> Vec<Level> {
    let mut levels: Vec<Level> = hierarchy.caches().iter().map(Level::new).collect();
    if let (Inclusion::VictimLast, [.., above, last]) = (hierarchy.inclusion(), &mut levels[..]) {
        last.room += above.room * (above.sets / last.sets).max(1);
    }
    levels
}

/// What is known of all levels in a window.
struct Known {
    caches: Vec<Level>,
    tlbs: Vec<Level>,
    line_bits: u32,
    /// The caches held nothing of the program when the window began.
    begins_empty: bool,
}

impl Known {
    fn new(windows: &ReplayedWindows) -> Known {
        let hierarchy = &windows.replay.hierarchy;
        Known {
            caches: levels_of(hierarchy),
            tlbs: hierarchy.tlbs().iter().map(Level::new).collect(),
            line_bits: windows.replay.line_bits,
            begins_empty: windows.trace.begins_empty,
        }
    }

    fn next_window(&mut self) {
        self.begins_empty = false;
        let levels = self.caches.iter_mut().chain(&mut self.tlbs);
        levels.for_each(Level::clear);
    }

    /// Takes in an access, and adds its misses to those by level.
    fn add(&mut self, it: &Accessed, windows: &ReplayedWindows, misses: &mut [Missed]) {
        let address = it.line << self.line_bits;
        let levels = self.caches.len();
        let kinds = [(0, &mut self.caches), (levels, &mut self.tlbs)];
        for ((first, kind), before) in kinds.into_iter().zip(it.before) {
            let mut is_certain = true;
            let mut is_asked = true;
            for (at, level) in (first..).zip(kind) {
                let has_missed = it.missed >> at & 1 == 1;
                if is_asked {
                    is_certain = level.ask(address, is_certain);
                    is_asked = has_missed;
                }
                let misses = &mut misses[at];
                if has_missed {
                    misses.certain += u64::from(is_certain || self.begins_empty);
                    misses.probable += match before {
                        Before::Never if !self.begins_empty => windows.baseline.absent[at],
                        _ => 1.0,
                    };
                }
                // Whatever held the block may have lost it since the window before.
                let is_unknown = before != Before::InWindow && !self.begins_empty;
                misses.possible += u64::from(has_missed || is_unknown);
            }
        }
    }
}

/// Misses of some accesses at a level.
#[derive(Clone, Copy, Debug, Default)]
struct Missed {
    certain: u64,
    probable: f64,
    possible: u64,
}

impl Missed {
    fn add(&mut self, other: &Missed) {
        self.certain += other.certain;
        self.probable += other.probable;
        self.possible += other.possible;
    }
}

/// Misses of one level: their sum over windows, and the moments of the certain and of the possible
/// ones.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    misses: Missed,
    certain: Moments,
    possible: Moments,
}

/// The sum of squares of the misses of windows, and of products with the accesses of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    squares: f64,
    products: f64,
}

impl Moments {
    fn add(&mut self, misses: u64, accesses: u64) {
        self.squares += (misses as f64).powi(2);
        self.products += misses as f64 * accesses as f64;
    }
}

impl Sum {
    /// Takes in a window of so many accesses.
    fn add(&mut self, misses: &Missed, accesses: u64) {
        self.misses.add(misses);
        self.certain.add(misses.certain, accesses);
        self.possible.add(misses.possible, accesses);
    }
}

/// What the windows show of a site, or of all.
#[derive(Clone, Debug)]
struct Sampled {
    levels: Vec<Sum>,
    /// Windows in which it occurs, and its accesses in them: their sum and that of their
    /// squares.
    windows: usize,
    recorded: u64,
    squares: f64,
}

impl Sampled {
    fn new(levels: usize) -> Sampled {
        Sampled {
            levels: vec![Sum::default(); levels],
            windows: 0,
            recorded: 0,
            squares: 0.0,
        }
    }

    /// Takes in a window: misses by level, of so many accesses.
    fn add(&mut self, misses: &[Missed], accesses: u64) {
        for (sum, misses) in self.levels.iter_mut().zip(misses) {
            sum.add(misses, accesses);
        }
        self.windows += 1;
        self.recorded += accesses;
        self.squares += (accesses as f64).powi(2);
    }
}

struct Sums {
    total: Sampled,
    sites: HashMap<u32, Sampled>,
    fields: HashMap<(u32, u64), FieldMisses>,
    edges: HashMap<(u32, u32, u32), EdgeMisses>,
}

impl Sums {
    fn new(profile: &Profile, windows: &ReplayedWindows) -> Sums {
        let levels = windows.replay.levels.len();
        let mut sums = Sums {
            total: Sampled::new(levels),
            sites: HashMap::new(),
            fields: HashMap::new(),
            edges: HashMap::new(),
        };
        let mut known = Known::new(windows);
        // The newest access to each object.
        let mut newest: HashMap<u32, u32> = HashMap::new();
        for window in windows.baseline.windows() {
            let mut of_sites: HashMap<u32, (Vec<Missed>, u64)> = HashMap::new();
            // An access of two lines is two of these.
            for lines in window.chunk_by(|a, b| a.step == b.step) {
                let mut missed = vec![Missed::default(); levels];
                for it in lines {
                    known.add(it, windows, &mut missed);
                }
                let step = &windows.trace.steps[lines[0].step as usize];
                let site = windows.trace.site(step);
                if site as usize >= profile.sites.len() {
                    continue;
                }
                let before = newest.insert(step.object, lines[0].step);
                if step.via != NONE && before.is_none_or(|before| before < step.via) {
                    sums.follow(windows, step, &missed);
                }
                let no_misses = || (vec![Missed::default(); levels], 0);
                let (sum, accesses) = of_sites.entry(site).or_insert_with(no_misses);
                *accesses += 1;
                sum.iter_mut()
                    .zip(&missed)
                    .for_each(|(all, own)| all.add(own));
                if let Some(offset) = field_offset(profile, site, step) {
                    let field = sums.fields.entry((site, offset)).or_default();
                    field.recorded += 1;
                    count(&missed, &mut field.certain, &mut field.possible);
                }
            }
            sums.window(of_sites);
            known.next_window();
        }
        sums
    }

    /// Takes in a window.
    fn window(&mut self, of_sites: HashMap<u32, (Vec<Missed>, u64)>) {
        let levels = self.total.levels.len();
        let mut total = vec![Missed::default(); levels];
        let mut all_accesses = 0;
        for (site, (misses, accesses)) in of_sites {
            let sampled = self.sites.entry(site);
            let sampled = sampled.or_insert_with(|| Sampled::new(levels));
            sampled.add(&misses, accesses);
            all_accesses += accesses;
            total
                .iter_mut()
                .zip(&misses)
                .for_each(|(all, own)| all.add(own));
        }
        self.total.add(&total, all_accesses);
    }

    /// Counts misses of the first access through a load, which led to its object.
    fn follow(&mut self, windows: &ReplayedWindows, step: &Step, missed: &[Missed]) {
        let load = &windows.trace.steps[step.via as usize];
        let [from, to] = [load, step].map(|it| windows.trace.site(it));
        // A pointer on the stack is no edge.
        if from == NONE {
            return;
        }
        let edge = self.edges.entry((from, load.offset, to)).or_default();
        (edge.from, edge.offset, edge.to) = (from, load.offset, to);
        edge.followed += 1;
        count(missed, &mut edge.certain, &mut edge.possible);
    }
}

/// Adds misses to counts by level.
fn count(missed: &[Missed], certain: &mut Vec<u64>, possible: &mut Vec<u64>) {
    certain.resize(missed.len(), 0);
    possible.resize(missed.len(), 0);
    for (at, missed) in missed.iter().enumerate() {
        certain[at] += missed.certain;
        possible[at] += missed.possible;
    }
}

/// By site, ascending in offset.
fn fields(
    profile: &Profile,
    of_sites: HashMap<(u32, u64), FieldMisses>,
) -> HashMap<u32, Vec<FieldMisses>> {
    let mut fields: HashMap<u32, Vec<FieldMisses>> = HashMap::new();
    for ((site, offset), field) in of_sites {
        let found = type_of(profile, site).and_then(|it| field_at(it, offset));
        fields.entry(site).or_default().push(FieldMisses {
            offset,
            field: found.map(|field| field.name.clone()),
            ..field
        });
    }
    for fields in fields.values_mut() {
        fields.sort_by_key(|field| field.offset);
    }
    fields
}

fn type_of(profile: &Profile, site: u32) -> Option<&Type> {
    let site = profile.sites.get(usize::try_from(site).ok()?)?;
    profile.types.get(usize::try_from(site.type_id?).ok()?)
}

/// Where an access begins in its element: a vector has many in a chunk.
fn field_offset(profile: &Profile, id: u32, step: &Step) -> Option<u64> {
    let site = profile.sites.get(usize::try_from(id).ok()?)?;
    let size = type_of(profile, id)
        .and_then(|it| it.size)
        .filter(|&size| size > 0);
    let offset = u64::from(step.offset);
    match size {
        Some(size) => Some(offset % size).filter(|&offset| offset < MAX_FIELD_OFFSET),
        None => Some(offset).filter(|_| site.largest <= MAX_FIELD_OFFSET),
    }
}

/// From counts in windows to misses of the run.
struct Scale {
    accesses: u64,
    is_complete: bool,
}

impl Scale {
    fn intervals(&self, sampled: &Sampled) -> Vec<Interval> {
        sampled
            .levels
            .iter()
            .map(|sum| self.interval(sampled, sum))
            .collect()
    }

    fn interval(&self, sampled: &Sampled, sum: &Sum) -> Interval {
        let [certain, possible] = [sum.misses.certain, sum.misses.possible].map(|it| it as f64);
        let factor = match self.is_complete {
            true => 1.0,
            false => self.accesses as f64 / sampled.recorded.max(1) as f64,
        };
        let [below, above] = [(certain, &sum.certain), (possible, &sum.possible)]
            .map(|(misses, moments)| self.sampling_error(sampled, misses, moments));
        // What was seen did happen, and an access misses a level at most once.
        let low = (certain * factor - below).max(certain);
        let high = (possible * factor + above).min((self.accesses as f64).max(possible * factor));
        Interval {
            low,
            estimate: (sum.misses.probable * factor).clamp(low, high.max(low)),
            high,
        }
    }

    /// Half of the 95 % interval of the ratio of misses to accesses, times the accesses of the run:
    /// `t * sqrt((1 - f) * k / (k - 1) * sum of (m - r n)^2) / sum of n`, for `k` windows with `m`
    /// misses in `n` accesses each, which are the part `f` of the run.
    fn sampling_error(&self, sampled: &Sampled, misses: f64, moments: &Moments) -> f64 {
        let recorded = sampled.recorded as f64;
        let unseen = 1.0 - recorded / self.accesses as f64;
        if unseen <= 0.0 || self.is_complete {
            return 0.0;
        }
        if sampled.windows < 2 {
            return f64::INFINITY;
        }
        let windows = sampled.windows as f64;
        let ratio = misses / recorded;
        let residues =
            moments.squares - 2.0 * ratio * moments.products + ratio * ratio * sampled.squares;
        let variance = unseen * windows / (windows - 1.0) * residues.max(0.0);
        student(sampled.windows - 1) * variance.sqrt() / recorded * self.accesses as f64
    }
}

/// The factor of a 95 % interval with `degrees` of freedom; a little too large from 10 on.
pub(crate) fn student(degrees: usize) -> f64 {
    const FIRST: [f64; 9] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
    ];
    let index = degrees.saturating_sub(1);
    FIRST
        .get(index)
        .copied()
        .unwrap_or(1.96 + 2.7 / degrees as f64)
}

#[cfg(test)]
mod tests;
