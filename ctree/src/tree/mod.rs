//! The tree below the dynamic map and set: a B-tree of wide nodes that are searched by SIMD.
//!
//! Entries lie in leaves and in inner nodes, each in one place, so that keys of any type can be
//! separators without being cloned. A node has room for some thirty entries (see [`shape`]) and may
//! hold any number of them: at least one, or none in the root of an empty tree.
//!
//! An entry is named by its node and slot, a [`Place`]; a gap between two neighbouring entries by
//! its [`Edge`], always at a leaf. Each gap has exactly one edge, so that two walks that approach
//! each other know when they meet. Both are valid until the tree is changed.
//!
//! The parts, lowest first: [`shape`], [`node`], [`arena`], [`navigate`], [`fences`], [`balance`],
//! [`search`], [`share`], [`insert`], [`remove`], [`build`], [`split`], [`join`], [`check`].
//!
//! **What is trusted.** The tree's own structure: nodes, lengths, pointers, and initialised slots.
//! The order of the keys is not: a wrong `Ord`, a wrong [`Head`](crate::Head), a key that changes
//! through a cell lead to wrong answers. User code runs at four points only: comparisons and heads
//! (while the tree is only read), drops (of entries that have left the tree, or when the whole tree
//! goes), and the allocator (before anything is moved, or when the tree is whole).

use alloc::alloc::handle_alloc_error;
use alloc::boxed::Box;
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::{self, NonNull};

use allocator_api2::alloc::{Allocator, Global};

pub(crate) mod arena;
mod balance;
mod build;
mod check;
mod fences;
mod insert;
mod join;
mod navigate;
pub(crate) mod node;
mod ranks;
mod remove;
mod search;
mod search_many;
pub(crate) mod shape;
mod share;
mod split;

pub(crate) use build::Builder;
pub(crate) use navigate::NO_GUESS;
pub(crate) use node::{Form, NodePtr};

use crate::Head;
use crate::simd::Isa;
use arena::Arena;

/// An arena keeps `1 / FREE_SHARE` of its bytes, and a few nodes, free before it returns memory to
/// the allocator.
const FREE_SHARE: usize = 16;
/// Free nodes that an arena of any size keeps, in a tree of more than one level.
const FREE_NODES_KEPT: usize = 1;

/// The place of an entry: a slot of a node, leaf or inner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) node: NodePtr,
    /// Below the node's length.
    pub(crate) slot: usize,
}

/// A gap between two neighbouring entries, before the first, or after the last: the one in `leaf`
/// before `slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
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

    /// Stays at its gap when the node `from` moves to `to`.
    #[inline]
    pub(crate) fn move_with(&mut self, from: NodePtr, to: NodePtr) {
        if self.leaf == from {
            self.leaf = to;
        }
    }
}

/// The root of a tree that has nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Root(pub(crate) NodePtr);

impl Root {
    /// Stays the root when the node `from` moves to `to`.
    pub(crate) fn move_with(&mut self, from: NodePtr, to: NodePtr) {
        if self.0 == from {
            self.0 = to;
        }
    }
}

// SAFETY: these are addresses. Every access through them is `unsafe`, and types that keep them have
// markers for what they borrow or own.
unsafe impl Send for Place {}
// SAFETY: places are addresses, which only `unsafe` code uses.
unsafe impl Sync for Place {}
// SAFETY: edges are addresses, which only `unsafe` code uses.
unsafe impl Send for Edge {}
// SAFETY: edges are addresses, which only `unsafe` code uses.
unsafe impl Sync for Edge {}
// SAFETY: a root is an address, which only `unsafe` code uses.
unsafe impl Send for Root {}
// SAFETY: a root is an address, which only `unsafe` code uses.
unsafe impl Sync for Root {}

/// What a search found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    Entry(Place),
    Gap(Edge),
}

/// What a tree carries beside its entries: chosen when it is made.
pub(crate) struct Options<K, V> {
    /// Whether inner nodes count the entries below them.
    ranked: bool,
    /// The empty store of trees of these types, which knows the heads of a user's type.
    store: &'static Store,
    marker: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for Options<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Options<K, V> {}

impl<K, V> Options<K, V> {
    const EMPTY_STORE: &'static Store = &Store::empty::<K, V>(None);

    /// Neither ranks nor a user's heads.
    pub(crate) const PLAIN: Self = Options {
        ranked: false,
        store: Self::EMPTY_STORE,
        marker: PhantomData,
    };

