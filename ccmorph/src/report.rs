//! What a morph did.

use crate::colour::ColourReport;
use crate::nearness::Nearness;
use crate::plan::Operation;
use ccmodel::{Basis, Gain, Layout, PageSize, Prediction, WORTHWHILE_SPEEDUP};
use std::fmt;
use std::time::{Duration, Instant};

/// The result of [`Morph::run_if_worthwhile`](crate::Morph::run_if_worthwhile).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The morph pays, and was done.
    Morphed {
        /// What was done.
        report: Box<Report>,
        /// The predicted gain.
        gain: Gain,
    },
    /// The morph does not pay, and nothing has moved.
    NotWorthwhile {
        /// The predicted gain.
        gain: Gain,
    },
    /// There was no node that could be moved.
    Empty,
}

/// What a morph did, and its predicted gain.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// How many nodes moved.
    pub nodes: usize,
    /// The size of a node, in bytes; of several types the mean, rounded up to 8.
    pub node_bytes: usize,
    /// The bytes from the lowest node to the end of the highest. Cluster layouts leave gaps.
    pub span_bytes: u64,
    /// The bytes of lists that the morph needed beside the new places while it ran.
    pub lists_bytes: u64,
    /// Whether each node lies where the layout wants it; `false` only [under another
    /// allocator](crate::Morph::under_any_allocator).
    pub placed: bool,
    /// The [operation](crate::Morph::operation) that was set, or a walk for an
    /// [order](crate::Morph::run_ordered_by). `None` if none was set: the layout is then for
    /// searches.
    pub operation: Option<Operation>,
    /// The layout used; [`Preorder`](Layout::Preorder) also where the program
    /// [gave the order](crate::Morph::run_ordered_by).
    pub layout: Layout,
    /// The predictions where the model chose the layout: the layout taken, then the best first; see
    /// [`basis`](Report::basis). Empty otherwise.
    pub ranking: Vec<(Layout, Prediction)>,
    /// The pages that the ranking assumes, by the size of the nodes. The other predictions are for
    /// the [actual pages](Report::huge_pages).
    pub ranked_for: Option<PageSize>,
    /// What the model's choice rests on, if it chose the layout.
    pub basis: Option<Basis>,
    /// The use of a cache's colours, when [asked for](crate::Morph::colour).
    pub colour: Option<ColourReport>,
    /// The predicted cost of an operation before, if [asked for](crate::Morph::predict); of a
    /// search when no operation was set.
    pub predicted_before: Option<Prediction>,
    /// The same after the morph; also set where the choice of the layout predicted it.
    pub predicted_after: Option<Prediction>,
    /// How many nodes have a parent. For a [walk](Operation::Walk), the number of its steps.
    pub edges: usize,
    /// How close children lay to their parents, or each node of a walk to the one before it.
    pub near_before: Nearness,
    /// The same after the morph.
    pub near_after: Nearness,
    /// Whether the system was asked for huge pages, and agreed to try.
    pub huge_pages: bool,
    /// How long each phase took.
    pub times: PhaseTimes,
}

impl Report {
    /// The report on a structure without nodes that could move.
    pub(crate) fn of_nothing(layout: Layout, node_bytes: usize) -> Report {
        Report {
            nodes: 0,
            node_bytes,
            span_bytes: 0,
            lists_bytes: 0,
            placed: true,
            operation: None,
            layout,
            ranking: Vec::new(),
            ranked_for: None,
            basis: None,
            colour: None,
            predicted_before: None,
            predicted_after: None,
            edges: 0,
            near_before: Nearness::default(),
            near_after: Nearness::default(),
            huge_pages: false,
            times: PhaseTimes::default(),
        }
    }

    /// The bytes of all nodes together, without gaps.
    pub fn bytes(&self) -> u64 {
        self.nodes as u64 * self.node_bytes as u64
    }

