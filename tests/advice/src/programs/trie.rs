//! A trie of random words over four letters, with a list of children in each node.
//!
//! A lookup follows the lists, node by node, through nodes that were allocated at any time. All
//! words are known before the first lookup, so a morph can put paths into cache lines.

use super::mix;
use crate::{Kind, Program};
use ccmorph::{TreeNode, ccmorph};

pub(super) const PROGRAM: Program = Program {
    name: "trie",
    kind: Kind::Morph,
    worth_it: true,
    note: "trie with lists of children",
    size: 1_000_000,
    before: |size| {
        let words = words(size);
        look_up(&words, &build(&words))
    },
    after: |size| {
        let words = words(size);
        let mut root = build(&words);
        ccmorph(&mut root, Node::children).expect("the allocator is `CcMalloc`");
        look_up(&words, &root)
    },
};

#[derive(TreeNode)]
struct Node {
    letter: u8,
    words: u32,
    #[child]
    child: Link,
    #[child]
    sibling: Link,
}

type Link = Option<Box<Node>>;

type Word = [u8; 11];

fn words(size: usize) -> Vec<Word> {
    let mut random = fastrand::Rng::with_seed(8);
    (0..size).map(|_| [(); 11].map(|()| random.u8(..4))).collect()
}

fn build(words: &[Word]) -> Link {
    let mut root = None;
    for word in words {
        let (mut link, mut count) = (&mut root, &mut 0);
        for &letter in word {
            while link.as_ref().is_some_and(|node: &Box<Node>| node.letter != letter) {
                link = &mut link.as_mut().expect("just seen").sibling;
            }
            let new = || Box::new(Node { letter, words: 0, child: None, sibling: None });
            let node = link.get_or_insert_with(new);
            (link, count) = (&mut node.child, &mut node.words);
        }
        *count += 1;
    }
    root
}

fn look_up(words: &[Word], root: &Link) -> u64 {
    let mut random = fastrand::Rng::with_seed(17);
    (0..3 * words.len() / 2).fold(0, |sum, _| {
        let (mut link, mut count) = (root, 0);
        for &letter in &words[random.usize(..words.len())] {
            let mut node = link.as_ref().expect("the word is there");
            while node.letter != letter {
                node = node.sibling.as_ref().expect("the letter is there");
            }
            (link, count) = (&node.child, node.words);
        }
        mix(sum, count.into())
    })
}
