//! A structure with its nodes, its points, and what operations do to them.

use std::sync::Arc;

use super::{Operation, Sizes, StructureError, linear};
use crate::accesses::{Accesses, Lengths, Order, Points, Role, Span, Tickets, nested, total};
use crate::keys::KeyDistribution;
use crate::{Layout, NodeExtent, Placement, Shape};

/// Where fixed memory begins is a multiple of this, as large allocations are.
const FIXED_ALIGN: u64 = 4096;

/// Where points lie.
#[derive(Clone, Debug)]
pub(super) enum Homes {
    /// Point `v` is node `v`.
    Nodes,
    /// At an offset in a node, or in the fixed memory where the node is
    /// [`NO_NODE`](crate::NO_NODE).
    Parts { nodes: Vec<u32>, offsets: Vec<u64> },
}

/// Where a search for an absent key can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// Between two keys, before the first or after the last.
    Gaps,
    /// At any null link of a point.
    NullLinks { arity: u32 },
}

/// The kind of structure, where operations differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Tree,
    SingleList,
    DoubleList,
    Hash,
}

/// A structure that was built: nodes to place, points to read.
#[derive(Clone, Debug)]
pub struct Built {
    pub(super) nodes: Shape,
    pub(super) extent: NodeExtent,
    pub(super) points: Arc<Points>,
    pub(super) homes: Homes,
    pub(super) places: Places,
    pub(super) family: Family,
    /// Memory beside the nodes.
    pub(super) fixed_bytes: u64,
    /// Keys that lie side by side and move when one is put in between.
    pub(super) runs: Vec<Span>,
}

impl Built {
    /// A tree without fixed memory.
    pub(super) fn new(
        nodes: Shape,
        extent: NodeExtent,
        points: Points,
        homes: Homes,
        places: Places,
    ) -> Built {
        Built {
            nodes,
            extent,
            points: Arc::new(points),
            homes,
            places,
            family: Family::Tree,
            fixed_bytes: 0,
            runs: Vec::new(),
        }
    }

    /// A tree of the given shape: each operation goes to a node, numbered as in `shape`. The arity,
    /// which says where absent keys end, is that of the node with most children, and at least 2.
    pub fn of_shape(shape: Shape, sizes: &Sizes) -> Built {
        let lengths = Lengths::Uniform(sizes.touched_bytes.min(sizes.node.bytes));
        Built::of_nodes(shape, sizes.node, lengths)
    }

    /// As [`of_shape`](Built::of_shape), with nodes of different sizes, each read whole. `extent`
    /// is what [`place`](Built::place) goes by; placements of a live heap need none.
    pub fn of_nodes(shape: Shape, extent: NodeExtent, lengths: Lengths) -> Built {
        let children = (0..shape.nodes()).map(|v| shape.children(v).len());
        let arity = children.max().unwrap_or(0).max(2);
        let arity = u32::try_from(arity).unwrap_or(u32::MAX);
        let points = Points::of_nodes(shape.clone(), lengths);
        Built::new(
            shape,
            extent,
            points,
            Homes::Nodes,
            Places::NullLinks { arity },
        )
    }

    /// The nodes: what a layout orders. Empty for arrays.
    pub fn shape(&self) -> &Shape {
        &self.nodes
    }

    /// Size and alignment of a node.
    pub fn extent(&self) -> NodeExtent {
        self.extent
    }

    /// How many keys there are.
    pub fn keys(&self) -> usize {
        self.points.found().len()
    }

    /// How many points there are: what predictions take time for.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// Memory that no layout moves: a hash table's buckets, an array. It lies behind the nodes,
    /// from the next multiple of 4096 on.
    pub fn fixed_bytes(&self) -> u64 {
        self.fixed_bytes
    }

    /// All memory of the structure as nodes are placed. O(nodes).
    pub fn span_bytes(&self, placement: &Placement) -> u64 {
        let nodes = placement.span_bytes(self.extent);
        match self.fixed_bytes {
            0 => nodes,
            fixed_bytes => nodes.next_multiple_of(FIXED_ALIGN) + fixed_bytes,
        }
    }

    /// Where each node lies in a layout.
    pub fn place(&self, layout: Layout) -> Placement {
        layout.place(&self.nodes, self.extent)
    }

    /// Where each node lies in a layout that knows how often operations end at each node.
    ///
    /// # Errors
    /// Those of [`accesses`](Built::accesses).
    pub fn place_weighted(
        &self,
        layout: Layout,
        operation: Operation,
        keys: &KeyDistribution,
    ) -> Result<Placement, StructureError> {
        let ends = self.node_ends(operation, keys)?;
        Ok(layout.place_weighted(&self.nodes, self.extent, &ends))
    }

