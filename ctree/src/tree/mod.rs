//! The tree below the dynamic map and set: a B-tree of wide nodes that are searched by SIMD.
//!
//! **A B-tree, not a B+-tree.** Entries lie in leaves and in inner nodes, each in one place, so that keys of any type can be separators without being
//! cloned. A node has room for some thirty entries (see [`shape`]) and may hold any number of them: at least one, or none in the root of an empty tree.
//!
//! **Places and edges.** An entry is named by its node and slot, a [`Place`]; a gap between two neighbouring entries by its [`Edge`], always at a
//! leaf. Each gap has exactly one edge, so that two walks that approach each other know when they meet. Both are valid until the tree is changed.
//!
//! **What the parts do**, lowest first; a part knows of those before it only:
//! - [`shape`]: offsets in a node, from the types;
//! - [`node`]: memory of nodes, moving entries and children; not that keys are sorted;
//! - [`arena`]: where nodes come from;
//! - [`navigate`]: from an edge to the entry before or after it;
//! - [`fences`]: which leading bytes the heads of a node of byte strings may leave out;
//! - [`balance`]: entries between neighbouring nodes;
//! - [`search`], [`insert`], [`remove`], [`build`], [`check`]: what the names say.
//!
//! **What is trusted.** The tree's own structure: nodes, lengths, pointers, and initialised slots. The order of the keys is not: a wrong `Ord`, a wrong
//! [`Head`](crate::Head), a key that changes through a cell lead to wrong answers. User code runs at four points only: comparisons and heads (while the
//! tree is only read), drops (of entries that have left the tree, or when the whole tree goes), and the allocator (before anything is moved).

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use allocator_api2::alloc::Allocator;

pub(crate) mod arena;
mod balance;
mod build;
mod check;
mod fences;
mod insert;
mod navigate;
pub(crate) mod node;
mod ranks;
mod remove;
mod search;
mod search_many;
pub(crate) mod shape;

pub(crate) use build::Builder;
pub(crate) use navigate::NO_GUESS;
pub(crate) use node::{Form, NodePtr};

use crate::simd::Isa;
use arena::Arena;

#[cfg(test)]
mod tests;

/// The place of an entry: a slot of a node, leaf or inner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The node.
    pub(crate) node: NodePtr,
    /// Below the node's length.
    pub(crate) slot: usize,
}

/// A gap between two neighbouring entries, before the first, or after the last: the one in `leaf` before `slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The leaf.
    pub(crate) leaf: NodePtr,
    /// At most the leaf's length.
    pub(crate) slot: usize,
}

impl Edge {
    /// The edge of a tree that has no nodes.
    pub(crate) const NOWHERE: Edge = Edge {
        leaf: NodePtr::dangling(),
        slot: 0,
    };
}

/// The root of a tree that has nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Root(NodePtr);

// SAFETY: these are addresses, which may be known anywhere; what is done with them is `unsafe`, and whoever keeps them says by a marker on whose behalf.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}
// SAFETY: as above.
unsafe impl Send for Edge {}
// SAFETY: as above.
unsafe impl Sync for Edge {}
// SAFETY: as above.
unsafe impl Send for Root {}
// SAFETY: as above.
unsafe impl Sync for Root {}

/// What a search found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// The entry.
    Entry(Place),
    /// The gap where it would be.
    Gap(Edge),
}

/// What a tree carries beside its entries: chosen when it is made.
pub(crate) struct Options<K> {
    /// Whether inner nodes count the entries below them.
    pub(crate) ranked: bool,
    /// The heads of a user's type.
    pub(crate) head: Option<fn(&K) -> u64>,
}

impl<K> Clone for Options<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Options<K> {}

impl<K> fmt::Debug for Options<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("ranked", &self.ranked)
            .field("headed", &self.head.is_some())
            .finish()
    }
}

impl<K> Options<K> {
    /// Neither.
    pub(crate) const PLAIN: Options<K> = Options {
        ranked: false,
        head: None,
    };
}

