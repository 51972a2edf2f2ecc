//! The search of a tree of linked nodes, written once for all integers and instruction sets.
//!
//! As in [`descend`](super::descend), but a node's child is read from the node, and a node has
//! [`LANE_BYTES`] of lanes. The lines with the children are requested together with the lanes, so
//! that an inner node costs the latency of one miss. The values of a leaf likewise.
//!
//! **Entries of inner nodes.** Inner nodes of large trees are not compared for equality: a query
//! that equals one of their keys goes to the child before it, and ends behind all keys of a leaf.
//! Such a search returns [`Hit::is_at_end`], and the caller looks at the entry that follows the
//! leaf. That saves three instructions per level in all other searches.

use core::ptr::NonNull;

use super::descend::CountLess;
use super::{BATCH, prefetch, prefetch_far, prefetch_lines};
use crate::block::LINE_BYTES;
use crate::narrow::Lane;
use crate::plan::NODE_BYTES;

/// Size of the lanes of a linked node: 32 keys of 8 B.
pub(crate) const LANE_BYTES: usize = 256;

const _: () = assert!(LANE_BYTES.is_multiple_of(NODE_BYTES));

/// Where a node keeps what a search needs beside the lanes, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeMap {
    pub(crate) len_at: usize,
    /// The pointers to children, in inner nodes.
    pub(crate) children_at: usize,
    pub(crate) values_at: usize,
    pub(crate) value_bytes: usize,
    /// Lines of values that a single search prefetches.
    pub(crate) eager_value_lines: usize,
    /// Height of the highest tree that a cache near the core holds.
    pub(crate) near_height_max: usize,
}

/// Lines with pointers to children that are requested together with the lanes: all of them, in
/// nodes of up to 31 children.
pub(crate) const CHILD_LINES: usize = 4;

/// Prefetches `LINES` lines. The constant unrolls the loop, so that the processor sees further into
/// the lookups that follow.
#[inline(always)]
pub(crate) fn prefetch_fixed<const LINES: usize>(start: *const u8) {
    for line in 0..LINES {
        prefetch(start.wrapping_add(line * LINE_BYTES));
    }
}

/// Where a search ended. Two words, so that it is returned in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    /// The leaf, or the node of the entry. (During a batch, the node that the search has reached.)
    pub(crate) leaf: NonNull<u8>,
    /// Number of lanes of the leaf that are less than the query; [`FOUND`] or [`AT_END`] may be
    /// added.
    slot: usize,
}

/// A slot with this bit is that of the entry.
const FOUND: usize = 1 << 16;

/// A slot with this bit may be behind all entries of the leaf, and the entry the one that follows.
const AT_END: usize = 1 << 17;

impl Hit {
    /// A search that begins at a node.
    pub(crate) const fn at(node: NonNull<u8>) -> Hit {
        Hit {
            leaf: node,
            slot: 0,
        }
    }

    /// The slot of the entry, or of the gap where it would be.
    #[inline(always)]
    pub(crate) fn slot(self) -> usize {
        self.slot % FOUND
    }

    /// Whether the entry is there.
    #[inline(always)]
    pub(crate) fn is_found(self) -> bool {
        self.slot & FOUND != 0
    }

    /// Whether the slot may be the one behind all entries of the leaf.
    #[inline(always)]
    pub(crate) fn is_at_end(self) -> bool {
        self.slot & AT_END != 0
    }
}

/// Number of lanes in the [`LANE_BYTES`] at `node` that are less than `query`.
///
/// # Safety
/// - `node` is a multiple of the line size, and [`LANE_BYTES`] initialised bytes can be read there;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
pub(super) unsafe fn count_lanes<L: Copy, Count: CountLess<L>>(
    node: NonNull<u8>,
    query: L,
) -> usize {
    let mut count = 0;
    for part in 0..LANE_BYTES / NODE_BYTES {
        // SAFETY: each part lies within the lanes, on a line boundary.
        count += unsafe { Count::count_less(node.add(part * NODE_BYTES).cast(), query) };
    }
    count
}

/// The last step of a search, in a leaf.
///
/// # Safety
/// As for [`find`]; `leaf` is one of the leaves.
#[inline(always)]
unsafe fn find_in_leaf<L: Lane, Count: CountLess<L>>(
    leaf: NonNull<u8>,
    map: &NodeMap,
    query: L,
) -> Hit {
    // SAFETY: lanes lie at the start of a node and are initialised.
    let slot = unsafe { count_lanes::<L, Count>(leaf, query) };
    if slot == LANE_BYTES / size_of::<L>() {
        return Hit {
            leaf,
            slot: slot + AT_END,
        };
    }
    // SAFETY: the slot is that of an initialised lane.
    let lane = unsafe { leaf.cast::<L>().add(slot).read() };
    let mut flag = 0;
    if lane == query {
        flag = FOUND;
    }
    if lane == L::LARGEST {
        // Filler, or an entry with the largest key: the length tells.
        // SAFETY: the length is initialised.
        let len = usize::from(unsafe { leaf.add(map.len_at).cast::<u16>().read() });
        if slot >= len {
            flag = AT_END;
        }
    }
    Hit {
        leaf,
        slot: slot + flag,
    }
}

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

