//! The entry for structures of raw pointers: the caller promises what the borrow checker proves for
//! [`Morph::run`]. A node that is reached twice is still an error.

use crate::collect::Nodes;
use crate::error::MorphError;
use crate::link::{CcRegion, Global, Home};
use crate::morph::Morph;
use crate::prefetch;
use crate::report::Report;
use crate::size::node_extent;
use crate::visit::{Addresses, Collector, ErasedLink, Seen, Shown};
use ccmodel::NO_NODE;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::time::Instant;

/// Takes the places of links, and of pointers back, that a traversal of raw pointers shows.
#[derive(Debug)]
pub struct RawVisit<'v, T> {
    collector: &'v mut Collector<'static>,
    seen: &'v mut Seen,
    node: PhantomData<*mut T>,
}

impl<T> RawVisit<'_, T> {
    /// The place of a pointer that owns a node. Null pointers are skipped.
    ///
    /// # Safety
    /// The conditions on links of [`Morph::run_raw`].
    pub unsafe fn link(&mut self, place: *mut *mut T) {
        // SAFETY: readable (the caller's promise).
        let node = unsafe { place.read() };
        if !node.is_null() {
            let (node, layout) = (node.cast(), Layout::new::<T>());
            let is_new = self.seen.insert(node);
            push(self.collector, place.cast(), node, layout, is_new);
        }
    }

    /// The place of a pointer that owns nothing, and follows the node that it points to.
    ///
    /// # Safety
    /// The conditions on pointers of [`Morph::run_raw`].
    pub unsafe fn pointer(&mut self, place: *mut *mut T) {
        // SAFETY: readable (the caller's promise).
        let held = unsafe { place.read() };
        (self.collector).push_pointer(place.cast(), held.cast(), Layout::new::<T>());
    }
}

/// Records a link to a node of this layout, which the node being visited shows. `is_new` says
/// whether the node's address is new; `None` where there was no memory to find out.
#[inline]
fn push(
    collector: &mut Collector<'_>,
    link: *mut (),
    node: *mut u8,
    layout: Layout,
    is_new: Option<bool>,
) {
    match is_new {
        Some(true) => {
            let inside = collector.lies_in_visited::<*mut u8>(link.addr(), layout);
            collector.push_shown(Shown { link, node }, inside);
        }
        Some(false) => collector.fail(MorphError::SharedNode),
        None => {
            let node_bytes = size_of::<Shown>() + Addresses::ENTRY_BYTES;
            let bytes = ((collector.lists.len() + 1) * node_bytes) as u64;
            collector.fail(MorphError::OutOfMemory { bytes });
        }
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
    /// the parent take a hash table of all nodes, and a lookup each.
    ///
    /// # Safety
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
    /// Those of [`run`](Morph::run) but [`MorphError::TwoHeaps`], and [`MorphError::SharedNode`].
    /// The structure is then as it was.
    ///
    /// # Examples
    /// ```
    /// # #[global_allocator]
    /// # static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
    /// use std::{ptr::null_mut, slice};
    ///
    /// struct Node { next: *mut Node, previous: *mut Node }
    ///
    /// let node = |previous| Box::into_raw(Box::new(Node { next: null_mut(), previous }));
    /// let mut first = node(null_mut());
    /// // SAFETY: both nodes come from `Box`, all pointers to them are shown, each once, and no
    /// // other code uses them meanwhile.
    /// unsafe {
    ///     (*first).next = node(first);
    ///     ccmorph::Morph::new().run_raw(slice::from_mut(&mut first), |node, visit| {
    ///         visit.link(&raw mut (*node).next);
    ///         visit.pointer(&raw mut (*node).previous);
    ///     })?;
    ///     let second = (*first).next;
    ///     assert_eq!((*second).previous, first);
    ///     drop((Box::from_raw(first), Box::from_raw(second)));
    /// }
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
        self.settings.check()?;
        let layout = Layout::new::<T>();
        node_extent(layout)?;
        let begin = Instant::now();
        let (mut collector, mut seen) = (Collector::new(), Seen::new(layout.size()));
        let mut visit = RawVisit {
            collector: &mut collector,
            seen: &mut seen,
            node: PhantomData,
        };
        for root in roots {
            // SAFETY: the place is a reference's; the pointer is a link's by the caller's promise.
            unsafe { visit.link(root) };
        }
        let mut number = 0;
        loop {
            let shown = visit.collector.lists.shown();
            let Some(&Shown { node, .. }) = shown.get(number as usize) else {
                break;
            };
            if let Some(later) = shown.get(number as usize + prefetch::AHEAD) {
                prefetch::object(later.node, layout.size());
            }
            visit.collector.visit(number, node);
            traverse(node.cast(), &mut visit);
            visit.collector.check()?;
            number += 1;
        }
        let found = collector.finish(layout, None)?;
        // SAFETY: links, nodes and pointers are what the caller promises until this returns; the
        // nodes' addresses are different, which `seen` has found; a link is a raw pointer. Nodes
        // are numbered in level order and show their pointers in the order of their numbers.
        let mut nodes = unsafe { Nodes::new(Global, (layout, ErasedLink::RAW), found, true) };
        nodes.time = begin.elapsed();
        self.run_collected(nodes, Vec::new(), false)
    }

    /// Moves the nodes of a [`RawStructure`].
    ///
    /// # Safety
    /// Until this returns, the structure is what its methods ask for, and no other code accesses
    /// its nodes and places.
    ///
    /// # Errors
    /// As [`run_raw`](Morph::run_raw).
    pub unsafe fn run_structure(&self, structure: RawStructure) -> Result<Report, MorphError> {
        self.settings.check()?;
        structure.check()?;
        let layout = structure.layout;
        node_extent(layout)?;
        let found = structure
            .collector
            .finish(layout, Some(structure.numbers))?;
        // SAFETY: the caller promises that the structure is what its methods ask for until this
        // returns; the nodes' addresses are different, which `numbers` has found; a link is a raw
        // pointer.
        let nodes = unsafe { Nodes::new(Unsized, (layout, ErasedLink::RAW), found, false) };
        self.run_collected(nodes, Vec::new(), false)
    }
}

