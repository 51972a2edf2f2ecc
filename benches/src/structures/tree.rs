//! Search trees with a value for each key, built fast.
//!
//! Inserting key by key costs a dozen dependent cache misses a node. A [`Plan`] computes the shape
//! in arrays, as the Cartesian tree over (key, time of insertion), and then allocates the nodes in
//! the order of insertion, and links each to its parent, with misses that overlap.

use ccmorph::{Morph, MorphError, Report, TreeNode};

use super::Structure;
use crate::ordered_map::low_half;
use crate::queries::add_in_order;
use crate::rng::Rng;
use crate::search_tree::{Node, Tree};

/// The shape of a tree, and the order in which its nodes are allocated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order of allocation.
    keys: Vec<u64>,
    /// In that order: twice the parent's number, and one more on its right; [`ROOT`] in the root.
    places: Vec<u32>,
    /// Children before their parents.
    bottom_up: Vec<u32>,
}

const ROOT: u32 = u32::MAX;

/// The numbers of `nodes` nodes, twice one of which fits a place: at most 2^30.
#[expect(clippy::cast_possible_truncation, reason = "asserted")]
fn numbers(nodes: usize) -> std::ops::Range<u32> {
    assert!(nodes <= 1 << 30, "plans have 2^30 nodes at most");
    0..nodes as u32
}

impl Plan {
    /// The tree that `keys`, all different, give when they are inserted in their order.
    pub fn of_inserts(keys: &[u64]) -> Plan {
        let bottom_up = numbers(keys.len()).rev().collect();
        let mut sorted: Vec<(u64, u32)> = keys.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let is_new = |a: &(u64, u32), b: &(u64, u32)| a.0 < b.0;
        assert!(sorted.is_sorted_by(is_new), "a tree has each key once");
        // The rightmost path of the tree over the keys so far: numbers grow along it.
        let mut path: Vec<u32> = Vec::new();
        let mut places = vec![ROOT; keys.len()];
        for &(_, node) in &sorted {
            let mut below = None;
            while path.last().is_some_and(|&last| last > node) {
                below = path.pop();
            }
            if let Some(below) = below {
                places[below as usize] = 2 * node;
            }
            if let Some(&parent) = path.last() {
                places[node as usize] = 2 * parent + 1;
            }
            path.push(node);
        }
        let keys = keys.to_vec();
        Plan {
            keys,
            places,
            bottom_up,
        }
    }

    /// A tree with `2^levels - 1` nodes and no shorter path, whose nodes are allocated in random
    /// order; the keys are those of `seed`.
    pub fn complete(levels: u32, seed: u64) -> Plan {
        let nodes = (1_usize << levels) - 1;
        let mut rng = Rng::new(seed);
        let mut sorted: Vec<u64> = (0..nodes).map(|_| rng.next_u64()).collect();
        sorted.sort_unstable();
        let mut order: Vec<u32> = numbers(nodes).collect();
        rng.shuffle(&mut order);

        let mut keys = vec![0; nodes];
        let mut places = vec![ROOT; nodes];
        let mut bottom_up = Vec::with_capacity(nodes);
        let mut pending = vec![(0..nodes, ROOT)];
        while let Some((range, place)) = pending.pop() {
            if range.is_empty() {
                continue;
            }
            let middle = range.start + range.len() / 2;
            let node = order[middle];
            keys[node as usize] = sorted[middle];
            places[node as usize] = place;
            bottom_up.push(node);
            pending.push((middle + 1..range.end, 2 * node + 1));
            pending.push((range.start..middle, 2 * node));
        }
        bottom_up.reverse();
        Plan {
            keys,
            places,
            bottom_up,
        }
    }

    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The tree; the value of a key is the key with its halves exchanged.
    pub fn build(&self) -> Tree<u64> {
        self.build_with(|key| key.rotate_left(32))
    }

    pub fn build_with<V>(&self, value: impl Fn(u64) -> V) -> Tree<V> {
        let leaf = |&key| Some(Box::new(Node::leaf(key, value(key))));
        let mut nodes: Vec<Option<Box<Node<V>>>> = self.keys.iter().map(leaf).collect();
        let mut root = None;
        for &number in &self.bottom_up {
            let node = nodes[number as usize].take();
            let place = self.places[number as usize];
            if place == ROOT {
                root = node;
            } else if let Some(parent) = &mut nodes[place as usize / 2] {
                match place % 2 {
                    0 => parent.left = node,
                    _ => parent.right = node,
                }
            }
        }
        Tree { root }
    }
}

impl Tree<u64> {
    /// Looks up all of `keys`, which are known in advance, and sums up the answers.
    #[inline(never)]
    pub fn get_all(&self, keys: &[u64]) -> u64 {
        let answers = keys.iter().map(|&key| u64::from(self.answer(key)));
        answers.fold(0, add_in_order)
    }

    /// Looks up all of `keys`, eight at a time, each step of one after the same step of the others.
    #[inline(never)]
    pub fn get_all_side_by_side(&self, keys: &[u64]) -> u64 {
        const SIDE_BY_SIDE: usize = 8;
        let mut sum = 0_u64;
        for keys in keys.chunks(SIDE_BY_SIDE) {
            let mut links = [self.root.as_deref(); SIDE_BY_SIDE];
            let mut answers = [u32::MAX; SIDE_BY_SIDE];
            let mut searching = true;
            while searching {
                searching = false;
                for ((link, answer), &key) in links.iter_mut().zip(&mut answers).zip(keys) {
                    let Some(node) = *link else {
                        continue;
                    };
                    searching = true;
                    *link = if key == node.key {
                        *answer = low_half(Some(&node.value));
                        None
                    } else if key < node.key {
                        node.left.as_deref()
                    } else {
                        node.right.as_deref()
                    };
                }
            }
            let found = answers[..keys.len()]
                .iter()
                .map(|&answer| u64::from(answer));
            sum = found.fold(sum, add_in_order);
        }
        sum
    }
}

impl Structure for Tree<u64> {
    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError> {
        morph.run(&mut self.root, Node::children)
    }

    #[inline]
    fn answer(&self, query: u64) -> u32 {
        low_half(self.get(query))
    }
}