/// [`find`] in a tree of nodes that are near: lines are cheap, but not so cheap that any should be
/// requested that may not be read, nor read where few would do. (Among 16 maps of 1000 keys a
/// search takes 14.0 ns so, 18.8 with all that `find` does.)
///
/// Here inner nodes *are* compared for equality: with three levels, one search in twenty ends at
/// their entries, and the detour of a search that ends behind a leaf costs more.
///
/// # Safety
/// As for [`find`].
#[inline(always)]
unsafe fn find_near<L: Lane, Count: CountLess<L>>(
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    query: L,
) -> Hit {
    const { assert!((LANE_BYTES / size_of::<L>()).is_power_of_two()) };
    let mut node = root;
    for level in 0..height {
        // SAFETY: `node` is a node of this level, whose lanes and length are initialised. Lanes
        // without an entry hold the largest integer, which is less than no query: both counts are
        // at most the length, up to which there are children. `slot % lanes` is within the lanes.
        unsafe {
            // The root may have few entries, and all searches pass it.
            let is_sparse = level == 0
                && usize::from(node.add(map.len_at).cast::<u16>().read())
                    <= NODE_BYTES / size_of::<L>();
            let slot = if is_sparse {
                Count::count_less(node.cast(), query)
            } else {
                count_lanes::<L, Count>(node, query)
            };
            let lane = node.cast::<L>().add(slot % (LANE_BYTES / size_of::<L>()));
            // (The largest key may be filler.)
            if lane.read() == query && query != L::LARGEST {
                let slot = slot + FOUND;
                return Hit { leaf: node, slot };
            }
            node = child(node, map, slot);
        }
    }
    // SAFETY: after `height` levels the node is a leaf.
    unsafe { find_in_leaf::<L, Count>(node, map, query) }
}

/// Searches for `query` from a root down.
///
/// # Safety
/// - `root` is a node of level `height` whose keys are integers of this type, that keeps the node
///   invariant (see `tree::node`) with all below it, laid out after `map`;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
pub(super) unsafe fn find<L: Lane, Count: CountLess<L>>(
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    query: L,
) -> Hit {
    if height <= map.near_height_max {
        // SAFETY: the caller promises the root, what is below it, and the instructions.
        return unsafe { find_near::<L, Count>(root, height, map, query) };
    }
    let mut node = root;
    for _ in 0..height {
        prefetch_fixed::<CHILD_LINES>(node.as_ptr().wrapping_add(map.children_at));
        // SAFETY: lanes lie at the start of a node and are initialised. Those without an entry hold
        // the largest integer, which is less than no query: the count is at most the length, and an
        // inner node has children up to its length.
        node = unsafe {
            let slot = count_lanes::<L, Count>(node, query);
            child(node, map, slot)
        };
    }
    // A loop at run time, unlike the children: if all requests were issued at once, the lanes would
    // come later. (Dependent lookups then took 250 ns instead of 218.)
    prefetch_lines(
        node.as_ptr().wrapping_add(map.values_at),
        map.eager_value_lines,
    );
    // SAFETY: after `height` levels the node is a leaf.
    unsafe { find_in_leaf::<L, Count>(node, map, query) }
}

/// Nodes of this level and above are likely cached: a batch does not prefetch them.
const CACHED_LEVEL_MIN: usize = 2;

/// One step down of all queries of a batch, from inner nodes to children, which `request`
/// prefetches.
///
/// # Safety
/// As for [`find`]; the hits are at inner nodes of one level.
#[inline(always)]
unsafe fn step_many<L: Lane, Count: CountLess<L>>(
    map: &NodeMap,
    queries: &[L],
    hits: &mut [Hit],
    request: impl Fn(*const u8),
) {
    for (hit, &query) in hits.iter_mut().zip(queries) {
        // SAFETY: the caller promises that the hit is at an inner node. Its lanes are initialised;
        // fillers are less than no query, so the count is at most the length, up to which there are
        // children.
        hit.leaf = unsafe {
            let slot = count_lanes::<L, Count>(hit.leaf, query);
            child(hit.leaf, map, slot)
        };
        request(hit.leaf.as_ptr());
    }
}

/// Searches for each of `queries`, level by level.
///
/// # Safety
/// As for [`find`]; there are at most [`BATCH`] queries, and as many hits.
#[inline(always)]
pub(super) unsafe fn find_many<L: Lane, Count: CountLess<L>>(
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    queries: &[L],
    hits: &mut [Hit],
) {
    debug_assert!(
        queries.len() == hits.len() && hits.len() <= BATCH,
        "{} queries, {} hits",
        queries.len(),
        hits.len()
    );
    hits.fill(Hit::at(root));
    for level in (0..height).rev() {
        if level >= CACHED_LEVEL_MIN {
            // SAFETY: the tree is as the caller promises; after the steps so far the hits are at
            // nodes of level `level + 1`, which are inner nodes.
            unsafe { step_many::<L, Count>(map, queries, hits, |_| ()) };
        } else if level > 0 {
            // SAFETY: as the steps before led one level down each, the hits are at nodes of level
            // `level + 1`, which are inner nodes.
            unsafe {
                step_many::<L, Count>(map, queries, hits, |node| {
                    prefetch_fixed::<{ LANE_BYTES / LINE_BYTES }>(node);
                });
            }
        } else {
            // SAFETY: all steps but this one are done, so the hits are at nodes of level 1, which
            // are inner nodes.
            unsafe {
                step_many::<L, Count>(map, queries, hits, |leaf| {
                    // Into the second-level cache: 34.3 ns a query instead of 35.5 among 2 million
                    // keys.
                    for line in 0..LANE_BYTES / LINE_BYTES {
                        prefetch_far(leaf.wrapping_add(line * LINE_BYTES));
                    }
                });
            }
        }
    }
    for (hit, &query) in hits.iter_mut().zip(queries) {
        // SAFETY: after `height` steps down from the root the hit is at a leaf.
        *hit = unsafe { find_in_leaf::<L, Count>(hit.leaf, map, query) };
        prefetch_far(
            hit.leaf
                .as_ptr()
                .wrapping_add(map.values_at + hit.slot() * map.value_bytes),
        );
    }
}
