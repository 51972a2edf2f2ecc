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
//! one to the next leads through the parent. The parent is in the cache during a walk, and has
//! pointers to the leaves further on, which can thus be prefetched.

use super::node::{Form, NodePtr};
use super::{Edge, Place, Root, Tree};
use crate::block::LINE_BYTES;
use crate::simd::{CHILD_LINES, prefetch, prefetch_bytes, prefetch_fixed};

use allocator_api2::alloc::Allocator;

/// How many leaves ahead of a walk are asked for. In one run, nanoseconds an entry among 2 million
/// of 16 B: 3 leaves 2.9, 4 leaves 2.6, 5 leaves 2.6 (`BTreeMap`: 20.2). Fewer are better for short
/// walks, which ask for leaves that they never come to.
const LEAVES_AHEAD: usize = 4;

/// A guess that is never right, for a walk that begins.
pub(crate) const NO_GUESS: usize = usize::MAX;

/// Most lines of a leaf that are asked for ahead of time.
const LINES_AHEAD_MAX: usize = 16;

impl<K, V> Form<K, V> {
    /// The gap before all entries below a node.
    ///
    /// # Safety
    /// `node` is a node of this form.
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
    /// `node` is a node of this form.
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

    /// The gap before all entries of a tree.
    ///
    /// # Safety
    /// `root` was taken from a tree of this form, which has not changed since; its entries may have
    /// been forgotten.
    #[inline]
    pub(crate) unsafe fn first_edge(self, root: Root) -> Edge {
        // SAFETY: the root is a node.
        unsafe { self.first_edge_below(root.0) }
    }

    /// The gap behind all entries of a tree.
    ///
    /// # Safety
    /// As for [`first_edge`](Self::first_edge).
    #[inline]
    pub(crate) unsafe fn last_edge(self, root: Root) -> Edge {
        // SAFETY: the root is a node.
        unsafe { self.last_edge_below(root.0) }
    }

    /// The gap before an entry.
    ///
    /// # Safety
    /// `place` is the place of an entry of a tree of this form.
    #[inline]
    pub(crate) unsafe fn edge_before(self, place: Place) -> Edge {
        // SAFETY: the place is that of an entry; an inner node has a child on each side of it.
        unsafe {
            if self.level(place.node) == 0 {
                return Edge {
                    leaf: place.node,
                    slot: place.slot,
                };
            }
            self.last_edge_below(self.child(place.node, place.slot))
        }
    }

    /// The gap behind an entry.
    ///
    /// # Safety
    /// `place` is the place of an entry of a tree of this form.
    #[inline]
    pub(crate) unsafe fn edge_after(self, place: Place) -> Edge {
        // SAFETY: as above.
        unsafe {
            if self.level(place.node) == 0 {
                return Edge {
                    leaf: place.node,
                    slot: place.slot + 1,
                };
            }
            self.first_edge_below(self.child(place.node, place.slot + 1))
        }
    }

    /// The entry behind a gap, and moves the edge behind that; at the end `None`, and the edge
    /// stays.
    ///
    /// # Safety
    /// `edge` is an edge of a tree of this form that has nodes.
    #[inline]
    pub(crate) unsafe fn next(self, edge: &mut Edge) -> Option<Place> {
        // SAFETY: passed on.
        unsafe { self.next_near(edge, &mut { NO_GUESS }) }
    }

    /// [`next`](Self::next) for a walk, which keeps a guess at the index of its leaf among its
    /// parent's children; it starts with [`NO_GUESS`].
    ///
    /// # Safety
    /// As for `next`.
    #[inline]
    pub(crate) unsafe fn next_near(self, edge: &mut Edge, index: &mut usize) -> Option<Place> {
        // SAFETY: the edge is at a leaf.
        if edge.slot < unsafe { self.len(edge.leaf) } {
            let place = Place {
                node: edge.leaf,
                slot: edge.slot,
            };
            edge.slot += 1;
            return Some(place);
        }
        // SAFETY: as above, at its end.
        let place = unsafe { self.walk_after_leaf(edge.leaf, index) }?;
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
        // SAFETY: passed on.
        unsafe { self.prev_near(edge, &mut { NO_GUESS }) }
    }

