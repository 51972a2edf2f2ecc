//! What traversals may do: panic, hide links, change nodes, show links that are anywhere.

use crate::tree::{Link, Node, Picture, alive, build};
use ccmodel::{Layout, Machine};
use ccmorph::{
    LayoutChoice, Links, Morph, MorphError, PageSize, TreeNode, Visit, Visitor, ccmorph,
};
use quickcheck::quickcheck;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const KEYS: [u32; 9] = [50, 20, 80, 10, 30, 70, 90, 25, 35];

quickcheck! {
    fn a_panic_at_any_call_changes_nothing(keys: Vec<u32>, call: usize, after_showing: bool) -> bool {
        let token = Rc::new(());
        let mut root = build(&keys, &token, |key| key);
        let before = Picture::of(&root);
        let mut calls_left = call % (keys.len() + 1);
        let result = catch_unwind(AssertUnwindSafe(|| {
            ccmorph(&mut root, |node, visit| {
                if calls_left == 0 && !after_showing {
                    std::panic::resume_unwind(Box::new("before"));
                }
                visit(&mut node.left);
                if calls_left == 0 {
                    std::panic::resume_unwind(Box::new("after"));
                }
                calls_left -= 1;
                visit(&mut node.right);
            })
        }));
        let after = Picture::of(&root);
        assert_eq!(before.nodes, after.nodes);
        match result {
            Err(_) => assert_eq!(before.addresses, after.addresses),
            Ok(report) => assert_eq!(report.unwrap().nodes, alive(&token)),
        }
        drop(root);
        alive(&token) == 0
    }
}

#[test]
fn hidden_nodes_stay() {
    let token = Rc::new(());
    let mut root = build(&KEYS, &token, |key| key);
    let before = Picture::of(&root);
    let report = ccmorph(&mut root, |node, visit| visit(&mut node.left)).unwrap();
    let after = Picture::of(&root);
    assert_eq!(before.nodes, after.nodes);
    let moved: Vec<u32> = (0..KEYS.len())
        .filter(|&v| before.addresses[v] != after.addresses[v])
        .map(|v| after.nodes[v].2)
        .collect();
    assert_eq!(moved, [50, 20, 10], "the leftmost path");
    assert_eq!((report.nodes, report.edges), (3, 2));
    drop(root);
    assert_eq!(alive(&token), 0);
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
    assert_eq!(report.unwrap().nodes, 8);
    assert_eq!(alive(&token), 8);
    let picture = Picture::of(&root);
    assert!(
        picture
            .nodes
            .iter()
            .all(|&(_, _, key, payload)| payload == key + 1)
    );
    assert_eq!(
        picture.nodes.iter().map(|node| node.2).collect::<Vec<_>>(),
        [50, 80, 20, 90, 70, 30, 35, 25]
    );
}

#[test]
fn links_may_be_outside_of_nodes() {
    // Links in memory that outlives the morph, and which no node owns.
    let token = Rc::new(());
    let array = [
        build(&KEYS, &token, |key| key),
        None,
        build(&[1, 2], &token, |key| key),
    ];
    let array = Box::into_raw(Box::new(array));
    // SAFETY: a box made just now, of which this is the only reference until it is a box again
    // below.
    let mut outside = Some(unsafe { &mut *array });
    let mut root = build(&[5], &token, |key| key);
    let report = ccmorph(&mut root, |node, visit| {
        if let Some(links) = outside.take() {
            visit(links);
        }
        node.children(visit);
    });
    assert_eq!(report.unwrap().nodes, 12);
    assert_eq!(alive(&token), 12);
    assert_eq!(root.unwrap().key, 5);
    // SAFETY: from `Box::into_raw` above; the reference made from it was used up by the traversal.
    let array = unsafe { Box::from_raw(array) };
    assert_eq!(
        array.each_ref().map(|link| Picture::of(link).nodes.len()),
        [9, 0, 2]
    );
    drop(array);
    assert_eq!(alive(&token), 0);
}

#[test]
fn links_in_collections_and_own_types() {
    struct Trie {
        value: u32,
        by_letter: BTreeMap<char, Box<Trie>>,
        fallback: Pair,
        rare: Option<Vec<Option<Box<Trie>>>>,
        fixed: Box<[[Option<Box<Trie>>; 2]]>,
    }
    #[derive(Default)]
    struct Pair(Option<Box<Trie>>, Option<Box<Trie>>);
    impl Links for Pair {
        type Link = Box<Trie>;
        fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Trie>>) {
            self.1.show(visitor);
            self.0.show(visitor);
        }
    }
    impl TreeNode for Trie {
        type Link = Box<Trie>;
        fn children<'a>(&'a mut self, visit: &mut Visit<'_, 'a, Box<Trie>>) {
            for child in self.by_letter.values_mut() {
                visit(child);
            }
            visit(&mut self.fallback);
            visit(&mut self.rare);
            visit(&mut self.fixed);
        }
    }

    fn grow(value: u32, levels: u32) -> Box<Trie> {
        let mut next = value * 8;
        let mut child = || {
            next += 1;
            (levels > 0).then(|| grow(next, levels - 1))
        };
        Box::new(Trie {
            value,
            by_letter: "ab"
                .chars()
                .filter_map(|letter| Some((letter, child()?)))
                .collect(),
            fallback: Pair(child(), child()),
            rare: Some(vec![child(), None, child()]),
            fixed: Box::new([[child(), None], [None, child()]]),
        })
    }

    fn values(node: &Trie) -> Vec<u32> {
        let links = node
            .by_letter
            .values()
            .chain(&node.fallback.0)
            .chain(&node.fallback.1);
        let links = links
            .chain(node.rare.iter().flatten().flatten())
            .chain(node.fixed.iter().flatten().flatten());
        [node.value]
            .into_iter()
            .chain(links.flat_map(|child| values(child)))
            .collect()
    }

    let mut root = grow(0, 4);
    let before = values(&root);
    let report = Morph::new()
        .layout(Layout::VanEmdeBoas)
        .run(&mut root, Trie::children)
        .unwrap();
    assert_eq!(report.nodes, 1 + 8 + 64 + 512 + 4096);
    assert_eq!(values(&root), before);
}

