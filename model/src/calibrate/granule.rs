//! How much a miss of memory brings in: what another line of the same aligned block costs right
//! afterwards.
//!
//! A random line of a random page is loaded, and then, its address depending on the value, another
//! random line of the same aligned block of `g` bytes. Where memory delivers `g` bytes at once, or
//! a prefetcher fetches the other line of a pair, the second load costs little. The comparison is a
//! second load in another page.
//!
//! Some prefetchers are silent on pairs that follow no pattern and speak up in real structures, so
//! that this is a lower bound of what lying near each other is worth; [`locality`](super::locality)
//! measures the rest. On a Zen 5, another line of 256 bytes cost 22 to 35 ns where a far one cost
//! 155.

use std::hint::black_box;
use std::time::Instant;

use super::{line_start, lines_of, typical};
use crate::PagedMemory;
use crate::machine::{CurvePoint, GranuleProbe};
use crate::probe::{next_state, scale};

/// Lines of a page.
const PAGE_LINES: u64 = 64;
/// Lines of the blocks that are tried.
const BLOCK_LINES: [u64; 6] = [2, 4, 8, 16, 32, 64];
/// Pairs of a run: a quarter of a millisecond.
const PAIRS: u32 = 1000;
/// Runs for each timed run of other measurements.
const RUNS: u32 = 3;

/// Measures in all of this memory, which no cache should hold.
pub(super) fn measure(memory: &PagedMemory, runs: u32) -> GranuleProbe {
    let pages = (lines_of(memory) / PAGE_LINES).max(1);
    let words = memory.as_slice();
    let mut state = 1;
    let mut far = Vec::new();
    let mut near = BLOCK_LINES.map(|_| Vec::new());
    for _ in 0..RUNS * runs.max(1) {
        far.push(run(words, pages, None, &mut state));
        for (&lines, samples) in BLOCK_LINES.iter().zip(&mut near) {
            samples.push(run(words, pages, Some(lines), &mut state));
        }
    }
    // Both loads of the comparison are far ones.
    let far_ns = typical(far) / 2.0;
    let near = BLOCK_LINES.iter().zip(near);
    GranuleProbe {
        far_ns,
        near: near
            .map(|(&lines, samples)| CurvePoint {
                bytes: (lines * super::LINE_BYTES) as f64,
                ns: (typical(samples) - far_ns).max(0.0),
            })
            .collect(),
    }
}

/// Nanoseconds of a pair: a random line, and another one of its block of so many lines, or one of
/// any page.
fn run(words: &[u64], pages: u64, block_lines: Option<u64>, random: &mut u64) -> f64 {
    let mut state = *random;
    let start = Instant::now();
    for _ in 0..PAIRS {
        state = next_state(state);
        let (page, line) = (scale(state, pages), state >> 8 & (PAGE_LINES - 1));
        // The words are all 0, which the compiler does not know: the next address waits for the
        // load.
        let loaded = words[line_start(page * PAGE_LINES + line)];
        state = next_state(state.wrapping_add(loaded));
        let other = match block_lines {
            Some(lines) => {
                let block = page * PAGE_LINES + line / lines * lines;
                // One of the others: at least one line further, round the block.
                block + (line % lines + 1 + scale(state, lines - 1)) % lines
            }
            None => scale(state, pages) * PAGE_LINES + line,
        };
        state = state.wrapping_add(words[line_start(other)]);
    }
    let ns = start.elapsed().as_nanos() as f64 / f64::from(PAIRS);
    *random = black_box(state);
    ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageSize;

    #[test]
    fn the_largest_block_that_comes_along_counts() {
        let probe = |ns: [f64; 6]| GranuleProbe {
            far_ns: 150.0,
            near: BLOCK_LINES
                .iter()
                .zip(ns)
                .map(|(&lines, ns)| CurvePoint {
                    bytes: (lines * 64) as f64,
                    ns,
                })
                .collect(),
        };
        assert_eq!(probe([30.0, 30.0, 110.0, 120.0, 120.0, 130.0]).bytes(), 256);
        assert_eq!(probe([140.0; 6]).bytes(), 64);
        // One that comes along beyond one that does not is noise.
        assert_eq!(probe([30.0, 140.0, 30.0, 140.0, 140.0, 140.0]).bytes(), 128);
    }

    #[test]
    fn all_blocks_are_measured() {
        let memory = PagedMemory::new(1 << 17, PageSize::Small4K).unwrap();
        let probe = measure(&memory, 1);
        assert_eq!(probe.near.len(), BLOCK_LINES.len());
        assert!(probe.far_ns > 0.0 && probe.bytes().is_power_of_two());
    }
}
