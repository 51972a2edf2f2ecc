//! A tree's life under all crates: grown with and without hints, re-laid, pruned, grown again,
//! re-laid again.

use std::collections::BTreeSet;

use crate::search_tree::{Node, SearchTree};
use ccmodel::Layout;
use ccmorph::{Morph, TreeNode};
use quickcheck::{Arbitrary, Gen, quickcheck};

/// One step in a tree's life.
#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    InsertNearParent(u16),
    /// Drops everything below this key on its left.
    Prune(u16),
    Morph(Layout),
    MorphAsTheModelChooses,
}

impl Arbitrary for Step {
    fn arbitrary(g: &mut Gen) -> Self {
        let layouts = [
            Layout::Random {
                seed: u64::arbitrary(g),
            },
            Layout::DepthFirst,
            Layout::BreadthFirst,
            Layout::SubtreeCluster { block_bytes: 64 },
            Layout::SubtreeCluster { block_bytes: 4096 },
            Layout::VanEmdeBoas,
            Layout::ClusterVanEmdeBoas { block_bytes: 256 },
        ];
        match u8::arbitrary(g) {
            0..=7 => Step::Morph(*g.choose(&layouts).unwrap()),
            8..=9 => Step::MorphAsTheModelChooses,
            10..=14 => Step::Prune(u16::arbitrary(g)),
            15..=120 => Step::Insert(u16::arbitrary(g)),
            _ => Step::InsertNearParent(u16::arbitrary(g)),
        }
    }
}

/// The keys of a tree in order, by a walk that needs no stack of calls.
fn keys_of(root: Option<&Node>) -> Vec<u64> {
    let mut keys = Vec::new();
    let mut path = Vec::new();
    let mut next = root;
    while next.is_some() || !path.is_empty() {
        while let Some(node) = next {
            path.push(node);
            next = node.left.as_deref();
        }
        if let Some(node) = path.pop() {
            keys.push(node.key);
            next = node.right.as_deref();
        }
    }
    keys
}

/// Drops the left subtree of the node with `key`, if there is one; its keys.
fn prune(tree: &mut SearchTree, key: u64) -> Vec<u64> {
    let mut link = &mut tree.root;
    while let Some(node) = link {
        if node.key == key {
            let below = node.left.take();
            return keys_of(below.as_deref());
        }
        link = if key < node.key {
            &mut node.left
        } else {
            &mut node.right
        };
    }
    Vec::new()
}

/// Inserts `key` with its node allocated near the parent; false when it was there.
pub(crate) fn insert_near_parent(tree: &mut SearchTree, key: u64, (): ()) -> bool {
    let mut link = &mut tree.root;
    while let Some(node) = link {
        if key == node.key {
            return false;
        }
        link = if key < node.key {
            &mut node.left
        } else {
            &mut node.right
        };
    }
    // The empty link lies inside the parent.
    *link = Some(ccmalloc::near(link, || Box::new(Node::leaf(key, ()))));
    true
}

quickcheck! {
    fn search_trees_answer_as_a_btree_set(keys: Vec<u16>, queries: Vec<u16>) -> bool {
        let mut model = BTreeSet::new();
        let mut trees = [SearchTree::default(), SearchTree::default()];
        for key in keys.into_iter().map(u64::from) {
            let new = model.insert(key);
            assert_eq!(trees[0].insert(key, ()), new);
            assert_eq!(insert_near_parent(&mut trees[1], key, ()), new);
        }
        trees.iter().all(|tree| {
            tree.nodes().count() == model.len()
                && queries.iter().copied().map(u64::from).all(|query| {
                    let found = tree.lower_bound(query).map(|node| node.key);
                    found == model.range(query..).next().copied()
                        && tree.get(query).is_some() == model.contains(&query)
                })
        })
    }

    fn a_tree_lives_through_everything(steps: Vec<Step>) -> bool {
        let mut tree = SearchTree::default();
        let mut model = BTreeSet::<u64>::new();
        for step in steps {
            match step {
                Step::Insert(key) => {
                    assert_eq!(tree.insert(key.into(), ()), model.insert(key.into()));
                }
                Step::InsertNearParent(key) => {
                    let is_new = insert_near_parent(&mut tree, key.into(), ());
                    assert_eq!(is_new, model.insert(key.into()));
                }
                Step::Prune(key) => {
                    for dropped in prune(&mut tree, key.into()) {
                        assert!(model.remove(&dropped));
                    }
                }
                Step::Morph(layout) => {
                    let morph = Morph::new().layout(layout);
                    let report = morph.run(&mut tree.root, Node::children).unwrap();
                    assert_eq!((report.nodes, report.layout), (model.len(), layout));
                }
                Step::MorphAsTheModelChooses => {
                    let report = ccmorph::ccmorph(&mut tree.root, Node::children).unwrap();
                    assert_eq!(report.nodes, model.len());
                }
            }
        }
        ccmalloc::check().unwrap();
        keys_of(tree.root.as_deref()).into_iter().eq(model)
    }
}

#[test]
fn a_list_is_dropped_without_a_frame_a_node() {
    let run = || {
        let mut tree = SearchTree::default();
        for key in (0..5_000).rev() {
            tree.insert(key, ());
        }
    };
    let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(run);
    thread.unwrap().join().unwrap();
}

#[test]
fn a_morphed_tree_may_be_dropped_on_another_thread() {
    let mut tree = SearchTree::default();
    for key in 0..20_000_u64 {
        insert_near_parent(&mut tree, key.wrapping_mul(0x9E37_79B9_7F4A_7C15), ());
    }
    let report = ccmorph::ccmorph(&mut tree.root, Node::children).unwrap();
    assert_eq!(report.nodes, 20_000);
    let keys = std::thread::spawn(move || keys_of(tree.root.as_deref()).len())
        .join()
        .unwrap();
    assert_eq!(keys, 20_000);
    ccmalloc::check().unwrap();
}
