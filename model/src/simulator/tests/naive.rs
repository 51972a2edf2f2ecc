//! The simulator in its simplest form. It shares only the random numbers and the map of frames with
//! the fast one.

use std::collections::{BTreeMap, BTreeSet};

use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion, ReplacementPolicy};
use crate::shape::random::SplitMix64;
use crate::simulator::frames::FrameMap;
use crate::simulator::{Frames, SEED};

/// The tree-PLRU bits of a set by the range of ways below each inner node: whether the upper half
/// of the range holds the victim.
type Bits = BTreeMap<(usize, usize), bool>;

/// The way below `first..first + leaves` that is evicted.
fn plru_victim(bits: &Bits, first: usize, leaves: usize, ways: usize) -> usize {
    let half = leaves / 2;
    match leaves {
        1 => first,
        _ if first + half < ways && bits.get(&(first, leaves)) == Some(&true) => {
            plru_victim(bits, first + half, half, ways)
        }
        _ => plru_victim(bits, first, half, ways),
    }
}

/// Points all bits above `way` away from it.
fn plru_use(bits: &mut Bits, way: usize, mut leaves: usize) {
    let mut first = 0;
    while leaves > 1 {
        let in_upper = way >= first + leaves / 2;
        bits.insert((first, leaves), !in_upper);
        leaves /= 2;
        first += if in_upper { leaves } else { 0 };
    }
}

#[derive(Clone)]
struct NaiveSet {
    /// Block by way.
    ways: Vec<Option<u64>>,
    /// Ways in order of use, the last one used last.
    used: Vec<usize>,
    tree: Bits,
}

pub(super) struct NaiveCache {
    sets: Vec<NaiveSet>,
    block_bytes: u64,
    policy: ReplacementPolicy,
    random: SplitMix64,
    /// Accesses and misses.
    pub(super) counts: (u64, u64),
}

impl NaiveCache {
    fn new(level: &CacheLevel, seed: u64) -> NaiveCache {
        let ways = usize::try_from(level.geometry.associativity()).unwrap();
        let set = NaiveSet {
            ways: vec![None; ways],
            used: (0..ways).collect(),
            tree: Bits::new(),
        };
        NaiveCache {
            sets: vec![set; usize::try_from(level.geometry.sets()).unwrap()],
            block_bytes: level.geometry.block_bytes(),
            policy: level.policy,
            random: SplitMix64::new(seed),
            counts: (0, 0),
        }
    }

    fn set(&mut self, block: u64) -> &mut NaiveSet {
        let sets = self.sets.len() as u64;
        &mut self.sets[usize::try_from(block % sets).unwrap()]
    }

    fn way_of(&mut self, block: u64) -> Option<usize> {
        let mut ways = self.set(block).ways.iter();
        ways.position(|&other| other == Some(block))
    }

    fn use_way(&mut self, block: u64, way: usize) {
        let set = self.set(block);
        set.used.retain(|&other| other != way);
        set.used.push(way);
        plru_use(&mut set.tree, way, set.ways.len().next_power_of_two());
    }

    /// Whether the cache holds the block of an address, which is used.
    fn ask(&mut self, address: u64) -> bool {
        let block = address / self.block_bytes;
        let way = self.way_of(block);
        if let Some(way) = way {
            self.use_way(block, way);
        }
        self.counts.0 += 1;
        self.counts.1 += u64::from(way.is_none());
        way.is_some()
    }

    fn insert(&mut self, block: u64) -> Option<u64> {
        let policy = self.policy;
        let set = self.set(block);
        let ways = u32::try_from(set.ways.len()).unwrap();
        let free = set.ways.iter().position(Option::is_none);
        let way = free.or(match policy {
            ReplacementPolicy::Lru => set.used.first().copied(),
            ReplacementPolicy::TreePlru => {
                let leaves = set.ways.len().next_power_of_two();
                Some(plru_victim(&set.tree, 0, leaves, set.ways.len()))
            }
            ReplacementPolicy::Random => None,
        });
        let way = way.unwrap_or_else(|| self.random.below(ways) as usize);
        self.use_way(block, way);
        self.set(block).ways[way].replace(block)
    }

    /// The blocks held, sorted.
    pub(super) fn held(&self) -> Vec<u64> {
        let ways = self.sets.iter().flat_map(|set| &set.ways);
        let held: BTreeSet<u64> = ways.copied().flatten().collect();
        held.into_iter().collect()
    }
}

pub(super) struct NaiveSimulator {
    inclusion: Inclusion,
    pub(super) caches: Vec<NaiveCache>,
    pub(super) tlbs: Vec<NaiveCache>,
    frames: FrameMap,
}

impl NaiveSimulator {
    pub(super) fn new(hierarchy: &Hierarchy, frames: Frames) -> NaiveSimulator {
        let build = |levels: &[CacheLevel], seed: u64| {
            let level = |(i, level)| NaiveCache::new(level, seed.wrapping_add(i));
            (0..).zip(levels).map(level).collect()
        };
        NaiveSimulator {
            inclusion: hierarchy.inclusion(),
            caches: build(hierarchy.caches(), SEED),
            tlbs: build(hierarchy.tlbs(), !SEED),
            frames: FrameMap::new(frames),
        }
    }

    pub(super) fn reset_counts(&mut self) {
        for cache in self.caches.iter_mut().chain(&mut self.tlbs) {
            cache.counts = (0, 0);
        }
    }

    pub(super) fn access(&mut self, address: u64, bytes: u32) {
        let line_bytes = self.caches[0].block_bytes;
        let mut line = None;
        for byte in (0..u64::from(bytes)).map_while(|byte| address.checked_add(byte)) {
            if line.replace(byte / line_bytes) != Some(byte / line_bytes) {
                self.touch(byte);
            }
        }
    }

    fn touch(&mut self, address: u64) {
        for tlb in &mut self.tlbs {
            if tlb.ask(address) {
                break;
            }
            tlb.insert(address / tlb.block_bytes);
        }
        let physical = self.frames.physical(address);
        let mut caches = self.caches.iter_mut();
        let held_at = caches.position(|cache| cache.ask(physical));
        let held_at = held_at.unwrap_or(self.caches.len());
        let last = self.caches.len() - 1;
        let has_victim = self.inclusion == Inclusion::VictimLast;
        if has_victim && held_at == last {
            let block = physical / self.caches[last].block_bytes;
            let way = self.caches[last].way_of(block).unwrap();
            self.caches[last].set(block).ways[way] = None;
        }
        // From memory's side, and a victim takes in nothing from there.
        let filled = held_at.min(self.caches.len() - usize::from(has_victim));
        for i in (0..filled).rev() {
            let block_bytes = self.caches[i].block_bytes;
            let Some(evicted) = self.caches[i].insert(physical / block_bytes) else {
                continue;
            };
            match self.inclusion {
                Inclusion::Inclusive => {
                    for above in &mut self.caches[..i] {
                        let parts = block_bytes / above.block_bytes;
                        for way in above.sets.iter_mut().flat_map(|set| &mut set.ways) {
                            way.take_if(|block| *block / parts == evicted);
                        }
                    }
                }
                Inclusion::VictimLast if i + 1 == last => {
                    assert!(self.caches[last].way_of(evicted).is_none());
                    self.caches[last].insert(evicted);
                }
                Inclusion::NonInclusive | Inclusion::VictimLast => {}
            }
        }
    }
}
