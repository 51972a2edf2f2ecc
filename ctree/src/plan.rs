//! Where everything lies in the memory of an integer-keyed tree: arithmetic only, no memory.
//!
//! ```text
//! block:  | level 0: root | level 1 | ... | last index level | leaf 0 | leaf 1 | ... | last leaf |
//!
//! node:   | s0 s1 s2 .. s7 | s8 .. s15 |        16 separators of 8 B, two lines
//! leaf:   | k0 k1 k2 .. k7 | k8 .. k15 | v0 .. v7 | v8 .. v15 |
//! ```
//! Lane j of node k is the largest key below its child j. The child for query q is node
//! `17 k + |{ j : sj < q }|` of the next level; entry r is slot `r % 16` of leaf `r / 16`. (Drawn
//! for keys and values of 8 B. A node is always two lines: 32 lanes of 4 B, 64 of 2 B, 128 of 1 B.
//! [`NODE_BYTES`] has the sizes that were measured.)
//!
//! **Absent lanes hold the largest integer.** No query is greater, so that they are never counted,
//! and the largest integer itself is a key like any other: found by its rank, which is below `len`,
//! not by its value. The last child of a level has an absent lane instead of a separator. From this
//! alone follows, whatever the other lanes hold, that a search stays inside the block:
//!
//! - A node that is not the last of its level has all `LANES + 1` children, and a count is at most
//!   `LANES`.
//! - The last node of a level has `m` of them, 1 <= m <= `LANES + 1`, hence m - 1 separators, and
//!   counts at most m - 1.
//! - In a leaf that is not the last, a count is at most `LANES`; in the last, at most the number of
//!   its keys. So the rank is <= `len`.
//!
//! **Separators may be narrower than keys**: 32 lanes of 4 B over leaves of 16 keys of 8 B, where
//! [`narrow`](crate::narrow) says that it pays. The leaf that the index leads to may then lie
//! before the one that a query belongs to, and a search goes on from there.

use crate::block::LINE_BYTES;
use crate::narrow::Narrowing;

/// Size of an index node, and of the keys at the start of a leaf.
///
/// Times as fast as `BTreeMap`: 2,097,151 random keys and values of 8 B, a search written for each
/// size; processor time, lower third of nine interleaved rounds with 160 MB written between them
/// (Intel Xeon, family 6 model 207, 2 MiB L2, busy, 20 November 2026).
/// ```text
/// separators  lines a node  keys a leaf  levels  dependent  independent  batches of 64
///    8 B           2            16          5       2.27        8.96          25.8
///    4 B           1            16          5       2.49        9.54          29.0
///    4 B           2            16          4       2.54       10.2           29.2    this
///    4 B           4            16          3       2.74       10.6           27.4
///    4 B           2             8          4       2.43        9.99          28.1
///    4 B           2            32          4       2.86       11.0           25.3
/// ```
pub(crate) const NODE_BYTES: usize = 2 * LINE_BYTES;

/// Most index levels that an addressable tree can have: with 17 children a node, log17 of 2^63 /
/// [`NODE_BYTES`] leaves.
const LEVELS_MAX: usize = 14;

/// Leaves start on a multiple of this, so that one of 256 B lies in one DRAM fetch of that size.
const LEAVES_ALIGN_BYTES: usize = 256;

/// The places of all nodes and entries of one tree. Offsets are in bytes from the start of the
/// block.
///
/// Invariants: nodes and leaves are disjoint, start on line boundaries, end within `block_bytes`;
/// the counts of nodes per level are as described in the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Entries in the tree, at least one.
    len: usize,
    /// Start of each index level, root first; the first `height` are used.
    level_at: [usize; LEVELS_MAX],
    /// Index levels above the leaves.
    height: usize,
    /// Start of the first leaf.
    leaves_at: usize,
    /// From one leaf to the next: key lanes, then values, rounded up to lines.
    leaf_bytes: usize,
    /// Leaves, at least one; all but the last are full.
    leaf_count: usize,
    /// Keys in a leaf.
    lanes: usize,
    /// Separators in a node of the index: as many, or with narrow ones twice as many.
    index_lanes: usize,
    is_narrow: bool,
    /// How they were made of keys, then. (Not an `Option`: the optimiser reads it before it asks
    /// whether it is there, which checkers of uninitialised memory report.)
    narrowing: Narrowing,
    /// Size of the whole.
    block_bytes: usize,
}

