//! A binary search tree that does not balance itself, with 32 bytes a node.
//!
//! Inserting key by key costs a dozen dependent cache misses a node. So a [`Plan`] computes the
//! shape in arrays, and builds the tree in two passes whose misses overlap:
//!
//! ```text
//! plan:   the parents are those of the Cartesian tree over (key, time of insertion), O(n log n)
//! build:  allocate the nodes in the order of insertion
//!         link each to its parent, children before parents
//! ```
//!
//! The allocator sees the same allocations in the same order as in a program that inserts, and the
//! tree is the same. In a complete tree the order of insertion is random.

use crate::rng::Rng;
use ccmorph::{Morph, MorphError, Report, TreeNode};

use super::Structure;
use crate::chain::add_in_order;

/// One node.
#[derive(Clone, Debug, TreeNode)]
pub struct Node {
    /// The key; smaller ones lie to the left, larger ones to the right.
    pub key: u64,
    /// What belongs to the key.
    pub value: u64,
    /// Everything smaller.
    #[child]
    pub left: Option<Box<Node>>,
    /// Everything larger.
    #[child]
    pub right: Option<Box<Node>>,
}

const _: () = assert!(size_of::<Node>() == 32);

/// What a tree is to look like, and when each of its nodes is born.
#[derive(Clone, Debug)]
pub struct Plan {
    /// By order of birth.
    keys: Vec<u64>,
    /// By order of birth; that of the root is [`Place::ROOT`].
    places: Vec<Place>,
    /// All nodes, children before their parents; the last is the root.
    bottom_up: Vec<u32>,
}

/// A side of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Of the smaller keys.
    Left,
    /// Of the larger keys.
    Right,
}

/// Below which node another one hangs, and on which side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// Twice the parent's number, and one more on its right.
    bits: u32,
}

impl Place {
    const ROOT: Place = Place { bits: u32::MAX };

    fn left_of(parent: u32) -> Place {
        Place { bits: parent << 1 }
    }

    fn right_of(parent: u32) -> Place {
        Place {
            bits: parent << 1 | 1,
        }
    }

    fn parent(self) -> Option<(u32, Side)> {
        let side = if self.bits & 1 == 0 {
            Side::Left
        } else {
            Side::Right
        };
        (self != Place::ROOT).then_some((self.bits >> 1, side))
    }
}

/// Nodes of a plan at most, so that a [`Place`] is 4 bytes.
const NODES_MAX: usize = 1 << 30;

/// A number of a node. Plans are no larger than [`NODES_MAX`], so it fits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "plans have 2^30 nodes at most"
)]
fn number(index: usize) -> u32 {
    index as u32
}

impl Plan {
    /// The tree that `keys` give when they are inserted in their order.
    ///
    /// # Panics
    /// When a key comes twice, or when there are more than 2^30.
    pub fn of_inserts(keys: &[u64]) -> Plan {
        assert!(keys.len() <= NODES_MAX, "plans have 2^30 nodes at most");
        let mut sorted: Vec<(u64, u32)> = keys
            .iter()
            .enumerate()
            .map(|(birth, &key)| (key, number(birth)))
            .collect();
        sorted.sort_unstable();
        assert!(
            sorted.is_sorted_by(|a, b| a.0 < b.0),
            "a tree has each key once"
        );
        // The rightmost path of the tree over the keys so far: births grow along it, as a node is
        // born before all that hangs below it.
        let mut path: Vec<u32> = Vec::new();
        let mut places = vec![Place::ROOT; keys.len()];
        for &(_, birth) in &sorted {
            let mut below = None;
            while path.last().is_some_and(|&last| last > birth) {
                below = path.pop();
            }
            if let Some(below) = below {
                places[below as usize] = Place::left_of(birth);
            }
            if let Some(&parent) = path.last() {
                places[birth as usize] = Place::right_of(parent);
            }
            path.push(birth);
        }
        Plan {
            keys: keys.to_vec(),
            places,
            bottom_up: (0..number(keys.len())).rev().collect(),
        }
    }

    /// A tree with `2^levels - 1` nodes and no shorter path, whose nodes were born in random order;
    /// the keys are those of `seed`.
    ///
    /// # Panics
    /// When there would be more than 2^30 nodes.
    pub fn complete(levels: u32, seed: u64) -> Plan {
        assert!(levels <= 30, "plans have 2^30 nodes at most");
        let nodes = (1_usize << levels) - 1;
        let mut rng = Rng::new(seed);
        let mut sorted: Vec<u64> = (0..nodes).map(|_| rng.next_u64()).collect();
        sorted.sort_unstable();
        let mut birth_of: Vec<u32> = (0..number(nodes)).collect();
        rng.shuffle(&mut birth_of);

        let mut keys = vec![0; nodes];
        let mut places = vec![Place::ROOT; nodes];
        let mut bottom_up = Vec::with_capacity(nodes);
        let mut pending = vec![(0..nodes, Place::ROOT)];
        while let Some((range, place)) = pending.pop() {
            if range.is_empty() {
                continue;
            }
            let middle = range.start + range.len() / 2;
            let birth = birth_of[middle];
            keys[birth as usize] = sorted[middle];
            places[birth as usize] = place;
            bottom_up.push(birth);
            pending.push((middle + 1..range.end, Place::right_of(birth)));
            pending.push((range.start..middle, Place::left_of(birth)));
        }
        bottom_up.reverse();
        Plan {
            keys,
            places,
            bottom_up,
        }
    }

