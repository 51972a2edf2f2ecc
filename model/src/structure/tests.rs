//! Structures compared with their definitions, operation by operation.

mod forests;
mod programs;

use std::collections::BTreeSet;

use quickcheck::quickcheck;

use super::*;
use crate::accesses::tests::{agrees, each_operation};
use crate::{Accesses, KeyDistribution, Layout, Placement};

fn sizes() -> Sizes {
    Sizes {
        value_bytes: 16,
        ..Sizes::of(NodeExtent::new(24, 8).unwrap())
    }
}

fn structures(seed: u64) -> Vec<Structure> {
    let list = |links| Structure::List { links };
    let mut structures = vec![
        list(Links::Single),
        list(Links::Double),
        Structure::Hash { load: 1.5, seed },
        Structure::Hash { load: 0.3, seed },
        Structure::SortedArray,
        Structure::Eytzinger,
    ];
    for growth in [Growth::Complete, Growth::RandomInsert { seed }] {
        structures.push(Structure::SearchTree { growth });
        structures.extend([1, 3].map(|arity| Structure::Tree { arity, growth }));
        structures.extend([2, 3].map(|dimensions| Structure::PointTree { dimensions, growth }));
        for in_node in [InNode::Binary, InNode::Linear, InNode::Whole] {
            for (fanout, fill) in [(3, 1.0), (3, 0.4), (7, 0.7), (16, 1.0)] {
                structures.push(Structure::BTree {
                    fanout,
                    fill,
                    in_node,
                    growth,
                });
            }
        }
    }
    structures
}

fn operations() -> [Operation; 8] {
    [
        Operation::Search,
        Operation::Miss,
        Operation::Insert,
        Operation::Range { keys: 1 },
        Operation::Range { keys: 5 },
        Operation::Range { keys: u32::MAX },
        Operation::Walk { returns: false },
        Operation::Walk { returns: true },
    ]
}

/// The reads of every possible operation.
pub(super) fn all_reads(accesses: &Accesses) -> Vec<Vec<u64>> {
    let addresses = |reads: &Vec<crate::Access>| reads.iter().map(|read| read.address).collect();
    each_operation(accesses).iter().map(addresses).collect()
}

/// Places nodes far from each other, so that addresses tell which node is read.
fn apart(built: &Built) -> Placement {
    let nodes = 0..built.shape().len() as u64;
    Placement::from_offsets(nodes.map(|v| v << 20).collect())
}

quickcheck! {
    fn blocks_are_touched_as_often_as_operations_read_them(
        keys: u8,
        seed: u64,
        block_bits: u8
    ) -> bool {
        let keys = u32::from(keys % 70);
        let block_bytes = 8u64 << (block_bits % 7);
        let zipf = KeyDistribution::Zipf { exponent: 1.0, seed };
        for structure in structures(seed) {
            let built = structure.build(keys, &sizes()).unwrap();
            let placement = built.place(Layout::Random { seed });
            for operation in operations() {
                for distribution in [&KeyDistribution::Uniform, &zipf] {
                    match built.accesses(&placement, operation, distribution) {
                        Ok(accesses) => assert!(agrees(&accesses, block_bytes), "{structure:?}"),
                        Err(error) => assert!(error.to_string().contains("no ranges")),
                    }
                }
            }
        }
        true
    }

    fn every_key_and_every_point_is_read(keys: u8, seed: u64) -> bool {
        let keys = usize::from(keys) + 1;
        for structure in structures(seed) {
            let built = structure.build(u32::try_from(keys).unwrap(), &sizes()).unwrap();
            let of = |operation| {
                built.accesses(&apart(&built), operation, &KeyDistribution::Uniform).unwrap()
            };
            let searches = all_reads(&of(Operation::Search));
            let ends: BTreeSet<u64> = searches.iter().map(|reads| *reads.last().unwrap()).collect();
            // Where nodes are read whole, several keys have one end.
            let is_whole = matches!(structure, Structure::BTree { in_node: InNode::Whole, .. });
            let expected = if is_whole { built.shape().len() } else { keys };
            assert_eq!((built.keys(), searches.len(), ends.len()), (keys, keys, expected));
            let ends = built.node_ends(Operation::Search, &KeyDistribution::Uniform).unwrap();
            let sum: f64 = ends.iter().sum();
            assert!(ends.is_empty() || (sum - 1.0).abs() < 1e-9);
            for returns in [false, true] {
                let walk = of(Operation::Walk { returns });
                let read = walk.fixed_sequence().unwrap();
                let points: BTreeSet<&u32> = read.iter().collect();
                assert_eq!(points.len(), built.points());
                assert!(returns || read.len() == points.len());
            }
        }
        true
    }
}

