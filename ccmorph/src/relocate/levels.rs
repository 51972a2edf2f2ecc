//! Step 2 of a move where nodes are in level order: each node is copied, and the links and pointers
//! that lay in it are written in the copy.
//!
//! One pass over lists that go side by side: the links, nodes and places of the numbers, those of
//! the children, which come in the same order a while later, and the pointers.

use crate::nearness::Distances;
use crate::prefetch;
use crate::visit::{ErasedLink, Found, inner_offsets};
use ccmodel::NO_NODE;
use std::alloc::Layout;

/// Copies all nodes to `places`. Returns the distances of parents and children before and after.
///
/// # Safety
/// - `found`, `layout` and `link` are those of [`Nodes`](crate::collect::Nodes) in levels.
/// - The places are allocations of the nodes' home for their layout, which only the caller knows,
///   one for each node.
pub(super) unsafe fn copy(
    found: &Found<'_>,
    layout: Layout,
    link: ErasedLink,
    places: &[*mut u8],
) -> (Distances, Distances) {
    // A copy of the loop for each usual size: then a copy is some moves of words, where a call
    // takes longer than what it does.
    macro_rules! by_size {
        ($($size:literal)*) => {
            match layout.size() {
                // SAFETY: the lists and places are as the caller promises; this is the nodes' size.
                $($size => unsafe { copy_of_size(found, layout, link, places, $size) },)*
                // SAFETY: the lists and places are as the caller promises; this is the nodes' size.
                bytes => unsafe { copy_of_size(found, layout, link, places, bytes) },
            }
        };
    }
    by_size!(16 24 32 40 48 56 64)
}

/// [`copy`] for nodes of `bytes`, which the compiler is to know.
///
/// # Safety
/// As for [`copy`], and `bytes` is the size of a node.
#[inline(always)]
unsafe fn copy_of_size(
    found: &Found<'_>,
    layout: Layout,
    link: ErasedLink,
    places: &[*mut u8],
    bytes: usize,
) -> (Distances, Distances) {
    let (mut before, mut after) = (Distances::new(), Distances::new());
    let nodes = found.shown.len();
    // All of one length, so that one look at an index is enough.
    let (shown, places, parents) = (
        &found.shown[..nodes],
        &places[..nodes],
        &found.parents[..nodes],
    );
    let links_inside = inner_offsets(link.bytes, layout);
    let pointers_inside = inner_offsets(size_of::<*mut u8>(), layout);
    let mut pointers = &found.pointers_inside[..];
    let mut child = parents.partition_point(|&parent| parent == NO_NODE);
    for v in 0..nodes {
        let later = v + prefetch::AHEAD;
        if later < nodes {
            prefetch::object(shown[later].node, bytes);
            prefetch::object(places[later], bytes);
        }
        let (from, to) = (shown[v].node, places[v]);
        // SAFETY: `from` is an allocation for the layout, which may be read (invariant of `Nodes`),
        // and `to` another one: both are valid for this many bytes, and as different live
        // allocations they do not overlap. A bitwise copy that leaves the source unused is a move.
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
                unsafe { link.point_to(moved.cast(), places[child]) };
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
