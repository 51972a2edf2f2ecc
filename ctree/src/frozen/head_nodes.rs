//! The heads of the keys of a [`KeyTree`](super::key_tree), for keys whose type has heads: a second
//! index beside the keys, of the same shape.
//!
//! Comparing a `String` costs a miss, in each of the four comparisons of a node. Heads lie in the
//! node, 15 in two lines that are requested together: a search touches keys only where heads are
//! equal, mostly in the leaf. They cost 8.5 B a key. See [`heads`](crate::simd::heads) for the
//! node.

use alloc::vec::Vec;
use core::ptr::NonNull;

use crate::block::{Block, LINE_BYTES};
use crate::head::{bytes_of, common_prefix, head_of_bytes, is_byte_string, recognised};
use crate::plan::NODE_BYTES;
use crate::simd::heads::{self, At, BytesQuery, FixedQuery, HeadQuery, NODE_HEADS, Stop};
use crate::simd::{EagerValues, Isa};

/// Fewest keys that get heads.
pub(super) const HEADS_LEN_MIN: usize = 5;

/// Most lines of keys, or of values, that are prefetched when a search reaches its leaf.
const EAGER_LINES_MAX: usize = 8;

/// What the heads of a key type are.
pub(super) enum HeadsOf<K> {
    Bytes,
    /// A number for each key.
    Fixed(fn(&K) -> u64),
}

impl<K> HeadsOf<K> {
    #[inline(always)]
    pub(super) fn of() -> Option<HeadsOf<K>> {
        if is_byte_string::<K>() {
            Some(HeadsOf::Bytes)
        } else {
            recognised::<K>().map(HeadsOf::Fixed)
        }
    }
}

/// Nodes of heads.
///
/// Invariants:
/// - `block` holds nodes of [`NODE_BYTES`], all of them initialised, and level `l` starts at node
///   `level_at[l]`;
/// - level `l` has one node more than there are keys in the levels above it, and its node `n` has
///   no more keys than there are in the levels from `l` up, less `16 n`;
/// - the lanes of a node that belong to no key hold the largest integer.
#[derive(Debug)]
pub(super) struct HeadNodes {
    block: Block,
    /// The leaves first in this list, last in the block.
    level_at: Vec<usize>,
    isa: Isa,
    /// Leading bytes that all keys share.
    prefix_bytes: usize,
}

impl HeadNodes {
    /// The heads of `len` keys in order, given the key of each rank.
    pub(super) fn new<'a, K: 'a>(
        heads: &HeadsOf<K>,
        len: usize,
        key: impl Fn(usize) -> &'a K,
    ) -> HeadNodes {
        let fan_out = NODE_HEADS + 1;
        let keys_from_level = |level: usize| (0..level).fold(len, |keys, _| keys / fan_out);
        let height = (0..)
            .take_while(|&level| keys_from_level(level) > 0)
            .count();
        let nodes_in_level = |level: usize| keys_from_level(level + 1) + 1;
        let mut level_at = alloc::vec![0; height];
        let mut nodes = 0;
        for level in (0..height).rev() {
            level_at[level] = nodes;
            nodes += nodes_in_level(level);
        }
        let bytes = |rank: usize| bytes_of(key(rank)).unwrap_or(&[]);
        let shared = |low: usize, high: usize| match heads {
            HeadsOf::Bytes => common_prefix(bytes(low), bytes(high)),
            HeadsOf::Fixed(_) => 0,
        };
        let prefix_bytes = shared(0, len - 1);
        let block = Block::new(nodes * NODE_BYTES);
        let lane = |node: usize, lane: usize| {
            debug_assert!(
                node < nodes && lane <= NODE_HEADS,
                "lane {lane} of node {node} of {nodes}"
            );
            // SAFETY: the node is one of those that the block was made for, and has one lane more
            // than heads.
            unsafe { block.base().add(node * NODE_BYTES).cast::<u64>().add(lane) }
        };
        for (level, &level_at) in level_at.iter().enumerate() {
            let rank_of = |child: usize| {
                child.checked_mul(fan_out.pow(u32::try_from(level).unwrap_or(u32::MAX)))
            };
            for node in 0..nodes_in_level(level) {
                // The rank of the separator before child `c` of the whole level is `c * 16^level -
                // 1`.
                let key_rank = |child: usize| {
                    rank_of(child)
                        .map(|rank| rank - 1)
                        .filter(|&rank| rank < len)
                };
                let first = node * fan_out;
                let low = if node > 0 { key_rank(first) } else { None };
                let high = key_rank(first + fan_out);
                let skip = match (low, high) {
                    (Some(low), Some(high)) => shared(low, high),
                    _ => prefix_bytes,
                };
                for slot in 0..NODE_HEADS {
                    let head = key_rank(first + slot + 1).map_or(u64::MAX, |rank| match heads {
                        HeadsOf::Bytes => head_of_bytes(bytes(rank), skip),
                        HeadsOf::Fixed(head) => head(key(rank)),
                    });
                    // SAFETY: a lane of the block, to which nothing else refers yet.
                    unsafe { lane(level_at + node, slot).write(head) };
                }
                // SAFETY: the lane behind the heads is within the node, and nothing else refers to
                // the block.
                unsafe { lane(level_at + node, NODE_HEADS).write(skip as u64) };
            }
        }
        HeadNodes {
            block,
            level_at,
            isa: Isa::detect(),
            prefix_bytes,
        }
    }

