//! The search in plain Rust, for machines without a vector path of their own; the compiler may still use what the target always has.
//!
//! The entry functions are never inlined. Those of the vector paths cannot be, as their callers lack the instructions; this one could, and
//! its registers would then be saved and restored by the function that chooses the path, on every path: 8.0 instead of 7.0 ns for a
//! lookup with AVX-512 among 10 keys.

use std::ptr::NonNull;

use super::EagerValues;
use super::descend::{CountLess, assert_on_line, descend, descend_many};
#[cfg(feature = "mmap")]
use super::leaves::count_each;
use crate::plan::{NODE_BYTES, Plan};

/// Counts lane by lane.
struct Portable;

impl<Lane: Copy + Ord> CountLess<Lane> for Portable {
    #[inline(always)]
    unsafe fn count_less(node: NonNull<Lane>, query: Lane) -> usize {
        assert_on_line(node);
        let lanes = NODE_BYTES / size_of::<Lane>();
        // SAFETY: the caller promises `NODE_BYTES` aligned and initialised bytes, which are this many integers.
        let node = unsafe { std::slice::from_raw_parts(node.as_ptr(), lanes) };
        node.iter().map(|&lane| usize::from(lane < query)).sum()
    }
}

/// [`descend`] without vector instructions.
///
/// # Safety
/// As for [`descend`]; no instructions are needed.
#[inline(never)]
pub(super) unsafe fn lower_bound<Lane: Copy + Ord>(
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    query: Lane,
) -> usize {
    // SAFETY: passed on.
    unsafe { descend::<Lane, Portable>(base, plan, eager, query) }
}

/// [`descend_many`] without vector instructions.
///
/// # Safety
/// As for [`descend_many`]; no instructions are needed.
#[inline(never)]
pub(super) unsafe fn lower_bound_many<Lane: Copy + Ord>(
    base: NonNull<u8>,
    plan: &Plan,
    eager: &EagerValues,
    queries: &[Lane],
    ranks: &mut [usize],
) {
    // SAFETY: passed on.
    unsafe { descend_many::<Lane, Portable>(base, plan, eager, queries, ranks) }
}

/// [`count_each`] without vector instructions.
///
/// # Safety
/// As for [`count_each`]; no instructions are needed.
#[cfg(feature = "mmap")]
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
