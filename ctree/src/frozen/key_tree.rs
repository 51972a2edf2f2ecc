//! The tree for keys of any ordered type: every key lives in exactly one place, pointers are
//! computed.
//!
//! A key may own memory, so that separators cannot be copies: the keys themselves are moved into
//! the index, every sixteenth of a level to the next.
//!
//! ```text
//! level 1                        k15                            k31           ...
//!                 ______________/   \____________      ________/   \_______
//! level 0        | k0 k1 ...          k13 k14    |    | k16 ...        k30 |  ...
//! ```
//!
//! **A rank tells where its key lies.** Write it in base 16: the number of trailing digits 15 is
//! the level, and the rest is its place there, less one sixteenth of the keys that went up. So
//! neither pointers nor offsets are stored: one vector for the leaves, and one for the levels above
//! with the root first. There is no unsafe code.
//!
//! Keys with heads have [`head_nodes`](super::head_nodes) beside them, which lead the search if
//! there are more than a few keys. Other searches compare at most four keys in a node, whose lines
//! are requested together.

use alloc::vec::{self, Vec};
use core::borrow::Borrow;
use core::cmp::Ordering;

use super::head_nodes::{AnyQuery, HEADS_LEN_MIN, HeadNodes, HeadsOf};
use crate::block::{LINE_BYTES, advise_vec};
use crate::head::bytes_of;
use crate::simd::heads::{At, HeadQuery};
use crate::simd::{prefetch, prefetch_bytes};

/// A level is this many bits of the rank.
const LEVEL_BITS: u32 = 4;
/// Children of a node.
const FAN_OUT: usize = 1 << LEVEL_BITS;
const NODE_KEYS: usize = FAN_OUT - 1;

/// Lines of a node that are requested when a search reaches it.
const EAGER_LINES_MAX: usize = 8;

/// Sorted keys in the order of their nodes.
///
/// Invariant: `index.len() == (index.len() + leaves.len()) >> LEVEL_BITS`.
#[derive(Clone, Debug)]
pub(super) struct KeyTree<K> {
    /// Level 0: all keys whose rank does not end in the digit 15.
    leaves: Vec<K>,
    /// The other levels, the highest first.
    index: Vec<K>,
    /// Heads of the keys, where their type has any and they are not few.
    heads: Option<HeadNodes>,
}

/// Number of keys in the levels from `level` up, of `len` keys in all.
#[inline(always)]
fn keys_from_level(len: usize, level: u32) -> usize {
    len.checked_shr(LEVEL_BITS * level).unwrap_or(0)
}

/// The level that a rank lies in, and the rank counted among the keys from that level up.
#[inline(always)]
fn level_of(rank: usize) -> (u32, usize) {
    let (mut level, mut rank) = (0, rank);
    while rank % FAN_OUT == NODE_KEYS {
        rank >>= LEVEL_BITS;
        level += 1;
    }
    (level, rank)
}

impl<K> KeyTree<K> {
    /// A tree without keys, which allocates nothing.
    pub(super) const fn new() -> KeyTree<K> {
        KeyTree {
            leaves: Vec::new(),
            index: Vec::new(),
            heads: None,
        }
    }

    /// Moves the `len` keys into their places.
    ///
    /// # Panics
    /// If there are not `len` of them.
    pub(super) fn from_sorted(len: usize, keys: impl Iterator<Item = K>) -> KeyTree<K> {
        let mut leaves = Vec::with_capacity(len - keys_from_level(len, 1));
        advise_vec(&leaves);
        let mut above: Vec<Vec<K>> = Vec::new();
        for (rank, key) in keys.enumerate() {
            match level_of(rank) {
                (0, _) => leaves.push(key),
                (level, _) => {
                    let level = level as usize - 1;
                    if above.len() == level {
                        above.push(Vec::new());
                    }
                    above[level].push(key);
                }
            }
        }
        let mut index = Vec::with_capacity(keys_from_level(len, 1));
        advise_vec(&index);
        for level in above.iter_mut().rev() {
            index.append(level);
        }
        let mut tree = KeyTree {
            leaves,
            index,
            heads: None,
        };
        assert!(
            tree.len() == len && tree.is_valid(),
            "{} keys where {len} were announced",
            tree.len()
        );
        if let Some(heads) = HeadsOf::of()
            && len >= HEADS_LEN_MIN
        {
            tree.heads = Some(HeadNodes::new(&heads, len, |rank| tree.key(rank)));
        }
        tree
    }

