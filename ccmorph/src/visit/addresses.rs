//! From addresses back to node numbers.

use super::{Pointer, Shown};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// Node numbers by address.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    numbers: HashMap<usize, u32, BuildHasherDefault<Fibonacci>>,
}

impl Addresses {
    /// The numbers of these nodes, all at different addresses. `None` where there is no memory.
    pub(crate) fn of(nodes: &[Shown]) -> Option<Addresses> {
        let mut addresses = Addresses::default();
        addresses.numbers.try_reserve(nodes.len()).ok()?;
        let entries = nodes.iter().map(|shown| shown.node.addr()).zip(0..);
        addresses.numbers.extend(entries);
        Some(addresses)
    }

    /// Memory for an entry, at least.
    pub(crate) const ENTRY_BYTES: usize = size_of::<(usize, u32)>();

    /// Makes room for one more node; whether there is memory for it.
    pub(crate) fn try_reserve(&mut self) -> bool {
        self.numbers.try_reserve(1).is_ok()
    }

    /// The number of the node that begins where `pointer` points to.
    pub(crate) fn number(&self, pointer: *const u8) -> Option<u32> {
        self.numbers.get(&pointer.addr()).copied()
    }

    /// `known`, and those of `others` that point to nodes. `None` where there is no memory.
    pub(crate) fn add_targets(
        &self,
        others: Vec<(*mut *mut u8, *mut u8)>,
        mut known: Vec<Pointer>,
    ) -> Option<Vec<Pointer>> {
        // In the same memory, as both kinds of entries are of one size.
        const { assert!(size_of::<Pointer>() == size_of::<(*mut *mut u8, *mut u8)>()) };
        let pointer = |(place, held): (_, *mut u8)| {
            let target = self.number(held)?;
            Some(Pointer { place, target })
        };
        let mut pointers: Vec<Pointer> = others.into_iter().filter_map(pointer).collect();
        pointers.try_reserve(known.len()).ok()?;
        pointers.append(&mut known);
        Some(pointers)
    }

    /// Adds a node. Returns whether its address was new; else nothing changes.
    pub(crate) fn insert(&mut self, node: *const u8, number: u32) -> bool {
        let entry = self.numbers.entry(node.addr());
        let is_new = matches!(entry, Entry::Vacant(_));
        entry.or_insert(number);
        is_new
    }
}

/// One multiplication by 2^64 over the golden ratio (D. Knuth, *The Art of Computer Programming*,
/// volume 3, section 6.4): enough to spread addresses, which are not chosen to collide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fibonacci(u64);

impl Hasher for Fibonacci {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        let mixed = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The table takes its index from the low bits, and the high ones are the mixed ones.
        self.0 = mixed ^ mixed >> 32;
    }
}

/// The addresses of nodes of one size that were seen.
///
/// Different nodes begin at least a node's size apart, so a bit for each such range tells them
/// apart: the size, rounded down to a power of two. Where nodes lie side by side, an entry of 128
/// bits serves a hundred of them.
#[derive(Debug)]
pub(crate) struct Seen {
    /// A bit stands for 2 to the power of this many bytes.
    bit_bytes_log2: u32,
    bits: HashMap<usize, u128, BuildHasherDefault<Fibonacci>>,
}

impl Seen {
    pub(crate) fn new(node_bytes: usize) -> Seen {
        Seen {
            bit_bytes_log2: node_bytes.max(1).ilog2(),
            bits: HashMap::default(),
        }
    }

    /// Adds a node. Returns whether its address was new, or `None` where there is no memory.
    #[inline]
    pub(crate) fn insert(&mut self, node: *const u8) -> Option<bool> {
        self.bits.try_reserve(1).ok()?;
        let bit = node.addr() >> self.bit_bytes_log2;
        let bits = self.bits.entry(bit / 128).or_default();
        let mask = 1u128 << (bit % 128);
        let is_new = *bits & mask == 0;
        *bits |= mask;
        Some(is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::Seen;
    use std::ptr::without_provenance;

    #[test]
    fn addresses_are_distinguished() {
        for bytes in [1, 8, 24, 48, 4096, 5000] {
            let mut seen = Seen::new(bytes);
            for is_new in [true, false] {
                let near = (0..2000).map(|i| (1 << 30) + i * bytes);
                for address in near.chain((1..100).map(|i| i << 40)) {
                    assert_eq!(seen.insert(without_provenance(address)), Some(is_new));
                }
            }
        }
    }
}
