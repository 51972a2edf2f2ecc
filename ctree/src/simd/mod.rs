//! Search among integer lanes, by the widest vectors that the machine has.
//!
//! A search takes the number of lanes of a node that are less than the query: the child, or in a
//! leaf the rank. A count is two (AVX-512) or four (AVX2) vector comparisons and a population
//! count. No branch depends on a key: nothing is mispredicted, and the processor runs ahead into
//! the next search. Both lines of a node are requested at once.
//!
//! A batch descends level by level: each query prefetches its next node, so that the misses
//! overlap.
//!
//! [`Isa::detect`] finds the instructions of the machine when a tree is built. A whole search or
//! batch then runs inside one function compiled for them, whatever flags the program was built
//! with. Tests compare the portable path with the others. Only this module knows architectures.

#[macro_use]
mod isa;
mod descend;
pub(crate) mod heads;
#[cfg(all(feature = "mmap", unix, target_pointer_width = "64"))]
mod leaves;
mod nodes;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

#[cfg(all(feature = "mmap", unix, target_pointer_width = "64"))]
pub(crate) use leaves::count_in_leaves;

use core::ptr::{self, NonNull};

use crate::block::LINE_BYTES;
use crate::lane::{LaneKind, by_lane};
use crate::narrow;
use crate::plan::{NODE_BYTES, Plan};

pub(crate) use isa::Isa;
pub(crate) use nodes::{CHILD_LINES, Hit, LANE_BYTES, NodeMap, prefetch_fixed};

/// Queries in a batch: a few times the number of misses that a core can have outstanding (about
/// twenty).
pub(crate) const BATCH: usize = 64;

/// The searches for one type of integer.
///
/// The methods are ordinary functions that are compiled once in this crate: all maps of a program
/// share them, whatever their values.
trait Search: Sized {
    /// # Safety
    /// As for [`place`], with lanes of this type.
    unsafe fn place(
        isa: Isa,
        base: NonNull<u8>,
        plan: &Plan,
        eager: &EagerValues,
        query: Self,
    ) -> Place;

    /// # Safety
    /// As for [`lower_bound_many`], with lanes of this type.
    unsafe fn lower_bound_many(
        isa: Isa,
        base: NonNull<u8>,
        plan: &Plan,
        eager: &EagerValues,
        queries: &[Self],
        ranks: &mut [usize],
    );

    /// # Safety
    /// As for [`find`], with lanes of this type.
    unsafe fn find(isa: Isa, root: NonNull<u8>, height: usize, map: &NodeMap, query: Self) -> Hit;

    /// # Safety
    /// As for [`find_many`], with lanes of this type.
    unsafe fn find_many(
        isa: Isa,
        root: NonNull<u8>,
        height: usize,
        map: &NodeMap,
        queries: &[Self],
        hits: &mut [Hit],
    );

    /// # Safety
    /// As for [`count_in_leaves`], with lanes of this type.
    #[cfg(all(feature = "mmap", unix, target_pointer_width = "64"))]
    unsafe fn count_in_leaves(
        isa: Isa,
        leaves: NonNull<u8>,
        leaf_bytes: usize,
        queries: &[Self],
        ranks: &mut [usize],
    );
}

macro_rules! impl_search {
    ($($lane:ty)*) => {$(
        impl Search for $lane {
            entry! {
                fn place(
                    base: NonNull<u8>, plan: &Plan, eager: &EagerValues, query: $lane,
                ) -> Place = descend::descend<$lane>
            }
            entry! {
                fn lower_bound_many(
                    base: NonNull<u8>, plan: &Plan, eager: &EagerValues, queries: &[$lane],
                    ranks: &mut [usize],
                ) = descend::descend_many<$lane>
            }
            entry! {
                fn find(
                    root: NonNull<u8>, height: usize, map: &NodeMap, query: $lane,
                ) -> Hit = nodes::find<$lane>
            }
            entry! {
                fn find_many(
                    root: NonNull<u8>, height: usize, map: &NodeMap, queries: &[$lane],
                    hits: &mut [Hit],
                ) = nodes::find_many<$lane>
            }
            entry! {
                #[cfg(all(feature = "mmap", unix, target_pointer_width = "64"))]
                fn count_in_leaves(
                    leaves: NonNull<u8>, leaf_bytes: usize, queries: &[$lane],
                    ranks: &mut [usize],
                ) = leaves::count_each<$lane>
            }
        }
    )*};
}

