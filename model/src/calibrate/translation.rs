//! How many pages the translation buffers hold, what missing them costs, and whether huge pages
//! reach further.
//!
//! One line in each of `n` pages is visited in turns. Page `p` gives its `7p`-th line, so that the
//! lines spread over the sets of the data caches as evenly as adjacent lines, which are visited for
//! comparison; the difference is translation:
//!
//! ```text
//! ns |                              .-----------   a walk through the page table
//!    |               .--------------'              a hit of the second buffer
//!    |_______________|______________________ n
//!              entries of dTLB   of STLB
//! ```
//!
//! The same lines in huge pages tell whether these extend the reach. In a virtual machine whose
//! host backs them with small pages, they miss as small pages do, with shorter walks.

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
/// The first and the last number of pages.
const PAGES_MIN: u32 = 16;
const PAGES_MAX: u32 = 1 << 14;
const PAGES_MAX_QUICK: u32 = 1 << 13;
/// A step lower than this is noise.
const STEP_NS_MIN: f64 = 0.4;
/// Larger differences count by their ratio: a hit of the second buffer costs a nanosecond or two, a
/// walk ten times that.
const SCALE_NS: f64 = 0.5;

/// Visits more and more pages; `None` without memory.
pub(super) fn measure(quick: bool, runs: u32) -> Option<TranslationProbe> {
    let last = if quick { PAGES_MAX_QUICK } else { PAGES_MAX };
    let words = last as usize * PAGE_WORDS;
    let mut small = PagedMemory::new(words, PageSize::Small4K).ok()?;
    let mut huge = PagedMemory::new(words, PageSize::Huge2M).ok()?;
    let (mut small_pages, mut huge_pages) = (Vec::new(), Vec::new());
    for pages in numbers_of_pages(last) {
        let spread = || (0..pages as usize).map(place_in_page);
        let adjacent = (0..pages as usize).map(|i| i * LINE_WORDS);
        let together_ns = Cycle::new(&mut huge, adjacent)?.ns(runs);
        let point = |memory: &mut PagedMemory| {
            let ns = Cycle::new(memory, spread())?.ns(runs) - together_ns;
            Some(CurvePoint {
                at: f64::from(pages),
                ns: ns.max(0.0),
            })
        };
        small_pages.push(point(&mut small)?);
        huge_pages.push(point(&mut huge)?);
    }
    Some(TranslationProbe {
        levels: cliffs(&small_pages),
        small_pages,
        huge_pages,
    })
}

/// The word of a page's line.
fn place_in_page(page: usize) -> usize {
    page * PAGE_WORDS + page * STAGGER % PAGE_LINES * LINE_WORDS
}

/// Eight numbers to the doubling: known sizes (48, 64, 72, 96, 128, 1024, 1280, 1536, 2048, 3072,
/// 4096) are among them.
fn numbers_of_pages(last: u32) -> impl Iterator<Item = u32> {
    let doublings = std::iter::successors(Some(PAGES_MIN), |&pages| Some(2 * pages));
    let points = doublings.flat_map(|pages| (8..16).map(move |eighths| pages / 8 * eighths));
    points.take_while(move |&pages| pages <= last)
}

/// The two steps (or the one, or none) that explain the points best: least squares of a function of
/// three values, on a scale on which a nanosecond and ten count about the same. The entries of a
/// buffer are the last point before its step.
fn cliffs(points: &[CurvePoint]) -> Vec<TranslationLevel> {
    let n = points.len();
    let scaled = points.iter().map(|point| (point.ns / SCALE_NS).ln_1p());
    let scaled: Vec<f64> = scaled.collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let error = |values: &[f64]| {
        let mean = mean(values);
        values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
    };
    let cuts = (1..n).flat_map(|first| (first + 1..n).map(move |second| (first, second)));
    let squares = |&(first, second): &(usize, usize)| {
        error(&scaled[..first]) + error(&scaled[first..second]) + error(&scaled[second..])
    };
    let best = cuts.min_by(|a, b| squares(a).total_cmp(&squares(b)));
    let Some((first, second)) = best else {
        return Vec::new();
    };
    let ns: Vec<f64> = points.iter().map(|point| point.ns).collect();
    let level = |(start, cut, end): (usize, usize, usize)| TranslationLevel {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of pages"
        )]
        entries: points[cut - 1].at as u64,
        miss_ns: mean(&ns[cut..end]) - mean(&ns[start..cut]),
    };
    let levels = [(0, first, second), (first, second, n)].map(level);
    let is_step = |level: &TranslationLevel| level.miss_ns >= STEP_NS_MIN;
    levels.into_iter().filter(is_step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn curve(value: impl Fn(f64) -> f64) -> Vec<CurvePoint> {
        let pages = numbers_of_pages(PAGES_MAX).zip([0.0, 0.1, 0.2].into_iter().cycle());
        let point = |(pages, noise)| CurvePoint {
            at: f64::from(pages),
            ns: value(f64::from(pages)) + noise,
        };
        pages.map(point).collect()
    }

    #[test]
    fn buffers_are_found_again() {
        for (dtlb, stlb) in [
            (64u32, 1536u32),
            (72, 3072),
            (96, 2048),
            (48, 1280),
            (96, 4096),
        ] {
            let levels = cliffs(&curve(|pages| match pages {
                _ if pages <= f64::from(dtlb) => 0.0,
                _ if pages <= f64::from(stlb) => 1.7,
                _ => 22.0 + (pages / f64::from(stlb)).ln(),
            }));
            let [first, second] = levels[..] else {
                panic!("{levels:?}")
            };
            assert_eq!(
                (first.entries, second.entries),
                (u64::from(dtlb), u64::from(stlb))
            );
            assert!((first.miss_ns - 1.7).abs() < 0.2, "{levels:?}");
            assert!((second.miss_ns - 21.0).abs() < 1.5, "{levels:?}");
        }
        let one = cliffs(&curve(|pages| if pages <= 512.0 { 0.0 } else { 9.0 }));
        assert_eq!((one.len(), one[0].entries), (1, 512));
        for noise in [curve(|_| 0.0), Vec::new()] {
            assert_eq!(cliffs(&noise), []);
        }
    }

    #[test]
    fn pages_give_different_lines() {
        assert!((0..1000).all(|page| place_in_page(page) / PAGE_WORDS == page));
        let lines: HashSet<usize> = { 0..64 }
            .map(|page| place_in_page(page) % PAGE_WORDS)
            .collect();
        assert_eq!(lines.len(), 64, "all sets of a cache with ways of a page");
        let numbers: Vec<u32> = numbers_of_pages(PAGES_MAX).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b));
        for known in [48, 64, 72, 96, 128, 1024, 1280, 1536, 2048, 3072, 4096] {
            assert!(numbers.contains(&known), "{known}");
        }
    }

    #[test]
    fn reach_is_told_from_both_curves() {
        let small = curve(|pages| if pages <= 1024.0 { 0.0 } else { 20.0 });
        for (huge_ns, reach) in [(0.5, true), (12.0, false)] {
            let probe = TranslationProbe {
                levels: cliffs(&small),
                small_pages: small.clone(),
                huge_pages: curve(|_| huge_ns),
            };
            assert_eq!(probe.huge_pages_reach(), Some(reach));
        }
    }
}
