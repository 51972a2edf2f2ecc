//! B-trees, with the keys inside of nodes as points of their own.
//!
//! ```text
//! a node:   | header 8 B | key 0 .. key K-1 | value 0 .. value K-1 | link 0 .. link K |
//!           K = fanout - 1; leaves do not use their links
//! ```
//!
//! A search reads the header (how many keys there are), then keys, then the link to the next node,
//! or the value when a key is equal. Which keys it compares is again a tree, so the whole B-tree is
//! one search tree of points:
//!
//! ```text
//! binary, 7 keys:          k3                    linear:    k0 - k1 - k2 - ...
//!                      k1      k5                            |    |    |
//!                    k0  k2  k4  k6                         l0   l1   l2    gap g leads to link g
//!                   l0 l1 ...        l7
//! ```
//!
//! Trees built from sorted keys have the least height that their fill allows, and the keys of each
//! subtree are divided evenly among its children. Random insertion splits full nodes in the middle.

use std::collections::VecDeque;

use super::built::{Homes, Parts, Places};
use super::{Built, Growth, InNode, Sizes, too_large};
use crate::accesses::{Points, Role, Span};
use crate::shape::random;
use crate::{Error, Lengths, NO_NODE, NodeExtent, Shape};

const HEADER_BYTES: u32 = 8;
const LINK_BYTES: u32 = 8;

pub(super) struct Form {
    /// Keys of a full node, K; at least 2.
    keys_max: u32,
    in_node: InNode,
    key_bytes: u32,
    value_bytes: u32,
    links_offset: u64,
    extent: NodeExtent,
}

impl Form {
    /// The nodes of a B-tree of this fanout, at least 3.
    pub(super) fn new(fanout: u32, in_node: InNode, sizes: &Sizes) -> Result<Form, Error> {
        if sizes.key_bytes == 0 {
            return Err(Error::new("a key needs at least one byte"));
        }
        let keys_max = fanout - 1;
        // At most 2^17 pairs of 2^33 bytes.
        let pair_bytes = u64::from(sizes.key_bytes) + u64::from(sizes.value_bytes);
        let keys_end = u64::from(HEADER_BYTES) + pair_bytes * u64::from(keys_max);
        let links_offset = keys_end.next_multiple_of(u64::from(LINK_BYTES));
        let bytes = links_offset + u64::from(fanout) * u64::from(LINK_BYTES);
        let Ok(node_bytes) = u32::try_from(bytes) else {
            let what = format!("nodes of {bytes} bytes are too large");
            return Err(Error::new(what));
        };
        let extent = NodeExtent::new(node_bytes, sizes.node.align.max(LINK_BYTES))?;
        Ok(Form {
            keys_max,
            in_node,
            key_bytes: sizes.key_bytes,
            value_bytes: sizes.value_bytes,
            links_offset,
            extent,
        })
    }

    fn key_offset(&self, key: u32) -> u64 {
        u64::from(HEADER_BYTES) + u64::from(key) * u64::from(self.key_bytes)
    }

    fn value_offset(&self, key: u32) -> u64 {
        self.key_offset(self.keys_max) + u64::from(key) * u64::from(self.value_bytes)
    }

    fn link_offset(&self, link: u32) -> u64 {
        self.links_offset + u64::from(link) * u64::from(LINK_BYTES)
    }
}

/// Nodes level by level, the children of each in order.
#[derive(Default)]
pub(super) struct Nodes {
    /// By node, its parent.
    pub(super) parents: Vec<u32>,
    /// By node, at which of the parent's links it hangs.
    pub(super) links: Vec<u32>,
    /// By node, how many keys it holds itself; at least 1.
    pub(super) counts: Vec<u32>,
}

pub(super) fn build(keys: u32, fill: f64, growth: Growth, form: &Form) -> Result<Built, Error> {
    let nodes = match growth {
        Growth::Complete => bulk(keys, filled(fill, form.keys_max)),
        Growth::RandomInsert { seed } => inserted(keys, form.keys_max, seed),
    };
    let shape = Shape::from_generated(nodes.parents.clone());
    let spans = nodes.spans(&shape);
    if form.in_node == InNode::Whole {
        let points = nodes.whole(&shape, &spans, keys, form);
        let (homes, places) = (Homes::Nodes, Places::Gaps);
        return Ok(Built::new(shape, form.extent, points, homes, places));
    }
    // Each key and each node's header and link, each value.
    let points = 2 * u64::from(keys) + 2 * shape.len() as u64;
    if points >= u64::from(NO_NODE) {
        return Err(too_large());
    }
    let parts = parts(&nodes, &shape, &spans, keys, form);
    let runs = nodes.leaf_runs(&shape, &spans);
    Ok(Built {
        runs,
        ..parts.built(shape, form.extent)
    })
}