impl_search!(u8 u16 u32 u64 i8 i16 i32 i64);

entry! {
    /// Number of heads of a node that are less than `query`.
    ///
    /// # Safety
    /// `node` is the start of a node of a tree with heads: aligned to a line, all lanes
    /// initialised.
    pub(crate) fn count_heads(node: NonNull<u8>, query: u64) -> usize = nodes::count_lanes<u64>
}

/// Where a query belongs: before the key in slot `slot` of leaf `leaf`.
///
/// With a leaf and a slot rather than a rank, the addresses of key and value need no division that
/// would wait for the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// One of the leaves.
    pub(crate) leaf: usize,
    /// Number of the leaf's keys that are less than the query, up to the number of lanes.
    pub(crate) slot: usize,
}

impl Place {
    /// Number of keys before it, in a tree with `lanes` keys in a leaf.
    #[inline(always)]
    pub(crate) fn rank(self, lanes: usize) -> usize {
        self.leaf * lanes + self.slot
    }
}

/// The place of a query.
///
/// # Safety
/// - `base` is the start of a block that was laid out and filled after `plan` with lanes of `kind`
///   (invariants of [`Plan`]), and stays so during the call;
/// - `query` points to an integer of `kind`.
#[inline(always)]
pub(crate) unsafe fn place(
    kind: LaneKind,
    isa: Isa,
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    query: NonNull<u8>,
) -> Place {
    by_lane!(kind, Lane => {
        // SAFETY: the caller promises that `query` points to an integer of this kind.
        let query = unsafe { query.cast::<Lane>().read() };
        // SAFETY: the caller promises a block that is filled after `plan` with lanes of this kind.
        let place = unsafe { <Lane as Search>::place(isa, base, plan, eager, query) };
        if <Lane as narrow::Lane>::NARROWS && place.slot == NODE_BYTES / size_of::<Lane>() {
            // SAFETY: the caller promises that the block is filled after `plan` with lanes of this
            // kind; `place.leaf` is one of its leaves, since a search ends in one.
            return unsafe { descend::place_of_displaced(base, plan, place.leaf, query) };
        }
        place
    })
}

/// Whether the query stands at its place.
///
/// # Safety
/// As for [`place`], which gave `at` for this query.
#[inline(always)]
pub(crate) unsafe fn is_at(
    kind: LaneKind,
    base: NonNull<u8>,
    plan: &Plan,
    at: Place,
    query: NonNull<u8>,
) -> bool {
    by_lane!(kind, Lane => {
        let lanes = NODE_BYTES / size_of::<Lane>();
        if at.slot >= lanes {
            return false;
        }
        // SAFETY: the caller promises that `query` points to an integer of this kind.
        let query = unsafe { query.cast::<Lane>().read() };
        // SAFETY: a search ends in a leaf, all lanes of which are initialised.
        let lane = unsafe { base.add(plan.leaf_at(at.leaf)).cast::<Lane>().add(at.slot).read() };
        // A filler equals the largest integer.
        lane == query && (query != Lane::MAX || at.rank(lanes) < plan.len())
    })
}

/// Writes the number of keys less than each query into `ranks`, at most [`BATCH`] of them.
///
/// # Safety
/// - `base` and `plan` as for [`place`];
/// - `queries` points to `ranks.len()` integers of `kind` in a row.
#[inline(always)]
pub(crate) unsafe fn lower_bound_many(
    kind: LaneKind,
    isa: Isa,
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    queries: NonNull<u8>,
    ranks: &mut [usize],
) {
    debug_assert!(
        ranks.len() <= BATCH,
        "{} queries in a batch of {BATCH}",
        ranks.len()
    );
    by_lane!(kind, Lane => {
        // SAFETY: the caller promises `ranks.len()` integers of this kind; `ranks` is another
        // slice.
        let queries =
            unsafe { core::slice::from_raw_parts(queries.cast::<Lane>().as_ptr(), ranks.len()) };
        // SAFETY: the caller promises a block that is filled after `plan` with lanes of this kind.
        unsafe { <Lane as Search>::lower_bound_many(isa, base, plan, eager, queries, ranks) }
    });
}

