//! The entry for structures of raw pointers, which ownership proves nothing about.
//!
//! The caller promises what the borrow checker proves for [`Morph::run`]. A node that is reached
//! twice is still an error.

mod collector;
mod seen;

use crate::collect::{Collected, Nodes, Outside};
use crate::error::MorphError;
use crate::link::{CcRegion, Global, Home};
use crate::morph::Morph;
use crate::prefetch;
use crate::report::Report;
use crate::size::node_extent;
use crate::visit::{Addresses, ErasedLink, Found, Shown};
use ccmodel::NO_NODE;
use collector::RawCollector;
use seen::Seen;
use std::alloc::Layout;
use std::time::{Duration, Instant};

/// What a traversal of raw pointers tells of: the places of links and of pointers back.
#[derive(Debug)]
pub struct RawVisit<'v, T> {
    collector: &'v mut RawCollector<Seen>,
    node: std::marker::PhantomData<*mut T>,
}

impl<T> RawVisit<'_, T> {
    /// The place of a pointer that owns a node. Null pointers are skipped.
    ///
    /// # Safety
    ///
    /// The conditions on links of [`Morph::run_raw`].
    pub unsafe fn link(&mut self, place: *mut *mut T) {
        // SAFETY: readable (the caller's promise).
        let node = unsafe { place.read() };
        if !node.is_null() {
            let layout = Layout::new::<T>();
            self.collector.push(place.cast(), node.cast(), layout);
        }
    }

    /// The place of a pointer that owns nothing, and follows the node that it points to, if it
    /// does.
    ///
    /// # Safety
    ///
    /// The conditions on pointers of [`Morph::run_raw`].
    pub unsafe fn pointer(&mut self, place: *mut *mut T) {
        // SAFETY: readable (the caller's promise).
        let held = unsafe { place.read() };
        let layout = Layout::new::<T>();
        (self.collector.collector).push_pointer(place.cast(), held.cast(), layout);
    }
}

impl Morph<'_> {
    /// Moves the nodes of a structure of raw pointers: all that `roots` point to, and all that
    /// `traverse` shows from there.
    ///
    /// `traverse` is called once for each node, parents before their children, and shows the places
    /// of its links and pointers, which it may not change. For pointers of type `NonNull<T>` or
    /// `Option<NonNull<T>>`, cast their places.
    ///
    /// Costs what [`run`](Morph::run) does, and for each node a lookup in a table of addresses,
    /// which takes a few bits a node where nodes lie close together. Pointers other than those to
    /// the parent take a hash table of all nodes, and a lookup each: expected O(1), and a cache
    /// miss or two.
    ///
    /// # Safety
    ///
    /// From the call until it returns:
    ///
    /// - Each pointer in `roots` and in the place of each link shown is null or points to an
    ///   initialised node that the global allocator allocated for `Layout::new::<T>()`, as
    ///   `Box::into_raw` gives.
    /// - `T` may be moved bitwise: nothing that is used again points into a node, except the roots,
    ///   links and pointers shown.
    /// - Each place shown is aligned, valid for reads and writes, and shown once. It lies within a
    ///   node or in memory that stays where it is.
    /// - Nodes and places are accessed by `traverse` alone, only while it runs, and it keeps no
    ///   references to them.
    /// - No node of size zero is shown.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Morph::run) but [`MorphError::TwoHeaps`], and [`MorphError::SharedNode`]
    /// when a node is reached twice. The structure is then as it was.
    ///
    /// # Panics
    ///
    /// When `traverse` does. Nothing has moved then.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[global_allocator]
    /// # static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
    /// use ccmorph::Morph;
    /// use std::ptr::null_mut;
    ///
    /// struct Node { key: u32, next: *mut Node, previous: *mut Node }
    ///
    /// let mut head: *mut Node = null_mut();
    /// for key in 0..100 {
    ///     let node = Box::into_raw(Box::new(Node { key, next: head, previous: null_mut() }));
    ///     if !head.is_null() {
    ///         // SAFETY: a live node of this list.
    ///         unsafe { (*head).previous = node };
    ///     }
    ///     head = node;
    /// }
    ///
    /// // SAFETY: the nodes come from `Box`, and all pointers to them are shown.
    /// let report = unsafe {
    ///     Morph::new().run_raw(std::slice::from_mut(&mut head), |node, visit| {
    ///         visit.link(&raw mut (*node).next);
    ///         visit.pointer(&raw mut (*node).previous);
    ///     })
    /// }?;
    /// assert_eq!(report.nodes, 100);
    ///
    /// // SAFETY: the head and the node after it are live.
    /// unsafe {
    ///     let second = (*head).next;
    ///     assert_eq!(((*second).key, (*second).previous), (98, head));
    /// }
    /// # while !head.is_null() {
    /// #     // SAFETY: each node is freed once.
    /// #     head = unsafe { Box::from_raw(head) }.next;
    /// # }
    /// # Ok::<(), ccmorph::MorphError>(())
    /// ```
    pub unsafe fn run_raw<T, F>(
        &self,
        roots: &mut [*mut T],
        mut traverse: F,
    ) -> Result<Report, MorphError>
    where
        F: FnMut(*mut T, &mut RawVisit<'_, T>),
    {
        self.settings().check()?;
        let layout = Layout::new::<T>();
        node_extent(layout)?;
        let begin = Instant::now();
        let mut all = RawCollector::new(Seen::new(layout.size()));
        let mut visit = RawVisit {
            collector: &mut all,
            node: std::marker::PhantomData,
        };
        for root in roots {
            // SAFETY: the place is a reference's; the pointer is a link's by the caller's promise.
            unsafe { visit.link(root) };
        }
        let mut number = 0;
        while let Some(&Shown { node, .. }) = all.collector.lists().shown().get(number as usize) {
            let later = number as usize + prefetch::AHEAD;
            if let Some(later) = all.collector.lists().shown().get(later) {
                prefetch::object(later.node, layout.size());
            }
            all.collector.visit(number, node);
            let mut visit = RawVisit {
                collector: &mut all,
                node: std::marker::PhantomData,
            };
            traverse(node.cast(), &mut visit);
            all.collector.check()?;
            number += 1;
        }
        let found = all.finish(layout)?;
        // SAFETY: links, nodes and pointers are what the caller promises; `push` found the nodes'
        // addresses different; a link is a raw pointer. Nodes show their links and pointers in the
        // order of their numbers.
        let (nodes, parents) = unsafe { nodes(Global, layout, found, true) };
        let collected = Collected {
            nodes,
            parents,
            weights: Vec::new(),
        };
        self.run_collected(collected, Vec::new(), begin.elapsed(), Home::reserve)
    }

    /// Moves the nodes of a [`RawStructure`], which must be complete.
    ///
    /// # Safety
    ///
    /// Until this returns, the structure is what its methods ask for, and no other code accesses
    /// its nodes and places.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Morph::run) but [`MorphError::TwoHeaps`], and those of
    /// [`RawStructure::check`]. The structure is then as it was.
    pub unsafe fn run_structure(&self, structure: RawStructure) -> Result<Report, MorphError> {
        self.settings().check()?;
        let RawStructure { layout, all, .. } = structure;
        all.collector.check()?;
        node_extent(layout)?;
        let found = all.finish(layout)?;
        // SAFETY: as the methods of `RawStructure` ask for; `push` found the nodes' addresses
        // different.
        let (nodes, parents) = unsafe { nodes(Unsized, layout, found, false) };
        let collected = Collected {
            nodes,
            parents,
            weights: Vec::new(),
        };
        self.run_collected(collected, Vec::new(), Duration::ZERO, Home::reserve)
    }
}

