use std::collections::{BTreeMap, BTreeSet};

use quickcheck::quickcheck;

use super::*;
use crate::{Layout, NO_NODE, NodeExtent};

/// What each operation reads, by ticket.
pub(crate) fn each_operation(accesses: &Accesses) -> Vec<Vec<Access>> {
    let mut operations = accesses.operations(1);
    (0..accesses.tickets.count())
        .map(|ticket| {
            let mut reads = Vec::new();
            operations.of_ticket(ticket, &mut reads);
            reads
        })
        .collect()
}

/// Every block that an operation of each ticket reads, weighed: what block probabilities stand for,
/// word for word.
fn by_enumeration(accesses: &Accesses, block_bytes: u64) -> BTreeMap<u64, f64> {
    let mut probabilities = BTreeMap::new();
    for (ticket, reads) in (0..).zip(each_operation(accesses)) {
        let span = Span {
            start: ticket,
            end: ticket + 1,
        };
        let blocks: BTreeSet<u64> = reads
            .iter()
            .flat_map(|read| {
                let last = read.address + u64::from(read.bytes) - 1;
                read.address / block_bytes..=last / block_bytes
            })
            .collect();
        for block in blocks {
            *probabilities.entry(block).or_insert(0.0) += accesses.tickets.measure(span);
        }
    }
    probabilities
}

/// Whether the probabilities are those of all operations, one by one.
pub(crate) fn agrees(accesses: &Accesses, block_bytes: u64) -> bool {
    let mut expected = by_enumeration(accesses, block_bytes);
    let computed = accesses.block_probabilities(block_bytes);
    let each_is_right = computed.blocks().all(|(block, probability)| {
        // What is never read counts as 0.
        let expected = expected.remove(&block).unwrap_or(0.0);
        (expected - probability).abs() < 1e-9
    });
    each_is_right && expected.is_empty()
}

fn searches(nodes: u32, weights: Option<&[f64]>) -> Accesses {
    let shape = Shape::random_binary(nodes, 3);
    let node = NodeExtent::new(24, 8).unwrap();
    let placement = Layout::VanEmdeBoas.place(&shape, node);
    Accesses::searches(&shape, &placement, 24, weights)
}

#[test]
fn operations_come_as_often_as_their_weights_say() {
    let weights: Vec<f64> = (0..20).map(|v| f64::from(v % 5)).collect();
    let total: f64 = weights.iter().sum();
    let accesses = searches(20, Some(&weights));
    let mut operations = accesses.operations(7);
    let mut counts = BTreeMap::new();
    let mut reads = Vec::new();
    let draws = 100_000;
    for _ in 0..draws {
        operations.next_into(&mut reads);
        *counts.entry(reads.last().unwrap().address).or_insert(0u32) += 1;
    }
    for (v, &weight) in (0..).zip(&weights) {
        let expected = weight / total;
        let drawn = counts
            .get(&accesses.access(v).address)
            .copied()
            .unwrap_or(0);
        let drawn = f64::from(drawn) / f64::from(draws);
        // Five standard deviations.
        let allowed = 5.0 * (expected * (1.0 - expected) / f64::from(draws)).sqrt();
        assert!(
            (drawn - expected).abs() <= allowed,
            "{v}: {drawn} for {expected}"
        );
    }
}

#[test]
fn uniform_operations_end_everywhere_alike() {
    let accesses = searches(10, None);
    let mut operations = accesses.operations(8);
    let mut counts = BTreeMap::new();
    let mut reads = Vec::new();
    for _ in 0..50_000 {
        operations.next_into(&mut reads);
        *counts.entry(reads.last().unwrap().address).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len(), 10);
    assert!(counts.values().all(|&count| (4600..=5400).contains(&count)));
}

#[test]
fn equal_seeds_give_equal_operations() {
    let accesses = searches(1000, None);
    let run = |seed| {
        let mut operations = accesses.operations(seed);
        let mut reads = Vec::new();
        (0..50)
            .flat_map(|_| {
                operations.next_into(&mut reads);
                reads.clone()
            })
            .collect::<Vec<Access>>()
    };
    assert_eq!(run(4), run(4));
    assert_ne!(run(4), run(5));
}