    pub(crate) const RANKED: Self = Options {
        ranked: true,
        ..Self::PLAIN
    };

    /// Whether trees with these options can exchange all that they have.
    pub(crate) fn same_as(self, other: Self) -> bool {
        self.ranked == other.ranked && self.store.head.is_some() == other.store.head.is_some()
    }
}

impl<K: Head, V> Options<K, V> {
    const EMPTY_HEADED_STORE: &'static Store =
        &Store::empty::<K, V>(Some(ErasedHead::new(K::head)));

    /// With the heads of the key's type.
    pub(crate) const HEADED: Self = Options {
        store: Self::EMPTY_HEADED_STORE,
        ..Self::PLAIN
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
        // SAFETY: both are function pointers, of the same size; the result is turned back before it
        // is called.
        ErasedHead(unsafe { core::mem::transmute::<fn(&K) -> u64, fn(*const ()) -> u64>(head) })
    }

    /// Remembers it.
    ///
    /// # Safety
    /// The function was made for `K`, but perhaps with other lifetimes in it.
    /// ([`Head`](crate::Head) asks implementations not to depend on them.)
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

/// What a tree does not need for a search: the memory of its nodes, and what depends on its types.
///
/// Trees without nodes, and those of a first leaf, share a constant one for their types, without
/// chunks. The first node of full size comes with a store of the tree's own, in the same chunk.
struct Store {
    /// The constant that this was copied from; none in the constant itself.
    origin: Option<&'static Store>,
    drop_entries: unsafe fn(root: NodePtr, flags: Flags),
    first_leaf_layout: fn(flags: Flags) -> Layout,
    /// The user's heads.
    head: Option<ErasedHead>,
    leaves: Arena,
    inners: Arena,
    /// A sealed store in whose chunks, and those of its ancestors, nodes of the tree may lie.
    inherited: Option<NonNull<Store>>,
    /// Trees and stores that inherit from this one, once it is sealed.
    heirs: usize,
}

impl Store {
    /// The store of a tree without nodes.
    const fn empty<K, V>(head: Option<ErasedHead>) -> Store {
        Store {
            origin: None,
            drop_entries: drop_entries::<K, V>,
            first_leaf_layout: first_leaf_layout::<K, V>,
            head,
            leaves: Arena::new(),
            inners: Arena::new(),
            inherited: None,
            heirs: 0,
        }
    }
}

/// What a search needs to know of a tree beside its root.
#[derive(Clone, Copy, Debug)]
struct Flags {
    /// Level of the root.
    height: u8,
    /// What the machine has; found when the first node is made, since a `const` constructor cannot
    /// ask.
    isa: Isa,
    /// Whether inner nodes count.
    ranked: bool,
    user_heads: bool,
    /// Whether the root is a first leaf: allocated by itself, of fewer entries.
    first_leaf: bool,
    /// Whether the tree drops its entries.
    owns_entries: bool,
}

/// A tree, which owns its entries, its nodes, and its allocator.
///
/// Invariants (of the structure, which memory safety rests on):
/// - `raw.root` is a node whose `parent` is `None` and whose level is the height; all nodes under
///   it keep the node invariant of this tree's [`Form`];
/// - no inner node is without entries, but for the time of an operation, and while a [`Builder`]
///   works;
/// - `raw.len` is the number of entries, unless they were forgotten, and the counts are right where
///   there are any;
/// - `raw.store` is a constant, or lies in the first chunk of its own `leaves`, whose memory lives
///   until `RawTree::free_nodes`; it is a constant in a tree without nodes or with a first leaf,
///   and only then;
/// - the root of a tree with `first_leaf` was allocated with [`first_leaf_layout`]; all other nodes
///   are from the store's arenas.
///
/// There is no `Drop` here but in [`RawTree`], which does not mention `K` and `V`: so the drop
/// checker sees an owner of keys and values and nothing more, as it does in std's map, and a map of
/// references may be declared before what they refer to.
pub(crate) struct Tree<K, V, A: Allocator> {
    raw: RawTree<A>,
    /// Owns keys and values, elsewhere: it does not matter whether these may be moved.
    marker: PhantomData<Box<(K, V)>>,
}

/// The part of a tree that does not depend on the types of keys and values.
struct RawTree<A: Allocator> {
    /// The root, or none in a tree that never had an entry.
    root: Option<NodePtr>,
    len: usize,
    store: NonNull<Store>,
    flags: Flags,
    alloc: A,
}

// Four words in a map, and no more in an `Option` of one.
const _: () = {
    type Map = Tree<u64, u64, Global>;
    assert!(size_of::<Map>() <= 32 && size_of::<Option<Map>>() == size_of::<Map>());
};

// SAFETY: the tree owns keys, values and nodes, and is the only one to know of them; so it may move
// to another thread if they and the allocator may.
unsafe impl<K: Send, V: Send, A: Allocator + Send> Send for Tree<K, V, A> {}
// SAFETY: a shared tree gives out shared references to keys and values, and nothing else is changed
// through it.
unsafe impl<K: Sync, V: Sync, A: Allocator + Sync> Sync for Tree<K, V, A> {}
// As std's map: what was borrowed from it could be seen in an odd state only through interior
// mutability.
impl<K: RefUnwindSafe, V: RefUnwindSafe, A: Allocator + UnwindSafe> UnwindSafe for Tree<K, V, A> {}
impl<K: RefUnwindSafe, V: RefUnwindSafe, A: Allocator + RefUnwindSafe> RefUnwindSafe
    for Tree<K, V, A>
{
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// A tree without entries, which allocates nothing.
    pub(crate) const fn new_in(alloc: A, options: Options<K, V>) -> Self {
        Tree {
            raw: RawTree {
                root: None,
                len: 0,
                store: NonNull::from_ref(options.store),
                flags: Flags {
                    height: 0,
                    isa: Isa::PORTABLE,
                    ranked: options.ranked,
                    user_heads: options.store.head.is_some(),
                    first_leaf: false,
                    owns_entries: true,
                },
                alloc,
            },
            marker: PhantomData,
        }
    }

    /// What the tree was made with.
    pub(crate) fn options(&self) -> Options<K, V> {
        Options {
            ranked: self.raw.flags.ranked,
            store: self.raw.origin(),
            marker: PhantomData,
        }
    }

    #[inline(always)]
    fn user_head(&self) -> Option<fn(&K) -> u64> {
        if !self.raw.flags.user_heads {
            return None;
        }
        // SAFETY: the store was made for `K`.
        self.raw
            .store()
            .head
            .map(|head| unsafe { head.typed::<K>() })
    }

    /// How the nodes are laid out.
    #[inline(always)]
    pub(crate) fn form(&self) -> Form<K, V> {
        self.raw.flags.form()
    }

    /// Level of the root.
    #[inline(always)]
    fn height(&self) -> usize {
        usize::from(self.raw.flags.height)
    }

    /// Makes a node of another level the root, or one without a parent.
    fn set_root(&mut self, root: NodePtr, height: usize) {
        self.raw.root = Some(root);
        self.raw.flags.height = u8::try_from(height).expect("a tree has less than 256 levels");
    }

    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.raw.len
    }

