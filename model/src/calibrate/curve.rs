//! The latency curve: dependent loads of random lines in working sets of all sizes, and the levels
//! that follow from it.

use super::fit::fit_steps;
use super::{CalibrateOptions, LINE_BYTES, line_start, runs_for, typical};
use crate::machine::{CurvePoint, Evidence, Level, LevelKind, Step};
use crate::probe::{next_state, ns_each, scale};
use crate::topology::Topology;
use crate::{PageSize, PagedMemory};

/// Words of a line.
pub(super) const LINE_WORDS: usize = 8;
/// Smallest working set of the curve.
pub(super) const FIRST_BYTES: f64 = 16_384.0;
/// Loads of a timed run.
const LOADS: u32 = 12_000;
/// Steps below this are noise.
pub(super) const MIN_STEP_NS: f64 = 0.1;

/// The dependent loads; keeps its random state from run to run.
pub(super) struct Chase {
    pub(super) state: u64,
}

impl Chase {
    /// Loads `loads` random lines of the first `lines` lines, one after the other; nanoseconds a
    /// load.
    pub(super) fn run(&mut self, words: &[u64], lines: u64, loads: u32) -> f64 {
        ns_each(&mut self.state, loads, |state| {
            *state = next_state(*state);
            // The words are all 0, which the compiler does not know: the next address waits for the
            // load.
            *state = state.wrapping_add(words[line_start(scale(*state, lines))]);
        })
    }

    /// Warms the working set up and takes the lower quartile of `runs` runs of 12000 loads, cut
    /// into more and shorter ones where those would take long.
    pub(super) fn point(&mut self, memory: &PagedMemory, bytes: f64, runs: u32) -> CurvePoint {
        let words = memory.as_slice();
        let available = (words.len() / LINE_WORDS) as f64;
        let lines = (bytes / LINE_BYTES as f64).round().clamp(1.0, available);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to the range of the type"
        )]
        let (lines, warm_up) = (lines as u64, (2.0 * lines).min(150_000.0) as u32);
        let warm_ns = self.run(words, lines, warm_up);
        let parts = runs_for(warm_ns * f64::from(LOADS));
        CurvePoint {
            at: (lines * LINE_BYTES) as f64,
            ns: typical((0..runs * parts).map(|_| self.run(words, lines, LOADS / parts))),
        }
    }
}

/// Both latency curves, measured in turns, four points to the doubling up to 64 MB and two beyond.
pub(super) fn measure_curves(
    chase: &mut Chase,
    huge: &PagedMemory,
    small: &PagedMemory,
    options: CalibrateOptions,
) -> Evidence {
    let mut evidence = Evidence::default();
    let bytes_of = |memory: &PagedMemory| size_of_val(memory.as_slice()) as f64;
    let largest = bytes_of(huge).max(bytes_of(small));
    let doublings = (largest / FIRST_BYTES).log2();
    let mut bytes = FIRST_BYTES;
    while bytes <= largest * 1.001 {
        for (memory, points) in [
            (huge, &mut evidence.huge_pages),
            (small, &mut evidence.small_pages),
        ] {
            if bytes <= bytes_of(memory) * 1.001 {
                points.push(chase.point(memory, bytes, options.runs()));
            }
        }
        options.report(0.6 * (bytes / FIRST_BYTES).log2() / doublings);
        bytes *= 2f64.sqrt();
    }
    evidence
}

/// Levels that hold data: the steps of the curve in huge pages, each given to the cache that it is
/// nearest to.
pub(super) fn data_levels(evidence: &Evidence, topology: &Topology) -> Vec<Level> {
    let points = &evidence.huge_pages;
    let weights: Vec<f64> = points.iter().map(|point| 1.0 / point.ns.max(0.1)).collect();
    let steps = fit_steps(points, &weights, MIN_STEP_NS);
    let mut caches = topology.data_caches().peekable();
    let (mut levels, mut steps) = (Vec::new(), steps.into_iter().peekable());
    while let Some(cache) = caches.next() {
        // The first cache that could still have served half of such a working set, else the last.
        let is_last = caches.peek().is_none();
        let reach = 2.0 * cache.size_bytes as f64;
        let is_here = |step: &Step| is_last || step.capacity_bytes <= reach;
        let own: Vec<Step> = std::iter::from_fn(|| steps.next_if(is_here)).collect();
        if !own.is_empty() {
            levels.push(Level {
                name: format!("L{}", cache.level),
                kind: LevelKind::Data,
                block_bytes: cache.line_bytes,
                steps: own,
            });
        }
    }
    levels
}

/// The cost of translating small pages: steps of the difference between the curves.
pub(super) fn translation_level(evidence: &Evidence) -> Option<Level> {
    // Beyond the largest working set in huge pages their curve is flat.
    let last = evidence.huge_pages.last()?;
    let huge = evidence.huge_pages.iter().chain(std::iter::repeat(last));
    let points = { evidence.small_pages.iter().zip(huge) }.map(|(small, huge)| {
        let ns = (small.ns - huge.ns).max(0.0);
        (CurvePoint { ns, ..*small }, 1.0 / small.ns.max(0.1))
    });
    let (points, weights): (Vec<CurvePoint>, Vec<f64>) = points.unzip();
    let pages = PageSize::Small4K;
    let steps = fit_steps(&points, &weights, MIN_STEP_NS);
    (!steps.is_empty()).then(|| Level {
        name: "TLB-4k".to_owned(),
        kind: LevelKind::Pages(pages),
        block_bytes: pages.bytes(),
        steps,
    })
}
