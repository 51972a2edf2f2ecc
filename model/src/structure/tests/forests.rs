//! Shapes that are generated, read, or walked.

use quickcheck::quickcheck;

use super::*;
use crate::{Lengths, Shape};

fn mean_depth(shape: &Shape) -> f64 {
    let depths = shape.depths();
    depths.iter().map(|&depth| f64::from(depth)).sum::<f64>() / depths.len() as f64
}

fn grown(structure: Structure, keys: u32) -> Shape {
    structure.build(keys, &sizes()).unwrap().shape().clone()
}

#[test]
fn random_trees_are_as_deep_as_theory_says() {
    // Random search trees and random increasing binary trees alike: 2 (1 + 1/n) H_n - 4 edges.
    let keys = 20_000;
    let harmonic: f64 = (1..=keys).map(|i| 1.0 / f64::from(i)).sum();
    let expected = 2.0 * (1.0 + 1.0 / f64::from(keys)) * harmonic - 4.0;
    let growth = Growth::RandomInsert { seed: 3 };
    let points = |dimensions| Structure::PointTree { dimensions, growth };
    for structure in [
        Structure::SearchTree { growth },
        Structure::Tree { arity: 2, growth },
        points(1),
    ] {
        let depth = mean_depth(&grown(structure, keys));
        // The standard deviation of the mean depth tends to 0.65 (U. Roesler, A limit theorem for
        // "Quicksort", 1991).
        let error = depth - expected;
        assert!(error.abs() < 2.0, "{structure:?}: {depth} for {expected}");
    }
    // A point in a quadtree of d dimensions lies at (2 / d) ln n (L. Devroye and L. Laforest 1990).
    for dimensions in [2, 3] {
        let depth = mean_depth(&grown(points(dimensions), keys));
        let expected = 2.0 / f64::from(dimensions) * f64::from(keys).ln();
        let error = depth / expected - 1.0;
        assert!(error.abs() < 0.25, "{dimensions}: {depth} for {expected}");
    }
}

#[test]
fn children_fit_the_arity() {
    for growth in [Growth::Complete, Growth::RandomInsert { seed: 5 }] {
        let dimensions = 3;
        for (structure, arity) in [
            (Structure::Tree { arity: 1, growth }, 1),
            (Structure::Tree { arity: 5, growth }, 5),
            (Structure::PointTree { dimensions, growth }, 8),
        ] {
            let shape = grown(structure, 3000);
            let most = (0..3000).map(|v| shape.children(v).len()).max();
            assert_eq!(most, Some(arity));
            assert_eq!(shape.roots().count(), 1);
        }
    }
}

#[test]
fn random_b_trees_are_as_full_as_theory_says() {
    // Nodes of random B-trees are full to ln 2 in the limit of large nodes (A. Yao, On random 2-3
    // trees, 1978).
    let nodes = btree::inserted(60_000, 63, 1);
    let leaves = nodes.counts.iter().filter(|&&count| count > 0).count();
    let fill = 60_000.0 / (leaves as f64 * 63.0);
    assert!((fill - 2f64.ln()).abs() < 0.04, "{fill}");
}

#[test]
fn complete_b_trees_are_as_low_as_can_be() {
    let built = |fanout, keys| {
        let structure = Structure::BTree {
            fanout,
            fill: 1.0,
            in_node: InNode::Whole,
            growth: Growth::Complete,
        };
        grown(structure, keys)
    };
    // 4 * 4 * 4 - 1 keys fill three levels of three keys a node; one more needs a fourth.
    let height = |shape: &Shape| shape.depths().iter().max().map_or(0, |&depth| depth + 1);
    assert_eq!(height(&built(4, 63)), 3);
    assert_eq!(built(4, 63).len(), 21);
    assert_eq!(height(&built(4, 64)), 4);
    assert_eq!(height(&built(16, 4095)), 3);
}

#[test]
fn edges_are_read_in_any_order() {
    let text = "Parent , Child\n\n# a comment\nb,d\na,b\r\na , c\nb,e\nz,y";
    let edges = read_edges(text.as_bytes(), 100).unwrap();
    assert_eq!(edges.names, ["a", "z", "b", "c", "y", "d", "e"]);
    let none = NO_NODE;
    assert_eq!(edges.shape.parents(), [none, none, 0, 0, 1, 2, 2]);
    assert_eq!((edges.placement, edges.lengths), (None, None));
    let edges = read_edges(",a,0x1000,64\na,b,4160,8\n".as_bytes(), 2).unwrap();
    assert_eq!(edges.placement.unwrap().offsets(), [4096, 4160]);
    assert_eq!(edges.lengths, Some(Lengths::Each(vec![64, 8])));
    let empty = read_edges("parent,child,address\n".as_bytes(), 2).unwrap();
    assert!(empty.shape.is_empty());
}