    /// Where the nodes come from.
    pub(crate) const fn allocator(&self) -> &A {
        &self.raw.alloc
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        if self.raw.flags.first_leaf {
            return self.form().memory(true).layout.size();
        }
        let Store { leaves, inners, .. } = self.raw.store();
        let own = leaves.bytes() + inners.bytes();
        own + leaves.inherited_bytes() + inners.inherited_bytes()
    }

    pub(crate) fn level_count(&self) -> usize {
        self.raw.root.map_or(0, |_| self.height() + 1)
    }

    /// The arena of a level, in a store of the tree's own.
    ///
    /// # Safety
    /// The store is not a constant.
    unsafe fn arena(&mut self, level: usize) -> (&mut Arena, &A) {
        // SAFETY: the store lies in memory of the tree's, which is borrowed mutably.
        let store = unsafe { self.raw.store.as_mut() };
        let arena = if level == 0 {
            &mut store.leaves
        } else {
            &mut store.inners
        };
        (arena, &self.raw.alloc)
    }

    /// Memory for a node of full size, initialised, without entries.
    ///
    /// Nothing has changed if the allocator panics. (An inner node still lacks its first child.)
    fn new_node(&mut self, level: usize) -> NodePtr {
        let form = self.form().grown();
        if self.raw.store().leaves.bytes() == 0 {
            self.make_store();
        }
        // SAFETY: each arena is used for nodes of one layout, which follows from types and form,
        // and with this tree's allocator. The store is the tree's own, now at least.
        let node = unsafe {
            let (arena, alloc) = self.arena(level);
            arena.take(alloc, form.memory(level == 0))
        };
        // SAFETY: fresh memory for a node of this level.
        unsafe { form.init(node, level) };
        node
    }

