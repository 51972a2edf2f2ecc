//! Sets of any number of ways: fully associative TLBs, and what somebody would like to know.
//!
//! LRU finds and reorders in one pass: the block goes in at the front, and what it pushes out moves
//! on to the next way, until the block itself is pushed out (a hit) or the last way is (a miss,
//! which evicts it). The other policies leave blocks in their ways.

use super::{FREE, Touch, held_block, index, plru};
use crate::hierarchy::{CacheLevel, ReplacementPolicy};
use crate::shape::random::SplitMix64;

/// Invariants: `entries` has `ways` entries for each set; a block is in at most one of them, which
/// is in its set; with LRU, an entry that is free has only free ones behind it.
#[derive(Clone, Debug)]
pub(super) struct WideSets {
    entries: Vec<u64>,
    ways: usize,
    set_mask: u64,
    policy: Policy,
}

#[derive(Clone, Debug)]
enum Policy {
    /// The entries of a set are in order of use, the last one used first.
    Lru,
    /// The bits of all sets, so many words each.
    TreePlru {
        bits: Vec<u64>,
        words: usize,
    },
    Random(SplitMix64),
}

impl WideSets {
    pub(super) fn new(level: &CacheLevel, seed: u64) -> WideSets {
        let geometry = level.geometry;
        let (ways, sets) = (index(geometry.associativity()), index(geometry.sets()));
        let words = plru::words(ways);
        WideSets {
            entries: vec![FREE; sets * ways],
            ways,
            set_mask: geometry.sets() - 1,
            policy: match level.policy {
                ReplacementPolicy::Lru => Policy::Lru,
                ReplacementPolicy::TreePlru => Policy::TreePlru {
                    bits: vec![0; sets * words],
                    words,
                },
                ReplacementPolicy::Random => Policy::Random(SplitMix64::new(seed)),
            },
        }
    }

    #[inline(never)]
    pub(super) fn touch(&mut self, block: u64) -> Touch {
        if let Policy::Lru = self.policy {
            let (set, entry) = (self.set_of(block), block + 1);
            return pass_through(&mut self.entries[set..set + self.ways], entry);
        }
        if self.use_if_held(block) {
            Touch::Hit
        } else {
            Touch::Miss(self.insert(block))
        }
    }

    pub(super) fn use_if_held(&mut self, block: u64) -> bool {
        let Some((set, way)) = self.find(block) else {
            return false;
        };
        match &mut self.policy {
            Policy::Lru => self.entries[set..=set + way].rotate_right(1),
            Policy::TreePlru { bits, words } => {
                let bits = &mut bits[set / self.ways * *words..][..*words];
                plru::point_away(bits, self.ways, way);
            }
            Policy::Random(_) => {}
        }
        true
    }

    pub(super) fn insert(&mut self, block: u64) -> Option<u64> {
        debug_assert!(self.find(block).is_none(), "block {block} is there already");
        let (set, entry) = (self.set_of(block), block + 1);
        let entries = &mut self.entries[set..set + self.ways];
        let free = |entries: &[u64]| entries.iter().position(|&other| other == FREE);
        let way = match &mut self.policy {
            Policy::Lru => {
                return match pass_through(entries, entry) {
                    Touch::Miss(evicted) => evicted,
                    Touch::Hit => None,
                };
            }
            Policy::TreePlru { bits, words } => {
                let bits = &mut bits[set / self.ways * *words..][..*words];
                let way = free(entries).unwrap_or_else(|| plru::victim(bits, self.ways));
                plru::point_away(bits, self.ways, way);
                way
            }
            Policy::Random(random) => free(entries).unwrap_or_else(|| {
                // A geometry has at most 2^16 ways.
                random.below(u32::try_from(entries.len()).unwrap_or(u32::MAX)) as usize
            }),
        };
        held_block(std::mem::replace(&mut entries[way], entry))
    }

    pub(super) fn remove(&mut self, block: u64) -> bool {
        let Some((set, way)) = self.find(block) else {
            return false;
        };
        let entries = &mut self.entries[set..set + self.ways];
        entries[way] = FREE;
        if let Policy::Lru = self.policy {
            entries[way..].rotate_left(1);
        }
        true
    }

    pub(super) fn clear(&mut self) {
        self.entries.fill(FREE);
        if let Policy::TreePlru { bits, .. } = &mut self.policy {
            bits.fill(0);
        }
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> Vec<u64> {
        self.entries
            .iter()
            .copied()
            .filter_map(held_block)
            .collect()
    }

    /// Where the entries of a block's set begin.
    #[inline]
    fn set_of(&self, block: u64) -> usize {
        index(block & self.set_mask) * self.ways
    }

    /// Where its set begins and its way there.
    fn find(&self, block: u64) -> Option<(usize, usize)> {
        let (set, entry) = (self.set_of(block), block + 1);
        let entries = &self.entries[set..set + self.ways];
        let way = entries.iter().position(|&other| other == entry)?;
        Some((set, way))
    }
}

/// Puts an entry in front, and moves each other one back until the entry's old place or the end is
/// reached.
#[inline]
fn pass_through(entries: &mut [u64], entry: u64) -> Touch {
    let mut moving = entry;
    for place in entries {
        std::mem::swap(place, &mut moving);
        if moving == entry {
            return Touch::Hit;
        }
    }
    Touch::Miss(held_block(moving))
}