/// A structure whose nodes are known by address and size alone, as in C: objects of
/// [`CcMalloc`](ccmalloc::CcMalloc) that [`ccmalloc::raw::deallocate`] frees.
#[derive(Debug)]
pub struct RawStructure {
    layout: Layout,
    collector: Collector<'static>,
    numbers: Addresses,
}

impl RawStructure {
    /// Creates a structure of nodes of this size and alignment.
    pub fn new(layout: Layout) -> RawStructure {
        RawStructure {
            layout,
            collector: Collector::new(),
            numbers: Addresses::default(),
        }
    }

    /// Adds a node and returns its number; numbers ascend by one. `None` for what
    /// [`check`](RawStructure::check) returns as its error. Panics when no node has the number
    /// `parent`.
    ///
    /// # Safety
    /// From the begin of the morph to its end, for the last [layout](RawStructure::set_layout) and
    /// [link](RawStructure::set_link) set:
    ///
    /// - `node` is a live object of `CcMalloc` of at least the structure's size, initialised, and
    ///   may be moved bitwise to any multiple of the structure's alignment: that is the only
    ///   alignment that it keeps.
    /// - `link` is the place of the pointer that owns it, aligned, valid for reads and writes,
    ///   added once; it lies in a node or in memory that stays.
    pub unsafe fn node(
        &mut self,
        node: *mut u8,
        parent: Option<u32>,
        link: *mut *mut u8,
    ) -> Option<u32> {
        let number = self.len();
        let parent = parent.unwrap_or(NO_NODE);
        let exists = parent == NO_NODE || (parent as usize) < number;
        assert!(exists, "no node has the number {parent}");
        let owner = self.address(parent).unwrap_or_default();
        self.collector.visit(parent, owner);
        // Too large a number is an error of the collector.
        let number_u32 = u32::try_from(number).unwrap_or(NO_NODE);
        let has_room = self.numbers.try_reserve();
        let is_new = has_room.then(|| self.numbers.insert(node, number_u32));
        push(&mut self.collector, link.cast(), node, self.layout, is_new);
        (self.len() > number).then_some(number_u32)
    }

    /// Changes the place of the pointer that owns a node, where it is known only after the node.
    /// Panics when no node has this number.
    ///
    /// # Safety
    /// `link` is as [`node`](RawStructure::node) asks for.
    pub unsafe fn set_link(&mut self, number: u32, link: *mut *mut u8) {
        self.collector.lists.set_link(number, link.cast());
    }

    /// Changes the size and the alignment of the nodes, where they are known only after the nodes.
    ///
    /// # Safety
    /// The layout is as [`node`](RawStructure::node) asks for, of all nodes.
    pub unsafe fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Adds a pointer that owns nothing. It follows the node at the address that it holds, whenever
    /// that is added.
    ///
    /// # Safety
    /// `place` is aligned, valid for reads and writes, and neither a link's nor added twice; it
    /// lies in a node or in memory that stays.
    pub unsafe fn pointer(&mut self, place: *mut *mut u8) {
        // SAFETY: readable (the caller's promise).
        let held = unsafe { place.read() };
        self.collector.visit(NO_NODE, std::ptr::null());
        self.collector.push_pointer(place, held, self.layout);
    }

    /// Checks that no node was added twice, that all can be numbered, and that there was memory.
    ///
    /// # Errors
    /// [`MorphError::SharedNode`], [`MorphError::TooManyNodes`], [`MorphError::OutOfMemory`].
    pub fn check(&self) -> Result<(), MorphError> {
        self.collector.check()
    }

    /// The number of the node that begins at this address. Expected O(1).
    pub fn number(&self, address: *const u8) -> Option<u32> {
        self.numbers.number(address)
    }

    /// Where the node with this number lies; `None` for numbers that no node has.
    pub fn address(&self, number: u32) -> Option<*mut u8> {
        let shown = self.collector.lists.shown().get(number as usize);
        shown.map(|shown| shown.node)
    }

    /// The parent of the node with this number; `None` for roots, and for numbers that no node has.
    pub fn parent(&self, number: u32) -> Option<u32> {
        let parent = self.collector.lists.parents().get(number as usize);
        parent.copied().filter(|&parent| parent != NO_NODE)
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.collector.lists.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The home of objects that are freed without their size.
#[derive(Clone, Copy, Debug)]
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
