//! What a lookup reads in the two maps, for [`predict_levels`].
//!
//! A lookup visits one node a level, each of a level equally often. The numbers follow from the
//! layouts of nodes; nothing was fitted to a measurement. After insertion in random order, nodes
//! are filled to ln 2 (Yao, *On random 2-3 trees*, Acta Informatica 1978).
//!
//! - `BTreeMap<u64, u64>`: up to 11 keys, leaves of 208 B, inner nodes of 304 B in malloc. A visit
//!   reads half of the keys (1.5 lines), the length (1), a value or edge (0.7). It has 1.3 rounds:
//!   the value or edge waits for the comparisons unless the processor guesses the slot, in six of
//!   ten. It costs a visit of a search tree's node with branches, and a misprediction.
//! - `CTreeMap<u64, u64>`: up to 30 keys, leaves of 512 B, inner nodes of 768 B. A visit reads all
//!   keys (4 lines) and all values or edges (4), in one round, with four vector comparisons: two
//!   branch-free visits of a search tree's node.

use std::f64::consts::LN_2;

use ccmodel::{Machine, PageSize, SearchLevel, predict_levels};

/// Nodes of one kind of map.
struct Nodes {
    keys_max: f64,
    leaf_bytes: f64,
    inner_bytes: f64,
    lines_per_visit: f64,
    rounds_per_visit: f64,
    cpu_ns_per_visit: f64,
    /// Whether a search ends in an inner node when its key is there; else it goes on to the leaves.
    ends_early: bool,
}

impl Nodes {
    /// The levels of a map of `len` keys, the root first.
    fn levels(&self, len: usize) -> Vec<SearchLevel> {
        let children = self.keys_max * LN_2 + 1.0;
        // Of the keys, one for each leaf lies in an inner node, nearly always in the level above
        // the leaves.
        let leaf_share = if self.ends_early {
            1.0 - 1.0 / children
        } else {
            1.0
        };
        let level = |nodes: f64, node_bytes: f64, share: f64| SearchLevel {
            nodes,
            node_bytes,
            lines_per_visit: self.lines_per_visit * share,
            rounds_per_visit: self.rounds_per_visit * share,
            cpu_ns_per_visit: self.cpu_ns_per_visit * share,
        };
        let mut nodes = (len as f64 / children).max(1.0);
        let mut levels = vec![level(nodes, self.leaf_bytes, leaf_share)];
        while nodes > 1.0 {
            nodes = (nodes / children).max(1.0);
            levels.push(level(nodes, self.inner_bytes, 1.0));
        }
        levels.reverse();
        levels
    }
}

/// Nanoseconds of a lookup in a `BTreeMap<u64, u64>` of `len` keys, in malloc's memory.
pub(super) fn btreemap_ns(len: usize, machine: &Machine) -> f64 {
    let nodes = Nodes {
        keys_max: 11.0,
        leaf_bytes: 208.0,
        inner_bytes: 304.0,
        lines_per_visit: 3.2,
        rounds_per_visit: 1.3,
        cpu_ns_per_visit: machine.search.node_ns + machine.search.misprediction_ns,
        ends_early: true,
    };
    predict_levels(&nodes.levels(len), PageSize::Small4K, machine).ns
}

/// Nanoseconds of a lookup in a `CTreeMap<u64, u64>` of `len` keys, in its arenas of huge pages.
pub(super) fn ctreemap_ns(len: usize, machine: &Machine) -> f64 {
    let nodes = Nodes {
        keys_max: 30.0,
        leaf_bytes: 512.0,
        inner_bytes: 768.0,
        lines_per_visit: 8.0,
        rounds_per_visit: 1.0,
        cpu_ns_per_visit: 2.0 * machine.search.branch_free_node_ns,
        ends_early: false,
    };
    predict_levels(&nodes.levels(len), PageSize::Huge2M, machine).ns
}
