//! The simulator compared with a naive one, and the properties that caches have.

use quickcheck::{Arbitrary, Gen, quickcheck};

use super::*;
use crate::PageSize;
use crate::geometry::CacheGeometry;
use crate::hierarchy::ReplacementPolicy;

mod naive;
#[cfg(feature = "parquet")]
mod tables;
mod traces;

use naive::NaiveSimulator;

/// Small caches of any kind, and accesses that keep them busy.
#[derive(Clone, Debug)]
struct Case {
    hierarchy: Hierarchy,
    frames: Frames,
    accesses: Vec<(u64, u32)>,
}

fn pick<T: Copy>(g: &mut Gen, choices: &[T]) -> T {
    *g.choose(choices).unwrap()
}

fn level(g: &mut Gen, name: &str, sets: u64, block_bytes: u64, ways: u64) -> CacheLevel {
    use ReplacementPolicy::{Lru, Random, TreePlru};
    let geometry = CacheGeometry::new(sets, block_bytes, ways).unwrap();
    let mut level = CacheLevel::lru(name, geometry);
    level.policy = pick(g, &[Lru, TreePlru, Random]);
    level
}

impl Arbitrary for Case {
    fn arbitrary(g: &mut Gen) -> Case {
        use Inclusion::{Inclusive, NonInclusive, VictimLast};
        let hierarchy = loop {
            let mut block_bytes = pick(g, &[8, 16, 64]);
            let mut caches = Vec::new();
            for name in ["L1", "L2", "L3"] {
                let ways = pick(g, &[1, 2, 3, 4, 6, 11, 16, 17, 33]);
                let sets = pick(g, &[1, 2, 4]);
                caches.push(level(g, name, sets, block_bytes, ways));
                block_bytes *= pick(g, &[1, 1, 1, 2, 4]);
            }
            caches.truncate(pick(g, &[1, 2, 3, 3]));
            let mut tlbs = Vec::new();
            for name in ["dTLB", "STLB"] {
                let (sets, ways) = (pick(g, &[1, 2]), pick(g, &[1, 2, 3, 17]));
                tlbs.push(level(g, name, sets, 4096, ways));
            }
            tlbs.truncate(pick(g, &[0, 1, 2]));
            let inclusion = pick(g, &[NonInclusive, Inclusive, VictimLast]);
            // What is no hierarchy is drawn again.
            if let Ok(hierarchy) = Hierarchy::new(caches, inclusion, tlbs) {
                break hierarchy;
            }
        };
        let pages = PageSize::Small4K;
        let seed = u64::arbitrary(g);
        let span = pick(g, &[64, 256, 1024, 4096, 40_000]);
        let base = pick(g, &[0, 4000, u64::MAX - 39_999]);
        let mut access = || {
            let address = base.saturating_add(u64::arbitrary(g) % span);
            (address, pick(g, &[0, 1, 4, 8, 8, 8, 8, 24, 100]))
        };
        let accesses = (0..400).map(|_| access()).collect();
        Case {
            hierarchy,
            frames: pick(g, &[Frames::Identity, Frames::Random { pages, seed }]),
            accesses,
        }
    }
}

quickcheck! {
    fn naive_and_fast_agree_after_each_access(case: Case) -> bool {
        let mut fast = Simulator::new(&case.hierarchy, case.frames);
        let mut naive = NaiveSimulator::new(&case.hierarchy, case.frames);
        for (i, &(address, bytes)) in case.accesses.iter().enumerate() {
            if i == case.accesses.len() / 2 {
                fast.reset_counts();
                naive.reset_counts();
            }
            let misses = fast.cache_misses()[0] + fast.tlb_misses()[0];
            let missed = fast.access(address, bytes);
            naive.access(address, bytes);
            assert_eq!(missed, fast.cache_misses()[0] + fast.tlb_misses()[0] > misses);
            let counts = fast.counts();
            for (fast, naive) in [(counts.caches, &naive.caches), (counts.tlbs, &naive.tlbs)] {
                let fast = fast.iter().map(|level| (level.accesses, level.misses));
                assert!(fast.eq(naive.iter().map(|level| level.counts)), "access {i}");
            }
            let caches = &fast.caches;
            match case.hierarchy.inclusion() {
                Inclusion::NonInclusive => {}
                Inclusion::Inclusive => for pair in caches.windows(2) {
                    let shift = pair[1].block_shift() - pair[0].block_shift();
                    let (above, below) = (pair[0].held(), pair[1].held());
                    assert!(above.iter().all(|block| below.contains(&(block >> shift))));
                }
                Inclusion::VictimLast => if let [.., above, last] = &caches[..] {
                    let above = above.held();
                    assert!(last.held().iter().all(|block| !above.contains(block)));
                }
            }
        }
        for (fast, naive) in fast.caches.iter().zip(&naive.caches) {
            let mut held = fast.held();
            held.sort_unstable();
            assert_eq!(held, naive.held());
        }
        true
    }

    /// Mattson et al., *Evaluation techniques for storage hierarchies* (1970): what LRU of a few
    /// ways holds, LRU of more holds as well. And one set of 5 with a victim of one set of 7 holds
    /// what one set of 12 does.
    fn more_ways_never_miss_more_under_lru(blocks: Vec<u8>, sets_log2: u8) -> bool {
        let run = |sizes: &[(u64, u64)], inclusion| {
            let level = |(i, &(sets, ways))| {
                CacheLevel::lru(&format!("L{i}"), CacheGeometry::new(sets, 64, ways).unwrap())
            };
            let caches = sizes.iter().enumerate().map(level).collect();
            let hierarchy = Hierarchy::new(caches, inclusion, Vec::new()).unwrap();
            let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
            for &block in &blocks {
                simulator.access(u64::from(block) * 64, 8);
            }
            simulator.cache_misses()[sizes.len() - 1]
        };
        let sets = 1 << (sets_log2 % 4);
        let misses: Vec<u64> =
            (1..20).map(|ways| run(&[(sets, ways)], Inclusion::NonInclusive)).collect();
        misses.is_sorted_by(|few, more| few >= more)
            && run(&[(1, 5), (1, 7)], Inclusion::VictimLast)
                == run(&[(1, 12)], Inclusion::NonInclusive)
    }
}