    /// Whether the two vectors have the lengths that they should have.
    pub(super) fn is_valid(&self) -> bool {
        self.index.len() == keys_from_level(self.len(), 1)
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.leaves.len() + self.index.len()
    }

    /// Bytes allocated for the keys (not by them).
    pub(super) fn memory_bytes(&self) -> usize {
        // Zero-sized keys have an unlimited capacity, of no bytes.
        let heads_bytes = self.heads.as_ref().map_or(0, HeadNodes::memory_bytes);
        self.leaves.capacity() * size_of::<K>()
            + self.index.capacity() * size_of::<K>()
            + heads_bytes
    }

    #[inline(always)]
    fn level(&self, level: u32) -> &[K] {
        if level == 0 {
            return &self.leaves;
        }
        let len = self.len();
        &self.index[keys_from_level(len, level + 1)..keys_from_level(len, level)]
    }

    /// The key of `rank`.
    ///
    /// # Panics
    /// When `rank >= len`.
    #[inline]
    pub(super) fn key(&self, rank: usize) -> &K {
        let (level, rank) = level_of(rank);
        &self.level(level)[rank - (rank >> LEVEL_BITS)]
    }

    /// The rank of the key that compares equal to `query`, or the number of keys less than it.
    ///
    /// Prefetches those of `values` that may be needed next, together with the last keys.
    pub(super) fn search<Q: ?Sized + Ord, V>(&self, query: &Q, values: &[V]) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        if let (Some(heads), Some(query_heads)) = (&self.heads, AnyQuery::of::<K, Q>(query)) {
            return match query_heads {
                AnyQuery::Bytes(bytes) => {
                    // Heads leave out what all keys share: the query has to share it.
                    let shared = bytes_of(self.key(0)).unwrap_or(&[]);
                    let prefix = shared.get(..heads.prefix_bytes()).unwrap_or(shared);
                    if !bytes.0.starts_with(prefix) {
                        return Err(if bytes.0 < prefix { 0 } else { self.len() });
                    }
                    self.search_by_heads(heads, bytes, query, values)
                }
                AnyQuery::Fixed(head) => self.search_by_heads(heads, head, query, values),
            };
        }
        let height = (usize::BITS - self.len().leading_zeros()).div_ceil(LEVEL_BITS);
        let mut node = 0;
        for level in (0..height).rev() {
            let keys = self.level(level);
            // The node exists: its number is at most that of the keys above, each of which has
            // fifteen before it in this level.
            let start = node * NODE_KEYS;
            let keys = &keys[start..keys.len().min(start + NODE_KEYS)];
            prefetch_bytes(
                keys.as_ptr().cast(),
                size_of_val(keys).min(EAGER_LINES_MAX * LINE_BYTES),
            );
            if level == 0 && FAN_OUT * size_of::<V>() <= EAGER_LINES_MAX * LINE_BYTES {
                prefetch_bytes(
                    values.as_ptr().wrapping_add(node * FAN_OUT).cast(),
                    FAN_OUT * size_of::<V>(),
                );
            }
            match search_node(keys, query) {
                // Above this key's rank in its own level lie as many keys below each level as it
                // has children.
                Ok(slot) => return Ok(((node * FAN_OUT + slot + 1) << (LEVEL_BITS * level)) - 1),
                Err(slot) => node = node * FAN_OUT + slot,
            }
        }
        Err(node)
    }
}

impl<K> KeyTree<K> {
    /// [`search`](KeyTree::search) by heads; compares keys only where heads are equal.
    #[inline]
    fn search_by_heads<Q: ?Sized + Ord, H: HeadQuery, V>(
        &self,
        heads: &HeadNodes,
        query_heads: H,
        query: &Q,
        values: &[V],
    ) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        let mut at = heads.root();
        loop {
            let stop = heads.stop(at, query_heads, &self.leaves, values);
            let At { level, node } = stop.at;
            let mut slot = stop.slot;
            if level == 0 && !H::KEYS_ARE_WHOLE {
                // While the key is compared, if it is.
                prefetch(values.as_ptr().wrapping_add(node * FAN_OUT + slot));
            }
            let level_bits = LEVEL_BITS * u32::try_from(level).unwrap_or(u32::MAX);
            if let Some(head) = stop.tie {
                let start = node * NODE_KEYS;
                let keys = self.level(level_bits / LEVEL_BITS);
                let keys = &keys[start..keys.len().min(start + NODE_KEYS)];
                let equal = heads.node(stop.at)[slot..]
                    .iter()
                    .take_while(|&&other| other == head)
                    .count();
                // Absent keys have a head too, which may be that of the query.
                let first = slot.min(keys.len());
                let equal = &keys[first..keys.len().min(slot + equal)];
                match search_node(equal, query) {
                    Ok(found) => {
                        return Ok(((node * FAN_OUT + first + found + 1) << level_bits) - 1);
                    }
                    Err(before) => slot = first + before,
                }
            }
            if level == 0 {
                return Err(node * FAN_OUT + slot);
            }
            at = At {
                level: level - 1,
                node: node * FAN_OUT + slot,
            };
        }
    }
}

