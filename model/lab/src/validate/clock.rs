//! Predicted nanoseconds compared with the clock.
//!
//! Binary search trees of 24-byte nodes lie where six layouts put them and are searched for random
//! keys, each search waiting for the one before. The machine is calibrated right before the trees
//! of each size are measured: on a shared machine, effective capacities change.
//!
//! Layouts are measured in turns and in short runs, of which the lower quartile counts: what other
//! programs do disturbs all layouts or none.
//!
//! Independent operations are timed as branch-free descents in full trees. Searches that stop early
//! do not overlap: see [`Overlap`].

use ccmodel::evidence::Verdict;
use ccmodel::{
    CalibrateOptions, ErrorBand, Layout, Machine, NodeExtent, Overlap, PageSize, Placement,
    Predictor, ProbeError, SearchStyle, Shape, Topology, TreeProbe,
};

use super::{Bound, Effort, Row};
use crate::progress;

/// Bytes of a node: a key and two links.
const NODE_BYTES: u32 = 24;
/// Pairs of layouts closer than this are not ranked.
const CLEAR_RATIO: f64 = 1.1;
/// Searches to warm a tree up.
const WARM_SEARCHES: u32 = 30_000;
/// Length of a timed run. On a busy machine, runs of several milliseconds are always disturbed.
const RUN_NS: f64 = 250_000.0;
/// Searches of a timed run, at most.
const SEARCHES_MAX: f64 = 2000.0;
/// Timed runs of a round.
const RUNS: usize = 24;

/// How a tree came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grown {
    /// All levels full but the last.
    Complete,
    /// All levels full: descents end where the processor expects them to.
    Full,
    /// As random insertions leave it.
    Random,
}

/// A tree in six layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    nodes: u32,
    grown: Grown,
    pages: PageSize,
}

impl Case {
    /// The layouts that are held against each other.
    fn layouts(self) -> Vec<Layout> {
        let (random, breadth) = (Layout::Random { seed: 11 }, Layout::BreadthFirst);
        let block_bytes = 64;
        match self.grown {
            Grown::Full => vec![random, breadth],
            Grown::Complete | Grown::Random => vec![
                random,
                breadth,
                Layout::DepthFirst,
                Layout::SubtreeCluster { block_bytes },
                Layout::VanEmdeBoas,
                Layout::ClusterVanEmdeBoas { block_bytes },
            ],
        }
    }

    /// How the tree is gone through.
    fn ways(self) -> &'static [(SearchStyle, Overlap)] {
        match self.grown {
            Grown::Full => &[(SearchStyle::BranchFree, Overlap::Independent)],
            Grown::Complete | Grown::Random => &[
                (SearchStyle::Branches, Overlap::Dependent),
                (SearchStyle::BranchFree, Overlap::Dependent),
            ],
        }
    }

    fn shape(self) -> Shape {
        match self.grown {
            Grown::Complete | Grown::Full => Shape::complete_binary(self.nodes),
            Grown::Random => Shape::random_binary(self.nodes, 42),
        }
    }

    /// What goes through the tree: searches that end at each node equally often, or descents that
    /// end where children are missing.
    fn predictor(self, shape: &Shape, style: SearchStyle, overlap: Overlap) -> Predictor {
        let predictor = match overlap {
            Overlap::Dependent => Predictor::new(shape),
            Overlap::Independent => {
                let missing = |v| 2.0 - shape.children(v).len() as f64;
                let weights: Vec<f64> = (0..self.nodes).map(missing).collect();
                Predictor::weighted(shape, &weights)
            }
        };
        predictor.style(style).overlap(overlap)
    }
}

/// One layout of one tree: what the clock said and what was predicted.
#[derive(Clone, Debug, PartialEq)]
struct Timed {
    /// Number of nodes.
    nodes: u32,
    /// The tree's shape.
    grown: Grown,
    /// Pages that it lies in.
    pages: PageSize,
    /// Where its nodes lie.
    layout: Layout,
    /// How it is searched.
    style: SearchStyle,
    /// Whether searches wait for each other.
    overlap: Overlap,
    /// Nanoseconds of a search: the lower quartile of many short runs.
    measured_ns: f64,
    /// Nanoseconds of a search as predicted.
    predicted_ns: f64,
    /// What the prediction allows the clock.
    band: ErrorBand,
}

