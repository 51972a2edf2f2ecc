//! Structures compared with their definitions, operation by operation.

mod forests;
mod programs;

use quickcheck::quickcheck;

use super::*;
use crate::accesses::tests::{agrees, each_operation};
use crate::{Accesses, KeyDistribution, Layout, Placement};

fn sizes() -> Sizes {
    Sizes::of(NodeExtent::new(24, 8).unwrap()).with_pairs(8, 16)
}

/// One of each kind.
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
        structures(seed).into_iter().all(|structure| {
            let built = structure.build(keys, &sizes()).unwrap();
            let placement = built.place(Layout::Random { seed });
            operations().into_iter().all(|operation| {
                [
                    KeyDistribution::Uniform,
                    KeyDistribution::Zipf {
                        exponent: 1.0,
                        seed,
                    },
                ]
                .iter()
                .all(|distribution| {
                    match built.accesses(&placement, operation, distribution) {
                        Ok(accesses) => agrees(&accesses, block_bytes),
                        Err(StructureError::NoRange) => matches!(structure, Structure::Hash { .. }),
                        Err(_) => false,
                    }
                })
            })
        })
    }

    fn each_key_is_searched_for_once_and_found(keys: u8, seed: u64) -> bool {
        let keys = u32::from(keys);
        structures(seed).into_iter().all(|structure| {
            let built = structure.build(keys, &sizes()).unwrap();
            let accesses = built
                .accesses(&apart(&built), Operation::Search, &KeyDistribution::Uniform)
                .unwrap();
            let mut ends: Vec<u64> = all_reads(&accesses)
                .iter()
                .map(|reads| *reads.last().unwrap())
                .collect();
            ends.sort_unstable();
            let searched = ends.len();
            ends.dedup();
            // Where nodes are read whole, several keys have one end.
            let whole = matches!(
                structure,
                Structure::BTree {
                    in_node: InNode::Whole,
                    ..
                }
            );
            built.keys() == keys as usize
                && searched == built.keys()
                && if whole {
                    ends.len() == built.shape().len()
                } else {
                    ends.len() == searched
                }
        })
    }

    fn walks_read_every_point(keys: u8, seed: u64) -> bool {
        structures(seed).into_iter().all(|structure| {
            let built = structure.build(u32::from(keys), &sizes()).unwrap();
            [false, true].into_iter().all(|returns| {
                let walk = Operation::Walk { returns };
                let accesses = built
                    .accesses(&apart(&built), walk, &KeyDistribution::Uniform)
                    .unwrap();
                let mut points = accesses.fixed_sequence().unwrap().to_vec();
                let read = points.len();
                points.sort_unstable();
                points.dedup();
                points.len() == built.points() && (returns || read == points.len())
            })
        })
    }

    fn node_ends_are_where_searches_end(keys: u8, seed: u64) -> bool {
        structures(seed).into_iter().all(|structure| {
            let built = structure.build(u32::from(keys) + 1, &sizes()).unwrap();
            let ends = built
                .node_ends(Operation::Search, &KeyDistribution::Uniform)
                .unwrap();
            let sum: f64 = ends.iter().sum();
            let is_array = built.shape().is_empty();
            ends.len() == built.shape().len() && (is_array || (sum - 1.0).abs() < 1e-9)
        })
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
    let with_node = |bytes| Sizes {
        node: NodeExtent { bytes, align: 8 },
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
        (tree(2), with_node(0), "at least one byte"),
        (btree(8, 1.0), sizes().with_pairs(0, 8), "a key needs"),
        (
            btree(8, 1.0),
            sizes().with_pairs(u32::MAX, u32::MAX),
            "too large",
        ),
    ] {
        let error = structure.build(10, &sizes).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let too_many = tree(2).build(u32::MAX, &sizes());
    assert_eq!(too_many.unwrap_err(), StructureError::TooLarge);
}

#[test]
fn operations_that_are_not_possible_are_refused() {
    let hash = Structure::Hash { load: 1.0, seed: 1 };
    let built = hash.build(10, &sizes()).unwrap();
    let own = apart(&built);
    let of = |placement, operation, keys| built.accesses(placement, operation, keys).unwrap_err();
    let uniform = KeyDistribution::Uniform;
    let range = |keys| of(&own, Operation::Range { keys }, &uniform);
    assert_eq!(range(3), StructureError::NoRange);
    assert_eq!(range(0), StructureError::EmptyRange);
    let other = Placement::from_offsets(vec![0; 11]);
    let placed = StructureError::Placement {
        nodes: 10,
        placed: 11,
    };
    assert_eq!(of(&other, Operation::Search, &uniform), placed);
    let weights = KeyDistribution::Weights(vec![1.0; 9]);
    let refused = of(&own, Operation::Search, &weights);
    assert!(matches!(refused, StructureError::Keys(_)));
}

#[test]
fn operations_are_read_as_they_are_written() {
    for operation in operations() {
        assert_eq!(operation.to_string().parse(), Ok(operation));
    }
    let ranges = [
        "range",
        "range:",
        "range:0",
        "range:-1",
        "range:99999999999",
    ];
    for text in ranges.into_iter().chain(["", "walks"]) {
        assert_eq!(text.parse::<Operation>(), Err(ParseOperationError));
    }
}
