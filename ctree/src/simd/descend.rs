//! The way down, written once for all integers and instruction sets.
//!
//! [`descend`] and [`descend_many`] are inlined into one entry function for each instruction set; the only thing that differs there is
//! how the lanes of a node are counted.

use core::ptr::NonNull;

use super::{EagerValues, prefetch};
use crate::block::LINE_BYTES;
use crate::plan::{NODE_BYTES, Plan};

/// A way to count the lanes of one node that are below a query.
pub(crate) trait CountLess<Lane> {
    /// Number of lanes in the [`NODE_BYTES`] at `node` that are less than `query`.
    ///
    /// # Safety
    /// - `node` is a multiple of the line size, and [`NODE_BYTES`] initialised bytes can be read there;
    /// - the machine has the instructions that the implementing type stands for.
    unsafe fn count_less(node: NonNull<Lane>, query: Lane) -> usize;
}

/// Holds an implementation of [`CountLess::count_less`] to what it was promised on the address.
#[inline(always)]
pub(super) fn assert_on_line<Lane>(node: NonNull<Lane>) {
    debug_assert!(
        node.addr().get().is_multiple_of(LINE_BYTES),
        "a node at {node:?}, which is not a multiple of {LINE_BYTES}"
    );
}

/// Holds a search to the invariants of [`Plan`] on its way down.
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

/// Number of lanes in a node.
const fn lanes<Lane>() -> usize {
    NODE_BYTES / size_of::<Lane>()
}

/// Number of keys below `query`.
///
/// # Safety
/// - `base` is the start of a block that was laid out and filled after `plan` with lanes of this type;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
pub(super) unsafe fn descend<Lane: Copy, Count: CountLess<Lane>>(
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    query: Lane,
) -> usize {
    let mut node = 0;
    for (level, &level_at) in plan.levels().iter().enumerate() {
        assert_in_level(plan, level, node);
        // SAFETY: by the invariants of `Plan` (proof there) `node` is one of the nodes of this level, whatever the counts before
        // were, and each node of a level is an aligned, initialised part of the block.
        let count =
            unsafe { Count::count_less(base.add(level_at + node * NODE_BYTES).cast(), query) };
        node = node * (lanes::<Lane>() + 1) + count;
    }
    assert_is_leaf(plan, node);
    // SAFETY: after the last level, by the same proof, `node` is one of the leaves.
    let leaf = unsafe { base.add(plan.leaf_at(node)) };
    eager.request(node);
    // SAFETY: a leaf starts with one node of key lanes, aligned and initialised.
    node * lanes::<Lane>() + unsafe { Count::count_less(leaf.cast(), query) }
}

/// Number of keys below each of `queries`, into `ranks`, which should be as many; the queries go down level by level.
///
/// # Safety
/// As for [`descend`].
#[inline(always)]
pub(super) unsafe fn descend_many<Lane: Copy, Count: CountLess<Lane>>(
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    queries: &[Lane],
    ranks: &mut [usize],
) {
    debug_assert_eq!(
        queries.len(),
        ranks.len(),
        "queries and ranks differ in number"
    );
    // Until the leaves are reached, `ranks` holds the node that each query has come to.
    ranks.fill(0);
    let levels = plan.levels();
    for (level, &level_at) in levels.iter().enumerate() {
        let below_at = levels.get(level + 1);
        for (node, &query) in ranks.iter_mut().zip(queries) {
            assert_in_level(plan, level, *node);
            // SAFETY: as in `descend`.
            let count =
                unsafe { Count::count_less(base.add(level_at + *node * NODE_BYTES).cast(), query) };
            *node = *node * (lanes::<Lane>() + 1) + count;
            if let Some(below_at) = below_at {
                let below = base.as_ptr().wrapping_add(below_at + *node * NODE_BYTES);
                prefetch(below);
                prefetch(below.wrapping_add(LINE_BYTES));
            } else {
                let leaf = base.as_ptr().wrapping_add(plan.leaf_at(*node));
                prefetch(leaf);
                prefetch(leaf.wrapping_add(LINE_BYTES));
                eager.request(*node);
            }
        }
    }
    for (rank, &query) in ranks.iter_mut().zip(queries) {
        let node = *rank;
        assert_is_leaf(plan, node);
        // SAFETY: as in `descend`.
        let count = unsafe { Count::count_less(base.add(plan.leaf_at(node)).cast(), query) };
        *rank = node * lanes::<Lane>() + count;
    }
}