    /// Makes a store of the tree's own, with memory for a leaf. Nothing has changed if the
    /// allocator panics.
    #[cold]
    fn make_store(&mut self) {
        let mut leaves = Arena::new();
        let origin = self.raw.origin();
        const { assert!(align_of::<Store>() <= align_of::<usize>()) };
        // SAFETY: the arena will be used with this layout and this allocator; a record is aligned
        // to words, and so is what follows.
        unsafe {
            let memory = self.form().grown().memory(true);
            let store = leaves.add_chunk(&self.raw.alloc, memory, size_of::<Store>());
            let store = store.cast::<Store>();
            store.write(Store {
                origin: Some(origin),
                leaves,
                inners: Arena::new(),
                ..*origin
            });
            self.raw.store = store;
        }
    }

    /// A node for each of some levels, as [`new_node`](Self::new_node) makes them. If the allocator
    /// panics, those made before are given back.
    fn new_nodes<const MAX: usize>(&mut self, levels: Range<usize>) -> [NodePtr; MAX] {
        /// The nodes made so far, which go back when it is dropped.
        struct Made<'a, K, V, A: Allocator, const MAX: usize> {
            tree: &'a mut Tree<K, V, A>,
            nodes: [NodePtr; MAX],
            count: usize,
        }
        impl<K, V, A: Allocator, const MAX: usize> Drop for Made<'_, K, V, A, MAX> {
            fn drop(&mut self) {
                for node in &self.nodes[..self.count] {
                    // SAFETY: a new node that nothing refers to.
                    unsafe { self.tree.free_node(*node) };
                }
            }
        }
        let mut made = Made {
            tree: self,
            nodes: [NodePtr::dangling(); MAX],
            count: 0,
        };
        for level in levels {
            made.nodes[made.count] = made.tree.new_node(level);
            made.count += 1;
        }
        made.count = 0;
        made.nodes
    }

    /// Takes a node of full size out of use.
    ///
    /// # Safety
    /// `node` is a node of this tree, from an arena, that nothing refers to any more, and whose
    /// entries are gone.
    unsafe fn free_node(&mut self, node: NodePtr) {
        let form = self.form();
        // SAFETY: the header is initialised; the node was taken from the arena of its level.
        unsafe {
            let level = form.level(node);
            self.arena(level).0.give_back(node, form.memory(level == 0));
        }
    }

    /// Makes the root of a tree that has none: a first leaf.
    fn make_root(&mut self) -> NodePtr {
        debug_assert!(self.raw.root.is_none(), "a second root");
        let form: Form<K, V> = Form::new(self.raw.flags.ranked, self.raw.flags.user_heads, true);
        let layout = form.memory(true).layout;
        let memory = self.raw.alloc.allocate(layout);
        let root = memory.unwrap_or_else(|_| handle_alloc_error(layout)).cast();
        // SAFETY: fresh memory for a leaf of this form.
        unsafe { form.init(root, 0) };
        self.raw.flags.isa = Isa::detect();
        self.raw.flags.first_leaf = true;
        self.set_root(root, 0);
        root
    }

    /// Moves the entries of a first leaf to a leaf of full size, and `edge` with its gap. Nothing
    /// has changed if the allocator panics.
    ///
    /// # Safety
    /// The root is a first leaf.
    #[cold]
    unsafe fn outgrow_first_leaf(&mut self, edge: &mut Edge) {
        let (form, grown) = (self.form(), self.form().grown());
        let root = self.new_node(0);
        let old = self.raw.root.replace(root);
        self.raw.flags.first_leaf = false;
        edge.leaf = root;
        let Some(old) = old else {
            return;
        };
        // SAFETY: both are leaves, of their forms, and a leaf of full size has room for more. The
        // old one was allocated with this layout, and nothing refers to it any more.
        unsafe {
            let len = form.len(old);
            form.copy_entries(old, 0, grown, root, 0, len);
            grown.set_len(root, len);
            self.raw.alloc.deallocate(old, form.memory(true).layout);
        }
    }

    /// Returns chunks to the allocator if many nodes are free: moves nodes from the end of an arena
    /// to free places before it, and calls `moved` with the old and the new place of each. Computes
    /// in O(1) for each node that was freed, amortised.
    ///
    /// A part of an arena stays free, so that a tree that shrinks and grows in turns does not move
    /// nodes.
    ///
    /// If the allocator panics while it takes memory back, the tree is whole.
    ///
    /// # Safety
    /// All nodes in use are nodes of the tree, which is whole, but that inner nodes may lack
    /// entries.
    pub(crate) unsafe fn trim(&mut self, mut moved: impl FnMut(NodePtr, NodePtr)) {
        if self.raw.store().leaves.bytes() == 0 {
            return;
        }
        let form = self.form();
        for level in 0..2 {
            let memory = form.memory(level == 0);
            let node_bytes = memory.layout.size();
            loop {
                let is_low = self.height() == 0;
                // SAFETY: the tree has chunks, and so a store of its own. There is a free node when
                // the arena is asked for one, and its last place is given up when the node there
                // has been moved. A root in use keeps the arena of the leaves, and with it the
                // store, from losing its first chunk; where it may lie in inherited memory, that
                // chunk stays anyway.
                unsafe {
                    let (arena, alloc) = self.arena(level);
                    let kept_bytes = if is_low {
                        0
                    } else {
                        arena.bytes() / FREE_SHARE + FREE_NODES_KEPT * node_bytes
                    };
                    if arena.free_count() * node_bytes <= kept_bytes || !arena.is_cut() {
                        break;
                    }
                    let Some((from, to)) = arena.vacate_last(memory) else {
                        arena.drop_last(alloc, memory);
                        continue;
                    };
                    self.move_node(from, to, &mut moved);
                    let (arena, alloc) = self.arena(level);
                    arena.drop_last(alloc, memory);
                }
            }
        }
        if self.inherits_too_much() {
            // SAFETY: passed on; the tree has chunks.
            unsafe { self.leave_inherited(&mut moved) };
        }
    }

    /// Moves a node to other memory, and tells its neighbours and `moved`.
    ///
    /// # Safety
    /// `from` is a node of the tree, but that it may lack entries; `to` is memory for one of its
    /// level.
    unsafe fn move_node(
        &mut self,
        from: NodePtr,
        to: NodePtr,
        moved: &mut impl FnMut(NodePtr, NodePtr),
    ) {
        let form = self.form();
        // SAFETY: a node is one of its parent's children, and children up to the length are nodes.
        unsafe {
            let level = form.level(from);
            let bytes = form.memory(level == 0).layout.size();
            ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), bytes);
            match form.parent(to) {
                Some(parent) => form.set_child(parent, form.index_of(parent, from), to),
                None => self.raw.root = Some(to),
            }
            if level > 0 {
                for index in 0..=form.len(to) {
                    form.set_parent(form.child(to, index), Some(to));
                }
            }
        }
        moved(from, to);
    }

    /// Drops all entries and frees all nodes.
    pub(crate) fn clear(&mut self) {
        self.raw.clear();
    }

    /// For owning iterators: from now on the tree drops no entries. The length becomes 0.
    ///
    /// Nothing but [`Form`]'s functions, [`trim`](Self::trim) and [`free_node`](Self::free_node)
    /// may be used on such a tree.
    pub(crate) fn forget_entries(&mut self) {
        self.raw.flags.owns_entries = false;
        self.raw.len = 0;
    }
}

