//! The trie laid out for searches, or with numbers of four bytes for links.

use super::before::{forward, networks, table};

pub fn morph(size: usize) -> u64 {
    let mut root = table(size);
    let done = crate::morph().run(&mut root, |node, visit| visit(&mut node.children));
    done.expect("memory for the nodes");
    forward(size, |address| root.port(address))
}

/// A node of the vector; 0 is no node and no port.
#[derive(Clone, Default)]
struct Slim {
    port: u16,
    children: [u32; 16],
}

pub fn smaller(size: usize) -> u64 {
    let mut nodes = vec![Slim::default()];
    for (address, digits, port) in networks(size) {
        let mut at = 0;
        for digit in 0..digits {
            let (new, place) = (nodes.len(), (address >> (28 - 4 * digit)) as usize % 16);
            if nodes[at].children[place] == 0 {
                nodes[at].children[place] = new as u32;
                nodes.push(Slim::default());
            }
            at = nodes[at].children[place] as usize;
        }
        nodes[at].port = port;
    }
    forward(size, |address| {
        let (mut at, mut port) = (0, 0);
        for digit in 0..=8 {
            let node = &nodes[at];
            port = if node.port == 0 { port } else { node.port };
            if digit == 8 {
                break;
            }
            at = node.children[(address >> (28 - 4 * digit)) as usize % 16] as usize;
            if at == 0 {
                break;
            }
        }
        port
    })
}