#[test]
fn many_roots_are_one_forest() {
    // A chained hash table.
    let token = Rc::new(());
    let mut table: Vec<Link<u32>> = (0..64).map(|_| None).collect();
    for key in 0..1000u32 {
        let slot = &mut table[key as usize % 64];
        let next = slot.take();
        *slot = Some(Box::new(Node {
            key,
            payload: key,
            token: Rc::clone(&token),
            left: None,
            right: next,
        }));
    }
    let report = ccmorph(table.as_mut_slice(), Node::children).unwrap();
    assert_eq!((report.nodes, report.edges), (1000, 1000 - 64));
    for (slot, link) in (0..).zip(&table) {
        let mut keys = Vec::new();
        let mut at = link;
        while let Some(node) = at {
            keys.push(node.key);
            at = &node.right;
        }
        assert!(keys.is_sorted_by(|a, b| a > b) && keys.iter().all(|key| key % 64 == slot));
    }
    drop(table);
    assert_eq!(alive(&token), 0);
}

#[test]
fn settings_are_obeyed() {
    let token = Rc::new(());
    let keys: Vec<u32> = (0..50_000)
        .map(|i: u32| i.wrapping_mul(0x9e37_79b9))
        .collect();
    let mut root = build(&keys, &token, |key| key);
    let machine = Machine::thesis();
    let auto = Morph::new()
        .machine(&machine)
        .run(&mut root, Node::children)
        .unwrap();
    assert!(!auto.huge_pages, "too small a structure");
    assert_eq!(auto.ranked_for, Some(PageSize::Small4K));
    // The layout taken, then the others.
    assert!(auto.ranking[1..].is_sorted_by(|a, b| a.1.ns <= b.1.ns));
    let fixed = Morph::new()
        .layout(Layout::DepthFirst)
        .run(&mut root, Node::children)
        .unwrap();
    assert!(
        fixed.ranking.is_empty()
            && fixed.ranked_for.is_none()
            && fixed.predicted_before.is_none()
            && fixed.predicted_after.is_none()
    );
    let told = Morph::new()
        .layout(Layout::DepthFirst)
        .predict(true)
        .run(&mut root, Node::children)
        .unwrap();
    assert!(told.predicted_before.is_some() && told.predicted_after.is_some());
    assert_eq!(told.near_before, fixed.near_after);
    assert_eq!(
        Morph::new()
            .layout(LayoutChoice::Auto)
            .run(&mut root, Node::children)
            .unwrap()
            .nodes,
        keys.len()
    );
    let text = told.to_string();
    assert!(
        text.starts_with("50000 nodes of 32 B laid out as dfs"),
        "{text}"
    );
    assert!(text.contains("predicted ns a search"), "{text}");
}

#[test]
fn a_machine_that_cannot_be_is_refused_before_anything_moves() {
    let token = Rc::new(());
    let mut root = build(&KEYS, &token, |key| key);
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
    let after = Picture::of(&root);
    assert_eq!(before.nodes, after.nodes);
    assert_eq!(before.addresses, after.addresses);
    drop(root);
    assert_eq!(alive(&token), 0);
}

#[test]
fn weights_by_ends_and_by_accesses_say_the_same() {
    let token = Rc::new(());
    let keys: Vec<u32> = (0..3000u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let mut root = build(&keys, &token, |_| 0u32);
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
        let mut numbers: Vec<usize> = (0..keys.len()).collect();
        numbers.sort_by_key(|&v| picture.addresses[v]);
        (picture.nodes, numbers)
    };
    let morph = Morph::new().layout(Layout::Weighted);
    let report = morph.run_weighted(&mut root, Node::children, |node| f64::from(ends(node.key)));
    assert_eq!(report.unwrap().nodes, keys.len());
    let by_ends = order(&root);
    let report =
        morph.run_weighted_by_accesses(&mut root, Node::children, |node| f64::from(node.payload));
    assert_eq!(report.unwrap().nodes, keys.len());
    assert_eq!(order(&root), by_ends);
    // Weights of no sense are no danger.
    for weight in [f64::NAN, f64::INFINITY, -1.0, f64::MAX] {
        for choice in [LayoutChoice::Auto, Layout::Weighted.into()] {
            let morph = Morph::new().layout(choice);
            let report = morph.run_weighted(&mut root, Node::children, |_| weight);
            assert_eq!(report.unwrap().nodes, keys.len());
        }
    }
    drop(root);
    assert_eq!(alive(&token), 0);
}

#[test]
fn a_panic_while_weighing_changes_nothing() {
    let token = Rc::new(());
    let mut root = build(&KEYS, &token, |key| key);
    let before = Picture::of(&root);
    for call in 0..KEYS.len() {
        let mut calls = 0;
        let result = catch_unwind(AssertUnwindSafe(|| {
            Morph::new().run_weighted(&mut root, Node::children, |_| {
                calls += 1;
                if calls > call {
                    std::panic::resume_unwind(Box::new("now"));
                }
                1.0
            })
        }));
        assert!(result.is_err());
        let after = Picture::of(&root);
        assert_eq!(
            (&before.nodes, &before.addresses),
            (&after.nodes, &after.addresses)
        );
    }
    drop(root);
    assert_eq!(alive(&token), 0);
}
