//! Moving under test doubles, so that it does not take `CcMalloc` and failures can be had at any
//! step.
//!
//! This binary runs under the standard allocator, which address sanitizer and valgrind see through:
//! each place that is lost, freed twice or read after its end shows there.

use crate::any::Unshown;
use crate::link::Placer;
use crate::{AnyLinks, AnyVisitor, Layout, Links, Morph, MorphError, Report, Visit, any};
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

/// Keys in depth-first order with each node's number of children, which together tell trees apart,
/// and addresses.
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

trait Part: AnyLinks {
    fn sum(&self) -> u64;
}

/// Owns nodes of several types: elements of a vector, trait objects, and one that stays.
struct Branch {
    #[expect(dead_code, reason = "counted, not read")]
    token: Rc<()>,
    parts: Vec<Box<dyn Part>>,
    branches: Vec<Branch>,
    large: Option<Box<Large>>,
    first: *const Branch,
}

struct Large([u64; 600], Option<Box<Leaf>>);

#[repr(align(32))]
struct Leaf(u64);

impl AnyLinks for Leaf {}

impl AnyLinks for Large {
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        visitor.show(&mut self.1);
    }
}

impl AnyLinks for Branch {
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        visitor.show(&mut self.parts);
        visitor.show(&mut self.branches);
        visitor.show(&mut self.large);
        visitor.pointers(&mut self.first);
    }
}

impl Part for Leaf {
    fn sum(&self) -> u64 {
        self.0
    }
}

impl Part for Branch {
    fn sum(&self) -> u64 {
        let parts = self.parts.iter().map(|part| part.sum());
        let branches = self.branches.iter().map(Part::sum);
        let large = self.large.as_deref().map_or(0, |large| {
            large.0[599] + large.1.as_ref().map_or(0, |leaf| leaf.0)
        });
        if let Some(first) = self.branches.first() {
            assert!(std::ptr::eq(self.first, first));
        }
        parts.sum::<u64>() + branches.sum::<u64>() + large
    }
}

/// A branch of some depth and, without those that stay, how many nodes it owns.
fn branch(depth: u64, token: &Rc<()>) -> (Branch, usize) {
    let mut nodes = 3;
    let mut below = || {
        let (branch, more) = branch(depth - 1, token);
        nodes += more;
        branch
    };
    let (branches, part): (Vec<Branch>, Box<dyn Part>) = if depth == 0 {
        (Vec::new(), Box::new(Leaf(7)))
    } else {
        (vec![below(), below()], Box::new(below()))
    };
    let branch = Branch {
        token: Rc::clone(token),
        first: branches.as_ptr(),
        parts: vec![part],
        large: Some(Box::new(Large([depth; 600], Some(Box::new(Leaf(depth)))))),
        branches,
    };
    (branch, nodes + usize::from(depth > 0))
}

#[test]
fn failure_at_any_step_changes_nothing_of_several_types() {
    let token = Rc::new(());
    let depth = if cfg!(miri) { 1 } else { 3 };
    let (mut root, nodes) = branch(depth, &token);
    let (sum, alive) = (root.sum(), Rc::strong_count(&token));
    // Not this machine, which cannot be looked at under Miri.
    let machine = ccmodel::Machine::preset("thesis").unwrap();
    let run = |root: &mut Branch, layout, double| {
        let double = Cell::new(Some(double));
        let morph = Morph::new().layout(layout).machine(&machine);
        morph.run_with(
            any::<_, Box<Unshown>>(root),
            &mut |_: &mut Unshown, _: &mut Visit<'_, '_, Box<Unshown>>| {},
            None,
            |_, _| double.take(),
        )
    };
    for failure in [Failure::Null, Failure::Elsewhere] {
        for step in 0..nodes {
            let result = run(&mut root, Layout::DepthFirst, Double::new(step, failure));
            assert_eq!(
                matches!(result, Err(MorphError::NotCcMalloc)),
                failure == Failure::Elsewhere
            );
            assert!(result.is_err());
            assert_eq!(root.sum(), sum);
        }
    }
    for layout in [
        Layout::DepthFirst,
        Layout::VanEmdeBoas,
        Layout::Hierarchical,
    ] {
        let report = run(&mut root, layout, Double::new(nodes, Failure::Null)).unwrap();
        assert_eq!(report.nodes, nodes);
        assert_eq!((root.sum(), Rc::strong_count(&token)), (sum, alive));
    }
    drop(root);
    assert_eq!(Rc::strong_count(&token), 1);
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

/// Slots whose addresses are these offsets.
fn slots(offsets: &[u64]) -> Vec<*mut u8> {
    let slot = |&offset: &u64| std::ptr::without_provenance_mut(usize::try_from(offset).unwrap());
    offsets.iter().map(slot).collect()
}

#[test]
fn every_node_has_its_turn_wherever_the_model_puts_it() {
    // Two nodes in one stride, the same place twice, gaps, places beyond the end.
    for offsets in [
        vec![0, 24, 48],
        vec![0, 8, 16],
        vec![48, 0, 48, 0],
        vec![0, 1 << 20, 24],
        vec![24, 7 * 24, 0],
    ] {
        let mut order = super::by_offset(&slots(&offsets), 72, 24);
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
fn what_is_packed_is_found_out() {
    let in_segment = 65536 / 24;
    let packed = |i: u64| i / in_segment * 65536 + i % in_segment * 24;
    let mut offsets: Vec<u64> = (0..3 * in_segment - 5).map(packed).rev().collect();
    offsets.swap(7, 2000);
    assert!(super::is_packed(&offsets, 24));
    assert!(super::is_packed(&[], 24) && super::is_packed(&[0], 65536));
    for (at, wrong) in [
        (0, offsets[1]),
        (9, offsets[9] + 8),
        (9, offsets[9] + 24 * 65536),
        (0, in_segment * 24),
        (1, u64::MAX),
    ] {
        let mut offsets = offsets.clone();
        offsets[at] = wrong;
        assert!(!super::is_packed(&offsets, 24), "{wrong} at {at}");
    }
    assert!(!super::is_packed(&[0, 24], 48) && !super::is_packed(&[0], 0));
    for stride in [8, 40, 56, 1000, 4096] {
        let in_segment = 65536 / stride;
        let offset = |i: u64| i / in_segment * 65536 + i % in_segment * stride;
        let all: Vec<u64> = (0..2 * in_segment).map(offset).collect();
        assert!(super::is_packed(&all, stride), "{stride}");
        assert!(!super::is_packed(&all, stride + 8), "{stride}");
    }
}

#[test]
fn other_parents_move_nothing() {
    use crate::collect::{Outside, collect};
    use ccmodel::NO_NODE;
    let token = Rc::new(());
    let mut root = tree(&[0, 1, 5, 2, 0, 9, 13, 4], &token);
    let mut show = children;
    let collected = collect(&mut root, &mut show, None).unwrap().unwrap();
    let Outside::Numbers(outside) = collected.nodes.outside() else {
        unreachable!("boxes that a traversal shows are in level order")
    };
    let are = |parents: &[u32]| super::levels::are_parents(&collected.nodes, parents, outside);
    assert!(are(&collected.parents));
    // Links in the parent, not in a vector: any other parent is found out.
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
