//! Trees from entries in order, and the rebuilding that follows from it.
//!
//! Entries are appended at the right edge: into the last leaf, or, when that is full, as a
//! separator into the lowest node above with room, followed by a new and empty branch. All nodes
//! but those at the right edge end up full; these are filled up from their neighbours at the end.

use core::mem::{self, ManuallyDrop};

use allocator_api2::alloc::Allocator;

use super::insert::LEVELS_MAX;
use super::node::{Form, NodePtr};
use super::{Edge, Options, Place, RawTree, Tree};
use crate::head::{bytes_of, head_of_bytes};

/// Builds a tree from entries in the order of their keys, which it does not check: a wrong order
/// costs answers.
///
/// Dropping a builder drops what was pushed.
pub(crate) struct Builder<K, V, A: Allocator> {
    /// A whole tree, but for nodes at its right edge that have no entries, counts that are not
    /// there yet, and prefixes that are all 0.
    tree: Tree<K, V, A>,
    /// Its last leaf, if it has nodes.
    last_leaf: NodePtr,
    /// The entry that was pushed last.
    last: Option<Place>,
}

impl<K, V, A: Allocator> Builder<K, V, A> {
    /// A builder of a tree with these options.
    pub(crate) fn new_in(alloc: A, options: Options<K, V>) -> Self {
        Builder {
            tree: Tree::new_in(alloc, options),
            last_leaf: NodePtr::dangling(),
            last: None,
        }
    }

    /// Number of entries so far.
    pub(crate) fn len(&self) -> usize {
        self.tree.len()
    }

    /// The last key pushed.
    pub(crate) fn last_key(&self) -> Option<&K> {
        // SAFETY: the entry has not been moved since.
        self.last
            .map(|place| unsafe { &*self.tree.form().key_at(place.node, place.slot) })
    }

    /// Appends an entry. If the allocator or a head panics, it is dropped, and those pushed before
    /// stay.
    #[inline]
    pub(crate) fn push(&mut self, key: K, value: V) {
        let head = if let Some(bytes) = bytes_of(&key) {
            head_of_bytes(bytes, 0)
        } else {
            self.tree.head_function().map_or(0, |head| head(&key))
        };
        let place = self.next_place();
        // SAFETY: the place was made for this entry.
        unsafe { self.fill(place, head, key, value) };
    }

    /// Appends a bitwise copy of an entry of another tree: one of the two must be forgotten.
    ///
    /// # Safety
    /// `place` is the place of an entry of a tree of this form, which has the same options as this
    /// one.
    unsafe fn push_copy(&mut self, form: Form<K, V>, place: Place) {
        // Whatever may panic comes before there are two copies.
        let to = self.next_place();
        // SAFETY: the entry is initialised, and so is its head where there are any; heads of byte
        // strings may leave out a prefix there, but not here.
        unsafe {
            let head = if let Some(bytes) = bytes_of(&*form.key_at(place.node, place.slot)) {
                head_of_bytes(bytes, 0)
            } else if form.has_heads() {
                form.head_at(place.node, place.slot).read()
            } else {
                0
            };
            let (key, value) = form.read_entry(place.node, place.slot);
            self.fill(to, head, key, value);
        }
    }

    /// The place behind the last entry. Only memory is prepared: nothing has changed if the
    /// allocator panics.
    #[inline]
    fn next_place(&mut self) -> Place {
        let form = self.tree.form();
        if self.tree.raw.root.is_none() {
            self.last_leaf = self.tree.make_root();
            return Place {
                node: self.last_leaf,
                slot: 0,
            };
        }
        // SAFETY: the last leaf is a node of the tree.
        unsafe {
            let len = form.len(self.last_leaf);
            if len < form.capacity() {
                return Place {
                    node: self.last_leaf,
                    slot: len,
                };
            }
            if form.is_first_leaf() {
                return self.outgrow_first_leaf();
            }
            let node = self.open_branch();
            Place {
                node,
                slot: form.len(node),
            }
        }
    }

    /// The place behind the entries of a first leaf, in a leaf of full size.
    ///
    /// # Safety
    /// The root is a first leaf.
    #[cold]
    unsafe fn outgrow_first_leaf(&mut self) -> Place {
        let mut end = self.tree.last_edge();
        // SAFETY: passed on.
        unsafe { self.tree.outgrow_first_leaf(&mut end) };
        self.last_leaf = end.leaf;
        self.last = end.slot.checked_sub(1).map(|slot| Place {
            node: end.leaf,
            slot,
        });
        Place {
            node: end.leaf,
            slot: end.slot,
        }
    }

