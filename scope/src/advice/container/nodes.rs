//! Where `ctree`'s maps have their nodes, and which places a lookup touches there.

use std::ops::Range;

use crate::analyses::units::rounded;

const LINE: u64 = 64;
const POINTER: u64 = 8;
/// Parent, length and level of a node of a `CTreeMap`.
const HEADER: u64 = 16;
/// What a search compares at once in a node of a `CTreeMap`.
const LANES: u64 = 256;
/// Most bytes of keys and values in a node, unless so few entries are larger.
const MAX_ENTRIES: u64 = 4096;
const MIN_CAPACITY: u64 = 4;
/// Most lines of values that are requested before the search knows which.
const EAGER_LINES: u64 = 4;
/// How full the nodes of a `CTreeMap` are after insertions in random order: 23.5 B an entry for
/// `u64` to `u64`, as its README has it.
const FILL: f64 = 0.78;

/// A node of a `FrozenCTreeMap`, and the largest value that stands beside its key.
const FROZEN_NODE: u64 = 128;
const MAX_JOINED: u64 = 16;
const FROZEN_EAGER_LINES: u64 = 8;
/// Separators of integers of 8 bytes are mostly cut to these.
const SEPARATOR: u64 = 4;
const FROZEN_HEADS: u64 = 15;

/// How keys are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Integers of at most eight bytes, all of a node at once.
    Integers,
    /// Integers of eight bytes that stand for the order of keys, and keys where those are equal.
    Heads,
    /// One after the other.
    Others,
}

/// What a map holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) keys: Keys,
    pub(super) key: u64,
    pub(super) value: u64,
}

/// Offsets in the nodes of a `CTreeMap`, as `ctree/src/tree/shape.rs` has them; a test holds both
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    capacity: u64,
    keys_at: u64,
    values_at: u64,
    header_at: u64,
    children_at: u64,
    leaf: u64,
    inner: u64,
}

impl Shape {
    fn of(entries: Entries) -> Shape {
        let (lanes, beside) = match entries.keys {
            Keys::Integers => (LANES / entries.key.max(1), 0),
            Keys::Heads | Keys::Others => (LANES / 8, entries.key),
        };
        let fitting = MAX_ENTRIES / (beside + entries.value).max(1);
        let capacity = fitting.max(MIN_CAPACITY).min(lanes);
        let shape = Shape::with(entries, capacity);
        // A few entries less can save the line that the header begins.
        let fewer = (capacity - capacity / 8..capacity).rev();
        let fewer = fewer.map(|capacity| Shape::with(entries, capacity.max(MIN_CAPACITY)));
        { fewer }.find(|it| it.leaf < shape.leaf).unwrap_or(shape)
    }

    fn with(entries: Entries, capacity: u64) -> Shape {
        let (keys_at, keys_end) = match entries.keys {
            Keys::Integers => (0, LANES),
            Keys::Heads => (LANES, LANES + capacity * entries.key),
            Keys::Others => (0, capacity * entries.key),
        };
        let values_at = keys_end.next_multiple_of(POINTER);
        let header_at = (values_at + capacity * entries.value).next_multiple_of(POINTER);
        let children_at = header_at + HEADER;
        Shape {
            capacity,
            keys_at,
            values_at,
            header_at,
            children_at,
            leaf: children_at.next_multiple_of(LINE),
            inner: (children_at + (capacity + 1) * POINTER).next_multiple_of(LINE),
        }
    }
}

/// The nodes that are equally far from the root.
#[derive(Clone, Copy, Debug)]
struct Level {
    at: u64,
    nodes: f64,
    bytes: u64,
    /// Children or entries of a node.
    each: f64,
    /// Whether the next one lies anywhere.
    is_mixed: bool,
}

/// A node, and which of its children or entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    node: u64,
    slot: u64,
}

