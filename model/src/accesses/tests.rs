use std::collections::{BTreeMap, BTreeSet};

use quickcheck::quickcheck;

use super::*;
use crate::probability::tests::layout;
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

/// How often an operation ends at each address, of `draws` operations.
fn ends(accesses: &Accesses, draws: u32) -> BTreeMap<u64, u32> {
    let mut operations = accesses.operations(7);
    let (mut counts, mut reads) = (BTreeMap::new(), Vec::new());
    for _ in 0..draws {
        operations.next_into(&mut reads);
        *counts.entry(reads.last().unwrap().address).or_insert(0u32) += 1;
    }
    counts
}

#[test]
fn operations_come_as_often_as_their_weights_say() {
    let weights: Vec<f64> = (0..20).map(|v| f64::from(v % 5)).collect();
    let draws = 100_000;
    for weights in [weights, vec![1.0; 20]] {
        let accesses = searches(20, Some(&weights));
        let counts = ends(&accesses, draws);
        let total: f64 = weights.iter().sum();
        for (v, &weight) in (0..).zip(&weights) {
            let expected = weight / total;
            let drawn = counts
                .get(&accesses.access(v).address)
                .copied()
                .unwrap_or(0);
            let drawn = f64::from(drawn) / f64::from(draws);
            // Five standard deviations.
            let allowed = 5.0 * (expected * (1.0 - expected) / f64::from(draws)).sqrt();
            assert!((drawn - expected).abs() <= allowed, "{v}: {drawn}");
        }
    }
    let even = ends(&searches(10, None), 50_000);
    assert!(even.len() == 10 && even.values().all(|count| (4600..=5400).contains(count)));
}

#[test]
fn equal_seeds_give_equal_operations() {
    let accesses = searches(1000, None);
    let run = |seed| {
        let (mut operations, mut reads) = (accesses.operations(seed), Vec::new());
        let mut all = Vec::new();
        for _ in 0..50 {
            operations.next_into(&mut reads);
            all.extend_from_slice(&reads);
        }
        all
    };
    assert_eq!(run(4), run(4));
    assert_ne!(run(4), run(5));
}

#[test]
fn without_nodes_or_weights_nothing_is_read() {
    let stale = Access {
        address: 0,
        bytes: 1,
    };
    for accesses in [searches(0, None), searches(3, Some(&[0.0, f64::NAN, -1.0]))] {
        let mut reads = vec![stale];
        accesses.operations(1).next_into(&mut reads);
        assert!(reads.is_empty());
        assert!(accesses.block_probabilities(64).footprint().touches().abs() < 1e-12);
    }
}

#[test]
fn a_draw_at_the_very_end_is_a_ticket_with_weight() {
    for (tickets, weights, random, expected) in [
        (4, Some(vec![0.0, 2.0, 1.0, 0.0]), 0, Some(1)),
        (4, Some(vec![0.0, 2.0, 1.0, 0.0]), u64::MAX, Some(2)),
        (4, None, u64::MAX, Some(3)),
        (0, None, 5, None),
        (2, Some(vec![5e-324, 0.0]), u64::MAX / 2, Some(0)),
    ] {
        let tickets = Tickets::new(vec![0; tickets], weights);
        assert_eq!(tickets.draw(random), expected);
    }
}

#[test]
fn nested_tickets_follow_the_forest() {
    let shape = Shape::from_parents(&[NO_NODE, 0, NO_NODE, 0, 1]).unwrap();
    // Node 0 has ticket 0, below it 1 (two, then the five of 4) and 3 (four); then root 2.
    let spans = [(0, 12), (1, 8), (12, 15), (8, 12), (3, 8)];
    let spans = spans.map(|(start, end)| Span { start, end });
    assert_eq!(nested(&shape, |v| v + 1), spans);
    assert_eq!(total(&shape, |v| v + 1), Some(15));
    assert_eq!(total(&shape, |_| u32::MAX / 2), None);
}

#[test]
fn inner_blocks_of_long_points_have_their_numbers() {
    let shape = Shape::from_parents(&[NO_NODE, 0]).unwrap();
    let placement = Placement::from_offsets(vec![100, 1000]);
    let accesses = Accesses::searches(&shape, &placement, 300, None);
    assert!(agrees(&accesses, 64));
    // 100..400 are the blocks 1 to 6, 1000..1300 the blocks 15 to 20: ends first.
    let numbers = accesses.block_probabilities(64);
    let numbers = numbers.blocks().map(|(number, _)| number);
    assert!(numbers.eq([1, 6, 15, 20, 2, 3, 4, 5, 16, 17, 18, 19]));
}

quickcheck! {
    fn searches_touch_what_their_paths_say(
        nodes: u8, words: u8, choice: u8, seed: u64, block_bits: u32, weights: Vec<u8>
    ) -> bool {
        let weights = weights.into_iter().chain([1]).map(f64::from).cycle();
        let weights: Vec<f64> = weights.take(usize::from(nodes)).collect();
        let shape = Shape::random_binary(u32::from(nodes), seed);
        let bytes = 8 * (1 + u32::from(words % 20));
        let placement = layout(choice).place(&shape, NodeExtent::new(bytes, 8).unwrap());
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + a);
        let is_alike = |weights: Option<&[f64]>, touched: u32| {
            let accesses = Accesses::searches(&shape, &placement, touched, weights);
            let visits = match weights {
                Some(weights) => Visits::weighted(&shape, weights),
                None => Visits::uniform(&shape),
            };
            // The same by visits, whose intervals are those of depth-first order.
            let same_blocks = [8, 64, 8 << (block_bits % 10)].into_iter().all(|block| {
                let by_visits = BlockProbabilities::new(&visits, &placement, touched, block);
                let by_tickets = accesses.block_probabilities(block);
                let mut both = by_visits.blocks().zip(by_tickets.blocks());
                by_visits.blocks().count() == by_tickets.blocks().count()
                    && both.all(|(a, b)| a.0 == b.0 && close(a.1, b.1))
                    && agrees(&accesses, block)
            });
            let own = accesses.visits();
            let mispredictions = Visits::mispredictions_per_operation;
            same_blocks
                && close(own.nodes_per_operation(), visits.nodes_per_operation())
                && close(mispredictions(own), mispredictions(&visits))
        };
        [8, bytes].into_iter()
            .all(|touched| is_alike(None, touched) && is_alike(Some(&weights), touched))
    }
}