    /// How often operations end at each node; ranges, where their first key is; walks at each
    /// alike. O(points).
    ///
    /// # Errors
    /// Those of [`accesses`](Built::accesses).
    pub fn node_ends(
        &self,
        operation: Operation,
        keys: &KeyDistribution,
    ) -> Result<Vec<f64>, StructureError> {
        if let Operation::Walk { .. } = operation {
            return Ok(vec![1.0; self.nodes.len()]);
        }
        let plan = self.plan(operation, keys)?;
        let mut ends = vec![0.0; self.nodes.len()];
        for ticket in 0..plan.tickets.count() {
            let span = Span {
                start: ticket,
                end: ticket + 1,
            };
            let node = plan.tickets.end(ticket).map(|point| self.node_of(point));
            if let Some(end) = node.and_then(|node| ends.get_mut(node as usize)) {
                *end += plan.tickets.measure(span);
            }
        }
        Ok(ends)
    }

    /// What operations read when nodes lie as in `placement`. O(points).
    ///
    /// The keys' distribution is over the keys for operations that begin at one, by their number in
    /// the order that the [structure](crate::Structure) has; over the places where a key can be
    /// absent for others; walks look at none.
    ///
    /// # Errors
    /// [`StructureError`] when the placement is of another structure, the distribution does not
    /// fit, or there is no such operation.
    pub fn accesses(
        &self,
        placement: &Placement,
        operation: Operation,
        keys: &KeyDistribution,
    ) -> Result<Accesses, StructureError> {
        if placement.len() != self.nodes.len() {
            return Err(StructureError::Placement {
                nodes: self.nodes.len(),
                placed: placement.len(),
            });
        }
        let plan = self.plan(operation, keys)?;
        Ok(Accesses::new(
            self.points.clone(),
            self.addresses(placement),
            plan.spans,
            plan.tickets,
            plan.order,
        ))
    }

    /// By point.
    fn addresses(&self, placement: &Placement) -> Vec<u64> {
        match &self.homes {
            Homes::Nodes => placement.offsets().to_vec(),
            Homes::Parts { nodes, offsets } => {
                let last = placement.offsets().iter().max();
                let used = last.map_or(0, |last| last.saturating_add(u64::from(self.extent.bytes)));
                let fixed = used.checked_next_multiple_of(FIXED_ALIGN).unwrap_or(0);
                (nodes.iter().zip(offsets))
                    .map(|(&node, &offset)| {
                        let base = placement.offsets().get(node as usize).unwrap_or(&fixed);
                        base.saturating_add(offset)
                    })
                    .collect()
            }
        }
    }

    /// The node that holds a point, or [`NO_NODE`](crate::NO_NODE).
    fn node_of(&self, point: u32) -> u32 {
        match &self.homes {
            Homes::Nodes => point,
            Homes::Parts { nodes, .. } => nodes[point as usize],
        }
    }
}

/// An operation in terms of points.
struct Plan {
    spans: Vec<Span>,
    tickets: Tickets,
    order: Order,
}

impl Built {
    fn plan(&self, operation: Operation, keys: &KeyDistribution) -> Result<Plan, StructureError> {
        match operation {
            Operation::Search => self.searches(keys),
            Operation::Miss => self.misses(keys),
            Operation::Insert => match self.family {
                Family::SingleList => self.searches(keys),
                Family::DoubleList => self.ranges(2, keys),
                Family::Tree if !self.runs.is_empty() => self.shifts(keys),
                _ => self.misses(keys),
            },
            Operation::Range { keys: 0 } => Err(StructureError::EmptyRange),
            Operation::Range { .. } if self.family == Family::Hash => Err(StructureError::NoRange),
            Operation::Range { keys: length } => self.ranges(length, keys),
            Operation::Walk { returns } => Ok(Plan {
                spans: vec![Span { start: 0, end: 1 }; self.points.len()],
                tickets: Tickets::single(),
                order: Order::Sequence(self.walk(returns)),
            }),
        }
    }

    /// Tickets are keys.
    fn key_tickets(&self, keys: &KeyDistribution) -> Result<Tickets, StructureError> {
        let found = self.points.found();
        let weights = keys.weights(found.len())?;
        let by_ticket = match (&self.homes, self.places) {
            // Keys that are known by the numbers of their nodes.
            (Homes::Nodes, Places::NullLinks { .. }) => {
                weights.map(|weights| found.iter().map(|&v| weights[v as usize]).collect())
            }
            _ => weights,
        };
        Ok(Tickets::new(found.to_vec(), by_ticket))
    }

