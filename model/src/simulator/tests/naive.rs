//! The simulator in its simplest form. It shares only the random numbers and the map of frames with
//! the fast one.

use std::collections::{BTreeMap, BTreeSet};

use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion, MAX_CACHES, ReplacementPolicy};
use crate::shape::random::SplitMix64;
use crate::simulator::frames::FrameMap;
use crate::simulator::{Frames, LevelCounts, SimulatedCounts};

/// The tree-PLRU bits of a set by the range of ways below each inner node: whether the upper half
/// of the range holds the victim.
type Bits = BTreeMap<(usize, usize), bool>;

/// The way below `first..first + leaves` that gives way.
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

struct NaiveSet {
    /// Block by way.
    ways: Vec<Option<u64>>,
    /// Ways in order of use, the last one used last.
    used: Vec<usize>,
    tree: Bits,
}

struct NaiveCache {
    sets: Vec<NaiveSet>,
    block_bytes: u64,
    policy: ReplacementPolicy,
    random: SplitMix64,
}

impl NaiveCache {
    fn new(level: &CacheLevel, seed: u64) -> NaiveCache {
        let ways = usize::try_from(level.geometry.associativity()).unwrap();
        let sets = (0..level.geometry.sets()).map(|_| NaiveSet {
            ways: vec![None; ways],
            used: (0..ways).collect(),
            tree: Bits::new(),
        });
        NaiveCache {
            sets: sets.collect(),
            block_bytes: level.geometry.block_bytes(),
            policy: level.policy,
            random: SplitMix64::new(seed),
        }
    }

    fn set(&mut self, block: u64) -> &mut NaiveSet {
        let sets = self.sets.len() as u64;
        &mut self.sets[usize::try_from(block % sets).unwrap()]
    }

    fn way_of(&mut self, block: u64) -> Option<usize> {
        self.set(block)
            .ways
            .iter()
            .position(|&other| other == Some(block))
    }

    fn use_way(&mut self, block: u64, way: usize) {
        let set = self.set(block);
        set.used.retain(|&other| other != way);
        set.used.push(way);
        plru_use(&mut set.tree, way, set.ways.len().next_power_of_two());
    }

    fn ask(&mut self, block: u64) -> bool {
        let way = self.way_of(block);
        if let Some(way) = way {
            self.use_way(block, way);
        }
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

    fn remove(&mut self, block: u64) -> bool {
        let way = self.way_of(block);
        if let Some(way) = way {
            self.set(block).ways[way] = None;
        }
        way.is_some()
    }
}

pub(super) struct NaiveSimulator {
    hierarchy: Hierarchy,
    caches: Vec<NaiveCache>,
    tlbs: Vec<NaiveCache>,
    frames: FrameMap,
    /// Accesses and misses, of caches and TLBs.
    counts: [[(u64, u64); MAX_CACHES]; 2],
}

impl NaiveSimulator {
    pub(super) fn new(hierarchy: &Hierarchy, frames: Frames, seed: u64) -> NaiveSimulator {
        let build = |levels: &[CacheLevel], first_seed: u64| -> Vec<NaiveCache> {
            (0..)
                .zip(levels)
                .map(|(i, level)| NaiveCache::new(level, first_seed.wrapping_add(i)))
                .collect()
        };
        NaiveSimulator {
            hierarchy: hierarchy.clone(),
            caches: build(hierarchy.caches(), seed),
            tlbs: build(hierarchy.tlbs(), !seed),
            frames: FrameMap::new(frames),
            counts: Default::default(),
        }
    }

    pub(super) fn reset_counts(&mut self) {
        self.counts = Default::default();
    }

    /// Levels that missed: whether it is a TLB, and which.
    pub(super) fn access(&mut self, address: u64, bytes: u32) -> BTreeSet<(bool, usize)> {
        let mut missed = BTreeSet::new();
        let line_bytes = self.caches[0].block_bytes;
        let mut line = None;
        for byte in 0..u64::from(bytes) {
            let Some(byte) = address.checked_add(byte) else {
                break;
            };
            if line != Some(byte / line_bytes) {
                line = Some(byte / line_bytes);
                self.touch(byte, &mut missed);
            }
        }
        missed
    }

    fn touch(&mut self, address: u64, missed: &mut BTreeSet<(bool, usize)>) {
        for (i, tlb) in self.tlbs.iter_mut().enumerate() {
            let page = address / tlb.block_bytes;
            self.counts[1][i].0 += 1;
            if tlb.ask(page) {
                break;
            }
            self.counts[1][i].1 += 1;
            missed.insert((true, i));
            tlb.insert(page);
        }
        let physical = self.frames.physical(address);
        let mut held_at = self.caches.len();
        for (i, cache) in self.caches.iter_mut().enumerate() {
            self.counts[0][i].0 += 1;
            if cache.ask(physical / cache.block_bytes) {
                held_at = i;
                break;
            }
            self.counts[0][i].1 += 1;
            missed.insert((false, i));
        }
        let last = self.caches.len() - 1;
        let victim = self.hierarchy.inclusion() == Inclusion::VictimLast;
        if victim && held_at == last {
            let block = physical / self.caches[last].block_bytes;
            assert!(self.caches[last].remove(block));
        }
        // From memory's side, and a victim takes in nothing from there.
        let filled = if victim { held_at.min(last) } else { held_at };
        for i in (0..filled).rev() {
            let block_bytes = self.caches[i].block_bytes;
            let Some(evicted) = self.caches[i].insert(physical / block_bytes) else {
                continue;
            };
            match self.hierarchy.inclusion() {
                Inclusion::NonInclusive => {}
                Inclusion::Inclusive => {
                    for above in &mut self.caches[..i] {
                        let parts = block_bytes / above.block_bytes;
                        let ways = above.sets.iter_mut().flat_map(|set| &mut set.ways);
                        for way in ways {
                            way.take_if(|block| *block / parts == evicted);
                        }
                    }
                }
                Inclusion::VictimLast => {
                    if i + 1 == last {
                        assert!(self.caches[last].way_of(evicted).is_none());
                        self.caches[last].insert(evicted);
                    }
                }
            }
        }
    }

    pub(super) fn counts(&self) -> SimulatedCounts {
        let counts = |levels: &[CacheLevel], counts: &[(u64, u64)]| {
            let of_level = |(level, &(accesses, misses)): (&CacheLevel, _)| LevelCounts {
                name: level.name.clone(),
                accesses,
                misses,
            };
            levels.iter().zip(counts).map(of_level).collect()
        };
        SimulatedCounts {
            caches: counts(self.hierarchy.caches(), &self.counts[0]),
            tlbs: counts(self.hierarchy.tlbs(), &self.counts[1]),
        }
    }

    /// The blocks of each cache, sorted.
    pub(super) fn held(&self) -> impl Iterator<Item = Vec<u64>> + '_ {
        self.caches.iter().map(|cache| {
            let sets = cache.sets.iter().flat_map(|set| &set.ways);
            let mut blocks: Vec<u64> = sets.copied().flatten().collect();
            blocks.sort_unstable();
            blocks
        })
    }
}
