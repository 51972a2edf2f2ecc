//! A compressor that refers to what came before, found by chains of places of equal hash.

use fastrand::Rng;

const WINDOW: usize = 1 << 15;
const HASHES: usize = 1 << 15;
const CHAIN: usize = 16;

/// The latest place of each hash, and for each place the one before of the same hash.
pub(super) trait Chains {
    fn add(&mut self, hash: usize, place: usize);
    fn latest(&self, hash: usize) -> usize;
    fn earlier(&self, place: usize) -> usize;
}

struct Tables {
    latest: Vec<usize>,
    earlier: Vec<usize>,
}

impl Chains for Tables {
    fn add(&mut self, hash: usize, place: usize) {
        self.earlier[place % WINDOW] = std::mem::replace(&mut self.latest[hash], place);
    }

    fn latest(&self, hash: usize) -> usize {
        self.latest[hash]
    }

    fn earlier(&self, place: usize) -> usize {
        self.earlier[place % WINDOW]
    }
}

/// A log, of which each line is like another.
pub(super) fn log(size: usize) -> Vec<u8> {
    let mut random = Rng::with_seed(131);
    let mut text = String::from("# begins\n");
    while text.len() < size {
        let verb = ["GET", "POST", "PUT", "HEAD"][random.usize(..4)];
        let (page, user) = (random.u16(..500), random.u32(..));
        text += &format!(
            "{verb} /pages/{page}.html 200 user={user:x} ms={}\n",
            random.u8(..)
        );
    }
    text.into_bytes()
}

fn hash(bytes: &[u8]) -> usize {
    let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    (word.wrapping_mul(0x9e37_79b1) >> 17) as usize % HASHES
}

/// A checksum of the literals and references.
pub(super) fn compress(text: &[u8], chains: &mut impl Chains) -> u64 {
    let (mut at, mut sum) = (1, 0_u64);
    while at + 3 < text.len() {
        let hash_here = hash(&text[at..]);
        let (mut place, mut best) = (chains.latest(hash_here), (0, 0));
        for _ in 0..CHAIN {
            if place == 0 || place + WINDOW <= at {
                break;
            }
            let equal = text[place..].iter().zip(&text[at..]).take(255);
            best = best.max((equal.take_while(|it| it.0 == it.1).count(), place));
            place = chains.earlier(place);
        }
        let length = if best.0 < 4 { 1 } else { best.0 };
        sum = sum.rotate_left(3)
            ^ if length == 1 {
                text[at].into()
            } else {
                (at - best.1) as u64
            };
        for place in at..(at + length).min(text.len() - 3) {
            chains.add(hash(&text[place..]), place);
        }
        at += length;
    }
    sum
}

pub fn run(size: usize) -> u64 {
    let (latest, earlier) = (vec![0; HASHES], vec![0; WINDOW]);
    compress(&log(size), &mut Tables { latest, earlier })
}
