//! Shapes that are too slow to reach by insertion: lists, at which anything that recurses ends the
//! process.

use alloc::vec::Vec;
use allocator_api2::boxed::Box;
use ccmalloc::CcMalloc;
use ccmorph::Layout;

use super::{Link, Node, TransparentCTree};

const LEN: usize = if cfg!(miri) { 2_000 } else { 1_000_000 };

/// To which side the nodes of a list hang.
#[derive(Clone, Copy, Debug)]
enum Side {
    /// What keys in descending order give.
    Left,
    /// What keys in ascending order give.
    Right,
    /// Each to the other side than its parent: keys from both ends in turns.
    Zigzag,
}

/// The list that `len` insertions give.
fn list(len: usize, side: Side) -> TransparentCTree<usize, usize> {
    let mut root: Link<usize, usize> = None;
    // From the last node up. A zigzag goes from the outermost keys inwards.
    for depth in (0..len).rev() {
        let right = match side {
            Side::Left => false,
            Side::Right => true,
            Side::Zigzag => depth % 2 == 0,
        };
        let key = match side {
            Side::Left => len - 1 - depth,
            Side::Right => depth,
            Side::Zigzag if right => depth / 2,
            Side::Zigzag => len - 1 - depth / 2,
        };
        let mut node = Node::leaf(key, depth);
        let child = if right {
            &mut node.right
        } else {
            &mut node.left
        };
        *child = root;
        root = Some(Box::new_in(node, CcMalloc));
    }
    TransparentCTree { root, len }
}

#[test]
fn lists_of_a_million_nodes_need_no_stack() {
    for side in [Side::Left, Side::Right, Side::Zigzag] {
        let mut tree = list(LEN, side);
        assert_eq!((tree.height(), tree.check()), (LEN, Ok(())), "{side:?}");
        let report = tree
            .morph_with(Layout::DepthFirst, None)
            .expect("there is memory");
        assert_eq!(report.nodes, LEN);
        let mut copy = tree.clone();
        assert!(copy.iter().rev().map(|(key, _)| *key).eq((0..LEN).rev()));
        copy.iter_mut().for_each(|(key, value)| *value = *key + 1);
        assert!(tree != copy);
        // The last of the list, and the first of it.
        let deepest = tree.iter().max_by_key(|(_, depth)| **depth);
        let deepest = *deepest.expect("it is not empty").0;
        assert_eq!(tree.remove(&deepest), Some(LEN - 1));
        assert_eq!(tree.path(&deepest).count(), LEN - 1);
        assert_eq!(tree.insert(deepest, 7), None);
        let mut rest = tree.into_iter();
        assert!(
            rest.by_ref()
                .take(LEN / 2)
                .map(|(key, _)| key)
                .eq(0..LEN / 2)
        );
        assert_eq!(rest.len(), LEN - LEN / 2);
        drop(rest);
        copy.clear();
        assert!(copy.is_empty());
    }
}

#[test]
fn the_lists_are_those_that_insertion_makes() {
    const LEN: usize = 100;
    let shape = |tree: &TransparentCTree<usize, usize>| -> Vec<(usize, usize)> {
        (0..LEN).map(|key| (key, tree.path(&key).count())).collect()
    };
    let of = |keys: &mut dyn Iterator<Item = usize>| -> TransparentCTree<usize, usize> {
        keys.zip(0..).collect()
    };
    assert_eq!(shape(&list(LEN, Side::Right)), shape(&of(&mut (0..LEN))));
    assert_eq!(
        shape(&list(LEN, Side::Left)),
        shape(&of(&mut (0..LEN).rev()))
    );
    let mut both_ends = (0..LEN).map(|depth| match depth % 2 {
        0 => depth / 2,
        _ => LEN - 1 - depth / 2,
    });
    assert_eq!(list(LEN, Side::Zigzag), of(&mut both_ends));
    assert_eq!(list(LEN, Side::Zigzag).height(), LEN);
}
