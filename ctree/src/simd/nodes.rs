//! The way down a tree of linked nodes, written once for all integers and instruction sets.
//!
//! As in [`descend`](super::descend), but a node's child is read from the node rather than
//! computed, and a node has [`LANE_BYTES`] of lanes. So that an inner node costs the latency of one
//! miss although two of its parts are needed, the lines with its children are asked for together
//! with its lanes. A leaf's values are treated likewise.
//!
//! **Entries of inner nodes.** On the way down nothing is compared for equality: a query that
//! equals a key of an inner node goes to the child before it, and ends there behind all keys. So a
//! search that ends at the end of a leaf says that it does not know yet ([`Hit::is_at_end`]), and
//! whoever knows the tree looks at the entry that follows the leaf. That happens once for each
//! leaf's worth of entries, and takes three instructions a level off all other searches.

use core::ptr::NonNull;

use super::descend::CountLess;
use super::{BATCH, prefetch, prefetch_far, prefetch_lines};
use crate::block::LINE_BYTES;
use crate::plan::NODE_BYTES;

/// Size of the lanes of a linked node: 32 keys of 8 B.
pub(crate) const LANE_BYTES: usize = 256;

const _: () = assert!(LANE_BYTES.is_multiple_of(NODE_BYTES));

/// Where a node keeps what a search needs beside the lanes, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeMap {
    /// The number of entries, a `u16`.
    pub(crate) len_at: usize,
    /// The pointers to children, in inner nodes.
    pub(crate) children_at: usize,
    /// The values.
    pub(crate) values_at: usize,
    /// Size of a value.
    pub(crate) value_bytes: usize,
    /// Lines of values that a single search asks for before it knows the slot.
    pub(crate) eager_value_lines: usize,
}

/// Lines with pointers to children that are asked for together with the lanes: all of them, in
/// nodes of up to 31 children.
pub(crate) const CHILD_LINES: usize = 4;

/// Asks for `LINES` lines. A number that is known to the compiler: with a loop that counts to a
/// number in memory, the processor sees less far ahead into the lookups that follow.
#[inline(always)]
pub(crate) fn prefetch_fixed<const LINES: usize>(start: *const u8) {
    for line in 0..LINES {
        prefetch(start.wrapping_add(line * LINE_BYTES));
    }
}

/// Where a search ended. Two words, so that it is returned in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    /// The leaf. (While a batch is on its way, the node that the search has come to.)
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
    /// A search that is to begin at a node.
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

/// Integers that know their largest, which is what lanes without an entry hold.
pub(crate) trait Filler: Copy + PartialEq {
    /// The largest.
    const FILLER: Self;
}

macro_rules! impl_filler {
    ($($lane:ty)*) => {$(
        impl Filler for $lane {
            const FILLER: Self = <$lane>::MAX;
        }
    )*};
}

impl_filler!(u8 u16 u32 u64 i8 i16 i32 i64);