/// What was found, as nodes with raw pointers for links, and their parents. Nodes may be in level
/// order or not.
///
/// # Safety
///
/// What was shown keeps the invariants of [`Nodes`] for `'a`.
unsafe fn nodes<'a, H: Home>(
    home: H,
    layout: Layout,
    found: Found<'static>,
    are_in_level_order: bool,
) -> (Nodes<'a, H>, Vec<u32>) {
    let outside = match are_in_level_order {
        true => Outside::Numbers(found.outside),
        false => Outside::All,
    };
    let (links, pointers) = ((found.shown, outside), found.pointers);
    // SAFETY: the caller's promise; the links are raw pointers.
    let nodes = unsafe { Nodes::from_parts(home, layout, ErasedLink::raw(), links, pointers) };
    (nodes, found.parents)
}

/// A structure whose nodes are known by address and size alone, as in C: objects of
/// [`CcMalloc`](ccmalloc::CcMalloc) that [`ccmalloc::raw::deallocate`] frees.
///
/// # Examples
///
/// ```
/// use ccmorph::{Morph, RawStructure};
/// use std::alloc::Layout;
///
/// // Nodes that hold a pointer to the next one.
/// let layout = Layout::new::<*mut u8>();
/// let node = || ccmalloc::raw::allocate(layout.size(), layout.align(), None);
/// let mut head = node();
/// let second = node();
/// // SAFETY: fresh objects of the size of a pointer.
/// unsafe {
///     head.cast::<*mut u8>().write(second);
///     second.cast::<*mut u8>().write(std::ptr::null_mut());
/// }
///
/// let mut list = RawStructure::new(layout);
/// // SAFETY: live objects, and the places of the pointers that own them.
/// unsafe {
///     let number = list.node(head, None, (&raw mut head).cast());
///     list.node(second, number, head.cast());
///     Morph::new().run_structure(list)?;
/// }
/// // SAFETY: the objects, where they lie now; each is freed once.
/// unsafe {
///     let second = head.cast::<*mut u8>().read();
///     assert!(second.cast::<*mut u8>().read().is_null());
///     ccmalloc::raw::deallocate(second);
///     ccmalloc::raw::deallocate(head);
/// }
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
#[derive(Debug)]
pub struct RawStructure {
    layout: Layout,
    all: RawCollector<Addresses>,
    /// By number.
    nodes: Vec<*mut u8>,
}

