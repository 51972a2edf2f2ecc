//! One set-associative cache: which blocks it holds, and which it evicts.
//!
//! ```text
//! a set, words of 64 bits:   | marks, a byte for each way | block + 1 of each way | state |
//! ```
//!
//! - A **mark** is a byte of a hash of the block. A search compares the marks of 16 ways at once
//!   and then only the blocks whose mark is equal. So in a set of up to 16 ways no branch depends
//!   on where a block is.
//! - The **state** of LRU is the time of the last use of each way, 0 where the way is free. That of
//!   tree-PLRU is the bits of its tree. Random replacement has none.

use crate::hierarchy::{CacheLevel, ReplacementPolicy};
use crate::shape::random::SplitMix64;

/// Marks a free way. Blocks are kept as their number + 1, and a block has at least 8 bytes, so that
/// nothing wraps.
const FREE: u64 = 0;
/// Ways whose marks are compared at once, and the words that hold them.
const GROUP_WAYS: usize = 16;
const GROUP_WORDS: usize = 2;
/// A one and the highest bit in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// A set-associative cache of blocks, which are named by their number: address / block size.
///
/// Invariants: a block is in at most one way, of its set; the mark of a way with a block is the
/// block's; under LRU, exactly the free ways have a time of 0.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    block_shift: u32,
    set_mask: u64,
    ways: usize,
    mark_words: usize,
    set_words: usize,
    words: Vec<u64>,
    policy: Policy,
}

#[derive(Clone, Debug)]
enum Policy {
    /// Counts uses.
    Lru {
        time: u64,
    },
    TreePlru,
    Random(SplitMix64),
}

/// The words of a set.
struct Set<'a> {
    marks: &'a mut [u64],
    blocks: &'a mut [u64],
    state: &'a mut [u64],
}

impl Cache {
    /// An empty cache; `seed` draws what random replacement evicts.
    pub(super) fn new(level: &CacheLevel, seed: u64) -> Cache {
        let geometry = level.geometry;
        let ways = index(geometry.associativity());
        let mark_words = ways.div_ceil(GROUP_WAYS) * GROUP_WORDS;
        let (policy, state_words) = match level.policy {
            ReplacementPolicy::Lru => (Policy::Lru { time: 0 }, ways),
            ReplacementPolicy::TreePlru => {
                (Policy::TreePlru, ways.next_power_of_two().div_ceil(64))
            }
            ReplacementPolicy::Random => (Policy::Random(SplitMix64::new(seed)), 0),
        };
        let set_words = mark_words + ways + state_words;
        Cache {
            block_shift: geometry.block_bytes().trailing_zeros(),
            set_mask: geometry.sets() - 1,
            ways,
            mark_words,
            set_words,
            words: vec![FREE; index(geometry.sets()) * set_words],
            policy,
        }
    }

    /// log2 of the size of a block.
    #[inline]
    pub(super) fn block_shift(&self) -> u32 {
        self.block_shift
    }

    /// The block that an address lies in.
    #[inline]
    pub(super) fn block_of(&self, address: u64) -> u64 {
        address >> self.block_shift
    }

    /// The set of a block, and the policy.
    #[inline(always)]
    fn set_of(&mut self, block: u64) -> (Set<'_>, &mut Policy) {
        let start = index(block & self.set_mask) * self.set_words;
        let words = &mut self.words[start..start + self.set_words];
        let (marks, words) = words.split_at_mut(self.mark_words);
        let (blocks, state) = words.split_at_mut(self.ways);
        (
            Set {
                marks,
                blocks,
                state,
            },
            &mut self.policy,
        )
    }

    /// Uses a block if the cache holds it, and says whether it does.
    #[inline(always)]
    pub(super) fn use_if_held(&mut self, block: u64) -> bool {
        let (set, policy) = self.set_of(block);
        let way = set.find(block);
        if let Some(way) = way {
            policy.use_way(set, way);
        }
        way.is_some()
    }

