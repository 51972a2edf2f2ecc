//! Index trees against a model: the same graph under another numbering, and nothing else.

use crate::tree::choices;
use ccmodel::{Basis, Layout, Level, LevelKind, Machine};
use ccmorph::{
    IndexReport, IndexVisit, Indices, Morph, MorphError, NodeIndex, Operation, PageSize, Verdict,
};
use quickcheck::{Arbitrary, Gen, quickcheck};
use std::cell::Cell;
use std::num::{NonZeroU8, NonZeroU32};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A node of a graph, with children and one other link.
#[derive(Clone, Debug, PartialEq)]
struct Node<const BYTES: usize> {
    name: usize,
    children: Vec<u32>,
    last: Option<NonZeroU32>,
    other: i64,
    filler: [u8; BYTES],
}

/// Links of nodes, taken modulo twice their number: half of them lead nowhere.
#[derive(Clone, Debug)]
struct Links {
    links: Vec<(Vec<u32>, Option<NonZeroU32>, i64)>,
    roots: Vec<u32>,
    choice: Option<Layout>,
    /// Weights, and whether they are counts of accesses.
    weights: Option<(Vec<f64>, bool)>,
}

impl Arbitrary for Links {
    fn arbitrary(g: &mut Gen) -> Links {
        let mut links: Vec<(Vec<u32>, Option<NonZeroU32>, i64)> = Arbitrary::arbitrary(g);
        let bound = 2 * links.len().max(1);
        let below = |index: u32| index % u32::try_from(bound).unwrap();
        for (children, last, other) in &mut links {
            children.truncate(4);
            children.iter_mut().for_each(|child| *child = below(*child));
            *last = last.and_then(|index| NonZeroU32::new(below(index.get())));
            *other %= i64::try_from(bound).unwrap();
        }
        let roots: Vec<u32> = Arbitrary::arbitrary(g);
        Links {
            links,
            roots: roots.into_iter().map(below).take(3).collect(),
            choice: *g.choose(&choices()).unwrap(),
            weights: Arbitrary::arbitrary(g),
        }
    }
}

impl Links {
    fn nodes<const BYTES: usize>(&self) -> Vec<Node<BYTES>> {
        let node = |(name, (children, last, other)): (usize, &(Vec<u32>, _, _))| Node {
            name,
            children: children.clone(),
            last: *last,
            other: *other,
            filler: [name.to_le_bytes()[0]; BYTES],
        };
        self.links.iter().enumerate().map(node).collect()
    }
}

fn show<'a, const BYTES: usize>(node: &'a mut Node<BYTES>, visit: &mut IndexVisit<'_, 'a>) {
    visit.child(&mut node.children);
    visit.reference(&mut node.other);
    visit.child(&mut node.last);
}

/// The new number of the node with this one.
fn moved(report: &IndexReport, index: usize) -> usize {
    if index < report.morph.nodes {
        report.permutation.new_of(index)
    } else {
        index
    }
}

/// Whether the graph is the same but for the numbers of the nodes.
fn check<const BYTES: usize>(
    before: &[Node<BYTES>],
    after: &[Node<BYTES>],
    report: &IndexReport,
) -> bool {
    let index_u32 = |&index: &u32| u32::try_from(moved(report, index as usize)).unwrap();
    let expected = |node: &Node<BYTES>| Node {
        children: node.children.iter().map(index_u32).collect(),
        last: node
            .last
            .map(|index| NonZeroU32::new(index_u32(&index.get())).unwrap()),
        other: match usize::try_from(node.other) {
            Ok(index) => i64::try_from(moved(report, index)).unwrap(),
            Err(_) => node.other,
        },
        ..node.clone()
    };
    let permutation = &report.permutation;
    before.len() == after.len()
        && permutation.len() == after.len()
        && before.iter().enumerate().all(|(old, node)| {
            let new = permutation.new_of(old);
            permutation.old_of(new) == old && after[new] == expected(node)
        })
}

