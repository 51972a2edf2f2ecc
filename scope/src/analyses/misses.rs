//! Simulated cache misses by site and field, from the windows of a profile.
//!
//! Each window is replayed through `ccmodel`'s [`Simulator`] with empty caches. What a cache held
//! before the window began is not known, so misses are of two kinds:
//!
//! * **certain**: the block was accessed before in this window, or so many other blocks of its set
//!   were that the set cannot hold it any more;
//! * **unknown**: any other first access to a block. It hits if the cache held the block already.
//!
//! The interval of an estimate goes from all unknown ones hit to all missed, and is widened by the
//! sampling error between windows (95 %, ratio estimator with Student's factors). It is scaled by
//! accesses, of the site or of all, over those in windows. The process's first window begins with
//! caches that are empty indeed, so nothing is unknown there; if it holds all accesses, there is no
//! sampling error either.
//!
//! The bounds are strict for a first level with LRU replacement, for which the contents of a set
//! are its last accesses. Below it, and with other policies, they are those of LRU. Addresses are
//! taken as physical ones, threads as having caches of their own.
//!
//! A cache of twice the process's memory keeps whatever it has held, so that a block misses at most
//! once in the run: there, a site has at most as many misses as blocks that it touches.

use std::collections::{HashMap, HashSet};

use ccmodel::{CacheLevel, Frames, Hierarchy, Inclusion, LevelKind, Machine, PageSize, Simulator};
use serde::Serialize;

use crate::analyses::types::field_at;
use crate::analyses::units::sum;
use crate::profile::{Access, NEAR, Profile, Site, Type, Window};

/// A number that lies between two others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// At least so many.
    pub low: f64,
    /// Half of the unknown accesses missed.
    pub estimate: f64,
    /// At most so many.
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
    /// Of all accesses to the heap, by level.
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
    /// What the misses cost on the machine if none overlap, in nanoseconds.
    pub wait_ns: f64,
    /// Its part of all waiting, from 0 to 1.
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

/// Of larger chunks, touched bytes are counted in blocks.
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

/// Replays the windows. `None` without windows, or if the caches of the machine are not known.
#[must_use]
pub fn misses(profile: &Profile, machine: &Machine) -> Option<Misses> {
    let hierarchy = machine.hierarchy.as_ref()?;
    let recorded: u64 = used(&profile.windows).map(heap_accesses).sum();
    if recorded == 0 {
        return None;
    }
    let accesses = profile
        .total
        .heap_reads
        .saturating_add(profile.total.heap_writes)
        .max(recorded);
    let is_complete = profile.windows.len() == 1 && recorded >= accesses;
    let mut replay = Replay {
        simulator: Simulator::new(hierarchy, Frames::Identity),
        caches: levels_of(hierarchy),
        tlbs: hierarchy.tlbs().iter().map(Level::new).collect(),
        begins_empty: false,
    };
    let levels = replay.caches.len() + replay.tlbs.len();
    let mut sums = Sums::new(levels);
    for window in used(&profile.windows) {
        sums.add(profile, window, &mut replay);
    }
    let scale = Scale {
        accesses,
        is_complete,
    };
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
    let mut total: Vec<Interval> = scale.intervals(&sums.total);
    limit(&mut total, &|block| {
        sum(profile.sites.iter().map(|site| blocks(site, block)))
    });
    let costs = costs(machine);
    let mut fields = sums.fields(profile);
    let mut sites: Vec<SiteMisses> = Vec::new();
    for (&id, sampled) in &sums.sites {
        let index = usize::try_from(id).ok()?;
        let site = &profile.sites[index];
        let accesses = match is_complete {
            true => sampled.recorded,
            false => site.reads.saturating_add(site.writes).max(sampled.recorded),
        };
        let mut misses = Scale {
            accesses,
            is_complete,
        }
        .intervals(sampled);
        limit(&mut misses, &|block| blocks(site, block));
        let per_access = |misses: &Interval| misses.map(|it| it * 1000.0 / accesses as f64);
        let part = |(own, total): (&Interval, &Interval)| share(own.estimate, total.estimate);
        let waits = misses
            .iter()
            .zip(&costs)
            .map(|(misses, cost)| misses.estimate * cost);
        sites.push(SiteMisses {
            site: index,
            recorded: sampled.recorded,
            per_1000: misses.iter().map(per_access).collect(),
            share: misses
                .iter()
                .zip(&total)
                .map(part)
                .map(|part| part.min(1.0))
                .collect(),
            wait_ns: waits.sum(),
            wait_share: 0.0,
            fields: fields.remove(&id).unwrap_or_default(),
            misses,
        });
    }
    let wait: f64 = sites.iter().map(|site| site.wait_ns).sum();
    sites
        .iter_mut()
        .for_each(|site| site.wait_share = share(site.wait_ns, wait));
    sites.sort_by(|a, b| b.wait_ns.total_cmp(&a.wait_ns).then(a.site.cmp(&b.site)));
    let names = hierarchy.caches().iter().chain(hierarchy.tlbs());
    Some(Misses {
        machine: machine.name.clone(),
        levels: names.map(|level| level.name.clone()).collect(),
        windows: used(&profile.windows).count(),
        recorded,
        accesses,
        is_complete,
        total,
        sites,
        edges: sums.edges(),
    })
}

