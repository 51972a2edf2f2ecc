//! Which caches can be coloured: whether the half of the sets that an address seems to choose is
//! really apart from the other half.
//!
//! A *hot* set of lines, a quarter of the cache, is loaded at random, each address depending on the
//! value before. Between two such loads, a few independent *cold* lines are loaded out of four
//! times the cache. The cold lines are of the *other* colour than the hot ones, or of the *same*:
//!
//! ```text
//! way           | h h h h - - - - | h h h h - - - - | ...
//! cold, other   | - - - - c c c c | - - - - c c c c | ...
//! cold, same    |                 |                 | c c c c - - - - | ...
//! ```
//!
//! Where the address chooses the set, cold lines of the other colour evict no hot one, and hot
//! loads cost less. Where a hash or an unrelated physical address does, both take the same time.

use super::{LINE_BYTES, line_start, typical};
use crate::machine::{ColourProbe, Level, LevelKind};
use crate::probe::{next_state, ns_each, scale};
use crate::topology::{CacheFacts, Topology};
use crate::{PageSize, PagedMemory};

/// Cold loads for each hot one.
const COLD_LOADS: u32 = 2;
/// Hot loads of a run.
const HOT_LOADS: u32 = 10_000;
/// The hot lines take this part of the cache: half of their colour.
const HOT_PART: u64 = 4;
/// The cold lines take this many times the cache.
const COLD_TIMES: u64 = 4;
/// The largest cache that is probed.
const CACHE_BYTES_MAX: u64 = 16 << 20;

/// Probes the caches whose ways have a power of two of bytes, at least a page, smallest first.
pub(super) fn measure(runs: u32, topology: &Topology, levels: &[Level]) -> Vec<ColourProbe> {
    let caches = topology.data_caches();
    caches
        .filter_map(|cache| probe(runs, cache, levels))
        .collect()
}

fn probe(runs: u32, cache: &CacheFacts, levels: &[Level]) -> Option<ColourProbe> {
    let way_bytes = cache.size_bytes.checked_div(u64::from(cache.ways))?;
    let is_page = way_bytes.is_power_of_two() && way_bytes >= PageSize::Small4K.bytes();
    if !is_page || cache.size_bytes > CACHE_BYTES_MAX {
        return None;
    }
    let name = format!("L{}", cache.level);
    let is_level = |level: &&Level| level.kind == LevelKind::Data && level.name == name;
    let level = levels.iter().find(is_level)?;
    let cache_lines = cache.size_bytes / LINE_BYTES;
    let lines = Lines {
        half: way_bytes / LINE_BYTES / 2,
        hot: cache_lines / HOT_PART,
        cold: COLD_TIMES * cache_lines,
    };
    let words = usize::try_from(lines.end() * LINE_BYTES / 8).ok()?;
    let memory = PagedMemory::new(words, PageSize::Huge2M).ok()?;
    let mut state = 1;
    let [mut other, mut same] = [const { Vec::new() }; 2];
    for _ in 0..=runs {
        let words = memory.as_slice();
        other.push(lines.run(words, &mut state, |index| lines.of_colour(1, index)));
        same.push(lines.run(words, &mut state, |index| {
            lines.of_colour(0, lines.hot + index)
        }));
    }
    Some(ColourProbe {
        way_bytes,
        other_ns: typical(other),
        same_ns: typical(same),
        miss_ns: level.step_ns(),
    })
}

/// Lines of two colours: runs of `half` lines in turns.
struct Lines {
    half: u64,
    hot: u64,
    cold: u64,
}

impl Lines {
    /// Line number of the `index`-th line of a colour, 0 or 1.
    #[inline]
    fn of_colour(&self, colour: u64, index: u64) -> u64 {
        index / self.half * 2 * self.half + colour * self.half + index % self.half
    }

    /// Behind the last line of all.
    fn end(&self) -> u64 {
        self.of_colour(1, self.hot + self.cold - 1) + 1
    }

    /// Nanoseconds for a hot load with its cold ones, whose lines `cold_line` numbers.
    #[inline(always)]
    fn run(&self, words: &[u64], random: &mut u64, cold_line: impl Fn(u64) -> u64) -> f64 {
        let mut states = (*random, !*random, 0u64);
        let ns = ns_each(&mut states, HOT_LOADS, |(state, cold_state, sum)| {
            *state = next_state(*state);
            // The words are all 0, which the compiler does not know: the next address waits for the
            // load.
            let hot = self.of_colour(0, scale(*state, self.hot));
            *state = state.wrapping_add(words[line_start(hot)]);
            for _ in 0..COLD_LOADS {
                *cold_state = next_state(*cold_state);
                let line = cold_line(scale(*cold_state, self.cold));
                *sum = sum.wrapping_add(words[line_start(line)]);
            }
        });
        *random = states.0.wrapping_add(states.2);
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn colours_are_halves_of_ways_and_lines_differ() {
        let lines = Lines {
            half: 32,
            hot: 100,
            cold: 1000,
        };
        let hot_and_same: HashSet<u64> =
            { 0..1100 }.map(|index| lines.of_colour(0, index)).collect();
        let other: HashSet<u64> = { 0..1000 }.map(|index| lines.of_colour(1, index)).collect();
        assert_eq!((hot_and_same.len(), other.len()), (1100, 1000));
        assert!(hot_and_same.iter().all(|line| line % 64 < 32));
        assert!(other.iter().all(|line| line % 64 >= 32));
        let mut all = hot_and_same.union(&other);
        assert!(all.all(|&line| line < lines.end()));
    }

    #[test]
    fn a_probe_has_what_it_measured() {
        let machine = crate::Machine::this();
        for probe in measure(1, &Topology::this(), &machine.levels) {
            assert!(probe.way_bytes.is_power_of_two() && probe.way_bytes >= 4096);
            assert!(probe.other_ns > 0.0 && probe.same_ns > 0.0);
        }
    }
}
