//! Links of four bytes, and nodes in the order of the search.

use super::before::{Words, add_words, play};
use crate::morph as new_morph;
use ccmorph::Operation;

#[derive(Clone, Default)]
struct Node {
    /// Node 0 is no child.
    children: [u32; 27],
}

struct Trie {
    nodes: Vec<Node>,
}

impl Words for Trie {
    fn child(&self, node: usize, letter: u8) -> Option<usize> {
        let child = self.nodes[node].children[usize::from(letter)];
        (child != 0).then_some(child as usize)
    }

    fn grown(&mut self, node: usize, letter: u8) -> usize {
        self.child(node, letter).unwrap_or_else(|| {
            self.nodes.push(Node::default());
            let child = self.nodes.len() - 1;
            self.nodes[node].children[usize::from(letter)] = child as u32;
            child
        })
    }
}

fn trie(size: usize) -> Trie {
    let mut trie = Trie {
        nodes: vec![Node::default()],
    };
    add_words(size, &mut trie);
    trie
}

pub fn smaller(size: usize) -> u64 {
    play(size, &trie(size))
}

pub fn morph(size: usize) -> u64 {
    let mut trie = trie(size);
    let morph = new_morph().operation(Operation::Search);
    let mut root = 0_u32;
    let done = morph.run_slice(&mut trie.nodes, &mut root, |node, visit| {
        let children = node.children.iter_mut().filter(|child| **child != 0);
        children.for_each(|child| visit.child(child));
    });
    let report = done.expect("memory for the nodes");
    assert_eq!((root, report.reached), (0, trie.nodes.len()));
    play(size, &trie)
}
