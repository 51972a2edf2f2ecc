use super::{NO_NODE, Shape, ShapeError};
use quickcheck::quickcheck;

/// A valid array of parents from arbitrary numbers: about one node in eight is a root.
fn parents_of(seeds: &[u32]) -> Vec<u32> {
    (0..)
        .zip(seeds)
        .map(|(v, &seed): (u32, _)| {
            if v == 0 || seed % 8 == 0 {
                NO_NODE
            } else {
                (seed / 8) % v
            }
        })
        .collect()
}

/// Structure that every shape must have, recomputed the slow way.
fn check(shape: &Shape, parents: &[u32]) {
    assert_eq!(shape.len(), parents.len());
    let nodes = u32::try_from(parents.len()).unwrap();
    let mut seen = 0;
    for v in 0..nodes {
        assert_eq!(shape.parent(v), parents[v as usize]);
        let expected: Vec<u32> = (0..nodes).filter(|&c| parents[c as usize] == v).collect();
        assert_eq!(shape.children(v), expected);
        seen += expected.len();
    }
    assert_eq!(seen + shape.roots().count(), parents.len());
    let (subtree, depth) = (shape.subtree_nodes(), shape.depths());
    let mut expected_subtree = vec![0; parents.len()];
    for v in 0..nodes {
        let (mut at, mut steps) = (v, 0);
        loop {
            expected_subtree[at as usize] += 1;
            match parents[at as usize] {
                NO_NODE => break,
                up => at = up,
            }
            steps += 1;
        }
        assert_eq!(depth[v as usize], steps);
    }
    assert_eq!(subtree, expected_subtree);
}

quickcheck! {
    fn forests_agree_with_their_parents(seeds: Vec<u32>) -> bool {
        let parents = parents_of(&seeds);
        check(&Shape::from_parents(&parents).unwrap(), &parents);
        true
    }

    fn complete_trees_are_heaps(nodes: u8) -> bool {
        let nodes = u32::from(nodes);
        let shape = Shape::complete_binary(nodes);
        let parents: Vec<u32> = (0..nodes).map(|v| if v == 0 { NO_NODE } else { (v - 1) / 2 }).collect();
        check(&shape, &parents);
        true
    }

    fn random_trees_are_binary_and_reproducible(nodes: u8, seed: u64) -> bool {
        let nodes = u32::from(nodes);
        let shape = Shape::random_binary(nodes, seed);
        assert_eq!(shape, Shape::random_binary(nodes, seed));
        assert_eq!(shape.len(), nodes as usize);
        assert_eq!(shape.roots().count(), usize::from(nodes > 0));
        (0..nodes).all(|v| shape.children(v).len() <= 2)
    }
}

#[test]
fn random_trees_have_the_known_mean_depth() {
    let nodes = 1 << 16;
    let depths = Shape::random_binary(nodes, 7).depths();
    let mean = depths.iter().map(|&d| f64::from(d)).sum::<f64>() / f64::from(nodes);
    // 2 (1 + 1/n) H(n) - 4 edges for a random-insert tree; H(65536) = 11.667. One standard
    // deviation of the mean is about 0.65 (R. Sedgewick and P. Flajolet, *An Introduction to the
    // Analysis of Algorithms*, section 6.7).
    assert!((mean - 19.33).abs() < 2.0, "mean depth {mean}");
    assert!(depths.iter().max().is_some_and(|&h| (25..60).contains(&h)));
}

#[test]
fn bad_parents_are_named() {
    assert_eq!(
        Shape::from_parents(&[0]),
        Err(ShapeError::ParentNotBefore { node: 0, parent: 0 })
    );
    assert_eq!(
        Shape::from_parents(&[NO_NODE, 2, 0]),
        Err(ShapeError::ParentNotBefore { node: 1, parent: 2 })
    );
    let text = ShapeError::ParentNotBefore { node: 1, parent: 2 }.to_string();
    assert_eq!(
        text,
        "the parent of node 1 must have a smaller number, not 2"
    );
}

#[test]
fn nothing_is_a_shape() {
    let shape = Shape::from_parents(&[]).unwrap();
    assert!(shape.is_empty());
    assert_eq!(shape.roots().next(), None);
    assert_eq!(shape, Shape::complete_binary(0));
    assert_eq!(shape, Shape::random_binary(0, 1));
}

#[test]
fn a_chain_of_ten_million_nodes_needs_no_stack() {
    let nodes = 10_000_000u32;
    let parents: Vec<u32> = (0..nodes).map(|v| v.wrapping_sub(1)).collect();
    let shape = Shape::from_parents(&parents).unwrap();
    assert_eq!(shape.subtree_nodes()[0], nodes);
    assert_eq!(shape.depths()[nodes as usize - 1], nodes - 1);
}
