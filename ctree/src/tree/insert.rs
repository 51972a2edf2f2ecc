//! Insertion at a gap.
//!
//! A leaf that is full first gives entries to a neighbour that has room, and is split only when
//! there is none: leaves are then fuller. Where a map grows at one of its ends, the full node stays
//! full and the new neighbour starts empty, so that ascending and descending insertion fill the
//! nodes.
//!
//! All nodes that a cascade of splits needs are made before anything is moved: an allocator that
//! panics leaves the tree as it was.

use allocator_api2::alloc::Allocator;

use super::node::NodePtr;
use super::{Edge, Place, Tree};

/// Most levels that a tree can have: each inner node but the root has at least two children, and
/// the leaves fit into the address space.
pub(super) const LEVELS_MAX: usize = 64;

/// A neighbour is given entries if `1 / ROOM_SHARE` of its capacity is free.
const ROOM_SHARE: usize = 4;

/// Where a node is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// In the middle.
    Anywhere,
    /// The tree grows at its end: the node keeps all it has.
    AtEnd,
    /// The tree grows at its start: the new neighbour gets all.
    AtStart,
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Inserts an entry at a gap, and gives its place. Nothing checks that the key belongs there.
    ///
    /// Places and edges from before are not valid any more. If the allocator or a head panics, the
    /// tree is as it was and the entry is dropped.
    ///
    /// # Safety
    /// `edge` is an edge of this tree as it is now.
    #[inline]
    pub(crate) unsafe fn insert_at(&mut self, edge: Edge, key: K, value: V) -> Place {
        let Some(_) = self.raw.root else {
            // The head first: it may be a user's code.
            let head = self.head_function().map_or(0, |head| head(&key));
            let root = self.make_root();
            let form = self.form();
            // SAFETY: a new leaf, without entries, whose prefix is 0.
            unsafe {
                let head = if form.has_prefixes() {
                    self.head_in(root, &key)
                } else {
                    head
                };
                form.write_entry(root, 0, head, key, value);
                form.set_len(root, 1);
            }
            self.raw.len = 1;
            return Place {
                node: root,
                slot: 0,
            };
        };
        let form = self.form();
        let Edge { leaf, slot } = edge;
        // SAFETY: the leaf is a node of this tree.
        let len = unsafe { form.len(leaf) };
        debug_assert!(slot <= len, "edge {slot} of {len}");
        if len == form.capacity() {
            // SAFETY: the caller promises that the edge is one of this tree; its leaf is full.
            return unsafe { self.insert_into_full_leaf(edge, key, value) };
        }
        // SAFETY: the leaf has room; the slot is at most its length.
        unsafe {
            let head = self.head_in(leaf, &key);
            form.open_gap(leaf, slot, 1);
            form.write_entry(leaf, slot, head, key, value);
            self.change_counts(leaf, |count| count + 1);
        }
        self.raw.len += 1;
        Place { node: leaf, slot }
    }

    /// [`insert_at`](Self::insert_at) where the leaf is full: makes room first.
    ///
    /// # Safety
    /// As for `insert_at`; the leaf is full.
    #[cold]
    #[inline(never)]
    unsafe fn insert_into_full_leaf(&mut self, mut edge: Edge, key: K, value: V) -> Place {
        // User code that may panic runs now, or not at all: the head of a user's type does not
        // depend on the node. (Byte strings' is std's code.)
        let user_head = if self.form().has_prefixes() {
            None
        } else {
            self.head_function().map(|head| head(&key))
        };
        // SAFETY: the edge is at a full leaf of this tree; afterwards it is at the same gap, in a
        // leaf that has room.
        unsafe {
            if self.form().is_first_leaf() {
                self.outgrow_first_leaf(&mut edge);
            } else if !self.shift_to_neighbour(&mut edge) {
                self.split_leaf(&mut edge);
            }
            let form = self.form();
            let Edge { leaf, slot } = edge;
            let head = user_head.unwrap_or_else(|| self.head_in(leaf, &key));
            form.open_gap(leaf, slot, 1);
            form.write_entry(leaf, slot, head, key, value);
            self.change_counts(leaf, |count| count + 1);
            self.raw.len += 1;
            Place { node: leaf, slot }
        }
    }

    /// Gives entries of a full leaf to a neighbour, if one has room. The edge moves with its gap,
    /// and is then at a leaf that has room.
    ///
    /// # Safety
    /// `edge` is an edge of this tree, at a full leaf.
    unsafe fn shift_to_neighbour(&mut self, edge: &mut Edge) -> bool {
        let form = self.form();
        let leaf = edge.leaf;
        let enough = form.capacity() - (form.capacity() / ROOM_SHARE).max(1);
        // SAFETY: a node is one of its parent's children, and these have neighbours on each side
        // where there are separators.
        unsafe {
            let Some(parent) = form.parent(leaf) else {
                return false;
            };
            let index = form.index_of(parent, leaf);
            if index > 0 {
                let nodes = form.neighbours(parent, index - 1);
                let len = form.len(nodes.left);
                if len <= enough {
                    let count = (form.capacity() - len).div_ceil(2);
                    form.rotate_left(nodes, count, edge);
                    return form.len(edge.leaf) < form.capacity();
                }
            }
            if index < form.len(parent) {
                let nodes = form.neighbours(parent, index);
                let len = form.len(nodes.right);
                if len <= enough {
                    let count = (form.capacity() - len).div_ceil(2);
                    form.rotate_right(nodes, count, edge);
                    return form.len(edge.leaf) < form.capacity();
                }
            }
        }
        false
    }

    /// Splits a full leaf, and before it all full nodes above it that need to be. The edge moves
    /// with its gap, and is then at a leaf that has room.
    ///
    /// # Safety
    /// `edge` is an edge of this tree, at a full leaf.
    unsafe fn split_leaf(&mut self, edge: &mut Edge) {
        let form = self.form();
        // The full nodes from the leaf up, each of which needs room in the next.
        let mut full = [edge.leaf; LEVELS_MAX];
        let mut levels = 0;
        let mut node = Some(edge.leaf);
        while let Some(this) = node
            // SAFETY: a node of this tree.
            && unsafe { form.len(this) } == form.capacity()
        {
            assert!(
                levels < LEVELS_MAX,
                "more than {LEVELS_MAX} levels of nodes"
            );
            full[levels] = this;
            levels += 1;
            // SAFETY: a node of this tree.
            node = unsafe { form.parent(this) };
        }
        // A neighbour for each, and a new root if the root is among them.
        let spares = levels + usize::from(node.is_none());
        let spare = self.new_nodes::<{ LEVELS_MAX + 1 }>(0..spares);
        // SAFETY: the leaf is one of this tree.
        let growth = unsafe { self.growth(*edge) };
        if node.is_none() {
            let (old, new) = (full[levels - 1], spare[levels]);
            // SAFETY: a new inner node gets its first child, the old root; it gets an entry right
            // below.
            unsafe {
                form.set_child(new, 0, old);
                form.recount(new, 0);
            }
            self.set_root(new, self.height() + 1);
        }
        for level in (0..levels).rev() {
            // SAFETY: the node is full and its neighbour new; the node above has room: it was not
            // full, or has been split just now.
            unsafe { self.split_node(full[level], spare[level], growth, edge) };
        }
    }

    /// Splits a full node and puts the separator into its parent.
    ///
    /// # Safety
    /// `node` is a full node of this tree whose parent has room, `right` an initialised node of the
    /// same level.
    unsafe fn split_node(
        &mut self,
        node: NodePtr,
        right: NodePtr,
        growth: Growth,
        edge: &mut Edge,
    ) {
        let form = self.form();
        let middle = match growth {
            Growth::Anywhere => form.capacity() / 2,
            Growth::AtEnd => form.capacity() - 1,
            Growth::AtStart => 0,
        };
        // SAFETY: the parent has room for an entry and a child; the entry at `middle` is moved
        // there and then forgotten here.
        unsafe {
            let parent = form
                .parent(node)
                .expect("a node that is split has a parent");
            let index = form.index_of(parent, node);
            form.split(node, middle, right);
            form.open_gap(parent, index, 1);
            form.move_entries(node, middle, parent, index, 1);
            form.truncate(node, middle);
            // The parent's length counts the new entry, but not yet its child.
            form.open_child_gap(parent, index + 1, 1, form.len(parent));
            form.set_child(parent, index + 1, right);
            form.recount(parent, index);
            form.recount(parent, index + 1);
            if form.has_prefixes() {
                form.lengthen_prefix(node);
                form.lengthen_prefix(right);
            }
            if edge.leaf == node && edge.slot > middle {
                *edge = Edge {
                    leaf: right,
                    slot: edge.slot - middle - 1,
                };
            }
        }
    }

    /// Whether the tree grows at one of its ends, when it grows at `edge`.
    ///
    /// # Safety
    /// `edge` is an edge of this tree.
    unsafe fn growth(&self, edge: Edge) -> Growth {
        // SAFETY: the leaf is a node of this tree.
        unsafe {
            if edge.slot == 0 && self.form().entry_beside::<false>(edge.leaf).is_none() {
                Growth::AtStart
            } else if edge.slot == self.form().len(edge.leaf)
                && self.form().entry_beside::<true>(edge.leaf).is_none()
            {
                Growth::AtEnd
            } else {
                Growth::Anywhere
            }
        }
    }
}