    /// The keys, in the order in which their nodes are born.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The tree; the value of a key is the key with its halves exchanged.
    pub fn build(&self) -> Tree {
        let leaf = |key: u64| Node {
            key,
            value: key.rotate_left(32),
            left: None,
            right: None,
        };
        let root = self.grow(leaf, |parent, side| match side {
            Side::Left => &mut parent.left,
            Side::Right => &mut parent.right,
        });
        Tree { root }
    }

    /// The tree, of nodes of another kind: `leaf` makes one, `link` says where it holds its child
    /// on a side.
    pub fn grow<N>(
        &self,
        leaf: impl Fn(u64) -> N,
        link: impl Fn(&mut N, Side) -> &mut Option<Box<N>>,
    ) -> Option<Box<N>> {
        let newborn = self.keys.iter().map(|&key| Some(Box::new(leaf(key))));
        let mut nodes: Vec<Option<Box<N>>> = newborn.collect();
        let mut root = None;
        for &birth in &self.bottom_up {
            let node = nodes[birth as usize].take();
            match self.places[birth as usize].parent() {
                None => root = node,
                Some((parent, side)) => {
                    if let Some(parent) = &mut nodes[parent as usize] {
                        *link(parent, side) = node;
                    }
                }
            }
        }
        root
    }
}

/// A map from `u64` to `u64` in a binary search tree.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    root: Option<Box<Node>>,
}

impl Tree {
    /// Inserts `key` with `value`, or replaces the value that it had. Walks one path.
    pub fn insert(&mut self, key: u64, value: u64) {
        let mut link = &mut self.root;
        while let Some(node) = link {
            if key == node.key {
                node.value = value;
                return;
            }
            link = if key < node.key {
                &mut node.left
            } else {
                &mut node.right
            };
        }
        *link = Some(Box::new(Node {
            key,
            value,
            left: None,
            right: None,
        }));
    }

    /// The value of `key`. Walks one path.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u64> {
        let mut link = self.root.as_deref();
        while let Some(node) = link {
            if key == node.key {
                return Some(node.value);
            }
            link = if key < node.key {
                node.left.as_deref()
            } else {
                node.right.as_deref()
            };
        }
        None
    }

    /// Looks up all of `keys`, which are known in advance, so that the processor may begin with
    /// later ones before it has finished earlier ones. A sum over the answers in their order.
    #[inline(never)]
    pub fn get_all(&self, keys: &[u64]) -> u64 {
        keys.iter().fold(0, |sum, &key| {
            add_in_order(sum, u64::from(self.answer(key)))
        })
    }

    /// Looks up all of `keys`, eight at a time, each step of one after the same step of the others.
    /// The same sum as that of [`get_all`](Tree::get_all).
    #[inline(never)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half is what is asked for"
    )]
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
                        *answer = node.value as u32;
                        None
                    } else if key < node.key {
                        node.left.as_deref()
                    } else {
                        node.right.as_deref()
                    };
                }
            }
            for answer in &answers[..keys.len()] {
                sum = add_in_order(sum, u64::from(*answer));
            }
        }
        sum
    }

    /// Lays the nodes out, given how often a lookup ends at each.
    ///
    /// # Errors
    /// Those of [`Morph::run_weighted`].
    pub fn morph_weighted(
        &mut self,
        morph: &Morph<'_>,
        weigh: impl FnMut(&Node) -> f64,
    ) -> Result<Report, MorphError> {
        morph.run_weighted(&mut self.root, Node::children, weigh)
    }

    /// The root, for whoever walks the tree.
    pub fn root(&self) -> Option<&Node> {
        self.root.as_deref()
    }
}

impl Structure for Tree {
    fn copy(&self) -> Self {
        self.clone()
    }

    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError> {
        morph.run(&mut self.root, Node::children)
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half is what is asked for"
    )]
    fn answer(&self, query: u64) -> u32 {
        self.get(query).map_or(u32::MAX, |value| value as u32)
    }
}

impl Drop for Tree {
    /// Frees node by node, with the pending subtrees on the heap, so that no shape of tree ends the
    /// program by one stack frame a node.
    fn drop(&mut self) {
        let mut pending: Vec<Box<Node>> = self.root.take().into_iter().collect();
        while let Some(mut node) = pending.pop() {
            pending.extend(node.right.take());
            pending.extend(node.left.take());
        }
    }
}