fn morph_and_check<const BYTES: usize>(graph: &Links) -> bool {
    let before: Vec<Node<BYTES>> = graph.nodes();
    let (mut after, mut roots) = (before.clone(), graph.roots.clone());
    let (weighed, mut visits) = (Cell::new(usize::MAX), vec![0; before.len()]);
    let mut called = |name: usize| {
        visits[name] += 1;
        let is_weighed = graph.weights.is_none() || weighed.get() == name;
        assert!(is_weighed, "visited before it was weighed");
    };
    let morph = Morph::new().layout(graph.choice);
    let result = match &graph.weights {
        None => morph.run_slice(&mut after, &mut roots, |node, visit| {
            called(node.name);
            show(node, visit);
        }),
        Some((weights, are_accesses)) => {
            let weigh = |node: &Node<BYTES>| {
                weighed.set(node.name);
                weights.get(node.name).copied().unwrap_or(1.0)
            };
            let morph = morph.weights_are_accesses(*are_accesses);
            morph.run_slice_weighted(
                &mut after,
                &mut roots,
                |node, visit| {
                    called(node.name);
                    show(node, visit);
                },
                weigh,
            )
        }
    };
    assert!(visits.iter().all(|&visits| visits == 1), "{visits:?}");
    let report = match result {
        // A `NonZeroU32` cannot name the first place.
        Err(error) => {
            assert_eq!(error, MorphError::IndexTooNarrow { index: 0 });
            assert_eq!((&after, &roots), (&before, &graph.roots));
            return before.iter().any(|node| node.last.is_some());
        }
        Ok(report) => report,
    };
    let mut beside: Vec<String> = before.iter().map(|node| node.name.to_string()).collect();
    report.permutation.apply(&mut beside);
    assert!(after.iter().map(|node| node.name.to_string()).eq(beside));
    for (&old, &new) in graph.roots.iter().zip(&roots) {
        assert_eq!(moved(&report, old as usize), new as usize);
    }
    if graph.roots.first() == Some(&0) && !after.is_empty() {
        let first = (after[0].name, roots[0]);
        assert_eq!(first, (0, 0), "the root left the first place");
    }
    check(&before, &after, &report)
}

quickcheck! {
    fn any_graph_is_the_same_graph(graph: Links) -> bool {
        morph_and_check::<0>(&graph)
            && morph_and_check::<9>(&graph)
            && morph_and_check::<600>(&graph)
    }

    fn a_panic_at_any_call_changes_nothing(graph: Links, call: usize) -> bool {
        let before: Vec<Node<0>> = graph.nodes();
        let (mut after, mut roots) = (before.clone(), graph.roots.clone());
        let mut calls_left = call % (before.len() + 1);
        let result = catch_unwind(AssertUnwindSafe(|| {
            Morph::new().run_slice(&mut after, &mut roots, |node, visit| {
                visit.child(&mut node.children);
                if calls_left == 0 {
                    std::panic::resume_unwind(Box::new("on purpose"));
                }
                calls_left -= 1;
                visit.reference(&mut node.other);
            })
        }));
        assert_eq!(result.is_err(), call % (before.len() + 1) < before.len());
        result.is_ok() || (after == before && roots == graph.roots)
    }

    fn a_part_of_a_slice(before: u8, nodes: u8, links: Vec<u16>) -> bool {
        let (from, to) = (usize::from(before), usize::from(before) + usize::from(nodes));
        // Each node names another one, or none, anywhere in the whole slice and beyond.
        let mut slice: Vec<(usize, u16)> = (0..300)
            .map(|at| (at, links.get(at).map_or(u16::MAX, |link| link % 400)))
            .collect();
        let old = slice.clone();
        let mut root: [u16; 0] = [];
        let to = to.min(slice.len());
        let report = Morph::new()
            .first_index(from)
            .layout(Layout::VanEmdeBoas)
            .run_slice(&mut slice[from..to], &mut root, |node, visit| visit.child(&mut node.1))
            .unwrap();
        let new_of = |index: usize| match index.checked_sub(from) {
            Some(at) if index < to => from + report.permutation.new_of(at),
            _ => index,
        };
        (0..300).all(|at| {
            let node = slice[new_of(at)];
            let link = usize::from(old[at].1);
            let expected = if (from..to).contains(&at) { new_of(link) } else { link };
            (node.0, usize::from(node.1)) == (at, expected)
        })
    }
}