/// Keys of a node that is filled to a share of its room.
fn filled(fill: f64, keys_max: u32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1 of a `u32`"
    )]
    let keys = (fill * f64::from(keys_max)).round() as u32;
    keys.clamp(1, keys_max)
}

/// The tree of least height with at most `node_keys` keys a node; the keys of each subtree are
/// divided evenly.
pub(super) fn bulk(keys: u32, node_keys: u32) -> Nodes {
    let mut nodes = Nodes::default();
    // Keys of full trees, by height less 1.
    let mut full = vec![u64::from(node_keys)];
    while let Some(&largest) = full.last()
        && largest < u64::from(keys)
    {
        full.push((largest + 1) * (u64::from(node_keys) + 1) - 1);
    }
    // Subtrees to come: parent, link, keys, height less 1.
    let mut queue = VecDeque::from([(NO_NODE, 0, keys, full.len() - 1)]);
    while let Some((parent, link, keys, height)) = queue.pop_front() {
        if keys <= node_keys {
            if keys > 0 {
                nodes.add(parent, link, keys);
            }
            continue;
        }
        // More keys than a node's: the height is at least 2. The quotient is at most `node_keys +
        // 1`.
        let children = (u64::from(keys) + 1).div_ceil(full[height - 1] + 1);
        let children = u32::try_from(children).unwrap_or(u32::MAX).max(2);
        let node = nodes.add(parent, link, children - 1);
        let rest = keys - (children - 1);
        for child in 0..children {
            let part = rest / children + u32::from(child < rest % children);
            queue.push_back((node, child, part, height - 1));
        }
    }
    nodes
}

/// The tree after inserting the numbers below `keys` in random order. O(n log n).
pub(super) fn inserted(keys: u32, keys_max: u32, seed: u64) -> Nodes {
    let mut tree = Insertion {
        keys_max: keys_max as usize,
        keys: vec![Vec::new()],
        children: vec![Vec::new()],
        root: 0,
    };
    for key in random::permutation(keys, seed) {
        tree.insert(key);
    }
    match keys {
        0 => Nodes::default(),
        _ => tree.finish(),
    }
}

struct Insertion {
    keys_max: usize,
    keys: Vec<Vec<u32>>,
    /// By node; none in leaves, else one more than keys.
    children: Vec<Vec<u32>>,
    root: u32,
}

impl Insertion {
    fn add(&mut self, keys: Vec<u32>, children: Vec<u32>) -> u32 {
        self.keys.push(keys);
        self.children.push(children);
        u32::try_from(self.keys.len() - 1).unwrap_or(NO_NODE)
    }

    fn insert(&mut self, key: u32) {
        // Nodes above the leaf, with the link that was followed.
        let mut path: Vec<(u32, usize)> = Vec::new();
        let mut node = self.root;
        let mut place = self.keys[node as usize].partition_point(|&other| other < key);
        while let Some(&child) = self.children[node as usize].get(place) {
            path.push((node, place));
            node = child;
            place = self.keys[node as usize].partition_point(|&other| other < key);
        }
        self.keys[node as usize].insert(place, key);
        while self.keys[node as usize].len() > self.keys_max {
            let (middle, right) = self.split(node);
            match path.pop() {
                Some((above, link)) => {
                    self.keys[above as usize].insert(link, middle);
                    self.children[above as usize].insert(link + 1, right);
                    node = above;
                }
                None => {
                    self.root = self.add(vec![middle], vec![node, right]);
                    return;
                }
            }
        }
    }

    /// Takes the upper half out of a node; returns the key in the middle and the node of that half.
    fn split(&mut self, node: u32) -> (u32, u32) {
        let keys = &mut self.keys[node as usize];
        let half = keys.len() / 2;
        let upper = keys.split_off(half + 1);
        let middle = keys[half];
        keys.truncate(half);
        let children = &mut self.children[node as usize];
        // A leaf has none.
        let upper_children = children.split_off(children.len().min(half + 1));
        (middle, self.add(upper, upper_children))
    }

    fn finish(self) -> Nodes {
        let mut nodes = Nodes::default();
        let mut queue = VecDeque::from([(NO_NODE, 0, self.root)]);
        while let Some((parent, link, node)) = queue.pop_front() {
            let count = u32::try_from(self.keys[node as usize].len()).unwrap_or(u32::MAX);
            let number = nodes.add(parent, link, count);
            let children = (0..).zip(&self.children[node as usize]);
            queue.extend(children.map(|(link, &child)| (number, link, child)));
        }
        nodes
    }
}