/// A function from a key to its head, of any key type: `fn(&K) -> u64`.
///
/// A function pointer that mentions `K` would make the tree invariant in it.
#[derive(Clone, Copy, Debug)]
struct ErasedHead(fn(*const ()) -> u64);

impl ErasedHead {
    /// Forgets the type.
    #[expect(
        clippy::disallowed_methods,
        reason = "the only way from one function pointer to another"
    )]
    const fn new<K>(head: fn(&K) -> u64) -> Self {
        // SAFETY: both are function pointers, of the same size; the result is turned back before it is called.
        ErasedHead(unsafe { core::mem::transmute::<fn(&K) -> u64, fn(*const ()) -> u64>(head) })
    }

    /// Remembers it.
    ///
    /// # Safety
    /// The function was made for `K`, but perhaps with other lifetimes in it. ([`Head`](crate::Head) asks implementations not to depend on them.)
    #[inline(always)]
    #[expect(
        clippy::disallowed_methods,
        reason = "the only way from one function pointer to another"
    )]
    const unsafe fn typed<K>(self) -> fn(&K) -> u64 {
        // SAFETY: the type that it had, by the caller's promise.
        unsafe { core::mem::transmute::<fn(*const ()) -> u64, fn(&K) -> u64>(self.0) }
    }
}

/// A tree, which owns its entries, its nodes, and its allocator.
///
/// Invariants (of the structure, which memory safety rests on):
/// - `raw.root` is a node whose `parent` is `None` and whose level is `raw.height`; all nodes under it keep the node invariant of this tree's [`Form`];
/// - no inner node is without entries, but for the time of an operation, and while a [`Builder`] works;
/// - `raw.len` is the number of entries, unless they were forgotten, and the counts are right where there are any.
///
/// There is no `Drop` here but in [`RawTree`], which does not mention `K` and `V`: so the drop checker sees an owner of keys and values and nothing more, as it
/// does in std's map, and a map of references may be declared before what they refer to.
pub(crate) struct Tree<K, V, A: Allocator> {
    raw: RawTree<A>,
    /// Owns keys and values, elsewhere: it does not matter whether these may be moved.
    marker: PhantomData<Box<(K, V)>>,
}

/// The part of a tree that does not depend on the types of keys and values.
struct RawTree<A: Allocator> {
    /// The root, or none in a tree that never had an entry.
    root: Option<NodePtr>,
    /// Number of entries.
    len: usize,
    /// Level of the root.
    height: usize,
    /// What the machine has; found when the first node is made, since a `const` constructor cannot ask.
    isa: Isa,
    /// Whether inner nodes count.
    ranked: bool,
    /// The user's heads.
    head: Option<ErasedHead>,
    leaves: Arena,
    inners: Arena,
    /// Drops all entries of a tree: [`Tree::drop_entries`] for the types that this is a part of.
    drop_entries: unsafe fn(root: NodePtr, ranked: bool, user_heads: bool),
    alloc: A,
}

