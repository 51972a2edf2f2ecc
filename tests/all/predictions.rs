//! What the model says of trees that really stand in memory.

use crate::search_tree::{Node, SearchTree};
use crate::survey::Survey;
use crate::trees::insert_near_parent;
use ccmodel::{HintPolicy, Layout, Machine, PageSize, Prediction};
use ccmorph::{Morph, TreeNode};

/// Enough for the thesis's machine, whose second-level cache has 1 MB, to miss.
const NODES: usize = 200_000;

/// How a tree grows by a key.
type Insert = fn(&mut SearchTree, u64, ()) -> bool;

fn keys() -> Vec<u64> {
    // Multiplication by an odd number is a permutation; rotation makes the order random enough.
    let scramble = |key: u64| key.wrapping_mul(0xBF58_476D_1CE4_E5B9).swap_bytes();
    (1..=NODES as u64)
        .map(|key| scramble(scramble(key)))
        .collect()
}

fn tree(insert: Insert) -> SearchTree {
    let mut tree = SearchTree::default();
    for key in keys() {
        assert!(insert(&mut tree, key, ()));
    }
    tree
}

fn morphed(layout: Layout) -> SearchTree {
    let mut tree = tree(SearchTree::insert);
    Morph::new()
        .layout(layout)
        .run(&mut tree.root, Node::children)
        .unwrap();
    tree
}

fn predict(tree: &SearchTree) -> Prediction {
    Survey::of(tree).predict(PageSize::Small4K, &Machine::thesis())
}

#[test]
fn hints_and_morphs_are_predicted_to_gain() {
    let plain = predict(&tree(SearchTree::insert));
    let hinted = predict(&tree(insert_near_parent));
    let random = predict(&morphed(Layout::Random { seed: 1 }));
    assert!(
        hinted.ns < 0.9 * plain.ns,
        "hinted {} ns, plain {} ns",
        hinted.ns,
        plain.ns
    );
    for layout in [
        Layout::DepthFirst,
        Layout::SubtreeCluster { block_bytes: 64 },
        Layout::VanEmdeBoas,
    ] {
        let morphed = predict(&morphed(layout));
        assert!(
            morphed.ns < 0.9 * random.ns,
            "{layout} {} ns, random {} ns",
            morphed.ns,
            random.ns
        );
    }
}

#[test]
fn hints_put_nodes_into_the_blocks_of_their_parents() {
    let plain = Survey::of(&tree(SearchTree::insert)).share_with_parent(64);
    let hinted = Survey::of(&tree(insert_near_parent)).share_with_parent(64);
    assert!(plain < 0.05, "{plain}");
    assert!(hinted > 0.3, "{hinted}");
}

#[test]
fn the_model_knows_where_the_allocator_puts_nodes() {
    let hinted = Layout::Hinted {
        policy: HintPolicy::NewBlock,
    };
    let grown: [(Insert, Layout); 2] = [
        (SearchTree::insert, Layout::Allocated),
        (insert_near_parent, hinted),
    ];
    for (insert, layout) in grown {
        let real = Survey::of(&tree(insert));
        let planned = Survey {
            shape: real.shape.clone(),
            placement: layout.place(&real.shape, real.extent),
            extent: real.extent,
        };
        for block_bytes in [64, 4096] {
            let [real, planned] =
                [&real, &planned].map(|survey| survey.share_with_parent(block_bytes));
            assert!(
                (real - planned).abs() < 0.02,
                "{layout}: of {block_bytes} B, {real} share one in memory, {planned} in the plan"
            );
        }
        let [real, planned] = [&real, &planned]
            .map(|survey| survey.predict(PageSize::Small4K, &Machine::thesis()).ns);
        assert!(
            (real / planned - 1.0).abs() < 0.05,
            "{layout}: {real} ns in memory, {planned} in the plan"
        );
    }
}

#[test]
fn a_morph_puts_nodes_where_the_layout_says() {
    let layout = Layout::VanEmdeBoas;
    let survey = Survey::of(&morphed(layout));
    let planned = layout.place(&survey.shape, survey.extent);
    // Both know of the same pairs; where segments fall may differ by a few nodes.
    let together = |offsets: &[u64]| {
        let number = |node: usize| u32::try_from(node).unwrap();
        (1..offsets.len())
            .filter(|&node| {
                offsets[survey.shape.parent(number(node)) as usize] / 4096 == offsets[node] / 4096
            })
            .count()
    };
    let (real, ideal) = (
        together(survey.placement.offsets()),
        together(planned.offsets()),
    );
    assert!(
        real.abs_diff(ideal) * 50 < ideal,
        "{real} pairs on one page in memory, {ideal} in the plan"
    );
}
