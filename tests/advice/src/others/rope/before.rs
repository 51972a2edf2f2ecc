//! A text that is edited at many places, as a rope: a tree of pieces.

use fastrand::Rng;

pub(super) enum Rope {
    Piece(String),
    Joined(Joined),
}

pub(super) struct Joined {
    left: usize,
    pub(super) parts: [Box<Rope>; 2],
}

impl Rope {
    /// Inserts text before the byte at a place.
    fn insert(&mut self, at: usize, text: &str) {
        match self {
            Rope::Joined(Joined { left, parts }) => {
                if at < *left {
                    *left += text.len();
                    parts[0].insert(at, text);
                } else {
                    parts[1].insert(at - *left, text);
                }
            }
            Rope::Piece(piece) if piece.len() + text.len() <= 40 => piece.insert_str(at, text),
            Rope::Piece(piece) => {
                let mut first = std::mem::take(piece);
                let rest = first.split_off(first.len() / 2);
                let left = first.len();
                let parts = [first, rest].map(|part| Box::new(Rope::Piece(part)));
                *self = Rope::Joined(Joined { left, parts });
                self.insert(at, text);
            }
        }
    }

    fn byte(&self, at: usize) -> u8 {
        match self {
            Rope::Piece(piece) => piece.as_bytes()[at],
            Rope::Joined(Joined { left, parts }) => match at.checked_sub(*left) {
                None => parts[0].byte(at),
                Some(at) => parts[1].byte(at),
            },
        }
    }

    fn hash(&self, sum: u64) -> u64 {
        match self {
            Rope::Piece(piece) => piece.bytes().fold(sum, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(u64::from(byte))
            }),
            Rope::Joined(Joined { parts, .. }) => parts[1].hash(parts[0].hash(sum)),
        }
    }
}

pub(super) fn edited(size: usize) -> Rope {
    let mut random = Rng::with_seed(63);
    let mut rope = Rope::Piece("Once upon a time".to_owned());
    let mut len = 16;
    for _ in 0..size {
        let word = ["there ", "was ", "a ", "rope "][random.usize(..4)];
        rope.insert(random.usize(..len), word);
        len += word.len();
    }
    rope
}

pub(super) fn read(size: usize, rope: &Rope) -> u64 {
    let mut random = Rng::with_seed(64);
    let bytes = (0..size).map(|_| rope.byte(random.usize(..3 * size)));
    let sum = bytes.fold(0, |sum: u64, byte| sum.rotate_left(1) ^ u64::from(byte));
    (0..6).fold(sum, |sum, _| rope.hash(sum))
}

pub fn run(size: usize) -> u64 {
    read(size, &edited(size))
}
