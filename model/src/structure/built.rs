//! A structure with its nodes, its points, and what operations do to them.

use std::sync::Arc;

use super::{Operation, orders, too_large};
use crate::accesses::{Accesses, Order, Points, Role, Span, Tickets, nested, total};
use crate::keys::KeyDistribution;
use crate::{Error, Layout, Lengths, NodeExtent, Placement, Shape};

/// Where fixed memory begins is a multiple of this, as large allocations are.
const FIXED_ALIGN: u64 = 4096;

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

    /// A tree of the given shape: each operation goes to a node, numbered as in `shape`, and reads
    /// `lengths` of each node that it visits. The arity, which says where absent keys end, is that
    /// of the node with most children, and at least 2. [`place`](Built::place) goes by `extent`.
    pub fn of_nodes(shape: Shape, extent: NodeExtent, lengths: Lengths) -> Built {
        let children = (0..shape.nodes()).map(|v| shape.children(v).len());
        let arity = children.max().unwrap_or(0).max(2);
        let arity = u32::try_from(arity).unwrap_or(u32::MAX);
        let points = Points::of_nodes(shape.clone(), lengths);
        let places = Places::NullLinks { arity };
        Built::new(shape, extent, points, Homes::Nodes, places)
    }

    /// The nodes: what a layout orders. Empty for arrays.
    pub fn shape(&self) -> &Shape {
        &self.nodes
    }

    /// Size and alignment of a node.
    pub fn extent(&self) -> NodeExtent {
        self.extent
    }

    /// Number of keys.
    pub fn keys(&self) -> usize {
        self.points.found().len()
    }

    /// Number of points; predictions take time in proportion to it.
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
    ) -> Result<Placement, Error> {
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
    ) -> Result<Vec<f64>, Error> {
        if let Operation::Walk { .. } = operation {
            return Ok(vec![1.0; self.nodes.len()]);
        }
        let (_, tickets, _) = self.plan(operation, keys)?;
        let mut ends = vec![0.0; self.nodes.len()];
        for start in 0..tickets.count() {
            let end = start + 1;
            let node = tickets.end(start).map(|point| self.node_of(point));
            if let Some(ends) = node.and_then(|node| ends.get_mut(node as usize)) {
                *ends += tickets.measure(Span { start, end });
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
    /// When the placement is of another structure, the distribution does not
    /// fit, or there is no such operation.
    pub fn accesses(
        &self,
        placement: &Placement,
        operation: Operation,
        keys: &KeyDistribution,
    ) -> Result<Accesses, Error> {
        if placement.len() != self.nodes.len() {
            let (placed, nodes) = (placement.len(), self.nodes.len());
            let what = format!("{placed} nodes are placed, but the structure has {nodes}");
            return Err(Error::new(what));
        }
        let (spans, tickets, order) = self.plan(operation, keys)?;
        let (points, addresses) = (self.points.clone(), self.addresses(placement));
        Ok(Accesses::new(points, addresses, spans, tickets, order))
    }

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

/// An operation in terms of points: the tickets that read each, all tickets, and the order.
type Plan = (Vec<Span>, Tickets, Order);

/// Points while they are made, with where each lies and where each key is found.
#[derive(Default)]
pub(super) struct Parts {
    parents: Vec<u32>,
    bytes: Vec<u32>,
    roles: Vec<Role>,
    nodes: Vec<u32>,
    offsets: Vec<u64>,
    pub(super) found: Vec<u32>,
}

impl Parts {
    pub(super) fn of_keys(keys: u32) -> Parts {
        Parts {
            found: vec![0; keys as usize],
            ..Parts::default()
        }
    }

    /// Adds a point at an offset in a node, or in the fixed memory for
    /// [`NO_NODE`](crate::NO_NODE); returns its number.
    pub(super) fn add(
        &mut self,
        parent: u32,
        bytes: u32,
        role: Role,
        node: u32,
        offset: u64,
    ) -> u32 {
        let point = u32::try_from(self.parents.len()).unwrap_or(u32::MAX);
        self.parents.push(parent);
        self.bytes.push(bytes);
        self.roles.push(role);
        self.nodes.push(node);
        self.offsets.push(offset);
        point
    }

    /// The structure with these points in these nodes.
    pub(super) fn built(self, nodes: Shape, extent: NodeExtent) -> Built {
        let shape = Shape::from_generated(self.parents);
        let points = Points::of_keys(shape, Lengths::Each(self.bytes), self.roles, self.found);
        let homes = Homes::Parts {
            nodes: self.nodes,
            offsets: self.offsets,
        };
        Built::new(nodes, extent, points, homes, Places::Gaps)
    }
}

impl Built {
    fn plan(&self, operation: Operation, keys: &KeyDistribution) -> Result<Plan, Error> {
        match operation {
            Operation::Search => self.searches(keys),
            Operation::Miss => self.misses(keys),
            Operation::Insert => match self.family {
                Family::SingleList => self.searches(keys),
                Family::DoubleList => self.ranges(2, keys),
                Family::Tree if !self.runs.is_empty() => self.shifts(keys),
                _ => self.misses(keys),
            },
            Operation::Range { keys: 0 } => Err(Error::new("a range has at least one key")),
            Operation::Range { .. } if self.family == Family::Hash => Err(Error::new(
                "a hash table's keys have no order, so there are no ranges",
            )),
            Operation::Range { keys: length } => self.ranges(length, keys),
            Operation::Walk { returns } => {
                let spans = vec![Span { start: 0, end: 1 }; self.points.len()];
                let order = Order::Sequence(self.walk(returns));
                Ok((spans, Tickets::single(), order))
            }
        }
    }

    fn key_tickets(&self, keys: &KeyDistribution) -> Result<Tickets, Error> {
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

    fn searches(&self, keys: &KeyDistribution) -> Result<Plan, Error> {
        let spans = self.points.keys_below().to_vec();
        Ok((spans, self.key_tickets(keys)?, Order::Path))
    }

    fn misses(&self, keys: &KeyDistribution) -> Result<Plan, Error> {
        let (spans, ends) = match self.places {
            Places::Gaps => (self.gap_spans(), self.gap_ends()),
            Places::NullLinks { arity } => {
                let shape = self.points.shape();
                let nulls = |v: u32| {
                    let children = u32::try_from(shape.children(v).len()).unwrap_or(u32::MAX);
                    arity.saturating_sub(children)
                };
                let places = total(shape, nulls).ok_or_else(too_large)?;
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
        Ok((spans, Tickets::new(ends, weights), Order::Path))
    }

    /// By point, the gaps between keys whose search reads it; gap `g` lies before key `g`.
    fn gap_spans(&self) -> Vec<Span> {
        let mut spans = self.points.keys_below().to_vec();
        for (v, span) in (0..).zip(&mut spans) {
            if span.is_empty() || self.points.role(v) == Role::Value {
                *span = Span::EMPTY;
            } else {
                span.end += 1;
            }
        }
        spans
    }

    /// By gap, the last point of its search: of the two keys beside it, the one that is compared
    /// last.
    fn gap_ends(&self) -> Vec<u32> {
        let found = self.points.found();
        if found.is_empty() {
            return Vec::new();
        }
        let shape = self.points.shape();
        let depths = shape.depths();
        let compared = |key: usize| match *found.get(key)? {
            v if self.points.role(v) == Role::Value => Some(shape.parent(v)),
            v => Some(v),
        };
        let deeper = |gap: usize| {
            let ends = [gap.checked_sub(1).and_then(compared), compared(gap)];
            ends.into_iter()
                .flatten()
                .max_by_key(|&v| depths[v as usize])
        };
        (0..=found.len()).filter_map(deeper).collect()
    }

    /// Searches that go on to the `length - 1` keys that follow.
    ///
    /// An entry is read when the range begins among the keys below it or enters it later, that is
    /// up to `length - 1` keys before its first; a key when its own turn comes, too.
    fn ranges(&self, length: u32, keys: &KeyDistribution) -> Result<Plan, Error> {
        let before = length - 1;
        let mut spans = self.points.keys_below().to_vec();
        for (v, span) in (0..).zip(&mut spans) {
            if !span.is_empty() && self.points.role(v) == Role::Entry {
                span.start = span.start.saturating_sub(before);
            }
        }
        for key in (0..).take(self.keys()) {
            for v in self.points.own(key) {
                let span = &mut spans[v as usize];
                span.start = span.start.min(key.saturating_sub(before));
            }
        }
        let order = Order::Range { keys: length };
        Ok((spans, self.key_tickets(keys)?, order))
    }

    /// Searches for a gap, and all keys from there to the end of their run.
    fn shifts(&self, keys: &KeyDistribution) -> Result<Plan, Error> {
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
        let runs = self.runs.clone();
        Ok((spans, Tickets::new(ends, weights), Order::Shift { runs }))
    }

    fn walk(&self, returns: bool) -> Vec<u32> {
        match (&self.homes, self.family) {
            (Homes::Nodes, _) | (_, Family::Hash) => {
                orders::depth_first(self.points.shape(), returns)
            }
            _ => orders::in_key_order(&self.points),
        }
    }
}