    /// Brings in a block that the cache does not hold, and returns the block that it evicts.
    #[inline]
    pub(super) fn insert(&mut self, block: u64) -> Option<u64> {
        let (set, policy) = self.set_of(block);
        debug_assert!(set.find(block).is_none(), "block {block} is held already");
        let way = policy.victim(&set);
        let (marks, shift) = (&mut set.marks[way / 8], way % 8 * 8);
        *marks = *marks & !(0xff << shift) | mark(block) << shift;
        let evicted = std::mem::replace(&mut set.blocks[way], block + 1);
        policy.use_way(set, way);
        evicted.checked_sub(1)
    }

    /// Removes a block, and says whether the cache held it.
    pub(super) fn remove(&mut self, block: u64) -> bool {
        let (set, policy) = self.set_of(block);
        let way = set.find(block);
        if let Some(way) = way {
            set.blocks[way] = FREE;
            if let Policy::Lru { .. } = policy {
                set.state[way] = 0;
            }
        }
        way.is_some()
    }

    /// Empties the cache; random draws go on.
    pub(super) fn clear(&mut self) {
        self.words.fill(FREE);
    }

    /// All blocks, set by set and way by way.
    #[cfg(test)]
    pub(super) fn held(&self) -> Vec<u64> {
        let sets = self.words.chunks_exact(self.set_words);
        let blocks = sets.flat_map(|set| &set[self.mark_words..][..self.ways]);
        blocks.filter_map(|block| block.checked_sub(1)).collect()
    }
}

impl Set<'_> {
    /// The way that holds a block.
    #[inline(always)]
    fn find(&self, block: u64) -> Option<usize> {
        let wanted = mark(block) * ONES;
        // The highest bit of each byte that is equal, and perhaps of some above one that is.
        let equal = |marks: u64| {
            let unequal = marks ^ wanted;
            unequal.wrapping_sub(ONES) & !unequal & HIGHS
        };
        for (group, marks) in self.marks.chunks_exact(GROUP_WORDS).enumerate() {
            // Way i of the group at bit 8i, way 8 + i at bit 8i + 1.
            let mut candidates = equal(marks[0]) >> 7 | equal(marks[1]) >> 6;
            while candidates != 0 {
                let bit = candidates.trailing_zeros() as usize;
                let way = group * GROUP_WAYS + bit / 8 + bit % 8 * 8;
                // The last group has marks of ways that do not exist.
                if self.blocks.get(way) == Some(&(block + 1)) {
                    return Some(way);
                }
                candidates &= candidates - 1;
            }
        }
        None
    }
}

impl Policy {
    /// Notes a use of a way.
    #[inline(always)]
    fn use_way(&mut self, set: Set<'_>, way: usize) {
        match self {
            Policy::Lru { time } => {
                *time += 1;
                set.state[way] = *time;
            }
            Policy::TreePlru => point_away(set.state, set.blocks.len(), way),
            Policy::Random(_) => {}
        }
    }

    /// The way to evict: a free one, if there is one.
    #[inline(always)]
    fn victim(&mut self, set: &Set<'_>) -> usize {
        if let Policy::Lru { .. } = self {
            let (mut oldest, mut way) = (u64::MAX, 0);
            for (i, &time) in set.state.iter().enumerate() {
                if time < oldest {
                    (oldest, way) = (time, i);
                }
            }
            return way;
        }
        let free = set.blocks.iter().position(|&block| block == FREE);
        free.unwrap_or_else(|| match self {
            Policy::Random(random) => {
                // A geometry has at most 2^16 ways.
                random.below(u32::try_from(set.blocks.len()).unwrap_or(u32::MAX)) as usize
            }
            _ => plru_victim(set.state, set.blocks.len()),
        })
    }
}

/// A byte of a hash (multiplication by 2^64 / golden ratio): no byte of the number itself is sure
/// to differ between blocks of one set.
#[inline]
fn mark(block: u64) -> u64 {
    block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
}

/// A number that is an index into something that fits into memory.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "sets and ways of a hierarchy, which has at most 2^27 blocks"
)]
fn index(number: u64) -> usize {
    number as usize
}

