//! Places of four bytes in the tables.

use super::before::{Chains, compress, log};

struct Small {
    latest: Vec<u32>,
    earlier: Vec<u32>,
}

impl Chains for Small {
    fn add(&mut self, hash: usize, place: usize) {
        let at = place % self.earlier.len();
        self.earlier[at] = std::mem::replace(&mut self.latest[hash], place as u32);
    }

    fn latest(&self, hash: usize) -> usize {
        self.latest[hash] as usize
    }

    fn earlier(&self, place: usize) -> usize {
        self.earlier[place % self.earlier.len()] as usize
    }
}

pub fn smaller(size: usize) -> u64 {
    let (latest, earlier) = (vec![0; 1 << 15], vec![0; 1 << 15]);
    compress(&log(size), &mut Small { latest, earlier })
}
