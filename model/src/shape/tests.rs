use super::{NO_NODE, Shape, ShapeError};
use quickcheck::quickcheck;

/// A forest from arbitrary numbers: about one node in seven is a root.
pub(crate) fn forest(seeds: &[u16]) -> Shape {
    Shape::from_generated(parents(seeds))
}

fn parents(seeds: &[u16]) -> Vec<u32> {
    let parent = |(v, &seed): (u32, &u16)| match v {
        0 => NO_NODE,
        _ if seed % 7 == 0 => NO_NODE,
        _ => u32::from(seed) % v,
    };
    (0..).zip(seeds).map(parent).collect()
}

/// Compares a shape with its definition.
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
    let mut expected_subtree = vec![0; parents.len()];
    for v in 0..nodes {
        let above = |&v: &u32| Some(parents[v as usize]).filter(|&parent| parent != NO_NODE);
        let path: Vec<u32> = std::iter::successors(Some(v), above).collect();
        assert_eq!(shape.depths()[v as usize] as usize, path.len() - 1);
        path.iter().for_each(|&v| expected_subtree[v as usize] += 1);
    }
    assert_eq!(shape.subtree_nodes(), expected_subtree);
}

quickcheck! {
    fn forests_agree_with_their_parents(seeds: Vec<u16>) -> bool {
        let (shape, parents) = (forest(&seeds), parents(&seeds));
        check(&shape, &parents);
        assert_eq!(Shape::from_parents(&parents), Ok(shape));
        true
    }

    fn complete_trees_are_heaps(nodes: u8) -> bool {
        let nodes = u32::from(nodes);
        let shape = Shape::complete_binary(nodes);
        let parents = (0..nodes).map(|v| v.checked_sub(1).map_or(NO_NODE, |before| before / 2));
        check(&shape, &parents.collect::<Vec<u32>>());
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
    for (parents, node, parent) in [(&[0][..], 0, 0), (&[NO_NODE, 2, 0], 1, 2)] {
        let error = Shape::from_parents(parents).unwrap_err();
        assert_eq!(error, ShapeError::ParentNotBefore { node, parent });
        let text = format!("the parent of node {node} must have a smaller number, not {parent}");
        assert_eq!(error.to_string(), text);
    }
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
