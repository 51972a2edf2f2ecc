//! A program that computes, with a large search tree that it asks now and then.
//!
//! The lookups miss, but the time goes into the arithmetic between them.

use super::{mix, shuffled};
use ccmorph::TreeNode;

morphed!(Node::children; |size| build(size), |root| compute(size, root));

#[derive(TreeNode)]
struct Node {
    key: u64,
    factors: [u64; 9],
    #[child]
    links: [Option<Box<Node>>; 2],
}

fn build(size: usize) -> Option<Box<Node>> {
    let mut root = None;
    for key in shuffled(size) {
        let mut link = &mut root;
        while let Some(node) = link {
            let node: &mut Box<Node> = node;
            link = &mut node.links[usize::from(key > node.key)];
        }
        *link = Some(Box::new(Node {
            key,
            factors: [key; 9],
            links: [None, None],
        }));
    }
    root
}

fn compute(size: usize, root: &Option<Box<Node>>) -> u64 {
    let mut value = 1;
    for _ in 0..size / 8 {
        value = (0..20_000).fold(value, mix);
        let mut link = root;
        while let Some(node) = link {
            value ^= node.factors[0] & 1;
            link = &node.links[usize::from(value > node.key)];
        }
    }
    value
}
