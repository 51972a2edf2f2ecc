//! What traversals may do: panic, hide links, change nodes, show links that are anywhere.

use crate::tree::{Link, Node, Picture, alive, build, keys_up_to};
use ccmorph::{Layout, Links, Machine, Morph, MorphError, PageSize, TreeNode, Visitor, ccmorph};
use quickcheck::quickcheck;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const KEYS: [u32; 9] = [50, 20, 80, 10, 30, 70, 90, 25, 35];

/// Asserts that nothing has moved or changed.
pub(crate) fn assert_same<P: PartialEq + std::fmt::Debug>(a: &Picture<P>, b: &Picture<P>) {
    assert_eq!((&a.nodes, &a.addresses), (&b.nodes, &b.addresses));
}

quickcheck! {
    fn a_panic_at_any_call_changes_nothing(keys: Vec<u32>, call: usize, after: bool) -> bool {
        let token = Rc::new(());
        let mut root = build(&keys, &token, |key| key);
        for is_weighing in [false, true] {
            let before = Picture::of(&root);
            let mut calls_left = call % (keys.len() + 1);
            let mut step = |may_panic: bool| {
                if may_panic && calls_left == 0 {
                    std::panic::resume_unwind(Box::new("now"));
                }
                calls_left = calls_left.wrapping_sub(usize::from(may_panic));
            };
            let result = catch_unwind(AssertUnwindSafe(|| {
                if is_weighing {
                    return Morph::new().run_weighted(&mut root, Node::children, |_| {
                        step(true);
                        1.0
                    });
                }
                ccmorph(&mut root, |node, visit| {
                    step(!after);
                    visit(&mut node.left);
                    step(after);
                    visit(&mut node.right);
                })
            }));
            match result {
                Err(_) => assert_same(&before, &Picture::of(&root)),
                Ok(report) => assert_eq!(report.unwrap().nodes, alive(&token)),
            }
            assert_eq!(before.nodes, Picture::of(&root).nodes);
        }
        drop(root);
        alive(&token) == 0
    }
}

#[test]
fn hidden_nodes_stay() {
    let mut root = build(&KEYS, &Rc::new(()), |key| key);
    let before = Picture::of(&root);
    let report = ccmorph(&mut root, |node, visit| visit(&mut node.left)).unwrap();
    let after = Picture::of(&root);
    assert_eq!(before.nodes, after.nodes);
    let has_moved = |&v: &usize| before.addresses[v] != after.addresses[v];
    let moved = (0..KEYS.len()).filter(has_moved).map(|v| after.nodes[v].2);
    assert!(moved.eq([50, 20, 10]), "the leftmost path");
    assert_eq!((report.nodes, report.edges), (3, 2));
}

#[test]
fn a_traversal_may_change_nodes_before_it_shows_them() {
    let token = Rc::new(());
    let mut root = build(&KEYS, &token, |key| key);
    let report = ccmorph(&mut root, |node, visit| {
        node.payload += 1;
        if node.key == 20 {
            node.left = None;
        }
        std::mem::swap(&mut node.left, &mut node.right);
        visit(&mut node.left);
        visit(&mut node.right);
    });
    assert_eq!((report.unwrap().nodes, alive(&token)), (8, 8));
    let nodes = Picture::of(&root).nodes;
    assert!(nodes.iter().all(|&(_, _, key, payload)| payload == key + 1));
    let keys = nodes.iter().map(|node| node.2);
    assert!(keys.eq([50, 80, 20, 90, 70, 30, 35, 25]));
}

#[test]
fn links_may_be_outside_of_nodes() {
    // Links in memory that outlives the morph, and which no node owns.
    let token = Rc::new(());
    let tree = |keys: &[u32]| build(keys, &token, |key| key);
    let array = Box::into_raw(Box::new([tree(&KEYS), None, tree(&[1, 2])]));
    // SAFETY: a box made just now; this is the only reference until it is a box again below.
    let mut outside = Some(unsafe { &mut *array });
    let mut root = tree(&[5]);
    let report = ccmorph(&mut root, |node, visit| {
        if let Some(links) = outside.take() {
            visit(links);
        }
        node.children(visit);
    });
    assert_eq!((report.unwrap().nodes, alive(&token)), (12, 12));
    assert_eq!(root.unwrap().key, 5);
    // SAFETY: from `Box::into_raw` above; the reference made from it was used up by the traversal.
    let array = unsafe { Box::from_raw(array) };
    let sizes = array.each_ref().map(|link| Picture::of(link).nodes.len());
    assert_eq!(sizes, [9, 0, 2]);
    drop(array);
    assert_eq!(alive(&token), 0);
}

