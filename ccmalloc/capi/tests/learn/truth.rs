//! As `truth.c`, with Rust's boxes and collections: `truth STRUCTURE`.

use std::cell::RefCell;
use std::collections::{BTreeMap, LinkedList};
use std::rc::Rc;

const NODES: u64 = 120_000;

struct Random(u64);

impl Iterator for Random {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Some(self.0)
    }
}

fn keys() -> impl Iterator<Item = u64> {
    Random(88_172_645_463_325_252).take(NODES as usize)
}

/// 24 bytes.
struct Tree {
    left: Option<Box<Tree>>,
    right: Option<Box<Tree>>,
    key: u64,
}

fn node(key: u64) -> Option<Box<Tree>> {
    Some(Box::new(Tree {
        left: None,
        right: None,
        key,
    }))
}

#[inline(never)]
fn insert_by_loop(mut place: &mut Option<Box<Tree>>, key: u64) {
    while let Some(tree) = place {
        place = if key < tree.key {
            &mut tree.left
        } else {
            &mut tree.right
        };
    }
    *place = node(key);
}

#[inline(never)]
fn insert_by_recursion(at: Option<Box<Tree>>, key: u64) -> Option<Box<Tree>> {
    let Some(mut tree) = at else { return node(key) };
    if key < tree.key {
        tree.left = insert_by_recursion(tree.left.take(), key);
    } else {
        tree.right = insert_by_recursion(tree.right.take(), key);
    }
    Some(tree)
}

fn sum_tree(at: &Option<Box<Tree>>) -> u64 {
    at.as_ref().map_or(1, |tree| {
        let (left, right) = (sum_tree(&tree.left), sum_tree(&tree.right));
        tree.key
            .wrapping_add(left.wrapping_mul(3))
            .wrapping_add(right.wrapping_mul(5))
    })
}

fn tree_by_loop() -> u64 {
    let mut root = None;
    keys().for_each(|key| insert_by_loop(&mut root, key));
    sum_tree(&root)
}

fn tree_by_recursion() -> u64 {
    sum_tree(&keys().fold(None, insert_by_recursion))
}

fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, |sum, value| sum.wrapping_mul(7).wrapping_add(value))
}

/// Nodes of 32 bytes, between which others of that size are allocated.
fn linked_list() -> u64 {
    let mut list = LinkedList::new();
    let mut strangers: Vec<Box<[u64; 4]>> = (0..1024).map(|_| Box::new([0; 4])).collect();
    for key in keys() {
        list.push_back((key, 1_u64));
        strangers[(key % 1024) as usize] = Box::new([key; 4]);
    }
    sum(list.iter().map(|(key, one)| key + one - 1)) ^ strangers[0][0]
}

/// 32 bytes.
struct Edge {
    to: u64,
    weight: [u64; 2],
    next: Option<Box<Edge>>,
}

/// 32 bytes: with its counts.
struct Vertex {
    edges: Option<Box<Edge>>,
}

#[inline(never)]
fn add_edge(vertex: &RefCell<Vertex>, to: u64) {
    let mut vertex = vertex.borrow_mut();
    let next = vertex.edges.take();
    vertex.edges = Some(Box::new(Edge {
        to,
        weight: [to; 2],
        next,
    }));
}

fn graph() -> u64 {
    let vertex = |_| Rc::new(RefCell::new(Vertex { edges: None }));
    let vertices: Vec<_> = (0..NODES / 16).map(vertex).collect();
    keys().for_each(|key| add_edge(&vertices[(key % (NODES / 16)) as usize], key));
    sum(vertices.iter().map(|vertex| {
        let vertex = vertex.borrow();
        let mut edge = vertex.edges.as_deref();
        let edges = std::iter::from_fn(|| {
            let this = edge?;
            edge = this.next.as_deref();
            Some(this.to ^ this.weight[1] ^ this.weight[0])
        });
        sum(edges)
    }))
}

/// 24 bytes.
#[derive(Default)]
struct Trie {
    children: [Option<Box<Trie>>; 2],
    count: u64,
}

#[inline(never)]
fn insert_word(mut at: &mut Trie, word: u64) {
    for level in 0..24 {
        at = at.children[(word >> level) as usize % 2].get_or_insert_default();
    }
    at.count += 1;
}

fn sum_trie(at: &Trie) -> u64 {
    at.count + sum(at.children.iter().flatten().map(|child| sum_trie(child)))
}

fn trie() -> u64 {
    let mut root = Trie::default();
    keys()
        .take(NODES as usize / 8)
        .for_each(|key| insert_word(&mut root, key));
    sum_trie(&root)
}

// From here on: nothing is to be proposed.
fn strings() -> u64 {
    let texts: Vec<String> = keys().map(|key| format!("the key number {key}")).collect();
    sum(texts.iter().map(|text| text.len() as u64))
}

fn btree_map() -> u64 {
    let mut map = BTreeMap::new();
    keys().for_each(|key| {
        map.insert(key, key / 3);
    });
    sum(map.into_values())
}

/// Nodes that name each other by index.
fn arena() -> u64 {
    let mut nodes: Vec<(usize, usize, u64)> = Vec::new();
    for key in keys() {
        let (new, mut at) = (nodes.len(), 0);
        while let Some(node) = nodes.get_mut(at) {
            let child = if key < node.2 {
                &mut node.0
            } else {
                &mut node.1
            };
            at = if *child == 0 {
                std::mem::replace(child, new)
            } else {
                *child
            };
            if at == 0 {
                break;
            }
        }
        nodes.push((0, 0, key));
    }
    sum(nodes.iter().map(|node| node.0 as u64 ^ node.2))
}

fn temporaries() -> u64 {
    sum((0..NODES * 4).map(|number| {
        let list: LinkedList<_> = [number.to_string(), (number / 2).to_string()].into();
        list.iter().map(|text| text.len() as u64).sum()
    }))
}

fn main() {
    let mode = std::env::args().nth(1).expect("a mode");
    let run = match &*mode {
        "loop" => tree_by_loop,
        "recursion" => tree_by_recursion,
        "linked_list" => linked_list,
        "graph" => graph,
        "trie" => trie,
        "strings" => strings,
        "btree_map" => btree_map,
        "arena" => arena,
        "temporaries" => temporaries,
        _ => panic!("no such mode"),
    };
    println!("{}", run());
}