#[test]
fn parameters_that_no_structure_has_are_refused() {
    let growth = Growth::Complete;
    let tree = |arity| Structure::Tree { arity, growth };
    let points = |dimensions| Structure::PointTree { dimensions, growth };
    let hash = |load| Structure::Hash { load, seed: 1 };
    let btree = |fanout, fill| Structure::BTree {
        fanout,
        fill,
        in_node: InNode::Binary,
        growth,
    };
    let no_bytes = Sizes {
        node: NodeExtent { bytes: 0, align: 8 },
        ..sizes()
    };
    let pairs = |key_bytes, value_bytes| Sizes {
        key_bytes,
        value_bytes,
        ..sizes()
    };
    for (structure, sizes, what) in [
        (tree(0), sizes(), "links, not 0"),
        (tree(u32::MAX), sizes(), "links, not 4294967295"),
        (points(0), sizes(), "dimensions, not 0"),
        (points(9), sizes(), "dimensions, not 9"),
        (btree(2, 1.0), sizes(), "fanout is 3 to 65536, not 2"),
        (btree(1 << 20, 1.0), sizes(), "fanout"),
        (btree(8, 0.0), sizes(), "filled"),
        (btree(8, 1.1), sizes(), "filled"),
        (btree(8, f64::NAN), sizes(), "filled"),
        (hash(0.0), sizes(), "load"),
        (hash(f64::INFINITY), sizes(), "load"),
        (hash(1e-300), sizes(), "more parts than 2^32"),
        (tree(2), no_bytes, "at least one byte"),
        (btree(8, 1.0), pairs(0, 8), "a key needs"),
        (btree(8, 1.0), pairs(u32::MAX, u32::MAX), "too large"),
    ] {
        let error = structure.build(10, &sizes).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let too_many = tree(2).build(u32::MAX, &sizes()).unwrap_err();
    assert_eq!(too_many, too_large());
}

#[test]
fn operations_that_are_not_possible_are_refused() {
    let hash = Structure::Hash { load: 1.0, seed: 1 };
    let built = hash.build(10, &sizes()).unwrap();
    let own = apart(&built);
    let other = Placement::from_offsets(vec![0; 11]);
    let weights = KeyDistribution::Weights(vec![1.0; 9]);
    let uniform = KeyDistribution::Uniform;
    for (placement, operation, keys, what) in [
        (&own, "range:3", &uniform, "no order"),
        (&other, "search", &uniform, "11 nodes are placed"),
        (&own, "search", &weights, "9 weights for 10 keys"),
    ] {
        let refused = built.accesses(placement, operation.parse().unwrap(), keys);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let empty = built.accesses(&own, Operation::Range { keys: 0 }, &uniform);
    assert!(empty.unwrap_err().to_string().contains("at least one key"));
    for operation in operations() {
        assert_eq!(operation.to_string().parse(), Ok(operation));
    }
    for text in " range range: range:0 range:-1 range:99999999999 walks".split(' ') {
        assert!(text.parse::<Operation>().is_err(), "{text}");
    }
}
