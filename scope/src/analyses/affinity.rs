//! Which objects are used together (T. Chilimbi's thesis, 1999, section 5.3).
//!
//! A *locality queue* holds the objects that were accessed last, each once. When an object is
//! accessed, the edge to each other one in the queue gets heavier by one. The thesis found a queue
//! of three best: no more of its objects fit a cache block.

use std::collections::HashMap;

/// Entries of the locality queue.
pub const QUEUE: usize = 3;

/// Objects that were accessed together, and how often: the smaller number first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectAffinity {
    edges: HashMap<(u32, u32), u64>,
    /// The one that was accessed last at the end.
    queue: Vec<u32>,
}

impl ObjectAffinity {
    /// Takes in an access (figures 5-7 and 5-8). O(1).
    pub fn access(&mut self, object: u32) {
        if self.queue.last() == Some(&object) {
            return;
        }
        match self.queue.iter().position(|&other| other == object) {
            Some(at) => _ = self.queue.remove(at),
            None if self.queue.len() == QUEUE => _ = self.queue.remove(0),
            None => {}
        }
        for &other in &self.queue {
            let edge = (other.min(object), other.max(object));
            *self.edges.entry(edge).or_default() += 1;
        }
        self.queue.push(object);
    }

    /// Forgets what was accessed last: something else happened in between.
    pub fn pause(&mut self) {
        self.queue.clear();
    }

    /// Edges with their weights, in no order.
    pub fn edges(&self) -> impl Iterator<Item = ((u32, u32), u64)> {
        self.edges.iter().map(|(&edge, &weight)| (edge, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses 1 2 3 1 4 4 2:
    ///
    /// | access | queue before | edges |
    /// |---|---|---|
    /// | 1 | - | - |
    /// | 2 | 1 | 1-2 |
    /// | 3 | 1 2 | 1-3, 2-3 |
    /// | 1 | 1 2 3 | 1-2, 1-3; 1 goes to the tail |
    /// | 4 | 2 3 1 | 2 leaves: 3-4, 1-4 |
    /// | 4 | 3 1 4 | none: it is at the tail |
    /// | 2 | 3 1 4 | 3 leaves: 1-2, 2-4 |
    #[test]
    fn a_queue_of_three_gives_these_edges() {
        let mut affinity = ObjectAffinity::default();
        for object in [1, 2, 3, 1, 4, 4, 2] {
            affinity.access(object);
        }
        let mut edges: Vec<_> = affinity.edges().collect();
        edges.sort_unstable();
        let expected = [
            ((1, 2), 3),
            ((1, 3), 2),
            ((1, 4), 1),
            ((2, 3), 1),
            ((2, 4), 1),
            ((3, 4), 1),
        ];
        assert_eq!(edges, expected);
        affinity.pause();
        affinity.access(9);
        assert_eq!(affinity.edges().count(), 6);
    }
}
