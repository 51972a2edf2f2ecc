//! The red-black tree of `intrusive-collections`, filled at random and then looked up.
//!
//! With three links a node takes most of a cache line, for one key. A node of `CTreeMap` holds
//! thirty keys.

use super::{mix, shuffled};
use ctree::CTreeMap;
use intrusive_collections::{KeyAdapter, RBTree, RBTreeLink, intrusive_adapter};

pub(super) fn before(size: usize) -> u64 {
    let mut tree = RBTree::new(Adapter::new());
    for (key, value) in shuffled(size).zip(0..) {
        tree.insert(Box::new(Node {
            link: RBTreeLink::new(),
            key,
            value,
        }));
    }
    look_up(size, |key| tree.find(&key).get().map(|node| node.value))
}

pub(super) fn after(size: usize) -> u64 {
    let mut tree = CTreeMap::new();
    tree.extend(shuffled(size).zip(0..));
    look_up(size, |key| tree.get(&key).copied())
}

struct Node {
    link: RBTreeLink,
    key: u64,
    value: u64,
}

intrusive_adapter!(Adapter = Box<Node>: Node { link => RBTreeLink });

impl KeyAdapter<'_> for Adapter {
    type Key = u64;

    fn get_key(&self, node: &Node) -> u64 {
        node.key
    }
}

fn look_up(size: usize, get: impl Fn(u64) -> Option<u64>) -> u64 {
    let keys = shuffled(size).chain(shuffled(size));
    keys.fold(0, |sum, key| mix(sum, get(key).unwrap_or(0)))
}
