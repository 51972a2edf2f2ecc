//! Points of memory, and which of them an operation reads, in which order.
//!
//! A *point* is a piece of memory that is read at once: a node of a tree, one key of a B-tree's
//! node, a bucket of a hash table. An *operation* reads points one after another. One random choice
//! fixes them all: the key, the gap where an absent key would lie, the first key of a range. This
//! choice is the *ticket*; tickets are numbered so that
//!
//! ```text
//! point v is read  <=>  start_v <= ticket < end_v
//! ```
//!
//! So the tickets that touch a *block* are a union of intervals, and its
//! [probability](crate::BlockProbabilities) is the length of that union. The simulator draws its
//! operations from the same description.

mod operations;
#[cfg_attr(
    not(feature = "structures"),
    expect(dead_code, reason = "some parts are for structures")
)]
mod points;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use crate::probability::{Access, BlockProbabilities, Lengths, Reads};
use crate::{Placement, Shape, Visits};
pub use operations::Operations;
#[cfg_attr(
    not(feature = "structures"),
    expect(unused_imports, reason = "some are for structures")
)]
pub(crate) use points::{Order, Points, Role, Span, Tickets, nested, total};

/// Points of memory, and how often operations touch them.
///
/// Made by [`Built::accesses`](crate::Built::accesses), or by [`searches`](Accesses::searches) for
/// a forest whose nodes are read whole.
#[derive(Clone, Debug)]
pub struct Accesses {
    points: Arc<Points>,
    /// By point.
    addresses: Vec<u64>,
    /// By point, the tickets of the operations that read it.
    spans: Vec<Span>,
    tickets: Tickets,
    order: Order,
    visits: Visits,
}

impl Accesses {
    /// Searches in a forest that end at each node equally often, or with a frequency in proportion
    /// to its weight. A visit reads the first `touched_bytes` bytes of a node. O(n).
    ///
    /// # Panics
    /// When placement or weights are not one for each node.
    pub fn searches(
        shape: &Shape,
        placement: &Placement,
        touched_bytes: u32,
        weights: Option<&[f64]>,
    ) -> Accesses {
        shape.check_len(placement.len(), "place");
        let points = Points::of_nodes(shape.clone(), Lengths::Uniform(touched_bytes));
        let ends = points.found().to_vec();
        let weights = weights.map(|weights| {
            shape.check_len(weights.len(), "weight");
            ends.iter().map(|&v| weights[v as usize]).collect()
        });
        let spans = points.keys_below().to_vec();
        Accesses::new(
            Arc::new(points),
            placement.offsets().to_vec(),
            spans,
            Tickets::new(ends, weights),
            Order::Path,
        )
    }

    /// Walks that read the first `touched_bytes` bytes of the nodes in `order`, which may be that
    /// of the links ([`Shape::preorder`]) or any other one. O(n).
    ///
    /// # Panics
    /// When the placement has not one address for each node.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::{Accesses, Layout, Machine, NodeExtent, PageSize, Predictor, Shape};
    ///
    /// let (shape, node) = (Shape::random_binary(4000, 1), NodeExtent::new(32, 8)?);
    /// let misses = |layout: Layout| {
    ///     let placement = layout.place(&shape, node);
    ///     let walk = Accesses::in_order(&shape, &placement, node.bytes, shape.preorder());
    ///     let (predictor, machine) = (Predictor::of(&walk), Machine::preset("zen4-desktop")?);
    ///     let prediction = predictor.predict_accesses(&walk, PageSize::Small4K, &machine);
    ///     Ok::<_, Box<dyn std::error::Error>>(prediction.misses("L1").unwrap_or(0.0))
    /// };
    /// // Two nodes share a line: each line misses once, or nearly twice.
    /// assert!(misses(Layout::Preorder)? < 2000.5);
    /// assert!(misses(Layout::Random { seed: 1 })? > 2800.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_order(
        shape: &Shape,
        placement: &Placement,
        touched_bytes: u32,
        order: Vec<u32>,
    ) -> Accesses {
        shape.check_len(placement.len(), "place");
        let points = Points::of_nodes(shape.clone(), Lengths::Uniform(touched_bytes));
        Accesses::new(
            Arc::new(points),
            placement.offsets().to_vec(),
            vec![Span { start: 0, end: 1 }; shape.len()],
            Tickets::single(),
            Order::Sequence(order),
        )
    }

    /// Operations over `points`. There are as many addresses and spans as points, and spans lie
    /// within the tickets.
    pub(crate) fn new(
        points: Arc<Points>,
        addresses: Vec<u64>,
        spans: Vec<Span>,
        tickets: Tickets,
        reads_in: Order,
    ) -> Accesses {
        debug_assert_eq!(addresses.len(), points.len(), "one address for each point");
        debug_assert_eq!(spans.len(), points.len(), "one span for each point");
        let sums: Vec<f64> = spans.iter().map(|&span| tickets.measure(span)).collect();
        let order = points::by_start(&spans, tickets.count());
        let of_point = |&v: &u32| tickets.interval(spans[v as usize]);
        let visits = Visits {
            intervals: order.iter().map(of_point).collect(),
            order,
            ..Visits::default()
        };
        let visits = visits.with_totals(points.shape(), &sums);
        Accesses {
            points,
            addresses,
            spans,
            tickets,
            order: reads_in,
            visits,
        }
    }

    /// How often points are visited.
    ///
    /// Mispredictions are those of searches: at each point the best static guess of the next one.
    pub fn visits(&self) -> &Visits {
        &self.visits
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The forest of points: which point's reading leads to which. A parent's number is below its
    /// children's.
    pub fn shape(&self) -> &Shape {
        self.points.shape()
    }

    /// Where a point lies and how much of it is read.
    ///
    /// # Panics
    /// When there is no such point.
    pub fn access(&self, point: u32) -> Access {
        Access {
            address: self.addresses[point as usize],
            bytes: self.points.lengths().get(point),
        }
    }

    /// Exact probability that an operation touches each block of `block_bytes` bytes. O(n), for
    /// sparse addresses O(n log n).
    ///
    /// # Panics
    /// When `block_bytes` is not a power of two.
    pub fn block_probabilities(&self, block_bytes: u64) -> BlockProbabilities {
        BlockProbabilities::of_reads(self.reads(), block_bytes, |_| true)
    }

    pub(crate) fn reads(&self) -> Reads<'_> {
        Reads {
            visits: &self.visits,
            addresses: &self.addresses,
            lengths: self.points.lengths(),
        }
    }

    /// The points that every operation reads, in this order, where all are the same: walks.
    pub fn fixed_sequence(&self) -> Option<&[u32]> {
        match &self.order {
            Order::Sequence(points) => Some(points),
            _ => None,
        }
    }

    /// Whether an operation reads a path from a root, and then at most keys that follow its end.
    pub(crate) fn reads_paths_on(&self) -> bool {
        matches!(self.order, Order::Path | Order::Range { .. })
    }

    /// Probability that an operation reads a point.
    ///
    /// # Panics
    /// When there is no such point.
    pub fn reach(&self, point: u32) -> f64 {
        self.tickets.measure(self.spans[point as usize])
    }

    /// Whether an operation reads the points from a root to where it ends, each once.
    pub fn is_paths(&self) -> bool {
        matches!(self.order, Order::Path)
    }

    /// Random operations, the same for equal seeds.
    pub fn operations(&self, seed: u64) -> Operations<'_> {
        Operations::new(self, seed)
    }
}
