use super::*;
use crate::shape::tests::forest;
use quickcheck::quickcheck;

/// The smallest t for which at most t subtrees have more than t nodes.
fn cut_by_definition(subtree: &[u32]) -> u32 {
    (1..)
        .find(|&t| subtree.iter().filter(|&&nodes| nodes > t).count() <= t as usize)
        .unwrap()
}

quickcheck! {
    fn the_cut_is_what_it_is_said_to_be(parents: Vec<u16>) -> bool {
        let shape = forest(&parents);
        let subtree = shape.subtree_nodes();
        cut(&subtree, 1000) == Some(cut_by_definition(&subtree))
    }

    fn a_sample_of_everything_is_the_forest(parents: Vec<u16>, cut: u8) -> bool {
        let shape = forest(&parents);
        let subtree = shape.subtree_nodes();
        let sample = Sample::new(&shape, &subtree, None, u32::from(cut) + 1, 1, usize::MAX);
        let (sampled, whole) = (&sample.visits, Visits::uniform(&shape));
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let mispredictions = Visits::mispredictions_per_operation;
        sample.shape.len() == shape.len()
            && sampled.counts.iter().all(|&count| close(count, 1.0))
            && close(sampled.nodes_per_operation(), whole.nodes_per_operation())
            && close(mispredictions(sampled), mispredictions(&whole))
    }

    fn counts_add_up_to_all_nodes(
        parents: Vec<u16>,
        cut: u8,
        bundle: u8,
        bundles: u8,
        weighted: bool
    ) -> bool {
        let shape = forest(&parents);
        let subtree = shape.subtree_nodes();
        let weights: Vec<f64> = parents.iter().map(|&p| f64::from(p % 100)).collect();
        let sums = weighted.then(|| crate::visits::subtree_probabilities(&shape, &weights));
        let (cut, bundle, bundles) =
            (u32::from(cut) + 1, u64::from(bundle), usize::from(bundles) + 1);
        let sample = Sample::new(&shape, &subtree, sums.as_deref(), cut, bundle, bundles);
        let stands_for: f64 = sample.visits.counts.iter().sum();
        (stands_for - shape.len() as f64).abs() < 1e-6 * (1.0 + stands_for)
            && sample.ends.len() == sample.shape.len()
            && sample.ends.iter().all(|&end| end >= 0.0)
    }
}

#[test]
fn the_hottest_bundles_stand_for_themselves() {
    let shape = Shape::complete_binary((1 << 12) - 1);
    let mut weights = vec![0.01; shape.len()];
    weights[4000] = 1e6;
    let sums = crate::visits::subtree_probabilities(&shape, &weights);
    let sample = Sample::new(&shape, &shape.subtree_nodes(), Some(&sums), 15, 15, 20);
    assert!(sample.shape.len() < shape.len() / 4);
    let visits = &sample.visits;
    let found = visits.order.iter().zip(&visits.intervals);
    let found = found.map(|(&v, (start, end))| (end - start, visits.counts[v as usize]));
    // The path to the hot node: the top's part, and all of its bottom.
    let hot = found.filter(|&(p, count)| p > 0.99 && (count - 1.0).abs() < 1e-12);
    assert_eq!(hot.count(), 12);
}