/// The way that the bits of a tree-PLRU set point to.
///
/// The tree has as many leaves as there are ways, or the next power of two. Each inner node has a
/// bit that says which half holds the victim: 1 is the upper half, which is ignored where it has no
/// ways. Nodes are numbered as in a heap: 1 is the root, 2i and 2i + 1 are the halves of i.
fn plru_victim(bits: &[u64], ways: usize) -> usize {
    let (mut node, mut first) = (1, 0);
    let mut half = ways.next_power_of_two() / 2;
    while half > 0 {
        let upper = bits[node / 64] >> (node % 64) & 1 == 1 && first + half < ways;
        first += if upper { half } else { 0 };
        node = 2 * node + usize::from(upper);
        half /= 2;
    }
    first
}

/// Turns the bits on the path to `way` so that they point elsewhere.
fn point_away(bits: &mut [u64], ways: usize, way: usize) {
    let mut node = 1;
    let mut half = ways.next_power_of_two() / 2;
    while half > 0 {
        let upper = way & half != 0;
        let (word, bit) = (&mut bits[node / 64], node % 64);
        *word = *word & !(1 << bit) | u64::from(!upper) << bit;
        node = 2 * node + usize::from(upper);
        half /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::CacheGeometry;

    /// The blocks that accesses to one set evict; `None` for hits and free ways.
    fn evictions(set: &mut Cache, blocks: &[u64]) -> Vec<Option<u64>> {
        let access = |&block: &u64| match set.use_if_held(block) {
            true => None,
            false => set.insert(block),
        };
        blocks.iter().map(access).collect()
    }

    fn plru(ways: u64) -> Cache {
        let geometry = CacheGeometry::new(1, 64, ways).unwrap();
        let mut level = CacheLevel::lru("L1", geometry);
        level.policy = ReplacementPolicy::TreePlru;
        Cache::new(&level, 1)
    }

    /// A set of four ways, by hand. Bits as root, left, right; each says where the victim is.
    ///
    /// ```text
    /// touch   way   bits after   set after
    /// a       0     R R -        a . . .
    /// b       1     R L -        a b . .
    /// c       2     L L R        a b c .
    /// d       3     L L L        a b c d
    /// a       0     R R L        a b c d      a hit
    /// e       2     L R R        a b e d      root right, right left: c, though b is older
    /// f       1     R L R        a f e d      root left, left right: b
    /// g       3     L L L        a f e g      root right, right right: d
    /// h       0     R R L        h f e g      root left, left left: a
    /// ```
    #[test]
    fn tree_plru_as_worked_by_hand() {
        let mut four = plru(4);
        let evicted = evictions(&mut four, &[1, 2, 3, 4, 1, 5, 6, 7, 8]);
        let [n, c, b, d, a] = [None, Some(3), Some(2), Some(4), Some(1)];
        assert_eq!(evicted, [n, n, n, n, n, c, b, d, a]);
        assert_eq!(four.held(), [8, 6, 5, 7]);
        // Three ways are a half of two and a half of one, which gives way every second time.
        let mut three = plru(3);
        let evicted = evictions(&mut three, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(evicted, [None, None, None, Some(1), Some(3), Some(2)]);
        assert_eq!(three.held(), [4, 6, 5]);
    }

    #[test]
    fn plru_trees_of_many_ways_use_all_of_them() {
        for ways in [1, 2, 5, 12, 63, 64, 65, 100, 300] {
            let mut many = plru(ways);
            let filled = evictions(&mut many, &(0..ways).collect::<Vec<u64>>());
            assert!(filled.iter().all(Option::is_none), "{ways}");
            let gone = evictions(&mut many, &(ways..2 * ways).collect::<Vec<u64>>());
            assert!(gone.iter().all(Option::is_some), "{ways}");
            // A power of two of ways gives way in turn when nothing is hit.
            if ways.is_power_of_two() {
                let mut gone: Vec<u64> = gone.into_iter().flatten().collect();
                gone.sort_unstable();
                assert_eq!(gone, (0..ways).collect::<Vec<u64>>());
            }
        }
    }
}