impl RawStructure {
    /// Of nodes of this size and alignment.
    pub fn new(layout: Layout) -> RawStructure {
        RawStructure {
            layout,
            all: RawCollector::new(Addresses::default()),
            nodes: Vec::new(),
        }
    }

    /// Adds a node and returns its number; numbers ascend by one. `None` for what
    /// [`check`](RawStructure::check) returns as its error.
    ///
    /// # Safety
    ///
    /// From the begin of the morph to its end, for the last [layout](RawStructure::set_layout) and
    /// [link](RawStructure::set_link) set:
    ///
    /// - `node` is a live object of `CcMalloc` of at least the structure's size, initialised, and
    ///   may be moved bitwise to any multiple of the structure's alignment: that is the only
    ///   alignment that it keeps.
    /// - `link` is the place of the pointer that owns it, aligned, valid for reads and writes,
    ///   added once; it lies in a node or in memory that stays.
    /// - `parent` is a number that this structure gave.
    ///
    /// # Panics
    ///
    /// When no node has the number `parent`.
    pub unsafe fn node(
        &mut self,
        node: *mut u8,
        parent: Option<u32>,
        link: *mut *mut u8,
    ) -> Option<u32> {
        let number = self.len();
        let parent = parent.unwrap_or(NO_NODE);
        assert!(
            parent == NO_NODE || (parent as usize) < number,
            "no node has the number {parent}"
        );
        if self.nodes.try_reserve(1).is_err() {
            self.all.fail_of_memory();
            return None;
        }
        let owner = self.nodes.get(parent as usize);
        (self.all.collector).visit(
            parent,
            owner.map_or(std::ptr::null(), |owner| owner.cast_const()),
        );
        self.all.push(link.cast(), node, self.layout);
        if self.all.collector.lists().len() == number {
            return None;
        }
        self.nodes.push(node);
        u32::try_from(number).ok()
    }

    /// Changes the place of the pointer that owns a node, where it is known only after the node.
    ///
    /// # Safety
    ///
    /// `link` is as [`node`](RawStructure::node) asks for.
    ///
    /// # Panics
    ///
    /// When no node has this number.
    pub unsafe fn set_link(&mut self, number: u32, link: *mut *mut u8) {
        self.all.collector.lists_mut().set_link(number, link.cast());
    }

    /// Changes the size and the alignment of the nodes, where they are known only after the nodes.
    ///
    /// # Safety
    ///
    /// The layout is as [`node`](RawStructure::node) asks for, of all nodes.
    pub unsafe fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Adds a pointer that owns nothing. It follows the node at the address that it holds, whenever
    /// that is added.
    ///
    /// # Safety
    ///
    /// `place` is aligned, valid for reads and writes, and neither a link's nor added twice; it
    /// lies in a node or in memory that stays.
    pub unsafe fn pointer(&mut self, place: *mut *mut u8) {
        // SAFETY: readable (the caller's promise).
        let held = unsafe { place.read() };
        self.all.collector.visit(NO_NODE, std::ptr::null());
        self.all.collector.push_pointer(place, held, self.layout);
    }

    /// What is known to be wrong already, which the morph would give as its error.
    ///
    /// # Errors
    ///
    /// [`MorphError::SharedNode`] when a node was added twice, [`MorphError::TooManyNodes`],
    /// [`MorphError::OutOfMemory`].
    pub fn check(&self) -> Result<(), MorphError> {
        self.all.collector.check()
    }

    /// The number of the node that begins at this address. Expected O(1).
    pub fn number(&self, address: *const u8) -> Option<u32> {
        self.all.known.number(address)
    }

    /// The nodes, by number.
    pub fn nodes(&self) -> &[*mut u8] {
        &self.nodes
    }

    /// The parent of the node with this number; `None` for roots, and for numbers that no node has.
    pub fn parent(&self, number: u32) -> Option<u32> {
        let parent = self.all.collector.lists().parents().get(number as usize);
        parent.copied().filter(|&parent| parent != NO_NODE)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// The home of objects that are freed without their size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unsized;

// SAFETY: all three go to `CcMalloc`, whose objects `raw::deallocate` frees whatever their size.
unsafe impl Home for Unsized {
    type Placer = CcRegion;

    fn reserve(self, bytes: usize) -> Option<CcRegion> {
        CcRegion::reserve(bytes)
    }

    unsafe fn alloc(self, layout: Layout) -> *mut u8 {
        ccmalloc::raw::allocate(layout.size(), layout.align(), None)
    }

    unsafe fn free(self, object: *mut u8, _: Layout) {
        // SAFETY: a live object of `CcMalloc` that is not used any more (the caller's promise).
        unsafe { ccmalloc::raw::deallocate(object) };
    }
}