#[inline(always)]
fn search_node<K: Borrow<Q>, Q: ?Sized + Ord>(keys: &[K], query: &Q) -> Result<usize, usize> {
    if !core::mem::needs_drop::<K>() {
        // Most likely a small plain value: without branches that depend on keys.
        return keys.binary_search_by(|key| key.borrow().cmp(query));
    }
    // Each comparison may be a miss: stop at an equal key.
    let (mut start, mut end) = (0, keys.len());
    while start < end {
        let middle = start + (end - start) / 2;
        match keys[middle].borrow().cmp(query) {
            Ordering::Less => start = middle + 1,
            Ordering::Greater => end = middle,
            Ordering::Equal => return Ok(middle),
        }
    }
    Err(start)
}

impl<K> IntoIterator for KeyTree<K> {
    type Item = K;
    type IntoIter = IntoIter<K>;

    fn into_iter(self) -> IntoIter<K> {
        let end = self.len();
        let mut index = self.index;
        let mut levels = alloc::vec![self.leaves.into_iter()];
        let mut level = 1;
        while keys_from_level(end, level) > 0 {
            levels.push(index.split_off(keys_from_level(end, level + 1)).into_iter());
            level += 1;
        }
        IntoIter {
            levels,
            start: 0,
            end,
        }
    }
}

/// Moves the keys out, from both ends: the keys of each level are in order, so that the level of a
/// rank is all that must be known.
///
/// Invariant: the keys of the ranks `start..end` are the ones left in `levels`.
#[derive(Debug)]
pub(super) struct IntoIter<K> {
    levels: Vec<vec::IntoIter<K>>,
    start: usize,
    end: usize,
}

impl<K> IntoIter<K> {
    /// The keys left, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &K> {
        let mut levels: Vec<_> = self
            .levels
            .iter()
            .map(|level| level.as_slice().iter())
            .collect();
        (self.start..self.end).filter_map(move |rank| levels[level_of(rank).0 as usize].next())
    }
}

impl<K> Iterator for IntoIter<K> {
    type Item = K;

    #[inline]
    fn next(&mut self) -> Option<K> {
        if self.start == self.end {
            return None;
        }
        let (level, _) = level_of(self.start);
        self.start += 1;
        self.levels[level as usize].next()
    }
}

impl<K> DoubleEndedIterator for IntoIter<K> {
    #[inline]
    fn next_back(&mut self) -> Option<K> {
        if self.start == self.end {
            return None;
        }
        self.end -= 1;
        let (level, _) = level_of(self.end);
        self.levels[level as usize].next_back()
    }
}

#[cfg(test)]
mod tests {
    use super::KeyTree;

    #[test]
    fn keys_leave_in_order_from_both_ends() {
        for len in [0, 1, 15, 16, 17, 256, 300, 5_000] {
            let tree = KeyTree::from_sorted(len, 0..len);
            assert!(tree.is_valid() && tree.len() == len);
            assert_eq!(tree.memory_bytes(), len * size_of::<usize>());
            assert!((0..len).all(|rank| *tree.key(rank) == rank), "{len} keys");
            assert!(tree.clone().into_iter().eq(0..len));
            assert!(tree.clone().into_iter().rev().eq((0..len).rev()));
            let (mut keys, mut expected) = (tree.into_iter(), 0..len);
            for turn in 0..=len {
                if turn % 3 == 0 {
                    assert_eq!(keys.next_back(), expected.next_back());
                } else {
                    assert_eq!(keys.next(), expected.next());
                }
                if turn % 64 == 0 {
                    assert!(keys.iter().copied().eq(expected.clone()));
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "3 keys where 4 were announced")]
    fn a_wrong_length_is_refused() {
        let _tree = KeyTree::from_sorted(4, 0..3);
    }
}
