//! Memory that several trees have nodes in: so trees are split and joined without moving entries.
//!
//! ```text
//! tree a --> store 2 --.
//!                       >--> store 1, 2 heirs --> store 0, 1 heir
//! tree b --> store 3 --'
//! ```
//! When a tree is split, nodes of both parts lie in the same chunks. Its store is **sealed**: no
//! more nodes are taken from it, and both parts get a store of their own that inherits from it.
//! The chunks of a sealed store go back to the allocator when its last heir gives it up. A join
//! makes the store of one tree an ancestor of that of the other.
//!
//! A node that a tree frees goes to the tree's own list of free nodes, in whosever chunk it lies. A
//! tree that has become small beside what it inherits moves its nodes to chunks of its own, when it
//! is next trimmed.
//!
//! What a sealed store inherits does not change any more: heirs follow the chain without a lock.

use core::mem;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

use allocator_api2::alloc::Allocator;

use super::node::NodePtr;
use super::{Store, Tree};

/// Trees share memory as long as each has nodes in one of so many bytes of it.
pub(super) const SHARED_PER_BYTE_MAX: usize = 16;

/// The same for memory that only one tree is left to have nodes in.
const LEFT_PER_BYTE_MAX: usize = 4;

/// Counts one heir more.
///
/// # Safety
/// `store` is sealed and has an heir.
pub(super) unsafe fn add_heir(store: NonNull<Store>) {
    // SAFETY: a sealed store lives as long as it has heirs, and its count is accessed as an atomic
    // only. A count cannot overflow: each heir takes memory.
    unsafe { AtomicUsize::from_ptr(&raw mut (*store.as_ptr()).heirs) }
        .fetch_add(1, Ordering::Relaxed);
}

/// Whether `store` is a sealed store, or inherits from it, and thus keeps it. Nothing is kept by
/// all.
///
/// # Safety
/// The caller is an heir of `store`.
pub(super) unsafe fn keeps(
    mut store: Option<NonNull<Store>>,
    kept: Option<NonNull<Store>>,
) -> bool {
    while store != kept {
        let Some(this) = store else { return false };
        // SAFETY: the caller keeps all of the chain alive, and nobody writes what it inherits.
        store = unsafe { (&raw const (*this.as_ptr()).inherited).read() };
    }
    true
}

/// Gives up a sealed store for one heir; the last one frees its chunks, and gives up what it
/// inherits. If `alloc` panics, the chunks that are left leak.
///
/// # Safety
/// The caller is an heir, and is none from now on; its nodes do not lie there. `alloc` is the
/// allocator of the store's chunks, or a clone.
pub(super) unsafe fn give_up<A: Allocator>(mut store: Option<NonNull<Store>>, alloc: &A) {
    while let Some(this) = store {
        // SAFETY: the store has an heir: the caller, or the one that was just given up. The last
        // one to count down sees what all heirs did before, and is alone. The arenas are copied out
        // of the memory that goes with them.
        unsafe {
            let heirs = AtomicUsize::from_ptr(&raw mut (*this.as_ptr()).heirs);
            if heirs.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
            let Store {
                leaves,
                inners,
                inherited,
                ..
            } = this.read();
            store = inherited;
            inners.free_all(alloc);
            leaves.free_all(alloc);
        }
    }
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Gives the tree a new store, which inherits the one that it had. That is sealed, with this
    /// tree as its heir. Nothing has changed if the allocator panics.
    ///
    /// # Safety
    /// The tree has a store of its own.
    pub(super) unsafe fn seal(&mut self) -> NonNull<Store> {
        let old = self.raw.store;
        self.make_store();
        // SAFETY: both stores are the tree's own.
        unsafe {
            let (old_store, new) = (&mut *old.as_ptr(), self.raw.store.as_mut());
            new.leaves.inherit(&mut old_store.leaves);
            new.inners.inherit(&mut old_store.inners);
            old_store.heirs = 1;
            new.inherited = Some(old);
        }
        old
    }

    /// Whether the tree inherits much more memory than its nodes take.
    pub(super) fn inherits_too_much(&self) -> bool {
        let store = self.raw.store();
        let Some(sealed) = store.inherited else {
            return false;
        };
        // SAFETY: the tree is an heir, so that the sealed store lives. (See `add_heir`.)
        let heirs = unsafe { AtomicUsize::from_ptr(&raw mut (*sealed.as_ptr()).heirs) };
        let per_byte = match heirs.load(Ordering::Relaxed) {
            1 => LEFT_PER_BYTE_MAX,
            _ => SHARED_PER_BYTE_MAX,
        };
        let inherited = store.leaves.inherited_bytes() + store.inners.inherited_bytes();
        self.bytes_in_use() < inherited / per_byte
    }

    /// Size of all nodes, but for a first leaf.
    pub(super) fn bytes_in_use(&self) -> usize {
        let (form, store) = (self.form().grown(), self.raw.store());
        let bytes_of = |leaf| form.memory(leaf).layout.size();
        store.leaves.in_use() * bytes_of(true) + store.inners.in_use() * bytes_of(false)
    }

    /// Moves all nodes to chunks of the tree's own, and gives up what it inherits. Calls `moved`
    /// with the old and the new place of each.
    ///
    /// If the allocator panics, the tree is whole, and keeps what it inherits, or leaks it.
    ///
    /// # Safety
    /// As for [`trim`](Self::trim); the tree has a store of its own.
    pub(super) unsafe fn leave_inherited(&mut self, moved: &mut impl FnMut(NodePtr, NodePtr)) {
        // SAFETY: passed on. Then all nodes lie in what the tree inherits, and none does at the
        // end.
        unsafe {
            self.seal();
            for level in 0..2 {
                self.arena(level).0.forget_free();
            }
            if let Some(root) = self.raw.root {
                self.move_below(root, moved);
            }
            let store = self.raw.store.as_mut();
            store.leaves.forget_inherited();
            store.inners.forget_inherited();
            give_up(mem::take(&mut store.inherited), &self.raw.alloc);
        }
    }

    /// Moves a node and all below it to memory from the arenas.
    ///
    /// # Safety
    /// `node` is a node of the tree, in memory that the tree inherits, and so are all below it.
    unsafe fn move_below(&mut self, node: NodePtr, moved: &mut impl FnMut(NodePtr, NodePtr)) {
        let form = self.form();
        // SAFETY: the node moves to memory for one of its level, and its old memory is used no
        // more. Children up to the length are nodes. The recursion is as deep as the tree is high.
        unsafe {
            let level = form.level(node);
            let (arena, alloc) = self.arena(level);
            let to = arena.take(alloc, form.memory(level == 0));
            arena.forget_node();
            self.move_node(node, to, moved);
            if level > 0 {
                for index in 0..=form.len(to) {
                    self.move_below(form.child(to, index), moved);
                }
            }
        }
    }
}