impl Flags {
    /// How nodes are laid out.
    #[inline(always)]
    fn form<K, V>(self) -> Form<K, V> {
        Form::new(self.ranked, self.user_heads, self.first_leaf)
    }
}

fn first_leaf_layout<K, V>(flags: Flags) -> Layout {
    flags.form::<K, V>().memory(true).layout
}

/// Drops all entries below a root.
///
/// When a destructor panics, the others are still called; when a second one does, the program
/// aborts, as it does in std.
///
/// # Safety
/// `root` is the root of a whole tree with these flags; its entries are not used any more.
unsafe fn drop_entries<K, V>(root: NodePtr, flags: Flags) {
    if !core::mem::needs_drop::<K>() && !core::mem::needs_drop::<V>() {
        return;
    }
    let form = flags.form::<K, V>();
    /// Drops what is left when a destructor panics.
    struct Rest<K, V> {
        form: Form<K, V>,
        edge: Edge,
        /// The guess of [`Form::next_near`].
        index: usize,
        /// The leaf whose keys' memory was prefetched.
        requested: Option<NodePtr>,
    }
    impl<K, V> Rest<K, V> {
        fn drop_all(&mut self) {
            loop {
                // SAFETY: the edge belongs to a tree with nodes, and each entry behind it is
                // dropped once, as the edge has moved on before. The value is dropped even if the
                // key's destructor panics.
                let _entry = unsafe {
                    if self.requested != Some(self.edge.leaf) {
                        self.requested = Some(self.edge.leaf);
                        self.form.request_bytes(self.edge.leaf, self.edge.slot);
                    }
                    let place = self.form.next_near(&mut self.edge, &mut self.index);
                    let Some(Place { node, slot }) = place else {
                        return;
                    };
                    self.form.read_entry(node, slot)
                };
            }
        }
    }
    impl<K, V> Drop for Rest<K, V> {
        fn drop(&mut self) {
            self.drop_all();
        }
    }
    // SAFETY: the caller promises that `root` is the root of a whole tree with these flags.
    let edge = unsafe { form.first_edge_below(root) };
    let mut rest = Rest {
        form,
        edge,
        index: NO_GUESS,
        requested: None,
    };
    rest.drop_all();
}

