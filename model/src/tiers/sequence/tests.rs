use quickcheck::quickcheck;

use super::*;
use crate::accesses::tests::each_operation;
use crate::{
    Growth, InNode, KeyDistribution, Layout, Links, NodeExtent, Operation, Sizes, Structure,
    predict_misses, predict_transient,
};

/// Misses of an operation in a simulated cache, when a quarter as many went before.
fn simulated(accesses: &Accesses, cache: CacheGeometry, operations: usize) -> f64 {
    let warm_up = operations / 4;
    let mut simulated = Simulated::new(accesses, cache, 11);
    simulated.run(warm_up);
    simulated.misses = 0;
    simulated.run(operations);
    simulated.misses as f64 / operations as f64
}

/// A cache, as naive as can be, and what runs on it.
struct Simulated<'a> {
    cache: CacheGeometry,
    sets: HashMap<u64, Vec<u64>>,
    operations: crate::Operations<'a>,
    misses: u64,
}

impl<'a> Simulated<'a> {
    fn new(accesses: &'a Accesses, cache: CacheGeometry, seed: u64) -> Simulated<'a> {
        Simulated {
            cache,
            sets: HashMap::new(),
            operations: accesses.operations(seed),
            misses: 0,
        }
    }

    fn run(&mut self, operations: usize) {
        let block_bytes = self.cache.block_bytes();
        let ways = usize::try_from(self.cache.associativity()).unwrap();
        let mut reads = Vec::new();
        for _ in 0..operations {
            self.operations.next_into(&mut reads);
            for read in &reads {
                let last = (read.address + u64::from(read.bytes) - 1) / block_bytes;
                for block in read.address / block_bytes..=last {
                    let set = self.sets.entry(block % self.cache.sets()).or_default();
                    match set.iter().position(|&other| other == block) {
                        Some(place) => set[..=place].rotate_right(1),
                        None => {
                            set.insert(0, block);
                            set.truncate(ways);
                            self.misses += 1;
                        }
                    }
                }
            }
        }
    }
}

fn accesses(structure: Structure, keys: u32, layout: Layout, operation: Operation) -> Accesses {
    let sizes = Sizes::of(NodeExtent::new(24, 8).unwrap());
    let built = structure.build(keys, &sizes).unwrap();
    let keys = KeyDistribution::Uniform;
    built
        .accesses(&built.place(layout), operation, &keys)
        .unwrap()
}

#[test]
fn a_list_misses_as_a_simulated_cache_does() {
    let list = Structure::List {
        links: Links::Double,
    };
    for layout in [Layout::DepthFirst, Layout::Random { seed: 2 }] {
        for operation in [
            Operation::Search,
            Operation::Insert,
            Operation::Range { keys: 40 },
        ] {
            let accesses = accesses(list, 400, layout, operation);
            for (sets, ways) in [(1, 100), (16, 4), (64, 1), (8, 12)] {
                let cache = CacheGeometry::new(sets, 64, ways).unwrap();
                let exact = accesses.sequence_misses(cache, |block| block).unwrap();
                let simulated = simulated(&accesses, cache, 4000);
                // The standard error of 4000 operations is below 1.5 %.
                let error = (exact - simulated).abs() / (simulated + 1.0);
                assert!(
                    error < 0.05,
                    "{layout}, {operation}, {sets} x {ways}: {exact}, {simulated}"
                );
            }
        }
    }
}

#[test]
fn the_first_operations_miss_what_they_meet() {
    let list = Structure::List {
        links: Links::Single,
    };
    let accesses = accesses(list, 100, Layout::Random { seed: 3 }, Operation::Search);
    for (sets, ways) in [(1, 16), (8, 2), (1, 64)] {
        let cache = CacheGeometry::new(sets, 64, ways).unwrap();
        let level = CacheLevel::lru("L1", cache);
        let hierarchy = Hierarchy::new(vec![level], Inclusion::NonInclusive, Vec::new()).unwrap();
        for operations in [1, 4, 30] {
            let frames = FrameMap::Identity;
            let predicted =
                predict_transient(&accesses, &hierarchy, frames, Tier::Auto, operations);
            assert_eq!(predicted[0].tier, Tier::Sequence);
            let runs = 3000 / operations;
            let mut sum = 0;
            for seed in 0..runs {
                let mut simulated = Simulated::new(&accesses, cache, seed * 77);
                simulated.run(usize::try_from(operations).unwrap());
                sum += simulated.misses;
            }
            let simulated = sum as f64 / runs as f64;
            let error = predicted[0].misses / simulated - 1.0;
            // Three thousand searches are known to 1 %.
            assert!(error.abs() < 0.04, "{sets} x {ways}, {operations}: {error}");
        }
    }
}

#[test]
fn only_caches_that_forget_in_order_are_sequences() {
    let list = Structure::List {
        links: Links::Single,
    };
    let accesses = accesses(list, 3000, Layout::DepthFirst, Operation::Search);
    let tier = |policy| {
        let geometry = CacheGeometry::new(64, 64, 8).unwrap();
        let level = CacheLevel {
            policy,
            ..CacheLevel::lru("L1", geometry)
        };
        let hierarchy = Hierarchy::new(vec![level], Inclusion::NonInclusive, Vec::new()).unwrap();
        let of = |frames| predict_misses(&accesses, &hierarchy, frames, Tier::Auto).swap_remove(0);
        let (same, random) = (of(FrameMap::Identity), of(FrameMap::Random));
        // Bits within the page choose the set: frames change nothing.
        assert!((same.misses - random.misses).abs() < 1e-9 * same.misses);
        same.tier
    };
    assert_eq!(tier(ReplacementPolicy::Lru), Tier::Sequence);
    assert_ne!(tier(ReplacementPolicy::Random), Tier::Sequence);
}

#[test]
fn a_victim_cache_has_the_room_of_the_one_above() {
    let list = Structure::List {
        links: Links::Single,
    };
    let sizes = Sizes::of(NodeExtent::new(64, 64).unwrap());
    let built = list.build(1000, &sizes).unwrap();
    let placement = built.place(Layout::DepthFirst);
    let keys = KeyDistribution::Uniform;
    let accesses = built
        .accesses(&placement, Operation::Search, &keys)
        .unwrap();
    let level = |name, ways| CacheLevel::lru(name, CacheGeometry::new(16, 64, ways).unwrap());
    let caches = vec![level("L1", 4), level("L2", 12)];
    let victim = Hierarchy::new(caches, Inclusion::VictimLast, Vec::new()).unwrap();
    let both = Hierarchy::new(vec![level("L1", 16)], Inclusion::NonInclusive, Vec::new()).unwrap();
    let last = |hierarchy| {
        let levels = predict_misses(&accesses, hierarchy, FrameMap::Identity, Tier::Sequence);
        levels.last().unwrap().misses
    };
    assert!((last(&victim) - last(&both)).abs() < 1e-9);
}

#[test]
fn only_one_sequence_is_one() {
    let growth = Growth::Complete;
    let tree = Structure::SearchTree { growth };
    let cache = CacheGeometry::new(4, 64, 2).unwrap();
    let of = |structure, operation| {
        accesses(structure, 100, Layout::VanEmdeBoas, operation).sequence_misses(cache, |b| b)
    };
    assert_eq!(of(tree, Operation::Search), None);
    assert_eq!(
        of(Structure::Hash { load: 9.0, seed: 1 }, Operation::Search),
        None
    );
    assert_eq!(of(Structure::SortedArray, Operation::Insert), None);
    assert!(of(tree, Operation::Walk { returns: true }).is_some());
    assert!(of(Structure::SortedArray, Operation::Walk { returns: false }).is_some());
}

#[test]
fn the_set_is_chosen_by_what_the_caller_says() {
    let list = Structure::List {
        links: Links::Single,
    };
    let accesses = accesses(list, 100, Layout::DepthFirst, Operation::Miss);
    let cache = CacheGeometry::new(64, 64, 1).unwrap();
    // 2400 bytes are 38 blocks, one to a set; or all in one set.
    assert_eq!(accesses.sequence_misses(cache, |block| block), Some(0.0));
    assert_eq!(accesses.sequence_misses(cache, |_| 7), Some(38.0));
}

quickcheck! {
    fn walks_miss_what_their_second_round_misses(keys: u8, seed: u64, bits: u8, ways: u8) -> bool {
        let growth = Growth::RandomInsert { seed };
        let structures = [
            Structure::SearchTree { growth },
            Structure::BTree { fanout: 6, fill: 1.0, in_node: InNode::Binary, growth },
            Structure::Hash { load: 0.7, seed },
        ];
        let cache = CacheGeometry::new(1 << (bits % 4), 64, u64::from(ways % 6) + 1).unwrap();
        structures.into_iter().all(|structure| [false, true].into_iter().all(|returns| {
            let layout = Layout::Random { seed };
            let accesses = accesses(structure, u32::from(keys), layout, Operation::Walk { returns });
            let exact = accesses.sequence_misses(cache, |block| block).unwrap();
            // A second round is like all that follow.
            (simulated(&accesses, cache, 4) - exact).abs() < 1e-9
        }))
    }

    fn enough_room_misses_nothing_and_none_misses_each_block(keys: u8, seed: u64) -> bool {
        let list = Structure::List { links: Links::Single };
        let accesses = accesses(list, u32::from(keys), Layout::Random { seed }, Operation::Search);
        let steps: f64 = each_operation(&accesses).len() as f64;
        let large = CacheGeometry::new(1, 64, 4096).unwrap();
        let small = CacheGeometry::new(1, 64, 1).unwrap();
        let few = accesses.sequence_misses(small, |block| block).unwrap();
        accesses.sequence_misses(large, |block| block) == Some(0.0)
            && few <= 2.0 * accesses.visits().nodes_per_operation() + 1e-9
            && (steps < 10.0 || few > 0.0)
    }
}