    /// Writes an entry to its place.
    ///
    /// # Safety
    /// `place` is what [`next_place`](Self::next_place) gave, and nothing has happened since.
    #[inline]
    unsafe fn fill(&mut self, place: Place, head: u64, key: K, value: V) {
        let form = self.tree.form();
        let Place { node, slot } = place;
        // SAFETY: the slot is the first behind the entries of a node that has room; behind that of
        // an inner node hangs a new branch.
        unsafe {
            form.write_entry(node, slot, head, key, value);
            form.set_len(node, slot + 1);
            if node != self.last_leaf {
                self.last_leaf = form.last_edge_below(node).leaf;
            }
        }
        self.last = Some(place);
        self.tree.raw.len += 1;
    }

    /// The lowest node above the full last leaf that has room, perhaps a new root. Behind its last
    /// child hangs a new branch of nodes without entries, which counts as soon as the node has one
    /// entry more.
    ///
    /// # Safety
    /// The last leaf is a full leaf of the tree.
    #[cold]
    #[inline(never)]
    unsafe fn open_branch(&mut self) -> NodePtr {
        let form = self.tree.form();
        let mut below = self.last_leaf;
        // SAFETY: all are nodes of the tree; it changes once all new nodes are there.
        unsafe {
            let above = loop {
                match form.parent(below) {
                    Some(parent) if form.len(parent) < form.capacity() => break Some(parent),
                    Some(parent) => below = parent,
                    None => break None,
                }
            };
            let level = form.level(below);
            // The nodes of the branch, and a new root if there is no node with room.
            let made = level + 1 + usize::from(above.is_none());
            let nodes = self.tree.new_nodes::<{ LEVELS_MAX + 1 }>(made);
            for level in 1..=level {
                form.set_child(nodes[level], 0, nodes[level - 1]);
            }
            let branch = nodes[level];
            let above = above.unwrap_or_else(|| {
                let root = nodes[level + 1];
                form.set_child(root, 0, below);
                self.tree.set_root(root, level + 1);
                root
            });
            form.set_child(above, form.len(above) + 1, branch);
            above
        }
    }

    /// The tree.
    pub(crate) fn finish(mut self) -> Tree<K, V, A> {
        self.tree.finish_right_edge();
        self.tree.lengthen_prefixes();
        self.tree
    }
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Brings counts and right edge into line, after a builder or a cut: there, nodes may be
    /// without entries.
    fn finish_right_edge(&mut self) {
        let form = self.form();
        self.drop_empty_roots();
        let Some(root) = self.raw.root else {
            return;
        };
        if form.has_counts() {
            // SAFETY: the root is a node of this tree.
            unsafe { form.recount_below(root) };
        }
        // With two entries a node can lose one to a merge below it.
        let enough = (form.capacity() / 3).max(2);
        let mut node = root;
        // SAFETY: an inner node that is come to has an entry at least, and so two last children, of
        // which the left one has entries: nodes that are not at the right edge always do. At the
        // end the tree is whole.
        unsafe {
            while form.level(node) > 0 {
                let nodes = form.neighbours(node, form.len(node) - 1);
                let (left, right) = (form.len(nodes.left), form.len(nodes.right));
                if right >= enough {
                    node = nodes.right;
                } else if left + 1 + right <= form.capacity() {
                    form.merge(nodes, &mut Edge::NOWHERE.clone());
                    self.free_node(nodes.right);
                    node = nodes.left;
                    self.drop_empty_roots();
                } else {
                    form.rotate_right(nodes, (left - right) / 2, &mut Edge::NOWHERE.clone());
                    node = nodes.right;
                }
            }
            self.trim(|_, _| ());
        }
    }

    /// A tree of bitwise copies of the entries behind an edge, which neither drops them nor may be
    /// used, until the originals are forgotten and it is told to
    /// [`own_entries`](Self::own_entries).
    ///
    /// # Safety
    /// `edge` is an edge of this tree, which has nodes.
    unsafe fn copy_from<B: Allocator>(&self, mut edge: Edge, alloc: B) -> Tree<K, V, B> {
        let form = self.form();
        let mut builder = Builder::new_in(alloc, self.options());
        builder.tree.raw.flags.owns_entries = false;
        // SAFETY: the edge moves from entry to entry.
        unsafe {
            while let Some(place) = form.next(&mut edge) {
                builder.push_copy(form, place);
            }
        }
        builder.finish()
    }