    fn searches(&self, keys: &KeyDistribution) -> Result<Plan, StructureError> {
        Ok(Plan {
            spans: self.points.keys_below().to_vec(),
            tickets: self.key_tickets(keys)?,
            order: Order::Path,
        })
    }

    fn misses(&self, keys: &KeyDistribution) -> Result<Plan, StructureError> {
        let (spans, ends) = match self.places {
            Places::Gaps => (self.gap_spans(), self.gap_ends()),
            Places::NullLinks { arity } => {
                let shape = self.points.shape();
                let nulls = |v: u32| {
                    let children = u32::try_from(shape.children(v).len()).unwrap_or(u32::MAX);
                    arity.saturating_sub(children)
                };
                let places = total(shape, nulls).ok_or(StructureError::TooLarge)?;
                let spans = nested(shape, nulls);
                let mut ends = vec![0; places as usize];
                for (v, span) in (0..).zip(&spans) {
                    // A node's own places come before those of its children.
                    let first = span.start as usize;
                    ends[first..first + nulls(v) as usize].fill(v);
                }
                (spans, ends)
            }
        };
        let weights = keys.weights(ends.len())?;
        Ok(Plan {
            spans,
            tickets: Tickets::new(ends, weights),
            order: Order::Path,
        })
    }

    /// By point, the gaps between keys whose search reads it; gap `g` lies before key `g`.
    fn gap_spans(&self) -> Vec<Span> {
        (0..)
            .zip(self.points.keys_below())
            .map(|(v, &below)| {
                if below.is_empty() || self.points.role(v) == Role::Value {
                    Span::EMPTY
                } else {
                    Span {
                        start: below.start,
                        end: below.end + 1,
                    }
                }
            })
            .collect()
    }

    /// By gap, the last point of its search: of the two keys beside it, the one that is compared
    /// last.
    fn gap_ends(&self) -> Vec<u32> {
        let depths = self.points.shape().depths();
        let found = self.points.found();
        let compared = |key: usize| {
            let v = *found.get(key)?;
            let key = match self.points.role(v) {
                Role::Value => self.points.shape().parent(v),
                _ => v,
            };
            Some(key)
        };
        if found.is_empty() {
            return Vec::new();
        }
        (0..=found.len())
            .filter_map(|gap| {
                let below = gap.checked_sub(1).and_then(compared);
                match (below, compared(gap)) {
                    (Some(a), Some(b)) if depths[a as usize] > depths[b as usize] => Some(a),
                    (a, b) => b.or(a),
                }
            })
            .collect()
    }

    /// Searches that go on to the `length - 1` keys that follow.
    ///
    /// An entry is read when the range begins among the keys below it or enters it later, that is
    /// up to `length - 1` keys before its first; a key when its own turn comes, too.
    fn ranges(&self, length: u32, keys: &KeyDistribution) -> Result<Plan, StructureError> {
        let before = length - 1;
        let mut spans = self.points.keys_below().to_vec();
        for (v, span) in (0..).zip(&mut spans) {
            if !span.is_empty() && self.points.role(v) == Role::Entry {
                span.start = span.start.saturating_sub(before);
            }
        }
        for key in 0..self.key_count() {
            for v in self.points.own(key) {
                let span = &mut spans[v as usize];
                span.start = span.start.min(key.saturating_sub(before));
            }
        }
        Ok(Plan {
            spans,
            tickets: self.key_tickets(keys)?,
            order: Order::Range { keys: length },
        })
    }

    /// Searches for a gap, and all keys from there to the end of their run.
    fn shifts(&self, keys: &KeyDistribution) -> Result<Plan, StructureError> {
        let mut spans = self.gap_spans();
        for run in &self.runs {
            for key in run.start..run.end {
                let moved = Span {
                    start: run.start,
                    end: key + 1,
                };
                for v in self.points.own(key) {
                    spans[v as usize] = spans[v as usize].including(moved);
                }
            }
        }
        let ends = self.gap_ends();
        let weights = keys.weights(ends.len())?;
        Ok(Plan {
            spans,
            tickets: Tickets::new(ends, weights),
            order: Order::Shift {
                runs: self.runs.clone(),
            },
        })
    }

    fn key_count(&self) -> u32 {
        u32::try_from(self.keys()).unwrap_or(u32::MAX)
    }

    /// All points in the order of a walk.
    fn walk(&self, returns: bool) -> Vec<u32> {
        match (&self.homes, self.family) {
            (Homes::Nodes, _) | (_, Family::Hash) => {
                linear::depth_first(self.points.shape(), returns)
            }
            _ => linear::in_key_order(&self.points),
        }
    }
}
