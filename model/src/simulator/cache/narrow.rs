//! Sets of up to 16 ways, as nearly all caches have.
//!
//! ```text
//! a set, words of 64 bits:   | marks of ways 0-7 | marks of ways 8-15 | state | way 0 | way 1 | ...
//! ```
//!
//! - A **mark** is a byte of a hash of the block. A block is looked for by comparing all marks with
//!   its own at once, in two words; the few ways left are compared in full. No branch depends on
//!   where a block is, and a miss reads no entry at all, mostly.
//! - The **state** of LRU is a permutation of the ways in order of use, four bits each, the last
//!   one used lowest. Ways that the set has not got stand behind all others and stay there. Of
//!   tree-PLRU it is the bits of its tree.
//!
//! Held against going through the ways in order of use, as `wide` does, in processor seconds of 20
//! million accesses to random lines of three caches (12, 16 and 16 ways), medians of three
//! interleaved runs on a shared virtual machine:
//!
//! | | narrow | wide |
//! |---|---|---|
//! | all in the first cache | 0.16 | 0.33 |
//! | the same, with two TLBs and random frames | 0.44 | 0.52 |
//! | 64 MiB, most of it in no cache | 0.97 | 0.98 |

use super::{FREE, Touch, held_block, index, plru};
use crate::hierarchy::{CacheLevel, ReplacementPolicy};
use crate::shape::random::SplitMix64;

/// As many ways as marks fit into two words, and numbers of four bits into one.
pub(super) const WAYS_MAX: u64 = 16;
/// Words of a set before its entries.
const HEADER: usize = 3;
const STATE: usize = 2;
/// A one and the highest bit in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
/// The same in each four bits.
const NIBBLE_ONES: u64 = 0x1111_1111_1111_1111;
const NIBBLE_HIGHS: u64 = 0x8888_8888_8888_8888;
/// Ways in their own order, 0 lowest.
const IN_ORDER: u64 = 0xfedc_ba98_7654_3210;

/// Invariants: each set has `HEADER` words and one for each way; a block is in at most one way, of
/// its set; the mark of a way with a block is the block's; the state under LRU is a permutation
/// with the ways that are free last of the `ways` first.
#[derive(Clone, Debug)]
pub(super) struct NarrowSets {
    words: Vec<u64>,
    ways: usize,
    set_mask: u64,
    policy: Policy,
}

#[derive(Clone, Debug)]
enum Policy {
    Lru,
    TreePlru,
    Random(SplitMix64),
}

impl NarrowSets {
    pub(super) fn new(level: &CacheLevel, seed: u64) -> NarrowSets {
        let geometry = level.geometry;
        let (ways, sets) = (index(geometry.associativity()), index(geometry.sets()));
        let mut narrow = NarrowSets {
            words: vec![FREE; sets * (HEADER + ways)],
            ways,
            set_mask: geometry.sets() - 1,
            policy: match level.policy {
                ReplacementPolicy::Lru => Policy::Lru,
                ReplacementPolicy::TreePlru => Policy::TreePlru,
                ReplacementPolicy::Random => Policy::Random(SplitMix64::new(seed)),
            },
        };
        narrow.clear();
        narrow
    }

    #[inline(always)]
    pub(super) fn touch(&mut self, block: u64) -> Touch {
        let (ways, set) = (
            self.ways,
            set_of(&mut self.words, self.ways, self.set_mask, block),
        );
        match find(set, block) {
            Some(way) => {
                use_way(set, &self.policy, ways, way);
                Touch::Hit
            }
            None => Touch::Miss(insert(set, &mut self.policy, ways, block)),
        }
    }

    #[inline(always)]
    pub(super) fn use_if_held(&mut self, block: u64) -> bool {
        let (ways, set) = (
            self.ways,
            set_of(&mut self.words, self.ways, self.set_mask, block),
        );
        let way = find(set, block);
        if let Some(way) = way {
            use_way(set, &self.policy, ways, way);
        }
        way.is_some()
    }

    #[inline]
    pub(super) fn insert(&mut self, block: u64) -> Option<u64> {
        let (ways, set) = (
            self.ways,
            set_of(&mut self.words, self.ways, self.set_mask, block),
        );
        debug_assert!(find(set, block).is_none(), "block {block} is there already");
        insert(set, &mut self.policy, ways, block)
    }

    pub(super) fn remove(&mut self, block: u64) -> bool {
        let (ways, set) = (
            self.ways,
            set_of(&mut self.words, self.ways, self.set_mask, block),
        );
        let Some(way) = find(set, block) else {
            return false;
        };
        set[HEADER + way] = FREE;
        if let Policy::Lru = self.policy {
            set[STATE] = to_back(set[STATE], way, ways);
        }
        true
    }