impl Timed {
    /// Measured over predicted.
    fn ratio(&self) -> f64 {
        self.measured_ns / self.predicted_ns
    }

    /// How far off the prediction is, as a share of what was measured.
    fn error(&self) -> f64 {
        (self.predicted_ns / self.measured_ns - 1.0).abs()
    }

    /// Whether the clock kept within the prediction's band.
    fn within_band(&self) -> bool {
        (self.band.low..=self.band.high).contains(&self.ratio())
    }

    /// Whether both are of the same tree, searched in the same way.
    fn comparable(&self, other: &Timed) -> bool {
        (self.nodes, self.grown, self.pages, self.style, self.overlap)
            == (
                other.nodes,
                other.grown,
                other.pages,
                other.style,
                other.overlap,
            )
    }
}

/// Everything that was timed.
#[derive(Clone, Debug, Default)]
struct ClockReport {
    /// One entry for each layout, tree and way of searching.
    timed: Vec<Timed>,
    /// How quiet it was at each calibration.
    verdicts: Vec<Verdict>,
}

impl ClockReport {
    /// Builds, calibrates and measures. Needs 2 GB of memory.
    fn measure(effort: Effort) -> Result<ClockReport, ProbeError> {
        let mut report = ClockReport::default();
        let cases = cases(effort);
        for (i, &case) in cases.iter().enumerate() {
            progress(&format!("tree {} of {} by the clock", i + 1, cases.len()));
            report.time(case, effort)?;
        }
        Ok(report)
    }

