//! A skip list with the nodes in a vector, as an index of time stamps.

use fastrand::Rng;

struct Node {
    key: u64,
    value: u64,
    /// For each level the next node.
    next: Vec<usize>,
}

struct SkipList {
    nodes: Vec<Node>,
    random: Rng,
}

const LEVELS: usize = 18;
const END: usize = 0;

impl SkipList {
    fn new() -> Self {
        let head = Node {
            key: 0,
            value: 0,
            next: vec![END; LEVELS],
        };
        SkipList {
            nodes: vec![head],
            random: Rng::with_seed(1),
        }
    }

    /// For each level the last node before a key.
    fn before(&self, key: u64) -> [usize; LEVELS] {
        let (mut at, mut found) = (0, [0; LEVELS]);
        for level in (0..LEVELS).rev() {
            loop {
                let next = self.nodes[at].next[level];
                if next == END || self.nodes[next].key >= key {
                    break;
                }
                at = next;
            }
            found[level] = at;
        }
        found
    }

    fn insert(&mut self, key: u64, value: u64) {
        let before = self.before(key);
        let new = self.nodes.len();
        let height = (1 + self.random.u64(..).trailing_zeros() as usize).min(LEVELS);
        let mut next = Vec::new();
        for (level, &before) in before.iter().enumerate().take(height) {
            next.push(self.nodes[before].next[level]);
            self.nodes[before].next[level] = new;
        }
        self.nodes.push(Node { key, value, next });
    }

    /// The value of the first key that is not less.
    fn at_or_after(&self, key: u64) -> Option<u64> {
        match self.nodes[self.before(key)[0]].next[0] {
            END => None,
            found => Some(self.nodes[found].value),
        }
    }
}

pub fn run(size: usize) -> u64 {
    let (mut random, mut list, mut sum) = (Rng::with_seed(46), SkipList::new(), 0_u64);
    for value in 0..size as u64 {
        list.insert(random.u64(..), value);
    }
    for _ in 0..size {
        let found = list.at_or_after(random.u64(..)).unwrap_or(1);
        sum = sum.rotate_left(1) ^ found;
    }
    sum
}
