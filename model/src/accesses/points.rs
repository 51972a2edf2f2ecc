//! Points, the order in which an operation reads them, and for each the *tickets* that read it: an
//! interval of an operation's random number (see [`accesses`](super)).

use crate::probability::Lengths;
use crate::shape::scaled;
use crate::{NO_NODE, Shape};

/// When a point is read by an operation that goes through its keys one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// On the way to whatever lies below it: nodes, links, headers, buckets.
    Entry,
    /// When it is compared with, or when it is its own turn.
    Key,
    /// When the key above it has been found.
    Value,
}

/// Tickets `start..end`; none where `start >= end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// No ticket; grows into a span by [`including`](Span::including).
    pub(crate) const EMPTY: Span = Span {
        start: u32::MAX,
        end: 0,
    };

    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The smallest span around both.
    pub(crate) fn including(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// Points that hang in a forest, with the keys that are found at them. Nothing is said of
/// addresses.
///
/// Invariants: keys are numbered in the order in which the forest is gone through, so that those
/// below a point follow each other: `below[v]` is that span, empty where there is none. `found[k]`
/// is the point at which a search for key `k` ends; a [`Role::Value`] hangs under the [`Role::Key`]
/// of its key.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    shape: Shape,
    lengths: Lengths,
    /// Empty where all are entries.
    roles: Vec<Role>,
    below: Vec<Span>,
    found: Vec<u32>,
}

impl Points {
    /// Nodes of a forest that hold a key each; keys in depth-first order, a node's before those
    /// below it.
    pub(crate) fn of_nodes(shape: Shape, lengths: Lengths) -> Points {
        let found = shape.preorder();
        Points::of_keys(shape, lengths, Vec::new(), found)
    }

    /// Points with keys in an order of their own: `found[k]` is where key `k` is found. The keys
    /// below each point must follow each other. `roles` may be empty, if all are entries.
    pub(crate) fn of_keys(
        shape: Shape,
        lengths: Lengths,
        roles: Vec<Role>,
        found: Vec<u32>,
    ) -> Points {
        let mut below = vec![Span::EMPTY; shape.len()];
        for (key, &v) in (0..).zip(&found) {
            let own = Span {
                start: key,
                end: key + 1,
            };
            below[v as usize] = below[v as usize].including(own);
        }
        for v in (0..shape.nodes()).rev() {
            let span = below[v as usize];
            if let Some(above) = below.get_mut(shape.parent(v) as usize) {
                *above = above.including(span);
            }
        }
        Points {
            shape,
            lengths,
            roles,
            below,
            found,
        }
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.len()
    }

    pub(crate) fn lengths(&self) -> &Lengths {
        &self.lengths
    }

    pub(crate) fn role(&self, v: u32) -> Role {
        self.roles.get(v as usize).copied().unwrap_or(Role::Entry)
    }

    /// By key, the point at which a search for it ends.
    pub(crate) fn found(&self) -> &[u32] {
        &self.found
    }

    /// By point, the keys that are found at it or below.
    pub(crate) fn keys_below(&self) -> &[Span] {
        &self.below
    }

    /// The points that belong to key `k` alone, outermost first; none where the key is one of an
    /// entry.
    pub(crate) fn own(&self, k: u32) -> impl Iterator<Item = u32> {
        let found = self.found[k as usize];
        let (first, second) = match self.role(found) {
            Role::Entry => (None, None),
            Role::Key => (None, Some(found)),
            Role::Value => (Some(self.shape.parent(found)), Some(found)),
        };
        first.into_iter().chain(second)
    }

    /// What is read on the way from key `key - 1` to `key`: what is entered in between, and the key
    /// itself. Nothing, where one entry holds both.
    pub(crate) fn push_successor(&self, key: u32, points: &mut Vec<u32>) {
        self.push_entered(key, points);
        let found = self.found[key as usize];
        if self.role(found) == Role::Entry {
            // An entry that lies above the last key is come back to.
            if points.last() != Some(&found) {
                points.push(found);
            }
        } else {
            points.extend(self.own(key));
        }
    }

    /// Entries below which `key` is the first, outermost first.
    fn push_entered(&self, key: u32, points: &mut Vec<u32>) {
        let start = points.len();
        let mut v = self.found[key as usize];
        while let Some(below) = self.below.get(v as usize)
            && below.start == key
        {
            if self.role(v) == Role::Entry {
                points.push(v);
            }
            v = self.shape.parent(v);
        }
        points[start..].reverse();
    }
}

/// Numbers tickets so that those of each subtree follow each other: `own(v)` of node `v` itself,
/// then those of its children in link order. Their sum must fit into a `u32`. O(n).
pub(crate) fn nested(shape: &Shape, own: impl Fn(u32) -> u32) -> Vec<Span> {
    let mut counts: Vec<u32> = (0..shape.nodes()).map(&own).collect();
    for v in (0..shape.nodes()).rev() {
        let count = counts[v as usize];
        if let Some(above) = counts.get_mut(shape.parent(v) as usize) {
            *above += count;
        }
    }
    // Where the next subtree below each node starts.
    let mut next = vec![0u32; shape.len()];
    let mut next_root = 0;
    let mut spans = Vec::with_capacity(shape.len());
    for (v, &count) in (0..).zip(&counts) {
        let place = match shape.parent(v) {
            NO_NODE => &mut next_root,
            parent => &mut next[parent as usize],
        };
        let start = *place;
        *place += count;
        next[v as usize] = start + own(v);
        spans.push(Span {
            start,
            end: start + count,
        });
    }
    spans
}

