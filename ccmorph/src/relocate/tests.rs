//! Moving under test doubles, so that it does not take `CcMalloc` and failures can be had at any step.
//!
//! This binary runs under the standard allocator, which address sanitizer and valgrind see through: each place that is
//! lost, freed twice or read after its end shows there.

use crate::link::Placer;
use crate::{Layout, Links, Morph, MorphError, Report, Visit};
use quickcheck::{Gen, QuickCheck, Testable};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

/// Allocates anywhere, and claims that it is the place asked for; fails when the budget is spent.
struct Double {
    addresses: HashMap<usize, *mut u8>,
    budget: usize,
    failure: Failure,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Failure {
    Null,
    Elsewhere,
}

impl Double {
    fn new(budget: usize, failure: Failure) -> Double {
        Double {
            addresses: HashMap::new(),
            budget,
            failure,
        }
    }
}

// SAFETY: returns null or what `std::alloc::alloc` returns.
unsafe impl Placer for Double {
    unsafe fn alloc_at(&mut self, offset: usize, layout: std::alloc::Layout) -> *mut u8 {
        assert!(offset.is_multiple_of(layout.align()));
        let spent = self.budget == 0;
        self.budget = self.budget.saturating_sub(1);
        if spent && self.failure == Failure::Null {
            return std::ptr::null_mut();
        }
        // SAFETY: the size is not zero (the caller's promise).
        let place = unsafe { std::alloc::alloc(layout) };
        if !spent {
            let old = self.addresses.insert(offset, place);
            assert_eq!(old, None, "offset {offset} was asked for twice");
        }
        place
    }

    fn address(&self, offset: usize) -> *mut u8 {
        self.addresses.get(&offset).copied().unwrap_or_default()
    }
}

#[derive(Debug)]
struct Node {
    key: u32,
    #[expect(dead_code, reason = "counted, not read")]
    token: Rc<()>,
    left: Option<Box<Node>>,
    #[expect(clippy::vec_box, reason = "links are boxes")]
    others: Vec<Box<Node>>,
}

fn children<'a>(node: &'a mut Node, visit: &mut Visit<'_, 'a, Box<Node>>) {
    visit(&mut node.left);
    visit(&mut node.others);
}

/// A tree with one node for each number, hung where the numbers say.
fn tree(numbers: &[u16], token: &Rc<()>) -> Option<Box<Node>> {
    let mut root: Option<Box<Node>> = None;
    for (key, &number) in (0..).zip(numbers) {
        let new = Box::new(Node {
            key,
            token: Rc::clone(token),
            left: None,
            others: Vec::new(),
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
                at.left = Some(new);
                break;
            } else if turn == 0 {
                at = at.left.as_mut().unwrap();
            } else if turn <= others {
                at = &mut at.others[turn - 1];
            } else {
                at.others.push(new);
                break;
            }
        }
    }
    root
}

/// Keys in depth-first order with each node's number of children, which together tell trees apart, and addresses.
fn describe(root: &Option<Box<Node>>) -> (Vec<(u32, bool, usize)>, Vec<usize>) {
    let (mut nodes, mut addresses) = (Vec::new(), Vec::new());
    let mut stack: Vec<&Node> = root.as_deref().into_iter().collect();
    while let Some(node) = stack.pop() {
        nodes.push((node.key, node.left.is_some(), node.others.len()));
        addresses.push(std::ptr::from_ref(node).addr());
        stack.extend(node.left.as_deref());
        stack.extend(node.others.iter().map(Box::as_ref));
    }
    (nodes, addresses)
}

fn run<R: Links<Link = Box<Node>>>(
    root: &mut R,
    layout: Layout,
    double: Double,
) -> Result<Report, MorphError> {
    let double = Cell::new(Some(double));
    Morph::new()
        .layout(layout)
        .run_with(root, &mut children, None, |_, _| double.take())
}

/// Tries a property: under Miri seldom and on small trees, as each step takes much longer there.
fn check(property: impl Testable) {
    if cfg!(miri) {
        QuickCheck::new()
            .rng(Gen::new(8))
            .tests(4)
            .quickcheck(property);
    } else {
        QuickCheck::new().quickcheck(property);
    }
}

#[test]
fn everything_moves_and_nothing_else_changes() {
    fn property(numbers: Vec<u16>, cluster: bool) -> bool {
        let token = Rc::new(());
        let mut root = tree(&numbers, &token);
        let before = describe(&root);
        let layout = if cluster {
            Layout::SubtreeCluster { block_bytes: 256 }
        } else {
            Layout::VanEmdeBoas
        };
        let report = run(&mut root, layout, Double::new(usize::MAX, Failure::Null)).unwrap();
        let after = describe(&root);
        assert_eq!(report.nodes, numbers.len());
        assert_eq!(before.0, after.0);
        // The new places were allocated while all the old ones were in use.
        assert!(before.1.iter().all(|address| !after.1.contains(address)));
        assert_eq!(Rc::strong_count(&token), numbers.len() + 1);
        drop(root);
        Rc::strong_count(&token) == 1
    }
    check(property as fn(Vec<u16>, bool) -> bool);
}