/// A binary search tree by `u32` with a sentinel; returns its root.
fn search_tree(keys: impl Iterator<Item = u64>) -> (Vec<Leaf>, u32) {
    let (mut nodes, mut root): (Vec<Leaf>, u32) = (Vec::new(), u32::MAX);
    for key in keys {
        let new = u32::try_from(nodes.len()).unwrap();
        let (mut up, mut link) = (u32::MAX, &mut root);
        while *link != u32::MAX {
            up = *link;
            let node = &mut nodes[up as usize];
            link = &mut node.kids[usize::from(key > node.key)];
        }
        *link = new;
        nodes.push(Leaf {
            key,
            kids: [u32::MAX; 2],
            up,
        });
    }
    (nodes, root)
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Leaf {
    key: u64,
    kids: [u32; 2],
    up: u32,
}

fn scattered(keys: u64) -> impl Iterator<Item = u64> {
    (0..keys).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn show_leaf<'a>(node: &'a mut Leaf, visit: &mut IndexVisit<'_, 'a>) {
    visit.child(&mut node.kids);
    visit.reference(&mut node.up);
}

#[test]
fn a_search_tree_in_every_layout() {
    let (mut nodes, mut root) = search_tree(scattered(20_000));
    let mut sorted: Vec<u64> = scattered(20_000).collect();
    sorted.sort_unstable();
    let before = edges_in_blocks(&nodes);
    // With so few caches, no structure counts as small.
    let machine = Machine::thesis();
    for choice in choices() {
        let morph = Morph::new().machine(&machine).layout(choice);
        let report = morph.run_slice(&mut nodes, &mut root, show_leaf).unwrap();
        let counts = (report.morph.nodes, report.reached, report.morph.edges);
        assert_eq!(counts, (20_000, 20_000, 19_999));
        let near = (report.morph.node_bytes, report.morph.near_after.same_64);
        assert_eq!(near, (24, edges_in_blocks(&nodes)), "{choice:?}");
        // In order, with the parents checked on the way.
        let (mut found, mut stack, mut at, mut up) = (Vec::new(), Vec::new(), root, u32::MAX);
        while at != u32::MAX || !stack.is_empty() {
            while at != u32::MAX {
                assert_eq!(nodes[at as usize].up, up);
                stack.push(at);
                (up, at) = (at, nodes[at as usize].kids[0]);
            }
            at = stack.pop().unwrap();
            found.push(nodes[at as usize].key);
            (up, at) = (at, nodes[at as usize].kids[1]);
        }
        assert_eq!(found, sorted);
        if choice.is_none() {
            assert!(matches!(report.morph.basis, Some(Basis::Sample { .. })));
            assert!(report.morph.ranking[1..].is_sorted_by(|a, b| a.1.ns <= b.1.ns));
            assert_eq!(report.morph.ranking[0].0, report.morph.layout);
            assert!(near.1 > 20 * before.max(100), "{report}");
        } else {
            assert!(report.morph.ranking.is_empty() && report.morph.basis.is_none());
        }
        let text = report.to_string();
        let begin = "20000 nodes reached; 20000 nodes of 24 B laid out as";
        assert!(text.starts_with(begin), "{text}");
    }
}

#[test]
fn the_operation_decides_layout_and_verdict() {
    let (mut nodes, mut root) = search_tree(scattered(20_000));
    let cache = Level::new("cache", LevelKind::Data, 64, 65_536.0, 10.0);
    let machine = Machine::new("one cache", Machine::thesis().search, vec![cache]).unwrap();
    let morph = Morph::new().machine(&machine).predict(true);
    let walk = morph.operation(Operation::Walk);
    let random = Layout::Random { seed: 1 };
    for (morph, verdict) in [
        (morph.layout(random), Verdict::Unknown),
        (walk, Verdict::Better),
        (walk, Verdict::Same),
        (walk.layout(random), Verdict::Worse),
        (walk, Verdict::Better),
    ] {
        let report = morph
            .run_slice(&mut nodes, &mut root, show_leaf)
            .unwrap()
            .morph;
        assert_eq!(report.verdict(), verdict, "{report}");
    }
    // The root has the least key. In preorder, its one child comes behind it.
    assert_eq!((root, nodes[0].kids[1]), (0, 1));
}

#[test]
fn the_model_chooses_no_layout_whose_clusters_lose_their_borders() {
    // 24 bytes: clusters of 64 would leave a quarter of the memory free, which a slice cannot.
    let (mut nodes, mut root) = search_tree(scattered(50_000));
    let machine = Machine::thesis();
    let morph = Morph::new().machine(&machine);
    let weigh = |node: &Leaf| f64::from(u8::from(node.key.is_multiple_of(7)));
    for weighted in [false, true] {
        let report = if weighted {
            morph.run_slice_weighted(&mut nodes, &mut root, show_leaf, weigh)
        } else {
            morph.run_slice(&mut nodes, &mut root, show_leaf)
        };
        let ranking = report.unwrap().morph.ranking;
        let offered: Vec<Layout> = ranking.iter().map(|&(layout, _)| layout).collect();
        assert!(offered.contains(&Layout::Hierarchical));
        assert_eq!(offered.contains(&Layout::Weighted), weighted);
        let is_cluster = |layout: &Layout| matches!(layout, Layout::ClusterVanEmdeBoas { .. });
        assert!(!offered.iter().any(is_cluster), "{offered:?}");
    }
}

/// How many edges have both ends in the same block.
fn edges_in_blocks(nodes: &[Leaf]) -> usize {
    let block = |at: u32| std::ptr::from_ref(&nodes[at as usize]).addr() / 64;
    (0..)
        .zip(nodes)
        .filter(|(at, node)| node.up != u32::MAX && block(*at) == block(node.up))
        .count()
}

#[test]
fn the_path_of_all_operations_is_contiguous() {
    let (nodes, root) = search_tree(scattered(5_000));
    // The last leaf, and the path to it.
    let leaf = nodes.last().unwrap().key;
    let mut path = vec![nodes[root as usize]];
    while let Some(node) = path.last().filter(|node| node.key != leaf) {
        path.push(nodes[node.kids[usize::from(leaf > node.key)] as usize]);
    }
    let path: Vec<u64> = path.iter().map(|node| node.key).collect();
    let morph = Morph::new().layout(Layout::DepthFirst);
    let ends = |node: &Leaf| if node.key == leaf { 3.0 } else { f64::NAN };
    for weighted in [false, true] {
        let (mut nodes, mut root) = (nodes.clone(), root);
        let report = match weighted {
            true => morph.run_slice_weighted(&mut nodes, &mut root, show_leaf, ends),
            // The heaviest subtree comes first.
            false => morph.run_slice(&mut nodes, &mut root, show_leaf),
        };
        assert_eq!(report.unwrap().reached, 5_000);
        let first = nodes.iter().map(|node| node.key).take(path.len());
        assert_eq!(first.eq(path.iter().copied()), weighted);
    }
}

#[test]
fn nodes_that_cannot_be_reached_go_to_the_end() {
    let mut nodes: Vec<(char, u8)> = "abcdef".chars().zip([9, 0, 1, 4, 3, 9]).collect();
    // c -> b -> a; d and e are a cycle of their own; f is alone.
    let mut root = 2_u8;
    let morph = Morph::new().layout(Layout::DepthFirst);
    let report = morph
        .run_slice(&mut nodes, &mut root, |node, visit| {
            visit.child(&mut node.1);
        })
        .unwrap();
    let counts = (report.morph.nodes, report.reached, report.morph.edges);
    assert_eq!((counts, root), ((6, 3, 3), 0));
    let moved = [('c', 1), ('b', 2), ('a', 9), ('d', 4), ('e', 3), ('f', 9)];
    assert_eq!(nodes, moved);
}

#[test]
fn all_kinds_of_indices() {
    struct Id(u16);
    impl Indices for Id {
        fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut dyn NodeIndex)) {
            visit(&mut self.0);
        }
    }
    struct Node {
        name: char,
        id: Id,
        cell: Cell<isize>,
        boxed: Box<[Option<u64>]>,
    }
    let node = |name, id, cell, boxed: &[Option<u64>]| Node {
        name,
        id: Id(id),
        cell: Cell::new(cell),
        boxed: boxed.into(),
    };
    // Counted from one.
    let mut nodes = [
        node('z', 0, -1, &[None, Some(99)]),
        node('y', 1, -7, &[]),
        node('x', 2, 4, &[Some(1)]),
        node('w', 77, 0, &[]),
    ];
    let mut roots = (NonZeroU8::new(3), [Some(2_usize), None]);
    let report = Morph::new()
        .first_index(1)
        .layout(Layout::BreadthFirst)
        .run_slice(&mut nodes, &mut roots.0, |node, visit| {
            visit.child(&mut node.id);
            visit.child(node.cell.get_mut());
            visit.reference(&mut node.boxed);
        })
        .unwrap();
    roots.1[0] = roots.1[0].map(|root| 1 + report.permutation.new_of(root - 1));
    assert_eq!(nodes.each_ref().map(|node| node.name), ['x', 'y', 'w', 'z']);
    assert_eq!((roots.0.unwrap().get(), roots.1), (1, [Some(2), None]));
    assert_eq!(nodes.each_ref().map(|node| node.id.0), [2, 4, 77, 0]);
    assert_eq!(nodes.each_ref().map(|node| node.cell.get()), [3, -7, 0, -1]);
    assert_eq!(*nodes[0].boxed, [Some(4)]);
    assert_eq!(*nodes[3].boxed, [None, Some(99)]);
}

