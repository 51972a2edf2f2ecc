//! From an edge to the entry before or after it, without a look at keys.
//!
//! ```text
//! inner                    | a    b |
//!                         /    |     \
//! leaves           | . . |  | c d |   | . . |
//!                         1 2
//! ```
//! 1: the gap before `a`, whose edge is at the end of the first leaf. 2: the gap behind `a`, whose
//! edge is at the start of the second leaf.
//!
//! A walk meets an entry of an inner node between two leaves. Leaves are not linked: the path from
//! one to the next leads through the parent, which is in the cache during a walk and has pointers
//! to the leaves further on. These are prefetched.
//!
//! Functions with a parameter `FORWARD` go to the right, or else to the left.

use super::node::{Form, NodePtr};
use super::{Edge, Place, Root, Tree};
use crate::block::LINE_BYTES;
use crate::simd::{CHILD_LINES, prefetch, prefetch_bytes, prefetch_fixed};

use allocator_api2::alloc::Allocator;

/// How many leaves ahead a walk prefetches. In one run, nanoseconds an entry among 2 million of
/// 16 B: 3 leaves 2.9, 4 leaves 2.6, 5 leaves 2.6 (`BTreeMap`: 20.2). Fewer are better for short
/// walks.
const LEAVES_AHEAD: usize = 4;

/// A guess that is never right, for a walk that begins.
pub(crate) const NO_GUESS: usize = usize::MAX;

/// Most lines of a leaf that are prefetched.
const LINES_AHEAD_MAX: usize = 16;

impl<K, V> Form<K, V> {
    /// The gap before all entries below a node.
    ///
    /// # Safety
    /// `node` is a node of this form. (Its entries may have been forgotten.)
    #[inline]
    pub(crate) unsafe fn first_edge_below(self, mut node: NodePtr) -> Edge {
        // SAFETY: an inner node has a first child.
        unsafe {
            for _ in 0..self.level(node) {
                node = self.child(node, 0);
            }
        }
        Edge {
            leaf: node,
            slot: 0,
        }
    }

    /// The gap behind all entries below a node.
    ///
    /// # Safety
    /// As for [`first_edge_below`](Self::first_edge_below).
    #[inline]
    pub(crate) unsafe fn last_edge_below(self, mut node: NodePtr) -> Edge {
        // SAFETY: an inner node has a child of each index up to its length.
        unsafe {
            for _ in 0..self.level(node) {
                node = self.child(node, self.len(node));
            }
            Edge {
                leaf: node,
                slot: self.len(node),
            }
        }
    }

    /// The gap before an entry.
    ///
    /// # Safety
    /// `place` is the place of an entry of a tree of this form.
    #[inline]
    pub(crate) unsafe fn edge_before(self, Place { node, slot }: Place) -> Edge {
        // SAFETY: the place is that of an entry; an inner node has a child on each side of it.
        unsafe {
            if self.level(node) == 0 {
                return Edge { leaf: node, slot };
            }
            self.last_edge_below(self.child(node, slot))
        }
    }

    /// The gap behind an entry.
    ///
    /// # Safety
    /// `place` is the place of an entry of a tree of this form.
    #[inline]
    pub(crate) unsafe fn edge_after(self, Place { node, slot }: Place) -> Edge {
        let slot = slot + 1;
        // SAFETY: the place is that of an entry; an inner node has a child on each side of it.
        unsafe {
            if self.level(node) == 0 {
                return Edge { leaf: node, slot };
            }
            self.first_edge_below(self.child(node, slot))
        }
    }

    /// The entry behind a gap, and moves the edge behind that; at the end `None`, and the edge
    /// stays.
    ///
    /// # Safety
    /// `edge` is an edge of a tree of this form that has nodes.
    #[inline]
    pub(crate) unsafe fn next(self, edge: &mut Edge) -> Option<Place> {
        // SAFETY: the caller promises that the edge is one of a tree of this form with nodes.
        unsafe { self.next_near(edge, &mut { NO_GUESS }) }
    }

    /// [`next`](Self::next) for a walk, which keeps a guess at the index of its leaf among its
    /// parent's children; it starts with [`NO_GUESS`].
    ///
    /// # Safety
    /// As for `next`.
    #[inline]
    pub(crate) unsafe fn next_near(self, edge: &mut Edge, index: &mut usize) -> Option<Place> {
        let Edge { leaf, slot } = *edge;
        // SAFETY: the edge is at a leaf.
        if slot < unsafe { self.len(leaf) } {
            edge.slot += 1;
            return Some(Place { node: leaf, slot });
        }
        // SAFETY: the edge is at the end of a leaf of a tree of this form.
        let place = unsafe { self.cross::<true>(leaf, index) }?;
        // SAFETY: the place is that of an entry.
        *edge = unsafe { self.edge_after(place) };
        Some(place)
    }

