//! The longest common subsequence of two texts, by recursion with a table of what is known.

use fastrand::Rng;
use std::collections::BTreeMap;

pub(super) struct Texts {
    pub(super) a: Vec<u8>,
    pub(super) b: Vec<u8>,
}

impl Texts {
    /// Two versions of a text.
    pub(super) fn new(size: usize) -> Self {
        let mut random = Rng::with_seed(69);
        let a: Vec<u8> = (0..size).map(|_| random.u8(b'a'..b'e')).collect();
        let mut b = a.clone();
        for _ in 0..size / 3 {
            let at = random.usize(..b.len());
            b[at] = random.u8(b'a'..b'e');
        }
        Texts { a, b }
    }
}

type Known = BTreeMap<(u32, u32), u64>;

/// The length for the texts from `i` and `j` on.
fn common(texts: &Texts, i: usize, j: usize, known: &mut Known) -> u64 {
    if i == texts.a.len() || j == texts.b.len() || i.abs_diff(j) > 300 {
        return 0;
    }
    let key = (i as u32, j as u32);
    if let Some(&length) = known.get(&key) {
        return length;
    }
    let length = if texts.a[i] == texts.b[j] {
        1 + common(texts, i + 1, j + 1, known)
    } else {
        common(texts, i + 1, j, known).max(common(texts, i, j + 1, known))
    };
    known.insert(key, length);
    length
}

pub(super) fn checksum(length: u64, known: usize) -> u64 {
    length << 32 | known as u64
}

pub fn run(size: usize) -> u64 {
    let (texts, mut known) = (Texts::new(size), BTreeMap::new());
    let length = common(&texts, 0, 0, &mut known);
    checksum(length, known.len())
}
