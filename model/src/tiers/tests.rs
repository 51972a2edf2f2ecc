use quickcheck::quickcheck;

use super::*;
use crate::shape::random::SplitMix64;
use crate::{
    CacheGeometry, CacheLevel, Layout, NO_NODE, NodeExtent, Placement, ReplacementPolicy, Shape,
};

/// Operations that read one of several blocks, with these weights, `stride` bytes apart.
fn single_reads(weights: &[f64], stride: u64) -> Accesses {
    let shape = Shape::from_parents(&vec![NO_NODE; weights.len()]).unwrap();
    let offsets = (0u64..).take(weights.len()).map(|i| i * stride).collect();
    Accesses::searches(&shape, &Placement::from_offsets(offsets), 8, Some(weights))
}

fn one_cache(sets: u64, ways: u64, policy: ReplacementPolicy) -> Hierarchy {
    let mut cache = CacheLevel::lru("L1", CacheGeometry::new(sets, 64, ways).unwrap());
    cache.policy = policy;
    Hierarchy::new(vec![cache], Inclusion::NonInclusive, Vec::new()).unwrap()
}

fn misses(accesses: &Accesses, hierarchy: &Hierarchy, tier: Tier) -> f64 {
    predict_misses(accesses, hierarchy, FrameMap::Identity, tier)[0].misses
}

/// Misses of one set under LRU, from the probabilities of all orders of its blocks by recency (W.
/// F. King, 1971): an order `s` has the probability `product of p(s_i) / (1 - p(s_1) - .. -
/// p(s_(i-1)))`.
fn king(probabilities: &[f64], ways: usize) -> f64 {
    fn below(probabilities: &[f64], used: &mut Vec<usize>, ways: usize, chance: f64) -> f64 {
        let there: f64 = used.iter().map(|&i| probabilities[i]).sum();
        if used.len() == ways {
            return chance * (1.0 - there);
        }
        let mut sum = 0.0;
        for i in 0..probabilities.len() {
            if !used.contains(&i) {
                used.push(i);
                sum += below(
                    probabilities,
                    used,
                    ways,
                    chance * probabilities[i] / (1.0 - there),
                );
                used.pop();
            }
        }
        sum
    }
    if ways >= probabilities.len() {
        return 0.0;
    }
    below(probabilities, &mut Vec::new(), ways, 1.0)
}

