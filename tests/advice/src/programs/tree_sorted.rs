//! A balanced search tree, linked once from records that arrived in random order.
//!
//! The nodes lie in the order of their arrival, so that each step of a search below the first
//! levels is a miss and touches a page of its own. A morph puts paths into cache lines and pages.

use super::{mix, shuffled};
use crate::{Kind, Program};
use ccmorph::{TreeNode, ccmorph};

pub(super) const PROGRAM: Program = Program {
    name: "tree_sorted",
    kind: Kind::Morph,
    worth_it: true,
    note: "search tree linked once, then searched",
    size: 2_000_000,
    before: |size| search(size, build(size)),
    after: |size| {
        let mut root = build(size);
        ccmorph(&mut root, Node::children).expect("the allocator is `CcMalloc`");
        search(size, root)
    },
};

#[derive(TreeNode)]
struct Node {
    key: u64,
    #[child]
    left: Link,
    #[child]
    right: Link,
}

type Link = Option<Box<Node>>;

fn build(size: usize) -> Link {
    let new = |key| Some(Box::new(Node { key, left: None, right: None }));
    let mut nodes: Vec<(u64, Link)> = shuffled(size).into_iter().map(|key| (key, new(key))).collect();
    nodes.sort_unstable_by_key(|node| node.0);
    link(&mut nodes)
}

fn link(nodes: &mut [(u64, Link)]) -> Link {
    let (left, rest) = nodes.split_at_mut(nodes.len() / 2);
    let ((_, root), right) = rest.split_first_mut()?;
    let node = root.as_mut()?;
    (node.left, node.right) = (link(left), link(right));
    root.take()
}

fn search(size: usize, root: Link) -> u64 {
    let keys = shuffled(size);
    keys.iter().chain(&keys[..size / 2]).fold(0, |sum, &key| {
        let (mut at, mut depth) = (&root, 0);
        while let Some(node) = at.as_ref().filter(|node| node.key != key) {
            at = if key < node.key { &node.left } else { &node.right };
            depth += 1;
        }
        mix(sum, depth)
    })
}
