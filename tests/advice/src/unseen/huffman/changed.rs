//! The tree laid out as a whole, or in a vector.

use super::before::{Node, decode, encode, hash, text, tree};
use ccmorph::Operation;

pub fn morph(size: usize) -> u64 {
    let text = text(size);
    let mut tree = tree(&text);
    let morph = crate::morph().operation(Operation::Path);
    let done = morph.run(&mut tree, |node, visit| {
        if let Node::Inner(left, right) = node {
            visit(left);
            visit(right);
        }
    });
    done.expect("memory for the nodes");
    hash(&decode(&encode(&text, &tree), &tree))
}

/// Nodes of four bytes: two links, or a mark and a byte.
pub fn smaller(size: usize) -> u64 {
    let text = text(size);
    let tree = tree(&text);
    let mut nodes = Vec::new();
    flatten(&tree, &mut nodes);
    let (mut at, mut decoded) = (0, Vec::new());
    for bit in encode(&text, &tree).iter() {
        at = usize::from(nodes[at][usize::from(bit)]);
        if let [LEAF, byte] = nodes[at] {
            decoded.push(byte as u8);
            at = 0;
        }
    }
    hash(&decoded)
}

const LEAF: u16 = u16::MAX;

fn flatten(node: &Node, nodes: &mut Vec<[u16; 2]>) -> u16 {
    let at = nodes.len();
    nodes.push([LEAF; 2]);
    nodes[at] = match node {
        Node::Leaf(byte) => [LEAF, u16::from(*byte)],
        Node::Inner(left, right) => [flatten(left, nodes), flatten(right, nodes)],
    };
    at as u16
}
