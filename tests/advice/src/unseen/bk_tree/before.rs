//! A spell checker: words by their edit distance from the word above them.

use fastrand::Rng;

pub(super) struct Node {
    word: String,
    pub(super) children: Vec<(usize, Box<Node>)>,
}

/// The number of edits between two words.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, a) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (at, b) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

impl Node {
    fn insert(&mut self, word: String, new: &impl Fn(&Node, String) -> Box<Node>) {
        let distance = distance(&self.word, &word);
        if distance == 0 {
            return;
        }
        match self.children.iter_mut().find(|child| child.0 == distance) {
            Some((_, child)) => child.insert(word, new),
            None => {
                let child = new(self, word);
                self.children.push((distance, child));
            }
        }
    }

    /// The nearest word within a distance.
    fn nearest<'a>(&'a self, word: &str, within: &mut usize, found: &mut &'a str) {
        let own = distance(&self.word, word);
        if own <= *within {
            (*within, *found) = (own.saturating_sub(1), &self.word);
        }
        for (edits, child) in &self.children {
            if edits.abs_diff(own) <= *within {
                child.nearest(word, within, found);
            }
        }
    }
}

pub(super) fn node(word: String) -> Node {
    Node {
        word,
        children: Vec::new(),
    }
}

fn word(random: &mut Rng) -> String {
    let letter = |at: usize, random: &mut Rng| {
        let letters: &[u8] = if at.is_multiple_of(2) {
            b"bcdfglmnprst"
        } else {
            b"aeiou"
        };
        char::from(letters[random.usize(..letters.len())])
    };
    (0..random.usize(4..10))
        .map(|at| letter(at, random))
        .collect()
}

pub(super) fn dictionary(size: usize, new: impl Fn(&Node, String) -> Box<Node>) -> Box<Node> {
    let mut random = Rng::with_seed(126);
    let mut root = Box::new(node(word(&mut random)));
    (0..size).for_each(|_| root.insert(word(&mut random), &new));
    root
}

pub(super) fn check(size: usize, root: &Node) -> u64 {
    let mut random = Rng::with_seed(127);
    (0..size / 2).fold(0, |sum: u64, _| {
        let (word, mut found) = (word(&mut random), "");
        root.nearest(&word, &mut 2, &mut found);
        let hash = |sum: u64, byte: u8| sum.wrapping_mul(31) ^ u64::from(byte);
        found.bytes().fold(sum.rotate_left(1), hash)
    })
}

pub fn run(size: usize) -> u64 {
    check(size, &dictionary(size, |_, word| Box::new(node(word))))
}