/// Windows at random times stand for the run; while they are few, its beginning helps.
const ENOUGH_WINDOWS: usize = 8;

fn used(windows: &[Window]) -> impl Iterator<Item = &Window> {
    let random = windows.iter().filter(|window| !window.from_start).count();
    windows
        .iter()
        .filter(move |window| !window.from_start || random < ENOUGH_WINDOWS)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn is_heap(access: &Access) -> bool {
    access.site != u32::MAX
}

fn heap_accesses(window: &Window) -> u64 {
    window
        .accesses
        .iter()
        .filter(|access| is_heap(access))
        .count() as u64
}

/// What a miss of each level costs: caches first, then translation buffers.
pub(crate) fn costs(machine: &Machine) -> Vec<f64> {
    let Some(hierarchy) = &machine.hierarchy else {
        return Vec::new();
    };
    let of_cache = |cache: &CacheLevel| {
        let named = machine.levels.iter().find(|level| level.name == cache.name);
        named.map_or(0.0, |level| level.step_ns())
    };
    // A calibrated machine has more steps than buffers: each is of the buffer whose reach is next.
    let pages = LevelKind::Pages(PageSize::Small4K);
    let levels = machine.levels.iter().filter(|level| level.kind == pages);
    let mut of_tlbs = vec![0.0; hierarchy.tlbs().len()];
    for step in levels.flat_map(|level| &level.steps) {
        let far = |tlb: &CacheLevel| (step.capacity_bytes / tlb.bytes() as f64).ln().abs();
        let tlbs = (0..).zip(hierarchy.tlbs());
        let nearest = tlbs.min_by(|a, b| far(a.1).total_cmp(&far(b.1)));
        if let Some(cost) = nearest.and_then(|(at, _): (usize, _)| of_tlbs.get_mut(at)) {
            *cost += step.step_ns;
        }
    }
    let caches = hierarchy.caches().iter().map(of_cache);
    caches.chain(of_tlbs).collect()
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
    /// simulator missed.
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

/// The simulator, and what it cannot know.
struct Replay {
    simulator: Simulator,
    caches: Vec<Level>,
    tlbs: Vec<Level>,
    /// The caches held nothing of the program when the window began.
    begins_empty: bool,
}

impl Replay {
    fn begin(&mut self, window: &Window) {
        self.begins_empty = window.from_start;
        self.simulator.flush();
        self.caches
            .iter_mut()
            .chain(&mut self.tlbs)
            .for_each(Level::clear);
    }

    /// Accesses lines as [`Simulator::access`] does, and calls `see` with each level that missed.
    fn access(&mut self, access: &Access, mut see: impl FnMut(usize, bool)) {
        let shift = self.caches[0].block_shift;
        let last = access
            .address
            .saturating_add(u64::from(access.size).saturating_sub(1));
        if access.size == 0 {
            return;
        }
        for line in access.address >> shift..=last >> shift {
            let address = line << shift;
            let before = [self.simulator.cache_misses(), self.simulator.tlb_misses()];
            if !self.simulator.access(address, 1) {
                continue;
            }
            let after = [self.simulator.cache_misses(), self.simulator.tlb_misses()];
            let levels = self.caches.len();
            let kinds = [(0, &mut self.caches), (levels, &mut self.tlbs)];
            for ((first, kind), (before, after)) in kinds.into_iter().zip(before.iter().zip(after))
            {
                let mut is_certain = true;
                for (i, level) in kind.iter_mut().enumerate() {
                    is_certain = level.ask(address, is_certain);
                    if before[i] == after[i] {
                        break;
                    }
                    see(first + i, is_certain || self.begins_empty);
                }
            }
        }
    }
}

/// Misses of one level, certain ones and then all possible ones: their sum over windows, the sum of
/// squares, and of products with the accesses of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Sum([Moments; 2]);

#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    misses: u64,
    squares: f64,
    products: f64,
}

impl Sum {
    /// Takes in a window of so many accesses.
    fn add(&mut self, misses: [u64; 2], accesses: u64) {
        for (moments, misses) in self.0.iter_mut().zip(misses) {
            moments.misses += misses;
            moments.squares += (misses as f64).powi(2);
            moments.products += misses as f64 * accesses as f64;
        }
    }
}

/// What the windows show of a site, or of all.
#[derive(Clone, Debug)]
struct Sampled {
    levels: Vec<Sum>,
    /// Windows in which it occurs, and its accesses in them: their sum and that of their squares.
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

    /// Takes in a window: misses by level, certain and possible, of so many accesses.
    fn add(&mut self, misses: &[[u64; 2]], accesses: u64) {
        for (sum, &misses) in self.levels.iter_mut().zip(misses) {
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
    fn new(levels: usize) -> Sums {
        Sums {
            total: Sampled::new(levels),
            sites: HashMap::new(),
            fields: HashMap::new(),
            edges: HashMap::new(),
        }
    }

    fn edges(&mut self) -> Vec<EdgeMisses> {
        let mut edges: Vec<EdgeMisses> = self.edges.drain().map(|(_, edge)| edge).collect();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.offset, edge.to));
        edges
    }

    /// Counts misses of an access for the newest of the loads before it that it goes through.
    fn follow(&mut self, before: &[Access], access: &Access, missed: &[(usize, bool)]) {
        let levels = self.total.levels.len();
        let mut loads = before.iter().rev().take(NEAR);
        let leads = |load: &Access| load.target != u32::MAX && load.leads_to(access);
        // An access to the same chunk in between was the first.
        let is_same = |load: &Access| load.site == access.site && load.base() == access.base();
        let load = loads.find(|load| leads(load) || is_same(load));
        let Some(load) = load.filter(|load| leads(load) && is_heap(load)) else {
            return;
        };
        let key = (load.site, load.offset, load.target);
        let edge = self.edges.entry(key).or_insert_with(|| EdgeMisses {
            from: load.site,
            offset: load.offset,
            to: load.target,
            certain: vec![0; levels],
            possible: vec![0; levels],
            ..EdgeMisses::default()
        });
        edge.followed += 1;
        for &(level, is_certain) in missed {
            edge.certain[level] += u64::from(is_certain);
            edge.possible[level] += 1;
        }
    }

    fn add(&mut self, profile: &Profile, window: &Window, replay: &mut Replay) {
        let levels = self.total.levels.len();
        let mut of_sites: HashMap<u32, (Vec<[u64; 2]>, u64)> = HashMap::new();
        replay.begin(window);
        for (at, access) in window.accesses.iter().enumerate() {
            let mut missed: Vec<(usize, bool)> = Vec::new();
            replay.access(access, |level, is_certain| missed.push((level, is_certain)));
            let known = usize::try_from(access.site).is_ok_and(|site| site < profile.sites.len());
            if !known {
                continue;
            }
            self.follow(&window.accesses[..at], access, &missed);
            let (counts, accesses) = of_sites
                .entry(access.site)
                .or_insert_with(|| (vec![[0; 2]; levels], 0));
            *accesses += 1;
            for &(level, is_certain) in &missed {
                counts[level][0] += u64::from(is_certain);
                counts[level][1] += 1;
            }
            if let Some(offset) = field_offset(profile, access) {
                let field =
                    self.fields
                        .entry((access.site, offset))
                        .or_insert_with(|| FieldMisses {
                            offset,
                            certain: vec![0; levels],
                            possible: vec![0; levels],
                            ..FieldMisses::default()
                        });
                field.recorded += 1;
                for (level, is_certain) in missed {
                    field.certain[level] += u64::from(is_certain);
                    field.possible[level] += 1;
                }
            }
        }
        let mut total = vec![[0; 2]; levels];
        for (site, (counts, accesses)) in of_sites {
            let sampled = self
                .sites
                .entry(site)
                .or_insert_with(|| Sampled::new(levels));
            sampled.add(&counts, accesses);
            for (all, own) in total.iter_mut().zip(counts) {
                *all = [all[0] + own[0], all[1] + own[1]];
            }
        }
        self.total.add(&total, heap_accesses(window));
    }

    /// By site, ascending in offset.
    fn fields(&mut self, profile: &Profile) -> HashMap<u32, Vec<FieldMisses>> {
        let mut fields: HashMap<u32, Vec<FieldMisses>> = HashMap::new();
        for ((site, offset), field) in self.fields.drain() {
            let found = type_of(profile, site).and_then(|it| field_at(it, offset));
            fields.entry(site).or_default().push(FieldMisses {
                field: found.map(|field| field.name.clone()),
                ..field
            });
        }
        fields
            .values_mut()
            .for_each(|fields| fields.sort_by_key(|field| field.offset));
        fields
    }
}

fn type_of(profile: &Profile, site: u32) -> Option<&Type> {
    let site = profile.sites.get(usize::try_from(site).ok()?)?;
    profile.types.get(usize::try_from(site.type_id?).ok()?)
}

/// Where an access begins in its element: a vector has many in a chunk.
fn field_offset(profile: &Profile, access: &Access) -> Option<u64> {
    let site = profile.sites.get(usize::try_from(access.site).ok()?)?;
    let size = type_of(profile, access.site)
        .and_then(|it| it.size)
        .filter(|&size| size > 0);
    let offset = u64::from(access.offset);
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
        let [certain, possible] = sum.0.map(|moments| moments.misses as f64);
        let factor = self.accesses as f64 / sampled.recorded.max(1) as f64;
        let estimate = (certain + possible) / 2.0 * factor;
        if self.is_complete {
            return Interval {
                low: certain,
                estimate,
                high: possible,
            };
        }
        let [below, above] = sum.0.map(|moments| self.sampling_error(sampled, &moments));
        Interval {
            // What was seen did happen, and an access misses a level at most once.
            low: (certain * factor - below).max(certain),
            estimate,
            high: (possible * factor + above).min((self.accesses as f64).max(possible * factor)),
        }
    }

    /// Half of the 95 % interval of the ratio of misses to accesses, times the accesses of the run:
    /// `t * sqrt((1 - f) * k / (k - 1) * sum of (m - r n)^2) / sum of n`, for `k` windows with `m`
    /// misses in `n` accesses each, which are the part `f` of the run.
    fn sampling_error(&self, sampled: &Sampled, moments: &Moments) -> f64 {
        let recorded = sampled.recorded as f64;
        let unseen = 1.0 - recorded / self.accesses as f64;
        if unseen <= 0.0 {
            return 0.0;
        }
        if sampled.windows < 2 {
            return f64::INFINITY;
        }
        let windows = sampled.windows as f64;
        let ratio = moments.misses as f64 / recorded;
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
