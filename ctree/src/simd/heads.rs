//! The search among heads: 64 bits of each key, for keys that are not integers.
//!
//! ```text
//! node:  | h0 h1 h2 .. h7 | h8 .. h14 skip |      15 heads and a number, two lines; 16 children
//! ```
//!
//! **The heads of a node begin where its keys begin to differ.** If the separators around a node
//! share `skip` leading bytes, so do its keys and all queries that reach it; its heads are the next
//! eight bytes. This tells keys with long common prefixes apart, such as paths.
//!
//! A head that equals that of the query decides nothing: [`stop`] returns the node to the caller,
//! which compares keys and continues from there.

use core::ptr::NonNull;

use super::EagerValues;
use super::descend::CountLess;
use crate::plan::NODE_BYTES;

/// Heads in a node; behind them stands the number of bytes that they leave out.
pub(crate) const NODE_HEADS: usize = NODE_BYTES / size_of::<u64>() - 1;
const FAN_OUT: usize = NODE_HEADS + 1;

/// A query that has heads.
pub(crate) trait HeadQuery: Copy {
    /// Whether keys have no part outside the leaf. If so, the value is waited for next, and
    /// prefetched with the leaf.
    const KEYS_ARE_WHOLE: bool;

    /// The head behind the first `skip` bytes.
    fn head(self, skip: u64) -> u64;
}

/// A byte string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BytesQuery<'a>(pub(crate) &'a [u8]);

impl HeadQuery for BytesQuery<'_> {
    const KEYS_ARE_WHOLE: bool = false;

    #[inline(always)]
    fn head(self, skip: u64) -> u64 {
        let bytes = self.0;
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        if let Some(head) = bytes.get(skip..).and_then(<[u8]>::first_chunk::<8>) {
            return u64::from_be_bytes(*head);
        }
        // Fewer than eight bytes are left. If the string is long enough, a load that ends with it
        // saves a copy byte by byte.
        let left = bytes.len().saturating_sub(skip);
        if left == 0 {
            return 0;
        }
        if let Some(tail) = bytes.last_chunk::<8>() {
            return u64::from_be_bytes(*tail) << (8 * (8 - left));
        }
        bytes[skip..]
            .iter()
            .fold(0, |head, &byte| head << 8 | u64::from(byte))
            << (8 * (8 - left))
    }
}

/// A head that is the same in all nodes, as that of a tuple of integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedQuery(pub(crate) u64);

impl HeadQuery for FixedQuery {
    const KEYS_ARE_WHOLE: bool = true;

    #[inline(always)]
    fn head(self, _: u64) -> u64 {
        self.0
    }
}

/// Where a search is: in a node of a level, the leaves being level 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) level: usize,
    pub(crate) node: usize,
}

/// Where the heads alone do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// The node.
    pub(crate) at: At,
    /// Number of its heads that are below that of the query.
    pub(crate) slot: usize,
    /// The query's head in this node, if the head in `slot` is the same; otherwise the node is a
    /// leaf.
    pub(crate) tie: Option<u64>,
}

/// Descends from a node until a head equals that of the query, or through a leaf.
///
/// # Safety
/// - `base` is the start of nodes as drawn above, initialised, on line boundaries; level `l` starts
///   at node `level_at[l]`;
/// - with `K` keys in the levels from `l` up, in node `n` of level `l` no more than `K - 16 n`
///   heads are less than the largest integer, and level `l - 1` has `K + 1` nodes;
/// - `from` is one of the nodes.
///
/// Prefetches `eager` with the leaf.
#[inline(always)]
pub(super) unsafe fn stop_by<Q: HeadQuery, Count: CountLess<u64>>(
    base: NonNull<u8>,
    level_at: &[usize],
    eager: &[EagerValues; 2],
    from: At,
    query: Q,
) -> Stop {
    let At {
        mut level,
        mut node,
    } = from;
    loop {
        // SAFETY: `from` is one of the nodes. A child of node `n` is node `16 n + slot` of the
        // level below, where `slot` is a number of heads that are below the query's, hence less
        // than the largest integer: the child's number is at most `K`, and there are `K + 1` nodes.
        let lanes = unsafe {
            base.add((level_at[level] + node) * NODE_BYTES)
                .cast::<u64>()
        };
        if level == 0 {
            eager.iter().for_each(|eager| eager.request(node));
        }
        // SAFETY: all 16 numbers of the node are initialised.
        let skip = unsafe { lanes.add(NODE_HEADS).read() };
        let head = query.head(skip);
        // SAFETY: the node lies on a line boundary and is initialised.
        let counted = unsafe { Count::count_less(lanes, head) };
        // The number behind the heads was counted with them.
        let slot = counted - usize::from(skip < head);
        // SAFETY: `slot` is at most the number of heads, behind which there is one more number.
        let tie = slot < NODE_HEADS && unsafe { lanes.add(slot).read() } == head;
        if tie || level == 0 {
            return Stop {
                at: At { level, node },
                slot,
                tie: tie.then_some(head),
            };
        }
        level -= 1;
        node = node * FAN_OUT + slot;
    }
}

entry! {
    /// [`stop_by`] with the instructions of `isa`.
    ///
    /// # Safety
    /// As for [`stop_by`].
    #[inline(always)]
    pub(crate) fn stop<Q: HeadQuery>(
        base: NonNull<u8>,
        level_at: &[usize],
        eager: &[EagerValues; 2],
        from: At,
        query: Q,
    ) -> Stop = stop_by<Q>
}