impl Plan {
    /// Plans `len` entries with keys of `lane_bytes`, and values of `value_bytes` inside the leaves
    /// (0 when they lie elsewhere).
    ///
    /// Returns `None` when `len` is zero or the size overflows.
    pub(crate) fn new(len: usize, lane_bytes: usize, value_bytes: usize) -> Option<Plan> {
        Plan::with_index(len, lane_bytes, value_bytes, None)
    }

    /// The same, with narrow separators if `narrowing` says how to make them; they are integers of
    /// 32 bits then.
    pub(crate) fn with_index(
        len: usize,
        lane_bytes: usize,
        value_bytes: usize,
        narrowing: Option<Narrowing>,
    ) -> Option<Plan> {
        let lanes = NODE_BYTES / lane_bytes;
        let separator_bytes = narrowing.map_or(lane_bytes, |_| size_of::<u32>());
        let index_lanes = NODE_BYTES / separator_bytes;
        let leaf_count = len.div_ceil(lanes);
        if leaf_count == 0 {
            return None;
        }
        let leaf_bytes = lanes
            .checked_mul(value_bytes)?
            .checked_add(NODE_BYTES)?
            .checked_next_multiple_of(LINE_BYTES)?;

        // Nodes of each level, from the lowest up, then offsets from the root down.
        let mut nodes = [0; LEVELS_MAX];
        let mut height = 0;
        let mut below = leaf_count;
        while below > 1 {
            below = below.div_ceil(index_lanes + 1);
            // More levels than that belong to more leaves than fit into the address space.
            *nodes.get_mut(height)? = below;
            height += 1;
        }
        let mut level_at = [0; LEVELS_MAX];
        let mut end: usize = 0;
        for (at, &nodes) in level_at.iter_mut().zip(nodes[..height].iter().rev()) {
            *at = end;
            end = end.checked_add(nodes.checked_mul(NODE_BYTES)?)?;
        }
        let leaves_at = end.checked_next_multiple_of(LEAVES_ALIGN_BYTES)?;
        let block_bytes = leaf_count.checked_mul(leaf_bytes)?.checked_add(leaves_at)?;
        Some(Plan {
            len,
            level_at,
            height,
            leaves_at,
            leaf_bytes,
            leaf_count,
            lanes,
            index_lanes,
            is_narrow: narrowing.is_some(),
            narrowing: narrowing.unwrap_or(Narrowing::new(0, 0)),
            block_bytes,
        })
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Size of the block that the plan asks for.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Start of each index level, root first.
    #[inline(always)]
    pub(crate) fn levels(&self) -> impl Iterator<Item = usize> {
        // (A slice up to `height` would have to be checked against the array's length, in each
        // search.)
        self.level_at.iter().copied().take(self.height)
    }

    /// Start of an index level.
    #[inline(always)]
    pub(crate) fn level_at(&self, level: usize) -> usize {
        self.level_at[level]
    }

    /// Index levels above the leaves.
    pub(crate) fn height(&self) -> usize {
        self.height
    }

    /// How separators were made of keys, if they are narrow: integers of 32 bits.
    #[inline(always)]
    pub(crate) fn narrowing(&self) -> Option<Narrowing> {
        self.is_narrow.then_some(self.narrowing)
    }

    /// Size of the index, filler behind it included.
    pub(crate) fn index_bytes(&self) -> usize {
        self.leaves_at
    }

    /// Start of a leaf. Defined for every number, inside the block for those below
    /// [`leaf_count`](Plan::leaf_count).
    #[inline(always)]
    pub(crate) fn leaf_at(&self, leaf: usize) -> usize {
        self.leaves_at
            .wrapping_add(leaf.wrapping_mul(self.leaf_bytes))
    }

    #[inline(always)]
    pub(crate) fn leaf_bytes(&self) -> usize {
        self.leaf_bytes
    }

    pub(crate) fn leaf_count(&self) -> usize {
        self.leaf_count
    }

    fn child_leaves(&self, level: usize) -> usize {
        (level + 1..self.height).fold(1, |leaves: usize, _| {
            leaves.saturating_mul(self.index_lanes + 1)
        })
    }

    pub(crate) fn node_count(&self, level: usize) -> usize {
        let child_count = self.leaf_count.div_ceil(self.child_leaves(level));
        child_count.div_ceil(self.index_lanes + 1)
    }

    /// At least the number of nodes in an index level, without a division: the bytes up to the next
    /// level, or to the leaves.
    #[inline(always)]
    pub(crate) fn node_count_bound(&self, level: usize) -> usize {
        let end = match self.level_at.get(level + 1) {
            Some(&next_at) if level + 1 < self.height => next_at,
            _ => self.leaves_at,
        };
        (end - self.level_at[level]) / NODE_BYTES
    }

    /// What each lane of each index node holds, level by level: the offset of the lane in the
    /// block, and the rank of the key that is its separator or `None` for an absent lane.
    pub(crate) fn separators(&self) -> impl Iterator<Item = (usize, Option<usize>)> {
        let (lanes, keys) = (self.index_lanes, self.lanes);
        let (lane_bytes, children) = (NODE_BYTES / lanes, lanes + 1);
        (0..self.height).flat_map(move |level| {
            let child_leaves = self.child_leaves(level);
            let child_count = self.leaf_count.div_ceil(child_leaves);
            (0..self.node_count(level) * lanes).map(move |lane| {
                let child = lane / lanes * children + lane % lanes;
                let rank = (child + 1 < child_count).then(|| (child + 1) * child_leaves * keys - 1);
                (self.level_at[level] + lane * lane_bytes, rank)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{NODE_BYTES, Plan};

    #[test]
    fn heights_grow_at_the_powers_of_the_fan_out() {
        let height = |len| Plan::new(len, 8, 8).unwrap().height();
        assert_eq!(
            [
                height(1),
                height(16),
                height(17),
                height(16 * 17),
                height(16 * 17 + 1)
            ],
            [0, 0, 1, 1, 2]
        );
        assert_eq!(
            [
                height(16 * 17 * 17),
                height(16 * 17 * 17 + 1),
                height(2_097_151)
            ],
            [2, 3, 5]
        );
    }

    #[test]
    fn every_lane_of_the_index_is_named_once() {
        for (len, lane_bytes) in [
            (1, 8),
            (17, 8),
            (273, 8),
            (4_625, 8),
            (100_000, 8),
            (70_000, 4),
            (65_536, 2),
            (256, 1),
        ] {
            let plan = Plan::new(len, lane_bytes, 0).unwrap();
            let mut offsets: Vec<usize> = plan.separators().map(|(at, _)| at).collect();
            offsets.sort_unstable();
            assert!(
                offsets
                    .iter()
                    .enumerate()
                    .all(|(lane, &at)| at == lane * lane_bytes),
                "{len} keys of {lane_bytes} B"
            );
            assert_eq!(offsets.len() * lane_bytes % NODE_BYTES, 0);
            assert!(offsets.len() * lane_bytes <= plan.leaf_at(0));
            assert!(
                plan.separators()
                    .all(|(_, rank)| rank.is_none_or(|rank| rank < len))
            );
            assert_eq!(plan.leaf_at(plan.leaf_count()), plan.block_bytes());
        }
    }

    #[test]
    fn empty_and_impossible_trees_have_no_plan() {
        assert_eq!(Plan::new(0, 8, 8), None);
        assert_eq!(Plan::new(usize::MAX, 8, 8), None);
        assert_eq!(Plan::new(1, 8, usize::MAX / 2), None);
    }
}
