//! The caches that cachegrind simulates, by its rules.
//!
//! Cachegrind has a first-level cache for instructions (I1), one for data (D1), and a last-level
//! one for both (LL), all of them LRU and non-inclusive. It counts references, not lines
//! (`cg_sim.c` of valgrind 3.19):
//!
//! - A reference to two lines is a miss if either is missing; both are brought in.
//! - If it missed, LL is asked for both lines, even for one that the first level had.
//! - Data larger than the smallest line of the three caches counts as of that size (`cg_main.c`).
//!
//! A load and store by one instruction is one reference, to cachegrind as in lackey's traces.

use ccmodel::simulator::{TraceKind, TraceRecord};
use ccmodel::{Frames, Inclusion, Simulator};

use crate::sample::{Simulated, level};

pub(super) const LINE_BYTES: u32 = 64;

#[derive(Debug)]
pub(super) struct Caches {
    i1: Simulator,
    d1: Simulator,
    ll: Simulator,
    counts: Counts,
}

/// References, and those to data that missed, with the names of cachegrind's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// Instructions fetched (`Ir`).
    pub(super) instructions: u64,
    /// References to data (`Dr` + `Dw`).
    pub(super) data: u64,
    /// Those that missed D1 (`D1mr` + `D1mw`).
    pub(super) d1_misses: u64,
    /// Those of them that missed LL (`DLmr` + `DLmw`).
    pub(super) ll_data_misses: u64,
}

impl Caches {
    /// Empty caches, I1, D1 and LL, by their sets and ways.
    pub(super) fn new(sets_and_ways: [(u64, u64); 3]) -> Caches {
        let [i1, d1, ll] = sets_and_ways.map(|(sets, ways)| {
            let line_bytes = u64::from(LINE_BYTES);
            let level = level("cache", sets * ways * line_bytes, ways, line_bytes);
            let machine = Simulated::new("one", vec![level], Inclusion::NonInclusive, Vec::new());
            Simulator::new(&machine.hierarchy, Frames::Identity)
        });
        Caches {
            i1,
            d1,
            ll,
            counts: Counts::default(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn see(&mut self, record: TraceRecord) {
        let bytes = u32::from(record.bytes);
        match record.kind {
            TraceKind::Instruction => self.instruction(record.address, bytes),
            _ => self.data(record.address, bytes),
        }
    }

    fn instruction(&mut self, address: u64, bytes: u32) {
        self.counts.instructions += 1;
        if self.i1.access(address, bytes) {
            self.ll.access(address, bytes);
        }
    }

    fn data(&mut self, address: u64, bytes: u32) {
        let bytes = bytes.min(LINE_BYTES);
        self.counts.data += 1;
        if self.d1.access(address, bytes) {
            self.counts.d1_misses += 1;
            let missed = self.ll.access(address, bytes);
            self.counts.ll_data_misses += u64::from(missed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches() -> Caches {
        Caches::new([(1, 2), (1, 2), (2, 4)])
    }

    #[test]
    fn a_reference_across_lines_is_one_miss_and_asks_for_both() {
        let mut caches = caches();
        caches.data(0, 8);
        // Line 0 is in D1, line 1 is not: one miss, and LL lacks line 1 alone.
        caches.data(60, 8);
        let expected = Counts {
            data: 2,
            d1_misses: 2,
            ll_data_misses: 2,
            ..Counts::default()
        };
        assert_eq!(caches.counts(), expected);
        // Both lines are in LL by now: when D1 has lost them, only it misses.
        caches.data(1024, 8);
        caches.data(2048, 8);
        let before = caches.counts();
        caches.data(60, 8);
        assert_eq!(caches.counts().d1_misses, before.d1_misses + 1);
        assert_eq!(caches.counts().ll_data_misses, before.ll_data_misses);
    }

    #[test]
    fn instructions_and_data_share_the_last_level_only() {
        let mut caches = caches();
        caches.instruction(0, 4);
        caches.data(0, 4);
        caches.instruction(2, 4);
        let expected = Counts {
            instructions: 2,
            data: 1,
            d1_misses: 1,
            ll_data_misses: 0,
        };
        assert_eq!(caches.counts(), expected);
    }

    #[test]
    fn large_data_counts_as_one_line() {
        let mut caches = caches();
        caches.data(0, 512);
        caches.data(64, 8);
        assert_eq!(caches.counts().d1_misses, 2);
        caches.data(u64::MAX, 64);
        assert_eq!(caches.counts().d1_misses, 3);
    }
}
