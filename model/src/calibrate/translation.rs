//! How many pages the translation buffers hold, what missing them costs, and whether huge pages
//! reach further.
//!
//! One line in each of `n` pages is visited in turns. Page `p` gives its `7p`-th line, so that the
//! lines spread over the sets of the data caches as evenly as adjacent lines. As many adjacent
//! lines, in a huge page, are visited for comparison; the difference is translation:
//!
//! ```text
//! ns |                              .-----------   a walk through the page table
//!    |                              |
//!    |               .--------------'              a hit of the second buffer
//!    |               |
//!    |_______________|______________________ n
//!              entries of dTLB   of STLB
//! ```
//!
//! The pages are adjacent, so that they spread over the buffers' sets evenly, and visited in turns,
//! so that a buffer of LRU-like replacement that is one page too small hardly ever hits. The same
//! lines in huge pages tell whether these extend the reach: in a virtual machine whose host backs
//! them with small pages they miss as small pages do, with shorter walks.

use super::LINE_WORDS;
use super::cycle::Cycle;
use crate::machine::{CurvePoint, TranslationLevel, TranslationProbe};
use crate::{PageSize, PagedMemory};

/// Words of a small page.
const PAGE_WORDS: usize = 4096 / 8;
/// Lines of a small page.
const PAGE_LINES: usize = 64;
/// Lines from a page's line to that of the next page; odd, so that 64 pages use all of them.
const STAGGER: usize = 7;
/// Points to the doubling: known sizes (48, 64, 72, 96, 128, 1024, 1280, 1536, 2048, 3072, 4096)
/// are among them.
const POINTS_PER_DOUBLING: u64 = 8;
/// The first and the last number of pages.
const PAGES_MIN: u64 = 16;
const PAGES_MAX: u64 = 1 << 14;
const PAGES_MAX_QUICK: u64 = 1 << 13;
/// A step lower than this is noise.
const STEP_NS_MIN: f64 = 0.4;
/// Larger differences count by their ratio: a hit of the second buffer costs a nanosecond or two, a
/// walk ten times that.
const SCALE_NS: f64 = 0.5;

/// Visits more and more pages; `None` without memory.
pub(super) fn measure(quick: bool, runs: u32) -> Option<TranslationProbe> {
    let last = if quick { PAGES_MAX_QUICK } else { PAGES_MAX };
    let words = usize::try_from(last).ok()? * PAGE_WORDS;
    let mut small = PagedMemory::new(words, PageSize::Small4K).ok()?;
    let mut huge = PagedMemory::new(words, PageSize::Huge2M).ok()?;
    let (mut small_points, mut huge_points) = (Vec::new(), Vec::new());
    for pages in numbers_of_pages(last) {
        let count = usize::try_from(pages).ok()?;
        let spread = || (0..count).map(place_in_page);
        let together = Cycle::new(&mut huge, (0..count).map(|i| i * LINE_WORDS))?.ns(runs);
        let in_small = Cycle::new(&mut small, spread())?.ns(runs);
        let in_huge = Cycle::new(&mut huge, spread())?.ns(runs);
        for (points, ns) in [(&mut small_points, in_small), (&mut huge_points, in_huge)] {
            points.push(CurvePoint {
                at: pages as f64,
                ns: (ns - together).max(0.0),
            });
        }
    }
    Some(TranslationProbe {
        levels: cliffs(&small_points),
        small_pages: small_points,
        huge_pages: huge_points,
    })
}

/// The word of a page's line.
fn place_in_page(page: usize) -> usize {
    page * PAGE_WORDS + page * STAGGER % PAGE_LINES * LINE_WORDS
}

/// Eight numbers to the doubling.
fn numbers_of_pages(last: u64) -> impl Iterator<Item = u64> {
    let doublings = std::iter::successors(Some(PAGES_MIN), |&pages| Some(2 * pages));
    let points = doublings.flat_map(|pages| {
        (0..POINTS_PER_DOUBLING).map(move |i| pages + i * pages / POINTS_PER_DOUBLING)
    });
    points.take_while(move |&pages| pages <= last)
}