/// As frequent as the square of a number that follows from the seed, with sum 1.
fn frequencies(seeds: &[u8]) -> Vec<f64> {
    let weights: Vec<f64> = seeds
        .iter()
        .map(|&s| (1.0 + f64::from(s)).powi(2))
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

#[test]
fn names_are_read_back() {
    for tier in Tier::ALL {
        assert_eq!(tier.name().parse(), Ok(tier));
    }
    let error = "exact".parse::<Tier>().unwrap_err().to_string();
    assert!(
        error.contains("\"exact\"") && error.contains("per-set"),
        "{error}"
    );
}

#[test]
fn kings_formula_as_counted_by_hand() {
    // One way: a miss unless the same block comes twice. All ways but one: the least recent one.
    assert!((king(&[0.5, 0.25, 0.25], 1) - 0.625).abs() < 1e-12);
    assert!((king(&[1.0 / 3.0; 3], 2) - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn nothing_is_missed_of_nothing() {
    let none = single_reads(&[], 64);
    let never = single_reads(&[0.0, f64::NAN], 64);
    for accesses in [none, never] {
        for tier in Tier::ALL {
            for policy in [
                ReplacementPolicy::Lru,
                ReplacementPolicy::Random,
                ReplacementPolicy::TreePlru,
            ] {
                assert!(misses(&accesses, &one_cache(2, 2, policy), tier).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn direct_mapped_is_the_known_formula() {
    // Blocks 0, 2, 4 in one set, 1 and 3 in the other: p (1 - p / sum of p).
    let p = [0.3, 0.1, 0.25, 0.15, 0.2];
    let accesses = single_reads(&p, 64);
    let expected: f64 = [[0, 2, 4].as_slice(), &[1, 3]]
        .iter()
        .map(|set| {
            let all: f64 = set.iter().map(|&i: &usize| p[i]).sum();
            set.iter().map(|&i| p[i] * (1.0 - p[i] / all)).sum::<f64>()
        })
        .sum();
    let hierarchy = one_cache(2, 1, ReplacementPolicy::Lru);
    let found = misses(&accesses, &hierarchy, Tier::PerSet);
    assert!((found - expected).abs() < 0.005, "{found} for {expected}");
}

/// All operations of a small tree, each after each: what a direct-mapped cache misses is counted.
#[test]
fn direct_mapped_paths_are_replayed() {
    let shape = Shape::random_binary(60, 5);
    for layout in [
        Layout::Random { seed: 2 },
        Layout::DepthFirst,
        Layout::BreadthFirst,
    ] {
        let placement = layout.place(&shape, NodeExtent::new(24, 8).unwrap());
        let accesses = Accesses::searches(&shape, &placement, 24, None);
        for sets in [1u64, 4, 16] {
            // What each operation leaves in each set decides what the next one finds; a set that it
            // does not read keeps what an earlier one left. So run long, with every operation
            // equally often: a de Bruijn-like walk would be exact, a long random one is near.
            let mut cache = vec![u64::MAX; usize::try_from(sets).unwrap()];
            let mut operations = accesses.operations(3);
            let mut reads = Vec::new();
            let (mut missed, runs) = (0u32, 80_000u32);
            for _ in 0..runs {
                operations.next_into(&mut reads);
                for access in &reads {
                    let last = access.address + u64::from(access.bytes) - 1;
                    for block in access.address / 64..=last / 64 {
                        let place = &mut cache[usize::try_from(block % sets).unwrap()];
                        missed += u32::from(*place != block);
                        *place = block;
                    }
                }
            }
            let simulated = f64::from(missed) / f64::from(runs);
            let predicted = misses(
                &accesses,
                &one_cache(sets, 1, ReplacementPolicy::Lru),
                Tier::Auto,
            );
            assert!(
                (predicted - simulated).abs() < 0.01 * simulated.max(0.5),
                "{layout} {sets} sets: {predicted} for {simulated}"
            );
        }
    }
}

#[test]
fn random_frames_are_random_placement() {
    let shape = Shape::complete_binary((1 << 15) - 1);
    let hierarchy = one_cache(1024, 8, ReplacementPolicy::Lru);
    // Anywhere in 2^36 blocks: nodes side by side would fill all sets alike.
    let at = |seed: u64| {
        let mut random = SplitMix64::new(seed);
        let offsets = (0..shape.len()).map(|_| (random.next_u64() >> 28) * 64);
        let placement = Placement::from_offsets(offsets.collect());
        Accesses::searches(&shape, &placement, 64, None)
    };
    // Where the hot nodes fall differs from one random placement to the next.
    let seeds = 1..=4;
    let known: f64 = seeds
        .map(|seed| misses(&at(seed), &hierarchy, Tier::PerSet) / 4.0)
        .sum();
    // Known sets are replayed, random ones are not.
    let poisson = misses(&at(9), &hierarchy, Tier::Poisson);
    let frames = predict_misses(&at(9), &hierarchy, FrameMap::Random, Tier::Auto)[0].misses;
    assert!(
        (poisson / known - 1.0).abs() < 0.03,
        "{poisson} and {known}"
    );
    assert!((frames / known - 1.0).abs() < 0.03, "{frames} and {known}");
}

#[test]
fn reasons_say_what_was_known() {
    let accesses = single_reads(&[1.0; 400], 4096);
    let hierarchy = one_cache(1024, 1, ReplacementPolicy::Lru);
    let of = |frames, tier| predict_misses(&accesses, &hierarchy, frames, tier).remove(0);
    let random = of(FrameMap::Random, Tier::Auto);
    assert_eq!(random.tier, Tier::Poisson);
    assert!(random.reason.contains("frames are random"));
    assert_eq!(of(FrameMap::Identity, Tier::Auto).tier, Tier::PerSet);
    assert_eq!(of(FrameMap::Identity, Tier::Closed).tier, Tier::Footprint);
}

#[test]
fn the_transient_begins_with_what_is_new_and_ends_in_the_steady_state() {
    let shape = Shape::complete_binary((1 << 14) - 1);
    let placement = Layout::VanEmdeBoas.place(&shape, NodeExtent::new(32, 8).unwrap());
    let accesses = Accesses::searches(&shape, &placement, 32, None);
    let hierarchy = one_cache(64, 8, ReplacementPolicy::Lru);
    let first =
        |n| predict_transient(&accesses, &hierarchy, FrameMap::Identity, Tier::Auto, n)[0].misses;
    let footprint = accesses.block_probabilities(64).footprint();
    assert!((first(1) - footprint.touches()).abs() < 1e-6);
    assert!((first(20) / footprint.distinct_blocks(20.0) - 1.0).abs() < 0.005);
    let steady = misses(&accesses, &hierarchy, Tier::Auto);
    let late = (first(200_000) - first(100_000)) / 100_000.0;
    assert!((late / steady - 1.0).abs() < 0.002, "{late} and {steady}");
}

quickcheck! {
    fn small_sets_as_by_kings_formula(seeds: Vec<u8>, ways: u8) -> bool {
        let seeds = &seeds[..seeds.len().min(6)];
        let p = frequencies(seeds);
        let ways = 1 + u64::from(ways % 4);
        let exact = king(&p, usize::try_from(ways).unwrap());
        let accesses = single_reads(&p, 64);
        let found = misses(&accesses, &one_cache(1, ways, ReplacementPolicy::Lru), Tier::PerSet);
        (found - exact).abs() < 0.02
    }
}

#[test]
fn more_ways_never_miss_more() {
    for (nodes, sets) in [(0, 1), (1, 4), (40, 1), (150, 2), (400, 16), (599, 8)] {
        let shape = Shape::random_binary(nodes, u64::from(nodes));
        let placement = Layout::DepthFirst.place(&shape, NodeExtent::new(32, 8).unwrap());
        let accesses = Accesses::searches(&shape, &placement, 32, None);
        for tier in [Tier::Footprint, Tier::Poisson, Tier::PerSet] {
            let mut fewer = f64::INFINITY;
            for ways in [1, 2, 3, 6, 7, 19] {
                let more = misses(
                    &accesses,
                    &one_cache(sets, ways, ReplacementPolicy::Lru),
                    tier,
                );
                let limit = fewer * (1.0 + 5e-3) + 1e-6;
                assert!(
                    (0.0..=limit).contains(&more),
                    "{tier} {nodes} {ways}: {more} {fewer}"
                );
                fewer = more;
            }
        }
    }
}

/// 97 pages in a buffer of 96 entries: one set has a page too many, and that page is hardly ever
/// read.
#[test]
fn the_rarest_block_decides_where_a_set_has_one_too_many() {
    let shape = Shape::complete_binary((1 << 14) - 1);
    let placement = Layout::Random { seed: 1 }.place(&shape, NodeExtent::new(24, 8).unwrap());
    let accesses = Accesses::searches(&shape, &placement, 24, None);
    let buffer = CacheLevel::lru("dTLB", CacheGeometry::new(16, 4096, 6).unwrap());
    let hierarchy = Hierarchy::new(vec![buffer], Inclusion::NonInclusive, Vec::new()).unwrap();
    assert_eq!(accesses.block_probabilities(4096).blocks().count(), 97);
    // Simulated: 0.0006, as a mean of many operations. Without regard to the number of blocks:
    // 0.026.
    let predicted = misses(&accesses, &hierarchy, Tier::PerSet);
    assert!((0.0002..0.002).contains(&predicted), "{predicted}");
}
