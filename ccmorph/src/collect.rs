//! Phase 1: walk the structure and record where each link is.
//!
//! The walk is breadth-first over arrays: it visits node `v` at index `v` and appends the links
//! that it shows. So a parent has a smaller number than its children, there is no recursion, and
//! the next nodes are known, so that their cache misses overlap.
//!
//! Only this phase runs user code, and it moves nothing: after a panic the structure is as it was.

use crate::error::MorphError;
use crate::link::{Home, Link};
use crate::prefetch;
use crate::size::NodeSize;
use crate::visit::{
    AnyVisitor, Collector, Each, ErasedLink, Found, Links, OfOneType, Pointer, Shown, Visit,
    Visitor,
};
use ccmodel::NodeExtent;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::time::Duration;

/// A structure's nodes, their owning links, and the pointers between them, all mutably borrowed for
/// `'a`.
///
/// Invariants, for each `v` below `len()`:
/// - `shown[v].link` is the erased place of a link of the type `link(v)`. It may be read and
///   written for `'a`, nothing has used it since it was shown, and all places are disjoint, also
///   from those of `pointers`;
/// - `shown[v].node` is the pointer that this link holds: an initialised allocation of `home` for
///   its layout, to which no reference is in use. It may be read, moved out of, and freed;
/// - `each` is empty, or has an entry for each node, and `outside` stands for all links then;
/// - unless `outside` names v or stands for all links, the link [lies in](crate::visit::lies_in)
///   the node that showed it;
/// - the places of `pointers` and `pointers_inside` hold thin raw pointers, which may be
///   overwritten for `'a`; their targets are node numbers;
/// - each of `pointers_inside` [lies in](crate::visit::lies_in) the node that showed it, and they
///   come in the order of these nodes.
#[derive(Debug)]
pub(crate) struct Nodes<'a, H> {
    pub(crate) home: H,
    layout: Layout,
    link: ErasedLink,
    /// What the nodes are, where they are not all of one type: that of `layout` and `link`.
    each: Vec<Each<'a>>,
    shown: Vec<Shown>,
    outside: Outside,
    pointers: Vec<Pointer>,
    pointers_inside: Vec<Pointer>,
    borrow: PhantomData<&'a mut ()>,
}

/// The links that do not lie in the node that showed them.
#[derive(Debug)]
pub(crate) enum Outside {
    /// Those of the nodes with these numbers. All nodes are in level order: roots first, then the
    /// children of each node in turn.
    Numbers(Vec<u32>),
    /// Any link; nodes may be in any order with parents before their children.
    All,
}

impl<'a, H: Home> Nodes<'a, H> {
    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    /// The size and alignment of nodes of the one type.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether the nodes are of several types.
    pub(crate) fn are_of_kinds(&self) -> bool {
        !self.each.is_empty()
    }

    /// How many nodes cannot be placed, and stay.
    pub(crate) fn staying(&self) -> usize {
        let stays = |each: &&Each<'_>| each.size == NodeSize::STAYS;
        self.each.iter().filter(stays).count()
    }

    /// The size of a node, which is `mean` where they are of several types.
    pub(crate) fn node_bytes(&self, mean: NodeExtent) -> usize {
        if self.are_of_kinds() {
            mean.bytes as usize
        } else {
            self.layout.size()
        }
    }

    /// By node number: the size of the node; empty where all nodes are of one type.
    pub(crate) fn sizes(&self) -> Vec<NodeSize> {
        self.each.iter().map(|each| each.size).collect()
    }

    /// By node number: the link, and the pointer that it holds.
    pub(crate) fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// The type of the links to nodes of the one type.
    pub(crate) fn link(&self) -> ErasedLink {
        self.link
    }

    /// The type of the link to a node.
    #[inline]
    pub(crate) fn link_of(&self, v: usize) -> ErasedLink {
        (self.each.get(v).and_then(|each| each.kind)).map_or(self.link, |kind| kind.link)
    }

    pub(crate) fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Places that point to nodes without owning them, wherever they lie.
    pub(crate) fn pointers(&self) -> &[Pointer] {
        &self.pointers
    }

    /// More of these: inside of nodes, in the order of the nodes.
    pub(crate) fn pointers_inside(&self) -> &[Pointer] {
        &self.pointers_inside
    }

    pub(crate) fn address(&self, v: usize) -> u64 {
        self.shown[v].node.addr() as u64
    }

