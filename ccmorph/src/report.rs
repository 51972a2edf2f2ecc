//! What a morph did.

use crate::colour::ColourReport;
use crate::plan::Operation;
use ccmodel::{Basis, Gain, Layout, NO_NODE, PageSize, Prediction, WORTHWHILE_SPEEDUP};
use std::fmt;
use std::time::{Duration, Instant};

/// What came of [`Morph::run_if_worthwhile`](crate::Morph::run_if_worthwhile).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It pays, and was done.
    Morphed {
        /// What was done.
        report: Box<Report>,
        /// What was expected of it.
        gain: Gain,
    },
    /// It does not pay, and nothing has moved.
    NotWorthwhile {
        /// What it would have brought and cost, and after how many operations it would have paid.
        gain: Gain,
    },
    /// There was no node that could be moved.
    Empty,
}

/// What a morph did, and what it should be worth.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// How many nodes moved.
    pub nodes: usize,
    /// The size of a node, in bytes; of several types the mean, rounded up to 8.
    pub node_bytes: usize,
    /// From the first byte of the lowest node to the last of the highest in the layout, in bytes;
    /// cluster layouts leave gaps.
    pub span_bytes: u64,
    /// What the morph needed beside the nodes' new places while it ran, in bytes: lists of nodes,
    /// links and addresses.
    pub lists_bytes: u64,
    /// Whether each node lies where the layout wants it; `false` only [under another
    /// allocator](crate::Morph::under_any_allocator).
    pub placed: bool,
    /// The operation that the morph was [told](crate::Morph::operation), or that follows from an
    /// [order](crate::Morph::run_ordered_by). `None` when the program said nothing: the layout is
    /// then one for searches.
    pub operation: Option<Operation>,
    /// The layout used; [`Preorder`](Layout::Preorder) also where the program
    /// [gave the order](crate::Morph::run_ordered_by).
    pub layout: Layout,
    /// Under [`LayoutChoice::Auto`](crate::LayoutChoice::Auto) what each candidate promised, the
    /// one taken first, then the best first, as far as they had to be compared: see
    /// [`basis`](Report::basis). Else empty.
    ///
    /// The choice comes before the places: it supposes the pages that
    /// [`ranked_for`](Report::ranked_for) says.
    pub ranking: Vec<(Layout, Prediction)>,
    /// The pages that the ranking supposes: huge ones where the nodes by themselves, without gaps,
    /// are many enough for them. Whether there are any is known only once the places are there:
    /// where [`huge_pages`](Report::huge_pages) says otherwise, the other layouts were not ranked
    /// again, and only [`predicted_before`](Report::predicted_before) and
    /// [`predicted_after`](Report::predicted_after) are for the pages that came.
    pub ranked_for: Option<PageSize>,
    /// Under [`LayoutChoice::Auto`](crate::LayoutChoice::Auto), what the choice rests on.
    pub basis: Option<Basis>,
    /// What the colours of a cache were used for, when [asked for](crate::Morph::colour).
    pub colour: Option<ColourReport>,
    /// The cost of an operation where the nodes lay before, when
    /// [predictions](crate::Morph::predict) were asked for; of a search when no operation was told.
    pub predicted_before: Option<Prediction>,
    /// The cost of an operation as the nodes lie now, when predictions were asked for or the choice
    /// made one; of a search when no operation was told.
    pub predicted_after: Option<Prediction>,
    /// How many nodes have a parent among the nodes. For a [walk](Operation::Walk), how many steps
    /// it takes from one node to the next.
    pub edges: usize,
    /// How close children lay to their parents; for a walk, each node to the one before.
    pub near_before: Nearness,
    /// How close children lie to their parents now; for a walk, each node to the one before.
    pub near_after: Nearness,
    /// Whether the system was asked for huge pages, and agreed to try.
    pub huge_pages: bool,
    /// Where the time went.
    pub times: PhaseTimes,
}

impl Report {
    /// For a structure without nodes that could move.
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