    /// [`prev`](Self::prev) for a walk, which keeps a guess as that of
    /// [`next_near`](Self::next_near) does.
    ///
    /// # Safety
    /// As for `prev`.
    #[inline]
    pub(crate) unsafe fn prev_near(self, edge: &mut Edge, index: &mut usize) -> Option<Place> {
        if edge.slot > 0 {
            edge.slot -= 1;
            return Some(Place {
                node: edge.leaf,
                slot: edge.slot,
            });
        }
        // SAFETY: the edge is at a leaf, at its start.
        let place = unsafe { self.walk_before_leaf(edge.leaf, index) }?;
        // SAFETY: the place is that of an entry.
        *edge = unsafe { self.edge_before(place) };
        Some(place)
    }

    /// The entry of an inner node that follows all entries of a node and below it.
    ///
    /// Asks for nothing ahead of time: a search that ends behind a leaf's last entry has no use for
    /// the leaves that follow.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form.
    pub(crate) unsafe fn entry_after(self, mut node: NodePtr) -> Option<Place> {
        // SAFETY: a node is one of its parent's children; a child that is not the last has an entry
        // behind it.
        unsafe {
            while let Some(parent) = self.parent(node) {
                let index = self.index_of(parent, node);
                if index < self.len(parent) {
                    return Some(Place {
                        node: parent,
                        slot: index,
                    });
                }
                node = parent;
            }
        }
        None
    }

    /// The entry of an inner node that precedes all entries of a node and below it. Asks for
    /// nothing ahead of time either.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form.
    pub(crate) unsafe fn entry_before(self, mut node: NodePtr) -> Option<Place> {
        // SAFETY: a node is one of its parent's children; a child that is not the first has an
        // entry before it.
        unsafe {
            while let Some(parent) = self.parent(node) {
                let index = self.index_of(parent, node);
                if index > 0 {
                    return Some(Place {
                        node: parent,
                        slot: index - 1,
                    });
                }
                node = parent;
            }
        }
        None
    }

    /// [`entry_after`](Self::entry_after) of a leaf, for a walk: asks for leaves further on.
    ///
    /// `guess` is taken for the leaf's index in its parent, where that is right, and becomes that
    /// of the next leaf.
    ///
    /// # Safety
    /// `leaf` is a leaf of a tree of this form.
    unsafe fn walk_after_leaf(self, leaf: NodePtr, guess: &mut usize) -> Option<Place> {
        // SAFETY: a node is one of its parent's children; a child that is not the last has an entry
        // behind it, and a child behind that.
        unsafe {
            let parent = self.parent(leaf)?;
            let index = self.index_near(parent, leaf, *guess);
            if index == *guess {
                self.request_leaf_ahead(parent, index + LEAVES_AHEAD);
            } else {
                // The walk has just begun: nothing that comes was asked for before.
                for ahead in 1..=LEAVES_AHEAD {
                    self.request_leaf_ahead(parent, index + ahead);
                }
            }
            if index < self.len(parent) {
                *guess = index + 1;
                return Some(Place {
                    node: parent,
                    slot: index,
                });
            }
            *guess = 0;
            let place = self.entry_after(parent)?;
            if self.level(place.node) > 2 {
                // The next parent is not a child of the same node, so that none of its leaves has
                // been asked for.
                for leaf in 0..LEAVES_AHEAD {
                    self.request_leaf_below(self.child(place.node, place.slot + 1), leaf);
                }
            }
            Some(place)
        }
    }

    /// [`entry_before`](Self::entry_before) of a leaf, for a walk: asks for leaves further on.
    ///
    /// `guess` is taken for the leaf's index in its parent, where that is right, and becomes that
    /// of the leaf before.
    ///
    /// # Safety
    /// `leaf` is a leaf of a tree of this form.
    unsafe fn walk_before_leaf(self, leaf: NodePtr, guess: &mut usize) -> Option<Place> {
        // SAFETY: a node is one of its parent's children; a child that is not the first has an
        // entry before it, and a child before that.
        unsafe {
            let parent = self.parent(leaf)?;
            let index = self.index_near(parent, leaf, *guess);
            if index == *guess {
                self.request_leaf_behind(parent, index, LEAVES_AHEAD);
            } else {
                for behind in 1..=LEAVES_AHEAD {
                    self.request_leaf_behind(parent, index, behind);
                }
            }
            if index > 0 {
                *guess = index - 1;
                return Some(Place {
                    node: parent,
                    slot: index - 1,
                });
            }
            let place = self.entry_before(parent)?;
            if self.level(place.node) == 2 {
                *guess = self.len(self.child(place.node, place.slot));
            }
            Some(place)
        }
    }

