//! The search, written once for all integers and instruction sets.
//!
//! [`descend`] and [`descend_many`] are inlined into one entry function for each instruction set,
//! which differ in how the lanes of a node are counted.

use core::ptr::NonNull;

use super::{BATCH, EagerValues, Place, prefetch_far};
use crate::block::LINE_BYTES;
use crate::narrow::Lane;
use crate::plan::{NODE_BYTES, Plan};

/// Counts the lanes of one node that are less than a query.
pub(crate) trait CountLess<Lane> {
    /// Number of lanes in the [`NODE_BYTES`] at `node` that are less than `query`.
    ///
    /// # Safety
    /// - `node` is a multiple of the line size, and [`NODE_BYTES`] initialised bytes can be read
    ///   there;
    /// - the machine has the instructions that the implementing type stands for.
    unsafe fn count_less(node: NonNull<Lane>, query: Lane) -> usize;
}

/// Checks what [`CountLess::count_less`] was promised on the address.
#[inline(always)]
pub(super) fn assert_on_line<Lane>(node: NonNull<Lane>) {
    debug_assert!(
        node.addr().get().is_multiple_of(LINE_BYTES),
        "a node at {node:?}, which is not a multiple of {LINE_BYTES}"
    );
}

/// Checks that a search keeps the invariants of [`Plan`].
#[inline(always)]
fn assert_in_level(plan: &Plan, level: usize, node: usize) {
    debug_assert!(
        node < plan.node_count(level),
        "node {node} of {} in level {level}",
        plan.node_count(level)
    );
}

/// The same for the leaf that it ends in.
#[inline(always)]
fn assert_is_leaf(plan: &Plan, leaf: usize) {
    debug_assert!(
        leaf < plan.leaf_count(),
        "leaf {leaf} of {}",
        plan.leaf_count()
    );
}

/// A batch does not prefetch the nodes of a level that has no more than these (8 KB).
const HOT_NODES_MAX: usize = 64;

/// Number of lanes in a node.
const fn lanes<Lane>() -> usize {
    NODE_BYTES / size_of::<Lane>()
}

/// The leaf that the index leads to.
///
/// # Safety
/// - `base` is the start of a block that was laid out and filled after `plan`, with separators of
///   this type;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
unsafe fn leaf_of<Separator: Copy, Count: CountLess<Separator>>(
    base: NonNull<u8>,
    plan: &Plan,
    query: Separator,
) -> usize {
    let mut node = 0;
    for (level, level_at) in plan.levels().enumerate() {
        assert_in_level(plan, level, node);
        // SAFETY: by the invariants of `Plan` (proof there) `node` is a node of this level,
        // whatever the counts were, and each node is an aligned, initialised part of the block.
        let count =
            unsafe { Count::count_less(base.add(level_at + node * NODE_BYTES).cast(), query) };
        node = node * (lanes::<Separator>() + 1) + count;
    }
    assert_is_leaf(plan, node);
    node
}

/// Number of keys of leaf `leaf` that are below `query`.
///
/// # Safety
/// - `base` is the start of a block that was laid out and filled after `plan`, with lanes of this
///   type;
/// - `leaf` is one of its leaves;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
unsafe fn count_in_leaf<L: Lane, Count: CountLess<L>>(
    base: NonNull<u8>,
    plan: &Plan,
    leaf: usize,
    query: L,
) -> usize {
    assert_is_leaf(plan, leaf);
    // SAFETY: the leaf exists, and starts with one node of key lanes, aligned and initialised.
    unsafe { Count::count_less(base.add(plan.leaf_at(leaf)).cast(), query) }
}

