//! Nodes of all sizes and alignments, in all layouts; sizes that cannot be moved; shapes that go to
//! extremes.

use crate::tree::{LAYOUTS, alive, build, morph_checked};
use ccmodel::Layout;
use ccmorph::{LayoutChoice, Morph, MorphError, TreeNode};
use quickcheck::quickcheck;
use std::rc::Rc;

macro_rules! aligned {
    ($($name:ident $align:literal),*) => {$(
        #[derive(Clone, Debug, PartialEq)]
        #[repr(align($align))]
        struct $name(u32);
    )*};
}
aligned!(Align16 16, Align64 64, Align128 128, Align1024 1024, Align2048 2048);

/// All layouts and `Auto` one after the other on one tree.
fn check<P: Clone + PartialEq + std::fmt::Debug + Unpin>(keys: &[u32], payload: impl Fn(u32) -> P) {
    let token = Rc::new(());
    let mut root = build(keys, &token, payload);
    let nodes = alive(&token);
    let choices = LAYOUTS
        .into_iter()
        .map(LayoutChoice::from)
        .chain([LayoutChoice::Auto]);
    for choice in choices {
        let morph = Morph::new().layout(choice);
        let report = morph_checked(&mut root, morph.predict(choice == LayoutChoice::Auto));
        assert_eq!(report.nodes, nodes);
        assert_eq!(alive(&token), nodes);
        if choice == LayoutChoice::Auto && nodes > 0 {
            // Empty where nothing had to be compared.
            let best = report.ranking.first().map(|&(layout, _)| layout);
            assert!(best.is_none_or(|best| best == report.layout));
            assert!(report.predicted_before.is_some() && report.predicted_after.is_some());
            assert!(
                report
                    .predicted_speedup()
                    .is_some_and(|speedup| speedup > 0.0)
            );
        }
    }
    drop(root);
    assert_eq!(alive(&token), 0);
}

quickcheck! {
    fn small_nodes(keys: Vec<u32>) -> bool {
        check(&keys, |_| ());
        check(&keys, |key| [key; 3]);
        check(&keys, |key| [key.to_le_bytes()[0]; 33]);
        true
    }

    fn aligned_nodes(keys: Vec<u32>) -> bool {
        check(&keys, Align16);
        check(&keys, Align64);
        check(&keys, Align128);
        true
    }

    fn nodes_of_a_block_a_page_and_between(keys: Vec<u32>) -> bool {
        check(&keys, |key| [key; 8]);
        check(&keys, |key| [key; 250]);
        check(&keys, Align1024);
        true
    }
}

#[test]
fn the_largest_nodes() {
    let keys: Vec<u32> = (0..200).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    check(&keys, |key| [key; 1016]);
    check(&keys, Align2048);
}

#[test]
fn nodes_that_are_pages() {
    #[derive(TreeNode)]
    #[repr(align(4096))]
    struct Page {
        number: usize,
        #[child]
        next: Option<Box<Page>>,
    }

    let mut list = None;
    for number in 0..100 {
        list = Some(Box::new(Page { number, next: list }));
    }
    for layout in LAYOUTS {
        let report = Morph::new()
            .layout(layout)
            .run(&mut list, Page::children)
            .unwrap();
        assert_eq!((report.nodes, report.span_bytes), (100, 100 * 4096));
        let mut at = list.as_deref();
        for number in (0..100).rev() {
            let page = at.unwrap();
            assert_eq!(page.number, number);
            assert!(std::ptr::from_ref(page).addr().is_multiple_of(4096));
            at = page.next.as_deref();
        }
    }
}

#[test]
fn many_nodes_over_many_segments() {
    let keys: Vec<u32> = (0..40_000)
        .map(|i: u32| i.wrapping_mul(0x9e37_79b9))
        .collect();
    check(&keys, |key| key);
}