    /// Leading bytes that all keys share.
    #[inline(always)]
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix_bytes
    }

    #[inline(always)]
    pub(super) fn root(&self) -> At {
        At {
            level: self.level_at.len() - 1,
            node: 0,
        }
    }

    /// Descends from a node until heads do not decide. Prefetches those of `leaf_keys` and `values`
    /// that belong to the leaf.
    ///
    /// # Panics
    /// If there is no such node.
    #[inline(always)]
    pub(super) fn stop<Q: HeadQuery, K, V>(
        &self,
        from: At,
        query: Q,
        leaf_keys: &[K],
        values: &[V],
    ) -> Stop {
        let eager = [
            in_step(leaf_keys, NODE_HEADS),
            if Q::KEYS_ARE_WHOLE {
                // A leaf's values, and that of the separator behind it.
                in_step(values, NODE_HEADS + 1)
            } else {
                EagerValues::NONE
            },
        ];
        assert!(
            from.node < self.node_count(from.level),
            "node {} of level {}",
            from.node,
            from.level
        );
        // SAFETY: by the invariants, and the assertion on `from`.
        unsafe {
            heads::stop(
                self.isa,
                self.block.base(),
                &self.level_at,
                &eager,
                from,
                query,
            )
        }
    }

    #[inline(always)]
    fn node_count(&self, level: usize) -> usize {
        let end = match level.checked_sub(1) {
            Some(below) => self.level_at[below],
            None => self.block.bytes() / NODE_BYTES,
        };
        end - self.level_at[level]
    }

    #[inline(always)]
    pub(super) fn node(&self, at: At) -> &[u64; NODE_HEADS] {
        assert!(at.node < self.node_count(at.level), "{at:?} does not exist");
        let offset = (self.level_at[at.level] + at.node) * NODE_BYTES;
        // SAFETY: the node is inside the block.
        let node: NonNull<[u64; NODE_HEADS]> = unsafe { self.block.base().add(offset).cast() };
        // SAFETY: by the invariants the node is initialised; it is never written to again.
        unsafe { node.as_ref() }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.block.bytes() + self.level_at.capacity() * size_of::<usize>()
    }
}

impl Clone for HeadNodes {
    fn clone(&self) -> HeadNodes {
        let block = Block::new(self.block.bytes());
        // SAFETY: two blocks of as many bytes, the first of them initialised.
        unsafe {
            block
                .base()
                .copy_from_nonoverlapping(self.block.base(), self.block.bytes());
        };
        HeadNodes {
            block,
            level_at: self.level_at.clone(),
            isa: self.isa,
            prefix_bytes: self.prefix_bytes,
        }
    }
}