    /// Asks for the leaves behind a leaf: for a walk that begins there. `guess` becomes the leaf's
    /// index, as for [`next_near`](Self::next_near), so that the walk does not ask for the same
    /// leaves again.
    ///
    /// # Safety
    /// `leaf` is a leaf of a tree of this form.
    pub(crate) unsafe fn request_leaves_after(self, leaf: NodePtr, guess: &mut usize) {
        // SAFETY: a node is one of its parent's children.
        unsafe {
            if let Some(parent) = self.parent(leaf) {
                let index = self.index_near(parent, leaf, *guess);
                *guess = index;
                // The first crossing will ask for the one after these.
                for ahead in 1..LEAVES_AHEAD {
                    self.request_leaf_ahead(parent, index + ahead);
                }
            }
        }
    }

    /// Asks for a leaf below an inner node of level 1 or a node above one: of its first child's
    /// first child, and so on.
    ///
    /// # Safety
    /// `node` is an inner node of this form.
    unsafe fn request_leaf_below(self, mut node: NodePtr, index: usize) {
        // SAFETY: an inner node has a first child.
        unsafe {
            for _ in 1..self.level(node) {
                node = self.child(node, 0);
            }
            if self.level(node) == 1 {
                self.request_leaf(node, index);
            }
        }
    }

    /// Asks for the leaf of an index, counted on from the children of `parent` into those of the
    /// node after it, if both are children of one node.
    ///
    /// A walk that asked only for its own parent's leaves would wait at the start of each next one,
    /// as if it had just begun.
    ///
    /// # Safety
    /// `parent` is an inner node of level 1 of a tree of this form.
    #[inline]
    unsafe fn request_leaf_ahead(self, parent: NodePtr, index: usize) {
        // SAFETY: the node is an inner one of level 1.
        unsafe {
            let last = self.len(parent);
            if index <= last {
                self.request_leaf(parent, index);
                // The inner node that the walk comes to next.
                if index + 1 == last
                    && let Some(next) = self.node_after(parent)
                {
                    self.request_children(next);
                }
            } else if let Some(next) = self.node_after(parent) {
                self.request_leaf(next, index - last - 1);
            }
        }
    }

    /// Asks for the leaf that is `behind` places before that of an index, as
    /// [`request_leaf_ahead`](Self::request_leaf_ahead).
    ///
    /// # Safety
    /// As for `request_leaf_ahead`.
    #[inline]
    unsafe fn request_leaf_behind(self, parent: NodePtr, index: usize, behind: usize) {
        // SAFETY: as above.
        unsafe {
            if let Some(index) = index.checked_sub(behind) {
                self.request_leaf(parent, index);
                if index == 1
                    && let Some(previous) = self.node_before(parent)
                {
                    self.request_children(previous);
                }
            } else if let Some(previous) = self.node_before(parent) {
                // A node with too few leaves gives an index that is no child's.
                let index = (self.len(previous) + 1).wrapping_sub(behind - index);
                self.request_leaf(previous, index);
            }
        }
    }

    /// The next child of a node's parent.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form.
    #[cold]
    unsafe fn node_after(self, node: NodePtr) -> Option<NodePtr> {
        // SAFETY: a node is one of its parent's children, which are as many as its entries and one.
        unsafe {
            let parent = self.parent(node)?;
            let index = self.index_of(parent, node);
            (index < self.len(parent)).then(|| self.child(parent, index + 1))
        }
    }

    /// The previous child of a node's parent.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form.
    #[cold]
    unsafe fn node_before(self, node: NodePtr) -> Option<NodePtr> {
        // SAFETY: a node is one of its parent's children.
        unsafe {
            let parent = self.parent(node)?;
            let index = self.index_of(parent, node).checked_sub(1)?;
            Some(self.child(parent, index))
        }
    }

    /// Prefetches the header of an inner node and the first lines of its pointers to children.
    fn request_children(self, node: NodePtr) {
        prefetch(node.as_ptr().wrapping_add(self.shape().header_at));
        prefetch_fixed::<CHILD_LINES>(node.as_ptr().wrapping_add(self.shape().children_at));
    }

    /// Asks for the lines of a child that is a leaf, if the parent has one of that index.
    ///
    /// # Safety
    /// `parent` is an inner node of level 1 of this form.
    #[inline]
    unsafe fn request_leaf(self, parent: NodePtr, index: usize) {
        // SAFETY: the header is initialised, and so are the children up to the length.
        unsafe {
            if index <= self.len(parent) {
                let leaf = self.child(parent, index);
                prefetch_bytes(
                    leaf.as_ptr(),
                    self.shape().leaf_bytes.min(LINES_AHEAD_MAX * LINE_BYTES),
                );
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
