//! Entries between neighbouring nodes: through the separator that stands between them in their
//! parent.
//!
//! ```text
//! rotate_left by m:    | .. s .. |                    | .. r(m-1) .. |
//!                      /      \             =>        /            \
//!                 | L |      | r0 .. rn |      | L s r0 .. r(m-2) |  | rm .. rn |
//! ```
//!
//! [`rotate_right`](Form::rotate_right) is its mirror image, [`merge`](Form::merge) moves all,
//! [`split`](Form::split) makes a new neighbour. In inner nodes the children go along. None of them
//! calls a user's code, so that none can end half-way.

use super::Edge;
use super::node::{Form, NodePtr};

/// Two neighbouring children of one parent, and the separator between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbours {
    /// The inner node above both.
    pub(super) parent: NodePtr,
    /// The separator's slot, and the index of `left`.
    pub(super) slot: usize,
    /// The child before the separator.
    pub(super) left: NodePtr,
    /// The child behind it.
    pub(super) right: NodePtr,
}

impl<K, V> Form<K, V> {
    /// # Safety
    /// `parent` is an inner node of this form, `slot < len`.
    pub(super) unsafe fn neighbours(self, parent: NodePtr, slot: usize) -> Neighbours {
        // SAFETY: a separator has a child on each side.
        let (left, right) = unsafe { (self.child(parent, slot), self.child(parent, slot + 1)) };
        Neighbours {
            parent,
            slot,
            left,
            right,
        }
    }

    /// Moves `count` entries from the right neighbour to the left one, and `edge` with its gap if
    /// it is at one of the two.
    ///
    /// # Safety
    /// The nodes are neighbours of this form; `1 <= count <= right.len`, `left.len + count <=
    /// capacity`.
    pub(super) unsafe fn rotate_left(self, nodes: Neighbours, count: usize, edge: &mut Edge) {
        let Neighbours {
            parent,
            slot,
            left,
            right,
        } = nodes;
        // SAFETY: slots and children are moved within the lengths that the caller promises; the
        // separator's slot is empty in between and filled again.
        unsafe {
            if self.has_prefixes() {
                // The left node's right fence moves outwards, to what will be the separator.
                let shared = self.shared_bytes((parent, slot), (right, count - 1));
                self.limit_prefix(left, shared);
            }
            let (left_len, right_len) = (self.len(left), self.len(right));
            debug_assert!(
                (1..=right_len).contains(&count) && left_len + count <= self.capacity(),
                "{count} of {right_len} to {left_len}"
            );
            self.set_len(left, left_len + count);
            self.move_entries(parent, slot, left, left_len, 1);
            self.move_entries(right, 0, left, left_len + 1, count - 1);
            self.move_entries(right, count - 1, parent, slot, 1);
            self.close_gap(right, 0, count);
            if self.level(left) > 0 {
                self.move_children(right, 0, left, left_len + 1, count);
                self.close_child_gap(right, 0, count, right_len + 1);
            }
            self.recount(parent, slot);
            self.recount(parent, slot + 1);
            if edge.leaf == right {
                if edge.slot < count {
                    *edge = Edge {
                        leaf: left,
                        slot: left_len + 1 + edge.slot,
                    };
                } else {
                    edge.slot -= count;
                }
            }
        }
    }

    /// Moves `count` entries from the left neighbour to the right one, and `edge` with its gap if
    /// it is at one of the two.
    ///
    /// # Safety
    /// The nodes are neighbours of this form; `1 <= count <= left.len`, `right.len + count <=
    /// capacity`.
    pub(super) unsafe fn rotate_right(self, nodes: Neighbours, count: usize, edge: &mut Edge) {
        let Neighbours {
            parent,
            slot,
            left,
            right,
        } = nodes;
        // SAFETY: slots and children are moved within the lengths that the caller promises; the
        // separator's slot is empty in between and filled again.
        unsafe {
            let (left_len, right_len) = (self.len(left), self.len(right));
            debug_assert!(
                (1..=left_len).contains(&count) && right_len + count <= self.capacity(),
                "{count} of {left_len} to {right_len}"
            );
            let kept = left_len - count;
            if self.has_prefixes() {
                // The right node's left fence moves outwards.
                let shared = self.shared_bytes((left, kept), (parent, slot));
                self.limit_prefix(right, shared);
            }
            self.open_gap(right, 0, count);
            self.move_entries(parent, slot, right, count - 1, 1);
            self.move_entries(left, kept + 1, right, 0, count - 1);
            self.move_entries(left, kept, parent, slot, 1);
            self.truncate(left, kept);
            if self.level(left) > 0 {
                self.open_child_gap(right, 0, count, right_len + 1);
                self.move_children(left, kept + 1, right, 0, count);
            }
            self.recount(parent, slot);
            self.recount(parent, slot + 1);
            if edge.leaf == right {
                edge.slot += count;
            } else if edge.leaf == left && edge.slot > kept {
                *edge = Edge {
                    leaf: right,
                    slot: edge.slot - kept - 1,
                };
            }
        }
    }

    /// Moves the separator and all of the right neighbour to the left one, and `edge` with its gap.
    /// The right node is then no longer part of the tree.
    ///
    /// # Safety
    /// The nodes are neighbours of this form; `left.len + 1 + right.len <= capacity`.
    pub(super) unsafe fn merge(self, nodes: Neighbours, edge: &mut Edge) {
        let Neighbours {
            parent,
            slot,
            left,
            right,
        } = nodes;
        // SAFETY: slots and children are moved within the lengths that the caller promises.
        unsafe {
            let (left_len, right_len) = (self.len(left), self.len(right));
            debug_assert!(
                left_len + 1 + right_len <= self.capacity(),
                "{left_len} and {right_len} in one"
            );
            if self.has_prefixes() {
                // Between the outer fences lies what both nodes shared with the separator, or less.
                self.limit_prefix(left, self.prefix_bytes(right));
            }
            self.set_len(left, left_len + 1 + right_len);
            self.move_entries(parent, slot, left, left_len, 1);
            self.move_entries(right, 0, left, left_len + 1, right_len);
            if self.level(left) > 0 {
                self.move_children(right, 0, left, left_len + 1, right_len + 1);
            }
            let child_count = self.len(parent) + 1;
            self.close_gap(parent, slot, 1);
            self.close_child_gap(parent, slot + 1, 1, child_count);
            self.set_len(right, 0);
            self.recount(parent, slot);
            if edge.leaf == right {
                *edge = Edge {
                    leaf: left,
                    slot: left_len + 1 + edge.slot,
                };
            }
        }
    }

    /// Moves what follows the entry at `middle` to a new right neighbour. The entry itself stays
    /// behind the end of the node: the caller must move it up.
    ///
    /// # Safety
    /// `node` is a node of this form, `middle < len`; `right` is an initialised node of the same
    /// level without entries.
    pub(super) unsafe fn split(self, node: NodePtr, middle: usize, right: NodePtr) {
        // SAFETY: slots and children are moved within the node's length.
        unsafe {
            let len = self.len(node);
            debug_assert!(middle < len, "split of {len} at {middle}");
            let moved = len - middle - 1;
            if self.has_prefixes() {
                self.set_prefix(right, self.prefix_bytes(node));
            }
            self.move_entries(node, middle + 1, right, 0, moved);
            self.set_len(right, moved);
            if self.level(node) > 0 {
                self.move_children(node, middle + 1, right, 0, moved + 1);
            }
        }
    }
}
