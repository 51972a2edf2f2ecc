//! A trie of random words, with a list of children in each node.
//!
//! A lookup follows the lists, node by node. Words arrive in random order, so the children of a
//! node were allocated at different times; a hint puts some beside the one before.

use super::mix;
use crate::{Kind, Program};

pub(super) const PROGRAM: Program = Program {
    name: "trie",
    kind: Kind::Hint,
    worth_it: true,
    note: "trie with lists of children",
    size: 400_000,
    before: |size| spell(size, |_, node| Box::new(node)),
    after: |size| spell(size, |link, node| ccmalloc::near(link, || Box::new(node))),
};

struct Node {
    letter: u8,
    words: u32,
    child: Link,
    sibling: Link,
}

type Link = Option<Box<Node>>;

fn spell(size: usize, new: impl Fn(&Link, Node) -> Box<Node>) -> u64 {
    let mut random = fastrand::Rng::with_seed(8);
    let words: Vec<[u8; 7]> = (0..size).map(|_| [(); 7].map(|()| random.u8(..20))).collect();
    let (mut root, mut sum) = (None, 0);
    for word in &words {
        *find(&mut root, word, &new) += 1;
    }
    for _ in 0..2 * size {
        let word = &words[random.usize(..size)];
        sum = mix(sum, (*find(&mut root, word, &new)).into());
    }
    sum
}

/// How often a word is in the trie.
fn find<'a>(
    root: &'a mut Link,
    word: &[u8],
    new: impl Fn(&Link, Node) -> Box<Node>,
) -> &'a mut u32 {
    let (&last, first) = word.split_last().expect("words have letters");
    let link = first.iter().fold(root, |link, &letter| &mut child(link, letter, &new).child);
    &mut child(link, last, &new).words
}

fn child(mut link: &mut Link, letter: u8, new: impl Fn(&Link, Node) -> Box<Node>) -> &mut Node {
    while link.as_ref().is_some_and(|node| node.letter != letter) {
        link = &mut link.as_mut().expect("just seen").sibling;
    }
    if link.is_none() {
        *link = Some(new(link, Node { letter, words: 0, child: None, sibling: None }));
    }
    link.as_mut().expect("just made")
}
