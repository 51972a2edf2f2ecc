//! `near(&parent, ..)`, where `parent` was a reference or a box, hinted at a variable on the stack,
//! and nothing said so. Here are hints in each form that users gave them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::process::Command;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use ccmalloc::{CcMalloc, Heap, NewNear, near, watch};

type Node = [u64; 3];

/// Whether a node allocated near `hint` lies in the block of an object that was placed by a hint.
fn joins<T: ?Sized>(hint: &T) -> bool {
    let watch = watch();
    let node = near(hint, || Box::new([1_u64; 3]));
    assert_eq!(node.iter().sum::<u64>(), 3);
    watch.report().same_block == 1
}

/// A node with room beside it.
fn root() -> Box<Node> {
    near(&(), || Box::new([0; 3]))
}

#[test]
fn a_variable_that_points_to_the_parent_means_the_parent() {
    #[expect(dead_code, reason = "only its place in memory counts")]
    struct Handle<T>(u32, *const T);

    let parent = root();
    assert!(joins(&*parent), "the object itself");
    assert!(joins(&parent[1]), "a part of it");
    assert!(joins(&parent), "a box");
    let reference: &Node = &parent;
    assert!(joins(&reference), "a reference in a variable");
    assert!(joins(&Some(reference)));
    assert!(joins(&(7_u8, reference)));
    assert!(joins(&reference.as_slice()), "a slice");
    assert!(joins(&(&raw const *reference)), "a raw pointer");
    assert!(joins(&NonNull::from(reference)));
    assert!(joins(&Handle(1, reference)), "a pointer of the user's own");
    assert!(joins(&Pin::new(reference)));
    assert!(joins(&Some(parent)), "an optional box");

    let shared = near(&(), || Rc::new(5_u64));
    assert!(joins(&shared) && joins(&Some(shared.clone())) && joins(&Rc::downgrade(&shared)));
    let shared = near(&(), || Arc::new(5_u64));
    assert!(joins(&shared) && joins(&*shared));
    let cell = near(&(), || Rc::new(RefCell::new(5_u64)));
    assert!(joins(&cell.borrow()), "a guard");
    let list = near(&(), || vec![1_u64, 2, 3]);
    assert!(joins(&list) && joins(&list[0]));
    let text = near(&(), || String::from("parent"));
    assert!(joins(&text) && joins(text.as_str()));
    let dynamic: Box<dyn Fn() -> u64> = near(&(), || {
        let captured = [1_u64, 2, 3];
        Box::new(move || captured[0]) as Box<dyn Fn() -> u64>
    });
    assert!(joins(&dynamic) && dynamic() == 1);
}

#[test]
fn a_function_that_takes_its_parent_by_reference() {
    fn child(parent: &Node) -> Box<Node> {
        near(&parent, || Box::new([parent[0] + 1; 3]))
    }
    let watch = watch();
    let mut path = vec![root()];
    for depth in 0..9 {
        path.push(child(&path[depth]));
    }
    // Two such nodes fit a block.
    assert_eq!(watch.report().same_block, 5);
    assert_eq!(path[9][0], 9);
}

#[test]
fn a_link_inside_a_node_means_the_node() {
    struct Tree {
        key: u64,
        left: Option<Box<Tree>>,
        right: Option<Box<Tree>>,
    }
    let tree = |key| Tree {
        key,
        left: None,
        right: None,
    };
    let watch = watch();
    let mut top = near(&(), || Box::new([tree(1)]));
    let far = root();
    top[0].left = Some(near(&far, || Box::new(tree(0))));
    // Not the left child, to which the link points, but the node, in which it lies.
    let right = near(&top[0].left, || Box::new(tree(2)));
    assert_eq!(
        (&raw const *right).addr() / 64,
        (&raw const *top).addr() / 64
    );
    top[0].right = Some(right);
    assert_eq!(watch.report().same_block, 2);
    assert!(top[0].right.as_ref().is_some_and(|node| node.key == 2));
}

