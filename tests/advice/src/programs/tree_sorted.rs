//! A balanced search tree, linked once from records that arrived in random order.
//!
//! The nodes lie in the order of their arrival, so that each step of a search below the first
//! levels is a miss and touches a page of its own. A morph puts paths into cache lines and pages.

use super::{Link, arrive, balance, mix, order};
use ccmorph::TreeNode;

morphed!(Node::children; |size| build(size), |root| search(size, root));

#[derive(TreeNode)]
struct Node {
    key: usize,
    #[child]
    links: [Option<Box<Node>>; 2],
}

fn build(size: usize) -> Link<Node> {
    let new = |key| {
        Box::new(Node {
            key,
            links: [None, None],
        })
    };
    balance(&mut arrive(size, new), |node| &mut node.links)
}

fn search(size: usize, root: &Link<Node>) -> u64 {
    let keys = order(size);
    keys.iter().chain(&keys).fold(0, |sum, &key| {
        let (mut link, mut depth) = (root, 0);
        while let Some(node) = link.as_ref().filter(|node| node.key != key) {
            link = &node.links[usize::from(key > node.key)];
            depth += 1;
        }
        mix(sum, depth)
    })
}
