//! Removal of an entry, and what keeps nodes from becoming too empty.
//!
//! An entry of an inner node is replaced by the one before it, the last of a leaf. A node with less than a third of its capacity is merged with a neighbour if
//! both fit into one, and else gets as many entries from it as make the two equal.

use allocator_api2::alloc::Allocator;

use super::node::NodePtr;
use super::{Edge, Place, Tree};

/// A node other than the root should be filled to one part in so many.
const FILL_SHARE_MIN: usize = 3;

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Moves an entry out, and gives the gap where it was. Other places and edges from before are not valid any more.
    ///
    /// Runs no user code.
    ///
    /// # Safety
    /// `place` is the place of an entry of this tree as it is now.
    pub(crate) unsafe fn remove_at(&mut self, place: Place) -> (K, V, Edge) {
        let form = self.form();
        let Place { node, slot } = place;
        self.raw.len -= 1;
        // SAFETY: the place is that of an entry; what is moved is put where something was moved out.
        unsafe {
            if form.level(node) == 0 {
                let (key, value) = form.read_entry(node, slot);
                form.close_gap(node, slot, 1);
                self.count_one_less(node);
                let mut edge = Edge { leaf: node, slot };
                self.refill(node, &mut edge);
                return (key, value, edge);
            }
            // The last entry of the subtree before it takes its place.
            let last = form.last_edge_below(form.child(node, slot));
            let (leaf, last_slot) = (last.leaf, last.slot - 1);
            if form.has_prefixes() {
                // The left fence of what follows moves outwards.
                let shared = form.shared_bytes((leaf, last_slot), (node, slot));
                form.limit_prefix_of_left_spine(form.child(node, slot + 1), shared);
            }
            let (key, value) = form.read_entry(node, slot);
            form.move_entries(leaf, last_slot, node, slot, 1);
            form.truncate(leaf, last_slot);
            self.count_one_less(leaf);
            let mut edge = form.first_edge_below(form.child(node, slot + 1));
            self.refill(leaf, &mut edge);
            (key, value, edge)
        }
    }

    /// Gives entries to a leaf that has too few, and to the nodes above that lose one by that. The edge moves with its gap.
    ///
    /// # Safety
    /// `leaf` is a leaf of this tree, `edge` an edge.
    pub(super) unsafe fn refill(&mut self, leaf: NodePtr, edge: &mut Edge) {
        let form = self.form();
        let enough = (form.capacity() / FILL_SHARE_MIN).max(1);
        let mut node = leaf;
        // SAFETY: a node is one of its parent's children, which has at least one entry and so another child.
        unsafe {
            while form.len(node) < enough
                && let Some(parent) = form.parent(node)
            {
                let index = form.index_of(parent, node);
                let nodes = form.neighbours(parent, index.saturating_sub(1));
                let (left, right) = (form.len(nodes.left), form.len(nodes.right));
                if left + 1 + right <= form.capacity() {
                    form.merge(nodes, edge);
                    self.free_node(nodes.right);
                    node = parent;
                    continue;
                }
                if left < right {
                    form.rotate_left(nodes, (right - left).div_ceil(2), edge);
                } else {
                    form.rotate_right(nodes, (left - right).div_ceil(2), edge);
                }
                return;
            }
        }
        self.drop_empty_roots();
    }

    /// Takes away the root as long as it is an inner node without entries.
    pub(super) fn drop_empty_roots(&mut self) {
        let form = self.form();
        while let Some(root) = self.raw.root
            && self.raw.height > 0
            // SAFETY: the root is a node of this tree.
            && unsafe { form.len(root) } == 0
        {
            // SAFETY: an inner node has a first child; nothing refers to the old root any more.
            unsafe {
                let child = form.child(root, 0);
                form.set_parent(child, None);
                self.raw.root = Some(child);
                self.raw.height -= 1;
                self.free_node(root);
            }
        }
    }
}
