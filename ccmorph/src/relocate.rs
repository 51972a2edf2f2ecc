//! Phases 2 and 3: get the new places, then move into them.
//!
//! Getting the places can fail and is undone when it does; the structure has not been touched by then. Moving cannot fail.
//! It goes over the nodes three times:
//!
//! 1. each link gets the address that its node will have: `*link = new[v]`;
//! 2. the bytes of each node go from the old place to the new;
//! 3. the old places are freed.
//!
//! All links are written before any byte is copied. So it makes no difference where a link lies: one inside its parent
//! is copied along with it, already changed; one in memory that a node owns, such as the buffer of a `Vec`, stays there.
//!
//! # The aliasing argument
//!
//! A box may only be used through pointers derived from it, and using it directly ends those. Call the pointer that a link
//! holds p(v). The reference given to the traversal comes from p(v), and the links inside v come from that reference: one line
//! of descent. In between, only the youngest of the line are used: a link is read when it is collected, and written in step 1.
//! Step 2 reads v through p(v), which ends the line below it, and nothing below it is used again. Step 3 frees p(v), with the
//! allocator and the layout with which the box was made. The new pointers come fresh from the allocator and are stored
//! in links only, so each link again holds the sole pointer to its node.

use crate::collect::Nodes;
use crate::{MorphError, prefetch};
use ccmodel::{NO_NODE, NodeExtent, Placement};
use std::alloc::Layout;

/// Something that allocates at offsets of the caller's choice.
///
/// # Safety
///
/// What [`alloc_at`](Placer::alloc_at) returns is either null or an allocation of the program's global allocator for the
/// layout asked for, as if by `std::alloc::alloc`.
pub(crate) unsafe trait Placer {
    /// An allocation that lies at `address(offset)` when all is well, or elsewhere, or null when there is no memory.
    ///
    /// # Safety
    ///
    /// The layout's size is not zero.
    unsafe fn alloc_at(&mut self, offset: usize, layout: Layout) -> *mut u8;

    /// Where the object at `offset` shall lie.
    fn address(&self, offset: usize) -> *mut u8;
}

// SAFETY: `Region::alloc_at` promises to call `std::alloc::alloc` and to return what that returns.
unsafe impl Placer for ccmalloc::Region {
    unsafe fn alloc_at(&mut self, offset: usize, layout: Layout) -> *mut u8 {
        ccmalloc::Region::alloc_at(self, offset, layout)
    }

    fn address(&self, offset: usize) -> *mut u8 {
        ccmalloc::Region::address(self, offset)
    }
}

/// New places for nodes; freed when dropped, unless the nodes [move in](NewPlaces::move_in).
///
/// Invariants: `order` names nodes by ascending offset, each at most once; for the first `allocated` of them, `places[v]` is
/// an allocation of the global allocator for `layout`, owned by this value and uninitialised.
#[derive(Debug)]
pub(crate) struct NewPlaces {
    layout: Layout,
    order: Vec<u32>,
    places: Vec<*mut u8>,
    allocated: usize,
}

impl NewPlaces {
    /// Allocates, by ascending address, a place of `layout` for each node.
    ///
    /// `layout` must not be of size zero.
    pub(crate) fn allocate(
        placement: &Placement,
        node: NodeExtent,
        layout: Layout,
        placer: &mut impl Placer,
    ) -> Result<NewPlaces, MorphError> {
        assert!(layout.size() > 0, "nodes of no size need no place");
        let span_bytes = placement.span_bytes(node);
        let out_of_memory = MorphError::OutOfMemory { bytes: span_bytes };
        let order = by_offset(placement, node);
        let places = vec![std::ptr::null_mut(); placement.len()];
        let mut new = NewPlaces {
            layout,
            order,
            places,
            allocated: 0,
        };
        for at in 0..new.order.len() {
            let v = new.order[at];
            let offset = usize::try_from(placement.offset(v)).map_err(|_| out_of_memory)?;
            // SAFETY: the size is not zero, as asserted above.
            let place = unsafe { placer.alloc_at(offset, layout) };
            if place.is_null() {
                return Err(out_of_memory);
            }
            new.places[v as usize] = place;
            new.allocated = at + 1;
            if place != placer.address(offset) {
                return Err(MorphError::NotCcMalloc);
            }
        }
        Ok(new)
    }