/// What to prefetch of things that follow the leaves, `count` for each, if these are not too many
/// lines.
#[inline(always)]
fn in_step<T>(things: &[T], count: usize) -> EagerValues {
    let leaf_bytes = count * size_of::<T>();
    // They start anywhere within a line.
    let lines = leaf_bytes.div_ceil(LINE_BYTES) + 1;
    if leaf_bytes > 0 && lines <= EAGER_LINES_MAX {
        EagerValues::new(things.as_ptr().cast(), leaf_bytes, lines, 0)
    } else {
        EagerValues::NONE
    }
}

#[cfg(test)]
impl HeadNodes {
    /// The same nodes, searched with other instructions.
    fn with_isa(mut self, isa: Isa) -> HeadNodes {
        self.isa = isa;
        self
    }
}

/// A query of any type, if it has the heads that keys of type `K` have.
pub(super) enum AnyQuery<'a> {
    Bytes(BytesQuery<'a>),
    /// A query of the very type of the keys, with a head of its own.
    Fixed(FixedQuery),
}

impl<'a> AnyQuery<'a> {
    /// The heads of `query`, where keys are `K`. Folds to one of the cases.
    #[inline(always)]
    pub(super) fn of<K, Q: ?Sized>(query: &'a Q) -> Option<AnyQuery<'a>> {
        match HeadsOf::<K>::of()? {
            HeadsOf::Bytes => bytes_of(query).map(|bytes| AnyQuery::Bytes(BytesQuery(bytes))),
            HeadsOf::Fixed(head) => (typeid::of::<Q>() == typeid::of::<K>()).then(|| {
                let query = core::ptr::from_ref(query).cast::<K>();
                // SAFETY: the recognised types have no lifetimes, so that equal ids mean that `Q`
                // is `K`; the pointer is a live reference.
                AnyQuery::Fixed(FixedQuery(head(unsafe { &*query })))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::{HeadNodes, HeadsOf};
    use crate::simd::Isa;
    use crate::simd::heads::{At, BytesQuery, HeadQuery};

    #[test]
    fn every_path_stops_where_counting_does() {
        let keys: Vec<String> = (100..900).map(|n| format!("shared {}", n * 7)).collect();
        let mut keys = keys;
        keys.sort_unstable();
        let heads = HeadsOf::<String>::of().unwrap();
        for isa in Isa::available() {
            let nodes = HeadNodes::new(&heads, keys.len(), |rank| &keys[rank]).with_isa(isa);
            assert_eq!(nodes.prefix_bytes(), "shared ".len());
            for query in keys.iter().map(|key| BytesQuery(key.as_bytes())) {
                let (mut at, mut ranks) = (nodes.root(), 0);
                // Each key is somewhere on the path to its leaf.
                let stop = loop {
                    let stop = nodes.stop(at, query, &keys, &[(); 0]);
                    assert_eq!(
                        stop.slot,
                        nodes
                            .node(stop.at)
                            .iter()
                            .filter(|&&head| head < stop.tie.unwrap_or(u64::MAX))
                            .count()
                    );
                    if stop.tie.is_some() {
                        break stop;
                    }
                    ranks += 1;
                    assert!(
                        ranks < 10 && stop.at.level > 0,
                        "{query:?} not found with {isa:?}"
                    );
                    at = At {
                        level: stop.at.level - 1,
                        node: stop.at.node * 16 + stop.slot,
                    };
                };
                let rank = ((stop.at.node * 16 + stop.slot + 1) << (4 * stop.at.level)) - 1;
                assert_eq!(keys[rank].as_bytes(), query.0, "{isa:?}");
            }
        }
    }

    #[test]
    fn heads_of_queries_are_those_of_keys() {
        for text in [
            "",
            "a",
            "abcdefg",
            "abcdefgh",
            "abcdefghi",
            "a longer text of bytes",
        ] {
            for skip in 0..30 {
                let expected = crate::head::head_of_bytes(text.as_bytes(), skip);
                assert_eq!(
                    BytesQuery(text.as_bytes()).head(skip as u64),
                    expected,
                    "{text:?} behind {skip}"
                );
            }
        }
        assert_eq!(BytesQuery(b"abc").head(u64::MAX), 0);
    }
}