    /// Adds one tree.
    fn time(&mut self, case: Case, effort: Effort) -> Result<(), ProbeError> {
        let shape = case.shape();
        let Ok(node) = NodeExtent::new(NODE_BYTES, 8) else {
            return Err(ProbeError::NodeTooSmall { bytes: NODE_BYTES });
        };
        let layouts = case.layouts();
        let placements: Vec<Placement> = layouts
            .iter()
            .map(|layout| layout.place(&shape, node))
            .collect();
        let mut trees = placements
            .iter()
            .map(|placement| TreeProbe::new(&shape, placement, node, case.pages))
            .collect::<Result<Vec<_>, _>>()?;
        let machine = Machine::calibrate(CalibrateOptions::quick());
        let quietness = machine.evidence.quietness.as_ref();
        self.verdicts.extend(quietness.map(|heard| heard.verdict));
        let rounds = match effort {
            Effort::Quick => 4,
            Effort::Full => 6,
        };
        let mut samples = vec![vec![Vec::new(); layouts.len()]; case.ways().len()];
        for _ in 0..rounds {
            for (i, tree) in trees.iter_mut().enumerate() {
                let warm_ns = tree.random_search_ns(SearchStyle::BranchFree, WARM_SEARCHES);
                let searches = (RUN_NS / warm_ns.max(1.0)).clamp(50.0, SEARCHES_MAX);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "clamped to small numbers"
                )]
                let searches = searches as u32;
                for (&(style, overlap), samples) in case.ways().iter().zip(&mut samples) {
                    samples[i].extend((0..RUNS).map(|_| match overlap {
                        Overlap::Dependent => tree.random_search_ns(style, searches),
                        Overlap::Independent => tree.random_descent_ns(style, overlap, searches),
                    }));
                }
            }
        }
        drop(trees);
        for (&(style, overlap), samples) in case.ways().iter().zip(samples) {
            let predictor = case.predictor(&shape, style, overlap);
            for ((&layout, placement), samples) in layouts.iter().zip(&placements).zip(samples) {
                self.timed.push(Timed {
                    nodes: case.nodes,
                    grown: case.grown,
                    pages: case.pages,
                    layout,
                    style,
                    overlap,
                    measured_ns: lower_quartile(samples),
                    predicted_ns: predictor.predict(placement, node, case.pages, &machine).ns,
                    band: machine.error_band(),
                });
            }
        }
        Ok(())
    }

    fn of(&self, overlap: Overlap) -> impl Iterator<Item = &Timed> {
        self.timed
            .iter()
            .filter(move |timed| timed.overlap == overlap)
    }

    /// Mean error of dependent searches, or of independent ones; `None` when there are none.
    fn error_mean(&self, overlap: Overlap) -> Option<f64> {
        mean(self.of(overlap).map(Timed::error))
    }

    /// How much slower than predicted dependent searches were on the whole: the geometric mean of
    /// measured over predicted.
    fn bias(&self) -> Option<f64> {
        mean(self.of(Overlap::Dependent).map(|timed| timed.ratio().ln())).map(f64::exp)
    }

    /// The part of the dependent searches within the band of their prediction.
    fn within_band(&self) -> Option<f64> {
        mean(
            self.of(Overlap::Dependent)
                .map(|timed| f64::from(u8::from(timed.within_band()))),
        )
    }

    /// The dependent searches with the largest error.
    fn worst(&self) -> Option<&Timed> {
        self.of(Overlap::Dependent)
            .max_by(|a, b| a.error().total_cmp(&b.error()))
    }

    /// Pairs of layouts of the same tree, searched in the same way one after the other, whose times
    /// differ by more than 10 %: how many the model puts in the right order, and how many there
    /// are.
    fn pairs(&self) -> (usize, usize) {
        let timed: Vec<&Timed> = self.of(Overlap::Dependent).collect();
        let (mut right, mut all) = (0, 0);
        for (i, a) in timed.iter().enumerate() {
            for b in timed[..i].iter().filter(|b| a.comparable(b)) {
                if (a.measured_ns / b.measured_ns).ln().abs() > CLEAR_RATIO.ln() {
                    all += 1;
                    right += usize::from(
                        (a.measured_ns < b.measured_ns) == (a.predicted_ns < b.predicted_ns),
                    );
                }
            }
        }
        (right, all)
    }

    /// The share of the pairs in the right order; `None` when no pair differs clearly.
    fn order_agreement(&self) -> Option<f64> {
        let (right, all) = self.pairs();
        (all > 0).then(|| right as f64 / all as f64)
    }

    /// The worst reading of all calibrations.
    fn verdict(&self) -> Option<Verdict> {
        self.verdicts.iter().copied().max()
    }

    /// The rows of `model validate`. On a machine `shared` with others twice the error is allowed.
    fn rows(&self, shared: bool) -> Vec<Row> {
        let percent = |share: Option<f64>| share.map_or(f64::NAN, |share| 100.0 * share);
        let heard = self
            .verdict()
            .map_or("unknown".to_owned(), |v| v.to_string());
        let worst = self.worst().map_or(String::new(), |worst| {
            format!(
                " The worst is a {:?} tree of {} nodes, layout {}, {} pages: {:.0} ns measured, \
                 {:.0} predicted.",
                worst.grown,
                worst.nodes,
                worst.layout,
                worst.pages,
                worst.measured_ns,
                worst.predicted_ns
            )
        });
        let (right, all) = self.pairs();
        vec![
            Row {
                name: "wall_clock_error_mean",
                value: self.error_mean(Overlap::Dependent),
                allowed: if shared { 0.20 } else { 0.10 },
                bound: Bound::AtMost,
                note: format!(
                    "{} timings. In the mean, {:.2} times as long as predicted. {:.0} % lie within \
                     the stated band. The machine was {heard}{}.{worst} Of independent searches, \
                     the mean error is {:.0} %.",
                    self.of(Overlap::Dependent).count(),
                    self.bias().unwrap_or(f64::NAN),
                    percent(self.within_band()),
                    if shared { " and is shared" } else { "" },
                    percent(self.error_mean(Overlap::Independent)),
                ),
            },
            Row {
                name: "layout_order_agreement",
                value: self.order_agreement(),
                allowed: 0.95,
                bound: Bound::AtLeast,
                note: format!(
                    "The clock and the model agree on {right} of {all} pairs of layouts that \
                     differ by more than 10 %."
                ),
            },
        ]
    }
}

/// The rows `wall_clock_error_mean` and `layout_order_agreement`; without memory for the trees,
/// rows without values.
pub(super) fn rows(effort: Effort) -> Vec<Row> {
    let shared = Topology::this().virtualised.value;
    match ClockReport::measure(effort) {
        Ok(report) => report.rows(shared),
        Err(error) => {
            let mut rows = ClockReport::default().rows(shared);
            for row in &mut rows {
                row.note = error.to_string();
            }
            rows
        }
    }
}

