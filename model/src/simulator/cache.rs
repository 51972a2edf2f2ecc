//! One set-associative cache: which blocks it holds, and which of them give way.
//!
//! Two forms of sets, by the number of ways, do the same:
//!
//! | | up to 16 ways (`narrow`) | more (`wide`) |
//! |---|---|---|
//! | a block is found | by one byte of each way, all compared at once | by going through the ways |
//! | LRU | a word holds the ways in order of use | the ways themselves are in order of use |
//! | tree-PLRU | bits of an inner node each, in a word | the same, in several words |
//! | random | draws | draws |
//!
//! So an access to a cache as they are built costs the same wherever in its set the block is, and
//! no branch depends on where; and a fully associative one is as slow as it has ways.

mod narrow;
mod plru;
mod wide;

use crate::hierarchy::CacheLevel;
use narrow::NarrowSets;
use wide::WideSets;

/// Marks a free way. Blocks are kept as their number + 1, and a block has at least 8 bytes, so that
/// nothing wraps.
const FREE: u64 = 0;

/// What became of a block that was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// It was there.
    Hit,
    /// It was not, and took the place of this block, or a free one.
    Miss(Option<u64>),
}

/// A set-associative cache of blocks, which are named by their number: address / block size.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    block_shift: u32,
    sets: Sets,
}

#[derive(Clone, Debug)]
enum Sets {
    Narrow(NarrowSets),
    Wide(WideSets),
}

/// The same method of either form.
macro_rules! in_either {
    ($sets:expr, $form:ident => $what:expr) => {
        match $sets {
            Sets::Narrow($form) => $what,
            Sets::Wide($form) => $what,
        }
    };
}

