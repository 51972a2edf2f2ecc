//! Tree-PLRU: a binary tree over the ways of a set, with a bit in each inner node that says which
//! half of the ways below is to give way: 1 the upper one.
//!
//! Nodes are numbered as in a heap, 1 is the root, 2i and 2i + 1 are the halves of i; the bit of a
//! node is the one of its number. The tree has as many leaves as there are ways, or the next power
//! of two of them; where there are no ways, nothing gives way.

/// Words that hold the bits of a set.
pub(super) fn words(ways: usize) -> usize {
    ways.next_power_of_two().div_ceil(64)
}

/// The way that the bits point to.
#[inline]
pub(super) fn victim(bits: &[u64], ways: usize) -> usize {
    let (mut node, mut first) = (1, 0);
    let mut half = ways.next_power_of_two() / 2;
    while half > 0 {
        let upper = bits[node / 64] >> (node % 64) & 1 == 1 && first + half < ways;
        if upper {
            first += half;
        }
        node = 2 * node + usize::from(upper);
        half /= 2;
    }
    first
}

/// Turns the bits on the way to `way` so that they point elsewhere.
#[inline(never)]
pub(super) fn point_away(bits: &mut [u64], ways: usize, way: usize) {
    let mut node = 1;
    let mut half = ways.next_power_of_two() / 2;
    while half > 0 {
        let upper = way & half != 0;
        let (word, bit) = (&mut bits[node / 64], 1 << (node % 64));
        if upper {
            *word &= !bit;
        } else {
            *word |= bit;
        }
        node = 2 * node + usize::from(upper);
        half /= 2;
    }
}
