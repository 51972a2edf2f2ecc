//! What a lookup reads in the two maps that have nodes of many keys, for
//! [`predict_levels`](ccmodel::predict_levels).
//!
//! The nodes of a tree of single keys can be surveyed one by one; those of a map cannot be reached
//! from outside. But a lookup visits exactly one node a level, each of a level equally often, so it
//! is enough to know how many nodes a level has, how large they are and how they are read. These
//! numbers follow from the layouts below, not from a fit; but they were gone through once more
//! after a first comparison with measured times (of `BTreeMap` the rounds, of the frozen map the
//! cost of a comparison), so take them for an explanation rather than for a blind prediction.
//!
//! # `BTreeMap<u64, u32>`
//!
//! std's nodes hold up to 11 keys; an inner node has 12 edges behind what a leaf has:
//!
//! ```text
//! byte 0      8            96            140   142   144             240
//! | parent | keys, 8 B each | values, 4 B | index | len | edges, 8 B each |      in malloc 160 B a leaf, 256 B an inner node
//! ```
//!
//! After random insertion nodes are filled to ln 2 (Yao, "On random 2-3 trees", Acta Informatica
//! 1978): 7.6 keys, 8.6 children. A visit reads `len`, on average the first half of the keys, and
//! an edge or a value. With the node at any multiple of 16 B, the keys take 1.5 lines, `len`
//! another, the edge one more in three visits of four (3.3 lines), a value one more in three of ten
//! (2.8). Keys and `len` are asked for together, since their places are known; the edge waits for
//! the comparisons, unless the processor's guess at it, made meanwhile, fetched the right line, as
//! it does in six of ten: 1.3 rounds, and 1.1 in a leaf.
//!
//! Where among 8.6 children a search goes on cannot be guessed, which costs a misprediction a node.
//! One key in 8.6 lies in an inner node, and its search ends there, nearly always one level above
//! the leaves: these are visited that much less.
//!
//! # `FrozenCTreeMap<u64, u32>`
//!
//! Index nodes of 16 separators, 128 B, 17 children; leaves of 16 entries, 128 B of keys and 64 B
//! of values. All lines of a node are asked for together: one round. The comparisons have no
//! branches, so nothing is mispredicted; loading, comparing and counting 16 keys takes about 20
//! cycles, half as much again as a branch-free visit of a tree node.
//!
//! (Keys that are spread more evenly get an index of half that size, with 32 separators of 32 bits
//! a node. Phrases begin alike too often for that, which shows in the memory: 12.5 B an entry,
//! where a narrow index would make it 12.3.)

use ccmodel::{Machine, SearchLevel};

/// Most keys in a node of std's `BTreeMap`.
const BTREE_KEYS_MAX: f64 = 11.0;
/// From one node to the next in malloc's memory.
const BTREE_INNER_BYTES: f64 = 256.0;
const BTREE_LEAF_BYTES: f64 = 160.0;
const BTREE_INNER_LINES: f64 = 3.3;
const BTREE_LEAF_LINES: f64 = 2.8;
const BTREE_INNER_ROUNDS: f64 = 1.3;
const BTREE_LEAF_ROUNDS: f64 = 1.1;

/// Children of an index node of the frozen map, and entries of a leaf.
const FROZEN_CHILDREN: f64 = 17.0;
const FROZEN_ENTRIES: f64 = 16.0;
const FROZEN_INDEX_BYTES: f64 = 128.0;
const FROZEN_LEAF_BYTES: f64 = 192.0;
/// A node's comparisons, in branch-free visits of a tree node.
const FROZEN_NODE_VISITS: f64 = 1.5;

const LINE_BYTES: f64 = 64.0;

/// The levels of a `BTreeMap<u64, u32>` of `len` keys that came in random order, the root first.
pub(super) fn btreemap_levels(len: usize, machine: &Machine) -> Vec<SearchLevel> {
    let children = BTREE_KEYS_MAX * std::f64::consts::LN_2 + 1.0;
    // Each leaf holds its keys and has one more above it, in an inner node.
    let leaf_share = 1.0 - 1.0 / children;
    let cpu_ns = machine.search.node_ns + machine.search.misprediction_ns;
    let inner = |nodes: f64| SearchLevel {
        nodes,
        node_bytes: BTREE_INNER_BYTES,
        lines_per_visit: BTREE_INNER_LINES,
        rounds_per_visit: BTREE_INNER_ROUNDS,
        cpu_ns_per_visit: cpu_ns,
    };
    let leaves = |nodes: f64| SearchLevel {
        nodes,
        node_bytes: BTREE_LEAF_BYTES,
        lines_per_visit: BTREE_LEAF_LINES * leaf_share,
        rounds_per_visit: BTREE_LEAF_ROUNDS * leaf_share,
        cpu_ns_per_visit: cpu_ns * leaf_share,
    };
    let mut nodes = (len as f64 / children).max(1.0);
    let mut levels = vec![leaves(nodes)];
    while nodes > 1.0 {
        nodes = (nodes / children).max(1.0);
        levels.push(inner(nodes));
    }
    levels.reverse();
    levels
}

/// The levels of a `FrozenCTreeMap<u64, u32>` of `len` entries, the root first.
pub(super) fn frozen_levels(len: usize, machine: &Machine) -> Vec<SearchLevel> {
    let level = |nodes: f64, node_bytes: f64| SearchLevel {
        nodes,
        node_bytes,
        lines_per_visit: node_bytes / LINE_BYTES,
        rounds_per_visit: 1.0,
        cpu_ns_per_visit: machine.search.branch_free_node_ns * FROZEN_NODE_VISITS,
    };
    let mut nodes = (len as f64 / FROZEN_ENTRIES).ceil();
    let mut levels = vec![level(nodes, FROZEN_LEAF_BYTES)];
    while nodes > 1.0 {
        nodes = (nodes / FROZEN_CHILDREN).ceil();
        levels.push(level(nodes, FROZEN_INDEX_BYTES));
    }
    levels.reverse();
    levels
}

#[cfg(test)]
mod tests {
    use super::{btreemap_levels, frozen_levels};
    use ccmodel::Machine;

    #[test]
    fn levels_of_two_million_entries() {
        let machine = Machine::this();
        let frozen: Vec<f64> = frozen_levels(1 << 21, machine)
            .iter()
            .map(|level| level.nodes)
            .collect();
        assert_eq!(frozen, [1.0, 2.0, 27.0, 454.0, 7711.0, 131_072.0]);
        let btree = btreemap_levels(1 << 21, machine);
        assert_eq!(btree.len(), 7);
        assert!(btree.is_sorted_by(|above, below| above.nodes < below.nodes));
    }

    #[test]
    fn one_entry_is_one_node() {
        assert_eq!(frozen_levels(1, Machine::this()).len(), 1);
        assert_eq!(btreemap_levels(1, Machine::this()).len(), 1);
    }
}
