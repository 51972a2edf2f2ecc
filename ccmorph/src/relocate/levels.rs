//! Step 2 of a move where nodes are in level order: each node is copied, and the links and pointers
//! that lay in it are written in the copy.
//!
//! One pass over lists that go side by side: the links, nodes and places of the numbers, those of
//! the children, which come in the same order a while later, and the pointers. A few dozen
//! instructions a node, as there is a copy of the loop for each usual size of nodes: then a copy is
//! some moves of words, where a call takes longer than what it does.

use crate::collect::Nodes;
use crate::link::Home;
use crate::nearness::Distances;
use crate::prefetch;
use crate::visit::{ErasedLink, Pointer, Shown, inner_offsets};
use ccmodel::NO_NODE;
use std::alloc::Layout;

/// Whether `parents` can be those of nodes in level order: roots first, then the children of each
/// node in turn, and each link that is not `outside`, whose numbers ascend, lies in its parent. No
/// two nodes overlap, so that none but the parent holds a link. O(n).
pub(super) fn are_parents<H: Home>(nodes: &Nodes<'_, H>, parents: &[u32], outside: &[u32]) -> bool {
    let shown = nodes.shown();
    // All of one length, so that one look at an index is enough.
    let parents = &parents[..shown.len()];
    let links_inside = inner_offsets(nodes.link().bytes, nodes.layout());
    let roots = parents.partition_point(|&parent| parent == NO_NODE);
    let (of_roots, outside) = outside.split_at(roots.min(outside.len()));
    if !of_roots.iter().copied().eq((0..).take(roots)) {
        return false;
    }
    let mut outside = outside.iter().map(|&v| v as usize);
    let (mut least, mut next_outside) = (0, outside.next());
    for v in roots..parents.len() {
        let parent = parents[v] as usize;
        if parent < least || parent >= v {
            return false;
        }
        least = parent;
        if next_outside == Some(v) {
            next_outside = outside.next();
            continue;
        }
        let owner = shown[parent].node.addr();
        if shown[v].link.addr().wrapping_sub(owner) >= links_inside {
            return false;
        }
    }
    next_outside.is_none()
}

/// What is to be copied where; all but the pointers by node number.
#[derive(Clone, Copy)]
pub(super) struct Levels<'a> {
    shown: &'a [Shown],
    parents: &'a [u32],
    places: &'a [*mut u8],
    /// In the order of the nodes that they lie in.
    pointers: &'a [Pointer],
    layout: Layout,
    link: ErasedLink,
}

impl<'a> Levels<'a> {
    /// These nodes and their parents, to be copied to `places`.
    pub(super) fn new<H: Home>(
        nodes: &'a Nodes<'_, H>,
        parents: &'a [u32],
        places: &'a [*mut u8],
    ) -> Levels<'a> {
        Levels {
            shown: nodes.shown(),
            parents,
            places,
            pointers: nodes.pointers_inside(),
            layout: nodes.layout(),
            link: nodes.link(),
        }
    }

    /// Copies all nodes. Returns how far apart parents and children lay, and how far they lie now.
    ///
    /// # Safety
    ///
    /// - Nodes are in level order, and `parents` are theirs.
    /// - The places are allocations of the nodes' home for their layout, which only the caller
    ///   knows.
    pub(super) unsafe fn copy(self) -> (Distances, Distances) {
        macro_rules! by_size {
            ($($size:literal)*) => {
                match self.layout.size() {
                    // SAFETY: the caller's promise.
                    $($size => unsafe { self.copy_of_size($size) },)*
                    // SAFETY: the caller's promise.
                    bytes => unsafe { self.copy_of_size(bytes) },
                }
            };
        }
        by_size!(16 24 32 40 48 56 64)
    }

    /// As [`copy`](Levels::copy), for nodes of `bytes`, which the compiler is to know.
    ///
    /// # Safety
    ///
    /// - As for [`copy`](Levels::copy), and `bytes` is the size of a node.
    #[inline(always)]
    unsafe fn copy_of_size(self, bytes: usize) -> (Distances, Distances) {
        let (mut before, mut after) = (Distances::new(), Distances::new());
        let nodes = self.shown.len();
        // All of one length, so that one look at an index is enough.
        let (shown, places, parents) = (
            &self.shown[..nodes],
            &self.places[..nodes],
            &self.parents[..nodes],
        );
        let links_inside = inner_offsets(self.link.bytes, self.layout);
        let pointers_inside = inner_offsets(size_of::<*mut u8>(), self.layout);
        let mut pointers = self.pointers;
        // Of the nodes before the one at hand, these are all children.
        let mut child = parents.partition_point(|&parent| parent == NO_NODE);
        for v in 0..nodes {
            let later = v + prefetch::AHEAD;
            if later < nodes {
                prefetch::object(shown[later].node, bytes);
                prefetch::object(places[later], bytes);
            }
            let (from, to) = (shown[v].node, places[v]);
            // SAFETY: `from` is an allocation for the layout, which may be read (invariant of
            // `Nodes`), and `to` another one: both are valid for this many bytes, and as different
            // live allocations they do not overlap. A bitwise copy that leaves the source unused is
            // a move.
            unsafe { from.copy_to_nonoverlapping(to, bytes) };
            // In level order, the children of v come next.
            while child < nodes && parents[child] as usize == v {
                let offset = shown[child].link.addr().wrapping_sub(from.addr());
                if offset < links_inside {
                    let moved = to.wrapping_add(offset);
                    // SAFETY: the link lay in v, all of it, so this is its copy, initialised and
                    // aligned (`inner_offsets`), in an allocation that only the caller knows. The
                    // child's place is an allocation of the same home for a node's layout. It is
                    // uninitialised until the child is copied, and nothing looks through the link
                    // before.
                    unsafe { self.link.point_to(moved.cast(), places[child]) };
                }
                before.add(from.addr() as u64, shown[child].node.addr() as u64);
                after.add(to.addr() as u64, places[child].addr() as u64);
                child += 1;
            }
            while let Some((pointer, others)) = pointers.split_first() {
                let offset = pointer.place.addr().wrapping_sub(from.addr());
                if offset >= pointers_inside {
                    break;
                }
                let moved = to.wrapping_add(offset).cast::<*mut u8>();
                // SAFETY: the copy of a place in v that holds a raw pointer, aligned, as above.
                unsafe { moved.write(places[pointer.target as usize]) };
                pointers = others;
            }
        }
        debug_assert!(
            pointers.is_empty() && child == nodes,
            "{child} of {nodes} links are right, and all pointers but {}",
            pointers.len()
        );
        (before, after)
    }
}
