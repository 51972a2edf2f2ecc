//! Moves under the standard allocator, which address sanitizer and valgrind see through: this
//! binary has no `#[global_allocator]`.

use super::{NewPlaces, is_packed};
use crate::collect::collect;
use crate::link::Placer;
use crate::{Layout, Morph, MorphError, Visit};
use std::collections::HashMap;
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

/// Allocates anywhere, and claims that it is the place asked for.
#[derive(Default)]
struct Anywhere(HashMap<usize, *mut u8>);

// SAFETY: it allocates as `Global` does.
unsafe impl Placer for Anywhere {
    fn alloc_at(&mut self, offset: usize, layout: std::alloc::Layout) -> *mut u8 {
        assert!(layout.size() > 0);
        // SAFETY: as asserted.
        let place = unsafe { std::alloc::alloc(layout) };
        let old = self.0.insert(offset, place);
        assert_eq!(old, None, "offset {offset} was asked for twice");
        place
    }

    fn address(&self, offset: usize) -> *mut u8 {
        self.0.get(&offset).copied().unwrap_or_default()
    }
}

#[test]
fn nodes_move_to_the_places_that_come_as_asked() {
    let (token, nodes) = (Rc::new(()), if cfg!(miri) { 40 } else { 2000 });
    let mut root = tree(0, nodes, &token);
    let before = addresses(&root, nodes);
    let stride = size_of::<Node>() as u64;
    for moves in [false, true] {
        let mut show = children;
        let collected = collect(&mut root, &mut show, None).unwrap().unwrap();
        // A permutation, as 7 does not divide the number of nodes.
        let offset = |v: u64| v * 7 % nodes as u64 * stride;
        let offsets = (0..nodes as u64).map(offset).collect();
        let room = (offsets, nodes as u64 * stride);
        let mut placer = Anywhere::default();
        let places = NewPlaces::allocate(collected, room, stride, &mut placer, false).unwrap();
        assert!(places.as_asked());
        if moves {
            assert_eq!(places.move_in().1.count(), nodes - 1);
        } else {
            drop(places);
            assert_eq!(addresses(&root, nodes), before);
        }
    }
    let after = addresses(&root, nodes);
    assert!(before.iter().all(|address| !after.contains(address)));
    drop(root);
    assert_eq!(Rc::strong_count(&token), 1);
}

/// Slots whose addresses are these offsets.
fn slots(offsets: &[u64]) -> Vec<*mut u8> {
    let slot = |&offset: &u64| std::ptr::without_provenance_mut(usize::try_from(offset).unwrap());
    offsets.iter().map(slot).collect()
}

#[test]
fn packed_offsets_are_recognised() {
    let is_packed = |offsets: &[u64], stride| is_packed(&slots(offsets), stride);
    let packed = |nodes: u64, stride: u64| -> Vec<u64> {
        let in_segment = 65536 / stride;
        let offset = |i: u64| i / in_segment * 65536 + i % in_segment * stride;
        (0..nodes).map(offset).rev().collect()
    };
    assert!(is_packed(&[], 24) && is_packed(&[0], 65536));
    assert!(!is_packed(&[0, 24], 48) && !is_packed(&[0], 0));
    for stride in [8, 24, 40, 56, 1000, 4096] {
        let all = packed(65536 / stride * 3 - 5, stride);
        assert!(is_packed(&all, stride), "{stride}");
        assert!(!is_packed(&all, stride + 8), "{stride}");
    }
    let mut offsets = packed(8000, 24);
    offsets.swap(7, 2000);
    assert!(is_packed(&offsets, 24));
    for (at, wrong) in [
        (0, offsets[1]),
        (9, offsets[9] + 8),
        (9, offsets[9] + 24 * 65536),
        (0, 65536 / 24 * 24),
        (1, u64::MAX),
    ] {
        let mut offsets = offsets.clone();
        offsets[at] = wrong;
        assert!(!is_packed(&offsets, 24), "{wrong} at {at}");
    }
}
