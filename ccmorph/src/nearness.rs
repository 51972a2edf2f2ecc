//! How close nodes lie to each other.

use ccmodel::NO_NODE;

/// How many pairs of nodes begin in the same aligned piece of memory: parent and child, or a node
/// of a walk and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nearness {
    /// In the same 64 bytes, a cache line.
    pub same_64: usize,
    /// In the same 256 bytes, about what an access to memory brings in.
    pub same_256: usize,
    /// In the same page of 4096 bytes.
    pub same_page: usize,
}

/// Distances between pairs of nodes, counted by the highest bit in which two addresses differ.
#[derive(Clone, Debug)]
pub(crate) struct Distances([usize; u64::BITS as usize]);

impl Distances {
    pub(crate) fn new() -> Distances {
        Distances([0; u64::BITS as usize])
    }

    /// The distances of nodes and their parents. `address` takes the number of a node. O(n).
    pub(crate) fn of(parents: &[u32], address: impl Fn(usize) -> u64) -> Distances {
        let mut distances = Distances::new();
        for (v, &parent) in parents.iter().enumerate() {
            if parent != NO_NODE {
                distances.add(address(parent as usize), address(v));
            }
        }
        distances
    }

    /// The distances between each node of this order and the next. O(n).
    pub(crate) fn along(order: &[u32], address: impl Fn(usize) -> u64) -> Distances {
        let mut distances = Distances::new();
        for step in order.windows(2) {
            distances.add(address(step[0] as usize), address(step[1] as usize));
        }
        distances
    }

    /// Counts a child.
    #[inline]
    pub(crate) fn add(&mut self, parent: u64, child: u64) {
        self.0[((parent ^ child) | 1).ilog2() as usize] += 1;
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().sum()
    }

    pub(crate) fn nearness(&self) -> Nearness {
        let within = |bits: usize| self.0[..bits].iter().sum();
        Nearness {
            same_64: within(6),
            same_256: within(8),
            same_page: within(12),
        }
    }
}
