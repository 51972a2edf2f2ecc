//! A document store that keeps versions: a search tree of which changes copy the path.

use fastrand::Rng;
use std::rc::Rc;

pub(super) type Link = Option<Rc<Node>>;

pub(super) struct Node {
    key: u32,
    pub(super) value: Rc<str>,
    left: Link,
    right: Link,
}

impl Node {
    fn copied(&self) -> Node {
        let Node {
            key,
            value,
            left,
            right,
        } = self;
        Node {
            key: *key,
            value: value.clone(),
            left: left.clone(),
            right: right.clone(),
        }
    }
}

/// How a node is made, which lies behind the link that is the first argument.
pub(super) type New = fn(&Link, Node) -> Rc<Node>;

fn insert(link: &Link, key: u32, value: &Rc<str>, new: New) -> Link {
    let Some(node) = link else {
        let value = value.clone();
        return Some(new(
            link,
            Node {
                key,
                value,
                left: None,
                right: None,
            },
        ));
    };
    let mut copy = node.copied();
    if key == node.key {
        copy.value = value.clone();
    } else if key < node.key {
        copy.left = insert(&node.left, key, value, new);
    } else {
        copy.right = insert(&node.right, key, value, new);
    }
    Some(new(
        if key < node.key {
            &node.left
        } else {
            &node.right
        },
        copy,
    ))
}

fn find(mut link: &Link, key: u32) -> Option<&str> {
    while let Some(node) = link {
        if key == node.key {
            return Some(&node.value);
        }
        link = if key < node.key {
            &node.left
        } else {
            &node.right
        };
    }
    None
}

const VERSIONS: usize = 50;

/// Changes, with queries of the latest versions among them.
pub(super) fn serve(size: usize, new: New) -> u64 {
    let mut random = Rng::with_seed(134);
    let mut versions: Vec<Link> = vec![None; VERSIONS];
    let texts: Vec<Rc<str>> = (1..100)
        .map(|number| "text ".repeat(number).into())
        .collect();
    (0..3 * size).fold(0, |sum: u64, number| {
        let key = random.u32(..size as u32);
        let latest = &versions[number % VERSIONS];
        let next = insert(latest, key, random.choice(&texts).unwrap(), new);
        versions[(number + 1) % VERSIONS] = next;
        let asked = &versions[random.usize(..VERSIONS)];
        let found = find(asked, random.u32(..size as u32));
        sum.rotate_left(1) ^ found.map_or(7, |text| text.len() as u64)
    })
}

pub fn run(size: usize) -> u64 {
    serve(size, |_, node| Rc::new(node))
}