// SAFETY: the tree owns keys, values and nodes, and is the only one to know of them; so it may move to another thread if they and the allocator may.
unsafe impl<K: Send, V: Send, A: Allocator + Send> Send for Tree<K, V, A> {}
// SAFETY: a shared tree gives out shared references to keys and values, and nothing else is changed through it.
unsafe impl<K: Sync, V: Sync, A: Allocator + Sync> Sync for Tree<K, V, A> {}
// As std's map: what was borrowed from it could be seen in an odd state only through interior mutability.
impl<K: RefUnwindSafe, V: RefUnwindSafe, A: Allocator + UnwindSafe> UnwindSafe for Tree<K, V, A> {}
impl<K: RefUnwindSafe, V: RefUnwindSafe, A: Allocator + RefUnwindSafe> RefUnwindSafe
    for Tree<K, V, A>
{
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// A tree without entries, which allocates nothing.
    pub(crate) const fn new_in(alloc: A, options: Options<K>) -> Self {
        Tree {
            raw: RawTree {
                root: None,
                len: 0,
                height: 0,
                isa: Isa::PORTABLE,
                ranked: options.ranked,
                head: match options.head {
                    Some(head) => Some(ErasedHead::new(head)),
                    None => None,
                },
                leaves: Arena::new(),
                inners: Arena::new(),
                drop_entries: Self::drop_entries,
                alloc,
            },
            marker: PhantomData,
        }
    }

    /// What the tree was made with.
    pub(crate) fn options(&self) -> Options<K> {
        Options {
            ranked: self.raw.ranked,
            head: self.user_head(),
        }
    }

    /// The function of the user's heads.
    #[inline(always)]
    fn user_head(&self) -> Option<fn(&K) -> u64> {
        // SAFETY: the tree was made for `K`.
        self.raw.head.map(|head| unsafe { head.typed::<K>() })
    }

    /// How the nodes are laid out.
    #[inline(always)]
    pub(crate) fn form(&self) -> Form<K, V> {
        Form::new(self.raw.ranked, self.raw.head.is_some())
    }

    /// Number of entries.
    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.raw.len
    }

    /// Where the nodes come from.
    pub(crate) const fn allocator(&self) -> &A {
        &self.raw.alloc
    }

    /// Bytes allocated.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.raw.leaves.bytes() + self.raw.inners.bytes()
    }

    /// Levels of nodes.
    pub(crate) fn level_count(&self) -> usize {
        self.raw.root.map_or(0, |_| self.raw.height + 1)
    }

    /// Memory for a node, initialised, without entries.
    ///
    /// Nothing has changed if the allocator panics. (An inner node still lacks its first child.)
    fn new_node(&mut self, level: usize) -> NodePtr {
        let form = self.form();
        let layout = form.layout(level == 0);
        let arena = if level == 0 {
            &mut self.raw.leaves
        } else {
            &mut self.raw.inners
        };
        // SAFETY: each arena is used for nodes of one layout, which follows from types and form, and with this tree's allocator.
        let node = unsafe { arena.take(&self.raw.alloc, layout) };
        // SAFETY: fresh memory for a node of this level.
        unsafe { form.init(node, level) };
        node
    }

    /// A node for each of the lowest `count` levels, as [`new_node`](Self::new_node) makes them. If the allocator panics, those made before are given back.
    fn new_nodes<const MAX: usize>(&mut self, count: usize) -> [NodePtr; MAX] {
        /// The nodes made so far, which go back when it is dropped.
        struct Made<'a, K, V, A: Allocator, const MAX: usize> {
            tree: &'a mut Tree<K, V, A>,
            nodes: [NodePtr; MAX],
            count: usize,
        }
        impl<K, V, A: Allocator, const MAX: usize> Drop for Made<'_, K, V, A, MAX> {
            fn drop(&mut self) {
                for node in &self.nodes[..self.count] {
                    // SAFETY: a new node that nobody else knows of.
                    unsafe { self.tree.free_node(*node) };
                }
            }
        }
        let mut made = Made {
            tree: self,
            nodes: [NodePtr::dangling(); MAX],
            count: 0,
        };
        while made.count < count {
            made.nodes[made.count] = made.tree.new_node(made.count);
            made.count += 1;
        }
        made.count = 0;
        made.nodes
    }

    /// Takes a node out of use.
    ///
    /// # Safety
    /// `node` is a node of this tree that nothing refers to any more, and whose entries are gone.
    unsafe fn free_node(&mut self, node: NodePtr) {
        // SAFETY: the header is initialised.
        let arena = if unsafe { self.form().level(node) } == 0 {
            &mut self.raw.leaves
        } else {
            &mut self.raw.inners
        };
        // SAFETY: it was taken from the arena of its level.
        unsafe { arena.give_back(node) };
    }

    /// Makes the root of a tree that has none.
    fn make_root(&mut self) -> NodePtr {
        debug_assert!(self.raw.root.is_none(), "a second root");
        self.raw.isa = Isa::detect();
        let root = self.new_node(0);
        self.raw.root = Some(root);
        self.raw.height = 0;
        root
    }

    /// Drops all entries and frees all nodes.
    pub(crate) fn clear(&mut self) {
        let raw = &mut self.raw;
        let root = raw.root.take();
        raw.len = 0;
        raw.height = 0;
        /// Frees the nodes also when a destructor of an entry panics.
        struct FreeNodes<'a, A: Allocator>(&'a mut RawTree<A>);
        impl<A: Allocator> Drop for FreeNodes<'_, A> {
            fn drop(&mut self) {
                // SAFETY: there is no root any more, and its entries are dropped or leaked.
                unsafe { self.0.free_nodes() };
            }
        }
        let (drop_entries, ranked, user_heads) = (raw.drop_entries, raw.ranked, raw.head.is_some());
        let _free_nodes = FreeNodes(raw);
        if let Some(root) = root {
            // SAFETY: the root of a whole tree of this form, which is not used again.
            unsafe { drop_entries(root, ranked, user_heads) };
        }
    }

    /// For owning iterators: from now on the tree drops no entries, and its nodes stay readable until it is dropped. The length becomes 0.
    ///
    /// Nothing but [`Form`]'s functions may be used on such a tree.
    pub(crate) fn forget_entries(&mut self) {
        self.raw.drop_entries = |_, _, _| ();
        self.raw.len = 0;
    }

    /// Drops all entries below a root.
    ///
    /// When a destructor panics, the others are still called; when a second one does, the program aborts, as it does in std.
    ///
    /// # Safety
    /// `root` is the root of a whole tree of the form that follows from the flags; its entries are not used any more.
    unsafe fn drop_entries(root: NodePtr, ranked: bool, user_heads: bool) {
        if !core::mem::needs_drop::<K>() && !core::mem::needs_drop::<V>() {
            return;
        }
        let form = Form::<K, V>::new(ranked, user_heads);
        /// Drops what is left when a destructor panics.
        struct Rest<K, V> {
            form: Form<K, V>,
            edge: Edge,
        }
        impl<K, V> Rest<K, V> {
            fn drop_all(&mut self) {
                // SAFETY: the edge belongs to a tree with nodes, and each entry behind it is dropped once, as the edge has moved on before.
                while let Some(place) = unsafe { self.form.next(&mut self.edge) } {
                    // SAFETY: as above; the value is dropped even if the key's destructor panics.
                    let _entry = unsafe { self.form.read_entry(place.node, place.slot) };
                }
            }
        }
        impl<K, V> Drop for Rest<K, V> {
            fn drop(&mut self) {
                self.drop_all();
            }
        }
        // SAFETY: the caller's promise.
        let edge = unsafe { form.first_edge_below(root) };
        Rest { form, edge }.drop_all();
    }
}

impl<A: Allocator> RawTree<A> {
    /// Frees all nodes.
    ///
    /// # Safety
    /// No node is in use.
    unsafe fn free_nodes(&mut self) {
        // SAFETY: both arenas were given this allocator only.
        unsafe {
            self.leaves.free_all(&self.alloc);
            self.inners.free_all(&self.alloc);
        }
    }
}

impl<A: Allocator> Drop for RawTree<A> {
    fn drop(&mut self) {
        /// Frees the nodes also when a destructor of an entry panics.
        struct FreeNodes<'a, A: Allocator>(&'a mut RawTree<A>);
        impl<A: Allocator> Drop for FreeNodes<'_, A> {
            fn drop(&mut self) {
                // SAFETY: the tree is gone.
                unsafe { self.0.free_nodes() };
            }
        }
        let guard = FreeNodes(self);
        if let Some(root) = guard.0.root.take() {
            let raw = &*guard.0;
            // SAFETY: the root of a whole tree.
            unsafe { (raw.drop_entries)(root, raw.ranked, raw.head.is_some()) };
        }
    }
}

impl<K, V, A: Allocator> fmt::Debug for Tree<K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("len", &self.raw.len)
            .field("height", &self.raw.height)
            .finish_non_exhaustive()
    }
}