#[test]
fn nodes_of_one_word() {
    #[derive(TreeNode)]
    struct Tiny(#[child] Option<Box<Tiny>>);

    let mut list = None;
    for _ in 0..10_000 {
        list = Some(Box::new(Tiny(list)));
    }
    let report = Morph::new()
        .layout(Layout::DepthFirst)
        .run(&mut list, Tiny::children)
        .unwrap();
    assert_eq!((report.nodes, report.node_bytes), (10_000, 8));
    // Eight to a line, seven of eight links within it.
    assert!(report.near_after.same_64 >= 10_000 / 8 * 7 - 8, "{report}");
    let mut length = 0;
    while let Some(node) = list {
        list = node.0;
        length += 1;
    }
    assert_eq!(length, 10_000);
}

#[test]
fn nodes_larger_than_a_page_are_refused() {
    struct Large {
        bytes: [u8; 5000],
        next: Option<Box<Large>>,
    }
    let mut root = Some(Box::new(Large {
        bytes: [7; 5000],
        next: None,
    }));
    let result = Morph::new().run(&mut root, |node, visit| visit(&mut node.next));
    let expected = MorphError::NodeTooLarge {
        node_bytes: size_of::<Large>(),
        node_bytes_max: 4096,
    };
    assert_eq!(result.unwrap_err(), expected);
    assert!(root.is_some_and(|node| node.bytes == [7; 5000]));
}

#[test]
fn nodes_of_no_size_stay() {
    let mut roots = vec![Box::new(()); 5];
    let report = Morph::new().run(&mut roots, |(), _visit| {}).unwrap();
    assert_eq!((report.nodes, report.bytes()), (0, 0));
    assert_eq!(roots.len(), 5);
}

#[test]
fn nothing_is_morphed_to_nothing() {
    let token = Rc::new(());
    let mut root = build(&[], &token, |_| ());
    assert_eq!(morph_checked(&mut root, Morph::new()).nodes, 0);
    assert_eq!(
        morph_checked(&mut root, Morph::new().layout(Layout::VanEmdeBoas)).layout,
        Layout::VanEmdeBoas
    );
}

#[test]
fn a_chain_of_a_million_nodes() {
    #[derive(TreeNode)]
    struct Chain {
        number: usize,
        #[child]
        next: Option<Box<Chain>>,
    }

    // The depth at which any recursion would have ended long ago.
    const NODES: usize = 10_000_000;
    let mut chain = None;
    for number in (0..NODES).rev() {
        chain = Some(Box::new(Chain {
            number,
            next: chain,
        }));
    }
    for choice in [
        LayoutChoice::Auto,
        Layout::SubtreeCluster { block_bytes: 64 }.into(),
        Layout::VanEmdeBoas.into(),
        Layout::ClusterVanEmdeBoas { block_bytes: 4096 }.into(),
    ] {
        let report = Morph::new()
            .layout(choice)
            .run(&mut chain, Chain::children)
            .unwrap();
        assert_eq!((report.nodes, report.edges), (NODES, NODES - 1));
        // Four nodes of 16 B to a line.
        assert!(report.near_after.same_64 >= NODES / 100 * 74, "{report}");
    }
    // Node by node, as a drop all at once would recurse.
    let mut expected = 0;
    while let Some(mut node) = chain {
        assert_eq!(node.number, expected);
        expected += 1;
        chain = node.next.take();
    }
    assert_eq!(expected, NODES);
}

#[test]
fn a_root_with_a_million_children() {
    #[derive(TreeNode)]
    struct Wide {
        number: usize,
        #[child]
        #[expect(clippy::vec_box, reason = "links are boxes")]
        children: Vec<Box<Wide>>,
    }

    const CHILDREN: usize = 1_000_000;
    let child = |number| {
        Box::new(Wide {
            number,
            children: Vec::new(),
        })
    };
    let mut root = Box::new(Wide {
        number: CHILDREN,
        children: (0..CHILDREN).map(child).collect(),
    });
    for layout in LAYOUTS {
        let report = Morph::new()
            .layout(layout)
            .run(&mut root, Wide::children)
            .unwrap();
        assert_eq!((report.nodes, report.edges), (CHILDREN + 1, CHILDREN));
    }
    assert_eq!(root.number, CHILDREN);
    assert!(
        root.children
            .iter()
            .enumerate()
            .all(|(number, child)| child.number == number)
    );
}
