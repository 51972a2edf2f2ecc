//! The search in plain Rust, for machines without a vector path of their own; the compiler may
//! still use what the target always has.
//!
//! The entry functions are never inlined. Those of the vector paths cannot be, as their callers
//! lack the instructions; this one could, and its registers would then be saved and restored by the
//! function that chooses the path, on every path: 8.0 instead of 7.0 ns for a lookup with AVX-512
//! among 10 keys.

use core::ptr::NonNull;

use super::descend::{CountLess, assert_on_line, descend, descend_many};
use super::heads::{At, HeadQuery, Stop, stop_by};
#[cfg(all(feature = "mmap", unix, target_pointer_width = "64"))]
use super::leaves::count_each;
use super::nodes::{self, Filler, Hit, NodeMap};
use super::{EagerValues, Place};
use crate::narrow::Lane;
use crate::plan::{NODE_BYTES, Plan};

/// Counts lane by lane.
struct Portable;

impl<L: Copy + Ord> CountLess<L> for Portable {
    #[inline(always)]
    unsafe fn count_less(node: NonNull<L>, query: L) -> usize {
        assert_on_line(node);
        let lanes = NODE_BYTES / size_of::<L>();
        // SAFETY: the caller promises `NODE_BYTES` aligned and initialised bytes, which are this
        // many integers.
        let node = unsafe { core::slice::from_raw_parts(node.as_ptr(), lanes) };
        node.iter().map(|&lane| usize::from(lane < query)).sum()
    }
}

/// [`descend`] without vector instructions.
///
/// # Safety
/// As for [`descend`]; no instructions are needed.
#[inline(never)]
pub(super) unsafe fn place<L: Lane>(
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    query: L,
) -> Place {
    // SAFETY: passed on.
    unsafe { descend::<L, Portable>(base, plan, eager, query) }
}

/// [`descend_many`] without vector instructions.
///
/// # Safety
/// As for [`descend_many`]; no instructions are needed.
#[inline(never)]
pub(super) unsafe fn lower_bound_many<L: Lane>(
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    queries: &[L],
    ranks: &mut [usize],
) {
    // SAFETY: passed on.
    unsafe { descend_many::<L, Portable>(base, plan, eager, queries, ranks) }
}

/// [`nodes::find`] without vector instructions.
///
/// # Safety
/// As for [`nodes::find`]; no instructions are needed.
#[inline(never)]
pub(super) unsafe fn find<Lane: Filler + Ord>(
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    query: Lane,
) -> Hit {
    // SAFETY: passed on.
    unsafe { nodes::find::<Lane, Portable>(root, height, map, query) }
}

/// [`nodes::find_many`] without vector instructions.
///
/// # Safety
/// As for [`nodes::find_many`]; no instructions are needed.
#[inline(never)]
pub(super) unsafe fn find_many<Lane: Filler + Ord>(
    root: NonNull<u8>,
    height: usize,
    map: &NodeMap,
    queries: &[Lane],
    hits: &mut [Hit],
) {
    // SAFETY: passed on.
    unsafe { nodes::find_many::<Lane, Portable>(root, height, map, queries, hits) }
}

/// [`nodes::count_lanes`] without vector instructions.
///
/// # Safety
/// As for [`nodes::count_lanes`]; no instructions are needed.
#[inline(never)]
pub(super) unsafe fn count<Lane: Copy + Ord>(node: NonNull<u8>, query: Lane) -> usize {
    // SAFETY: passed on.
    unsafe { nodes::count_lanes::<Lane, Portable>(node, query) }
}

/// [`count_each`] without vector instructions.
///
/// # Safety
/// As for [`count_each`]; no instructions are needed.
#[cfg(all(feature = "mmap", unix, target_pointer_width = "64"))]
#[inline(never)]
pub(super) unsafe fn count_in_leaves<Lane: Copy + Ord>(
    leaves: NonNull<u8>,
    leaf_bytes: usize,
    queries: &[Lane],
    ranks: &mut [usize],
) {
    // SAFETY: passed on.
    unsafe { count_each::<Lane, Portable>(leaves, leaf_bytes, queries, ranks) }
}

/// [`stop_by`] without vector instructions.
///
/// # Safety
/// As for [`stop_by`].
#[inline(never)]
pub(super) unsafe fn stop<Q: HeadQuery>(
    base: NonNull<u8>,
    level_at: &[usize],
    eager: &[EagerValues; 2],
    from: At,
    query: Q,
) -> Stop {
    // SAFETY: passed on.
    unsafe { stop_by::<Q, Portable>(base, level_at, eager, from, query) }
}
