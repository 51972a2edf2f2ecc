//! Splitting a tree at a gap.
//!
//! The nodes on the way from the root to the gap are cut in two, and all others stay where they
//! are, in memory that both trees share from then on (see [`share`](super::share)). Only where one
//! part is small are its entries copied instead, so that it does not keep the memory of the other.

use core::cmp::Ordering;
use core::mem;
use core::ops::Range;

use allocator_api2::alloc::Allocator;

use super::build::Side;
use super::insert::LEVELS_MAX;
use super::node::{Form, NodePtr};
use super::{Edge, Tree, share};
use crate::simd::prefetch;

/// How many children ahead headers are prefetched.
const AHEAD: usize = 8;

/// Least memory that is shared.
const SHARED_BYTES_MIN: usize = 8 << 10;

/// What lies at one side of a gap.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    entries: usize,
    /// Leaves and inner nodes that are at that side as a whole.
    nodes: [usize; 2],
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Moves all entries behind a gap to a new tree. Reads a line of each leaf at the side of the
    /// gap that appears to have fewer; if that side is small, its entries are moved.
    ///
    /// If the allocator panics, the tree is as it was, or, when that happens while memory is given
    /// back or shared memory left, the entries behind the gap may be lost.
    ///
    /// # Safety
    /// `edge` is an edge of this tree as it is now.
    pub(crate) unsafe fn split_off(&mut self, edge: Edge) -> Self
    where
        A: Clone,
    {
        let mut part = Tree::new_in(self.raw.alloc.clone(), self.options());
        if self.raw.root.is_none() {
            return part;
        }
        let form = self.form();
        // SAFETY: the edge is one of this tree.
        unsafe {
            let side = form.smaller_side(edge);
            if !form.is_first_leaf() {
                let weight = form.weigh(edge, side);
                if self.may_share(weight) {
                    self.cut(edge, side, weight, &mut part);
                    return part;
                }
            }
            self.copy_side(edge, side)
        }
    }

    /// Whether a part of this weight may keep its nodes where they are.
    fn may_share(&self, part: Weight) -> bool {
        let (form, memory) = (self.form(), self.memory_bytes());
        let [leaves, inners] = part.nodes;
        let part =
            leaves * form.memory(true).layout.size() + inners * form.memory(false).layout.size();
        memory >= SHARED_BYTES_MIN && part >= memory / share::SHARED_PER_BYTE_MAX
    }

    /// [`split_off`](Self::split_off) without moving more than the nodes on the way to the gap.
    ///
    /// # Safety
    /// `edge` is an edge of this tree, which has nodes of full size; `weight` is what lies at
    /// `side`. `part` is a new tree with the same options and a clone of the allocator.
    unsafe fn cut(&mut self, edge: Edge, side: Side, weight: Weight, part: &mut Self) {
        let (form, height) = (self.form(), self.height());
        // SAFETY: memory comes first: from the seal on nothing can panic, until both trees are
        // whole. A node on the way keeps what is before the gap, and a new one gets the rest, with
        // the new node of the level below as its first child. Both parts' nodes lie in memory that
        // they inherit, but for the new ones.
        unsafe {
            let nodes = part.new_nodes::<{ LEVELS_MAX + 1 }>(0..height + 1);
            let shared = self.seal();
            share::add_heir(shared);
            part.raw.store.as_mut().inherited = Some(shared);
            for level in 0..2 {
                let in_way = if level == 0 { 1 } else { height };
                let (arena, _) = self.arena(level);
                let behind = match side {
                    Side::Left => arena.in_use() - in_way - weight.nodes[level],
                    Side::Right => weight.nodes[level],
                };
                arena.pass_on(behind, part.arena(level).0);
            }
            let Edge { leaf, slot } = edge;
            let (mut node, mut slot) = (leaf, slot);
            for level in 0..=height {
                form.cut_node(
                    node,
                    slot,
                    nodes[level],
                    level.checked_sub(1).map(|it| nodes[it]),
                );
                if let Some(parent) = form.parent(node) {
                    slot = form.index_of(parent, node);
                    node = parent;
                }
            }
            let behind = match side {
                Side::Left => self.raw.len - weight.entries,
                Side::Right => weight.entries,
            };
            part.raw.flags = self.raw.flags;
            part.raw.root = Some(nodes[height]);
            part.raw.len = behind;
            self.raw.len -= behind;
            self.fill_edge(Side::Right);
            part.fill_edge(Side::Left);
            self.trim(|_, _| ());
            part.trim(|_, _| ());
        }
    }

    /// [`split_off`](Self::split_off) by copying the entries at `side`.
    ///
    /// # Safety
    /// `edge` is an edge of this tree, which has nodes.
    unsafe fn copy_side(&mut self, edge: Edge, side: Side) -> Self
    where
        A: Clone,
    {
        // SAFETY: the edge is one of this tree; the originals are forgotten before the copies are
        // owned. Each tree is whole when it is trimmed.
        unsafe {
            let between = match side {
                Side::Left => [self.first_edge(), edge],
                Side::Right => [edge, self.last_edge()],
            };
            let mut part = self.copy_between(between, self.raw.alloc.clone());
            self.raw.len -= part.len();
            self.forget_side(edge, side);
            part.own_entries();
            if side == Side::Left {
                mem::swap(self, &mut part);
                part.trim(|_, _| ());
            } else {
                self.trim(|_, _| ());
            }
            part
        }
    }

    /// Forgets all entries at one side of a gap, without dropping them. The length does not count
    /// them.
    ///
    /// # Safety
    /// `edge` is an edge of this tree.
    unsafe fn forget_side(&mut self, edge: Edge, side: Side) {
        let form = self.form();
        let (mut node, mut slot) = (edge.leaf, edge.slot);
        // SAFETY: a node is one of its parent's children. Those at its side go with all that is
        // below them.
        unsafe {
            loop {
                let len = form.len(node);
                if form.level(node) > 0 {
                    let children = match side {
                        Side::Left => 0..slot,
                        Side::Right => slot + 1..len + 1,
                    };
                    self.free_children(node, children);
                    if side == Side::Left {
                        form.close_child_gap(node, 0, slot, len + 1);
                    }
                    let kept_child = if side == Side::Left { 0 } else { slot };
                    form.recount(node, kept_child);
                }
                match side {
                    Side::Left => form.close_gap(node, 0, slot),
                    Side::Right => form.truncate(node, slot),
                }
                if form.has_prefixes() {
                    // There is no fence at this side any more.
                    form.limit_prefix(node, 0);
                }
                let Some(parent) = form.parent(node) else {
                    break;
                };
                slot = form.index_of(parent, node);
                node = parent;
            }
        }
        self.fill_edge(side);
    }

    /// Takes children of a node, and all below them, out of use.
    ///
    /// # Safety
    /// `node` is an inner node of this tree. Nothing else refers to the children, and their entries
    /// are gone.
    unsafe fn free_children(&mut self, node: NodePtr, children: Range<usize>) {
        let form = self.form();
        // SAFETY: children up to the length are nodes. The recursion is as deep as the tree is
        // high.
        unsafe {
            for index in children.clone() {
                if index + AHEAD < children.end {
                    prefetch(form.header(form.child(node, index + AHEAD)).as_ptr());
                }
                let child = form.child(node, index);
                if form.level(child) > 0 {
                    self.free_children(child, 0..form.len(child) + 1);
                }
                self.free_node(child);
            }
        }
    }
}

