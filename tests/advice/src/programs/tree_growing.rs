//! A search tree that grows by random keys while it is searched.
//!
//! There is no moment at which it is finished, so nothing can be moved; but each new node knows its
//! parent, and two nodes fit a cache line.

use super::{mix, shuffled};

hinted!(grow);

struct Node {
    key: u64,
    value: u32,
    left: Link,
    right: Link,
}

type Link = Option<Box<Node>>;

fn grow(size: usize, new: impl Fn(&Link, Node) -> Box<Node>) -> u64 {
    let mut random = fastrand::Rng::with_seed(2);
    let (keys, mut root, mut sum) = (shuffled(size).collect::<Vec<_>>(), None, 0);
    for (value, &key) in (0..).zip(&keys) {
        let link = find(&mut root, key);
        *link = Some(new(
            link,
            Node {
                key,
                value,
                left: None,
                right: None,
            },
        ));
        let known = random.u32(..=value);
        let found = find(&mut root, keys[known as usize]);
        sum = mix(sum, found.as_ref().map_or(0, |node| node.value.into()));
    }
    sum
}

/// The link at which `key` is or would be.
fn find(mut link: &mut Link, key: u64) -> &mut Link {
    while link.as_ref().is_some_and(|node| node.key != key) {
        let node = link.as_mut().expect("just seen");
        link = if key < node.key {
            &mut node.left
        } else {
            &mut node.right
        };
    }
    link
}
