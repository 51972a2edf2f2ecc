//! Phases 2 and 3: get the new places, then move into them.
//!
//! Getting the places can fail and is undone when it does; the structure has not been touched by then. Moving cannot fail.
//! It goes over the nodes three times:
//!
//! 1. each link gets the address that its node will have: `*link = new[v]`; so do the pointers back;
//! 2. the bytes of each node go from the old place to the new;
//! 3. the old places are freed.
//!
//! All links and pointers are written before any byte is copied. So it makes no difference where one lies: one inside a node
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
use crate::link::{Home, Placer};
use crate::{MorphError, prefetch};
use ccmodel::{NO_NODE, NodeExtent, Placement};
use std::alloc::Layout;

/// What to do with places that lie elsewhere than they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// Give up.
    Refuse,
    /// Take them: they come one after the other in the order of the layout, which is all that one can do.
    Accept,
}

/// New places for nodes; freed when dropped, unless the nodes [move in](NewPlaces::move_in).
///
/// Invariants: `order` names nodes by ascending offset, each at most once; for the first `allocated` of them, `places[v]` is
/// an allocation of `home` for `layout`, owned by this value and uninitialised. For the others it is no pointer yet: its address is the offset.
#[derive(Debug)]
pub(crate) struct NewPlaces<H: Home> {
    home: H,
    layout: Layout,
    order: Vec<u32>,
    places: Vec<*mut u8>,
    allocated: usize,
    as_asked: bool,
}

impl<H: Home> NewPlaces<H> {
    /// Allocates, by ascending address, a place of `layout` for each node.
    ///
    /// `layout` must not be of size zero; `placer` allocates what `home` does. The list of the offsets becomes that of the places: memory that
    /// is touched for the first time can cost more than what is done in it.
    pub(crate) fn allocate(
        placement: Placement,
        node: NodeExtent,
        (home, layout): (H, Layout),
        placer: &mut impl Placer,
        elsewhere: Elsewhere,
    ) -> Result<NewPlaces<H>, MorphError> {
        assert!(layout.size() > 0, "nodes of no size need no place");
        let out_of_memory = MorphError::OutOfMemory {
            bytes: end_bytes(&placement, node),
        };
        let order = by_offset(&placement, node);
        let offsets = placement.into_offsets().into_iter();
        let places = offsets
            .map(|offset| {
                std::ptr::without_provenance_mut(usize::try_from(offset).unwrap_or(usize::MAX))
            })
            .collect();
        let mut new = NewPlaces {
            home,
            layout,
            order,
            places,
            allocated: 0,
            as_asked: true,
        };
        for at in 0..new.order.len() {
            let v = new.order[at];
            let offset = new.places[v as usize].addr();
            let place = if new.as_asked {
                // SAFETY: the size is not zero, as asserted above.
                unsafe { placer.alloc_at(offset, layout) }
            } else {
                // SAFETY: as above.
                unsafe { home.alloc(layout) }
            };
            if place.is_null() {
                return Err(out_of_memory);
            }
            new.places[v as usize] = place;
            new.allocated = at + 1;
            if new.as_asked && place != placer.address(offset) {
                if elsewhere == Elsewhere::Refuse {
                    return Err(MorphError::NotCcMalloc);
                }
                new.as_asked = false;
            }
        }
        Ok(new)
    }

    /// Whether all places are where they were asked for.
    pub(crate) fn as_asked(&self) -> bool {
        self.as_asked
    }

    /// Where the node will lie.
    pub(crate) fn address(&self, v: u32) -> u64 {
        self.places[v as usize].addr() as u64
    }

