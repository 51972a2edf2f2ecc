//! A tree in a vector, in the order in which it is walked.
//!
//! The walk reads the vector from its beginning to its end. A morph of the vector leaves it so.

use super::mix;
use ccmorph::{Morph, Operation};

pub(super) fn before(size: usize) -> u64 {
    walks(&build(size))
}

pub(super) fn after(size: usize) -> u64 {
    let mut nodes = build(size);
    let morph = Morph::new().operation(Operation::Walk);
    let report = morph.run_slice(&mut nodes, &mut 0_u32, |node, visit| {
        visit.child(&mut node.links);
    });
    let report = report.expect("a u32 can hold any index");
    assert_eq!(report.reached, size, "it is one tree");
    walks(&nodes)
}

struct Node {
    value: u32,
    links: [Option<u32>; 2],
}

fn build(size: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    add(&mut nodes, size);
    nodes
}

/// Adds a tree of so many nodes, its root first.
fn add(nodes: &mut Vec<Node>, size: usize) -> Option<u32> {
    let rest = size.checked_sub(1)?;
    let root = nodes.len();
    let index = u32::try_from(root).expect("few nodes");
    nodes.push(Node {
        value: index % 7,
        links: [None, None],
    });
    let left = add(nodes, rest / 2);
    nodes[root].links = [left, add(nodes, rest - rest / 2)];
    Some(index)
}

fn walks(nodes: &[Node]) -> u64 {
    (0..25).fold(0, |sum, round| mix(sum, walk(nodes, Some(0), round)))
}

fn walk(nodes: &[Node], at: Option<u32>, round: u64) -> u64 {
    let Some(node) = at.map(|at| &nodes[at as usize]) else {
        return round;
    };
    node.links.iter().fold(u64::from(node.value), |sum, &link| {
        mix(sum, walk(nodes, link, round))
    })
}