impl Level {
    fn spot(&self, rank: f64) -> Spot {
        let place = rank * self.nodes;
        let number = match self.is_mixed {
            true => mixed(floor(place)) % floor(self.nodes).max(1),
            false => floor(place),
        };
        Spot {
            node: self.at + number * self.bytes,
            slot: floor(place.fract() * self.each),
        }
    }
}

/// A number for another one, in no order.
fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

/// What is not negative, without its fraction.
fn floor(number: f64) -> u64 {
    rounded(number.floor())
}

/// Which of `ctree`'s maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Changing,
    Frozen,
}

/// A map of `ctree`.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    entries: Entries,
    kind: Kind,
    shape: Shape,
    /// From the root down; the leaves come last.
    levels: Vec<Level>,
    /// Where a frozen map has keys and values that do not lie in the leaves.
    keys_at: u64,
    values_at: u64,
    count: f64,
}

impl Tree {
    /// With so many entries; `is_mixed`: the leaves lie in no order. O(levels).
    pub(super) fn new(entries: Entries, kind: Kind, count: f64, is_mixed: bool) -> Tree {
        let shape = Shape::of(entries);
        let integers = entries.keys == Keys::Integers;
        let [inner, leaf, inner_bytes, leaf_bytes] = match kind {
            Kind::Changing => {
                let leaf = shape.capacity as f64 * FILL;
                let inner = (shape.capacity + 1) as f64 * FILL;
                [inner, leaf, shape.inner as f64, shape.leaf as f64]
            }
            Kind::Frozen => {
                let lanes = FROZEN_NODE / entries.key.max(1);
                let joined = lanes * joined(entries);
                let leaf = (FROZEN_NODE + joined).next_multiple_of(LINE);
                let separators = FROZEN_NODE / entries.key.clamp(1, SEPARATOR);
                let [inner, lanes, leaf] = match integers {
                    true => [separators + 1, lanes, leaf],
                    false => [FROZEN_HEADS + 1, FROZEN_HEADS + 1, FROZEN_NODE],
                };
                let node = FROZEN_NODE as f64;
                [inner as f64, lanes as f64, node, leaf as f64]
            }
        };
        let leaves = (count / leaf).max(1.0);
        let mut levels = vec![Level {
            at: 0,
            nodes: leaves,
            bytes: rounded(leaf_bytes),
            each: count / leaves,
            is_mixed,
        }];
        while levels[0].nodes > 1.0 {
            let below = levels[0].nodes;
            let nodes = (below / inner).max(1.0);
            let level = Level {
                at: 0,
                nodes,
                bytes: rounded(inner_bytes),
                each: below / nodes,
                is_mixed: false,
            };
            levels.insert(0, level);
        }
        let mut end = 0;
        for level in &mut levels {
            level.at = end;
            end += rounded(level.nodes.ceil()) * level.bytes;
        }
        let values_at = match integers {
            true => end,
            false => end + rounded(count) * entries.key,
        };
        Tree {
            entries,
            kind,
            shape,
            levels,
            keys_at: end,
            values_at: values_at.next_multiple_of(LINE),
            count,
        }
    }

    /// The lines that these bytes of a node lie in.
    fn lines(base: u64, bytes: Range<u64>, into: &mut Vec<u64>) {
        let first = (base + bytes.start) / LINE;
        let end = (base + bytes.end.max(bytes.start + 1)).div_ceil(LINE);
        into.extend((first..end).map(|line| line * LINE));
    }