    /// By node number: where the node will lie.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        self.places
            .iter()
            .map(|place| place.addr() as u64)
            .collect()
    }

    /// What the lists take, in bytes.
    pub(crate) fn list_bytes(&self) -> u64 {
        (self.order.capacity() * size_of::<u32>() + self.places.capacity() * size_of::<*mut u8>())
            as u64
    }

    /// Moves each node to its new place and frees the old one. Cannot fail, and runs no code of the user's.
    ///
    /// # Panics
    ///
    /// When these places are not for as many nodes of this layout and home.
    pub(crate) fn move_in(mut self, nodes: Nodes<'_, H>) {
        assert_eq!(self.layout, nodes.layout(), "places of another layout");
        assert_eq!(self.home, nodes.home, "places of another allocator");
        assert_eq!(
            self.places.len(),
            nodes.len(),
            "places for another number of nodes"
        );
        assert_eq!(self.allocated, nodes.len(), "not all nodes have a place");
        // From here on the places belong to the links.
        self.allocated = 0;

        let (links, point_to) = (nodes.links(), nodes.point_to());
        for (v, (&link, &place)) in links.iter().zip(&self.places).enumerate() {
            if let Some(&later) = links.get(v + prefetch::AHEAD) {
                prefetch::object(later, size_of::<usize>());
            }
            // SAFETY: the link is one that `point_to` is for, borrowed for 'a, used by nothing since it was shown, and disjoint from all
            // others (invariant of `Nodes`). The place is an allocation of the same home (asserted) for a node's layout that only this list knows.
            // The node's old place is still in `nodes`. The new one is uninitialised until the copy below, and nothing looks through the link
            // before.
            unsafe { point_to(link, place) };
        }
        for pointer in nodes.pointers() {
            // SAFETY: the place is borrowed for 'a and holds a raw pointer, which may be overwritten (invariant of `Nodes`).
            unsafe { pointer.place.write(self.places[pointer.target as usize]) };
        }
        let bytes = self.layout.size();
        for (at, &v) in self.order.iter().enumerate() {
            if let Some(&later) = self.order.get(at + prefetch::AHEAD) {
                prefetch::object(nodes.nodes()[later as usize], bytes);
            }
            let (old, place) = (nodes.nodes()[v as usize], self.places[v as usize]);
            // SAFETY: `old` is an allocation for the layout, which may be read (invariant of `Nodes`), and `place` another one: both are valid for
            // this many bytes, and as different live allocations they do not overlap. A bitwise copy that leaves the source unused is a move.
            unsafe { std::ptr::copy_nonoverlapping(old, place, bytes) };
        }
        for &old in nodes.nodes() {
            // SAFETY: `old` is an allocation of this home for this layout, not of size zero as `allocate` asserts. The link no longer
            // holds it, and its value has moved out.
            unsafe { self.home.free(old, self.layout) };
        }
    }
}

impl<H: Home> Drop for NewPlaces<H> {
    fn drop(&mut self) {
        for &v in &self.order[..self.allocated] {
            // SAFETY: allocated by this home for this layout and owned by this value (invariant).
            unsafe { self.home.free(self.places[v as usize], self.layout) };
        }
    }
}

/// Node numbers by ascending offset. O(n) where nodes lie as densely as layouts put them: they are a stride apart at least, so
/// at most one begins in each stride. O(n log n) where there are large gaps.
fn by_offset(placement: &Placement, node: NodeExtent) -> Vec<u32> {
    const SLOTS_PER_NODE_MAX: usize = 4;
    let stride = node.stride_bytes();
    let slots = usize::try_from(end_bytes(placement, node) / stride + 1).unwrap_or(usize::MAX);
    if slots / SLOTS_PER_NODE_MAX > placement.len() {
        let mut order: Vec<u32> = (0..).take(placement.len()).collect();
        order.sort_unstable_by_key(|&v| placement.offset(v));
        return order;
    }
    let mut node_in = vec![NO_NODE; slots];
    for (v, &offset) in (0..).zip(placement.offsets()) {
        // Below `slots`, as the offset is below the end.
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

/// Where the last node ends, counted from offset 0. O(n).
pub(crate) fn end_bytes(placement: &Placement, node: NodeExtent) -> u64 {
    let last = placement.offsets().iter().max();
    last.map_or(0, |last| last.saturating_add(u64::from(node.bytes)))
}

#[cfg(test)]
mod tests;
