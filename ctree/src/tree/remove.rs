//! Removal of an entry, and what keeps nodes from becoming too empty.
//!
//! An entry of an inner node is replaced by the one before it, the last of a leaf. A node with less
//! than a third of its capacity is merged with a neighbour if both fit into one, and else gets as
//! many entries from it as make the two equal.

use allocator_api2::alloc::Allocator;

use super::node::NodePtr;
use super::{Edge, Place, Tree};

/// A node other than the root should be full to `1 / FILL_SHARE_MIN` at least.
const FILL_SHARE_MIN: usize = 3;

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Moves an entry out, and gives the gap where it was. Other places and edges from before are
    /// not valid any more.
    ///
    /// Memory that is no longer needed goes back to the allocator, and a tree that shares too much
    /// takes some of its own. If that panics, the entry is dropped and the tree is whole.
    ///
    /// # Safety
    /// `place` is the place of an entry of this tree as it is now.
    pub(crate) unsafe fn remove_at(&mut self, place: Place) -> (K, V, Edge) {
        let form = self.form();
        let Place { node, slot } = place;
        self.raw.len -= 1;
        // SAFETY: the place is that of an entry; what is moved is put where something was moved
        // out.
        unsafe {
            if form.level(node) == 0 {
                let (key, value) = form.read_entry(node, slot);
                form.close_gap(node, slot, 1);
                self.change_counts(node, |count| count - 1);
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
            self.change_counts(leaf, |count| count - 1);
            let mut edge = form.first_edge_below(form.child(node, slot + 1));
            self.refill(leaf, &mut edge);
            (key, value, edge)
        }
    }

    /// Gives entries to a leaf that has too few, and to the nodes above that lose one by that. The
    /// edge moves with its gap.
    ///
    /// # Safety
    /// `leaf` is a leaf of this tree, `edge` an edge.
    pub(super) unsafe fn refill(&mut self, leaf: NodePtr, edge: &mut Edge) {
        let form = self.form();
        let enough = (form.capacity() / FILL_SHARE_MIN).max(1);
        let mut node = leaf;
        let mut has_merged = false;
        // SAFETY: a node is one of its parent's children, which has at least one entry and so
        // another child.
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
                    has_merged = true;
                    node = parent;
                    continue;
                }
                if left < right {
                    form.rotate_left(nodes, (right - left).div_ceil(2), edge);
                } else {
                    form.rotate_right(nodes, (left - right).div_ceil(2), edge);
                }
                break;
            }
        }
        if has_merged {
            self.drop_empty_roots();
            // SAFETY: the tree is whole.
            unsafe { self.trim(|from, to| edge.move_with(from, to)) };
        }
    }

    /// For owning iterators: cuts off all that lies before an entry of an inner node, and the entry
    /// itself, which is forgotten.
    ///
    /// `moved` is called for nodes that change places, as by [`trim`](Self::trim).
    ///
    /// # Safety
    /// - The entries of the tree are forgotten ([`forget_entries`](Self::forget_entries)).
    /// - `leaf` is the first leaf of the tree, and `place` the entry that follows it. Neither is
    ///   used any more.
    pub(crate) unsafe fn cut_before(
        &mut self,
        leaf: NodePtr,
        place: Place,
        moved: impl FnMut(NodePtr, NodePtr),
    ) {
        let form = self.form();
        // SAFETY: the nodes from the leaf up to that of the entry have the leaf below their last
        // child, and go. They are the first child of the entry's node, since all before it was cut
        // off before.
        unsafe {
            self.free_path(leaf, place.node);
            debug_assert_eq!(place.slot, 0, "something before the entry was not cut off");
            let child_count = form.len(place.node) + 1;
            form.close_gap(place.node, 0, 1);
            form.close_child_gap(place.node, 0, 1, child_count);
            self.trim(moved);
        }
    }

    /// The same for all that lies behind an entry.
    ///
    /// # Safety
    /// As for [`cut_before`](Self::cut_before), but `leaf` is the last leaf, and `place` the entry
    /// before it.
    pub(crate) unsafe fn cut_behind(
        &mut self,
        leaf: NodePtr,
        place: Place,
        moved: impl FnMut(NodePtr, NodePtr),
    ) {
        let form = self.form();
        // SAFETY: `leaf` is the last leaf, and `place` the entry before it: so the nodes below
        // the entry's on the way to the leaf have no other children and no entries, and are its
        // last child. The entries are forgotten.
        unsafe {
            self.free_path(leaf, place.node);
            debug_assert_eq!(
                place.slot + 1,
                form.len(place.node),
                "something behind the entry was not cut off"
            );
            form.truncate(place.node, place.slot);
            self.trim(moved);
        }
    }

    /// Frees the nodes from a leaf up to an ancestor, which stays.
    ///
    /// # Safety
    /// `above` is an ancestor of `leaf`; the nodes between have no other children that are in use,
    /// and no entries.
    unsafe fn free_path(&mut self, leaf: NodePtr, above: NodePtr) {
        let form = self.form();
        let mut node = leaf;
        // SAFETY: a node is one of its parent's children; a node is freed when its parent is known.
        unsafe {
            while node != above {
                let parent = form.parent(node);
                self.free_node(node);
                let Some(parent) = parent else { break };
                node = parent;
            }
        }
    }

    /// Takes away the root as long as it is an inner node without entries.
    pub(super) fn drop_empty_roots(&mut self) {
        let form = self.form();
        while let Some(root) = self.raw.root
            && self.height() > 0
            // SAFETY: the root is a node of this tree.
            && unsafe { form.len(root) } == 0
        {
            // SAFETY: an inner node has a first child; nothing refers to the old root any more.
            unsafe {
                let child = form.child(root, 0);
                form.set_parent(child, None);
                self.set_root(child, self.height() - 1);
                self.free_node(root);
            }
        }
    }
}