    /// The lines that a lookup of the entry at `rank`, from 0 to 1, reads: one list for each wait.
    /// A batch knows the slot before it asks for a line of links or values.
    pub(super) fn lookup(&self, rank: f64, is_batch: bool) -> Vec<Vec<u64>> {
        let inner = self.levels.len() - 1;
        let mut waits = Vec::with_capacity(self.levels.len() + 2);
        for (depth, level) in self.levels.iter().enumerate() {
            let spot = level.spot(rank);
            let mut lines = Vec::new();
            match self.kind {
                Kind::Changing => self.node(spot, depth == inner, is_batch, &mut lines),
                Kind::Frozen => {
                    let eager = match depth == inner && joined(self.entries) > 0 {
                        true if level.bytes <= FROZEN_EAGER_LINES * LINE && !is_batch => {
                            level.bytes
                        }
                        _ => FROZEN_NODE,
                    };
                    Tree::lines(spot.node, 0..eager, &mut lines);
                    if eager == FROZEN_NODE && depth == inner && joined(self.entries) > 0 {
                        lines.push(self.value(rank, 0) / LINE * LINE);
                    }
                }
            }
            waits.push(lines);
        }
        if self.kind == Kind::Frozen {
            let mut lines = Vec::new();
            if self.entries.keys != Keys::Integers {
                let key = self.keys_at + floor(rank * self.count) * self.entries.key;
                Tree::lines(key, 0..self.entries.key, &mut lines);
            }
            if self.entries.value > 0 && joined(self.entries) == 0 {
                lines.push(self.value(rank, 0) / LINE * LINE);
            }
            waits.push(lines);
        }
        waits.retain(|lines| !lines.is_empty());
        waits
    }

    /// The lines of a node of a map that may change.
    fn node(&self, spot: Spot, is_leaf: bool, is_batch: bool, lines: &mut Vec<u64>) {
        let (shape, entries) = (&self.shape, self.entries);
        let slot = spot.slot.min(shape.capacity - 1);
        let key = shape.keys_at + slot * entries.key;
        match entries.keys {
            Keys::Integers => Tree::lines(spot.node, 0..LANES, lines),
            Keys::Heads => {
                Tree::lines(spot.node, 0..LANES, lines);
                if is_leaf {
                    Tree::lines(spot.node, key..key + entries.key, lines);
                }
            }
            Keys::Others => {
                // A binary search.
                let (mut low, mut high) = (0, shape.capacity);
                while low < high {
                    let middle = u64::midpoint(low, high);
                    let at = middle * entries.key;
                    Tree::lines(spot.node, at..at + entries.key, lines);
                    match middle < slot {
                        true => low = middle + 1,
                        false => high = middle,
                    }
                }
                Tree::lines(spot.node, shape.header_at..shape.children_at, lines);
            }
        }
        let values = shape.capacity * entries.value;
        if is_leaf {
            let value = shape.values_at + slot * entries.value;
            match values.div_ceil(LINE) {
                0 => {}
                1..=EAGER_LINES if !is_batch => {
                    let all = shape.values_at..shape.values_at + values;
                    Tree::lines(spot.node, all, lines);
                }
                _ => Tree::lines(spot.node, value..value + 1, lines),
            }
        } else {
            let child = shape.children_at + slot * POINTER;
            match is_batch {
                true => Tree::lines(spot.node, child..child + POINTER, lines),
                false => {
                    let all = shape.children_at..shape.inner;
                    Tree::lines(spot.node, all, lines);
                }
            }
        }
        lines.sort_unstable();
        lines.dedup();
    }

    /// Address of the value of the entry that is `more` behind that at `rank`.
    pub(super) fn value(&self, rank: f64, more: i64) -> u64 {
        let (base, at, slot) = self.entry(rank, more);
        match self.kind {
            Kind::Changing => base + self.shape.values_at + slot * self.entries.value,
            Kind::Frozen if joined(self.entries) > 0 => {
                base + FROZEN_NODE + slot * self.entries.value
            }
            Kind::Frozen => self.values_at + at * self.entries.value,
        }
    }

    /// Address of its key.
    pub(super) fn key(&self, rank: f64, more: i64) -> u64 {
        let (base, at, slot) = self.entry(rank, more);
        match (self.kind, self.entries.keys) {
            (Kind::Changing, _) => base + self.shape.keys_at + slot * self.entries.key,
            (_, Keys::Integers) => base + slot * self.entries.key,
            (..) => self.keys_at + at * self.entries.key,
        }
    }

    /// Address of the leaf.
    pub(super) fn leaf(&self, rank: f64) -> u64 {
        self.entry(rank, 0).0
    }

