//! The way down a tree of linked nodes, written once for all integers and instruction sets.
//!
//! As in [`descend`](super::descend), but a node's child is read from the node rather than computed, a node has [`LANE_BYTES`] of lanes, and the entry may
//! be found on the way. So that an inner node costs the latency of one miss although two of its parts are needed, the lines with its children are asked for
//! together with its lanes. A leaf's values are treated likewise.

use core::ptr::NonNull;

use super::descend::CountLess;
use super::{BATCH, prefetch, prefetch_lines};
use crate::block::LINE_BYTES;
use crate::plan::NODE_BYTES;
use crate::tree::shape::LANE_BYTES;

const _: () = assert!(LANE_BYTES.is_multiple_of(NODE_BYTES));

/// Where a node keeps what a search needs beside the lanes, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeMap {
    /// The number of entries, a `u16`.
    pub(crate) len_at: usize,
    /// The pointers to children, in inner nodes.
    pub(crate) children_at: usize,
    /// Lines that the pointers lie in.
    pub(crate) child_lines: usize,
    /// The values.
    pub(crate) values_at: usize,
    /// Size of a value.
    pub(crate) value_bytes: usize,
    /// Lines of values that a single search asks for before it knows the slot.
    pub(crate) eager_value_lines: usize,
}

/// Where a search ended. Two words, so that it is returned in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    /// The node: of the entry if it was found, else a leaf.
    pub(crate) node: NonNull<u8>,
    /// Number of lanes of the node that are less than the query; [`FOUND`] is added if the entry is there.
    slot: usize,
}

/// A slot with this bit is that of the entry.
const FOUND: usize = 1 << 16;

impl Hit {
    /// A search that is to begin at a node.
    pub(crate) const fn at(node: NonNull<u8>) -> Hit {
        Hit { node, slot: 0 }
    }

    /// The slot of the entry, or of the gap where it would be.
    #[inline(always)]
    pub(crate) fn slot(self) -> usize {
        self.slot % FOUND
    }

    /// Whether the entry is there.
    #[inline(always)]
    pub(crate) fn is_found(self) -> bool {
        self.slot >= FOUND
    }
}

/// Number of lanes in the [`LANE_BYTES`] at `node` that are less than `query`.
///
/// # Safety
/// - `node` is a multiple of the line size, and [`LANE_BYTES`] initialised bytes can be read there;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
pub(super) unsafe fn count_lanes<Lane: Copy, Count: CountLess<Lane>>(
    node: NonNull<u8>,
    query: Lane,
) -> usize {
    let mut count = 0;
    for part in 0..LANE_BYTES / NODE_BYTES {
        // SAFETY: each part lies within the lanes, on a line boundary.
        count += unsafe { Count::count_less(node.add(part * NODE_BYTES).cast(), query) };
    }
    count
}

/// Whether the lane `slot` of a node belongs to an entry with the key `query`.
///
/// # Safety
/// As for [`find`]; `node` is one of the nodes.
#[inline(always)]
unsafe fn is_entry<Lane: Copy + PartialEq>(
    node: NonNull<u8>,
    map: &NodeMap,
    slot: usize,
    query: Lane,
) -> bool {
    // The length is only read when the lane is equal: it lies in a line of its own.
    // SAFETY: a slot below the number of lanes is that of an initialised lane; the length is initialised.
    slot < LANE_BYTES / size_of::<Lane>()
        && unsafe { node.cast::<Lane>().add(slot).read() } == query
        && slot < usize::from(unsafe { node.add(map.len_at).cast::<u16>().read() })
}

/// The child of a node.
///
/// # Safety
/// As for [`find`]; `node` is one of the inner nodes, and `slot` at most its length.
#[inline(always)]
unsafe fn child(node: NonNull<u8>, map: &NodeMap, slot: usize) -> NonNull<u8> {
    // SAFETY: children up to the length are initialised.
    unsafe {
        node.add(map.children_at)
            .cast::<NonNull<u8>>()
            .add(slot)
            .read()
    }
}

/// Searches for `query` from a root down.
///
/// # Safety
/// - `root` is a node of level `height` whose keys are integers of this type, that keeps the node invariant (see `tree::node`) with all below it, laid out after `map`;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
pub(super) unsafe fn find<Lane: Copy + PartialEq, Count: CountLess<Lane>>(
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    query: Lane,
) -> Hit {
    let mut node = root;
    for _ in 0..height {
        prefetch_lines(node.as_ptr().wrapping_add(map.children_at), map.child_lines);
        // SAFETY: lanes lie at the start of a node and are initialised. Those without an entry hold the largest integer, which is less than no query, so that
        // the count is at most the node's length, whatever the others hold.
        let slot = unsafe { count_lanes::<Lane, Count>(node, query) };
        // SAFETY: passed on.
        if unsafe { is_entry(node, map, slot, query) } {
            return Hit {
                node,
                slot: slot + FOUND,
            };
        }
        // SAFETY: an inner node has children up to its length, of which `slot` is one.
        node = unsafe { child(node, map, slot) };
    }
    prefetch_lines(
        node.as_ptr().wrapping_add(map.values_at),
        map.eager_value_lines,
    );
    // SAFETY: as above.
    let slot = unsafe { count_lanes::<Lane, Count>(node, query) };
    // SAFETY: passed on.
    let found = unsafe { is_entry(node, map, slot, query) };
    Hit {
        node,
        slot: slot + if found { FOUND } else { 0 },
    }
}

/// Searches for each of `queries`, which go down level by level.
///
/// # Safety
/// As for [`find`]; there are at most [`BATCH`] queries, and as many hits.
#[inline(always)]
pub(super) unsafe fn find_many<Lane: Copy + PartialEq, Count: CountLess<Lane>>(
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    queries: &[Lane],
    hits: &mut [Hit],
) {
    debug_assert!(
        queries.len() == hits.len() && hits.len() <= BATCH,
        "{} queries, {} hits",
        queries.len(),
        hits.len()
    );
    hits.fill(Hit::at(root));
    for _ in 0..height {
        for (hit, &query) in hits.iter_mut().zip(queries) {
            if hit.is_found() {
                continue;
            }
            // SAFETY: as in `find`.
            let slot = unsafe { count_lanes::<Lane, Count>(hit.node, query) };
            // SAFETY: passed on.
            if unsafe { is_entry(hit.node, map, slot, query) } {
                hit.slot = slot + FOUND;
                continue;
            }
            // SAFETY: as in `find`.
            hit.node = unsafe { child(hit.node, map, slot) };
            prefetch_lines(hit.node.as_ptr(), LANE_BYTES / LINE_BYTES);
        }
    }
    for (hit, &query) in hits.iter_mut().zip(queries) {
        if !hit.is_found() {
            // SAFETY: as in `find`.
            let slot = unsafe { count_lanes::<Lane, Count>(hit.node, query) };
            // SAFETY: passed on.
            let found = unsafe { is_entry(hit.node, map, slot, query) };
            hit.slot = slot + if found { FOUND } else { 0 };
        }
        if hit.is_found() {
            prefetch(
                hit.node
                    .as_ptr()
                    .wrapping_add(map.values_at + hit.slot() * map.value_bytes),
            );
        }
    }
}
