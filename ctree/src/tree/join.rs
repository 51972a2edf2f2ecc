//! Joining two trees, of which one has all keys before those of the other.

use core::mem::{self, ManuallyDrop};

use allocator_api2::alloc::{Allocator, Global};

use super::build::Side;
use super::insert::LEVELS_MAX;
use super::{Tree, share};

/// Fewest entries that are worth a join: fewer are inserted one by one as fast, and leave no chunks
/// of their own.
const JOINED_MIN: usize = 256;

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Whether [`join`](Self::join) can take over `other`: there are enough entries, and what one
    /// tree has allocated the allocator of the other may free.
    pub(crate) fn can_join(&self, other: &Self) -> bool {
        typeid::of::<A>() == typeid::of::<Global>()
            && self.len().min(other.len()) >= JOINED_MIN
            && !self.form().is_first_leaf()
            && !other.form().is_first_leaf()
    }

    /// Takes over all entries of `other`, which belong behind those of this tree, or before them.
    /// Computes in O(log n) and moves a few entries; the trees' free nodes are filled. Only if both
    /// trees inherit memory, and neither all that the other does, it moves the nodes of the lower
    /// one.
    ///
    /// If a head panics, `other` is lost.
    ///
    /// # Safety
    /// The trees have the same options, and [can be joined](Self::can_join).
    pub(crate) unsafe fn join(&mut self, mut other: Self, is_behind: bool) {
        let is_lower = other.height() <= self.height();
        let side = if is_lower == is_behind {
            Side::Right
        } else {
            Side::Left
        };
        let form = self.form();
        // SAFETY: both trees have many entries; the place is that of the entry of the lower tree
        // that is nearest to the other one, and what is left of it keeps its nodes.
        unsafe {
            let lower = if is_lower { &other } else { &*self };
            let separator = match side {
                Side::Right => form.next(&mut lower.first_edge()),
                Side::Left => form.prev(&mut lower.last_edge()),
            };
            let Some(separator) = separator else { return };
            let user_head = if form.has_prefixes() {
                None
            } else {
                let key = &*form.key_at(separator.node, separator.slot);
                self.head_function().map(|head| head(key))
            };
            // From here on no user's code runs but the allocator.
            if !is_lower {
                mem::swap(self, &mut other);
            }
            let (key, value, _) = other.remove_at(separator);
            let (mine, theirs) = (self.raw.store().inherited, other.raw.store().inherited);
            if !share::keeps(mine, theirs) && !share::keeps(theirs, mine) {
                other.leave_inherited(&mut |_, _| ());
            }
            self.hang(side, other, (user_head, key, value));
            self.fill_edge(side);
            self.trim(|_, _| ());
        }
    }

    /// Hangs another tree to a side of this one, behind or before an entry with this head, unless
    /// that depends on the node. Nodes at the side may have few entries or none then.
    ///
    /// Nothing has changed if the allocator panics, but that `other` and the entry are dropped.
    ///
    /// # Safety
    /// As for [`inherit_from`](Self::inherit_from); `other` is no higher than this tree.
    unsafe fn hang(&mut self, side: Side, other: Self, entry: (Option<u64>, K, V)) {
        let (form, height) = (self.form(), other.height());
        let (Some(root), Some(mut below)) = (other.raw.root, self.raw.root) else {
            return;
        };
        let (user_head, key, value) = entry;
        // SAFETY: all are nodes of the tree, which changes once all new nodes are there. A branch
        // of new nodes takes the other root to the level below a node that has room, the lowest
        // one, or a new root.
        unsafe {
            while form.level(below) > height {
                let index = match side {
                    Side::Left => 0,
                    Side::Right => form.len(below),
                };
                below = form.child(below, index);
            }
            let above = form.climb_to_room(&mut below);
            let level = form.level(below);
            let levels = height + 1..level + 1 + usize::from(above.is_none());
            let made = self.new_nodes::<{ LEVELS_MAX + 1 }>(levels);
            self.raw.len += other.raw.len + 1;
            self.inherit_from(other);
            let mut branch = root;
            for &node in &made[..level - height] {
                form.set_child(node, 0, branch);
                form.recount(node, 0);
                branch = node;
            }
            let above = above.unwrap_or_else(|| {
                let root = made[level - height];
                form.set_child(root, 0, below);
                form.recount(root, 0);
                self.set_root(root, level + 1);
                root
            });
            let head = user_head.unwrap_or_else(|| self.head_in(above, &key));
            let (slot, index) = match side {
                Side::Left => (0, 0),
                Side::Right => (form.len(above), form.len(above) + 1),
            };
            form.open_gap(above, slot, 1);
            form.write_entry(above, slot, head, key, value);
            // The length counts the new entry, but not yet its child.
            form.open_child_gap(above, index, 1, form.len(above));
            form.set_child(above, index, branch);
            form.recount(above, index);
            let mut node = above;
            while let Some(parent) = form.parent(node) {
                form.recount(parent, form.index_of(parent, node));
                node = parent;
            }
        }
    }

    /// Makes the store of another tree one that this tree inherits. Its nodes become nodes of this
    /// tree, which refers to none of them yet.
    ///
    /// # Safety
    /// Both trees have stores of their own, and the same allocator. One of them inherits all that
    /// the other does.
    unsafe fn inherit_from(&mut self, other: Self) {
        let other = ManuallyDrop::new(other);
        let mut store = other.raw.store;
        // SAFETY: each store is its tree's own, until one is sealed. What one of the two gives up
        // the other one keeps.
        unsafe {
            let (mine, theirs) = (self.raw.store.as_mut(), store.as_mut());
            let keeps_all = share::keeps(mine.inherited, theirs.inherited);
            for (mine, theirs) in [
                (&mut mine.leaves, &theirs.leaves),
                (&mut mine.inners, &theirs.inners),
            ] {
                let inherited = if keeps_all { &*mine } else { theirs }.inherited_bytes();
                mine.adopt(theirs, inherited);
            }
            if keeps_all {
                share::give_up(theirs.inherited, &other.raw.alloc);
                theirs.inherited = mine.inherited;
            } else {
                share::give_up(mine.inherited, &other.raw.alloc);
            }
            theirs.heirs = 1;
            mine.inherited = Some(store);
        }
    }
}
