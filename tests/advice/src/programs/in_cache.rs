//! A small search tree, searched many times.
//!
//! It fits the second-level cache, where a step costs few nanoseconds wherever the nodes lie, and
//! mispredicted comparisons cost more.

use super::mix;

hinted!(search);

struct Node {
    key: u32,
    links: [Link; 2],
}

type Link = Option<Box<Node>>;

fn search(size: usize, new: impl Fn(&Link, Node) -> Box<Node>) -> u64 {
    let mut random = fastrand::Rng::with_seed(4);
    let (mut root, mut sum): (Link, u64) = (None, 0);
    for step in 0..size {
        let (mut link, mut depth) = (&mut root, 0);
        let key = random.u32(..1_000);
        while link.as_ref().is_some_and(|node| node.key != key) {
            let node = link.as_mut().expect("just seen");
            link = &mut node.links[usize::from(key > node.key)];
            depth += 1;
        }
        if link.is_none() && step < 10_000 {
            *link = Some(new(
                link,
                Node {
                    key,
                    links: [None, None],
                },
            ));
        }
        sum = mix(sum, depth);
    }
    sum
}
