//! Nodes of all sizes and alignments, in all layouts.

use crate::tree::{alive, build, choices, keys_up_to, morph_checked};
use ccmorph::{Layout, Morph, TreeNode};
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

/// All layouts and the model's choice one after the other on one tree.
fn check<P: Clone + PartialEq + std::fmt::Debug + Unpin>(keys: &[u32], payload: impl Fn(u32) -> P) {
    let token = Rc::new(());
    let mut root = build(keys, &token, payload);
    let nodes = alive(&token);
    for choice in choices() {
        let morph = Morph::new().layout(choice);
        let report = morph_checked(&mut root, morph.predict(choice.is_none()));
        assert_eq!((report.nodes, alive(&token)), (nodes, nodes));
        if choice.is_none() && nodes > 0 {
            // Empty where nothing had to be compared.
            let best = report.ranking.first().map(|&(layout, _)| layout);
            assert!(best.is_none_or(|best| best == report.layout));
            assert!(report.predicted_before.is_some() && report.predicted_after.is_some());
            assert!(report.predicted_speedup().unwrap() > 0.0);
        }
    }
    drop(root);
    assert_eq!(alive(&token), 0);
    ccmalloc::check().unwrap();
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
fn the_largest_nodes_and_many() {
    check(&keys_up_to(200), |key| [key; 1016]);
    check(&keys_up_to(200), Align2048);
    check(&keys_up_to(40_000), |key| key);
}

#[test]
fn nodes_of_one_word() {
    #[derive(TreeNode)]
    struct Word(#[child] Option<Box<Word>>);

    let mut words = None;
    for _ in 0..10_000 {
        words = Some(Box::new(Word(words)));
    }
    let morph = Morph::new().layout(Layout::DepthFirst);
    let report = morph.run(&mut words, Word::children).unwrap();
    assert_eq!((report.nodes, report.node_bytes), (10_000, 8));
    // Eight to a line, seven of eight links within it.
    assert!(report.near_after.same_64 >= 10_000 / 8 * 7 - 8, "{report}");
    let mut len = 0;
    while let Some(word) = words {
        (words, len) = (word.0, len + 1);
    }
    assert_eq!(len, 10_000);
}

#[test]
fn nodes_of_no_size_stay_and_nothing_is_morphed_to_nothing() {
    let mut roots = vec![Box::new(()); 5];
    let report = Morph::new().run(&mut roots, |(), _visit| {}).unwrap();
    assert_eq!((report.nodes, report.bytes(), roots.len()), (0, 0, 5));
    let mut root = build(&[], &Rc::new(()), |_| ());
    let report = morph_checked(&mut root, Morph::new().layout(Layout::VanEmdeBoas));
    assert_eq!((report.nodes, report.layout), (0, Layout::VanEmdeBoas));
}
