//! Counting in plain Rust, for machines without a vector path here.

use core::ptr::NonNull;

use super::descend::{CountLess, assert_on_line};
use crate::plan::NODE_BYTES;

/// Counts lane by lane.
pub(super) struct Portable;

impl<L: Copy + Ord> CountLess<L> for Portable {
    #[inline(always)]
    unsafe fn count_less(node: NonNull<L>, query: L) -> usize {
        assert_on_line(node);
        let lanes = NODE_BYTES / size_of::<L>();
        // SAFETY: the caller promises `NODE_BYTES` aligned and initialised bytes.
        let node = unsafe { core::slice::from_raw_parts(node.as_ptr(), lanes) };
        node.iter().map(|&lane| usize::from(lane < query)).sum()
    }
}
