//! A search tree that grows by random keys while it is searched.
//!
//! There is no moment at which it is finished, so nothing can be moved; but each new node knows its
//! parent, and two nodes fit a cache line.

use super::{mix, shuffled};
use crate::{Kind, Program};

pub(super) const PROGRAM: Program = Program {
    name: "tree_growing",
    kind: Kind::Hint,
    worth_it: true,
    note: "search tree that grows while it is searched",
    size: 1_300_000,
    before: |size| grow(size, |_, node| Box::new(node)),
    after: |size| grow(size, |link, node| ccmalloc::near(link, || Box::new(node))),
};

struct Node {
    key: u64,
    value: u64,
    left: Link,
    right: Link,
}

type Link = Option<Box<Node>>;

fn grow(size: usize, new: impl Fn(&Link, Node) -> Box<Node>) -> u64 {
    let mut random = fastrand::Rng::with_seed(2);
    let (keys, mut root, mut sum) = (shuffled(size), None, 0);
    for (count, &key) in keys.iter().enumerate() {
        let (link, _) = find(&mut root, key);
        *link = Some(new(link, Node { key, value: 0, left: None, right: None }));
        let known = keys[random.usize(..=count)];
        sum = mix(sum, find(&mut root, known).1);
    }
    sum
}

/// The link at which `key` is or would be, and its depth.
fn find(mut link: &mut Link, key: u64) -> (&mut Link, u64) {
    let mut depth = 0;
    while link.as_ref().is_some_and(|node| node.key != key) {
        let node = link.as_mut().expect("just seen");
        link = if key < node.key { &mut node.left } else { &mut node.right };
        depth += 1;
    }
    (link, depth)
}