    /// Address of the header of the leaf.
    pub(super) fn header(&self, rank: f64) -> u64 {
        self.entry(rank, 0).0 + self.shape.header_at
    }

    /// Leaf, number and slot of an entry.
    fn entry(&self, rank: f64, more: i64) -> (u64, u64, u64) {
        let last = rounded(self.count - 1.0);
        let at = floor(rank * self.count)
            .saturating_add_signed(more)
            .min(last);
        let leaves = &self.levels[self.levels.len() - 1];
        // In the middle of its part.
        let spot = leaves.spot((at as f64 + 0.5) / self.count);
        (spot.node, at, spot.slot)
    }
}

/// Bytes of a value in the leaf of a frozen map.
fn joined(entries: Entries) -> u64 {
    match entries.keys {
        Keys::Integers if entries.value <= MAX_JOINED => entries.value,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys_of;
    use super::*;

    const NUMBERS: Entries = Entries {
        keys: Keys::Integers,
        key: 8,
        value: 8,
    };

    /// Against maps of `ctree` itself; the kind of key is what advice takes its name for.
    #[test]
    fn nodes_are_those_of_ctree() {
        fn check<K: Ord, V>() {
            let name = std::any::type_name::<K>();
            let entries = Entries {
                keys: keys_of(name),
                key: size_of::<K>() as u64,
                value: size_of::<V>() as u64,
            };
            let shape = Shape::of(entries);
            let ours = [
                shape.capacity,
                shape.keys_at,
                shape.values_at,
                shape.header_at,
                shape.children_at,
                shape.leaf,
                shape.inner,
            ];
            let theirs = ctree::CTreeMap::<K, V>::new().node_layout();
            assert_eq!(ours, theirs.map(|it| it as u64), "{name} {entries:?}");
        }
        check::<u64, u64>();
        check::<u64, ()>();
        check::<u32, u32>();
        check::<i64, [u64; 5]>();
        check::<u16, [u64; 512]>();
        check::<char, u64>();
        check::<String, u64>();
        check::<Vec<u8>, [u64; 3]>();
        check::<u128, u128>();
        check::<(u64, u32), u64>();
        check::<Option<u64>, u64>();
        check::<[u64; 40], [u64; 40]>();
    }

    #[test]
    fn lookups_read_a_node_of_each_level() {
        let tree = Tree::new(NUMBERS, Kind::Changing, 100_000.0, false);
        let waits = tree.lookup(0.5, false);
        // 4273 leaves, 177 nodes, 8, a root. Eight lines of each: lanes, and links or values.
        let lines: Vec<usize> = waits.iter().map(Vec::len).collect();
        assert_eq!(lines, [8, 8, 8, 8]);
        let lines: Vec<usize> = tree.lookup(0.5, true).iter().map(Vec::len).collect();
        assert_eq!(lines, [5, 5, 5, 5]);
        let value = tree.value(0.5, 0);
        assert!(waits[3].contains(&(value / LINE * LINE)));
        assert_eq!(tree.value(0.5, 1), value + 8);
        // Others share the root and have another leaf.
        let other = tree.lookup(0.51, false);
        assert_eq!(other[0], waits[0]);
        assert_ne!(other[3], waits[3]);
    }

    #[test]
    fn frozen_nodes_have_two_lines() {
        let tree = Tree::new(NUMBERS, Kind::Frozen, 100_000.0, false);
        let lines: Vec<usize> = tree.lookup(0.5, false).iter().map(Vec::len).collect();
        // 6250 leaves, 189 nodes, 6, a root; and the values with the leaf.
        assert_eq!(lines, [2, 2, 2, 4]);
        let text = Entries {
            keys: Keys::Heads,
            key: 24,
            value: 8,
        };
        let tree = Tree::new(text, Kind::Frozen, 100_000.0, false);
        let waits = tree.lookup(0.25, false);
        assert_eq!(waits[waits.len() - 1].len(), 2);
        assert_eq!(tree.key(0.25, 1), tree.key(0.25, 0) + 24);
    }
}
