//! A search tree of small keys, in boxes, most of whose bytes are pointers and padding.
//!
//! In a vector, with 32-bit indices for links, the same tree takes half of the memory or less.

use super::{Link, arrive, balance, mix, order};

pub(super) fn before(size: usize) -> u64 {
    let new = |key| {
        Box::new(Node {
            key: narrow(key),
            links: [None, None],
        })
    };
    let root = balance(&mut arrive(size, new), |node| &mut node.links);
    search(size, |wanted| {
        let (mut link, mut depth) = (&root, 0);
        while let Some(node) = link.as_ref().filter(|node| node.key != wanted) {
            link = &node.links[usize::from(wanted > node.key)];
            depth += 1;
        }
        depth
    })
}

pub(super) fn after(size: usize) -> u64 {
    let mut nodes = Vec::new();
    let places = arrive(size, |key| {
        nodes.push(Slim {
            key: narrow(key),
            links: [NONE; 2],
        });
        narrow(nodes.len() - 1)
    });
    let root = balance_slim(&mut nodes, &places);
    search(size, |wanted| {
        let (mut at, mut depth) = (root, 0);
        while let Some(node) = nodes.get(at as usize).filter(|node| node.key != wanted) {
            at = node.links[usize::from(wanted > node.key)];
            depth += 1;
        }
        depth
    })
}

struct Node {
    key: u32,
    links: [Link<Node>; 2],
}

struct Slim {
    key: u32,
    links: [u32; 2],
}

/// The index of no node.
const NONE: u32 = u32::MAX;

fn balance_slim(nodes: &mut [Slim], places: &[Option<u32>]) -> u32 {
    let (below, rest) = places.split_at(places.len() / 2);
    let Some((&Some(root), above)) = rest.split_first() else {
        return NONE;
    };
    nodes[root as usize].links = [balance_slim(nodes, below), balance_slim(nodes, above)];
    root
}

fn search(size: usize, depth: impl Fn(u32) -> u64) -> u64 {
    order(size)
        .into_iter()
        .fold(0, |sum, key| mix(sum, depth(narrow(key))))
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("few nodes")
}