/// The two steps (or the one, or none) that explain the points best: least squares of a function of
/// three values, on a scale on which a nanosecond and ten count about the same. The entries of a
/// buffer are the last point before its step.
fn cliffs(points: &[CurvePoint]) -> Vec<TranslationLevel> {
    let n = points.len();
    if n < 4 {
        return Vec::new();
    }
    // Sums of the first values and of their squares, for the squared error of any stretch.
    let mut sums = vec![(0.0, 0.0)];
    for point in points {
        let value = (point.ns / SCALE_NS).ln_1p();
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + value, squares + value * value));
    }
    let error = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        squares - sum * sum / (to - from) as f64
    };
    let mut best = (f64::INFINITY, 0, 0);
    for first in 1..n - 1 {
        for second in first + 1..n {
            let squares = error(0, first) + error(first, second) + error(second, n);
            if squares < best.0 {
                best = (squares, first, second);
            }
        }
    }
    let (_, first, second) = best;
    let mean_ns = |from: usize, to: usize| {
        points[from..to].iter().map(|point| point.ns).sum::<f64>() / (to - from) as f64
    };
    let level = |(start, at, end): (usize, usize, usize)| TranslationLevel {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of pages"
        )]
        entries: points[at - 1].at as u64,
        miss_ns: mean_ns(at, end) - mean_ns(start, at),
    };
    let levels = [(0, first, second), (first, second, n)].map(level);
    let is_step = |level: &TranslationLevel| level.miss_ns >= STEP_NS_MIN;
    levels.into_iter().filter(is_step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn curve(value: impl Fn(u64) -> f64) -> Vec<CurvePoint> {
        numbers_of_pages(PAGES_MAX)
            .enumerate()
            .map(|(i, pages)| CurvePoint {
                at: pages as f64,
                ns: value(pages) + 0.1 * f64::from(u8::try_from(i % 3).unwrap_or(0)),
            })
            .collect()
    }

    #[test]
    fn buffers_are_found_again() {
        for (dtlb, stlb) in [(64, 1536), (72, 3072), (96, 2048), (48, 1280), (96, 4096)] {
            let points = curve(|pages| match pages {
                _ if pages <= dtlb => 0.0,
                _ if pages <= stlb => 1.7,
                _ => 22.0 + (pages as f64 / stlb as f64).ln(),
            });
            let levels = cliffs(&points);
            let entries: Vec<u64> = levels.iter().map(|level| level.entries).collect();
            assert_eq!(entries, [dtlb, stlb]);
            assert!((levels[0].miss_ns - 1.7).abs() < 0.2, "{levels:?}");
            assert!((levels[1].miss_ns - 21.0).abs() < 1.5, "{levels:?}");
        }
    }

    #[test]
    fn noise_is_no_buffer() {
        assert_eq!(cliffs(&curve(|_| 0.0)), []);
        assert_eq!(cliffs(&[]), []);
        let one = cliffs(&curve(|pages| if pages <= 512 { 0.0 } else { 9.0 }));
        assert_eq!(one.len(), 1);
        assert_eq!(one[0].entries, 512);
    }

    #[test]
    fn pages_give_different_lines() {
        let places: HashSet<usize> = (0..1000).map(place_in_page).collect();
        assert_eq!(places.len(), 1000);
        assert!((0..1000).all(|page| place_in_page(page) / PAGE_WORDS == page));
        let lines: HashSet<usize> = (0..64)
            .map(|page| place_in_page(page) % PAGE_WORDS)
            .collect();
        assert_eq!(lines.len(), 64, "all sets of a cache with ways of a page");
        let numbers: Vec<u64> = numbers_of_pages(PAGES_MAX).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b));
        for known in [48, 64, 72, 96, 128, 1024, 1280, 1536, 2048, 3072, 4096] {
            assert!(numbers.contains(&known), "{known}");
        }
    }

    #[test]
    fn reach_is_told_from_both_curves() {
        let small = curve(|pages| if pages <= 1024 { 0.0 } else { 20.0 });
        let probe = |huge_ns: f64| TranslationProbe {
            levels: cliffs(&small),
            small_pages: small.clone(),
            huge_pages: curve(|_| huge_ns),
        };
        assert_eq!(probe(0.5).huge_pages_reach(), Some(true));
        assert_eq!(probe(12.0).huge_pages_reach(), Some(false));
    }
}