#[test]
fn failure_at_any_step_changes_nothing() {
    fn property(numbers: Vec<u16>, step: usize, elsewhere: bool) -> bool {
        let token = Rc::new(());
        let mut root = tree(&numbers, &token);
        let before = describe(&root);
        let failure = if elsewhere {
            Failure::Elsewhere
        } else {
            Failure::Null
        };
        let result = run(
            &mut root,
            Layout::DepthFirst,
            Double::new(step % numbers.len().max(1), failure),
        );
        match result {
            Ok(report) => assert_eq!(report.nodes, 0),
            Err(MorphError::NotCcMalloc) => assert_eq!(failure, Failure::Elsewhere),
            Err(error) => {
                assert_eq!(failure, Failure::Null);
                assert!(
                    matches!(error, MorphError::OutOfMemory { bytes } if bytes >= (numbers.len() * size_of::<Node>()) as u64)
                );
            }
        }
        assert_eq!(describe(&root), before);
        drop(root);
        Rc::strong_count(&token) == 1
    }
    check(property as fn(Vec<u16>, usize, bool) -> bool);
}

#[test]
fn no_address_space_is_an_error() {
    let token = Rc::new(());
    let mut root = tree(&[1, 2, 3], &token);
    let before = describe(&root);
    let result =
        Morph::new()
            .layout(Layout::DepthFirst)
            .run_with(&mut root, &mut children, None, |_, _| None::<Double>);
    assert!(
        matches!(result, Err(MorphError::OutOfMemory { bytes }) if bytes == 3 * size_of::<Node>() as u64)
    );
    assert_eq!(describe(&root), before);
}

#[test]
fn another_global_allocator_is_told_and_harmless() {
    // This binary has no `#[global_allocator]`.
    let token = Rc::new(());
    let mut root = tree(&[1, 2, 3, 4, 5], &token);
    let before = describe(&root);
    let result = Morph::new()
        .layout(Layout::DepthFirst)
        .run(&mut root, children);
    assert_eq!(result.unwrap_err(), MorphError::NotCcMalloc);
    assert_eq!(describe(&root), before);
}

#[test]
fn new_nodes_hang_on_moved_ones() {
    let token = Rc::new(());
    let mut root = tree(&[7; 40], &token);
    for round in 0..5 {
        run(
            &mut root,
            Layout::VanEmdeBoas,
            Double::new(usize::MAX, Failure::Null),
        )
        .unwrap();
        let node = root.as_mut().unwrap();
        let taken = node.left.take();
        let nodes = Rc::strong_count(&token);
        node.others.push(Box::new(Node {
            key: 1000 + round,
            token: Rc::clone(&token),
            left: taken,
            others: Vec::new(),
        }));
        assert_eq!(Rc::strong_count(&token), nodes + 1);
    }
    let (nodes, _) = describe(&root);
    assert_eq!(nodes.len(), 45);
    drop(root);
    assert_eq!(Rc::strong_count(&token), 1);
}

#[test]
fn roots_in_a_slice_are_one_forest() {
    let token = Rc::new(());
    let mut roots: Vec<Option<Box<Node>>> = (0..9)
        .map(|n| tree(&vec![n; usize::from(n)], &token))
        .collect();
    let before: Vec<_> = roots.iter().map(|root| describe(root).0).collect();
    let report = run(
        &mut roots,
        Layout::BreadthFirst,
        Double::new(usize::MAX, Failure::Null),
    )
    .unwrap();
    assert_eq!((report.nodes, report.edges), (36, 36 - 8));
    assert_eq!(
        roots
            .iter()
            .map(|root| describe(root).0)
            .collect::<Vec<_>>(),
        before
    );
}

#[test]
fn under_any_allocator_nodes_are_allocated_in_order() {
    // This binary has no `#[global_allocator]`.
    let token = Rc::new(());
    let numbers: Vec<u16> = (0..if cfg!(miri) { 40 } else { 2000u16 })
        .map(|n| n.wrapping_mul(37))
        .collect();
    let mut root = tree(&numbers, &token);
    let before = describe(&root);
    let report = Morph::new()
        .layout(Layout::DepthFirst)
        .under_any_allocator()
        .run(&mut root, children)
        .unwrap();
    assert_eq!((report.nodes, report.placed), (numbers.len(), false));
    let after = describe(&root);
    assert_eq!(before.0, after.0);
    assert!(before.1.iter().all(|address| !after.1.contains(address)));
    drop(root);
    assert_eq!(Rc::strong_count(&token), 1);
}

#[cfg(feature = "allocator-api2")]
#[test]
fn boxes_in_ccmalloc_are_placed_under_any_global_allocator() {
    use allocator_api2::boxed::Box;
    use ccmalloc::CcMalloc;
    struct Item {
        key: u32,
        next: Option<Box<Item, CcMalloc>>,
    }
    let mut list = None;
    const ITEMS: u32 = if cfg!(miri) { 40 } else { 500 };
    for key in 0..ITEMS {
        list = Some(Box::new_in(Item { key, next: list }, CcMalloc));
    }
    let report = Morph::new()
        .layout(Layout::DepthFirst)
        .run(&mut list, |node: &mut Item, visit| visit(&mut node.next))
        .unwrap();
    assert_eq!((report.nodes, report.placed), (ITEMS as usize, true));
    let mut at = list.as_deref();
    for key in (0..ITEMS).rev() {
        let node = at.unwrap();
        assert_eq!(node.key, key);
        at = node.next.as_deref();
    }
    assert!(at.is_none());
}
