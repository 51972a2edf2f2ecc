//! ccmorph in a program that has declared its global allocator: places and frees that do not go
//! through it. A process of its own, as the declaration holds for all of it.

use ccmodel::{Layout, Machine};
use ccmorph::{LayoutChoice, Morph, TreeNode, back};
use quickcheck::{Gen, QuickCheck};
use std::ptr::null_mut;
use std::rc::Rc;

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

fn declare() {
    // SAFETY: as is to be seen just above.
    unsafe { ccmalloc::declare_global() };
}

/// Tries a property of numbers: under Miri seldom and on few, as each step takes much longer there.
fn check(property: fn(Vec<u16>) -> bool) {
    declare();
    if cfg!(miri) {
        QuickCheck::new()
            .rng(Gen::new(8))
            .tests(3)
            .quickcheck(property);
    } else {
        QuickCheck::new()
            .rng(Gen::new(3000))
            .tests(60)
            .quickcheck(property);
    }
    ccmalloc::check().unwrap();
}

#[derive(TreeNode)]
struct Node<P> {
    key: usize,
    payload: P,
    #[expect(dead_code, reason = "counted, not read")]
    token: Rc<()>,
    #[child]
    left: Option<Box<Node<P>>>,
    #[child]
    others: Vec<Box<Node<P>>>,
    #[parent]
    up: *const Node<P>,
}

/// A tree with a node for each number, hung where the numbers say.
fn tree<P: Default>(numbers: &[u16], token: &Rc<()>) -> Option<Box<Node<P>>> {
    let mut root: Option<Box<Node<P>>> = None;
    for (key, &number) in numbers.iter().enumerate() {
        let mut new = Box::new(Node {
            key,
            payload: P::default(),
            token: Rc::clone(token),
            left: None,
            others: Vec::new(),
            up: null_mut(),
        });
        let Some(mut at) = root.as_mut() else {
            root = Some(new);
            continue;
        };
        let mut way = number;
        loop {
            let (turn, others) = (usize::from(way % 5), at.others.len());
            way /= 3;
            if turn == 0 && at.left.is_none() {
                new.up = &raw const **at;
                at.left = Some(new);
                break;
            } else if turn == 0 {
                at = at.left.as_mut().unwrap();
            } else if turn <= others {
                at = &mut at.others[turn - 1];
            } else {
                new.up = &raw const **at;
                at.others.push(new);
                break;
            }
        }
    }
    root
}

/// Keys in depth-first order with each node's number of children, which together tell trees apart;
/// and addresses. Pointers up must be right.
fn describe<P>(root: &Option<Box<Node<P>>>) -> (Vec<(usize, bool, usize)>, Vec<usize>) {
    let (mut nodes, mut addresses) = (Vec::new(), Vec::new());
    let mut stack: Vec<&Node<P>> = root.as_deref().into_iter().collect();
    while let Some(node) = stack.pop() {
        nodes.push((node.key, node.left.is_some(), node.others.len()));
        addresses.push(std::ptr::from_ref(node).addr());
        for child in node.left.iter().chain(&node.others) {
            assert_eq!(child.up, std::ptr::from_ref(node), "of node {}", child.key);
            stack.push(child);
        }
    }
    (nodes, addresses)
}

fn trees_keep_their_shape<P: Default + Unpin>(numbers: &[u16]) -> bool {
    let token = Rc::new(());
    let mut root: Option<Box<Node<P>>> = tree(numbers, &token);
    let before = describe(&root);
    // Of this machine, Miri cannot tell.
    let machine = Machine::thesis();
    let morph = Morph::new().machine(&machine);
    for layout in [
        LayoutChoice::Fixed(Layout::DepthFirst),
        LayoutChoice::Auto,
        // Out of places that a morph has made.
        LayoutChoice::Fixed(Layout::DepthFirst),
        LayoutChoice::Fixed(Layout::SubtreeCluster { block_bytes: 256 }),
    ] {
        let old = describe(&root).1;
        let report = morph.layout(layout).run(&mut root, Node::children).unwrap();
        assert_eq!((report.nodes, report.placed), (numbers.len(), true));
        let (nodes, new) = describe(&root);
        assert_eq!(nodes, before.0);
        let (old, new): (std::collections::HashSet<_>, Vec<_>) = (old.into_iter().collect(), new);
        assert!(new.iter().all(|address| !old.contains(address)));
        ccmalloc::check().unwrap();
    }
    drop(root);
    Rc::strong_count(&token) == 1
}