    /// Whether the operation that was set is faster than before, by the predictions.
    ///
    /// [`Unknown`](Verdict::Unknown) without an [operation](crate::Morph::operation) or
    /// [predictions](crate::Morph::predict), and where these
    /// [fail](Prediction::crowded_levels) for searches or paths.
    pub fn verdict(&self) -> Verdict {
        let predicted = (&self.predicted_before, &self.predicted_after);
        let (Some(operation), (Some(before), Some(after))) = (self.operation, predicted) else {
            return Verdict::Unknown;
        };
        let is_crowded = |prediction: &Prediction| prediction.crowded_levels().next().is_some();
        if operation != Operation::Walk && (is_crowded(before) || is_crowded(after)) {
            Verdict::Unknown
        } else if before.ns >= after.ns * WORTHWHILE_SPEEDUP && before.ns > after.ns {
            Verdict::Better
        } else if after.ns >= before.ns * WORTHWHILE_SPEEDUP && after.ns > before.ns {
            Verdict::Worse
        } else {
            Verdict::Same
        }
    }

    /// The predicted speedup of an operation, if predictions were made and are not zero.
    pub fn predicted_speedup(&self) -> Option<f64> {
        let before = self.predicted_before.as_ref()?.ns;
        let after = self.predicted_after.as_ref()?.ns;
        (after > 0.0).then_some(before / after)
    }
}

/// Some lines of text for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} nodes of {} B laid out as {} over {} KiB in {:.1?}",
            self.nodes,
            self.node_bytes,
            self.layout,
            self.span_bytes.div_ceil(1024),
            self.times.total()
        )?;
        if self.edges > 0 {
            let pair = match self.operation {
                Some(Operation::Walk) => "one node and the next",
                _ => "parent and child",
            };
            write!(f, "\n{pair} in the same")?;
            let (before, after) = (self.near_before, self.near_after);
            for (what, before, after) in [
                ("64 B", before.same_64, after.same_64),
                ("256 B", before.same_256, after.same_256),
                ("4 KiB", before.same_page, after.same_page),
            ] {
                let percent = |count: usize| 100.0 * count as f64 / self.edges as f64;
                let (before, after) = (percent(before), percent(after));
                write!(f, " {what}: {before:.1}% -> {after:.1}%;")?;
            }
        }
        if let Some(colour) = &self.colour {
            let (hot, lost) = (colour.hot_nodes, colour.lost_bytes.div_ceil(1024));
            write!(f, "\n{hot} hot nodes by colour; {lost} KiB lost to gaps")?;
            if let Some(gain) = &colour.gain {
                write!(f, ", {:+.1} ns predicted to be saved a search", gain.ns())?;
            }
        }
        if let (Some(before), Some(after)) = (&self.predicted_before, &self.predicted_after) {
            let operation = self.operation.unwrap_or(Operation::Search);
            let (before, after) = (before.ns, after.ns);
            write!(
                f,
                "\npredicted ns a {operation}: {before:.0} -> {after:.0}; "
            )?;
            match self.operation {
                None => f.write_str("of walks it says nothing (see `Morph::operation`)")?,
                Some(_) => write!(f, "{}", self.verdict())?,
            }
        }
        Ok(())
    }
}

/// What a morph did to the operation that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is predicted to be faster, by at least [`WORTHWHILE_SPEEDUP`].
    Better,
    /// It is predicted to take as long, as far as predictions can tell.
    Same,
    /// It is predicted to be slower, by at least [`WORTHWHILE_SPEEDUP`].
    Worse,
    /// The predictions are not enough to tell.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Same => "the same, as far as predictions can tell",
            Verdict::Worse => "worse",
            Verdict::Unknown => "cannot say",
        })
    }
}

/// How long each phase of a morph took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhaseTimes {
    /// Walking the structure.
    pub traverse: Duration,
    /// Choosing the layout, computing it, predicting.
    pub plan: Duration,
    /// Allocating the new places.
    pub allocate: Duration,
    /// Moving the nodes and freeing the old places.
    pub relocate: Duration,
}

impl PhaseTimes {
    /// All phases together.
    pub fn total(&self) -> Duration {
        self.traverse + self.plan + self.allocate + self.relocate
    }
}

/// Measures how long each phase takes.
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    /// The time since the last lap.
    pub(crate) fn lap(&mut self) -> Duration {
        let begin = std::mem::replace(&mut self.0, Instant::now());
        self.0 - begin
    }
}
