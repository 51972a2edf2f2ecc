//! Which addresses have been met: a bit each, where nodes lie close together.
//!
//! A structure of raw pointers may have two links to one node, so each new node is looked for among
//! all before. A hash table of addresses takes 20 to 40 bytes a node, and a miss for each. But
//! different nodes begin at least a node's size apart, so a bit for each such range tells them
//! apart; and nodes that an allocator served one after the other lie in the same few pages. Here an
//! entry has the bits of a range:
//!
//! ```text
//! entry   range number + 1 | bits, one for each 2^k bytes of the range        2^k: the node's size, rounded down to a power of two
//! ```
//!
//! and a table with open addressing leads from an address to its entry. Where nodes lie side by
//! side, an entry serves a hundred of them, and the table of a million nodes fits into a
//! second-level cache. Where each lies alone, an entry serves one, and takes as much memory as
//! hashing addresses would.

/// Bits of an entry.
const BITS: u32 = 128;
/// Entries of the first table.
const FIRST: usize = 64;

/// A set of the addresses of nodes of one size.
#[derive(Debug)]
pub(super) struct Seen {
    /// A bit stands for 2 to the power of this many bytes.
    bit_bytes_log2: u32,
    /// A power of two of them, or none; of those with a range, at most half.
    entries: Vec<Entry>,
    ranges: usize,
}

/// The bits of a range. The number is one more than the range's; 0 stands for none.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    number: usize,
    bits: [u64; 2],
}

impl Seen {
    /// Memory for a node that lies alone, at least.
    pub(super) const ENTRY_BYTES: usize = size_of::<Entry>();

    /// Of nodes of `node_bytes`.
    pub(super) fn new(node_bytes: usize) -> Seen {
        Seen {
            bit_bytes_log2: node_bytes.max(1).ilog2(),
            entries: Vec::new(),
            ranges: 0,
        }
    }

    /// Makes room for one more address; whether there is memory for it.
    #[inline]
    pub(super) fn try_reserve(&mut self) -> bool {
        2 * (self.ranges + 1) <= self.entries.len() || self.grow()
    }

    /// Takes an address in, for which room was made. Returns whether it was new.
    ///
    /// # Panics
    ///
    /// When no room was made.
    #[inline]
    pub(super) fn insert(&mut self, node: *const u8) -> bool {
        let bit = node.addr() >> self.bit_bytes_log2;
        let number = bit / BITS as usize + 1;
        let entry = find(&mut self.entries, number);
        if entry.number == 0 {
            entry.number = number;
            self.ranges += 1;
        }
        let (word, mask) = (&mut entry.bits[bit / 64 % 2], 1u64 << (bit % 64));
        let is_new = *word & mask == 0;
        *word |= mask;
        is_new
    }

    /// Twice as many entries; whether there is memory for them.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> bool {
        let count = (2 * self.entries.len()).max(FIRST);
        let mut entries = Vec::new();
        if entries.try_reserve_exact(count).is_err() {
            return false;
        }
        entries.resize(count, Entry::default());
        for &entry in &self.entries {
            if entry.number != 0 {
                *find(&mut entries, entry.number) = entry;
            }
        }
        self.entries = entries;
        true
    }
}

/// The entry of a range, or the empty one that it would get. There must be an empty one.
#[inline]
fn find(entries: &mut [Entry], number: usize) -> &mut Entry {
    let mask = entries.len() - 1;
    // Knuth's multiplicative hash, as for addresses; its high bits are the mixed ones.
    let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut at = (mixed >> 32) as usize & mask;
    while entries[at].number != number && entries[at].number != 0 {
        at = (at + 1) & mask;
    }
    &mut entries[at]
}

#[cfg(test)]
mod tests {
    use super::Seen;
    use quickcheck::quickcheck;
    use std::collections::HashSet;
    use std::ptr::without_provenance;

    quickcheck! {
        fn addresses_are_told_apart(places: Vec<(u16, bool)>, bytes: u8, far: u8) -> bool {
            let bytes = usize::from(bytes) + 1;
            let mut seen = Seen::new(bytes);
            let mut expected = HashSet::new();
            places.into_iter().all(|(place, is_far)| {
                // Some near each other, some anywhere; nodes do not overlap.
                let base = if is_far { usize::from(far) << 40 | usize::from(place) << 28 } else { 1 << 20 };
                let address = base.next_multiple_of(bytes) + usize::from(place % 700) * bytes;
                seen.try_reserve() && seen.insert(without_provenance(address)) == expected.insert(address)
            })
        }
    }

    #[test]
    fn neighbours_share_entries() {
        let mut seen = Seen::new(48);
        for round in [true, false] {
            for node in 0..10_000 {
                assert!(seen.try_reserve());
                assert_eq!(
                    seen.insert(without_provenance((1 << 30) + node * 48)),
                    round
                );
            }
        }
        // 128 bits of 32 bytes each.
        assert_eq!(seen.ranges, 10_000 * 48 / 4096 + 1);
    }
}
