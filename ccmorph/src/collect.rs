//! Phase 1: walk the structure and record each link.
//!
//! The walk is breadth-first over arrays: it visits node `v` at index `v` and appends the links
//! that it shows. So a parent has a smaller number than its children, nothing recurses, and the
//! next nodes are known, so that their cache misses overlap. Only this phase runs user code, and it
//! moves nothing: after a panic the structure is as it was.

use crate::error::MorphError;
use crate::link::{Home, Link};
use crate::prefetch;
use crate::visit::{
    AnyVisitor, Collector, Each, ErasedLink, Found, Links, OfOneType, Pointer, Visit, Visitor,
};
use ccmodel::NodeExtent;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// A structure's nodes, their owning links, and the pointers between them, all mutably borrowed for
/// `'a`.
///
/// Invariants, for each `v` below `len()` and the lists of `found`:
/// - `shown[v].link` is the erased place of a link of the type `link_of(v)`. It may be read and
///   written for `'a`, nothing has used it since it was shown, and all places are disjoint, also
///   from those of the pointers;
/// - `shown[v].node` is the pointer that this link holds: an initialised allocation of `home` for
///   its layout, to which no reference is in use. It may be read, moved out of, and freed;
/// - `parents[v]` is the node that showed the link, a smaller number, or
///   [`NO_NODE`](ccmodel::NO_NODE) for roots;
/// - `each` is empty, or has an entry for each node, whose layout is not of size zero;
/// - the places of the pointers hold thin raw pointers, which may be overwritten for `'a`; their
///   targets are node numbers;
/// - if `in_levels`, then `each` is empty; roots come first, then the children of each node in
///   turn; each link that `outside` does not name [lies in](crate::visit::lies_in) its parent; and
///   each of `pointers_inside` lies in the node that showed it, in the order of these nodes.
///   Otherwise `pointers_inside` is empty.
#[derive(Debug)]
pub(crate) struct Nodes<'a, H> {
    pub(crate) home: H,
    /// The size and alignment of nodes of the one type.
    layout: Layout,
    /// The type of the links to nodes of the one type.
    link: ErasedLink,
    found: Found<'a>,
    in_levels: bool,
    /// By node number, or empty.
    pub(crate) weights: Vec<f64>,
    /// How long it took to find the nodes.
    pub(crate) time: Duration,
    borrow: PhantomData<&'a mut ()>,
}

impl<'a, H: Home> Nodes<'a, H> {
    /// What a collector has found, without weights and time.
    ///
    /// # Safety
    /// The nodes, links and pointers keep the invariants of [`Nodes`] until the result is gone,
    /// where `in_levels` counts only if all nodes are of one type.
    pub(crate) unsafe fn new(
        home: H,
        (layout, link): (Layout, ErasedLink),
        mut found: Found<'a>,
        in_levels: bool,
    ) -> Nodes<'a, H> {
        let in_levels = in_levels && found.each.is_empty();
        if !in_levels {
            found.pointers.append(&mut found.pointers_inside);
        }
        Nodes {
            home,
            layout,
            link,
            found,
            in_levels,
            weights: Vec::new(),
            time: Duration::ZERO,
            borrow: PhantomData,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.found.shown.len()
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn link(&self) -> ErasedLink {
        self.link
    }

    pub(crate) fn found(&self) -> &Found<'a> {
        &self.found
    }

    pub(crate) fn are_in_levels(&self) -> bool {
        self.in_levels
    }

    /// Whether the nodes are of several types.
    pub(crate) fn are_of_kinds(&self) -> bool {
        !self.found.each.is_empty()
    }

    /// The layout of a node, or `None` if it stays.
    #[inline]
    pub(crate) fn layout_of(&self, v: usize) -> Option<Layout> {
        (self.found.each.get(v)).map_or(Some(self.layout), |each| each.layout)
    }

    /// The type of the link to a node.
    #[inline]
    pub(crate) fn link_of(&self, v: usize) -> ErasedLink {
        (self.found.each.get(v).and_then(|each| each.kind)).map_or(self.link, |kind| kind.link)
    }

    /// How many nodes cannot be placed, and stay.
    pub(crate) fn staying(&self) -> usize {
        let stays = |each: &&Each<'_>| each.layout.is_none();
        self.found.each.iter().filter(stays).count()
    }