#[test]
fn without_nodes_or_weights_nothing_is_read() {
    for accesses in [searches(0, None), searches(3, Some(&[0.0, f64::NAN, -1.0]))] {
        let mut reads = vec![Access {
            address: 0,
            bytes: 1,
        }];
        accesses.operations(1).next_into(&mut reads);
        assert!(reads.is_empty());
        let touched: f64 = accesses
            .block_probabilities(64)
            .blocks()
            .map(|(_, p)| p)
            .sum();
        assert!(touched.abs() < 1e-12);
    }
}

#[test]
fn a_draw_at_the_very_end_is_a_ticket_with_weight() {
    let tickets = Tickets::new(vec![0; 4], Some(vec![0.0, 2.0, 1.0, 0.0]));
    assert_eq!(tickets.draw(0), Some(1));
    assert_eq!(tickets.draw(u64::MAX), Some(2));
    assert_eq!(Tickets::new(vec![0; 4], None).draw(u64::MAX), Some(3));
    assert_eq!(Tickets::new(Vec::new(), None).draw(5), None);
    let denormal = Tickets::new(vec![0; 2], Some(vec![5e-324, 0.0]));
    assert_eq!(denormal.draw(u64::MAX / 2), Some(0));
}

#[test]
fn nested_tickets_follow_the_forest() {
    let shape = Shape::from_parents(&[NO_NODE, 0, NO_NODE, 0, 1]).unwrap();
    let spans: Vec<(u32, u32)> = nested(&shape, |v| v + 1)
        .into_iter()
        .map(|span| (span.start, span.end))
        .collect();
    // Node 0 has ticket 0, below it 1 (two, then the five of 4) and 3 (four); then root 2.
    assert_eq!(spans, [(0, 12), (1, 8), (12, 15), (8, 12), (3, 8)]);
    assert_eq!(total(&shape, |v| v + 1), Some(15));
    assert_eq!(total(&shape, |_| u32::MAX / 2), None);
}

#[test]
fn inner_blocks_of_long_points_have_their_numbers() {
    let shape = Shape::from_parents(&[NO_NODE, 0]).unwrap();
    let placement = Placement::from_offsets(vec![100, 1000]);
    let accesses = Accesses::searches(&shape, &placement, 300, None);
    assert!(agrees(&accesses, 64));
    let numbers: Vec<u64> = accesses
        .block_probabilities(64)
        .blocks()
        .map(|(b, _)| b)
        .collect();
    // 100..400 are the blocks 1 to 6, 1000..1300 the blocks 15 to 20: ends first.
    assert_eq!(numbers, [1, 6, 15, 20, 2, 3, 4, 5, 16, 17, 18, 19]);
}

quickcheck! {
    fn searches_touch_what_their_paths_say(nodes: u8, words: u8, weights: Vec<u8>) -> bool {
        let weights: Vec<f64> = (0..usize::from(nodes))
            .map(|v| {
                weights
                    .get(v % weights.len().max(1))
                    .copied()
                    .map_or(1.0, f64::from)
            })
            .collect();
        let shape = Shape::random_binary(u32::from(nodes), 3);
        let bytes = 8 * (1 + u32::from(words % 12));
        let placement =
            Layout::Random { seed: 5 }.place(&shape, NodeExtent::new(bytes, 8).unwrap());
        let own_weights = weights;
        let is_alike = |weights: Option<&[f64]>| {
            let accesses = Accesses::searches(&shape, &placement, bytes, weights);
            let visits = match weights {
                Some(weights) => Visits::weighted(&shape, weights),
                None => Visits::uniform(&shape),
            };
            // The same by the way that knows nothing of tickets.
            let same_blocks = [8, 64, 4096].into_iter().all(|block| {
                let by_visits = BlockProbabilities::new(&visits, &placement, bytes, block);
                let by_tickets = accesses.block_probabilities(block);
                by_visits
                    .end_blocks()
                    .iter()
                    .zip(by_tickets.end_blocks())
                    .all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-9)
                    && by_visits.end_blocks().len() == by_tickets.end_blocks().len()
            });
            let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + a);
            let own = accesses.visits();
            same_blocks
                && agrees(&accesses, 64)
                && close(own.nodes_per_operation(), visits.nodes_per_operation())
                && close(
                    own.mispredictions_per_operation(),
                    visits.mispredictions_per_operation(),
                )
        };
        is_alike(None) && is_alike(Some(&own_weights))
    }
}