#[test]
fn what_is_wrong_with_edges_is_said_with_its_line() {
    let columns = "a line has 2 to 4 columns: parent,child[,address[,bytes]]";
    let address = "an address is a number below 2^64, decimal or 0x hexadecimal";
    let size = "a size is a number of bytes from 1 to 2^32 - 1";
    for (text, line, what) in [
        ("a,b\nb\n", 2, columns),
        ("a,b,c,d,e", 1, columns),
        ("a,b\nb,c,5", 2, "it has 3 columns, those before have 2"),
        ("a,", 1, "the child has no name"),
        ("a,a", 1, "\"a\" is its own parent"),
        ("a,b\nc,b", 2, "\"b\" was a child or root before, in line 1"),
        (",b\nc,b", 2, "\"b\" was a child or root before, in line 1"),
        ("r,s\na,b\nb,c\nc,a\nc,d", 4, "this edge closes a cycle"),
        ("b,c\na,b\nx,y\nc,a", 4, "this edge closes a cycle"),
        ("a,b\nc,d\ne,f\ng,h", 4, "\"g\" is one node more than 6"),
        ("a,b,-1", 1, address),
        ("a,b,0x+1", 1, address),
        ("a,b,1,0", 1, size),
    ] {
        let error = read_edges(text.as_bytes(), 6).unwrap_err().to_string();
        assert_eq!(error, format!("line {line}: {what}"), "{text:?}");
    }
    let error = read_edges("a,b,1".as_bytes(), 5).unwrap_err();
    let what = "\"a\" has no address: roots need a line with an empty parent";
    assert_eq!((error.line, error.to_string().as_str()), (None, what));
}

/// Walks through nodes known by index, with the indices of their children.
fn walk_indexed(children: &[&[usize]], roots: &[usize], nodes_max: u32) -> Result<Walked, Error> {
    walk(roots.to_vec(), nodes_max, |&node, found| {
        found.extend(children[node]);
        (node as u64 * 100, if node == 0 { 10 } else { 20 })
    })
}

#[test]
fn a_walk_sees_shape_addresses_and_sizes() {
    let walked = walk_indexed(&[&[2], &[], &[3, 1], &[]], &[0], 4).unwrap();
    assert_eq!(walked.shape.parents(), [NO_NODE, 0, 1, 1]);
    assert_eq!(walked.placement.offsets(), [0, 200, 300, 100]);
    assert_eq!(walked.lengths, Lengths::Each(vec![10, 20, 20, 20]));
    let built = walked.built(NodeExtent::new(24, 8).unwrap());
    let keys = KeyDistribution::Uniform;
    let accesses = built.accesses(&walked.placement, Operation::Search, &keys);
    assert!(agrees(&accesses.unwrap(), 64));
    assert!(walk_indexed(&[], &[], 4).unwrap().shape.is_empty());
}

#[test]
fn walks_end_at_cycles_and_shared_nodes() {
    let fails = |children: &[&[usize]], roots: &[usize], nodes_max, what| {
        let error = walk_indexed(children, roots, nodes_max).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    };
    fails(&[&[1], &[0]], &[0], 9, "node 0 leads back to itself");
    fails(&[&[0]], &[0], 9, "it is a child of node 0 too");
    fails(&[&[1, 2], &[2], &[]], &[0], 9, "node 2 has two parents");
    fails(&[&[]], &[0, 0], 9, "node 0 is a root twice");
    fails(&[&[1], &[2], &[]], &[0], 2, "more than 2 nodes");
}

quickcheck! {
    fn edges_give_the_forest_they_say(parents: Vec<u8>) -> bool {
        // Any forest, written from the last node to the first.
        let parents: Vec<Option<u32>> = (0u32..)
            .zip(&parents)
            .map(|(v, &p)| (v > 0 && p % 7 > 0).then(|| u32::from(p) % v))
            .collect();
        let mut text = String::new();
        for (v, parent) in parents.iter().enumerate().rev() {
            let parent = parent.map_or(String::new(), |parent| format!("n{parent}"));
            text.push_str(&format!("{parent},n{v},{},8\n", v * 8));
        }
        let edges = read_edges(text.as_bytes(), 1000).unwrap();
        let number = |name: &String| name[1..].parse::<u32>().unwrap();
        assert_eq!(edges.shape.len(), parents.len());
        for (v, name) in (0u32..).zip(&edges.names) {
            let parent = edges.names.get(edges.shape.parent(v) as usize).map(number);
            assert_eq!(parents[number(name) as usize], parent);
            let address = edges.placement.as_ref().unwrap().offset(v);
            assert_eq!(address, u64::from(number(name)) * 8);
        }
        true
    }

    fn no_text_panics(bytes: Vec<u8>, pairs: Vec<(u8, u8)>) -> bool {
        let line = |(a, b): &(u8, u8)| format!("{},{}\n", a % 9, b % 9);
        let text: String = pairs.iter().map(line).collect();
        let is_answered = |text: &[u8]| match read_edges(text, 20) {
            Ok(edges) => edges.names.len() == edges.shape.len(),
            Err(error) => !error.to_string().is_empty(),
        };
        is_answered(&bytes) && is_answered(text.as_bytes())
    }

    fn walks_never_hang(links: Vec<Vec<u8>>, root: u8) -> bool {
        let nodes = links.len().max(1);
        let result = walk([usize::from(root) % nodes], 50, |&node, children| {
            let links = links.get(node).into_iter().flatten();
            children.extend(links.map(|&link| usize::from(link) % nodes));
            (node as u64, 1)
        });
        match result {
            Ok(walked) => walked.shape.len() <= 50,
            Err(error) => !error.to_string().is_empty(),
        }
    }
}
