//! Building a tree from entries in order, and what rests on it: clones, compaction.
//!
//! A builder appends at the right edge: to the last leaf, or, if that is full, to the lowest node
//! above with room, which then gets a new branch without entries. All nodes but those at the right
//! edge end up full. The nodes at the edge are filled up from their neighbours at the end.

use core::mem::{self, ManuallyDrop};
use core::ops::Range;

use allocator_api2::alloc::Allocator;

use super::insert::LEVELS_MAX;
use super::navigate::NO_GUESS;
use super::node::{Form, NodePtr};
use super::{Edge, Options, Place, RawTree, Tree};
use crate::head::{bytes_of, head_of_bytes, is_byte_string};
use crate::simd::prefetch;

/// Builds a tree from entries in the order of their keys. Nothing checks the order: if it is wrong,
/// searches miss keys.
///
/// Dropping a builder drops what was pushed.
pub(crate) struct Builder<K, V, A: Allocator> {
    /// A whole tree, except that nodes at its right edge may have no entries, and that counts are
    /// not set. The prefixes of nodes at the right edge are 0.
    tree: Tree<K, V, A>,
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

    pub(crate) fn len(&self) -> usize {
        self.tree.len()
    }

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

    /// Appends bitwise copies of neighbouring entries of a node of another tree. Either the copies
    /// or the originals must be forgotten.
    ///
    /// # Safety
    /// `from` is a node of a tree with this `form` and the same options. It has entries in `slots`.
    unsafe fn push_copies(&mut self, form: Form<K, V>, from: NodePtr, mut slots: Range<usize>) {
        while !slots.is_empty() {
            let to = self.next_place();
            let form_to = self.tree.form();
            let room = if to.node == self.last_leaf {
                form_to.capacity() - to.slot
            } else {
                1
            };
            let count = room.min(slots.len());
            // SAFETY: the slots of the other tree have entries; those from the place on are empty,
            // as many as fit into a leaf, or one in an inner node.
            unsafe {
                form.copy_entries(from, slots.start, form_to, to.node, to.slot, count);
                self.count_in(to, count);
            }
            slots.start += count;
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
        // SAFETY: the caller promises that the root is a first leaf; `end` is an edge of it.
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

    /// # Safety
    /// [`next_place`](Self::next_place) has just returned `place`.
    #[inline]
    unsafe fn fill(&mut self, place: Place, head: u64, key: K, value: V) {
        // SAFETY: the slot is the first behind the entries of a node that has room.
        unsafe {
            let form = self.tree.form();
            form.write_entry(place.node, place.slot, head, key, value);
            self.count_in(place, 1);
        }
    }

    /// Adds `count` entries that were written at `place` and behind to the length of their node.
    ///
    /// # Safety
    /// [`next_place`](Self::next_place) returned `place`, and the entries were written since: one,
    /// or in a leaf as many as fit.
    #[inline]
    unsafe fn count_in(&mut self, place: Place, count: usize) {
        let form = self.tree.form();
        let Place { node, slot } = place;
        // SAFETY: the entries are initialised; behind one of an inner node hangs a new branch.
        unsafe {
            form.set_len(node, slot + count);
            if node != self.last_leaf {
                self.finish_branch(node);
                self.last_leaf = form.last_edge_below(node).leaf;
            }
        }
        self.last = Some(Place {
            node,
            slot: slot + count - 1,
        });
        self.tree.raw.len += count;
    }

    /// Chooses the prefixes of the nodes from the last leaf up to a child of `above`: both of their
    /// fences are known now, and their keys are still in the cache.
    ///
    /// # Safety
    /// `above` is an inner node above the last leaf, and has just been given an entry behind it.
    unsafe fn finish_branch(&mut self, above: NodePtr) {
        let form = self.tree.form();
        if !form.has_prefixes() {
            return;
        }
        let mut node = self.last_leaf;
        // SAFETY: all are nodes of the tree, whose keys are byte strings.
        unsafe {
            while node != above {
                form.lengthen_prefix(node);
                let Some(parent) = form.parent(node) else {
                    return;
                };
                node = parent;
            }
        }
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
            let above = form.climb_to_room(&mut below);
            let level = form.level(below);
            // The nodes of the branch, and a new root if there is no node with room.
            let made = level + 1 + usize::from(above.is_none());
            let nodes = self.tree.new_nodes::<{ LEVELS_MAX + 1 }>(0..made);
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

    pub(crate) fn finish(mut self) -> Tree<K, V, A> {
        let form = self.tree.form();
        if form.has_counts()
            && let Some(root) = self.tree.raw.root
        {
            // SAFETY: the root is a node of this tree.
            unsafe { form.recount_below(root) };
        }
        self.tree.fill_edge(Side::Right);
        // SAFETY: the tree is whole now.
        unsafe { self.tree.trim(|_, _| ()) };
        self.tree
    }
}

/// An end of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Fills up the nodes at one side of the tree, which may have few entries or none after a
    /// builder or a cut. Counts are right before and after.
    pub(super) fn fill_edge(&mut self, side: Side) {
        let form = self.form();
        self.drop_empty_roots();
        let Some(mut node) = self.raw.root else {
            return;
        };
        // With two entries a node can lose one to a merge below it.
        let enough = (form.capacity() / 3).max(2);
        let edge = &mut Edge::NOWHERE.clone();
        // SAFETY: `node` has an entry at least, and thus two children at the side. The inner one of
        // the two has entries: only nodes at the edge may lack them.
        unsafe {
            while form.level(node) > 0 {
                let slot = match side {
                    Side::Left => 0,
                    Side::Right => form.len(node) - 1,
                };
                let nodes = form.neighbours(node, slot);
                let (left, right) = (form.len(nodes.left), form.len(nodes.right));
                let (at_edge, len) = match side {
                    Side::Left => (nodes.left, left),
                    Side::Right => (nodes.right, right),
                };
                node = at_edge;
                if len >= enough {
                    continue;
                }
                if left + 1 + right <= form.capacity() {
                    form.merge(nodes, edge);
                    self.free_node(nodes.right);
                    node = nodes.left;
                    self.drop_empty_roots();
                } else if side == Side::Left {
                    form.rotate_left(nodes, (right - left) / 2, edge);
                } else {
                    form.rotate_right(nodes, (left - right) / 2, edge);
                }
            }
        }
    }

    /// A tree with full nodes and clones of all entries. If a clone or the allocator panics, the
    /// clones are dropped.
    pub(crate) fn clone_in<B: Allocator>(&self, alloc: B) -> Tree<K, V, B>
    where
        K: Clone,
        V: Clone,
    {
        let form = self.form();
        let mut builder = Builder::new_in(alloc, self.options());
        let (mut edge, mut guess) = (self.first_edge(), NO_GUESS);
        let mut leaf = None;
        // SAFETY: a tree with entries has nodes; the edge moves from entry to entry.
        unsafe {
            while builder.len() < self.len()
                && let Some(place) = form.next_near(&mut edge, &mut guess)
            {
                if leaf != Some(edge.leaf) {
                    leaf = Some(edge.leaf);
                    form.request_bytes(edge.leaf, 0);
                }
                let key = (*form.key_at(place.node, place.slot)).clone();
                let value = (*form.value_at(place.node, place.slot)).clone();
                builder.push(key, value);
            }
        }
        builder.finish()
    }

    /// A tree with full nodes and bitwise copies of the entries between two edges. It does not own
    /// the copies: it must not be used before the originals are forgotten and
    /// [`own_entries`](Self::own_entries) is called.
    ///
    /// # Safety
    /// Both are edges of this tree, which has nodes, in this order.
    pub(super) unsafe fn copy_between<B: Allocator>(
        &self,
        [mut at, end]: [Edge; 2],
        alloc: B,
    ) -> Tree<K, V, B> {
        let form = self.form();
        let mut builder = Builder::new_in(alloc, self.options());
        builder.tree.raw.flags.owns_entries = false;
        let mut guess = NO_GUESS;
        // SAFETY: a leaf has entries up to its length, and between two leaves lies one of an inner
        // node.
        unsafe {
            while at.leaf != end.leaf {
                let len = form.len(at.leaf);
                builder.push_copies(form, at.leaf, at.slot..len);
                at.slot = len;
                let Some(Place { node, slot }) = form.next_near(&mut at, &mut guess) else {
                    break;
                };
                builder.push_copies(form, node, slot..slot + 1);
            }
            builder.push_copies(form, at.leaf, at.slot..end.slot);
        }
        builder.finish()
    }

    /// Makes the entries this tree's own, to drop them with it.
    pub(super) fn own_entries(&mut self) {
        self.raw.flags.owns_entries = true;
    }

    /// Rebuilds the tree with full nodes in the order of the keys, in as little memory as they
    /// need. Computes in O(n), and holds the entries twice meanwhile.
    ///
    /// If the allocator panics, the tree is as it was.
    pub(crate) fn compact(&mut self) {
        if self.raw.len == 0 {
            return self.clear();
        }
        let all = [self.first_edge(), self.last_edge()];
        // SAFETY: a tree with entries has nodes.
        let copy = ManuallyDrop::new(unsafe { self.copy_between(all, &self.raw.alloc) });
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
    /// The lowest node above `node` that has room, if there is one. `node` becomes its child on the
    /// way, or else the root.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form.
    pub(super) unsafe fn climb_to_room(self, node: &mut NodePtr) -> Option<NodePtr> {
        // SAFETY: parents are nodes.
        unsafe {
            while let Some(parent) = self.parent(*node) {
                if self.len(parent) < self.capacity() {
                    return Some(parent);
                }
                *node = parent;
            }
        }
        None
    }

    /// Prefetches the first bytes of the keys of a node from a slot on, if they are byte strings.
    ///
    /// # Safety
    /// `node` is a node of this form, whose keys from the slot on are initialised.
    pub(super) unsafe fn request_bytes(self, node: NodePtr, start: usize) {
        if !is_byte_string::<K>() {
            return;
        }
        // SAFETY: the keys up to the length are initialised.
        unsafe {
            for slot in start..self.len(node) {
                if let Some(bytes) = bytes_of(&*self.key_at(node, slot)) {
                    prefetch(bytes.as_ptr());
                }
            }
        }
    }

    /// Sets the counts of entries below all children, from the bottom up.
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
