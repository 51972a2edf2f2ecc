//! Predicted nanoseconds compared with the clock.
//!
//! Binary search trees of 24-byte nodes lie where six layouts put them and are searched for random
//! keys. The machine is calibrated right before the trees of each size are measured: on a shared
//! machine, effective capacities change. Layouts are measured in turns and in short runs, and the
//! lower quartile counts, so that other programs disturb all layouts or none. Independent
//! operations are timed as branch-free descents in full trees, since searches that stop early do
//! not overlap: see [`Overlap`].

use ccmodel::evidence::Verdict;
use ccmodel::{
    CalibrateOptions, Error, Layout, Machine, NodeExtent, Overlap, PageSize, Placement, Predictor,
    SearchStyle, Shape, Topology, TreeProbe,
};

use super::{Effort, Row};
use crate::progress;
use crate::sample::node;

pub(super) const ROWS: [&str; 2] = ["wall_clock_error_mean", "layout_order_agreement"];

/// A key and two links.
const NODE: NodeExtent = node(24);
/// Pairs of layouts closer than this are not ranked.
const CLEAR_RATIO: f64 = 1.1;
const WARM_SEARCHES: u32 = 30_000;
/// Length of a timed run. On a busy machine, runs of several milliseconds are always disturbed.
const RUN_NS: f64 = 250_000.0;
const SEARCHES_MAX: f64 = 2000.0;
const RUNS: usize = 24;
/// The first two are those of full trees.
const LAYOUTS: [Layout; 6] = [
    Layout::Random { seed: 11 },
    Layout::BreadthFirst,
    Layout::DepthFirst,
    Layout::SubtreeCluster { block_bytes: 64 },
    Layout::VanEmdeBoas,
    Layout::ClusterVanEmdeBoas { block_bytes: 64 },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grown {
    /// All levels full but the last.
    Complete,
    /// All levels full: descents end where the processor expects them to.
    Full,
    /// By random insertions.
    Random,
}

/// A tree, to be searched in several layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    nodes: u32,
    grown: Grown,
    pages: PageSize,
}

/// One layout of one tree: what the clock says and what is predicted.
#[derive(Clone, Debug, PartialEq)]
struct Timed {
    case: Case,
    layout: Layout,
    style: SearchStyle,
    overlap: Overlap,
    /// Nanoseconds of a search: the lower quartile of many short runs.
    measured_ns: f64,
    predicted_ns: f64,
    /// Whether it took as long as the prediction allows.
    is_within_band: bool,
}

impl Timed {
    /// How far off the prediction is, as a share of what was measured.
    fn error(&self) -> f64 {
        (self.predicted_ns / self.measured_ns - 1.0).abs()
    }
}

#[derive(Debug, Default)]
struct ClockReport {
    timed: Vec<Timed>,
    /// How quiet the machine was at each calibration.
    verdicts: Vec<Verdict>,
}

