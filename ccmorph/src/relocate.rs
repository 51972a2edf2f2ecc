//! Phase 3: get the new places, then move into them.
//!
//! Getting the places can fail and is undone when it does; the structure has not been touched by
//! then. Moving cannot fail:
//!
//! 1. each link and pointer back that lies *outside* of the node which showed it gets the address
//!    that its node will have: `*link = new[v]`;
//! 2. each node v, parents first, is copied to its new place, where the links and pointers that lie
//!    in it get the addresses of their nodes;
//! 3. the old places are freed.
//!
//! Where nodes are not in level order, or of several types, step 1 writes all links. Nodes too
//! large for a place stay, and their links keep their address.
//!
//! # The aliasing argument
//!
//! A box may only be used through pointers derived from it, and a direct use ends those. Call the
//! pointer that a link holds p(v). The reference given to the traversal derives from p(v), and the
//! links inside v from that reference. A link is read when it is collected, and written in step 1
//! if it is outside of v. Step 2 reads v through p(v), which ends all that was derived from it; of
//! the links inside, only their offset is used afterwards, and they are written in the copy,
//! through the allocator's pointer. Step 3 frees p(v) with its allocator and layout. The new
//! pointers are stored in links only, so each link again holds the sole pointer to its node.

mod levels;

use crate::collect::Nodes;
use crate::error::MorphError;
use crate::link::{Home, Placer};
use crate::nearness::Distances;
use crate::prefetch;

/// New places for nodes; freed when dropped, unless the nodes [move in](NewPlaces::move_in).
///
/// Invariants: `order` is empty, which stands for all numbers in turn, or names each node once. For
/// the first `allocated` nodes of it, `places[v]` is an uninitialised allocation of `nodes.home`
/// for the node's layout, owned by this value, and different for each `v`; or the place of `v`, if
/// it stays. The address of any other place is the offset for its node. Outside of
/// [`allocate`](NewPlaces::allocate), all are allocated.
#[derive(Debug)]
pub(crate) struct NewPlaces<'a, H: Home> {
    nodes: Nodes<'a, H>,
    order: Vec<u32>,
    places: Vec<*mut u8>,
    allocated: usize,
    as_asked: bool,
}

