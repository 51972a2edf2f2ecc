//! How much a miss of memory brings in: what another line of the same aligned block costs right
//! afterwards.
//!
//! A random line of a random page is loaded, and then, its address depending on the value, another
//! random line of the same aligned block of `g` bytes. Where memory delivers `g` bytes at once, or
//! a prefetcher fetches the other line of a pair, the second load costs little compared with one in
//! another page. Some prefetchers need a pattern, so this is a lower bound of what neighbours are
//! worth; [`locality`](super::locality) measures the rest.

use super::{LINE_BYTES, line_start, lines_of, typical};
use crate::PagedMemory;
use crate::machine::{CurvePoint, GranuleProbe};
use crate::probe::{next_state, ns_each, scale};

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
    let near = BLOCK_LINES
        .iter()
        .zip(near)
        .map(|(&lines, samples)| CurvePoint {
            bytes: (lines * LINE_BYTES) as f64,
            ns: (typical(samples) - far_ns).max(0.0),
        });
    GranuleProbe {
        far_ns,
        near: near.collect(),
    }
}

/// Nanoseconds of a pair: a random line, and another line of its block of `block_lines`, or of any
/// page.
fn run(words: &[u64], pages: u64, block_lines: Option<u64>, random: &mut u64) -> f64 {
    ns_each(random, PAIRS, |state| {
        let first = next_state(*state);
        let (page, line) = (scale(first, pages), first >> 8 & (PAGE_LINES - 1));
        // The words are all 0, which the compiler does not know: the next address waits for the
        // load.
        let loaded = words[line_start(page * PAGE_LINES + line)];
        let second = next_state(first.wrapping_add(loaded));
        let other = match block_lines {
            Some(lines) => {
                let block = page * PAGE_LINES + line / lines * lines;
                // One of the others: at least one line further, round the block.
                block + (line % lines + 1 + scale(second, lines - 1)) % lines
            }
            None => scale(second, pages) * PAGE_LINES + line,
        };
        *state = second.wrapping_add(words[line_start(other)]);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageSize;

    #[test]
    fn the_largest_block_that_comes_along_counts() {
        let memory = PagedMemory::new(1 << 17, PageSize::Small4K).unwrap();
        let measured = measure(&memory, 1);
        assert_eq!(measured.near.len(), BLOCK_LINES.len());
        assert!(measured.far_ns > 0.0 && measured.bytes().is_power_of_two());
        let bytes = |ns: [f64; 6]| {
            let mut probe = measured.clone();
            probe.far_ns = 150.0;
            for (point, ns) in probe.near.iter_mut().zip(ns) {
                point.ns = ns;
            }
            probe.bytes()
        };
        assert_eq!(bytes([30.0, 30.0, 110.0, 120.0, 120.0, 130.0]), 256);
        assert_eq!(bytes([140.0; 6]), 64);
        // A block that comes along beyond one that does not is noise.
        assert_eq!(bytes([30.0, 140.0, 30.0, 140.0, 140.0, 140.0]), 128);
    }
}