/// Points by the start of their spans, those of smaller number first. Points that are never read
/// come last. A counting sort: O(points + tickets).
pub(crate) fn by_start(spans: &[Span], tickets: u32) -> Vec<u32> {
    let bucket = |span: &Span| match span.is_empty() {
        true => tickets as usize,
        false => span.start.min(tickets) as usize,
    };
    let mut next = vec![0u32; tickets as usize + 2];
    for span in spans {
        next[bucket(span) + 1] += 1;
    }
    for i in 1..next.len() {
        next[i] += next[i - 1];
    }
    let mut order = vec![0u32; spans.len()];
    for (v, span) in (0..).zip(spans) {
        let place = &mut next[bucket(span)];
        order[*place as usize] = v;
        *place += 1;
    }
    order
}

/// Which operations there are, how often each is done, and at which point each search ends.
#[derive(Clone, Debug)]
pub(crate) struct Tickets {
    /// `cumulative[t]` = P(ticket below t), for `t` up to the count; empty where each is as
    /// frequent.
    cumulative: Vec<f64>,
    /// By ticket.
    ends: Vec<u32>,
}

impl Tickets {
    /// Operations that end at `ends[t]`, each with a frequency in proportion to its weight. Weights
    /// that are negative or no numbers count as 0; if all are 0, nothing is done.
    pub(crate) fn new(ends: Vec<u32>, weights: Option<Vec<f64>>) -> Tickets {
        let cumulative = weights.map_or_else(Vec::new, |weights| cumulated(&weights));
        Tickets { cumulative, ends }
    }

    /// One operation that is always the same.
    pub(crate) fn single() -> Tickets {
        Tickets::new(vec![NO_NODE], None)
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX)
    }

    /// The point at which the search of this ticket ends.
    pub(crate) fn end(&self, ticket: u32) -> Option<u32> {
        let end = self.ends.get(ticket as usize).copied();
        end.filter(|&end| end != NO_NODE)
    }

    /// P(ticket below `ticket`).
    fn before(&self, ticket: u32) -> f64 {
        match self.cumulative.get(ticket as usize) {
            Some(&sum) => sum,
            None => f64::from(ticket) / f64::from(self.count().max(1)),
        }
    }

    /// A span as an interval of the unit interval: its length is the probability.
    pub(crate) fn interval(&self, span: Span) -> (f64, f64) {
        match span.is_empty() {
            true => (0.0, 0.0),
            false => (self.before(span.start), self.before(span.end)),
        }
    }

    /// P(ticket in `span`).
    pub(crate) fn measure(&self, span: Span) -> f64 {
        let (start, end) = self.interval(span);
        end - start
    }

    /// The ticket at a random place: `random` is one of 2^64 equally likely numbers. `None` where
    /// nothing is done.
    pub(crate) fn draw(&self, random: u64) -> Option<u32> {
        let ticket = match self.cumulative.last() {
            // The product is below `count * 2^64`.
            None => usize::try_from((u128::from(random) * self.ends.len() as u128) >> 64),
            Some(&whole) if whole > 0.0 => {
                // Rounding may take the number to 1.
                let drawn = (random as f64 / 2f64.powi(64)).min(1.0 - f64::EPSILON / 2.0);
                // The last ticket that begins at or before the number drawn; those without weight
                // begin where the next does.
                Ok(self.cumulative.partition_point(|&sum| sum <= drawn) - 1)
            }
            Some(_) => return None,
        };
        u32::try_from(ticket.ok()?)
            .ok()
            .filter(|&ticket| ticket < self.count())
    }
}

/// Sums before each weight and after the last, over the whole.
fn cumulated(weights: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums = vec![0.0];
    sums.extend(scaled(weights).into_iter().map(|weight| {
        sum += weight;
        sum
    }));
    for part in &mut sums {
        *part /= sum.max(1.0);
    }
    sums
}

/// The sum of `own(v)` over all nodes, where it can number tickets.
pub(crate) fn total(shape: &Shape, own: impl Fn(u32) -> u32) -> Option<u32> {
    let sum: u64 = (0..shape.nodes()).map(|v| u64::from(own(v))).sum();
    u32::try_from(sum).ok().filter(|&sum| sum < u32::MAX)
}

/// What one operation reads, in which order.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// The path from a root to where it ends.
    Path,
    /// The path to a key, then the `keys - 1` keys that follow, with what is entered before each.
    Range {
        /// How many keys are read at most.
        keys: u32,
    },
    /// The path to a gap between keys, then all keys from there to the end of their run: they move
    /// up by one.
    Shift {
        /// Keys that lie one after another in memory, ascending.
        runs: Vec<Span>,
    },
    /// Always these.
    Sequence(Vec<u32>),
}
