//! Caches simulated access by access, for random operations and for traces of programs.
//!
//! ```text
//! address --- page --> dTLB, then STLB on a miss, ...                  each miss fills what missed
//!         --- line --> Frames --> L1, then L2 on a miss, then L3, ...  filled by its inclusion
//! ```
//!
//! - An access of several bytes is one for each line of the first cache that it touches, in
//!   ascending order.
//! - Reads and writes are alike: a write brings the line in, and writing back is not counted.
//! - TLBs and first-level caches see each access; each level behind sees the misses of the one
//!   above it, as in hardware and in cachegrind.
//! - Prefetching, ports, queues and everything else that takes time is not simulated.
//!
//! Consecutive accesses to one line or one page are hits that change nothing under any policy, and
//! are seen before any cache is asked.

mod cache;
mod frames;
#[cfg(feature = "parquet")]
mod table;
#[cfg(test)]
mod tests;
mod trace;

use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion, MAX_CACHES};
use cache::Cache;
use frames::FrameMap;

pub use frames::Frames;
#[cfg(feature = "parquet")]
pub use table::{read_table, simulate_table};
pub use trace::{TraceCounts, TraceKind, TraceRecord, read_trace, simulate_trace};

/// No line and no page: addresses have 64 bits, and both at least 8 bytes.
const NONE: u64 = u64::MAX;
/// Seed of what random replacement evicts.
const SEED: u64 = 0x5eed;

/// The caches and TLBs of a [`Hierarchy`], empty at first.
///
/// Memory: up to 18 bytes for each block that the hierarchy holds, 32 where a set has one.
///
/// # Examples
/// ```
/// use ccmodel::{CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Simulator};
///
/// let l1 = CacheLevel::lru("L1", CacheGeometry::new(64, 64, 8)?);
/// let l2 = CacheLevel::lru("L2", CacheGeometry::new(1024, 64, 8)?);
/// let hierarchy = Hierarchy::new(vec![l1, l2], Inclusion::NonInclusive, Vec::new())?;
/// let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
///
/// // 64 KiB, twice: the second time they come from L2.
/// for address in (0..64 << 10).step_by(8) {
///     simulator.access(address, 8);
/// }
/// simulator.reset_counts();
/// for address in (0..64 << 10).step_by(8) {
///     simulator.access(address, 8);
/// }
/// let counts = simulator.counts();
/// assert_eq!((counts.caches[0].accesses, counts.caches[0].misses), (8192, 1024));
/// assert_eq!((counts.caches[1].accesses, counts.caches[1].misses), (1024, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulator {
    hierarchy: Hierarchy,
    /// At least one.
    caches: Vec<Cache>,
    tlbs: Vec<Cache>,
    frames: FrameMap,
    /// The line of the last access, as the program addresses it; it is in the first cache.
    last_line: u64,
    /// The page of the last access; it is in the first TLB.
    last_page: u64,
    /// Lines touched, whether they were there or not.
    line_accesses: u64,
    cache_misses: [u64; MAX_CACHES],
    tlb_misses: [u64; MAX_CACHES],
}

impl Simulator {
    /// Empty caches. O(blocks).
    pub fn new(hierarchy: &Hierarchy, frames: Frames) -> Simulator {
        let build = |levels: &[CacheLevel], seed: u64| {
            let level = |(i, level)| Cache::new(level, seed.wrapping_add(i));
            (0..).zip(levels).map(level).collect()
        };
        Simulator {
            hierarchy: hierarchy.clone(),
            caches: build(hierarchy.caches(), SEED),
            tlbs: build(hierarchy.tlbs(), !SEED),
            frames: FrameMap::new(frames),
            last_line: NONE,
            last_page: NONE,
            line_accesses: 0,
            cache_misses: [0; MAX_CACHES],
            tlb_misses: [0; MAX_CACHES],
        }
    }

    /// The hierarchy that is simulated.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// Reads or writes `bytes` bytes, none of them behind the end of the address space; returns
    /// whether any level missed. An access of no bytes touches nothing.
    ///
    /// O(lines × ways of the levels asked).
    #[inline]
    pub fn access(&mut self, address: u64, bytes: u32) -> bool {
        let last_byte = address.saturating_add(u64::from(bytes).saturating_sub(1));
        let first = &self.caches[0];
        let (line, last_line) = (first.block_of(address), first.block_of(last_byte));
        if line == last_line && bytes > 0 {
            return self.access_line(line);
        }
        bytes > 0 && self.access_lines(line, last_line)
    }

    #[cold]
    #[inline(never)]
    fn access_lines(&mut self, first: u64, last: u64) -> bool {
        (first..=last).fold(false, |missed, line| self.access_line(line) | missed)
    }

