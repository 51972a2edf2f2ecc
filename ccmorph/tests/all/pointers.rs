//! Pointers back: they follow the nodes that they point to, and only these.

use crate::tree::LAYOUTS;
use ccmorph::{Layout, Links, Morph, TreeNode, Visitor, back, ccmorph};
use quickcheck::{TestResult, quickcheck};
use std::cell::Cell;
use std::ptr::{NonNull, null, null_mut};

/// A node of a doubly linked list.
#[derive(TreeNode)]
struct Item {
    value: u32,
    #[child]
    next: Option<Box<Item>>,
    #[parent]
    previous: *mut Item,
}

/// A list that knows its end.
struct List {
    first: Option<Box<Item>>,
    last: *mut Item,
}

impl Links for List {
    type Link = Box<Item>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Item>>) {
        visitor.pointers(&mut self.last);
        self.first.show(visitor);
    }
}

impl List {
    fn of(values: &[u32]) -> List {
        crate::begin();
        let mut list = List {
            first: None,
            last: null_mut(),
        };
        for &value in values {
            list.push(value);
        }
        list
    }

    fn push(&mut self, value: u32) {
        let mut item = Box::new(Item {
            value,
            next: None,
            previous: self.last,
        });
        let place: *mut Item = &raw mut *item;
        // SAFETY: `last` is null, or points to the last item of this list, which nothing else
        // refers to at the moment.
        match unsafe { self.last.as_mut() } {
            Some(last) => last.next = Some(item),
            None => self.first = Some(item),
        }
        self.last = place;
    }

    /// The values from first to last, each pointer back checked on the way.
    fn check(&self) -> Vec<u32> {
        let (mut values, mut previous) = (Vec::new(), null());
        let mut at = self.first.as_deref();
        while let Some(item) = at {
            assert!(std::ptr::eq(item.previous, previous));
            previous = item;
            values.push(item.value);
            at = item.next.as_deref();
        }
        assert!(std::ptr::eq(self.last, previous));
        values
    }
}

quickcheck! {
    fn doubly_linked_lists_keep_their_links(values: Vec<u32>, more: Vec<u32>) -> bool {
        let mut list = List::of(&values);
        let mut all = values.clone();
        for layout in LAYOUTS {
            let report = Morph::new().layout(layout).run(&mut list, Item::children).unwrap();
            assert_eq!(report.nodes, all.len());
            assert_eq!(list.check(), all);
            for &value in &more {
                list.push(value);
                all.push(value);
            }
        }
        list.check() == all
    }
}

#[test]
fn the_rest_of_a_list_is_morphed_alone() {
    let mut list = List::of(&[1, 2, 3, 4]);
    let first = list.first.as_mut().unwrap();
    let first_at = &raw const **first;
    let report = ccmorph(&mut first.next, Item::children).unwrap();
    assert_eq!(report.nodes, 3);
    let second = first.next.as_deref().unwrap();
    // The first did not move.
    assert!(std::ptr::eq(second.previous, first_at));
    let third = second.next.as_deref().unwrap();
    assert!(std::ptr::eq(third.previous, second));
}

/// A tree with pointers to the parent, to the root, to other nodes and to the node itself.
struct Threaded {
    key: u32,
    left: Option<Box<Threaded>>,
    right: Option<Box<Threaded>>,
    up: Option<NonNull<Threaded>>,
    root: Cell<*const Threaded>,
    around: Vec<[*mut Threaded; 2]>,
}

fn leaf(key: u32) -> Option<Box<Threaded>> {
    Some(Box::new(Threaded {
        key,
        left: None,
        right: None,
        up: None,
        root: Cell::new(null()),
        around: Vec::new(),
    }))
}

fn insert(mut at: &mut Option<Box<Threaded>>, key: u32) {
    while let Some(node) = at {
        at = if key < node.key {
            &mut node.left
        } else {
            &mut node.right
        };
    }
    *at = leaf(key);
}

/// All nodes in breadth-first order.
fn nodes(root: &mut Option<Box<Threaded>>) -> Vec<*mut Threaded> {
    let mut nodes: Vec<*mut Threaded> = root.iter_mut().map(|node| &raw mut **node).collect();
    let mut at = 0;
    while let Some(&node) = nodes.get(at) {
        // SAFETY: a live node, to which no reference is in use.
        let node = unsafe { &mut *node };
        for child in [&mut node.left, &mut node.right] {
            nodes.extend(child.iter_mut().map(|child| &raw mut **child));
        }
        at += 1;
    }
    nodes
}

quickcheck! {
    fn threads_of_all_kinds_follow(keys: Vec<u32>, step: usize) -> TestResult {
        if keys.is_empty() {
            return TestResult::discard();
        }
        let mut root = None;
        for &key in &keys {
            insert(&mut root, key);
        }
        let all = nodes(&mut root);
        // By numbers, which hold after the morph as well.
        let far = |v: usize| (v.wrapping_mul(7).wrapping_add(step)) % all.len();
        for (v, &node) in all.iter().enumerate() {
            // SAFETY: live nodes, to which no reference is in use.
            unsafe {
                for child in [&mut (*node).left, &mut (*node).right].into_iter().flatten() {
                    child.up = NonNull::new(node);
                }
                (*node).root.set(all[0]);
                (*node).around = vec![[all[far(v)], null_mut()], [node, all[v / 2]]];
            }
        }
        for layout in LAYOUTS {
            let report = Morph::new().layout(layout).run(&mut root, |node: &mut Threaded, visit| {
                visit(back(&mut node.around));
                visit(&mut node.left);
                visit(back(&mut node.up));
                visit(&mut node.right);
                visit(back(&mut node.root));
            }).unwrap();
            assert_eq!(report.nodes, keys.len());
            let now = nodes(&mut root);
            for (v, &node) in now.iter().enumerate() {
                // SAFETY: live nodes, to which no reference is in use.
                let node = unsafe { &*node };
                assert!(std::ptr::eq(node.root.get(), now[0]));
                assert_eq!(node.around, [[now[far(v)], null_mut()], [now[v], now[v / 2]]]);
                for child in [&node.left, &node.right].into_iter().flatten() {
                    assert_eq!(child.up.map(NonNull::as_ptr), Some(now[v]));
                }
            }
        }
        TestResult::passed()
    }
}

#[test]
fn a_list_of_a_million_items_needs_no_stack() {
    let values: Vec<u32> = (0..if cfg!(miri) { 100 } else { 1_000_000 }).collect();
    let mut list = List::of(&values);
    for choice in [
        None,
        Some(Layout::SubtreeCluster { block_bytes: 64 }),
        Some(Layout::VanEmdeBoas),
        Some(Layout::ClusterVanEmdeBoas { block_bytes: 4096 }),
    ] {
        let report = Morph::new()
            .layout(choice)
            .run(&mut list, Item::children)
            .unwrap();
        let items = values.len();
        assert_eq!((report.nodes, report.edges), (items, items - 1));
        // Two nodes of 24 B to a line, at least.
        assert!(report.near_after.same_64 >= items / 100 * 49, "{report}");
        assert_eq!(list.check(), values);
    }
    // Item by item, as dropping all at once would recurse.
    let mut at = list.first.take();
    while let Some(mut item) = at {
        at = item.next.take();
    }
}
