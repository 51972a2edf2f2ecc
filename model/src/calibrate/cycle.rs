//! A cycle through memory: each of its words holds the index of the next one.
//!
//! A cycle longer than a buffer with LRU-like replacement misses it every time, so its size shows
//! as a cliff. Nothing but the load itself lies between one value and the next.

use super::{LINE_WORDS, typical};
use crate::probe::ns_each;
use crate::shape::random::SplitMix64;
use crate::{PageSize, PagedMemory};

/// Loads of a timed run, at least.
const LOADS: u32 = 4096;
/// Lines of the cycle that shows the latency of the first-level cache: half of the smallest one.
const HIT_LINES: usize = 256;

pub(super) struct Cycle<'a> {
    memory: &'a PagedMemory,
    len: u32,
    at: usize,
}

impl<'a> Cycle<'a> {
    /// Links the words at these indices in random order; `None` unless there are some, all within
    /// the memory.
    pub(super) fn new(
        memory: &'a mut PagedMemory,
        indices: impl IntoIterator<Item = usize>,
    ) -> Option<Cycle<'a>> {
        let mut order: Vec<usize> = indices.into_iter().collect();
        SplitMix64::new(1).shuffle(&mut order);
        for (&index, &next) in order.iter().zip(order.iter().cycle().skip(1)) {
            *memory.as_mut_slice().get_mut(index)? = next as u64;
        }
        Some(Cycle {
            len: u32::try_from(order.len()).ok()?,
            at: *order.first()?,
            memory,
        })
    }

    /// Loads the next `loads` words; nanoseconds for each.
    #[expect(clippy::cast_possible_truncation, reason = "words hold indices")]
    fn run(&mut self, loads: u32) -> f64 {
        let words = self.memory.as_slice();
        ns_each(&mut self.at, loads, |at| *at = words[*at] as usize)
    }

    /// Nanoseconds for a load, after a round to warm up.
    pub(super) fn ns(&mut self, runs: u32) -> f64 {
        self.run(self.len);
        let loads = self.len.max(LOADS);
        typical((0..=runs).map(|_| self.run(loads)))
    }

    /// Nanoseconds from the address of a load to its value in the first-level cache; `None` without
    /// memory.
    pub(super) fn hit_ns(runs: u32) -> Option<f64> {
        let mut memory = PagedMemory::new(HIT_LINES * LINE_WORDS, PageSize::Small4K).ok()?;
        let lines = (0..HIT_LINES).map(|line| line * LINE_WORDS);
        let ns = Cycle::new(&mut memory, lines)?.ns(10 * runs);
        ns.is_finite().then_some(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_visits_every_word_once() {
        let mut memory = PagedMemory::new(1000, PageSize::Small4K).unwrap();
        let mut cycle = Cycle::new(&mut memory, (0..100).map(|i| i * 7)).unwrap();
        let first = cycle.at;
        let mut seen = [false; 100];
        for _ in 0..100 {
            assert!(!std::mem::replace(&mut seen[cycle.at / 7], true));
            cycle.run(1);
        }
        assert_eq!(cycle.at, first);
        assert!(cycle.ns(1) > 0.0);
        assert!(Cycle::new(&mut memory, [3, 1000]).is_none());
        assert!(Cycle::new(&mut memory, []).is_none());
    }
}
