use quickcheck::quickcheck;

use super::*;
use crate::{
    CacheGeometry, Growth, Inclusion, KeyDistribution, Layout, Links, NO_NODE, NodeExtent,
    Operation, Placement, Shape, Sizes, Structure,
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
    predict_misses(accesses, hierarchy, Frames::Identity, tier, None)[0].misses
}

fn accesses(structure: Structure, keys: u32, layout: Layout, operation: Operation) -> Accesses {
    let sizes = Sizes::of(NodeExtent::new(24, 8).unwrap());
    let built = structure.build(keys, &sizes).unwrap();
    let keys = KeyDistribution::Uniform;
    built
        .accesses(&built.place(layout), operation, &keys)
        .unwrap()
}

const LIST: Structure = Structure::List {
    links: Links::Double,
};

#[test]
fn nothing_is_missed_of_nothing() {
    let none = single_reads(&[], 64);
    let never = single_reads(&[0.0, f64::NAN], 64);
    for accesses in [none, never] {
        for tier in Tier::ALL {
            for policy in [ReplacementPolicy::Lru, ReplacementPolicy::Random] {
                assert!(misses(&accesses, &one_cache(2, 2, policy), tier).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn a_direct_mapped_cache_misses_by_the_known_formula() {
    // Blocks 0, 2, 4 in one set, 1 and 3 in the other: p (1 - p / sum of p).
    let p = [0.3, 0.1, 0.25, 0.15, 0.2];
    let of_set = |set: &[usize]| {
        let all: f64 = set.iter().map(|&i| p[i]).sum();
        set.iter().map(|&i| p[i] * (1.0 - p[i] / all)).sum::<f64>()
    };
    let expected = of_set(&[0, 2, 4]) + of_set(&[1, 3]);
    let hierarchy = one_cache(2, 1, ReplacementPolicy::Lru);
    let found = misses(&single_reads(&p, 64), &hierarchy, Tier::PerSet);
    assert!((found - expected).abs() < 0.01, "{found} for {expected}");
}

#[test]
fn reasons_say_what_was_known() {
    let accesses = single_reads(&[1.0; 400], 4096);
    let hierarchy = one_cache(1024, 1, ReplacementPolicy::Lru);
    let of = |tier| predict_misses(&accesses, &hierarchy, Frames::Identity, tier, None).remove(0);
    assert_eq!(of(Tier::Auto).tier, Tier::PerSet);
    assert_eq!(of(Tier::Closed).tier, Tier::Footprint);
    assert!(of(Tier::Closed).reason.contains("layout"));
}

#[test]
fn the_transient_begins_with_what_is_new_and_ends_in_the_steady_state() {
    let shape = Shape::complete_binary((1 << 14) - 1);
    let placement = Layout::VanEmdeBoas.place(&shape, NodeExtent::new(32, 8).unwrap());
    let accesses = Accesses::searches(&shape, &placement, 32, None);
    let hierarchy = one_cache(64, 8, ReplacementPolicy::Lru);
    let footprint = accesses.block_probabilities(64).footprint();
    for tier in [Tier::Auto, Tier::Footprint] {
        let first =
            |n| predict_misses(&accesses, &hierarchy, Frames::Identity, tier, Some(n))[0].misses;
        assert!((first(1) / footprint.touches() - 1.0).abs() < 0.04);
        assert!((first(20) / footprint.distinct_blocks(20.0) - 1.0).abs() < 0.02);
        let steady = misses(&accesses, &hierarchy, tier);
        let late = (first(200_000) - first(100_000)) / 100_000.0;
        assert!((late / steady - 1.0).abs() < 0.02, "{late} and {steady}");
        // Longer than a replay.
        let mean = first(1 << 40) / 2f64.powi(40);
        assert!((mean / steady - 1.0).abs() < 0.02, "{mean} and {steady}");
    }
}

#[test]
fn more_ways_never_miss_more() {
    for (nodes, sets) in [(0, 1), (1, 4), (150, 2), (599, 8)] {
        let shape = Shape::random_binary(nodes, u64::from(nodes));
        let placement = Layout::DepthFirst.place(&shape, NodeExtent::new(32, 8).unwrap());
        let accesses = Accesses::searches(&shape, &placement, 32, None);
        for tier in [Tier::Footprint, Tier::PerSet] {
            let mut fewer = f64::INFINITY;
            for ways in [1, 2, 7, 19] {
                let cache = one_cache(sets, ways, ReplacementPolicy::Lru);
                let more = misses(&accesses, &cache, tier);
                let limit = fewer * (1.0 + 1e-2) + 1e-3;
                assert!((0.0..=limit).contains(&more), "{tier} {nodes} {ways}");
                fewer = more;
            }
        }
    }
}

#[test]
fn a_list_misses_as_a_simulated_cache_does() {
    for layout in [Layout::DepthFirst, Layout::Random { seed: 2 }] {
        let range = Operation::Range { keys: 40 };
        for operation in [Operation::Search, Operation::Insert, range] {
            let accesses = accesses(LIST, 400, layout, operation);
            for (sets, ways) in [(1, 100), (16, 4), (64, 1), (8, 12)] {
                let cache = one_cache(sets, ways, ReplacementPolicy::Lru);
                let exact = misses(&accesses, &cache, Tier::Sequence);
                let replayed = misses(&accesses, &cache, Tier::PerSet);
                let error = (exact - replayed).abs() / (replayed + 1.0);
                assert!(
                    error < 0.03,
                    "{layout}, {operation}, {sets} x {ways}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_long_list_misses_by_the_known_formula() {
    let parents: Vec<u32> = (0..1000u32).map(|v| v.wrapping_sub(1)).collect();
    let shape = Shape::from_parents(&parents).unwrap();
    let placement = Layout::DepthFirst.place(&shape, NodeExtent::new(64, 64).unwrap());
    let accesses = Accesses::searches(&shape, &placement, 64, None);
    let (n, c) = (1000.0, 600.0);
    let expected = c * (n - c) / n + (n - c) * (n - c + 1.0) / (2.0 * n);
    let cache = one_cache(1, 600, ReplacementPolicy::Lru);
    assert!((misses(&accesses, &cache, Tier::Auto) - expected).abs() < 1e-9);
    // A victim cache has the room of the one above it.
    let level = |name, ways| CacheLevel::lru(name, CacheGeometry::new(16, 64, ways).unwrap());
    let caches = vec![level("L1", 4), level("L2", 12)];
    let victim = Hierarchy::new(caches, Inclusion::VictimLast, Vec::new()).unwrap();
    let levels = predict_misses(&accesses, &victim, Frames::Identity, Tier::Auto, None);
    let both = one_cache(16, 16, ReplacementPolicy::Lru);
    assert!((levels[1].misses - misses(&accesses, &both, Tier::Auto)).abs() < 1e-9);
}

#[test]
fn only_one_sequence_is_one() {
    let growth = Growth::Complete;
    let tree = Structure::SearchTree { growth };
    let hash = Structure::Hash { load: 9.0, seed: 1 };
    let walk = |returns| Operation::Walk { returns };
    let tier = |structure, operation, policy| {
        let accesses = accesses(structure, 100, Layout::VanEmdeBoas, operation);
        let cache = one_cache(4, 2, policy);
        predict_misses(&accesses, &cache, Frames::Identity, Tier::Auto, None)[0].tier
    };
    for (structure, operation, expected) in [
        (LIST, Operation::Search, Tier::Sequence),
        (tree, walk(true), Tier::Sequence),
        (Structure::SortedArray, walk(false), Tier::Sequence),
        (tree, Operation::Search, Tier::PerSet),
        (hash, Operation::Search, Tier::PerSet),
        (Structure::SortedArray, Operation::Insert, Tier::PerSet),
    ] {
        assert_eq!(tier(structure, operation, ReplacementPolicy::Lru), expected);
        let random = tier(structure, operation, ReplacementPolicy::Random);
        assert_eq!(random, Tier::PerSet);
    }
}

quickcheck! {
    fn walks_miss_what_their_second_round_misses(keys: u8, seed: u64, bits: u8, ways: u8) -> bool {
        let tree = Structure::SearchTree { growth: Growth::RandomInsert { seed } };
        let cache = one_cache(1 << (bits % 4), u64::from(ways % 6) + 1, ReplacementPolicy::Lru);
        [tree, Structure::Hash { load: 0.7, seed }].into_iter().all(|structure| {
            let walk = Operation::Walk { returns: bits > 100 };
            let accesses = accesses(structure, u32::from(keys), Layout::Random { seed }, walk);
            let exact = misses(&accesses, &cache, Tier::Auto);
            (misses(&accesses, &cache, Tier::PerSet) - exact).abs() < 1e-9
        })
    }
}