impl Cache {
    /// An empty cache; `seed` draws what random replacement evicts. O(blocks) memory.
    pub(super) fn new(level: &CacheLevel, seed: u64) -> Cache {
        Cache {
            block_shift: level.geometry.block_bytes().trailing_zeros(),
            sets: if level.geometry.associativity() <= narrow::WAYS_MAX {
                Sets::Narrow(NarrowSets::new(level, seed))
            } else {
                Sets::Wide(WideSets::new(level, seed))
            },
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

    /// Uses a block, which is brought in if it is not there.
    #[inline(always)]
    pub(super) fn touch(&mut self, block: u64) -> Touch {
        in_either!(&mut self.sets, sets => sets.touch(block))
    }

    /// Uses a block if it is there, and says whether it is.
    #[inline]
    pub(super) fn use_if_held(&mut self, block: u64) -> bool {
        in_either!(&mut self.sets, sets => sets.use_if_held(block))
    }

    /// Brings in a block that is not there; the block whose place it takes, if it takes one's.
    #[inline]
    pub(super) fn insert(&mut self, block: u64) -> Option<u64> {
        in_either!(&mut self.sets, sets => sets.insert(block))
    }

    /// Throws a block out, and says whether it was there.
    pub(super) fn remove(&mut self, block: u64) -> bool {
        in_either!(&mut self.sets, sets => sets.remove(block))
    }

    /// Throws everything out; a new cache of its policy, but for the random draws, which go on.
    pub(super) fn clear(&mut self) {
        in_either!(&mut self.sets, sets => sets.clear());
    }

    /// Whether a block is there; nothing changes.
    #[cfg(test)]
    pub(super) fn holds(&self, block: u64) -> bool {
        self.held().contains(&block)
    }

    /// All blocks, set by set, those of a set in no order that means anything.
    #[cfg(test)]
    pub(super) fn held(&self) -> Vec<u64> {
        in_either!(&self.sets, sets => sets.held())
    }
}

/// The block of an entry; none in a free way.
#[inline]
fn held_block(entry: u64) -> Option<u64> {
    entry.checked_sub(1)
}

/// A number that is an index into something that fits into memory.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "sets and ways of a hierarchy, of which there are at most 2^27"
)]
fn index(number: u64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::CacheGeometry;
    use crate::hierarchy::ReplacementPolicy;

    fn cache(sets: u64, ways: u64, policy: ReplacementPolicy) -> Cache {
        let geometry = CacheGeometry::new(sets, 64, ways).unwrap();
        let mut level = CacheLevel::lru("L1", geometry);
        level.policy = policy;
        Cache::new(&level, 1)
    }

    /// The blocks that a sequence of touches evicts; `None` for hits and free places.
    fn evictions(cache: &mut Cache, blocks: &[u64]) -> Vec<Option<u64>> {
        let touches = blocks.iter().map(|&block| cache.touch(block));
        touches
            .map(|touch| match touch {
                Touch::Hit => None,
                Touch::Miss(evicted) => evicted,
            })
            .collect()
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
        let [a, b, c, d, e, f, g, h] = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut set = cache(1, 4, ReplacementPolicy::TreePlru);
        let evicted = evictions(&mut set, &[a, b, c, d, a, e, f, g, h]);
        let [n, c, b, d, a] = [None, Some(c), Some(b), Some(d), Some(a)];
        assert_eq!(evicted, [n, n, n, n, n, c, b, d, a]);
        assert_eq!(set.held(), [h, f, e, g]);
    }

    /// Three ways: a half of two and a half of one.
    ///
    /// ```text
    /// touch   way   root  left     set after
    /// a       0     R     R        a . .
    /// b       1     R     L        a b .
    /// c       2     L     L        a b c
    /// d       0     R     R        d b c      root left, left left: a
    /// e       2     L     R        d b e      root right, one way only: c
    /// f       1     R     L        d f e      root left, left right: b
    /// ```
    #[test]
    fn tree_plru_of_three_ways_as_worked_by_hand() {
        let mut set = cache(1, 3, ReplacementPolicy::TreePlru);
        let evicted = evictions(&mut set, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(evicted, [None, None, None, Some(1), Some(3), Some(2)]);
        assert_eq!(set.held(), [4, 6, 5]);
    }

    #[test]
    fn plru_trees_of_many_ways_use_all_of_them() {
        for ways in [1, 2, 5, 12, 63, 64, 65, 100, 300] {
            let mut set = cache(2, ways, ReplacementPolicy::TreePlru);
            // Only even blocks: those of set 0.
            for block in 0..ways {
                assert_eq!(set.touch(2 * block), Touch::Miss(None));
            }
            let mut gone: Vec<u64> = (ways..2 * ways)
                .filter_map(|block| match set.touch(2 * block) {
                    Touch::Miss(evicted) => evicted,
                    Touch::Hit => None,
                })
                .collect();
            assert_eq!(gone.len() as u64, ways);
            // A power of two of ways gives way in turn when nothing is hit.
            if ways.is_power_of_two() {
                gone.sort_unstable();
                let expected: Vec<u64> = (0..ways).map(|block| 2 * block).collect();
                assert_eq!(gone, expected);
            }
        }
    }

    #[test]
    fn lru_evicts_what_was_used_longest_ago() {
        let mut set = cache(1, 3, ReplacementPolicy::Lru);
        assert_eq!(evictions(&mut set, &[1, 2, 3, 1, 3]), [None; 5]);
        assert_eq!(set.touch(4), Touch::Miss(Some(2)));
        assert!(set.remove(1));
        assert!(!set.remove(1));
        assert!(!set.holds(1) && set.holds(3) && set.holds(4));
        // The free place first.
        assert_eq!(set.touch(5), Touch::Miss(None));
        assert_eq!(set.touch(6), Touch::Miss(Some(3)));
        set.clear();
        assert!(set.held().is_empty());
    }

    #[test]
    fn random_replacement_takes_every_way_and_free_places_first() {
        let mut set = cache(1, 4, ReplacementPolicy::Random);
        assert_eq!(evictions(&mut set, &[0, 1, 2, 3]), [None; 4]);
        let mut places = [0; 4];
        for block in 4..4004 {
            let before = set.held();
            let Touch::Miss(Some(gone)) = set.touch(block) else {
                panic!("a full set evicts");
            };
            places[before.iter().position(|&held| held == gone).unwrap()] += 1;
        }
        // A binomial of 4000 draws: 1000 each, with a standard deviation of 27.
        assert!(
            places.iter().all(|count| (850..1150).contains(count)),
            "{places:?}"
        );
        set.remove(4003);
        assert_eq!(set.touch(1_000_000), Touch::Miss(None));
    }

    #[test]
    fn the_largest_addresses_are_blocks_like_others() {
        let geometry = CacheGeometry::new(2, 8, 1).unwrap();
        let mut smallest = Cache::new(&CacheLevel::lru("L1", geometry), 0);
        let last = smallest.block_of(u64::MAX);
        assert_eq!(smallest.touch(last), Touch::Miss(None));
        assert_eq!(smallest.touch(last), Touch::Hit);
        assert_eq!(smallest.touch(last - 2), Touch::Miss(Some(last)));
    }
}
