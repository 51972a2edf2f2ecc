//! Ranks: how many entries are before a gap, and which entry has a given number before it.
//!
//! A tree with ranks keeps the number of entries below each child in the inner nodes, so that both
//! take one way up or down. A tree without them pays nothing for that, neither memory nor time, and
//! answers by a walk over nodes.

use allocator_api2::alloc::Allocator;

use super::node::{Form, NodePtr};
use super::{Edge, Place, Tree};

impl<K, V> Form<K, V> {
    /// Entries in a node and below it, by the counts if there are any, else by a walk.
    ///
    /// # Safety
    /// `node` is a node of this form.
    unsafe fn size_of_subtree(self, node: NodePtr) -> usize {
        // SAFETY: passed on; children up to the length are nodes.
        unsafe {
            if self.has_counts() || self.level(node) == 0 {
                return self.entries_below(node);
            }
            let len = self.len(node);
            let below = (0..=len).map(|index| self.size_of_subtree(self.child(node, index)));
            len + below.sum::<usize>()
        }
    }
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Whether ranks take one way up or down.
    pub(crate) fn has_ranks(&self) -> bool {
        self.raw.flags.ranked
    }

    /// Changes the counts of a leaf and of all nodes above it, in a tree with ranks.
    ///
    /// # Safety
    /// `leaf` is a leaf of this tree.
    #[inline]
    pub(super) unsafe fn change_counts(&mut self, leaf: NodePtr, change: impl Fn(usize) -> usize) {
        if !self.raw.flags.ranked {
            return;
        }
        let form = self.form();
        let mut node = leaf;
        // SAFETY: a node is one of its parent's children, and these have counts.
        unsafe {
            while let Some(parent) = form.parent(node) {
                let count = form.count_at(parent, form.index_of(parent, node));
                count.write(change(count.read()));
                node = parent;
            }
        }
    }

    /// Number of entries before a gap: O(log n) with ranks, O(n / entries of a node) without.
    ///
    /// # Safety
    /// `edge` is an edge of this tree.
    pub(crate) unsafe fn rank_of(&self, edge: Edge) -> usize {
        if self.raw.root.is_none() {
            return 0;
        }
        let form = self.form();
        let mut rank = edge.slot;
        let mut node = edge.leaf;
        // SAFETY: a node is one of its parent's children.
        unsafe {
            while let Some(parent) = form.parent(node) {
                let index = form.index_of(parent, node);
                rank += index;
                for before in 0..index {
                    rank += if form.has_counts() {
                        form.count_at(parent, before).read()
                    } else {
                        form.size_of_subtree(form.child(parent, before))
                    };
                }
                node = parent;
            }
        }
        rank
    }

    /// The entry with `rank` entries before it. Costs as [`rank_of`](Self::rank_of).
    pub(crate) fn place_of_rank(&self, rank: usize) -> Option<Place> {
        if rank >= self.raw.len {
            return None;
        }
        let form = self.form();
        let mut node = self.raw.root?;
        let mut rest = rank;
        // SAFETY: children up to the length are nodes; `rest` is less than the number of entries
        // below `node`.
        unsafe {
            'down: while form.level(node) > 0 {
                let len = form.len(node);
                for index in 0..=len {
                    let below = if form.has_counts() {
                        form.count_at(node, index).read()
                    } else {
                        form.size_of_subtree(form.child(node, index))
                    };
                    if rest < below {
                        node = form.child(node, index);
                        continue 'down;
                    }
                    rest -= below;
                    if rest == 0 && index < len {
                        return Some(Place { node, slot: index });
                    }
                    rest -= 1;
                }
                unreachable!("rank {rank} is below the length, so that some child or entry has it");
            }
            debug_assert!(
                rest < form.len(node),
                "rest {rest} in a leaf of {}",
                form.len(node)
            );
        }
        Some(Place { node, slot: rest })
    }
}
