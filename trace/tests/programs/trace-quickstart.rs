//! The structures of `examples/quickstart.rs` in a small size: a tree of boxes, and std's map.

use std::collections::BTreeMap;

unsafe extern "C" {
    static __executable_start: u8;
    static etext: u8;
}

struct Node {
    key: u64,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

fn grow(keys: &[u64]) -> Option<Box<Node>> {
    let mut root = None;
    for &key in keys {
        let mut link = &mut root;
        while let Some(node) = link {
            let node: &mut Box<Node> = node;
            link = if key < node.key {
                &mut node.left
            } else {
                &mut node.right
            };
        }
        let (left, right) = (None, None);
        *link = Some(Box::new(Node { key, left, right }));
    }
    root
}

fn find(root: &Option<Box<Node>>, key: u64) -> bool {
    let mut link = root;
    while let Some(node) = link {
        if node.key == key {
            return true;
        }
        link = if key < node.key {
            &node.left
        } else {
            &node.right
        };
    }
    false
}

fn chunk<T>(it: &T, size: usize) {
    println!("chunk {} {size}", std::ptr::from_ref(it).addr());
}

fn say(root: &Option<Box<Node>>) {
    if let Some(node) = root {
        chunk(&**node, size_of::<Node>());
        say(&node.left);
        say(&node.right);
    }
}

fn main() {
    let text = include_str!("trace-quickstart.rs").as_bytes();
    // A phrase of four bytes at each sampled position, and the position.
    let keys: Vec<u64> = (0..text.len() - 4)
        .step_by(7)
        .map(|at| {
            let phrase = u32::from_be_bytes(text[at..at + 4].try_into().unwrap());
            u64::from(phrase) << 32 | at as u64
        })
        .collect();
    let root = grow(&keys);
    let map: BTreeMap<u64, usize> = keys
        .iter()
        .enumerate()
        .map(|(at, &key)| (key, at))
        .collect();
    let found = keys.iter().rev().filter(|&&key| find(&root, key)).count();
    let sum: usize = keys.iter().filter_map(|key| map.get(&(key ^ 7))).sum();
    let start = (&raw const __executable_start).addr();
    println!("text {start} {}", (&raw const etext).addr());
    say(&root);
    chunk(&keys[0], size_of_val(&*keys));
    // The nodes of a map of std are its own affair: places of values are what can be known.
    for value in map.values() {
        chunk(value, size_of::<usize>());
    }
    println!("result {found} {sum} {}", map.len());
}