impl<'a, H: Home> NewPlaces<'a, H> {
    /// Allocates a place for each node, below `room_bytes`; those that stay keep theirs.
    ///
    /// A place elsewhere than at its offset is an error, unless `accepts_elsewhere`: the rest is
    /// then allocated one after the other in the order of the layout. The list of offsets becomes
    /// that of the places, as touching fresh memory is expensive.
    ///
    /// # Safety
    /// `placer` allocates what `nodes.home` frees.
    pub(crate) unsafe fn allocate(
        nodes: Nodes<'a, H>,
        (offsets, room_bytes): (Vec<u64>, u64),
        stride_bytes: u64,
        placer: &mut impl Placer,
        accepts_elsewhere: bool,
    ) -> Result<NewPlaces<'a, H>, MorphError> {
        let (layout, is_one_type) = (nodes.layout(), !nodes.are_of_kinds());
        let has_size = !is_one_type || layout.size() > 0;
        assert!(has_size, "nodes of no size need no place");
        assert_eq!(offsets.len(), nodes.len(), "an offset for each node");
        let place = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
        let mut new = NewPlaces {
            nodes,
            order: Vec::new(),
            places: (offsets.into_iter())
                .map(|offset| std::ptr::without_provenance_mut(place(offset)))
                .collect(),
            allocated: 0,
            as_asked: true,
        };
        let count = new.places.len();
        if !is_one_type {
            new.order = by_offset(&new.places);
        } else if placer.can_fill()
            && is_packed(&new.places, stride_bytes)
            // SAFETY: the size is not zero (asserted); the offsets are packed.
            && unsafe { placer.fill(layout, &mut new.places) }
        {
            new.allocated = count;
        } else {
            new.allocated = placer.alloc_each(layout, &mut new.places);
        }
        // One by one, as the first may tell why there are no more. Asking for all again could take
        // as long each time: a wrapper of the allocator may never give them together.
        while new.allocated < count {
            let v = new.nth(new.allocated);
            let Some(layout) = new.nodes.layout_of(v) else {
                new.places[v] = new.nodes.found().shown[v].node;
                new.allocated += 1;
                continue;
            };
            let offset = new.places[v].addr();
            let place = if new.as_asked {
                placer.alloc_at(offset, layout)
            } else {
                // SAFETY: the size is not zero: asserted, or the invariant of `Nodes`.
                unsafe { new.nodes.home.alloc(layout) }
            };
            if place.is_null() {
                return Err(MorphError::OutOfMemory { bytes: room_bytes });
            }
            let is_elsewhere = new.as_asked && place != placer.address(offset);
            if is_elsewhere && accepts_elsewhere {
                new.as_asked = false;
                if new.allocated == 0 && is_one_type {
                    // Nothing lies where it should, so only the order of the layout is left. This
                    // place is the first.
                    new.order = by_offset(&new.places);
                }
            }
            let v = new.nth(new.allocated);
            new.places[v] = place;
            new.allocated += 1;
            if is_elsewhere && !accepts_elsewhere {
                return Err(MorphError::NotCcMalloc);
            }
        }
        Ok(new)
    }

    pub(crate) fn nodes(&self) -> &Nodes<'a, H> {
        &self.nodes
    }

    /// The node whose place is allocated after `count` others.
    fn nth(&self, count: usize) -> usize {
        self.order.get(count).map_or(count, |&v| v as usize)
    }

    /// Whether all places are where they were asked for.
    pub(crate) fn as_asked(&self) -> bool {
        self.as_asked
    }

    /// Where the node will lie.
    pub(crate) fn address(&self, v: usize) -> u64 {
        self.places[v].addr() as u64
    }

    /// What the lists take, in bytes.
    pub(crate) fn list_bytes(&self) -> u64 {
        (size_of_val(&self.order[..]) + size_of_val(&self.places[..])) as u64
    }

    /// Moves each node to its new place and frees the old one. Cannot fail, and runs no user code.
    /// Returns the distances of parents and children before and after.
    pub(crate) fn move_in(mut self) -> (Distances, Distances) {
        // From here on the places belong to the links.
        self.allocated = 0;
        let places = std::mem::take(&mut self.places);
        let nodes = &self.nodes;
        write_outside(nodes, &places);
        let distances = if nodes.are_in_levels() {
            // SAFETY: all three are those of nodes in levels. The places are allocations of their
            // home for their layout that only this list knows (invariant).
            unsafe { levels::copy(nodes.found(), nodes.layout(), nodes.link(), &places) }
        } else {
            copy_all(nodes, &places)
        };
        let old = nodes.found().shown.iter().map(|shown| shown.node);
        if nodes.are_of_kinds() {
            for (v, object) in old.enumerate() {
                if let Some(layout) = nodes.layout_of(v) {
                    // SAFETY: an allocation of this home for this layout, which is not empty. No
                    // link holds it any longer, and the value has moved out.
                    unsafe { nodes.home.free(object, layout) };
                }
            }
        } else {
            // SAFETY: each is an allocation of this home for this layout, whose size is not zero
            // (asserted in `allocate`). No link holds it any longer, and the value has moved out.
            unsafe { nodes.home.free_each(old, nodes.layout()) };
        }
        distances
    }
}

impl<H: Home> Drop for NewPlaces<'_, H> {
    fn drop(&mut self) {
        for v in (0..self.allocated).map(|count| self.nth(count)) {
            if let Some(layout) = self.nodes.layout_of(v) {
                // SAFETY: allocated by this home for this layout and owned by this value
                // (invariant).
                unsafe { self.nodes.home.free(self.places[v], layout) };
            }
        }
    }
}

