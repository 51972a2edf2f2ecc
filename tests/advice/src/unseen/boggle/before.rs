//! Finds the words on boards of letters by a trie.

use fastrand::Rng;

#[derive(Clone, Default)]
struct Node {
    children: [Option<usize>; 27],
}

struct Trie {
    nodes: Vec<Node>,
}

/// The letter behind the last of a word.
const END: u8 = 26;

/// What a search needs of a trie, whose root is node 0.
pub(super) trait Words {
    fn child(&self, node: usize, letter: u8) -> Option<usize>;
    /// As `child`, which is made if there is none.
    fn grown(&mut self, node: usize, letter: u8) -> usize;
}

impl Words for Trie {
    fn child(&self, node: usize, letter: u8) -> Option<usize> {
        self.nodes[node].children[usize::from(letter)]
    }

    fn grown(&mut self, node: usize, letter: u8) -> usize {
        self.child(node, letter).unwrap_or_else(|| {
            self.nodes.push(Node::default());
            let child = self.nodes.len() - 1;
            self.nodes[node].children[usize::from(letter)] = Some(child);
            child
        })
    }
}

/// Letters as frequent as in a language.
fn letter(random: &mut Rng) -> u8 {
    b"eeeeeetttttaaaaoooiiinnsshrrdluuccmwfgypbvkxqjz"[random.usize(..47)] - b'a'
}

/// Words in the order of a list that many have added to.
pub(super) fn add_words(size: usize, words: &mut impl Words) {
    let mut random = Rng::with_seed(123);
    for _ in 0..size {
        let length = random.usize(3..9);
        let end = (0..length).fold(0, |node, _| words.grown(node, letter(&mut random)));
        words.grown(end, END);
    }
}

const SIDE: i32 = 5;

/// How many words begin at a place and go on from neighbour to neighbour.
fn found(words: &impl Words, board: &[u8], at: (i32, i32), above: usize, used: u32) -> u64 {
    let place = at.1 * SIDE + at.0;
    let is_on = (0..SIDE).contains(&at.0) && (0..SIDE).contains(&at.1);
    if !is_on || used >> place & 1 == 1 {
        return 0;
    }
    let Some(node) = words.child(above, board[place as usize]) else {
        return 0;
    };
    let mut sum = u64::from(words.child(node, END).is_some());
    for around in [
        (1, 0),
        (1, 1),
        (0, 1),
        (-1, 1),
        (-1, 0),
        (-1, -1),
        (0, -1),
        (1, -1),
    ] {
        let next = (at.0 + around.0, at.1 + around.1);
        sum += found(words, board, next, node, used | 1 << place);
    }
    sum
}

pub(super) fn play(size: usize, words: &impl Words) -> u64 {
    let mut random = Rng::with_seed(124);
    (0..size / 40 + 4).fold(0, |sum: u64, _| {
        let board: Vec<u8> = (0..SIDE * SIDE).map(|_| letter(&mut random)).collect();
        let places = (0..SIDE * SIDE).map(|at| (at % SIDE, at / SIDE));
        sum.rotate_left(5) ^ places.map(|at| found(words, &board, at, 0, 0)).sum::<u64>()
    })
}

pub fn run(size: usize) -> u64 {
    let mut trie = Trie {
        nodes: vec![Node::default()],
    };
    add_words(size, &mut trie);
    play(size, &trie)
}