fn two_levels(inclusion: Inclusion) -> Simulator {
    let level =
        |name, sets, ways| CacheLevel::lru(name, CacheGeometry::new(sets, 64, ways).unwrap());
    let tlb = CacheLevel::lru("dTLB", CacheGeometry::new(1, 4096, 2).unwrap());
    let caches = vec![level("L1", 1, 2), level("L2", 1, 4)];
    Simulator::new(
        &Hierarchy::new(caches, inclusion, vec![tlb]).unwrap(),
        Frames::Identity,
    )
}

#[test]
fn an_access_touches_each_of_its_lines() {
    let mut simulator = two_levels(Inclusion::NonInclusive);
    assert!(!simulator.access(60, 0));
    assert_eq!(simulator.counts().caches[0].accesses, 0);
    assert!(simulator.access(4090, 8));
    let counts = simulator.counts();
    for level in [&counts.caches[0], &counts.caches[1], &counts.tlbs[0]] {
        assert_eq!((level.accesses, level.misses), (2, 2), "{}", level.name);
    }
    assert!((counts.tlbs[0].miss_ratio() - 1.0).abs() < 1e-12);
    // The end of the address space ends an access.
    assert!(simulator.access(u64::MAX, u32::MAX));
    assert_eq!(simulator.counts().caches[0].accesses, 3);
}

/// Blocks a to e in an L1 of two and an L2 of four; a is always in L1, so that L2 forgets it.
#[test]
fn what_an_inclusive_cache_evicts_leaves_the_one_above() {
    for (inclusion, hit) in [
        (Inclusion::NonInclusive, true),
        (Inclusion::Inclusive, false),
    ] {
        let mut simulator = two_levels(inclusion);
        let [a, b, c, d, e] = [0, 64, 128, 192, 256];
        for address in [a, b, a, c, a, d, a, e] {
            simulator.access(address, 8);
        }
        assert_eq!(simulator.access(a, 8), !hit, "{inclusion:?}");
    }
}

#[test]
fn a_flush_is_a_cold_start_and_a_reset_is_not() {
    let mut simulator = two_levels(Inclusion::VictimLast);
    simulator.access(0, 8);
    simulator.reset_counts();
    simulator.access(0, 8);
    assert_eq!(simulator.counts().caches[0].misses, 0);
    assert_eq!(simulator.counts().caches[0].accesses, 1);
    simulator.flush();
    assert!(simulator.access(0, 8));
    assert_eq!(simulator.cache_misses()[..2], [1, 1]);
    assert_eq!(simulator.tlb_misses()[0], 1);
}

/// A loop over as many lines as a direct-mapped cache has: without paging none misses; in random
/// frames those do whose page shares its place with another one. 1024 pages in 1024 places leave a
/// page alone with probability (1 - 1/1024)^1023, about 1/e.
#[test]
fn random_frames_conflict_as_chance_has_it() {
    let geometry = CacheGeometry::new(1 << 16, 64, 1).unwrap();
    let caches = vec![CacheLevel::lru("L2", geometry)];
    let hierarchy = Hierarchy::new(caches, Inclusion::NonInclusive, Vec::new()).unwrap();
    let miss_ratio = |frames| {
        let mut simulator = Simulator::new(&hierarchy, frames);
        for round in 0..3 {
            if round == 1 {
                simulator.reset_counts();
            }
            for line in 0..1 << 16 {
                simulator.access(line * 64, 8);
            }
        }
        simulator.counts().caches[0].miss_ratio()
    };
    assert!(miss_ratio(Frames::Identity) == 0.0);
    let pages = PageSize::Small4K;
    let ratios = (0..10).map(|seed| miss_ratio(Frames::Random { pages, seed }));
    let mean = ratios.sum::<f64>() / 10.0;
    assert!((mean - (1.0 - (-1f64).exp())).abs() < 0.02, "{mean}");
}
