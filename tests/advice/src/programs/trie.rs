//! A trie of random words over four letters, with a list of children in each node.
//!
//! A lookup follows the lists, node by node. A box takes 32 bytes. In a vector, with 32-bit indices
//! for links, a node takes half of that.

use super::mix;

pub(super) fn before(size: usize) -> u64 {
    let mut root = None;
    spell(size, |word| count(&mut root, word))
}

pub(super) fn after(size: usize) -> u64 {
    let mut nodes = vec![Slim::default()];
    spell(size, |word| count_slim(&mut nodes, word))
}

struct Node {
    letter: u8,
    words: u32,
    child: Link,
    sibling: Link,
}

type Link = Option<Box<Node>>;

/// A node of the vector. Its first is the root, to which no link leads.
#[derive(Default)]
struct Slim {
    letter: u8,
    words: u32,
    child: u32,
    sibling: u32,
}

fn spell(size: usize, mut count: impl FnMut(&[u8]) -> u32) -> u64 {
    let mut random = fastrand::Rng::with_seed(8);
    let words: Vec<[u8; 11]> = (0..size)
        .map(|_| [(); 11].map(|()| random.u8(..4)))
        .collect();
    words
        .iter()
        .chain(&words[..size / 2])
        .fold(0, |sum, word| mix(sum, count(word).into()))
}

/// Counts a word; returns how often it has been counted.
fn count(mut link: &mut Link, word: &[u8]) -> u32 {
    let mut words = &mut 0;
    for &letter in word {
        while link.as_ref().is_some_and(|node| node.letter != letter) {
            link = &mut link.as_mut().expect("just seen").sibling;
        }
        let new = || {
            Box::new(Node {
                letter,
                words: 0,
                child: None,
                sibling: None,
            })
        };
        let node = link.get_or_insert_with(new);
        (link, words) = (&mut node.child, &mut node.words);
    }
    *words += 1;
    *words
}

fn count_slim(nodes: &mut Vec<Slim>, word: &[u8]) -> u32 {
    let mut at = 0;
    for &letter in word {
        let new = u32::try_from(nodes.len()).expect("few nodes");
        let mut link = &mut nodes[at].child;
        loop {
            if *link == 0 {
                *link = new;
                at = new as usize;
                nodes.push(Slim {
                    letter,
                    ..Slim::default()
                });
                break;
            }
            at = *link as usize;
            if nodes[at].letter == letter {
                break;
            }
            link = &mut nodes[at].sibling;
        }
    }
    nodes[at].words += 1;
    nodes[at].words
}