/// Writes the links and pointers that do not lie in the node that showed them.
fn write_outside<H: Home>(nodes: &Nodes<'_, H>, places: &[*mut u8]) {
    let found = nodes.found();
    let write = |v: usize, later: Option<usize>| {
        if let Some(later) = later.and_then(|later| found.shown.get(later)) {
            prefetch::object(later.link, nodes.link().bytes);
        }
        // SAFETY: `point_to` is for this link, which is borrowed for 'a, unused since it was shown,
        // and disjoint from all others (invariant of `Nodes`). The place is an allocation of the
        // same home (invariant of `NewPlaces`) for the node's layout that only this list knows; it
        // is initialised before anything looks through the link. Or the node stays, and this is the
        // place that the link holds.
        unsafe { nodes.link_of(v).point_to(found.shown[v].link, places[v]) };
    };
    if nodes.are_in_levels() {
        for (at, &v) in found.outside.iter().enumerate() {
            let later = found.outside.get(at + prefetch::AHEAD);
            write(v as usize, later.map(|&later| later as usize));
        }
    } else {
        (0..nodes.len()).for_each(|v| write(v, Some(v + prefetch::AHEAD)));
    }
    for pointer in &found.pointers {
        // SAFETY: the place is borrowed for 'a and holds a raw pointer, which may be overwritten
        // (invariant of `Nodes`).
        unsafe { pointer.place.write(places[pointer.target as usize]) };
    }
}

/// Copies all nodes to their new places. Links and pointers have been written.
fn copy_all<H: Home>(nodes: &Nodes<'_, H>, places: &[*mut u8]) -> (Distances, Distances) {
    let found = nodes.found();
    for (v, &to) in places.iter().enumerate() {
        let later = v + prefetch::AHEAD;
        if let (Some(shown), Some(&to)) = (found.shown.get(later), places.get(later)) {
            prefetch::object(shown.node, nodes.layout().size());
            prefetch::object(to, nodes.layout().size());
        }
        let bytes = nodes.layout_of(v).map_or(0, |layout| layout.size());
        // SAFETY: the old place may be read (invariant of `Nodes`), and `to` is another allocation:
        // both are valid for this many bytes and do not overlap. Nothing is copied of a node that
        // stays. A bitwise copy that leaves the source unused is a move.
        unsafe { found.shown[v].node.copy_to_nonoverlapping(to, bytes) };
    }
    (
        Distances::of(&found.parents, |v| nodes.address(v)),
        Distances::of(&found.parents, |v| places[v].addr() as u64),
    )
}

/// Whether the addresses of `places` are packed offsets of objects of `stride_bytes`, in any order:
/// each at a multiple of the stride from the begin of its segment, each segment but the last full.
/// O(n).
fn is_packed(places: &[*mut u8], stride_bytes: u64) -> bool {
    const SEGMENT_BYTES: u64 = ccmodel::Layout::SEGMENT_BYTES;
    if !(1..=SEGMENT_BYTES).contains(&stride_bytes) {
        return false;
    }
    let (nodes, in_segment) = (places.len() as u64, SEGMENT_BYTES / stride_bytes);
    // Exact where both factors are below 2^16, and dividing costs more than all the rest.
    let inverse = (1u64 << 32) / stride_bytes + 1;
    let mut seen = vec![0u64; places.len().div_ceil(64)];
    places.iter().all(|place| {
        let offset = place.addr() as u64;
        let (segment, rest) = (offset / SEGMENT_BYTES, offset % SEGMENT_BYTES);
        let place = (rest * inverse) >> 32;
        // Below 2^64, as no segment holds more nodes than bytes.
        let index = segment * in_segment + place;
        if index >= nodes || place >= in_segment || place * stride_bytes != rest {
            return false;
        }
        let word = usize::try_from(index / 64).ok();
        let Some(word) = word.and_then(|word| seen.get_mut(word)) else {
            return false;
        };
        let bit = 1 << (index % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    })
}

/// All node numbers by ascending offset, the addresses of `places`.
fn by_offset(places: &[*mut u8]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(places.len()).collect();
    order.sort_unstable_by_key(|&v| places[v as usize].addr());
    order
}

#[cfg(test)]
mod tests;
