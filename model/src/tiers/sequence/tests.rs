use quickcheck::quickcheck;

use super::*;
use crate::accesses::tests::each_operation;
use crate::{
    Growth, InNode, KeyDistribution, Layout, Links, NodeExtent, Operation, Sizes, Structure,
};

/// Misses of each pair of operations, one after another, after all that came before: exact expectation for prefixes of one
/// sequence by simulating every chain of operations that matters. A block's last touch may lie many operations back, so the
/// expectation is over random sequences long enough for their mean to be known to a percent.
fn simulated(accesses: &Accesses, cache: CacheGeometry, operations: usize) -> f64 {
    let mut sets: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut stream = accesses.operations(11);
    let (mut reads, mut misses) = (Vec::new(), 0u64);
    let warm_up = operations / 4;
    for operation in 0..warm_up + operations {
        stream.next_into(&mut reads);
        for read in &reads {
            let last = (read.address + u64::from(read.bytes) - 1) / cache.block_bytes();
            for block in read.address / cache.block_bytes()..=last {
                let set = sets.entry(block % cache.sets()).or_default();
                let place = set.iter().position(|&other| other == block);
                match place {
                    Some(place) => set[..=place].rotate_right(1),
                    None => {
                        set.insert(0, block);
                        set.truncate(usize::try_from(cache.associativity()).unwrap());
                        misses += u64::from(operation >= warm_up);
                    }
                }
            }
        }
    }
    misses as f64 / operations as f64
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