impl<A: Allocator> RawTree<A> {
    #[inline(always)]
    fn store(&self) -> &Store {
        // SAFETY: a constant, or in memory of the tree's, which is borrowed.
        unsafe { self.store.as_ref() }
    }

    /// The constant that the store is or was copied from.
    fn origin(&self) -> &'static Store {
        let store = self.store;
        // SAFETY: a constant, or in memory of the tree's, which is borrowed. Only a constant has no
        // origin, so that what is returned lives for ever.
        unsafe { store.as_ref().origin.unwrap_or(store.as_ref()) }
    }

    /// Drops all entries and frees all nodes.
    fn clear(&mut self) {
        let root = self.root.take();
        self.len = 0;
        let flags = self.flags;
        self.flags.height = 0;
        self.flags.first_leaf = false;
        /// Frees the nodes also when a destructor of an entry panics.
        struct FreeNodes<'a, A: Allocator> {
            raw: &'a mut RawTree<A>,
            first_leaf: Option<(NodePtr, Layout)>,
        }
        impl<A: Allocator> Drop for FreeNodes<'_, A> {
            fn drop(&mut self) {
                // SAFETY: there is no root any more, and its entries are dropped or leaked.
                unsafe { self.raw.free_nodes(self.first_leaf) };
            }
        }
        let first_leaf = root
            .filter(|_| flags.first_leaf)
            .map(|root| (root, (self.store().first_leaf_layout)(flags)));
        let nodes = FreeNodes {
            raw: self,
            first_leaf,
        };
        if let Some(root) = root
            && flags.owns_entries
        {
            // SAFETY: the root of a whole tree with these flags, which is not used again.
            unsafe { (nodes.raw.store().drop_entries)(root, flags) };
        }
    }

    /// Frees all nodes, and the store if it is not a constant.
    ///
    /// # Safety
    /// No node is in use. A first leaf is given with what it was allocated with.
    unsafe fn free_nodes(&mut self, first_leaf: Option<(NodePtr, Layout)>) {
        let store = self.store;
        self.store = NonNull::from_ref(self.origin());
        // Whatever `deallocate` does, nothing is freed twice: the tree knows of no memory any more.
        // SAFETY: by the contract. Both arenas were given this allocator only; they are copied out
        // of the memory that goes with them, and those of a constant have no chunks.
        unsafe {
            if let Some((root, layout)) = first_leaf {
                self.alloc.deallocate(root, layout);
            }
            let leaves = ptr::from_ref(&store.as_ref().leaves).read();
            let inners = ptr::from_ref(&store.as_ref().inners).read();
            let inherited = store.as_ref().inherited;
            inners.free_all(&self.alloc);
            leaves.free_all(&self.alloc);
            share::give_up(inherited, &self.alloc);
        }
    }
}

impl<A: Allocator> Drop for RawTree<A> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<K, V, A: Allocator> fmt::Debug for Tree<K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("len", &self.raw.len)
            .field("height", &self.raw.flags.height)
            .finish_non_exhaustive()
    }
}