impl ClockReport {
    fn time(&mut self, case: Case, effort: Effort) -> Result<(), Error> {
        let shape = match case.grown {
            Grown::Complete | Grown::Full => Shape::complete_binary(case.nodes),
            Grown::Random => Shape::random_binary(case.nodes, 42),
        };
        let dependent = [SearchStyle::Branches, SearchStyle::BranchFree];
        let dependent = dependent.map(|style| (style, Overlap::Dependent));
        let (layouts, searches): (&[Layout], &[_]) = match case.grown {
            Grown::Full => (
                &LAYOUTS[..2],
                &[(SearchStyle::BranchFree, Overlap::Independent)],
            ),
            Grown::Complete | Grown::Random => (&LAYOUTS, &dependent),
        };
        let place = |layout: &Layout| layout.place(&shape, NODE);
        let placements: Vec<Placement> = layouts.iter().map(place).collect();
        let mut trees = Vec::new();
        for placement in &placements {
            trees.push(TreeProbe::new(&shape, placement, NODE, case.pages)?);
        }
        let machine = Machine::calibrate(CalibrateOptions::quick());
        let quietness = machine.evidence.quietness.as_ref();
        self.verdicts.extend(quietness.map(|heard| heard.verdict));
        let rounds = match effort {
            Effort::Quick => 4,
            Effort::Full => 6,
        };
        let mut samples = vec![vec![Vec::new(); trees.len()]; searches.len()];
        for _ in 0..rounds {
            for (i, tree) in trees.iter_mut().enumerate() {
                let warm_ns = tree.random_search_ns(SearchStyle::BranchFree, WARM_SEARCHES);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "clamped to small numbers"
                )]
                let count = (RUN_NS / warm_ns.max(1.0)).clamp(50.0, SEARCHES_MAX) as u32;
                for (&(style, overlap), samples) in searches.iter().zip(&mut samples) {
                    samples[i].extend((0..RUNS).map(|_| match overlap {
                        Overlap::Dependent => tree.random_search_ns(style, count),
                        Overlap::Independent => tree.random_descent_ns(style, overlap, count),
                    }));
                }
            }
        }
        drop(trees);
        let band = machine.error_band();
        for (&(style, overlap), samples) in searches.iter().zip(samples) {
            // Searches end at each node equally often, descents where children are missing.
            let missing = |v| 2.0 - shape.children(v).len() as f64;
            let predictor = match overlap {
                Overlap::Dependent => Predictor::new(&shape),
                Overlap::Independent => {
                    let weights: Vec<f64> = (0..case.nodes).map(missing).collect();
                    Predictor::weighted(&shape, &weights)
                }
            };
            let predictor = predictor.style(style).overlap(overlap);
            for ((&layout, placement), samples) in layouts.iter().zip(&placements).zip(samples) {
                let measured_ns = lower_quartile(samples);
                let predicted_ns = predictor.predict(placement, NODE, case.pages, &machine).ns;
                self.timed.push(Timed {
                    case,
                    layout,
                    style,
                    overlap,
                    measured_ns,
                    predicted_ns,
                    is_within_band: (band.low..=band.high).contains(&(measured_ns / predicted_ns)),
                });
            }
        }
        Ok(())
    }

    /// The mean of something over dependent searches, or over independent ones; NaN when there are
    /// none.
    fn mean(&self, overlap: Overlap, of: impl Fn(&Timed) -> f64) -> f64 {
        let timed = { self.timed.iter() }.filter(|timed| timed.overlap == overlap);
        timed.clone().map(of).sum::<f64>() / timed.count() as f64
    }

    /// Pairs of layouts of the same tree, searched in the same way one after the other, whose times
    /// differ by more than 10 %: how many the model puts in the right order, and how many there
    /// are.
    fn pairs(&self) -> (usize, usize) {
        let (mut right, mut all) = (0, 0);
        for (i, a) in self.timed.iter().enumerate() {
            for b in &self.timed[..i] {
                let comparable = a.overlap == Overlap::Dependent
                    && (a.case, a.style, a.overlap) == (b.case, b.style, b.overlap);
                if comparable && (a.measured_ns / b.measured_ns).ln().abs() > CLEAR_RATIO.ln() {
                    all += 1;
                    let measured = a.measured_ns < b.measured_ns;
                    right += usize::from(measured == (a.predicted_ns < b.predicted_ns));
                }
            }
        }
        (right, all)
    }

    /// The [rows](ROWS). On a machine `shared` with others twice the error is allowed.
    fn rows(&self, shared: bool) -> Vec<Row> {
        let verdict = self.verdicts.iter().max();
        let heard = verdict.map_or("unknown".to_owned(), Verdict::to_string);
        let dependent = { self.timed.iter() }.filter(|timed| timed.overlap == Overlap::Dependent);
        let worst = { dependent.clone() }.max_by(|a, b| a.error().total_cmp(&b.error()));
        let worst = worst.map_or(String::new(), |worst| {
            format!(
                " The worst is {:?}, layout {}: {:.0} ns measured, {:.0} predicted.",
                worst.case, worst.layout, worst.measured_ns, worst.predicted_ns
            )
        });
        let error = self.mean(Overlap::Dependent, Timed::error);
        let ratio = |timed: &Timed| (timed.measured_ns / timed.predicted_ns).ln();
        let in_band = |timed: &Timed| f64::from(u8::from(timed.is_within_band));
        let error_note = format!(
            "{} timings. In the mean, {:.2} times as long as predicted. {:.0} % lie within the \
             stated band. The machine was {heard}{}.{worst} Of independent searches, the mean \
             error is {:.0} %.",
            dependent.count(),
            self.mean(Overlap::Dependent, ratio).exp(),
            100.0 * self.mean(Overlap::Dependent, in_band),
            if shared { " and is shared" } else { "" },
            100.0 * self.mean(Overlap::Independent, Timed::error),
        );
        let (right, all) = self.pairs();
        let agreement = (all > 0).then(|| right as f64 / all as f64);
        let agreement_note = format!(
            "The clock and the model agree on {right} of {all} pairs of layouts that differ by \
             more than 10 %."
        );
        let allowed = if shared { 0.20 } else { 0.10 };
        let error = (!error.is_nan()).then_some(error);
        vec![
            Row::at_most(ROWS[0], allowed, error, error_note),
            Row::at_least(ROWS[1], 0.95, agreement, agreement_note),
        ]
    }
}

