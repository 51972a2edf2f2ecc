//! The last step of a search alone, for the leaves of a mapped file, which are not in the block of
//! their index.

use core::ptr::NonNull;

use super::descend::CountLess;
use super::{Isa, Search};
use crate::lane::{LaneKind, by_lane};
use crate::plan::NODE_BYTES;

/// Turns the number of each query's leaf into its rank: that of the leaf's first key, and the lanes
/// of the leaf that are less than the query. Absent lanes should hold the largest integer, so that
/// they are not counted; if they do not, a rank is too large.
///
/// # Safety
/// - `leaves` is a multiple of the line size, and so is `leaf_bytes`;
/// - for each leaf in `ranks`, [`NODE_BYTES`] initialised bytes that do not change can be read at
///   `leaves + leaf * leaf_bytes`;
/// - `queries` points to `ranks.len()` integers of `kind` in a row.
#[inline(always)]
pub(crate) unsafe fn count_in_leaves(
    kind: LaneKind,
    isa: Isa,
    leaves: NonNull<u8>,
    leaf_bytes: usize,
    queries: NonNull<u8>,
    ranks: &mut [usize],
) {
    by_lane!(kind, Lane => {
        // SAFETY: the caller promises `ranks.len()` integers of this kind; `ranks` is borrowed
        // mutably and thus another slice.
        let queries =
            unsafe { core::slice::from_raw_parts(queries.cast::<Lane>().as_ptr(), ranks.len()) };
        // SAFETY: the caller promises aligned, initialised lanes for each leaf in `ranks`.
        unsafe { <Lane as Search>::count_in_leaves(isa, leaves, leaf_bytes, queries, ranks) }
    });
}

/// [`count_in_leaves`] by one instruction set.
///
/// # Safety
/// - `leaves`, `leaf_bytes` and `ranks` as for [`count_in_leaves`], with lanes of this type;
/// - the machine has the instructions that `Count` stands for.
#[inline(always)]
pub(super) unsafe fn count_each<Lane: Copy, Count: CountLess<Lane>>(
    leaves: NonNull<u8>,
    leaf_bytes: usize,
    queries: &[Lane],
    ranks: &mut [usize],
) {
    for (rank, &query) in ranks.iter_mut().zip(queries) {
        // SAFETY: the caller promises a node of initialised lanes there, on a line boundary, and
        // the instructions.
        let count = unsafe { Count::count_less(leaves.add(*rank * leaf_bytes).cast(), query) };
        *rank = *rank * (NODE_BYTES / size_of::<Lane>()) + count;
    }
}
