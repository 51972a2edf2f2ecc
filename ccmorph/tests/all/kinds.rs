//! Kinds of links: boxes in heaps, and raw pointers.

use allocator_api2::boxed::Box as ApiBox;
use ccmalloc::Heap;
use ccmorph::{Layout, Morph, MorphError, TreeNode, ccmorph};
use quickcheck::quickcheck;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::rc::Rc;

#[derive(TreeNode)]
struct InHeap<'h> {
    key: u32,
    _token: Rc<()>,
    #[child]
    children: Vec<ApiBox<InHeap<'h>, &'h Heap>>,
}

impl Unpin for InHeap<'_> {}

fn in_heap<'h>(key: u32, token: &Rc<()>, heap: &'h Heap) -> ApiBox<InHeap<'h>, &'h Heap> {
    let node = InHeap {
        key,
        _token: Rc::clone(token),
        children: Vec::new(),
    };
    ApiBox::new_in(node, heap)
}

/// The key, the number of children and the address of each node.
fn flat(node: &InHeap<'_>, into: &mut Vec<(u32, usize, usize)>) {
    let address = std::ptr::from_ref(node).addr();
    into.push((node.key, node.children.len(), address));
    node.children.iter().for_each(|child| flat(child, into));
}

quickcheck! {
    fn boxes_in_a_heap_move_within_it(numbers: Vec<u8>) -> bool {
        let token = Rc::new(());
        let heap = Heap::new().unwrap();
        let mut root = in_heap(0, &token, &heap);
        for (key, &number) in (1..).zip(&numbers) {
            let (mut at, mut way) = (&mut root, usize::from(number));
            while way > 0 && !at.children.is_empty() {
                let turn = way % at.children.len();
                way /= 3;
                at = &mut at.children[turn];
            }
            at.children.push(in_heap(key, &token, &heap));
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        flat(&root, &mut before);
        let morph = Morph::new().layout(Layout::VanEmdeBoas);
        let report = morph.run(&mut root, InHeap::children).unwrap();
        flat(&root, &mut after);
        assert_eq!((report.nodes, report.placed), (numbers.len() + 1, true));
        for (old, new) in before.iter().zip(&after) {
            assert_eq!((old.0, old.1), (new.0, new.1));
            assert_ne!(old.2, new.2);
            assert!(heap.contains(std::ptr::without_provenance(new.2)));
        }
        heap.check().unwrap();
        drop(root);
        assert_eq!(Rc::strong_count(&token), 1);
        heap.check().is_ok()
    }
}

#[test]
fn boxes_of_two_heaps_are_an_error_and_stay() {
    let token = Rc::new(());
    let (one, other) = (Heap::new().unwrap(), Heap::new().unwrap());
    let mut root = in_heap(1, &token, &one);
    root.children.push(in_heap(2, &token, &one));
    root.children[0].children.push(in_heap(3, &token, &other));
    let (mut before, mut after) = (Vec::new(), Vec::new());
    flat(&root, &mut before);
    let result = ccmorph(&mut root, InHeap::children);
    assert_eq!(result.unwrap_err(), MorphError::TwoHeaps);
    flat(&root, &mut after);
    assert_eq!(before, after);
    drop(root);
    assert_eq!(Rc::strong_count(&token), 1);
}

/// A node that is linked by raw pointers alone.
struct Raw {
    key: u32,
    kids: [*mut Raw; 2],
    up: *mut Raw,
}

/// A tree of raw nodes: heap-shaped, `count` of them.
fn raw_tree(count: usize) -> Vec<*mut Raw> {
    crate::begin();
    let (kids, up) = ([null_mut(); 2], null_mut());
    let node = |key| Box::into_raw(Box::new(Raw { key, kids, up }));
    let nodes: Vec<*mut Raw> = (0..).take(count).map(node).collect();
    for v in 1..count {
        let (node, parent) = (nodes[v], nodes[(v - 1) / 2]);
        // SAFETY: live nodes of this function's.
        unsafe {
            (*parent).kids[(v - 1) % 2] = node;
            (*node).up = parent;
        }
    }
    nodes
}

/// Nodes in breadth-first order; each pointer up is checked.
fn raw_nodes(root: *mut Raw) -> Vec<*mut Raw> {
    let mut nodes = vec![root];
    let mut at = 0;
    while let Some(&node) = nodes.get(at) {
        // SAFETY: a live node.
        for kid in unsafe { (*node).kids }
            .into_iter()
            .filter(|kid| !kid.is_null())
        {
            // SAFETY: a live node.
            assert_eq!(unsafe { (*kid).up }, node);
            nodes.push(kid);
        }
        at += 1;
    }
    nodes
}

/// Frees all; they must have the keys 0, 1, 2 and so on.
fn free(nodes: Vec<*mut Raw>) {
    for (key, node) in (0..).zip(nodes) {
        // SAFETY: each node came from `Box`, and is freed once.
        assert_eq!(unsafe { Box::from_raw(node) }.key, key);
    }
}

fn morph_raw(root: &mut *mut Raw, mut call: impl FnMut()) -> Result<usize, MorphError> {
    // SAFETY: nodes from `Box`, to which no other pointers are used after this.
    let report = unsafe {
        Morph::new().run_raw(std::slice::from_mut(root), |node: *mut Raw, visit| {
            call();
            for kid in 0..2 {
                visit.link(&raw mut (*node).kids[kid]);
            }
            visit.pointer(&raw mut (*node).up);
        })
    };
    report.map(|report| report.nodes)
}

#[test]
fn raw_pointers_move_with_their_pointers_back() {
    for count in [1, 2, 3, 100, if cfg!(miri) { 200 } else { 5000 }] {
        let mut root = raw_tree(count)[0];
        for _ in 0..3 {
            assert_eq!(morph_raw(&mut root, || ()), Ok(count));
        }
        free(raw_nodes(root));
    }
    let mut nothing = null_mut();
    assert_eq!(morph_raw(&mut nothing, || ()), Ok(0));
}

#[test]
fn cycles_and_shared_children_are_errors_and_stay() {
    for (at, target) in [(6, 0), (6, 6), (6, 2), (6, 4), (6, 5)] {
        let nodes = raw_tree(7);
        let (mut root, node) = (nodes[0], nodes[at]);
        // SAFETY: a live node.
        unsafe { (*node).kids[0] = nodes[target] };
        assert_eq!(morph_raw(&mut root, || ()), Err(MorphError::SharedNode));
        assert_eq!(root, nodes[0]);
        // SAFETY: a live node.
        let kid = std::mem::replace(unsafe { &mut (*node).kids[0] }, null_mut());
        assert_eq!((kid, raw_nodes(root)), (nodes[target], nodes.clone()));
        free(nodes);
    }
}

#[test]
fn a_panic_in_a_raw_traversal_changes_nothing() {
    for call in 0..7 {
        let nodes = raw_tree(7);
        let mut root = nodes[0];
        let calls = Cell::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            morph_raw(&mut root, || {
                if calls.replace(calls.get() + 1) == call {
                    std::panic::resume_unwind(Box::new("now"));
                }
            })
        }));
        assert!(result.is_err());
        assert_eq!(raw_nodes(root), nodes);
        free(nodes);
    }
}