impl Nodes {
    fn add(&mut self, parent: u32, link: u32, count: u32) -> u32 {
        self.parents.push(parent);
        self.links.push(link);
        self.counts.push(count);
        u32::try_from(self.parents.len() - 1).unwrap_or(NO_NODE)
    }

    fn spans(&self, shape: &Shape) -> Vec<Span> {
        let mut totals = self.counts.clone();
        for v in (0..shape.nodes()).rev() {
            let total = totals[v as usize];
            if let Some(above) = totals.get_mut(shape.parent(v) as usize) {
                *above += total;
            }
        }
        let mut spans = vec![Span { start: 0, end: 0 }; shape.len()];
        for v in 0..shape.nodes() {
            let span = &mut spans[v as usize];
            span.end = span.start + totals[v as usize];
            let mut next = span.start;
            let mut before = 0;
            for &child in shape.children(v) {
                // Links without a node have no keys; the key before each link belongs to this node.
                let link = self.links[child as usize];
                next += link - before;
                before = link;
                spans[child as usize].start = next;
                next += totals[child as usize];
            }
        }
        spans
    }

    /// Calls `see` for each key that node `v` holds itself, with its number in the node and in the
    /// tree.
    fn own_keys(&self, shape: &Shape, spans: &[Span], v: u32, mut see: impl FnMut(u32, u32)) {
        let mut next = spans[v as usize].start;
        let mut children = shape.children(v).iter().peekable();
        for place in 0..self.counts[v as usize] {
            if let Some(&child) = children.next_if(|&&child| self.links[child as usize] == place) {
                next = spans[child as usize].end;
            }
            see(place, next);
            next += 1;
        }
    }

    /// Nodes as points that are read whole.
    fn whole(&self, shape: &Shape, spans: &[Span], keys: u32, form: &Form) -> Points {
        let mut found = vec![0; keys as usize];
        for v in 0..shape.nodes() {
            self.own_keys(shape, spans, v, |_, key| found[key as usize] = v);
        }
        let lengths = Lengths::Uniform(form.extent.bytes);
        Points::of_keys(shape.clone(), lengths, Vec::new(), found)
    }

    fn leaf_runs(&self, shape: &Shape, spans: &[Span]) -> Vec<Span> {
        let leaves = (0..shape.nodes()).filter(|&v| shape.children(v).is_empty());
        let mut runs: Vec<Span> = leaves.map(|v| spans[v as usize]).collect();
        // Leaves are on one level, or on two where nodes have one key.
        runs.sort_unstable_by_key(|run| run.start);
        runs
    }
}

fn parts(nodes: &Nodes, shape: &Shape, spans: &[Span], keys: u32, form: &Form) -> Parts {
    let mut parts = Parts::of_keys(keys);
    // By node, the link that leads to it.
    let mut links = vec![NO_NODE; shape.len()];
    // By place, the point of the key there; by gap, the point after which a search turns into it.
    let (mut compared, mut turns) = (Vec::new(), Vec::new());
    for v in 0..shape.nodes() {
        let header = parts.add(links[v as usize], HEADER_BYTES, Role::Entry, v, 0);
        let count = nodes.counts[v as usize];
        compared.resize(count as usize, NO_NODE);
        turns.resize(count as usize + 1, NO_NODE);
        // Ranges of keys that are left, with the point read before.
        let mut ranges = vec![(0, count, header)];
        while let Some((low, high, above)) = ranges.pop() {
            if low == high {
                turns[low as usize] = above;
                continue;
            }
            let place = match form.in_node {
                InNode::Linear => low,
                _ => low + (high - low) / 2,
            };
            let offset = form.key_offset(place);
            let key = parts.add(above, form.key_bytes, Role::Key, v, offset);
            compared[place as usize] = key;
            ranges.push((low, place, key));
            ranges.push((place + 1, high, key));
        }
        nodes.own_keys(shape, spans, v, |place, key| {
            let mut point = compared[place as usize];
            if form.value_bytes > 0 {
                let offset = form.value_offset(place);
                point = parts.add(point, form.value_bytes, Role::Value, v, offset);
            }
            parts.found[key as usize] = point;
        });
        for &child in shape.children(v) {
            let link = nodes.links[child as usize];
            let (above, offset) = (turns[link as usize], form.link_offset(link));
            links[child as usize] = parts.add(above, LINK_BYTES, Role::Entry, v, offset);
        }
    }
    parts
}