    /// By node number: where the node will lie.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        self.places
            .iter()
            .map(|place| place.addr() as u64)
            .collect()
    }

    /// Moves each node to its new place and frees the old one. Cannot fail, and runs no code of the user's.
    ///
    /// # Panics
    ///
    /// When these places are not for as many nodes, each of `T`'s layout.
    pub(crate) fn move_in<'a, T: 'a>(mut self, nodes: Nodes<'a, T>) {
        assert_eq!(self.layout, Layout::new::<T>(), "places of another layout");
        assert_eq!(
            self.places.len(),
            nodes.len(),
            "places for another number of nodes"
        );
        assert_eq!(self.allocated, nodes.len(), "not all nodes have a place");
        // From here on the places belong to the links.
        self.allocated = 0;

        let links = nodes.links();
        for (v, (&link, &place)) in links.iter().zip(&self.places).enumerate() {
            if let Some(&later) = links.get(v + prefetch::AHEAD) {
                prefetch::object(later, size_of::<*mut T>());
            }
            // SAFETY: the link was made from a `&'a mut Box<T>` that nothing has used since and that is disjoint from all
            // others (invariant of `Nodes`), so it is valid for a write of a pointer, which is what a box is in memory.
            // Overwriting runs no destructor: the node's old place is still in `nodes`. The new place is uninitialised
            // until the copy below, and nothing looks through the link before.
            unsafe { link.write(place.cast()) };
        }
        for (at, &v) in self.order.iter().enumerate() {
            if let Some(&later) = self.order.get(at + prefetch::AHEAD) {
                prefetch::object(nodes.nodes()[later as usize], size_of::<T>());
            }
            let (old, place) = (
                nodes.nodes()[v as usize],
                self.places[v as usize].cast::<T>(),
            );
            // SAFETY: `old` is the pointer of a box that is borrowed for 'a: valid for reads and aligned. `place` is an
            // allocation for `T`'s layout (asserted above): valid for writes and aligned. They are different live
            // allocations, so they do not overlap. A bitwise copy that leaves the source unused is a move.
            unsafe { std::ptr::copy_nonoverlapping(old, place, 1) };
        }
        for &old in nodes.nodes() {
            // SAFETY: `old` was the contents of a `Box<T>`, which the global allocator gave for `Layout::new::<T>()`,
            // not of size zero as `allocate` asserts. The link no longer holds it, and its value has moved out.
            unsafe { std::alloc::dealloc(old.cast(), self.layout) };
        }
    }
}

impl Drop for NewPlaces {
    fn drop(&mut self) {
        for &v in &self.order[..self.allocated] {
            // SAFETY: allocated by the global allocator for this layout and owned by this value (invariant).
            unsafe { std::alloc::dealloc(self.places[v as usize], self.layout) };
        }
    }
}

/// Node numbers by ascending offset. O(n): nodes are a stride apart at least, so at most one begins in each stride.
fn by_offset(placement: &Placement, node: NodeExtent) -> Vec<u32> {
    let stride = node.stride_bytes();
    let slots = usize::try_from(placement.span_bytes(node) / stride + 1).unwrap_or(usize::MAX);
    let mut node_in = vec![NO_NODE; slots];
    for (v, &offset) in (0..).zip(placement.offsets()) {
        // Below `slots`, as the offset is below the span.
        let slot = usize::try_from(offset / stride).unwrap_or(usize::MAX);
        debug_assert_eq!(
            node_in[slot], NO_NODE,
            "two nodes begin within {stride} bytes"
        );
        node_in[slot] = v;
    }
    node_in.retain(|&v| v != NO_NODE);
    node_in
}

#[cfg(test)]
mod tests;
