//! The caches that valgrind's tool cachegrind simulates, by its rules.
//!
//! Cachegrind has a first-level cache for instructions (I1), one for data (D1), and a last-level
//! one for both (LL), all of them LRU and non-inclusive. It counts references rather than lines,
//! which makes a difference where one lies across two lines (`cg_sim.c` of valgrind 3.19):
//!
//! - It is one reference, and a miss if either line is missing; both are brought in.
//! - If it missed, LL is asked for both lines, also for one that the first level had.
//! - Data larger than the smallest line of the three caches counts as of that size (`cg_main.c`):
//!   of what instructions that save all registers write, the start is seen.
//!
//! A load and store by one instruction is one reference, to cachegrind as in lackey's traces.

use super::cache::{Cache, Touch};
use super::trace::TraceSink;
use crate::colour::CacheGeometry;
use crate::hierarchy::CacheLevel;

/// I1, D1 and LL as cachegrind has them.
///
/// # Examples
/// ```
/// use ccmodel::{CacheGeometry, CachegrindModel, Trace, TraceMode, TraceOptions, simulate_trace};
///
/// // As valgrind --tool=cachegrind --cache-sim=yes --I1=32768,8,64 --D1=49152,12,64 --LL=1048576,16,64.
/// let mut caches = CachegrindModel::new(
///     CacheGeometry::new(64, 64, 8)?,
///     CacheGeometry::new(64, 64, 12)?,
///     CacheGeometry::new(1024, 64, 16)?,
/// );
/// let trace = Trace::new(&b"I  1000,4\n L 203c,8\n L 2040,8\n"[..]);
/// let options = TraceOptions { mode: TraceMode::InstructionsAndData, warm_up_records: 0 };
/// simulate_trace(trace, &mut caches, options)?;
/// let counts = caches.counts();
/// assert_eq!((counts.data, counts.d1_misses, counts.ll_data_misses), (2, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CachegrindModel {
    i1: Cache,
    d1: Cache,
    ll: Cache,
    data_bytes_max: u32,
    counts: CachegrindCounts,
}

/// What a [`CachegrindModel`] counted; the names in brackets are those of cachegrind's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct CachegrindCounts {
    /// Instructions fetched (`Ir`).
    pub instructions: u64,
    /// Those that missed I1 (`I1mr`).
    pub i1_misses: u64,
    /// Those of them that missed LL (`ILmr`).
    pub ll_instruction_misses: u64,
    /// References to data (`Dr` + `Dw`).
    pub data: u64,
    /// Those that missed D1 (`D1mr` + `D1mw`).
    pub d1_misses: u64,
    /// Those of them that missed LL (`DLmr` + `DLmw`).
    pub ll_data_misses: u64,
}

impl CachegrindModel {
    /// Empty caches. O(blocks).
    pub fn new(i1: CacheGeometry, d1: CacheGeometry, ll: CacheGeometry) -> CachegrindModel {
        let line_bytes = i1.block_bytes().min(d1.block_bytes()).min(ll.block_bytes());
        let cache = |geometry| Cache::new(&CacheLevel::lru("", geometry), 0);
        CachegrindModel {
            i1: cache(i1),
            d1: cache(d1),
            ll: cache(ll),
            data_bytes_max: u32::try_from(line_bytes).unwrap_or(u32::MAX),
            counts: CachegrindCounts::default(),
        }
    }

    /// What was counted.
    pub fn counts(&self) -> CachegrindCounts {
        self.counts
    }
}

impl TraceSink for CachegrindModel {
    fn instruction(&mut self, address: u64, bytes: u32) {
        self.counts.instructions += 1;
        if missed(&mut self.i1, address, bytes) {
            self.counts.i1_misses += 1;
            self.counts.ll_instruction_misses += u64::from(missed(&mut self.ll, address, bytes));
        }
    }

    fn data(&mut self, address: u64, bytes: u32) {
        let bytes = bytes.min(self.data_bytes_max);
        self.counts.data += 1;
        if missed(&mut self.d1, address, bytes) {
            self.counts.d1_misses += 1;
            self.counts.ll_data_misses += u64::from(missed(&mut self.ll, address, bytes));
        }
    }

    fn reset_counts(&mut self) {
        self.counts = CachegrindCounts::default();
    }
}

/// Refers to the line or lines of an access; whether one was missing.
#[inline]
fn missed(cache: &mut Cache, address: u64, bytes: u32) -> bool {
    let last_byte = address.saturating_add(u64::from(bytes).saturating_sub(1));
    let mut missed = false;
    for line in cache.block_of(address)..=cache.block_of(last_byte) {
        missed |= cache.touch(line) != Touch::Hit;
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> CachegrindModel {
        let geometry = |sets, ways| CacheGeometry::new(sets, 64, ways).unwrap();
        CachegrindModel::new(geometry(1, 2), geometry(1, 2), geometry(2, 4))
    }

    #[test]
    fn a_reference_across_lines_is_one_miss_and_asks_for_both() {
        let mut caches = model();
        caches.data(0, 8);
        // Line 0 is in D1, line 1 is not: one miss, and LL lacks line 1 alone.
        caches.data(60, 8);
        let two = CachegrindCounts {
            data: 2,
            d1_misses: 2,
            ll_data_misses: 2,
            ..CachegrindCounts::default()
        };
        assert_eq!(caches.counts(), two);
        // Both lines are in LL by now: when D1 has lost them, only it misses.
        caches.data(1024, 8);
        caches.data(2048, 8);
        caches.reset_counts();
        caches.data(60, 8);
        let one = CachegrindCounts {
            data: 1,
            d1_misses: 1,
            ..CachegrindCounts::default()
        };
        assert_eq!(caches.counts(), one);
    }

    #[test]
    fn instructions_and_data_share_the_last_level_only() {
        let mut caches = model();
        caches.instruction(0, 4);
        caches.data(0, 4);
        caches.instruction(2, 4);
        let expected = CachegrindCounts {
            instructions: 2,
            i1_misses: 1,
            ll_instruction_misses: 1,
            data: 1,
            d1_misses: 1,
            ll_data_misses: 0,
        };
        assert_eq!(caches.counts(), expected);
    }

    #[test]
    fn large_data_counts_as_one_line() {
        let mut caches = model();
        caches.data(0, 512);
        caches.data(64, 8);
        assert_eq!(caches.counts().d1_misses, 2);
        caches.data(u64::MAX, 64);
        assert_eq!(caches.counts().d1_misses, 3);
    }
}
