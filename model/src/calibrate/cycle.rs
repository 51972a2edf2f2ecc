//! Walks around one cycle of places, each of which holds where the next one is.
//!
//! Where the curve draws at random, a cycle goes to every place in turns: more places than a buffer
//! with LRU-like replacement holds miss it every time, so that its size shows as a cliff. And
//! nothing but the load itself lies between one value and the next, so that a cycle in the
//! first-level cache shows its latency.

use std::time::Instant;

use super::{LINE_WORDS, typical};
use crate::probe::{next_state, scale};
use crate::{PageSize, PagedMemory};

/// Loads of a timed run, at least.
const LOADS: usize = 4096;
/// Lines of the cycle that shows the latency of the first-level cache: half of the smallest one
/// around.
const HIT_LINES: usize = 256;

/// A cycle through words of some memory.
pub(super) struct Cycle<'a> {
    memory: &'a mut PagedMemory,
    places: usize,
    at: usize,
}

impl<'a> Cycle<'a> {
    /// Ties the words at these places together in random order; different places, in the memory.
    pub(super) fn new(
        memory: &'a mut PagedMemory,
        places: impl IntoIterator<Item = usize>,
    ) -> Option<Cycle<'a>> {
        let mut order: Vec<usize> = places.into_iter().collect();
        let words = memory.as_mut_slice();
        if order.is_empty() || order.iter().any(|&place| place >= words.len()) {
            return None;
        }
        let mut state = 1;
        for i in (1..order.len()).rev() {
            state = next_state(state);
            #[expect(clippy::cast_possible_truncation, reason = "at most i, a usize")]
            order.swap(i, scale(state, i as u64 + 1) as usize);
        }
        for (i, &place) in order.iter().enumerate() {
            words[place] = order[(i + 1) % order.len()] as u64;
        }
        Some(Cycle {
            places: order.len(),
            at: order[0],
            memory,
        })
    }

    /// Goes on for this many places; nanoseconds for each.
    fn run(&mut self, loads: usize) -> f64 {
        let words = self.memory.as_slice();
        let mut at = self.at;
        let start = Instant::now();
        for _ in 0..loads {
            #[expect(clippy::cast_possible_truncation, reason = "words hold places")]
            {
                at = words[at] as usize;
            }
        }
        let ns = start.elapsed().as_nanos() as f64 / loads.max(1) as f64;
        self.at = std::hint::black_box(at);
        ns
    }

    /// Nanoseconds for a place, after a round to warm up.
    pub(super) fn ns(&mut self, runs: u32) -> f64 {
        self.run(self.places);
        let loads = self.places.max(LOADS);
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
    fn a_cycle_comes_by_every_place_once() {
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
    }

    #[test]
    fn places_outside_of_the_memory_are_refused() {
        let mut memory = PagedMemory::new(10, PageSize::Small4K).unwrap();
        assert!(Cycle::new(&mut memory, [3, 10]).is_none());
        assert!(Cycle::new(&mut memory, []).is_none());
        assert!(Cycle::new(&mut memory, [3]).is_some());
    }
}
