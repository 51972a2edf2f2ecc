//! A search tree of small keys, in boxes, most of whose bytes are pointers and padding.
//!
//! In a vector, with 32-bit indices for links, the same tree takes a third of the memory.

use super::{mix, shuffled};
use crate::{Kind, Program};

pub(super) const PROGRAM: Program = Program {
    name: "index_links",
    kind: Kind::Smaller,
    worth_it: true,
    note: "search tree with indices in place of boxes",
    size: 2_000_000,
    before: |size| {
        let new = |key| Some(Box::new(Node { key, left: None, right: None }));
        let mut nodes: Vec<(u32, Link)> = keys(size).map(|key| (key, new(key))).collect();
        nodes.sort_unstable_by_key(|node| node.0);
        let root = link(&mut nodes);
        search(size, |wanted| {
            let (mut at, mut depth) = (&root, 0);
            while let Some(node) = at.as_ref().filter(|node| node.key != wanted) {
                at = if wanted < node.key { &node.left } else { &node.right };
                depth += 1;
            }
            depth
        })
    },
    after: |size| {
        let mut nodes: Vec<Slim> = keys(size).map(|key| Slim { key, links: [NONE; 2] }).collect();
        let mut order: Vec<(u32, u32)> = nodes.iter().map(|node| node.key).zip(0..).collect();
        order.sort_unstable();
        let root = link_slim(&mut nodes, &order);
        search(size, |wanted| {
            let (mut at, mut depth) = (root, 0);
            while let Some(node) = nodes.get(at as usize).filter(|node| node.key != wanted) {
                at = node.links[usize::from(wanted >= node.key)];
                depth += 1;
            }
            depth
        })
    },
};

struct Node {
    key: u32,
    left: Link,
    right: Link,
}

type Link = Option<Box<Node>>;

struct Slim {
    key: u32,
    links: [u32; 2],
}

/// The index of no node.
const NONE: u32 = u32::MAX;

fn link(nodes: &mut [(u32, Link)]) -> Link {
    let (left, rest) = nodes.split_at_mut(nodes.len() / 2);
    let ((_, root), right) = rest.split_first_mut()?;
    let node = root.as_mut()?;
    (node.left, node.right) = (link(left), link(right));
    root.take()
}

fn link_slim(nodes: &mut [Slim], order: &[(u32, u32)]) -> u32 {
    let (left, rest) = order.split_at(order.len() / 2);
    let Some((&(_, root), right)) = rest.split_first() else { return NONE };
    nodes[root as usize].links = [link_slim(nodes, left), link_slim(nodes, right)];
    root
}

fn keys(size: usize) -> impl Iterator<Item = u32> {
    shuffled(size).into_iter().map(|key| (key >> 32) as u32)
}

fn search(size: usize, depth: impl Fn(u32) -> u64) -> u64 {
    keys(size).fold(0, |sum, key| mix(sum, depth(key)))
}