/// Trees of 2^16 to 2^22 nodes, of both shapes, in pages of either size in turns, and some full
/// ones; in the quick form one of every second size.
fn cases(effort: Effort) -> Vec<Case> {
    let case = |bits: u32, grown, pages| Case {
        nodes: match grown {
            Grown::Random => 1 << bits,
            // A whole power of two would put nodes powers of two apart, which is a matter of sets.
            Grown::Complete => (1 << bits) / 10 * 9,
            Grown::Full => (1 << bits) - 1,
        },
        grown,
        pages,
    };
    let (small, huge) = (PageSize::Small4K, PageSize::Huge2M);
    match effort {
        Effort::Quick => vec![
            case(16, Grown::Random, small),
            case(18, Grown::Complete, huge),
            case(20, Grown::Random, huge),
            case(22, Grown::Random, small),
            case(20, Grown::Full, huge),
        ],
        Effort::Full => (16..=22)
            .flat_map(|bits| {
                let (one, other) = if bits % 2 == 0 {
                    (small, huge)
                } else {
                    (huge, small)
                };
                [
                    case(bits, Grown::Random, one),
                    case(bits, Grown::Complete, other),
                ]
            })
            .chain([16, 18, 20, 22].map(|bits| case(bits, Grown::Full, huge)))
            .collect(),
    }
}

fn lower_quartile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 4).copied().unwrap_or(f64::NAN)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(layout: Layout, overlap: Overlap, measured_ns: f64, predicted_ns: f64) -> Timed {
        Timed {
            nodes: 1000,
            grown: Grown::Random,
            pages: PageSize::Small4K,
            layout,
            style: SearchStyle::Branches,
            overlap,
            measured_ns,
            predicted_ns,
            band: ErrorBand {
                low: 0.8,
                high: 1.25,
            },
        }
    }

    fn report() -> ClockReport {
        let one =
            |layout, measured, predicted| timed(layout, Overlap::Dependent, measured, predicted);
        ClockReport {
            timed: vec![
                one(Layout::Random { seed: 1 }, 400.0, 500.0),
                one(Layout::DepthFirst, 300.0, 300.0),
                one(Layout::BreadthFirst, 200.0, 310.0),
                // Within 10 % of the one before.
                one(Layout::VanEmdeBoas, 190.0, 320.0),
                timed(Layout::VanEmdeBoas, Overlap::Independent, 100.0, 130.0),
            ],
            verdicts: vec![Verdict::Quiet, Verdict::Busy],
        }
    }

    #[test]
    fn claims_follow_from_what_was_timed() {
        let report = report();
        // Of six pairs, five differ clearly; two of them are ranked wrong.
        assert_eq!(report.pairs(), (3, 5));
        let errors = [0.25, 0.0, 0.55, 130.0 / 190.0];
        let expected = errors.iter().sum::<f64>() / 4.0;
        let close = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-9);
        assert!(close(report.error_mean(Overlap::Dependent), expected));
        assert!(close(report.error_mean(Overlap::Independent), 0.3));
        assert!(close(report.within_band(), 0.5));
        assert!(report.bias().is_some_and(|bias| bias < 1.0));
        assert_eq!(
            report.worst().map(|worst| worst.layout),
            Some(Layout::VanEmdeBoas)
        );
        assert_eq!(report.verdict(), Some(Verdict::Busy));
        let rows = report.rows(true);
        assert!(close(rows[1].value, 0.6) && !rows[0].ok() && !rows[1].ok());
        assert!(rows[0].note.contains("busy"), "{}", rows[0].note);
    }

    #[test]
    fn nothing_timed_claims_nothing() {
        let rows = ClockReport::default().rows(false);
        assert!(rows.iter().all(|row| row.value.is_none()));
        assert!((rows[0].allowed - 0.1).abs() < 1e-12);
    }

    #[test]
    fn trees_of_all_sizes_are_timed() {
        for effort in [Effort::Quick, Effort::Full] {
            let cases = cases(effort);
            let nodes = |bits: u32| (1u32 << bits) * 9 / 10..=1 << bits;
            assert!(cases.iter().any(|case| nodes(16).contains(&case.nodes)));
            assert!(cases.iter().any(|case| nodes(22).contains(&case.nodes)));
            for pages in [PageSize::Small4K, PageSize::Huge2M] {
                for grown in [Grown::Random, Grown::Complete] {
                    assert!(cases.iter().any(|case| case.pages == pages));
                    assert!(cases.iter().any(|case| case.grown == grown));
                }
            }
        }
        assert_eq!(cases(Effort::Full).len(), 18);
    }
}