/// The [rows](ROWS); without values where the trees, which need 2 GB, have no memory.
pub(super) fn rows(effort: Effort) -> Vec<Row> {
    let shared = Topology::this().virtualised.value;
    let mut report = ClockReport::default();
    let cases = cases(effort);
    for (i, &case) in cases.iter().enumerate() {
        progress(&format!("tree {} of {} by the clock", i + 1, cases.len()));
        if let Err(error) = report.time(case, effort) {
            let mut rows = ClockReport::default().rows(shared);
            for row in &mut rows {
                row.note = error.to_string();
            }
            return rows;
        }
    }
    report.rows(shared)
}

/// Trees of 2^16 to 2^22 nodes, of both shapes, in pages of either size in turns, and some full
/// ones; in the quick form one of every second size.
fn cases(effort: Effort) -> Vec<Case> {
    let case = |bits: u32, grown, pages| Case {
        nodes: match grown {
            Grown::Random => 1 << bits,
            // A power of two would put nodes powers of two apart, which is a matter of sets.
            Grown::Complete => (1 << bits) / 10 * 9,
            Grown::Full => (1 << bits) - 1,
        },
        grown,
        pages,
    };
    let (small, huge) = (PageSize::Small4K, PageSize::Huge2M);
    if effort == Effort::Quick {
        return vec![
            case(16, Grown::Random, small),
            case(18, Grown::Complete, huge),
            case(20, Grown::Random, huge),
            case(22, Grown::Random, small),
            case(20, Grown::Full, huge),
        ];
    }
    let mut cases = Vec::new();
    for (bits, [one, other]) in (16..=22).zip([[small, huge], [huge, small]].into_iter().cycle()) {
        cases.push(case(bits, Grown::Random, one));
        cases.push(case(bits, Grown::Complete, other));
    }
    cases.extend([16, 18, 20, 22].map(|bits| case(bits, Grown::Full, huge)));
    cases
}

fn lower_quartile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 4).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_follow_from_what_was_timed() {
        let timed = |layout, overlap, measured_ns, predicted_ns| Timed {
            case: cases(Effort::Quick)[0],
            layout,
            style: SearchStyle::Branches,
            overlap,
            measured_ns,
            predicted_ns,
            is_within_band: (0.8..=1.25).contains(&(measured_ns / predicted_ns)),
        };
        let nothing = ClockReport::default().rows(false);
        assert!(nothing.iter().all(|row| row.value.is_none()));
        let report = ClockReport {
            timed: vec![
                timed(Layout::BreadthFirst, Overlap::Dependent, 400.0, 500.0),
                timed(Layout::DepthFirst, Overlap::Dependent, 300.0, 300.0),
                timed(Layout::Hierarchical, Overlap::Dependent, 200.0, 310.0),
                // Within 10 % of the one before.
                timed(Layout::VanEmdeBoas, Overlap::Dependent, 190.0, 320.0),
                timed(Layout::VanEmdeBoas, Overlap::Independent, 100.0, 130.0),
            ],
            verdicts: vec![Verdict::Quiet, Verdict::Busy],
        };
        // Of six pairs, five differ clearly; two of them are ranked wrong.
        assert_eq!(report.pairs(), (3, 5));
        let close = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-9);
        let rows = report.rows(true);
        let errors = [0.25, 0.0, 0.55, 130.0 / 190.0];
        assert!(close(rows[0].value, errors.iter().sum::<f64>() / 4.0));
        assert!(close(rows[1].value, 0.6) && !rows[0].ok() && !rows[1].ok());
        for what in ["busy", "50 % lie", "layout veb: 190 ns", "error is 30 %"] {
            assert!(rows[0].note.contains(what), "{what}: {}", rows[0].note);
        }
    }
}
