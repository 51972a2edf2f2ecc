//! Moves under the standard allocator, which address sanitizer and valgrind see through: this
//! binary has no `#[global_allocator]`.

use super::{by_offset, is_packed, levels};
use crate::collect::{Outside, collect};
use crate::{Layout, Morph, MorphError, Visit};
use ccmodel::NO_NODE;
use std::rc::Rc;

struct Node {
    key: usize,
    _token: Rc<()>,
    left: Option<Box<Node>>,
    #[expect(clippy::vec_box, reason = "links are boxes")]
    others: Vec<Box<Node>>,
}

fn children<'a>(node: &'a mut Node, visit: &mut Visit<'_, 'a, Box<Node>>) {
    visit(&mut node.left);
    visit(&mut node.others);
}

/// A tree of the nodes from `key` to `nodes`, with three children each.
fn tree(key: usize, nodes: usize, token: &Rc<()>) -> Option<Box<Node>> {
    (key < nodes).then(|| {
        Box::new(Node {
            key,
            _token: Rc::clone(token),
            left: tree(3 * key + 1, nodes, token),
            others: (2..4)
                .filter_map(|kid| tree(3 * key + kid, nodes, token))
                .collect(),
        })
    })
}

/// The addresses of the nodes, by key.
fn addresses(root: &Option<Box<Node>>, nodes: usize) -> Vec<usize> {
    fn look(node: &Node, addresses: &mut [usize]) {
        addresses[node.key] = std::ptr::from_ref(node).addr();
        for (child, key) in node.left.iter().chain(&node.others).zip(3 * node.key + 1..) {
            assert_eq!(child.key, key);
            look(child, addresses);
        }
    }
    let mut addresses = vec![0; nodes];
    look(root.as_deref().unwrap(), &mut addresses);
    assert!(!addresses.contains(&0));
    addresses
}

#[test]
fn nodes_move_in_order_or_not_at_all() {
    let (token, nodes) = (Rc::new(()), if cfg!(miri) { 40 } else { 2000 });
    let mut root = tree(0, nodes, &token);
    let before = addresses(&root, nodes);
    let morph = Morph::new().layout(Layout::DepthFirst);
    let refused = morph.run(&mut root, children);
    assert_eq!(refused.unwrap_err(), MorphError::NotCcMalloc);
    let no_room = morph.run_with(&mut root, &mut children, None, |_, _| None);
    let bytes = (nodes * size_of::<Node>()) as u64;
    assert!(matches!(no_room, Err(MorphError::OutOfMemory { bytes: told }) if told >= bytes));
    assert_eq!(addresses(&root, nodes), before);

    let report = morph
        .under_any_allocator()
        .run(&mut root, children)
        .unwrap();
    assert_eq!((report.nodes, report.placed), (nodes, false));
    // The new places were allocated while all the old ones were in use.
    let after = addresses(&root, nodes);
    assert!(before.iter().all(|address| !after.contains(address)));
    drop(root);
    assert_eq!(Rc::strong_count(&token), 1);
}

#[cfg(feature = "allocator-api2")]
#[test]
fn boxes_in_ccmalloc_are_placed_under_any_global_allocator() {
    use allocator_api2::boxed::Box;
    use ccmalloc::CcMalloc;
    struct Item(u32, Option<Box<Item, CcMalloc>>);
    let mut list = None;
    const ITEMS: u32 = if cfg!(miri) { 40 } else { 500 };
    for key in 0..ITEMS {
        list = Some(Box::new_in(Item(key, list), CcMalloc));
    }
    let morph = Morph::new().layout(Layout::DepthFirst);
    let report = morph
        .run(&mut list, |node: &mut Item, visit| visit(&mut node.1))
        .unwrap();
    assert_eq!((report.nodes, report.placed), (ITEMS as usize, true));
    for key in (0..ITEMS).rev() {
        let node = list.unwrap();
        assert_eq!(node.0, key);
        list = Box::into_inner(node).1;
    }
}

/// Slots whose addresses are these offsets.
fn slots(offsets: &[u64]) -> Vec<*mut u8> {
    let slot = |&offset: &u64| std::ptr::without_provenance_mut(usize::try_from(offset).unwrap());
    offsets.iter().map(slot).collect()
}

#[test]
fn all_nodes_are_in_the_order_of_offsets() {
    // Two nodes in one stride, the same place twice, gaps, places beyond the end.
    for offsets in [
        vec![0, 24, 48],
        vec![0, 8, 16],
        vec![48, 0, 48, 0],
        vec![0, 1 << 20, 24],
        vec![24, 7 * 24, 0],
    ] {
        let mut order = by_offset(&slots(&offsets), 72, 24);
        let ascends = |pair: &[u32]| offsets[pair[0] as usize] <= offsets[pair[1] as usize];
        assert!(order.windows(2).all(ascends), "{offsets:?} {order:?}");
        order.sort_unstable();
        assert!(
            order.into_iter().eq((0..).take(offsets.len())),
            "{offsets:?}"
        );
    }
}

#[test]
fn packed_offsets_are_recognised() {
    let in_segment = 65536 / 24;
    let packed = |i: u64| i / in_segment * 65536 + i % in_segment * 24;
    let mut offsets: Vec<u64> = (0..3 * in_segment - 5).map(packed).rev().collect();
    offsets.swap(7, 2000);
    assert!(is_packed(&offsets, 24));
    assert!(is_packed(&[], 24) && is_packed(&[0], 65536));
    for (at, wrong) in [
        (0, offsets[1]),
        (9, offsets[9] + 8),
        (9, offsets[9] + 24 * 65536),
        (0, in_segment * 24),
        (1, u64::MAX),
    ] {
        let mut offsets = offsets.clone();
        offsets[at] = wrong;
        assert!(!is_packed(&offsets, 24), "{wrong} at {at}");
    }
    assert!(!is_packed(&[0, 24], 48) && !is_packed(&[0], 0));
    for stride in [8, 40, 56, 1000, 4096] {
        let in_segment = 65536 / stride;
        let offset = |i: u64| i / in_segment * 65536 + i % in_segment * stride;
        let all: Vec<u64> = (0..2 * in_segment).map(offset).collect();
        assert!(is_packed(&all, stride), "{stride}");
        assert!(!is_packed(&all, stride + 8), "{stride}");
    }
}

#[test]
fn other_parents_move_nothing() {
    let token = Rc::new(());
    let mut root = tree(0, 40, &token);
    let mut show = children;
    let collected = collect(&mut root, &mut show, None).unwrap().unwrap();
    let Outside::Numbers(outside) = collected.nodes.outside() else {
        unreachable!("nodes of one type are in level order")
    };
    let are = |parents: &[u32]| levels::are_parents(&collected.nodes, parents, outside);
    assert!(are(&collected.parents));
    // Links in the parent, not in a vector: any other parent is detected.
    let inside = (0..)
        .zip(&collected.parents)
        .filter(|&(v, &parent)| parent != NO_NODE && !outside.contains(&v));
    let mut tried = 0;
    for (v, &parent) in inside {
        for other in (0..).take(collected.parents.len()).chain([NO_NODE]) {
            let mut parents = collected.parents.clone();
            parents[v as usize] = other;
            assert_eq!(are(&parents), other == parent, "{v} below {other}");
            tried += 1;
        }
    }
    assert!(tried > 8);
}