#[test]
fn links_in_collections_and_own_types() {
    type Tree = Link<u32>;
    struct Collections {
        by_letter: BTreeMap<char, Tree>,
        fallback: [VecDeque<Tree>; 2],
        rare: Option<Vec<Option<Tree>>>,
        fixed: Box<[[Tree; 2]]>,
        by_number: HashMap<u32, Box<Node<u32>>>,
    }
    impl Links for Collections {
        type Link = Box<Node<u32>>;
        fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Self::Link>) {
            self.fixed.show(visitor);
            self.by_letter.show(visitor);
            self.fallback.show(visitor);
            self.rare.show(visitor);
            self.by_number.show(visitor);
        }
    }

    let token = Rc::new(());
    let tree = |key: u32| build(&KEYS.map(|k| k + key), &token, |key| key);
    let mut root = Collections {
        by_letter: [('a', tree(1)), ('b', None)].into(),
        fallback: [[tree(2)].into(), [tree(3), tree(4)].into()],
        rare: Some(vec![Some(tree(5)), None, Some(tree(6))]),
        fixed: Box::new([[tree(7), None], [None, tree(8)]]),
        by_number: [(9, tree(9).unwrap())].into(),
    };
    let morph = Morph::new().layout(Layout::VanEmdeBoas);
    let report = morph.run(&mut root, Node::children).unwrap();
    assert_eq!((report.nodes, alive(&token)), (9 * 9, 9 * 9));
    let fallback = root.fallback.iter().flatten();
    let rare = root.rare.iter().flatten().flatten();
    let links = root.by_letter.values().chain(fallback).chain(rare);
    let links = links.chain(root.fixed.iter().flatten()).flatten();
    for (node, key) in links.chain(root.by_number.values()).zip(1..) {
        assert_eq!((node.key, node.payload), (50 + key, 50 + key));
    }
    drop(root);
    assert_eq!(alive(&token), 0);
}

#[test]
fn a_root_with_a_million_children() {
    #[derive(TreeNode)]
    #[expect(clippy::vec_box, reason = "links are boxes")]
    struct Wide(usize, #[child] Vec<Box<Wide>>);

    const CHILDREN: usize = 1_000_000;
    let child = |number| Box::new(Wide(number, Vec::new()));
    let mut root = Box::new(Wide(CHILDREN, (0..CHILDREN).map(child).collect()));
    for layout in crate::tree::LAYOUTS {
        let report = Morph::new()
            .layout(layout)
            .run(&mut root, Wide::children)
            .unwrap();
        assert_eq!((report.nodes, report.edges), (CHILDREN + 1, CHILDREN));
    }
    assert_eq!(root.0, CHILDREN);
    assert!(root.1.iter().map(|child| child.0).eq(0..CHILDREN));
}

#[test]
fn settings_are_obeyed() {
    let mut root = build(&keys_up_to(50_000), &Rc::new(()), |key| key);
    let machine = Machine::thesis();
    let mut run = |morph: Morph<'_>| morph.run(&mut root, Node::children).unwrap();
    let auto = run(Morph::new().machine(&machine));
    assert!(!auto.huge_pages, "too small a structure");
    assert_eq!(auto.ranked_for, Some(PageSize::Small4K));
    // The layout taken, then the others.
    assert!(auto.ranking[1..].is_sorted_by(|a, b| a.1.ns <= b.1.ns));
    let fixed = run(Morph::new().layout(Layout::DepthFirst));
    assert!(fixed.ranking.is_empty() && fixed.ranked_for.is_none());
    assert!(fixed.predicted_before.is_none() && fixed.predicted_after.is_none());
    let told = run(Morph::new().layout(Layout::DepthFirst).predict(true));
    assert!(told.predicted_before.is_some() && told.predicted_after.is_some());
    assert_eq!(told.near_before, fixed.near_after);
    let text = told.to_string();
    let begin = "50000 nodes of 32 B laid out as dfs";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.contains("predicted ns a search"), "{text}");
}

#[test]
fn an_invalid_machine_is_an_error_before_anything_moves() {
    let mut root = build(&KEYS, &Rc::new(()), |key| key);
    let before = Picture::of(&root);
    for block_bytes in [0, 48] {
        let mut machine = Machine::thesis();
        machine.levels[0].block_bytes = block_bytes;
        for morph in [Morph::new(), Morph::new().layout(Layout::VanEmdeBoas)] {
            let result = morph
                .predict(true)
                .machine(&machine)
                .run(&mut root, Node::children);
            assert_eq!(result.unwrap_err(), MorphError::InvalidMachine);
        }
    }
    assert_same(&before, &Picture::of(&root));
}

#[test]
fn weights_by_ends_and_by_accesses_say_the_same() {
    let mut root = build(&keys_up_to(3000), &Rc::new(()), |_| 0u32);
    let ends = |key: u32| key % 7;
    // Accesses of a node: what ends at it or anywhere below.
    fn count(node: &mut Node<u32>, ends: &dyn Fn(u32) -> u32) -> u32 {
        let below = [&mut node.left, &mut node.right].into_iter().flatten();
        let sum: u32 = below.map(|child| count(child, ends)).sum();
        node.payload = sum + ends(node.key);
        node.payload
    }
    assert!(count(root.as_mut().unwrap(), &ends) > 0);
    let order = |root: &Link<u32>| {
        let picture = Picture::of(root);
        let mut numbers: Vec<usize> = (0..3000).collect();
        numbers.sort_by_key(|&v| picture.addresses[v]);
        (picture.nodes, numbers)
    };
    let morph = Morph::new().layout(Layout::Weighted);
    let report = morph.run_weighted(&mut root, Node::children, |node| f64::from(ends(node.key)));
    assert_eq!(report.unwrap().nodes, 3000);
    let by_ends = order(&root);
    let accesses = |node: &Node<u32>| f64::from(node.payload);
    let report = morph
        .weights_are_accesses(true)
        .run_weighted(&mut root, Node::children, accesses);
    assert_eq!(report.unwrap().nodes, 3000);
    assert_eq!(order(&root), by_ends);
    // Any number is accepted.
    for weight in [f64::NAN, f64::INFINITY, -1.0, f64::MAX] {
        for choice in [None, Some(Layout::Weighted)] {
            let morph = Morph::new().layout(choice);
            let report = morph.run_weighted(&mut root, Node::children, |_| weight);
            assert_eq!(report.unwrap().nodes, 3000);
        }
    }
}