    /// Makes the entries this tree's own, to drop them with it.
    fn own_entries(&mut self) {
        self.raw.flags.owns_entries = true;
    }

    /// Moves all entries behind a gap to a new tree with full nodes. Computes in O(number of
    /// entries moved), and in O(n) with ranks.
    ///
    /// If the allocator panics, the tree is as it was, or, when it panics while it takes memory
    /// back, the entries behind the gap may be lost.
    ///
    /// # Safety
    /// `edge` is an edge of this tree as it is now.
    pub(crate) unsafe fn split_off(&mut self, edge: Edge) -> Self
    where
        A: Clone,
    {
        let alloc = self.raw.alloc.clone();
        if self.raw.root.is_none() {
            return Tree::new_in(alloc, self.options());
        }
        // SAFETY: the edge is one of this tree; the originals are forgotten before the copies are
        // owned.
        unsafe {
            let mut behind = self.copy_from(edge, alloc);
            self.raw.len -= behind.len();
            self.forget_behind(edge);
            behind.own_entries();
            behind
        }
    }

    /// Forgets all entries behind a gap, without dropping them. The length does not count them.
    ///
    /// # Safety
    /// `edge` is an edge of this tree.
    unsafe fn forget_behind(&mut self, edge: Edge) {
        let form = self.form();
        let (mut node, mut kept) = (edge.leaf, edge.slot);
        // SAFETY: a node is one of its parent's children; those behind it go with all that is below
        // them.
        unsafe {
            loop {
                if form.level(node) > 0 {
                    for index in kept + 1..=form.len(node) {
                        self.free_subtree(form.child(node, index));
                    }
                }
                form.truncate(node, kept);
                if form.has_prefixes() {
                    // There is no right fence any more.
                    form.limit_prefix(node, 0);
                }
                let Some(parent) = form.parent(node) else {
                    break;
                };
                kept = form.index_of(parent, node);
                node = parent;
            }
        }
        self.finish_right_edge();
    }

    /// Takes a node and all below it out of use.
    ///
    /// # Safety
    /// `node` is a node of this tree that nothing refers to any more, and whose entries are gone.
    unsafe fn free_subtree(&mut self, node: NodePtr) {
        let form = self.form();
        // SAFETY: children up to the length are nodes. The recursion is as deep as the tree is
        // high.
        unsafe {
            if form.level(node) > 0 {
                for index in 0..=form.len(node) {
                    self.free_subtree(form.child(node, index));
                }
            }
            self.free_node(node);
        }
    }

    /// Rebuilds the tree with full nodes in the order of the keys, in as little memory as they
    /// need. Computes in O(n), and holds the entries twice meanwhile.
    ///
    /// If the allocator panics, the tree is as it was.
    pub(crate) fn compact(&mut self) {
        if self.raw.len == 0 {
            return self.clear();
        }
        let edge = self.first_edge();
        // SAFETY: a tree with entries has nodes.
        let copy = ManuallyDrop::new(unsafe { self.copy_from(edge, &self.raw.alloc) });
        let (root, store, mut flags) = (copy.raw.root, copy.raw.store, copy.raw.flags);
        flags.owns_entries = true;
        // The old nodes go without their entries.
        let mut old = RawTree {
            root: mem::replace(&mut self.raw.root, root),
            len: 0,
            store: mem::replace(&mut self.raw.store, store),
            flags: mem::replace(&mut self.raw.flags, flags),
            alloc: &self.raw.alloc,
        };
        old.flags.owns_entries = false;
    }
}

impl<K, V> Form<K, V> {
    /// Counts the entries below all children anew, from the bottom up.
    ///
    /// # Safety
    /// `node` is a node of this form, which has counts; they need not be initialised.
    unsafe fn recount_below(self, node: NodePtr) {
        // SAFETY: children up to the length are nodes. The recursion is as deep as the tree is
        // high.
        unsafe {
            if self.level(node) > 0 {
                for index in 0..=self.len(node) {
                    self.recount_below(self.child(node, index));
                    self.recount(node, index);
                }
            }
        }
    }
}