#[test]
fn small_nodes_keep_their_shape() {
    check(|numbers| trees_keep_their_shape::<()>(&numbers));
}

#[test]
fn nodes_with_gaps_keep_their_shape() {
    #[derive(Default)]
    #[repr(align(32))]
    struct Wide(#[expect(dead_code, reason = "gives the node a size")] [u8; 32]);
    check(|numbers| trees_keep_their_shape::<Wide>(&numbers));
}

#[test]
fn large_nodes_keep_their_shape() {
    struct Large(#[expect(dead_code, reason = "gives the node a size")] [u64; 40]);
    impl Default for Large {
        fn default() -> Large {
            Large([7; 40])
        }
    }
    check(|numbers| {
        numbers.len() > 500 || trees_keep_their_shape::<Large>(&numbers[..numbers.len().min(300)])
    });
}

#[test]
fn payloads_move_along() {
    declare();
    let token = Rc::new(());
    let numbers: Vec<u16> = (0..if cfg!(miri) { 30 } else { 5000u16 })
        .map(|n| n.wrapping_mul(40503))
        .collect();
    let mut root: Option<Box<Node<u64>>> = tree(&numbers, &token);
    let mut stack: Vec<&mut Node<u64>> = root.as_deref_mut().into_iter().collect();
    while let Some(node) = stack.pop() {
        node.payload = node.key as u64 * 3;
        stack.extend(node.left.as_deref_mut());
        stack.extend(node.others.iter_mut().map(Box::as_mut));
    }
    let layout = Layout::DepthFirst;
    let report = (Morph::new().layout(layout))
        .run(&mut root, |node, visit| {
            visit(&mut node.left);
            visit(&mut node.others);
            visit(back(&mut node.up));
        })
        .unwrap();
    assert_eq!(report.nodes, numbers.len());
    let mut stack: Vec<&Node<u64>> = root.as_deref().into_iter().collect();
    while let Some(node) = stack.pop() {
        assert_eq!(node.payload, node.key as u64 * 3);
        stack.extend(node.left.as_deref());
        stack.extend(node.others.iter().map(Box::as_ref));
    }
}

#[test]
fn raw_lists_in_both_directions_stay_tied() {
    struct Item {
        key: usize,
        next: *mut Item,
        previous: *mut Item,
    }
    check(|numbers| {
        let mut heads = [null_mut::<Item>(); 3];
        for (key, &number) in numbers.iter().enumerate() {
            let head = &mut heads[usize::from(number % 3)];
            let next = *head;
            *head = Box::into_raw(Box::new(Item {
                key,
                next,
                previous: null_mut(),
            }));
            if !next.is_null() {
                // SAFETY: the item that was the first of this list.
                unsafe { (*next).previous = *head };
            }
        }
        for layout in [
            LayoutChoice::Auto,
            LayoutChoice::Fixed(Layout::BreadthFirst),
        ] {
            // SAFETY: the items come from boxes, and all pointers to them are shown.
            let report = unsafe {
                Morph::new()
                    .machine(&Machine::thesis())
                    .layout(layout)
                    .run_raw(&mut heads, |item, visit| {
                        visit.link(&raw mut (*item).next);
                        visit.pointer(&raw mut (*item).previous);
                    })
            }
            .unwrap();
            assert_eq!((report.nodes, report.placed), (numbers.len(), true));
        }
        let mut found = Vec::new();
        for head in heads {
            let (mut at, mut before) = (head, null_mut());
            while !at.is_null() {
                // SAFETY: an item of the list, which is freed here, once.
                let item = unsafe { Box::from_raw(at) };
                assert_eq!(item.previous, before);
                found.push(item.key);
                // The box is gone with this turn; its address is only compared.
                (before, at) = (at, item.next);
            }
        }
        found.sort_unstable();
        found.into_iter().eq(0..numbers.len())
    });
}
