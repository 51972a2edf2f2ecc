//! A leaderboard: a treap of scores that says how many are below a score.

use fastrand::Rng;

pub(super) type Link = Option<Box<Node>>;

pub(super) struct Node {
    pub(super) score: u64,
    pub(super) priority: u32,
    pub(super) count: usize,
    pub(super) left: Link,
    pub(super) right: Link,
}

impl Node {
    pub(super) fn new(score: u64, priority: u32) -> Self {
        Node {
            score,
            priority,
            count: 1,
            left: None,
            right: None,
        }
    }

    pub(super) fn update(&mut self) {
        self.count = 1 + count(&self.left) + count(&self.right);
    }
}

fn count(link: &Link) -> usize {
    link.as_ref().map_or(0, |node| node.count)
}

pub(super) fn split(link: Link, score: u64) -> (Link, Link) {
    let Some(mut node) = link else {
        return (None, None);
    };
    if node.score < score {
        let (left, right) = split(node.right.take(), score);
        node.right = left;
        node.update();
        (Some(node), right)
    } else {
        let (left, right) = split(node.left.take(), score);
        node.left = right;
        node.update();
        (left, Some(node))
    }
}

pub(super) fn insert(link: &mut Link, score: u64, priority: u32) {
    match link {
        Some(node) if node.priority >= priority => {
            node.count += 1;
            let next = if node.score < score {
                &mut node.right
            } else {
                &mut node.left
            };
            insert(next, score, priority);
        }
        _ => {
            let mut node = Box::new(Node::new(score, priority));
            (node.left, node.right) = split(link.take(), score);
            node.update();
            *link = Some(node);
        }
    }
}

fn rank(mut link: &Link, score: u64) -> usize {
    let mut below = 0;
    while let Some(node) = link {
        if node.score < score {
            below += count(&node.left) + 1;
            link = &node.right;
        } else {
            link = &node.left;
        }
    }
    below
}

pub(super) fn filled(size: usize, insert: fn(&mut Link, u64, u32)) -> Link {
    let (mut random, mut root) = (Rng::with_seed(45), None);
    for _ in 0..size {
        insert(&mut root, random.u64(..1 << 40), random.u32(..));
    }
    root
}

pub(super) fn ranks(size: usize, root: &Link) -> u64 {
    let mut random = Rng::with_seed(51);
    (0..size).fold(0, |sum: u64, _| {
        sum.rotate_left(1) ^ rank(root, random.u64(..1 << 40)) as u64
    })
}

pub fn run(size: usize) -> u64 {
    ranks(size, &filled(size, insert))
}