    #[inline]
    fn access_line(&mut self, line: u64) -> bool {
        self.line_accesses += 1;
        if line == self.last_line {
            return false;
        }
        self.last_line = line;
        let address = line << self.caches[0].block_shift();
        let is_translated = self.translate(address);
        let physical = self.frames.physical(address);
        let first = &mut self.caches[0];
        let is_held = first.use_if_held(first.block_of(physical));
        if !is_held {
            self.fill(physical);
        }
        !(is_translated && is_held)
    }

    /// Asks the TLBs for a page; whether the first one has it.
    #[inline]
    fn translate(&mut self, address: u64) -> bool {
        let Some(first) = self.tlbs.first() else {
            return true;
        };
        let page = first.block_of(address);
        if page == self.last_page {
            return true;
        }
        self.last_page = page;
        for (i, tlb) in self.tlbs.iter_mut().enumerate() {
            if tlb.use_if_held(page) {
                return i == 0;
            }
            tlb.insert(page);
            self.tlb_misses[i] += 1;
        }
        false
    }

    /// Brings in a block that the first cache does not hold, from the first level that does.
    #[inline(never)]
    fn fill(&mut self, physical: u64) {
        let inclusion = self.hierarchy.inclusion();
        let last = self.caches.len() - 1;
        let has_victim = inclusion == Inclusion::VictimLast;
        self.cache_misses[0] += 1;
        let mut held_at = 1;
        while let Some(cache) = self.caches.get_mut(held_at) {
            let block = cache.block_of(physical);
            // A victim cache gives up what it is asked for.
            let is_held = match has_victim && held_at == last {
                true => cache.remove(block),
                false => cache.use_if_held(block),
            };
            if is_held {
                break;
            }
            self.cache_misses[held_at] += 1;
            held_at += 1;
        }
        // From memory's side, so that what an inclusive level evicts leaves room above.
        let filled = held_at.min(self.caches.len() - usize::from(has_victim));
        for level in (0..filled).rev() {
            let cache = &mut self.caches[level];
            let Some(evicted) = cache.insert(cache.block_of(physical)) else {
                continue;
            };
            if inclusion == Inclusion::Inclusive {
                let shift = cache.block_shift();
                for above in &mut self.caches[..level] {
                    // Blocks above are as large or smaller.
                    let parts = 1u64 << (shift - above.block_shift());
                    for part in evicted * parts..(evicted + 1) * parts {
                        above.remove(part);
                    }
                }
            } else if has_victim && level + 1 == last {
                // Both have blocks of one size.
                self.caches[last].insert(evicted);
            }
        }
    }

    /// What was counted since the start or the last [`reset_counts`](Simulator::reset_counts).
    pub fn counts(&self) -> SimulatedCounts {
        let levels = |levels: &[CacheLevel], misses: &[u64]| {
            let mut accesses = self.line_accesses;
            let count = |(level, &misses): (&CacheLevel, &u64)| LevelCounts {
                name: level.name.clone(),
                // A level is asked for what those above it missed.
                accesses: std::mem::replace(&mut accesses, misses),
                misses,
            };
            levels.iter().zip(misses).map(count).collect()
        };
        SimulatedCounts {
            caches: levels(self.hierarchy.caches(), &self.cache_misses),
            tlbs: levels(self.hierarchy.tlbs(), &self.tlb_misses),
        }
    }

    /// Misses of the caches, in the order of the hierarchy; 0 where there is none.
    #[inline]
    pub fn cache_misses(&self) -> [u64; MAX_CACHES] {
        self.cache_misses
    }

    /// Misses of the TLBs, in the order of the hierarchy; 0 where there is none.
    #[inline]
    pub fn tlb_misses(&self) -> [u64; MAX_CACHES] {
        self.tlb_misses
    }

    /// Counts from 0 again; caches keep what they hold. For the end of a warm-up.
    pub fn reset_counts(&mut self) {
        self.line_accesses = 0;
        self.cache_misses = [0; MAX_CACHES];
        self.tlb_misses = [0; MAX_CACHES];
    }

    /// Empties all caches and TLBs; counts go on. For a cold start. O(blocks).
    pub fn flush(&mut self) {
        let caches = self.caches.iter_mut().chain(&mut self.tlbs);
        caches.for_each(Cache::clear);
        self.last_line = NONE;
        self.last_page = NONE;
    }
}

/// Requests to one level, and its misses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct LevelCounts {
    /// The name of the level in the hierarchy.
    pub name: String,
    /// Requests for lines, or for translations of a line's page.
    pub accesses: u64,
    /// Requests that the level could not serve.
    pub misses: u64,
}

impl LevelCounts {
    /// Misses per access; 0 without accesses.
    pub fn miss_ratio(&self) -> f64 {
        self.misses as f64 / self.accesses.max(1) as f64
    }
}

/// What a [`Simulator`] counted, level by level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct SimulatedCounts {
    /// The caches, the one next to the processor first.
    pub caches: Vec<LevelCounts>,
    /// The translation buffers, the one next to the processor first.
    pub tlbs: Vec<LevelCounts>,
}