    /// The size of a node, which is `mean` where they are of several types.
    pub(crate) fn node_bytes(&self, mean: NodeExtent) -> usize {
        if self.are_of_kinds() {
            mean.bytes as usize
        } else {
            self.layout.size()
        }
    }

    /// The layouts of the nodes that move, where they are of several types.
    pub(crate) fn layouts(&self) -> impl Iterator<Item = Layout> {
        self.found.each.iter().filter_map(|each| each.layout)
    }

    pub(crate) fn address(&self, v: usize) -> u64 {
        self.found.shown[v].node.addr() as u64
    }

    /// By node number.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        (0..self.len()).map(|v| self.address(v)).collect()
    }

    /// What the entries of the lists take, in bytes.
    pub(crate) fn list_bytes(&self) -> u64 {
        let found = &self.found;
        let pointers = found.pointers.len() + found.pointers_inside.len();
        (size_of_val(&found.shown[..])
            + size_of_val(&found.parents[..])
            + size_of_val(&found.each[..])
            + size_of_val(&found.outside[..])
            + pointers * size_of::<Pointer>()) as u64
    }
}

/// Returns the weight of a node.
pub(crate) type Weigh<'w, T> = &'w mut dyn FnMut(&T) -> f64;

/// Visits all nodes that can be reached from `root`, and calls `weigh` for each first. `None` when
/// no link owns a node.
///
/// O(n) for nodes and links. Pointers to the parent are known at once. Others take a hash table of
/// all nodes, in which each is looked up.
///
/// # Errors
/// [`MorphError::TooManyNodes`], [`MorphError::TwoHeaps`], [`MorphError::OutOfMemory`].
pub(crate) fn collect<'a, L, R, F>(
    root: &'a mut R,
    traverse: &mut F,
    mut weigh: Option<Weigh<'_, L::Node>>,
) -> Result<Option<Nodes<'a, L::Home>>, MorphError>
where
    L: Link + 'a,
    R: Links<Link = L> + ?Sized,
    F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
{
    let begin = Instant::now();
    let mut found = OfOneType {
        home: None,
        collector: Collector::new(),
    };
    root.show(&mut Visitor::of(&mut found));
    let mut weights = Vec::new();
    let mut number = 0;
    while let Some(&shown) = found.collector.lists.shown().get(number as usize) {
        let all = &mut found.collector;
        if let Some(later) = all.lists.shown().get(number as usize + prefetch::AHEAD) {
            prefetch::object(later.node, size_of::<L::Node>());
        }
        all.visit(number, shown.node);
        if let Some(kind) = all.kind(number) {
            if weigh.is_some() {
                let owner = all.lists.parents()[number as usize];
                weights.push(weights.get(owner as usize).copied().unwrap_or(0.0));
            }
            // SAFETY: the link was shown as one of this kind, and is borrowed for 'a. Each node is
            // visited once, as below.
            unsafe { (kind.visit)(shown, &mut AnyVisitor::of(all)) };
        } else {
            // SAFETY: the pointer is that of a link borrowed for 'a (invariant), so it is aligned
            // and points to an initialised node of this type. The reference is unique: links are
            // disjoint, hence so are the boxes' contents; each index is visited once; and no other
            // code makes a reference to it during 'a.
            let node: &'a mut L::Node = unsafe { &mut *shown.node.cast() };
            if let Some(weigh) = &mut weigh {
                weights.push(weigh(node));
            }
            traverse(node, &mut |links: &'a mut (dyn Links<Link = L> + 'a)| {
                links.show(&mut Visitor::of(&mut found));
            });
        }
        found.collector.check()?;
        number += 1;
    }
    let Some(home) = found.home else {
        return Ok(None);
    };
    let layout = Layout::new::<L::Node>();
    let found = found.collector.finish(layout, None)?;
    // SAFETY: the invariants are the collector's; each link was made from a `&'a mut L`, or is of
    // its entry's kind, which only links of the global home have. Nodes are numbered in level order
    // and show their pointers in the order of their numbers.
    let mut nodes = unsafe { Nodes::new(home, (layout, ErasedLink::of::<L>()), found, true) };
    (nodes.weights, nodes.time) = (weights, begin.elapsed());
    Ok(Some(nodes))
}

#[cfg(test)]
mod tests;
