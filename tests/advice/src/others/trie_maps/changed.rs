//! A vector of children in each node, or a vector of nodes.

use super::before::word;
use fastrand::Rng;

#[derive(Default)]
struct Node {
    children: Vec<(char, Box<Node>)>,
    words: u64,
}

pub fn idea(size: usize) -> u64 {
    let mut root = Node::default();
    run(
        size,
        &mut root,
        |root, word| {
            let mut node = root;
            for letter in word.chars() {
                node.words += 1;
                let known = node.children.iter().position(|child| child.0 == letter);
                let place = known.unwrap_or_else(|| {
                    node.children.push((letter, Box::default()));
                    node.children.len() - 1
                });
                node = &mut node.children[place].1;
            }
            node.words += 1;
        },
        |root, start| {
            let mut node: &Node = root;
            for letter in start.chars() {
                match node.children.iter().find(|child| child.0 == letter) {
                    Some((_, child)) => node = child,
                    None => return 0,
                }
            }
            node.words
        },
    )
}

/// A node of the vector, by whose numbers nodes are linked; 0 is no node.
#[derive(Default)]
struct Slim {
    letter: char,
    words: u32,
    child: u32,
    sibling: u32,
}

pub fn smaller(size: usize) -> u64 {
    let mut nodes = vec![Slim::default()];
    run(
        size,
        &mut nodes,
        |nodes, word| {
            let mut at = 0;
            for letter in word.chars() {
                nodes[at].words += 1;
                let mut next = child(nodes, at, letter);
                if next == 0 {
                    next = nodes.len();
                    let sibling = std::mem::replace(&mut nodes[at].child, next as u32);
                    nodes.push(Slim {
                        letter,
                        sibling,
                        ..Slim::default()
                    });
                }
                at = next;
            }
            nodes[at].words += 1;
        },
        |nodes, start| {
            let mut at = 0;
            for letter in start.chars() {
                at = child(nodes, at, letter);
                if at == 0 {
                    return 0;
                }
            }
            nodes[at].words.into()
        },
    )
}

fn child(nodes: &[Slim], of: usize, letter: char) -> usize {
    let mut at = nodes[of].child as usize;
    while at != 0 && nodes[at].letter != letter {
        at = nodes[at].sibling as usize;
    }
    at
}

fn run<T>(
    size: usize,
    trie: &mut T,
    insert: impl Fn(&mut T, &str),
    starting_with: impl Fn(&T, &str) -> u64,
) -> u64 {
    let (mut random, mut sum) = (Rng::with_seed(47), 0_u64);
    for _ in 0..size {
        insert(trie, &word(&mut random));
    }
    for _ in 0..4 * size {
        let mut start = word(&mut random);
        start.truncate(8);
        sum = sum.rotate_left(1) ^ starting_with(trie, &start);
    }
    sum
}