    /// The entry before a gap, and moves the edge before that; at the start `None`, and the edge
    /// stays.
    ///
    /// # Safety
    /// `edge` is an edge of a tree of this form that has nodes.
    #[inline]
    pub(crate) unsafe fn prev(self, edge: &mut Edge) -> Option<Place> {
        // SAFETY: the caller promises that the edge is one of a tree of this form with nodes.
        unsafe { self.prev_near(edge, &mut { NO_GUESS }) }
    }

    /// [`prev`](Self::prev) for a walk, with a guess as that of [`next_near`](Self::next_near).
    ///
    /// # Safety
    /// As for `prev`.
    #[inline]
    pub(crate) unsafe fn prev_near(self, edge: &mut Edge, index: &mut usize) -> Option<Place> {
        if let Some(slot) = edge.slot.checked_sub(1) {
            edge.slot = slot;
            return Some(Place {
                node: edge.leaf,
                slot,
            });
        }
        // SAFETY: the edge is at a leaf, at its start.
        let place = unsafe { self.cross::<false>(edge.leaf, index) }?;
        // SAFETY: the place is that of an entry.
        *edge = unsafe { self.edge_before(place) };
        Some(place)
    }

    /// The slot of the separator beside a child, if there is one.
    ///
    /// # Safety
    /// `parent` is an inner node of this form.
    #[inline(always)]
    unsafe fn slot_beside<const FORWARD: bool>(
        self,
        parent: NodePtr,
        index: usize,
    ) -> Option<usize> {
        if FORWARD {
            // SAFETY: the header is initialised.
            (index < unsafe { self.len(parent) }).then_some(index)
        } else {
            index.checked_sub(1)
        }
    }

    /// The entry of an inner node that follows, or precedes, a node and all below it. Prefetches
    /// nothing.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form.
    pub(crate) unsafe fn entry_beside<const FORWARD: bool>(
        self,
        mut node: NodePtr,
    ) -> Option<Place> {
        // SAFETY: a node is one of its parent's children.
        unsafe {
            while let Some(parent) = self.parent(node) {
                let index = self.index_of(parent, node);
                if let Some(slot) = self.slot_beside::<FORWARD>(parent, index) {
                    return Some(Place { node: parent, slot });
                }
                node = parent;
            }
        }
        None
    }

    /// [`entry_beside`](Self::entry_beside) of a leaf, for a walk: prefetches leaves further on.
    ///
    /// `guess` is taken for the leaf's index in its parent, where that is right, and becomes that
    /// of the leaf behind the entry.
    ///
    /// # Safety
    /// `leaf` is a leaf of a tree of this form.
    unsafe fn cross<const FORWARD: bool>(self, leaf: NodePtr, guess: &mut usize) -> Option<Place> {
        // SAFETY: a node is one of its parent's children; on both sides of an entry there are
        // children.
        unsafe {
            let parent = self.parent(leaf)?;
            let index = self.index_near(parent, leaf, *guess);
            if index == *guess {
                self.prefetch_leaf_beside::<FORWARD>(parent, index, LEAVES_AHEAD);
            } else {
                // The walk has just begun: nothing that comes was prefetched before.
                for distance in 1..=LEAVES_AHEAD {
                    self.prefetch_leaf_beside::<FORWARD>(parent, index, distance);
                }
            }
            if let Some(slot) = self.slot_beside::<FORWARD>(parent, index) {
                *guess = if FORWARD { slot + 1 } else { slot };
                return Some(Place { node: parent, slot });
            }
            let place = self.entry_beside::<FORWARD>(parent)?;
            if FORWARD {
                *guess = 0;
                if self.level(place.node) > 2 {
                    // The next parent is not a child of the same node, so that none of its leaves
                    // has been prefetched.
                    let mut node = self.child(place.node, place.slot + 1);
                    for _ in 1..self.level(node) {
                        node = self.child(node, 0);
                    }
                    for leaf in 0..LEAVES_AHEAD {
                        self.prefetch_leaf(node, leaf);
                    }
                }
            } else if self.level(place.node) == 2 {
                *guess = self.len(self.child(place.node, place.slot));
            }
            Some(place)
        }
    }