#[test]
fn an_index_that_is_too_narrow_is_refused() {
    // 300 nodes, the first of which a `u8` can name; it would go to the end.
    let mut nodes: Vec<(usize, u16, u16, u8)> =
        (0..300).map(|at| (at, u16::MAX, 0, u8::MAX)).collect();
    (0..299_u16).for_each(|at| nodes[usize::from(at) + 1].1 = at);
    nodes[0].3 = 7;
    let before = nodes.clone();
    let morph = Morph::new().layout(Layout::DepthFirst);
    let result = morph.run_slice(&mut nodes, &mut 299_u32, |node, visit| {
        visit.child(&mut node.1);
        if node.0 == 0 {
            visit.reference(&mut node.3);
        }
    });
    let expected = MorphError::IndexTooNarrow { index: 292 };
    assert_eq!(result.unwrap_err(), expected);
    assert_eq!(nodes, before);
    // No number above the largest one.
    let mut nodes = [(0, usize::MAX), (1, usize::MAX - 1), (2, usize::MAX)];
    let result = Morph::new()
        .first_index(usize::MAX - 1)
        .layout(Layout::Random { seed: 1 })
        .run_slice(&mut nodes, &mut [0_usize; 0], |node, visit| {
            visit.reference(&mut node.1);
        });
    assert!(match result {
        Ok(report) => report.permutation.new_of(0) < 2,
        Err(error) => matches!(error, MorphError::IndexTooNarrow { .. }),
    });
}

