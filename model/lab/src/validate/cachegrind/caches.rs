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

    #[test]
    fn references_miss_by_cachegrinds_rules() {
        let data = |address, bytes| (TraceKind::Load, address, bytes);
        let fetch = |address| (TraceKind::Instruction, address, 4);
        let across = [data(0, 8), data(60, 8)];
        // LL keeps what D1 loses.
        let lost = [
            data(0, 8),
            data(60, 8),
            data(1024, 8),
            data(2048, 8),
            data(60, 8),
        ];
        // D1 and I1 share LL only.
        let shared = [fetch(0), data(0, 4), fetch(2)];
        // As much as one line.
        let large = [data(0, 512), data(64, 8), data(u64::MAX, 64)];
        for (references, d1_misses, ll_data_misses) in [
            (&across[..], 2, 2),
            (&lost, 5, 4),
            (&shared, 1, 0),
            (&large, 3, 3),
        ] {
            let mut caches = Caches::new([(1, 2), (1, 2), (2, 4)]);
            for &(kind, address, bytes) in references {
                caches.see(TraceRecord {
                    kind,
                    address,
                    bytes,
                });
            }
            let counts = caches.counts();
            let is_fetch = |(kind, ..): &&(TraceKind, u64, u16)| *kind == TraceKind::Instruction;
            let instructions = references.iter().filter(is_fetch).count() as u64;
            assert_eq!(counts.instructions, instructions);
            assert_eq!(counts.data, references.len() as u64 - instructions);
            let misses = (counts.d1_misses, counts.ll_data_misses);
            assert_eq!(misses, (d1_misses, ll_data_misses), "{references:?}");
        }
    }
}