    /// By node number.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        (0..self.len()).map(|v| self.address(v)).collect()
    }

    /// What the entries of the lists take, in bytes.
    pub(crate) fn list_bytes(&self) -> u64 {
        let pointers = self.pointers.len() + self.pointers_inside.len();
        let outside = match &self.outside {
            Outside::Numbers(numbers) => numbers.len(),
            Outside::All => 0,
        };
        (size_of_val(&self.shown[..])
            + size_of_val(&self.each[..])
            + outside * size_of::<u32>()
            + pointers * size_of::<Pointer>()) as u64
    }
}

/// Returns the weight of a node.
pub(crate) type Weigh<'w, T> = &'w mut dyn FnMut(&T) -> f64;

/// Nodes, how they are linked, and the weights that the user gave them, if any.
#[derive(Debug)]
pub(crate) struct Collected<'a, H> {
    pub(crate) nodes: Nodes<'a, H>,
    /// By node number: the node whose visit showed the link, a smaller number, or
    /// [`NO_NODE`](ccmodel::NO_NODE) for roots.
    pub(crate) parents: Vec<u32>,
    /// By node number, or empty.
    pub(crate) weights: Vec<f64>,
    /// How long it took to find them.
    pub(crate) time: Duration,
}

impl<'a, H: Home> Collected<'a, H> {
    /// What a collector has found, without weights and time.
    ///
    /// # Safety
    ///
    /// The nodes, links and pointers keep the invariants of [`Nodes`] until the result is gone,
    /// with [`Outside::Numbers`] where `are_in_level_order` is true and all nodes are of one type,
    /// and [`Outside::All`] otherwise.
    pub(crate) unsafe fn new(
        home: H,
        (layout, link): (Layout, ErasedLink),
        found: Found<'a>,
        are_in_level_order: bool,
    ) -> Collected<'a, H> {
        let outside = if are_in_level_order && found.each.is_empty() {
            Outside::Numbers(found.outside)
        } else {
            Outside::All
        };
        let nodes = Nodes {
            home,
            layout,
            link,
            each: found.each,
            shown: found.shown,
            outside,
            pointers: found.pointers,
            pointers_inside: found.pointers_inside,
            borrow: PhantomData,
        };
        Collected {
            nodes,
            parents: found.parents,
            weights: Vec::new(),
            time: Duration::ZERO,
        }
    }
}

/// Visits all nodes that can be reached from `root`, and calls `weigh` for each first. `None` when
/// no link owns a node.
///
/// O(n) for nodes and links. Pointers to the parent are known at once. Others take a hash table of
/// all nodes, in which each is looked up.
///
/// # Errors
///
/// [`MorphError::TooManyNodes`], [`MorphError::TwoHeaps`], [`MorphError::OutOfMemory`].
pub(crate) fn collect<'a, L, R, F>(
    root: &'a mut R,
    traverse: &mut F,
    mut weigh: Option<Weigh<'_, L::Node>>,
) -> Result<Option<Collected<'a, L::Home>>, MorphError>
where
    L: Link + 'a,
    R: Links<Link = L> + ?Sized,
    F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
{
    let mut found = OfOneType {
        home: None,
        collector: Collector::new(),
    };
    root.show(&mut Visitor::of(&mut found));
    let mut weights = Vec::new();
    let mut number = 0;
    while let Some(&shown) = found.collector.lists().shown().get(number as usize) {
        let all = &mut found.collector;
        if let Some(later) = all.lists().shown().get(number as usize + prefetch::AHEAD) {
            prefetch::object(later.node, size_of::<L::Node>());
        }
        all.visit(number, shown.node);
        if let Some(kind) = all.kind(number) {
            if weigh.is_some() {
                let owner = all.lists().parents()[number as usize];
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
        if found.collector.has_failed() {
            break;
        }
        number += 1;
    }
    found.collector.check()?;
    let Some(home) = found.home else {
        return Ok(None);
    };
    let layout = Layout::new::<L::Node>();
    let found = found.collector.finish(layout, None)?;
    // SAFETY: the invariants are the collector's; each link was made from a `&'a mut L`, or is of
    // its entry's kind, which only links of the global home have. Nodes are numbered in level order
    // and show their pointers in the order of their numbers.
    let mut collected =
        unsafe { Collected::new(home, (layout, ErasedLink::of::<L>()), found, true) };
    collected.weights = weights;
    Ok(Some(collected))
}

#[cfg(test)]
mod tests;
