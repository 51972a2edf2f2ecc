//! A routing table: a trie over the hexadecimal digits of addresses, searched for each packet.

use fastrand::Rng;

#[derive(Default)]
pub(super) struct Node {
    port: Option<u16>,
    pub(super) children: [Option<Box<Node>>; 16],
}

impl Node {
    fn insert(&mut self, address: u32, digits: u32, port: u16) {
        let mut node = self;
        for digit in 0..digits {
            let child = &mut node.children[(address >> (28 - 4 * digit)) as usize % 16];
            node = child.get_or_insert_default();
        }
        node.port = Some(port);
    }

    /// The port of the longest prefix of an address.
    pub(super) fn port(&self, address: u32) -> u16 {
        let (mut node, mut port) = (self, 0);
        for digit in 0..8 {
            port = node.port.unwrap_or(port);
            match &node.children[(address >> (28 - 4 * digit)) as usize % 16] {
                Some(child) => node = child,
                None => return port,
            }
        }
        node.port.unwrap_or(port)
    }
}

/// Networks, most of them of 24 bits.
pub(super) fn networks(size: usize) -> Vec<(u32, u32, u16)> {
    let mut random = Rng::with_seed(48);
    let mut network = |_| {
        let digits = [4, 5, 6, 6, 6, 6, 7][random.usize(..7)];
        (random.u32(..) >> 1, digits, random.u16(1..))
    };
    (0..size).map(&mut network).collect()
}

pub(super) fn table(size: usize) -> Box<Node> {
    let mut root = Box::new(Node::default());
    for (address, digits, port) in networks(size) {
        root.insert(address, digits, port);
    }
    root
}

pub(super) fn forward(size: usize, port: impl Fn(u32) -> u16) -> u64 {
    let (mut random, mut sum) = (Rng::with_seed(49), 0_u64);
    for _ in 0..36 * size {
        sum = sum.rotate_left(1) ^ u64::from(port(random.u32(..) >> 1));
    }
    sum
}

pub fn run(size: usize) -> u64 {
    let root = table(size);
    forward(size, |address| root.port(address))
}
