//! Nodes of several types that own each other.

#![expect(clippy::vec_box, reason = "boxes in vectors are among what is tested")]

use ccmorph::{
    AnyLinks, AnyVisitor, Layout, Links, Morph, MorphError, TreeNode, Visitor, any, back, ccmorph,
    map,
};
use quickcheck::{Arbitrary, Gen, quickcheck};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;
use std::rc::Rc;

#[derive(Clone, Debug, PartialEq, TreeNode)]
enum Statement {
    Evaluate(#[child] Expression),
    While {
        line: u32,
        #[child]
        condition: Box<Expression>,
        #[child]
        body: Vec<Statement>,
    },
    Then(#[child] Box<Statement>, #[child] Option<Box<Statement>>),
}

#[derive(Clone, Debug, PartialEq, TreeNode)]
enum Expression {
    Number(f64),
    Text(String),
    /// A variant of the name of an associated type.
    Link(#[child] [Box<Expression>; 2]),
    Call {
        name: String,
        #[child]
        arguments: VecDeque<Expression>,
        #[child]
        named: BTreeMap<String, Box<Expression>>,
    },
    Block(
        #[child] Box<[Statement]>,
        #[child] (Box<Wide>, Vec<Box<Statement>>),
    ),
}

/// Larger than a block, and aligned to one.
#[derive(Clone, Debug, PartialEq, TreeNode)]
#[repr(align(64))]
struct Wide {
    numbers: [u64; 10],
    #[child]
    inner: Option<Box<Expression>>,
}

impl Arbitrary for Expression {
    fn arbitrary(g: &mut Gen) -> Expression {
        let less = &mut Gen::new(g.size() / 5 + 1);
        if g.size() == 1 {
            return Expression::Number(f64::from(u8::arbitrary(g)));
        }
        match u8::arbitrary(g) % 5 {
            0 => Expression::Text(String::arbitrary(less)),
            1 | 2 => Expression::Link([Box::arbitrary(less), Box::arbitrary(less)]),
            3 => Expression::Call {
                name: String::arbitrary(less),
                arguments: Vec::arbitrary(less).into(),
                named: BTreeMap::<String, Box<Expression>>::arbitrary(less),
            },
            _ => {
                let wide = Wide {
                    numbers: [u64::arbitrary(g); 10],
                    inner: Option::arbitrary(less),
                };
                let statements: Vec<Statement> = Vec::arbitrary(less);
                Expression::Block(statements.into(), (Box::new(wide), Vec::arbitrary(less)))
            }
        }
    }
}

impl Arbitrary for Statement {
    fn arbitrary(g: &mut Gen) -> Statement {
        let less = &mut Gen::new(g.size() / 5 + 1);
        match u8::arbitrary(g) % if g.size() == 1 { 1 } else { 3 } {
            0 => Statement::Evaluate(Expression::arbitrary(less)),
            1 => Statement::While {
                line: u32::arbitrary(g),
                condition: Box::arbitrary(less),
                body: Vec::arbitrary(less),
            },
            _ => Statement::Then(Box::arbitrary(less), Option::arbitrary(less)),
        }
    }
}

const LAYOUTS: [Layout; 4] = [
    Layout::DepthFirst,
    Layout::BreadthFirst,
    Layout::Hierarchical,
    Layout::SubtreeCluster { block_bytes: 64 },
];

quickcheck! {
    fn programs_are_what_they_were(program: Vec<Statement>) -> bool {
        let mut morphed = program.clone();
        let nodes = Morph::new().run_any(&mut morphed).unwrap().nodes;
        assert_eq!(morphed, program);
        for layout in LAYOUTS {
            let report = Morph::new().layout(layout).predict(true).run_any(&mut morphed).unwrap();
            assert_eq!((report.nodes, report.placed), (nodes, true));
            assert_eq!(morphed, program);
        }
        match Morph::new().colour(0.5).run_any(&mut morphed) {
            Ok(report) => assert_eq!(report.nodes, nodes),
            Err(error) => assert!(matches!(error, MorphError::ColourRoom { .. })),
        }
        // From a traversal of one type, and by the derive's.
        let report = ccmorph(any(&mut morphed), Statement::children).unwrap();
        assert_eq!(report.nodes, nodes);
        morphed == program
    }

    fn a_panic_in_any_visit_changes_nothing(program: Vec<Statement>, calls: usize) -> bool {
        let calls = calls % (program.len() + 1);
        let fuse = Rc::new(Cell::new(calls));
        let bomb = |statement: &Statement| (statement.clone(), Bomb(Rc::clone(&fuse)));
        let mut morphed: Vec<(Statement, Bomb)> = program.iter().map(bomb).collect();
        let result = catch_unwind(AssertUnwindSafe(|| Morph::new().run_any(&mut morphed)));
        assert_eq!(result.is_err(), calls < program.len());
        morphed.into_iter().map(|(statement, _)| statement).eq(program)
    }
}

/// Panics on its turn.
struct Bomb(Rc<Cell<usize>>);

impl AnyLinks for Bomb {
    fn show_any<'a>(&'a mut self, _: &mut AnyVisitor<'_, 'a>) {
        match self.0.get() {
            0 => std::panic::resume_unwind(Box::new("bomb")),
            left => self.0.set(left - 1),
        }
    }
}

#[test]
fn blocks_are_filled_by_nodes_of_different_sizes() {
    struct Leaf(u64, u64);
    impl AnyLinks for Leaf {}
    #[derive(TreeNode)]
    struct Inner([u64; 3], #[child] Option<Box<Inner>>, #[child] Box<Leaf>);

    const NODES: usize = 4096;
    let (mut list, mut held) = (None, Vec::new());
    for key in 0..NODES as u64 {
        let leaf = Box::new(Leaf(key, 7));
        held.push(Box::new([0_u8; 40]));
        list = Some(Box::new(Inner([key; 3], list, leaf)));
    }
    let morph = Morph::new().layout(Layout::DepthFirst);
    let report = morph.run(&mut list, Inner::children).unwrap();
    assert_eq!((report.nodes, report.edges), (2 * NODES, 2 * NODES - 1));
    // 16 and 40 bytes, one behind the other, but for the ends of segments.
    let bytes = (NODES * (16 + 40)) as u64;
    let spans = bytes..bytes + bytes / 1000;
    assert!(spans.contains(&report.span_bytes), "{report}");
    let lines = map(&mut list, Inner::children).unwrap();
    assert!(lines.pieces(64).count() as u64 <= bytes / 64 + 4);
    let mut keys = (0..NODES as u64).rev();
    for inner in std::iter::successors(list.as_deref(), |inner| inner.1.as_deref()) {
        let key = keys.next().unwrap();
        assert_eq!((inner.0, inner.2.0, inner.2.1), ([key; 3], key, 7));
    }
    assert_eq!(keys.next(), None);
}

#[test]
fn pointers_between_types_follow() {
    #[derive(TreeNode)]
    struct Parent(
        #[child] Vec<Child>,
        #[child] Option<Box<Parent>>,
        #[pointer] *const Child,
    );
    #[derive(TreeNode)]
    struct Child(usize, #[child] Option<Box<Parent>>, #[parent] *const Parent);

    fn parent(depth: usize) -> Box<Parent> {
        let other = (depth == 3).then(|| parent(0));
        let mut new = Box::new(Parent(Vec::new(), other, null()));
        let place: *const Parent = &raw const *new;
        let below = || (depth > 0).then(|| parent(depth - 1));
        new.0 = (0..3).map(|number| Child(number, below(), place)).collect();
        new.2 = new.0.as_ptr();
        new
    }
    fn check(parent: &Parent) -> usize {
        assert!(std::ptr::eq(parent.2, &raw const parent.0[0]));
        let below = parent.0.iter().enumerate().map(|(number, child)| {
            assert!(child.0 == number && std::ptr::eq(child.2, parent));
            child.1.as_deref().map_or(0, check)
        });
        let below: usize = below.sum();
        2 + below + parent.1.as_deref().map_or(0, check)
    }

    let mut root = parent(3);
    let nodes = check(&root);
    for _ in 0..2 {
        // A buffer begins where its first element does, so what points to that follows.
        assert_eq!(ccmorph(&mut root, Parent::children).unwrap().nodes, nodes);
        assert_eq!(check(&root), nodes);
        assert_eq!(Morph::new().run_any(&mut root).unwrap().nodes, nodes);
        assert_eq!(check(&root), nodes);
    }
}

#[test]
fn nodes_too_large_stay_and_what_they_own_moves() {
    #[derive(TreeNode)]
    struct Large([u8; 5000], #[child] Option<Box<Small>>, #[child] Vec<Small>);
    #[derive(TreeNode)]
    struct Small(u64, #[child] Option<Box<Large>>);

    let wide = || (0..500).map(|key| Small(key, None)).collect();
    let large = |small| Box::new(Large([7; 5000], small, wide()));
    let mut root = None;
    for key in 0..300 {
        root = Some(Box::new(Small(key, root.map(|root| large(Some(root))))));
    }
    assert_eq!(Morph::new().run_any(&mut root).unwrap().nodes, 300);
    let mut at = root.as_deref();
    for key in (0..300).rev() {
        let small = at.unwrap();
        assert_eq!(small.0, key);
        at = small.1.as_deref().and_then(|large| {
            assert!(large.0 == [7; 5000] && large.2.iter().map(|small| small.0).eq(0..500));
            large.1.as_deref()
        });
    }
    assert!(at.is_none());
    // No node moves; as the only type, large nodes are an error.
    let mut root = Some(large(None));
    assert_eq!(Morph::new().run_any(&mut root).unwrap().nodes, 0);
    let result = ccmorph(&mut root, |_, _| {});
    let is_refused = |error| {
        matches!(
            error,
            MorphError::NodeTooLarge {
                node_bytes_max: 4096,
                ..
            }
        )
    };
    assert!(result.is_err_and(is_refused));
    assert!(root.is_some_and(|root| root.0 == [7; 5000]));
}

#[test]
fn nothing_and_nodes_of_no_size_are_skipped_and_vectors_keep_their_capacity() {
    struct Empty;
    impl AnyLinks for Empty {}
    #[derive(TreeNode)]
    struct Node(
        u8,
        #[child] Box<Empty>,
        #[child] Vec<Empty>,
        #[child] Vec<Node>,
        #[child] Box<[Node]>,
    );
    let node = |key, kids, slice| Node(key, Box::new(Empty), vec![Empty, Empty], kids, slice);
    let leaf = |key| node(key, Vec::new(), Box::new([]));
    let mut root = node(1, Vec::with_capacity(10), Box::new([leaf(0)]));
    root.3.push(leaf(2));
    let before = root.3.as_ptr();
    assert_eq!(Morph::new().run_any(&mut root).unwrap().nodes, 2);
    assert_ne!(root.3.as_ptr(), before);
    assert_eq!((root.3.len(), root.3.capacity(), root.3[0].0), (1, 10, 2));
    assert_eq!((root.2.len(), root.4.len(), root.4[0].0), (2, 1, 0));
    root.3.extend((3..100).map(leaf));
    root.3.truncate(20);
    root.3.shrink_to_fit();
    assert!(root.3.iter().map(|node| node.0).eq(2..22) && root.0 == 1);
    let nothing = Morph::new().run_any(&mut None::<Box<Node>>).unwrap();
    assert_eq!(nothing.nodes, 0);
    assert_eq!(Morph::new().run_any(&mut [Empty, Empty]).unwrap().nodes, 0);
}

#[test]
fn own_types_with_links_of_one_type_do() {
    struct Bucket(Option<Box<Node>>);
    impl Links for Bucket {
        type Link = Box<Node>;
        fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Node>>) {
            self.0.show(visitor);
        }
    }
    #[derive(TreeNode)]
    struct Node(u32, #[child] Bucket, #[child] Option<Box<Table>>);
    #[derive(TreeNode)]
    struct Table(#[child] Vec<Node>);

    let leaf = |key| Some(Box::new(Node(key, Bucket(None), None)));
    let table = Table(vec![Node(3, Bucket(leaf(4)), None)]);
    let mut root = Box::new(Node(1, Bucket(leaf(2)), Some(Box::new(table))));
    for report in [
        ccmorph(&mut root, Node::children),
        Morph::new().run_any(&mut root),
    ] {
        assert_eq!(report.unwrap().nodes, 5);
        let below = root.1.0.as_ref().unwrap();
        let third = &root.2.as_ref().unwrap().0[0];
        let fourth = third.1.0.as_ref().unwrap();
        assert_eq!([root.0, below.0, third.0, fourth.0], [1, 2, 3, 4]);
    }
}

#[test]
fn weights_are_those_of_the_owner() {
    struct Leaf(u64);
    impl AnyLinks for Leaf {}
    #[derive(TreeNode)]
    struct Inner(u32, #[child] Box<Leaf>, #[child] Vec<Box<Inner>>);
    let inner = |weight, kids| Box::new(Inner(weight, Box::new(Leaf(weight.into())), kids));
    let kid = |key| inner(if key == 77 { 1_000_000 } else { 0 }, Vec::new());
    let mut root = inner(1, (0..500).map(kid).collect());
    let morph = Morph::new().layout(Layout::Weighted);
    let mut asked = 0;
    let report = morph.run_weighted(&mut root, Inner::children, |node| {
        asked += 1;
        f64::from(node.0)
    });
    assert_eq!((report.unwrap().nodes, asked), (1002, 501));
    let hot = &root.2[77];
    assert_eq!(hot.1.0, 1_000_000);
    let leaf = &raw const *hot.1;
    assert_eq!((&raw const **hot).addr() / 256, leaf.addr() / 256);
}

#[test]
fn a_long_chain_of_types_needs_no_stack() {
    #[derive(TreeNode)]
    struct Even(#[child] Option<Box<Odd>>);
    #[derive(TreeNode)]
    struct Odd(#[child] Vec<Even>);

    const DEPTH: usize = 300_000;
    let mut root = Even(None);
    for _ in 0..DEPTH {
        root = Even(Some(Box::new(Odd(vec![root]))));
    }
    assert_eq!(Morph::new().run_any(&mut root).unwrap().nodes, 2 * DEPTH);
    for _ in 0..DEPTH {
        root = root.0.take().unwrap().0.pop().unwrap();
    }
    assert!(root.0.is_none());
}

#[test]
fn links_of_another_type_stay_of_that_type_beside_any() {
    struct Other([u64; 16]);
    impl AnyLinks for Other {}
    /// Shows links to nodes of any types first, which are none here, and then its own. Its pointer
    /// may be to any node.
    struct List(Option<Box<Other>>, Option<Box<Other>>, *mut Other);
    impl Links for List {
        type Link = Box<Other>;
        fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Other>>) {
            any::<_, Box<Other>>(&mut self.0).show(visitor);
            self.1.show(visitor);
            visitor.pointers(&mut self.2);
        }
    }
    impl AnyLinks for List {
        fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
            visitor.links(self);
        }
    }
    struct Node {
        next: Option<Box<Node>>,
        up: *const Node,
        /// A buffer of the size of a node, so that it comes behind the node, or nearly so.
        lists: Option<Box<[List; 2]>>,
        more: [u64; 3],
    }

    const { assert!(size_of::<Node>() == size_of::<[List; 2]>()) };
    let new = |key, up: *const Node| {
        let mut new = Box::new(Node {
            next: None,
            up,
            lists: None,
            more: [key; 3],
        });
        let other = (key % 2 == 0).then(|| Box::new(Other([key; 16])));
        let lists = [
            List(None, other, up as *mut Other),
            List(None, None, up as *mut Other),
        ];
        new.lists = Some(Box::new(lists));
        new
    };
    let mut root = new(0, null());
    let mut last = &mut root;
    for key in 1..=100 {
        let up: *const Node = &raw const **last;
        last = last.next.insert(new(key, up));
    }
    let mut visited = 0;
    let report = ccmorph(&mut root, |node: &mut Node, visit| {
        visited += 1;
        for list in node.lists.iter_mut().flat_map(|lists| &mut **lists) {
            visit(any(list));
        }
        visit(back(&mut node.up));
        visit(&mut node.next);
    });
    assert_eq!((report.unwrap().nodes, visited), (101 + 51, 101));
    let (mut at, mut key) = (&*root, 0);
    while let Some(next) = at.next.as_deref() {
        key += 1;
        assert!(std::ptr::eq(next.up, at) && next.more == [key; 3]);
        let lists = next.lists.as_deref().unwrap();
        let mut lists_of_node = lists.iter();
        assert!(lists_of_node.all(|list| std::ptr::eq(list.2.cast(), at) && list.0.is_none()));
        let other = lists[0].1.as_ref().map(|other| other.0);
        assert_eq!(other, (key % 2 == 0).then_some([key; 16]));
        at = next;
    }
}

#[test]
fn what_was_shown_before_a_caught_panic_counts() {
    struct Kid([u64; 4]);
    impl AnyLinks for Kid {}
    struct Panicking;
    impl Links for Panicking {
        type Link = Box<Kid>;
        fn show<'a>(&'a mut self, _: &mut Visitor<'_, 'a, Box<Kid>>) {
            panic!("shows nothing");
        }
    }
    /// Catches the panic of one of its fields, between two that are shown.
    struct Catching(Option<Box<Kid>>, *mut Kid, Panicking, Option<Box<Kid>>);
    impl AnyLinks for Catching {
        fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
            visitor.show(&mut self.0);
            visitor.pointers(&mut self.1);
            let lent = (&mut *visitor, &mut self.2);
            let shown = catch_unwind(AssertUnwindSafe(move || {
                let (visitor, panicking) = lent;
                visitor.links(panicking);
            }));
            assert!(shown.is_err());
            visitor.show(&mut self.3);
        }
    }

    let mut second = Box::new(Kid([2; 4]));
    let (first, last) = (Some(Box::new(Kid([1; 4]))), &raw mut *second);
    let mut root = Catching(first, last, Panicking, Some(second));
    let report = Morph::new().layout(Layout::DepthFirst).run_any(&mut root);
    assert_eq!(report.unwrap().nodes, 2);
    assert!(std::ptr::eq(root.1, &raw const **root.3.as_ref().unwrap()));
    assert_eq!(root.0.unwrap().0, [1; 4]);
}
