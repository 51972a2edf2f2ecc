//! From addresses back to node numbers.

use super::{Pointer, Shown};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Node numbers by address.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    numbers: HashMap<usize, u32, BuildHasherDefault<Fibonacci>>,
}

impl Addresses {
    /// The numbers of these nodes, all of which lie at different addresses. O(n). `None` where
    /// there is no memory.
    pub(crate) fn of(nodes: &[Shown]) -> Option<Addresses> {
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

    /// Those of `others`, places with what they hold, that point to nodes, and `known`. `None`
    /// where there is no memory.
    pub(crate) fn add_targets(
        &self,
        others: Vec<(*mut *mut u8, *mut u8)>,
        mut known: Vec<Pointer>,
    ) -> Option<Vec<Pointer>> {
        // In the same memory, as both kinds of entries are of one size.
        const { assert!(size_of::<Pointer>() == size_of::<(*mut *mut u8, *mut u8)>()) };
        let mut pointers: Vec<Pointer> = others
            .into_iter()
            .filter_map(|(place, held)| {
                let target = self.number(held)?;
                Some(Pointer { place, target })
            })
            .collect();
        pointers.try_reserve(known.len()).ok()?;
        pointers.append(&mut known);
        Some(pointers)
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

/// One multiplication by 2^64 over the golden ratio (D. Knuth, *The Art of Computer Programming*,
/// volume 3, section 6.4): enough to spread addresses, which are not chosen to collide.
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