/// The place of `query` behind all keys of leaf `leaf`. The query is greater than all keys, or
/// narrow separators led to an earlier leaf than its own.
///
/// # Safety
/// As for [`count_in_leaf`], but for the instructions.
#[cold]
#[inline(never)]
pub(super) unsafe fn place_of_displaced<L: Lane>(
    base: NonNull<u8>,
    plan: &Plan,
    leaf: usize,
    query: L,
) -> Place {
    let key = |leaf: usize, lane: usize| {
        debug_assert!(
            leaf < plan.leaf_count() && lane < lanes::<L>(),
            "lane {lane} of leaf {leaf}"
        );
        // SAFETY: the closure is called for existing leaves, all lanes of which are initialised.
        unsafe { base.add(plan.leaf_at(leaf)).cast::<L>().add(lane).read() }
    };
    let is_below = |leaf| key(leaf, lanes::<L>() - 1) < query;
    // Mostly it is the next leaf: search exponentially from there.
    let (mut start, mut step) = (leaf + 1, 1);
    let mut end = start;
    while end < plan.leaf_count() && is_below(end) {
        start = end + 1;
        end = end.saturating_add(step);
        step *= 2;
    }
    end = end.min(plan.leaf_count());
    while start < end {
        let middle = start + (end - start) / 2;
        if is_below(middle) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    if start == plan.leaf_count() {
        // The last leaf is full, since absent lanes are less than no query.
        return Place {
            leaf: start - 1,
            slot: lanes::<L>(),
        };
    }
    let slot = (0..lanes::<L>())
        .filter(|&lane| key(start, lane) < query)
        .count();
    Place { leaf: start, slot }
}

/// The leaf that the index leads to, and the number of its keys that are less than `query`. If it
/// is all of them, the place may be in a later leaf: [`place_of_displaced`].
///
/// # Safety
/// - `base` is the start of a block that was laid out and filled after `plan` with lanes of this
///   type;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
pub(super) unsafe fn descend<L: Lane, Count: CountLess<L> + CountLess<u32>>(
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    query: L,
) -> Place {
    let leaf = match plan.narrowing() {
        Some(narrowing) if L::NARROWS => {
            let head = narrowing.head(query.ordered_bits());
            // SAFETY: passed on; with a narrowing the separators are of this type.
            unsafe { leaf_of::<u32, Count>(base, plan, head) }
        }
        // SAFETY: passed on; without one they are of the type of the keys.
        _ => unsafe { leaf_of::<L, Count>(base, plan, query) },
    };
    eager.request(leaf);
    // SAFETY: passed on; the index leads to leaves.
    let slot = unsafe { count_in_leaf::<L, Count>(base, plan, leaf, query) };
    Place { leaf, slot }
}

/// Where the next nodes of a batch lie, to prefetch them.
#[derive(Clone, Copy)]
struct Next {
    first: *const u8,
    stride_bytes: usize,
}

impl Next {
    #[inline(always)]
    fn request(self, node: usize) {
        let node = self
            .first
            .wrapping_add(node.wrapping_mul(self.stride_bytes));
        // Into the second-level cache: the first level has few buffers for lines on their way. (A
        // batch of `u32` takes 10.3 ns a query instead of 16.2 among 2 million, 17 instead of 27
        // among 16 million.)
        prefetch_far(node);
        prefetch_far(node.wrapping_add(LINE_BYTES));
    }
}

/// One step down of all queries of a batch, from nodes of the level at `level_at` to children.
///
/// # Safety
/// - `base` is the start of a block that was laid out and filled after `plan`, with separators of
///   this type;
/// - `level_at` is one of the plan's levels, and `nodes` are nodes of it;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
unsafe fn step_many<Separator: Copy, Count: CountLess<Separator>>(
    base: NonNull<u8>,
    level_at: usize,
    queries: &[Separator],
    nodes: &mut [usize],
    request: impl Fn(usize),
) {
    for (node, &query) in nodes.iter_mut().zip(queries) {
        // SAFETY: the node is an aligned, initialised part of the block.
        let count =
            unsafe { Count::count_less(base.add(level_at + *node * NODE_BYTES).cast(), query) };
        *node = *node * (lanes::<Separator>() + 1) + count;
        request(*node);
    }
}

/// Writes the leaves that the index leads `queries` to into `leaves`, which should be as many,
/// level by level.
///
/// # Safety
/// As for [`leaf_of`].
#[inline(always)]
unsafe fn leaves_of_many<Separator: Copy, Count: CountLess<Separator>>(
    base: NonNull<u8>,
    plan: &Plan,
    queries: &[Separator],
    leaves: &mut [usize],
) {
    leaves.fill(0);
    let start = base.as_ptr().cast_const();
    for (level, level_at) in plan.levels().enumerate() {
        let below = level + 1;
        let is_last = below == plan.height();
        debug_assert!(
            leaves.iter().all(|&node| node < plan.node_count(level)),
            "level {level}"
        );
        if !is_last && plan.node_count_bound(below) <= HOT_NODES_MAX {
            // SAFETY: by the invariants of `Plan` (as in `leaf_of`) these are nodes of the level.
            unsafe { step_many::<Separator, Count>(base, level_at, queries, leaves, |_| ()) };
            continue;
        }
        let next = if is_last {
            Next {
                first: start.wrapping_add(plan.leaf_at(0)),
                stride_bytes: plan.leaf_bytes(),
            }
        } else {
            Next {
                first: start.wrapping_add(plan.level_at(below)),
                stride_bytes: NODE_BYTES,
            }
        };
        // SAFETY: by the invariants of `Plan` (proof there) the counts of a level lead to nodes of
        // the next, so these are nodes of this level.
        unsafe {
            step_many::<Separator, Count>(base, level_at, queries, leaves, |node| {
                next.request(node);
            });
        }
    }
    debug_assert!(
        leaves.iter().all(|&leaf| leaf < plan.leaf_count()),
        "a leaf beyond the last"
    );
}

/// Writes the number of keys less than each of `queries` into `ranks`, which should be as many,
/// level by level. Prefetches one line of each value once the rank is known: a batch is bound by
/// the number of lines, not by their latency.
///
/// # Safety
/// As for [`descend`].
#[inline(always)]
pub(super) unsafe fn descend_many<L: Lane, Count: CountLess<L> + CountLess<u32>>(
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    queries: &[L],
    ranks: &mut [usize],
) {
    debug_assert_eq!(
        queries.len(),
        ranks.len(),
        "queries and ranks differ in number"
    );
    match plan.narrowing() {
        Some(narrowing) if L::NARROWS => {
            let mut heads = [0; BATCH];
            let heads = &mut heads[..queries.len()];
            for (head, query) in heads.iter_mut().zip(queries) {
                *head = narrowing.head(query.ordered_bits());
            }
            // SAFETY: passed on; with a narrowing the separators are of this type.
            unsafe { leaves_of_many::<u32, Count>(base, plan, heads, ranks) }
        }
        // SAFETY: passed on; without one they are of the type of the keys.
        _ => unsafe { leaves_of_many::<L, Count>(base, plan, queries, ranks) },
    }
    for (rank, &query) in ranks.iter_mut().zip(queries) {
        let leaf = *rank;
        // SAFETY: passed on; the index leads to leaves.
        let slot = unsafe { count_in_leaf::<L, Count>(base, plan, leaf, query) };
        let place = if L::NARROWS && slot == lanes::<L>() {
            // SAFETY: the index leads to leaves of the block, whose lanes are of this type.
            unsafe { place_of_displaced(base, plan, leaf, query) }
        } else {
            Place { leaf, slot }
        };
        eager.request_one(place);
        *rank = place.rank(lanes::<L>());
    }
}