impl<K, V> Form<K, V> {
    /// The side of an edge where fewer entries appear to be, by the highest node that the edge does
    /// not halve.
    ///
    /// # Safety
    /// `edge` is an edge of a tree of this form that has nodes.
    unsafe fn smaller_side(self, edge: Edge) -> Side {
        let (mut node, mut slot) = (edge.leaf, edge.slot);
        let mut side = Side::Right;
        // SAFETY: a node is one of its parent's children.
        unsafe {
            loop {
                match (2 * slot).cmp(&self.len(node)) {
                    Ordering::Less => side = Side::Left,
                    Ordering::Equal => {}
                    Ordering::Greater => side = Side::Right,
                }
                let Some(parent) = self.parent(node) else {
                    return side;
                };
                slot = self.index_of(parent, node);
                node = parent;
            }
        }
    }

    /// What lies at one side of an edge.
    ///
    /// # Safety
    /// `edge` is an edge of a tree of this form that has nodes.
    unsafe fn weigh(self, edge: Edge, side: Side) -> Weight {
        let (mut node, mut slot) = (edge.leaf, edge.slot);
        let mut weight = Weight::default();
        // SAFETY: a node is one of its parent's children, and children up to the length are nodes.
        unsafe {
            loop {
                let len = self.len(node);
                let (slots, children) = match side {
                    Side::Left => (0..slot, 0..slot),
                    Side::Right => (slot..len, slot + 1..len + 1),
                };
                weight.entries += slots.len();
                if self.level(node) > 0 {
                    self.weigh_children(node, children, &mut weight);
                }
                let Some(parent) = self.parent(node) else {
                    return weight;
                };
                slot = self.index_of(parent, node);
                node = parent;
            }
        }
    }

    /// Adds children of a node, and all below them.
    ///
    /// # Safety
    /// `node` is an inner node of this form, the children are those of indices up to its length.
    unsafe fn weigh_children(self, node: NodePtr, children: Range<usize>, weight: &mut Weight) {
        // SAFETY: children up to the length are nodes. The recursion is as deep as the tree is
        // high.
        unsafe {
            for index in children.clone() {
                if index + AHEAD < children.end {
                    prefetch(self.header(self.child(node, index + AHEAD)).as_ptr());
                }
                let child = self.child(node, index);
                let len = self.len(child);
                let level = self.level(child);
                weight.entries += len;
                weight.nodes[level.min(1)] += 1;
                if level > 0 {
                    self.weigh_children(child, 0..len + 1, weight);
                }
            }
        }
    }

    /// Moves what lies behind a gap of a node, or behind its child of that index, to a new node
    /// `right`, whose first child becomes `below`.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form, `slot` at most its length; `right` is an
    /// initialised node of the same level without entries; `below` is a node of the level below, if
    /// there is one.
    unsafe fn cut_node(self, node: NodePtr, slot: usize, right: NodePtr, below: Option<NodePtr>) {
        // SAFETY: slots and children are moved within the node's length.
        unsafe {
            if self.has_prefixes() {
                // There is no fence at the gap any more.
                self.limit_prefix(node, 0);
            }
            let behind = self.len(node) - slot;
            self.move_entries(node, slot, right, 0, behind);
            self.set_len(right, behind);
            if let Some(below) = below {
                self.move_children(node, slot + 1, right, 1, behind);
                self.set_child(right, 0, below);
                self.recount(right, 0);
            }
            self.truncate(node, slot);
            if below.is_some() {
                self.recount(node, slot);
            }
        }
    }
}