    /// Prefetches the leaves behind a leaf, for a walk that begins there. `guess` becomes the
    /// leaf's index, as for [`next_near`](Self::next_near), so that the walk does not prefetch the
    /// same leaves again.
    ///
    /// # Safety
    /// `leaf` is a leaf of a tree of this form.
    pub(crate) unsafe fn prefetch_leaves_after(self, leaf: NodePtr, guess: &mut usize) {
        // SAFETY: a node is one of its parent's children.
        unsafe {
            if let Some(parent) = self.parent(leaf) {
                let index = self.index_near(parent, leaf, *guess);
                *guess = index;
                // The first crossing prefetches the one after these.
                for distance in 1..LEAVES_AHEAD {
                    self.prefetch_leaf_beside::<true>(parent, index, distance);
                }
            }
        }
    }

    /// Prefetches the leaf at a distance from that of an index, which may be a child of the node
    /// beside `parent`, if both are children of one node.
    ///
    /// A walk that prefetched only its own parent's leaves would wait at the start of each next
    /// one.
    ///
    /// # Safety
    /// `parent` is an inner node of level 1 of a tree of this form.
    #[inline]
    unsafe fn prefetch_leaf_beside<const FORWARD: bool>(
        self,
        parent: NodePtr,
        index: usize,
        distance: usize,
    ) {
        // SAFETY: the node is an inner one of level 1.
        unsafe {
            let last = self.len(parent);
            let beside = if FORWARD {
                Some(index + distance).filter(|&leaf| leaf <= last)
            } else {
                index.checked_sub(distance)
            };
            if let Some(leaf) = beside {
                self.prefetch_leaf(parent, leaf);
                // The inner node that the walk comes to next.
                if leaf == (if FORWARD { last.wrapping_sub(1) } else { 1 })
                    && let Some(next) = self.node_beside::<FORWARD>(parent)
                {
                    prefetch(next.as_ptr().wrapping_add(self.shape().header_at));
                    let children_at = self.shape().children_at;
                    prefetch_fixed::<CHILD_LINES>(next.as_ptr().wrapping_add(children_at));
                }
            } else if let Some(next) = self.node_beside::<FORWARD>(parent) {
                // A node with too few leaves gives an index that is no child's.
                let leaf = if FORWARD {
                    index + distance - last - 1
                } else {
                    (self.len(next) + 1).wrapping_sub(distance - index)
                };
                self.prefetch_leaf(next, leaf);
            }
        }
    }

    /// The next or the previous child of a node's parent.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form.
    #[cold]
    unsafe fn node_beside<const FORWARD: bool>(self, node: NodePtr) -> Option<NodePtr> {
        // SAFETY: a node is one of its parent's children, and on both sides of a separator there
        // are children.
        unsafe {
            let parent = self.parent(node)?;
            let slot = self.slot_beside::<FORWARD>(parent, self.index_of(parent, node))?;
            Some(self.child(parent, if FORWARD { slot + 1 } else { slot }))
        }
    }

    /// Prefetches a child that is a leaf, if the parent has one of that index.
    ///
    /// # Safety
    /// `parent` is an inner node of level 1 of this form.
    #[inline]
    unsafe fn prefetch_leaf(self, parent: NodePtr, index: usize) {
        // SAFETY: the header is initialised, and so are the children up to the length.
        unsafe {
            if index <= self.len(parent) {
                let leaf = self.child(parent, index);
                let bytes = self.shape().leaf_bytes.min(LINES_AHEAD_MAX * LINE_BYTES);
                prefetch_bytes(leaf.as_ptr(), bytes);
            }
        }
    }
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// The root, to find the ends of the tree from.
    #[inline(always)]
    pub(crate) fn root(&self) -> Option<Root> {
        self.raw.root.map(Root)
    }

    /// The gap before all entries.
    #[inline]
    pub(crate) fn first_edge(&self) -> Edge {
        self.raw.root.map_or(Edge::NOWHERE, |root| {
            // SAFETY: the root is a node of this tree.
            unsafe { self.form().first_edge_below(root) }
        })
    }

    /// The gap behind all entries.
    #[inline]
    pub(crate) fn last_edge(&self) -> Edge {
        self.raw.root.map_or(Edge::NOWHERE, |root| {
            // SAFETY: the root is a node of this tree.
            unsafe { self.form().last_edge_below(root) }
        })
    }
}
