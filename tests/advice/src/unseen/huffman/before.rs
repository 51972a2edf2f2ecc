//! A compressor of texts by the frequencies of bytes.

use fastrand::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Leaf(u8),
    Inner(Box<Node>, Box<Node>),
}

/// Some bytes are far more frequent than others.
pub(super) fn text(size: usize) -> Vec<u8> {
    let mut random = Rng::with_seed(125);
    let byte = |_| (random.f64().powi(4) * 200.0) as u8;
    (0..size).map(byte).collect()
}

pub(super) fn tree(text: &[u8]) -> Box<Node> {
    let mut counts = [1_u64; 256];
    text.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let leaf = |byte: u8| Reverse((counts[usize::from(byte)], Box::new(Node::Leaf(byte))));
    let mut heap: BinaryHeap<_> = (0..=255).map(leaf).collect();
    loop {
        let Reverse((count, node)) = heap.pop().unwrap();
        let Some(Reverse((other, right))) = heap.pop() else {
            return node;
        };
        heap.push(Reverse((count + other, Box::new(Node::Inner(node, right)))));
    }
}

fn codes(node: &Node, code: Vec<bool>, all: &mut [Vec<bool>]) {
    match node {
        Node::Leaf(byte) => all[usize::from(*byte)] = code,
        Node::Inner(left, right) => {
            codes(left, [&code[..], &[false]].concat(), all);
            codes(right, [&code[..], &[true]].concat(), all);
        }
    }
}

pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.words[self.len / 64] |= u64::from(bit) << (self.len % 64);
        self.len += 1;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = bool> {
        (0..self.len).map(|at| self.words[at / 64] >> (at % 64) & 1 == 1)
    }
}

pub(super) fn encode(text: &[u8], tree: &Node) -> Bits {
    let mut all = vec![Vec::new(); 256];
    codes(tree, Vec::new(), &mut all);
    let mut bits = Bits {
        words: Vec::new(),
        len: 0,
    };
    for byte in text {
        all[usize::from(*byte)]
            .iter()
            .for_each(|bit| bits.push(*bit));
    }
    bits
}

pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum: u64, &byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    })
}

pub(super) fn decode(bits: &Bits, tree: &Node) -> Vec<u8> {
    let (mut at, mut text) = (tree, Vec::new());
    for bit in bits.iter() {
        if let Node::Inner(left, right) = at {
            at = if bit { right } else { left };
        }
        if let Node::Leaf(byte) = at {
            text.push(*byte);
            at = tree;
        }
    }
    text
}

pub fn run(size: usize) -> u64 {
    let text = text(size);
    let tree = tree(&text);
    hash(&decode(&encode(&text, &tree), &tree))
}