    pub(super) fn clear(&mut self) {
        let state = match self.policy {
            Policy::Lru => IN_ORDER,
            Policy::TreePlru | Policy::Random(_) => 0,
        };
        self.words.fill(FREE);
        for set in self.words.chunks_exact_mut(HEADER + self.ways) {
            set[STATE] = state;
        }
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> Vec<u64> {
        let sets = self.words.chunks_exact(HEADER + self.ways);
        let entries = sets.flat_map(|set| &set[HEADER..]).copied();
        entries.filter_map(held_block).collect()
    }
}

/// The words of a block's set.
#[inline(always)]
fn set_of(words: &mut [u64], ways: usize, set_mask: u64, block: u64) -> &mut [u64] {
    let start = index(block & set_mask) * (HEADER + ways);
    &mut words[start..start + HEADER + ways]
}

/// Uses the block in a way of a set.
#[inline(always)]
fn use_way(set: &mut [u64], policy: &Policy, ways: usize, way: usize) {
    match policy {
        Policy::Lru => set[STATE] = to_front(set[STATE], way),
        Policy::TreePlru => plru::point_away(&mut set[STATE..HEADER], ways, way),
        Policy::Random(_) => {}
    }
}

/// Brings a block into a set; what was in its way.
#[inline(always)]
fn insert(set: &mut [u64], policy: &mut Policy, ways: usize, block: u64) -> Option<u64> {
    let way = match policy {
        Policy::Lru => {
            // The last is free, or the one not used for longest. With it gone, all others move up
            // by one place.
            let (order, last) = (set[STATE], 4 * (ways - 1));
            let (way, others) = (order >> last & 15, u64::MAX >> (60 - last) >> 4);
            set[STATE] = order & !(others << 4 | 15) | (order & others) << 4 | way;
            index(way)
        }
        Policy::TreePlru => {
            let way = free(set).unwrap_or_else(|| plru::victim(&set[STATE..HEADER], ways));
            plru::point_away(&mut set[STATE..HEADER], ways, way);
            way
        }
        Policy::Random(random) => free(set)
            .unwrap_or_else(|| random.below(u32::try_from(ways).unwrap_or(u32::MAX)) as usize),
    };
    let (marks, shift) = (&mut set[way / 8], way % 8 * 8);
    *marks = *marks & !(0xff << shift) | mark(block) << shift;
    held_block(std::mem::replace(&mut set[HEADER + way], block + 1))
}

/// The first free way of a set.
#[inline(never)]
fn free(set: &[u64]) -> Option<usize> {
    set[HEADER..].iter().position(|&entry| entry == FREE)
}

/// A byte of a hash (multiplication by 2^64 / golden ratio): blocks of one set have no byte in
/// which they differ for sure.
#[inline]
fn mark(block: u64) -> u64 {
    block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
}

/// The way of a set that a block is in.
#[inline(always)]
fn find(set: &[u64], block: u64) -> Option<usize> {
    let wanted = mark(block) * ONES;
    // The highest bit of each byte that is equal, and perhaps of some above one that is.
    let equal = |marks: u64| {
        let unequal = marks ^ wanted;
        unequal.wrapping_sub(ONES) & !unequal & HIGHS
    };
    // Way i at bit 8i, way 8 + i at bit 8i + 1.
    let mut candidates = equal(set[0]) >> 7 | equal(set[1]) >> 6;
    while candidates != 0 {
        let bit = candidates.trailing_zeros() as usize;
        let way = bit / 8 + bit % 8 * 8;
        // There are marks for ways that the set has not got.
        if set.get(HEADER + way) == Some(&(block + 1)) {
            return Some(way);
        }
        candidates &= candidates - 1;
    }
    None
}

/// The bits below the place of a way in an order of use.
#[inline]
fn below(order: u64, way: usize) -> u64 {
    let unequal = order ^ (way as u64 * NIBBLE_ONES);
    let equal = unequal.wrapping_sub(NIBBLE_ONES) & !unequal & NIBBLE_HIGHS;
    // The lowest is right; a way is there, so that there is one. Its bit is the highest of four.
    (equal & equal.wrapping_neg()).wrapping_sub(1) >> 3
}

/// An order of use after a way was used.
#[inline]
fn to_front(order: u64, way: usize) -> u64 {
    let below = below(order, way);
    order & !(below << 4 | 15) | (order & below) << 4 | way as u64
}

/// An order of use after a way became free: it comes last.
fn to_back(order: u64, way: usize, ways: usize) -> u64 {
    let below = below(order, way);
    let last = 4 * (ways - 1);
    // Of those that the set has.
    let own = u64::MAX >> (60 - last);
    order & !own | (order & own) >> 4 & !below | order & below | (way as u64) << last
}

#[cfg(test)]
mod tests {
    use quickcheck::quickcheck;

    use super::*;

    fn ways_of(order: u64) -> Vec<usize> {
        (0..16)
            .map(|place| index(order >> (4 * place) & 15))
            .collect()
    }

    quickcheck! {
        fn orders_of_use_are_those_of_a_list(uses: Vec<(u8, bool)>, ways: u8) -> bool {
            let ways = usize::from(ways % 16) + 1;
            let mut order = IN_ORDER;
            let mut list: Vec<usize> = (0..16).collect();
            for (way, used) in uses {
                let way = usize::from(way) % ways;
                let place = list.iter().position(|&other| other == way).unwrap();
                list.remove(place);
                list.insert(if used { 0 } else { ways - 1 }, way);
                order = if used { to_front(order, way) } else { to_back(order, way, ways) };
                assert_eq!(ways_of(order), list);
            }
            true
        }

        fn blocks_are_found_whatever_their_marks(blocks: Vec<u64>, ways: u8, other: u64) -> bool {
            let ways = usize::from(ways % 16) + 1;
            let mut set = vec![0; HEADER + ways];
            let blocks: Vec<u64> = blocks.iter().take(ways).map(|block| block >> 3).collect();
            for (way, &block) in blocks.iter().enumerate() {
                set[way / 8] |= mark(block) << (way % 8 * 8);
                set[HEADER + way] = block + 1;
            }
            for block in [&blocks[..], &[other >> 3]].concat() {
                let found = find(&set, block).map(|way| set[HEADER + way]);
                assert_eq!(found, blocks.contains(&block).then_some(block + 1));
            }
            true
        }
    }
}