/// The last step of a search, in a leaf.
///
/// # Safety
/// As for [`find`]; `leaf` is one of the leaves.
#[inline(always)]
unsafe fn find_in_leaf<Lane: Filler, Count: CountLess<Lane>>(
    leaf: NonNull<u8>,
    map: &NodeMap,
    query: Lane,
) -> Hit {
    // SAFETY: lanes lie at the start of a node and are initialised.
    let slot = unsafe { count_lanes::<Lane, Count>(leaf, query) };
    if slot == LANE_BYTES / size_of::<Lane>() {
        return Hit {
            leaf,
            slot: slot + AT_END,
        };
    }
    // SAFETY: the slot is that of an initialised lane.
    let lane = unsafe { leaf.cast::<Lane>().add(slot).read() };
    let mut flag = 0;
    if lane == query {
        flag = FOUND;
    }
    if lane == Lane::FILLER {
        // Filler, or an entry with the largest key: the length tells. It lies in a line of its own,
        // and is not read otherwise.
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
/// - `root` is a node of level `height` whose keys are integers of this type, that keeps the node
///   invariant (see `tree::node`) with all below it, laid out after `map`;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
pub(super) unsafe fn find<Lane: Filler, Count: CountLess<Lane>>(
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    query: Lane,
) -> Hit {
    let mut node = root;
    for _ in 0..height {
        prefetch_fixed::<CHILD_LINES>(node.as_ptr().wrapping_add(map.children_at));
        // SAFETY: lanes lie at the start of a node and are initialised. Those without an entry hold
        // the largest integer, which is less than no query, so that the count is at most the node's
        // length, whatever the others hold. An inner node has children up to its length, of which
        // `slot` is one.
        node = unsafe {
            let slot = count_lanes::<Lane, Count>(node, query);
            child(node, map, slot)
        };
    }
    // Counted out at run time, unlike the lines with children: when these requests are issued all
    // at once, the lanes, which are waited for, come later. (A lookup that waited for the one
    // before took 250 ns instead of 218; lanes asked for first made up for that, but took 8 ns from
    // lookups that do not wait.)
    prefetch_lines(
        node.as_ptr().wrapping_add(map.values_at),
        map.eager_value_lines,
    );
    // SAFETY: after `height` levels the node is a leaf.
    unsafe { find_in_leaf::<Lane, Count>(node, map, query) }
}

/// Nodes of this level and above are few enough to be in a cache: a batch does not ask for them
/// ahead of time.
const CACHED_LEVEL_MIN: usize = 2;

/// One step down of all queries of a batch: from the inner node that each has come to, to its
/// child, which `request` asks for.
///
/// # Safety
/// As for [`find`]; the hits are at inner nodes of one level.
#[inline(always)]
unsafe fn step_many<Lane: Filler, Count: CountLess<Lane>>(
    map: &NodeMap,
    queries: &[Lane],
    hits: &mut [Hit],
    request: impl Fn(*const u8),
) {
    for (hit, &query) in hits.iter_mut().zip(queries) {
        // SAFETY: as in `find`.
        hit.leaf = unsafe {
            let slot = count_lanes::<Lane, Count>(hit.leaf, query);
            child(hit.leaf, map, slot)
        };
        request(hit.leaf.as_ptr());
    }
}

/// Searches for each of `queries`, which go down level by level.
///
/// # Safety
/// As for [`find`]; there are at most [`BATCH`] queries, and as many hits.
#[inline(always)]
pub(super) unsafe fn find_many<Lane: Filler, Count: CountLess<Lane>>(
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
    for level in (0..height).rev() {
        if level >= CACHED_LEVEL_MIN {
            // SAFETY: passed on: these are the levels in turn.
            unsafe { step_many::<Lane, Count>(map, queries, hits, |_| ()) };
        } else if level > 0 {
            // SAFETY: the same.
            unsafe {
                step_many::<Lane, Count>(map, queries, hits, |node| {
                    prefetch_fixed::<{ LANE_BYTES / LINE_BYTES }>(node);
                });
            }
        } else {
            // SAFETY: the same.
            unsafe {
                step_many::<Lane, Count>(map, queries, hits, |leaf| {
                    // Not into the nearest cache: in one run among 2 million keys, 34.3 ns a query
                    // instead of 35.5.
                    for line in 0..LANE_BYTES / LINE_BYTES {
                        prefetch_far(leaf.wrapping_add(line * LINE_BYTES));
                    }
                });
            }
        }
    }
    for (hit, &query) in hits.iter_mut().zip(queries) {
        // SAFETY: as in `find`.
        *hit = unsafe { find_in_leaf::<Lane, Count>(hit.leaf, map, query) };
        prefetch_far(
            hit.leaf
                .as_ptr()
                .wrapping_add(map.values_at + hit.slot() * map.value_bytes),
        );
    }
}