#[test]
fn a_bucket_means_the_chain_that_starts_in_it() {
    struct Link {
        key: usize,
        next: Option<Box<Link>>,
    }
    let mut buckets: Vec<Option<Box<Link>>> = (0..100).map(|_| None).collect();
    let watch = watch();
    for key in 0..200 {
        let bucket = &mut buckets[key % 100];
        let mut link = near(bucket, || Box::new(Link { key, next: None }));
        link.next = bucket.take();
        *bucket = Some(link);
    }
    let report = watch.report();
    assert_eq!((report.not_usable, report.same_block), (100, 100));
    let second = buckets[3].as_ref().and_then(|link| link.next.as_ref());
    assert!(second.is_some_and(|link| link.key == 3));
}

#[test]
fn children_of_a_plain_object_join_the_first_of_them() {
    struct Vertex {
        name: String,
        edges: VecDeque<Box<u64>>,
        first: Option<Box<u64>>,
        second: Option<Box<u64>>,
    }
    let watch = watch();
    let mut vertex = Box::new(Vertex {
        name: String::from("a plain object"),
        edges: VecDeque::new(),
        first: None,
        second: None,
    });
    vertex.first = Some(near(&vertex, || Box::new(1)));
    vertex.second = Some(near(&*vertex, || Box::new(2)));
    assert_eq!(
        watch.report().same_block,
        u64::from(vertex.edges.is_empty())
    );
    assert_eq!(vertex.name.len(), 14);
}

#[test]
fn every_interface_means_the_same() {
    use allocator_api2::boxed::Box;
    let count = watch();
    let parent: Box<Node, CcMalloc> = Box::new_near([0; 3], &());
    let child: Box<Node, CcMalloc> = Box::new_near([1; 3], &parent);
    assert_eq!((count.report().same_block, child[0]), (1, 1));
    drop(child);
    let child = Box::new_in([2_u64; 3], CcMalloc.near(&parent));
    assert_eq!((count.report().same_block, child[0]), (2, 2));

    let heap = Heap::new().expect("memory");
    let parent = Box::new_in([0_u64; 3], heap.near(&()));
    let child = Box::new_in([1_u64; 3], heap.near(&parent));
    assert_eq!((heap.placement().same_block, child[0]), (1, 1));
    assert_eq!(count.report().same_block, 2, "the heap counts for itself");
}

#[test]
fn a_report_says_whether_the_hints_work() {
    let count = watch();
    assert_eq!(count.report().to_string(), "no hinted objects");
    let parents = [root(), root()];
    let report = count.report().to_string();
    assert!(
        report.contains(": poor, most hints lead to no object"),
        "{report}"
    );
    let children = parents
        .each_ref()
        .map(|parent| near(parent, || Box::new([1; 3])));
    let report = count.report().to_string();
    let start = "4 hinted objects: 50.0 % in the hint's block, ";
    assert!(
        report.starts_with(start) && report.ends_with(": good"),
        "{report}"
    );
    assert_eq!(children[1], Box::new([1_u64; 3]));
}

/// The parent of the warning's test plays this in a process of its own.
fn misplaced(silent: bool) {
    ccmalloc::set_hint_warnings(!silent);
    let plain = Box::new([1_u64; 3]);
    for key in 0..3_u64 {
        let variable = (key, 17_u64);
        assert!(!joins(&None::<Box<Node>>), "no warning: a structure starts");
        assert!(!joins(&plain[0]), "no warning: not a local variable");
        let node = near(&variable, || Box::new([key; 3])); // the warning names this line
        assert_eq!(node[0], key);
    }
}

#[test]
fn debug_builds_warn_once_of_a_hint_that_leads_nowhere() {
    const LINE: &str = "// the warning names this line";
    const SCENE: &str = "CCMALLOC_TRIAL_HINTS";
    if let Ok(scene) = std::env::var(SCENE) {
        return misplaced(scene == "silent");
    }
    let line = 1
        + (include_str!("hints.rs").lines())
            .position(|line| line.ends_with(LINE))
            .unwrap();
    for scene in ["loud", "silent"] {
        let test = "hints::debug_builds_warn_once_of_a_hint_that_leads_nowhere";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--test-threads=1", "--nocapture"])
            .env(SCENE, scene)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        let warnings: Vec<_> = text.lines().filter(|line| line.contains("hint")).collect();
        if cfg!(debug_assertions) && scene == "loud" {
            assert_eq!(warnings.len(), 1, "{text}");
            let place = format!("ccmalloc: tests/trials/hints.rs:{line}:");
            assert!(warnings[0].starts_with(&place), "{text}");
        } else {
            assert!(warnings.is_empty(), "{text}");
        }
    }
}
