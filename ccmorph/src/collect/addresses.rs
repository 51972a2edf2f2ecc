//! From addresses back to node numbers.

use super::Shown;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Node numbers by address.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    numbers: HashMap<usize, u32, BuildHasherDefault<Fibonacci>>,
}

impl Addresses {
    /// The numbers of these nodes, all of which lie at different addresses. O(n).
    pub(crate) fn of(nodes: &[Shown]) -> Addresses {
        let mut addresses = Addresses::default();
        addresses.numbers.reserve(nodes.len());
        addresses.extend(nodes);
        addresses
    }

    /// As [`of`](Addresses::of); `None` where there is no memory.
    pub(crate) fn try_of(nodes: &[Shown]) -> Option<Addresses> {
        let mut addresses = Addresses::default();
        addresses.try_reserve(nodes.len()).then(|| {
            addresses.extend(nodes);
            addresses
        })
    }

    fn extend(&mut self, nodes: &[Shown]) {
        self.numbers
            .extend(nodes.iter().map(|shown| shown.node.addr()).zip(0..));
    }

    /// Memory for an entry, at least.
    pub(crate) const ENTRY_BYTES: usize = size_of::<(usize, u32)>();

    /// Makes room for `more` nodes; whether there is memory for it.
    pub(crate) fn try_reserve(&mut self, more: usize) -> bool {
        self.numbers.try_reserve(more).is_ok()
    }

    /// The number of the node that begins where `pointer` points to.
    pub(crate) fn number(&self, pointer: *const u8) -> Option<u32> {
        self.numbers.get(&pointer.addr()).copied()
    }

    /// Takes a node in. Returns whether its address was new; else nothing changes.
    pub(crate) fn insert(&mut self, node: *const u8, number: u32) -> bool {
        match self.numbers.entry(node.addr()) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(number);
                true
            }
        }
    }
}

/// One multiplication by 2^64 over the golden ratio (D. Knuth, *The Art of Computer Programming*, volume 3, section 6.4): enough to
/// spread addresses, which nobody chooses to collide.
#[derive(Default)]
struct Fibonacci(u64);

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