    /// Whether the operation that the morph was told is faster than before, by the predictions.
    ///
    /// It is [`Unknown`](Verdict::Unknown) without an [operation](crate::Morph::operation) or
    /// without [predictions](crate::Morph::predict), and where searches or paths touch so much of a
    /// cache that predictions fail ([`Prediction::crowded_levels`]).
    pub fn verdict(&self) -> Verdict {
        let (Some(operation), Some(before), Some(after)) = (
            self.operation,
            &self.predicted_before,
            &self.predicted_after,
        ) else {
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

    /// How many times faster an operation should be than before, when predictions were made and are
    /// not zero.
    pub fn predicted_speedup(&self) -> Option<f64> {
        let (before, after) = (
            self.predicted_before.as_ref()?.ns,
            self.predicted_after.as_ref()?.ns,
        );
        (after > 0.0).then_some(before / after)
    }
}

/// Some lines for people; programs read the fields.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            nodes,
            node_bytes,
            layout,
            ..
        } = self;
        write!(
            f,
            "{nodes} nodes of {node_bytes} B laid out as {layout} over {} KiB in {:.1?}",
            self.span_bytes.div_ceil(1024),
            self.times.total()
        )?;
        if self.edges > 0 {
            let percent = |count: usize| 100.0 * count as f64 / self.edges as f64;
            let pair = match self.operation {
                Some(Operation::Walk) => "one node and the next",
                _ => "parent and child",
            };
            write!(f, "\n{pair} in the same")?;
            for (what, before, after) in [
                ("64 B", self.near_before.same_64, self.near_after.same_64),
                ("256 B", self.near_before.same_256, self.near_after.same_256),
                (
                    "4 KiB",
                    self.near_before.same_page,
                    self.near_after.same_page,
                ),
            ] {
                write!(
                    f,
                    " {what}: {:.1}% -> {:.1}%;",
                    percent(before),
                    percent(after)
                )?;
            }
        }
        if let Some(colour) = &self.colour {
            write!(
                f,
                "\n{} hot nodes by colour; {} KiB lost to gaps",
                colour.hot_nodes,
                colour.lost_bytes.div_ceil(1024)
            )?;
            if let Some(gain) = &colour.gain {
                write!(f, ", {:+.1} ns predicted to be saved a search", gain.ns())?;
            }
        }
        if let (Some(before), Some(after)) = (&self.predicted_before, &self.predicted_after) {
            let operation = self.operation.unwrap_or(Operation::Search);
            write!(
                f,
                "\npredicted ns a {operation}: {:.0} -> {:.0}; ",
                before.ns, after.ns
            )?;
            match (self.operation, self.verdict()) {
                (None, _) => f.write_str("of walks it says nothing (see `Morph::operation`)"),
                (_, verdict) => write!(f, "{verdict}"),
            }?;
        }
        Ok(())
    }
}

/// What a morph did to the operation that it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is predicted to be faster, by at least [`WORTHWHILE_SPEEDUP`].
    Better,
    /// It is predicted to take as long, as far as predictions can tell.
    Same,
    /// It is predicted to be slower, by at least [`WORTHWHILE_SPEEDUP`].
    Worse,
    /// Nothing is known of it.
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

/// How many pairs of nodes, parent and child or one node of a walk and the next, begin within the
/// same aligned piece of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nearness {
    /// In the same 64 bytes, a cache line.
    pub same_64: usize,
    /// In the same 256 bytes, about what an access to memory brings in.
    pub same_256: usize,
    /// In the same page of 4096 bytes.
    pub same_page: usize,
}

/// Distances of children from their parents, counted by the highest bit in which two addresses
/// differ.
#[derive(Clone, Debug)]
pub(crate) struct Distances([usize; u64::BITS as usize]);

impl Distances {
    /// None yet.
    pub(crate) fn new() -> Distances {
        Distances([0; u64::BITS as usize])
    }

    /// For nodes with these parents, at the addresses that `address` tells by their number. O(n).
    pub(crate) fn of(parents: &[u32], address: impl Fn(usize) -> u64) -> Distances {
        let mut distances = Distances::new();
        for (v, &parent) in parents.iter().enumerate() {
            if parent != NO_NODE {
                distances.add(address(parent as usize), address(v));
            }
        }
        distances
    }

    /// For a walk over nodes in this order, from each to the next. O(n).
    pub(crate) fn along(order: &[u32], address: impl Fn(usize) -> u64) -> Distances {
        let mut distances = Distances::new();
        for step in order.windows(2) {
            distances.add(address(step[0] as usize), address(step[1] as usize));
        }
        distances
    }

    /// Counts a child.
    #[inline]
    pub(crate) fn add(&mut self, parent: u64, child: u64) {
        self.0[((parent ^ child) | 1).ilog2() as usize] += 1;
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().sum()
    }

    /// How many are how near.
    pub(crate) fn nearness(&self) -> Nearness {
        let within = |bits: usize| self.0[..bits].iter().sum();
        Nearness {
            same_64: within(6),
            same_256: within(8),
            same_page: within(12),
        }
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

/// Tells how long each phase takes.
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