/// Searches a tree of linked nodes with integer keys for one.
///
/// # Safety
/// - `root` is a node of level `height` whose keys are integers of `kind`, that keeps the node
///   invariant (see `tree::node`) with all below it, laid out after `map`, and stays so during the
///   call;
/// - `query` points to an integer of `kind`.
#[inline(always)]
pub(crate) unsafe fn find(
    kind: LaneKind,
    isa: Isa,
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    query: NonNull<u8>,
) -> Hit {
    by_lane!(kind, Lane => {
        // SAFETY: the caller promises that `query` points to an integer of this kind.
        let query = unsafe { query.cast::<Lane>().read() };
        // SAFETY: the caller promises a tree with keys of this kind that keeps the node invariant.
        unsafe { <Lane as Search>::find(isa, root, height, map, query) }
    })
}

/// Searches a tree of linked nodes with integer keys for as many as there are `hits`, at most
/// [`BATCH`].
///
/// # Safety
/// - the tree as for [`find`];
/// - `queries` points to `hits.len()` integers of `kind` in a row.
#[inline(always)]
pub(crate) unsafe fn find_many(
    kind: LaneKind,
    isa: Isa,
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    queries: NonNull<u8>,
    hits: &mut [Hit],
) {
    by_lane!(kind, Lane => {
        // SAFETY: the caller promises `hits.len()` integers of this kind; `hits` is another slice.
        let queries =
            unsafe { core::slice::from_raw_parts(queries.cast::<Lane>().as_ptr(), hits.len()) };
        // SAFETY: the caller promises a tree with keys of this kind that keeps the node invariant.
        unsafe { <Lane as Search>::find_many(isa, root, height, map, queries, hits) }
    });
}

/// The values that a search prefetches as soon as it knows the leaf, together with the keys. They
/// are never read here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EagerValues {
    /// Address of the values of the first leaf.
    first: usize,
    /// From the values of one leaf to those of the next.
    stride_bytes: usize,
    /// Lines to prefetch; 0 if the values of a leaf fill too many.
    lines: usize,
    value_bytes: usize,
}

impl EagerValues {
    /// Values of `value_bytes` each, in `lines` lines per leaf, the first at `first`,
    /// `stride_bytes` apart from leaf to leaf.
    pub(crate) fn new(
        first: *const u8,
        stride_bytes: usize,
        lines: usize,
        value_bytes: usize,
    ) -> EagerValues {
        EagerValues {
            first: first.addr(),
            stride_bytes,
            lines,
            value_bytes,
        }
    }

    pub(crate) const NONE: EagerValues = EagerValues {
        first: 0,
        stride_bytes: 0,
        lines: 0,
        value_bytes: 0,
    };

    /// Prefetches the first line of one value.
    #[inline(always)]
    fn request_one(&self, at: Place) {
        if self.value_bytes > 0 {
            let value = self
                .first
                .wrapping_add(at.leaf.wrapping_mul(self.stride_bytes))
                .wrapping_add(at.slot * self.value_bytes);
            prefetch::<u8>(ptr::without_provenance(value));
        }
    }

    /// Prefetches the values of a leaf.
    #[inline(always)]
    fn request(&self, leaf: usize) {
        if self.lines == 0 {
            return;
        }
        let values = self
            .first
            .wrapping_add(leaf.wrapping_mul(self.stride_bytes));
        let line = |line: usize| {
            prefetch::<u8>(ptr::without_provenance(
                values.wrapping_add(line * LINE_BYTES),
            ));
        };
        // Two are the most common; a loop of unknown length would be unrolled.
        line(0);
        if self.lines > 1 {
            line(1);
            if self.lines > 2 {
                (2..self.lines).for_each(line);
            }
        }
    }
}

#[inline(always)]
pub(crate) fn lines_spanned(start: *const u8, bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    (start.addr() % LINE_BYTES + bytes).div_ceil(LINE_BYTES)
}

#[inline(always)]
pub(crate) fn prefetch_bytes(start: *const u8, bytes: usize) {
    prefetch_lines(start, lines_spanned(start, bytes));
}

#[inline(always)]
fn prefetch_lines(start: *const u8, lines: usize) {
    for line in 0..lines {
        prefetch(start.wrapping_add(line * LINE_BYTES));
    }
}

/// [`prefetch`] into the second-level cache, for what is needed some hundred nanoseconds later: the
/// first-level cache has few buffers for outstanding lines.
#[inline(always)]
pub(crate) fn prefetch_far<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch_far(address.cast::<u8>());
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches the line of `address`. Any address is allowed: a prefetch never faults.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(address.cast::<u8>());
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