#[test]
fn nothing_no_bytes_and_one() {
    let none: &mut [u32] = &mut [];
    let report = Morph::new()
        .run_slice(none, &mut 0_u32, |node, visit| visit.child(node))
        .unwrap();
    assert!(report.permutation.is_empty());
    report.permutation.apply::<String>(&mut []);

    let mut calls = 0;
    let report = Morph::new()
        .run_slice(&mut [(); 5], &mut 3_i8, |(), _visit| calls += 1)
        .unwrap()
        .morph;
    let counts = (calls, report.nodes, report.edges, report.node_bytes);
    assert_eq!(counts, (5, 5, 0, 0));

    // Its own child.
    let mut one = [0_u64];
    let report = Morph::new()
        .pages(PageSize::Huge2M)
        .run_slice(&mut one, &mut None::<u8>, |node, visit| visit.child(node))
        .unwrap();
    assert_eq!((one, report.morph.nodes, report.reached), ([0], 1, 0));
}

#[test]
#[should_panic(expected = "a permutation of 2 items cannot be applied to 3")]
fn a_permutation_knows_its_length() {
    let mut nodes = [1_u32, 0];
    let report = Morph::default()
        .run_slice(&mut nodes, &mut 1_u32, |node, visit| visit.child(node))
        .unwrap();
    report.permutation.apply(&mut [1, 2, 3]);
}

#[test]
fn a_chain_of_a_million_nodes_and_again() {
    let nodes = 1_000_000_u32;
    // Each node points seven places on, around the circle.
    let mut links: Vec<u32> = (0..nodes).map(|at| (at + 7) % nodes).collect();
    let mut root = 5;
    for layout in [Layout::VanEmdeBoas, Layout::DepthFirst] {
        let report = Morph::new()
            .layout(layout)
            .run_slice(&mut links, &mut root, |link, visit| visit.child(link))
            .unwrap();
        assert_eq!((report.reached, report.morph.edges), (1_000_000, 999_999));
    }
    // One after the other; the last one points at the first.
    let mut in_order = links.iter().zip(1..);
    assert!(in_order.all(|(&link, next)| link == next % nodes));
    let mut at = root;
    (0..nodes).for_each(|_| at = links[at as usize]);
    assert_eq!(at, root);
}
