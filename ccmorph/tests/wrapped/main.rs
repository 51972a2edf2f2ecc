//! Plain boxes under global allocators that are made of `CcMalloc` and do more than pass requests
//! on. A process of its own, as it has only one of them.
//!
//! A morph asks the global allocator for each of the places that it has chosen. Whatever comes back
//! is a place that a node may be moved to. No place is lost, none is given out twice, and what
//! `CcMalloc` counts is right.

use ccmalloc::CcMalloc;
use ccmodel::{Layout as Order, Machine};
use ccmorph::{AnyLinks, Morph, MorphError, TreeNode, back};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::rc::Rc;

/// What the allocator does with requests for nodes. It passes all others on, except for `NoLists`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    AsItIs,
    /// Returns null.
    Fails,
    /// Allocates two, returns the second or the first, and frees the other.
    SecondOfTwo,
    FirstOfTwo,
    /// Allocates one, frees it, and allocates again.
    TwiceTheSame,
    /// Allocates memory of its own first, of another layout.
    AndItsOwn,
    Zeros,
    /// Allocates near the object that was returned before.
    NearTheLast,
    /// Allocates an object of half the size, and grows it.
    Grown,
    /// Allocates more, and returns a part.
    Header,
    /// Allocates more.
    RoundedUp,
    /// Allocates with a larger alignment.
    Aligned,
    /// Returns null for lists.
    NoLists,
}

/// All but `NoLists`.
const OF_NODES: [How; 12] = [
    How::AsItIs,
    How::Fails,
    How::SecondOfTwo,
    How::FirstOfTwo,
    How::TwiceTheSame,
    How::AndItsOwn,
    How::Zeros,
    How::NearTheLast,
    How::Grown,
    How::Header,
    How::RoundedUp,
    How::Aligned,
];

impl How {
    /// Whether all objects of a structure have to be freed by it.
    fn is_for_all(self) -> bool {
        matches!(self, How::Header | How::RoundedUp | How::Aligned)
    }
}

/// The global allocator.
struct Wrapper;

#[global_allocator]
static GLOBAL: Wrapper = Wrapper;

thread_local! {
    static HOW: Cell<How> = const { Cell::new(How::AsItIs) };
    /// How many requests are passed on before.
    static BEFORE: Cell<usize> = const { Cell::new(0) };
    /// How many nodes there are.
    static ALIVE: Cell<usize> = const { Cell::new(0) };
    static LAST: Cell<*mut u8> = const { Cell::new(std::ptr::null_mut()) };
}

impl Wrapper {
    /// The layout to allocate instead.
    fn larger(how: How, layout: Layout) -> Layout {
        let (bytes, align) = match how {
            How::Header => (layout.size() + NODE_ALIGN, layout.align()),
            How::RoundedUp => (2 * layout.size(), layout.align()),
            How::Aligned => (layout.size(), 8 * NODE_ALIGN),
            _ => return layout,
        };
        Layout::from_size_align(bytes, align).expect("a small layout")
    }
}

/// Where the part of an object that is returned begins.
fn header_bytes(how: How) -> usize {
    if how == How::Header { NODE_ALIGN } else { 0 }
}

// SAFETY: it returns an object of `CcMalloc` for the layout or a part of one that has the
// size, to which nothing else refers, and frees it there. Nothing unwinds.
unsafe impl GlobalAlloc for Wrapper {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() != NODE_ALIGN {
            if HOW.get() == How::NoLists && layout.size() > 128 {
                return std::ptr::null_mut();
            }
            // SAFETY: the caller promises a layout that is not empty.
            return unsafe { CcMalloc.alloc(layout) };
        }
        let mut how = HOW.get();
        if !how.is_for_all() && BEFORE.get() > 0 {
            BEFORE.set(BEFORE.get() - 1);
            how = How::AsItIs;
        }
        // SAFETY: layouts are not of size zero, and objects are given back with theirs.
        let object = unsafe {
            match how {
                How::AsItIs | How::NoLists => CcMalloc.alloc(layout),
                How::Fails => return std::ptr::null_mut(),
                How::SecondOfTwo | How::FirstOfTwo => {
                    let mut two = [CcMalloc.alloc(layout), CcMalloc.alloc(layout)];
                    two.rotate_left(usize::from(how == How::SecondOfTwo));
                    CcMalloc.dealloc(two[1], layout);
                    two[0]
                }
                How::TwiceTheSame => {
                    let first = CcMalloc.alloc(layout);
                    CcMalloc.dealloc(first, layout);
                    CcMalloc.alloc(layout)
                }
                How::AndItsOwn => {
                    if !cfg!(miri) && ccmalloc::check().is_err() {
                        return std::ptr::null_mut();
                    }
                    let own = Layout::new::<[u64; 10]>();
                    let other = CcMalloc.alloc(own);
                    let object = CcMalloc.alloc(layout);
                    CcMalloc.dealloc(other, own);
                    object
                }
                How::Zeros => CcMalloc.alloc_zeroed(layout),
                How::NearTheLast => match std::ptr::NonNull::new(LAST.get()) {
                    Some(last) => ccmalloc::cc_alloc(layout, Some(last))
                        .map_or(std::ptr::null_mut(), |object| object.as_ptr()),
                    None => CcMalloc.alloc(layout),
                },
                How::Grown => {
                    let half = Layout::from_size_align_unchecked(layout.size() / 2, layout.align());
                    CcMalloc.realloc(CcMalloc.alloc(half), half, layout.size())
                }
                How::Header | How::RoundedUp | How::Aligned => CcMalloc
                    .alloc(Wrapper::larger(how, layout))
                    .wrapping_add(header_bytes(how)),
            }
        };
        LAST.set(object);
        ALIVE.set(ALIVE.get() + 1);
        object
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        if layout.align() != NODE_ALIGN {
            // SAFETY: the caller gives up an object of this layout, which `CcMalloc` allocated
            // above.
            return unsafe { CcMalloc.dealloc(object, layout) };
        }
        ALIVE.set(ALIVE.get() - 1);
        let how = HOW.get();
        let begin = object.wrapping_sub(header_bytes(how));
        // SAFETY: how it was allocated: for as long as such nodes live, `HOW` stays.
        unsafe { CcMalloc.dealloc(begin, Wrapper::larger(how, layout)) };
    }
}

/// The alignment of nodes, which no list has.
const NODE_ALIGN: usize = 32;

#[derive(TreeNode)]
#[repr(align(32))]
struct Node {
    key: usize,
    token: Rc<()>,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    #[expect(clippy::vec_box, reason = "links are boxes")]
    others: Vec<Box<Node>>,
    #[parent]
    up: *const Node,
}

const NODES: usize = if cfg!(miri) { 12 } else { 700 };

/// A tree of [`NODES`] nodes, with three children each.
fn tree(token: &Rc<()>) -> Option<Box<Node>> {
    fn node(key: usize, token: &Rc<()>) -> Box<Node> {
        let below = |key: usize| (key < NODES).then(|| node(key, token));
        Box::new(Node {
            key,
            token: Rc::clone(token),
            left: below(3 * key + 1),
            others: (2..4).filter_map(|kid| below(3 * key + kid)).collect(),
            up: std::ptr::null(),
        })
    }
    fn tie(node: &mut Node) {
        let up: *const Node = node;
        for child in node.left.iter_mut().chain(&mut node.others) {
            child.up = up;
            tie(child);
        }
    }
    let mut root = node(0, token);
    tie(&mut root);
    Some(root)
}

/// The addresses of the nodes, by key. Checks the nodes.
fn addresses(root: &Option<Box<Node>>, token: &Rc<()>) -> Vec<usize> {
    fn look(node: &Node, token: &Rc<()>, addresses: &mut [usize]) {
        assert!(Rc::ptr_eq(&node.token, token));
        let here = std::ptr::from_ref(node);
        assert_eq!(std::mem::replace(&mut addresses[node.key], here.addr()), 0);
        let first = 3 * node.key + 1;
        for (child, key) in node.left.iter().chain(&node.others).zip(first..) {
            assert_eq!((child.key, child.up.addr()), (key, here.addr()));
            look(child, token, addresses);
        }
    }
    let mut addresses = vec![0; NODES];
    look(root.as_deref().unwrap(), token, &mut addresses);
    assert!(!addresses.contains(&0));
    addresses
}

/// Morphs under an allocator that does so with all nodes from the number `before` on.
fn under<T>((how, before): (How, usize), morph: impl FnOnce() -> T) -> T {
    let (was, alive) = (HOW.replace(how), ALIVE.get());
    BEFORE.set(before);
    let result = morph();
    HOW.set(was);
    if !cfg!(miri) {
        ccmalloc::check().unwrap();
    }
    assert_eq!(ALIVE.get(), alive);
    result
}

#[test]
fn no_answer_to_a_request_harms_a_node() {
    let token = Rc::new(());
    let steps = [1, 0, NODES / 2, NODES - 1];
    let orders = [Order::DepthFirst, Order::VanEmdeBoas];
    // Under Miri, few: each case takes long there.
    let (few, step) = if cfg!(miri) { (1, 4) } else { (usize::MAX, 1) };
    let cases = OF_NODES.into_iter().step_by(step).flat_map(|how| {
        let steps = steps.into_iter().take(few);
        steps.flat_map(move |before| orders.into_iter().take(few).map(move |o| (how, before, o)))
    });
    for (how, before, order) in cases {
        let case = format!("{how:?} from {before} on, {order}");
        HOW.set(if how.is_for_all() { how } else { How::AsItIs });
        let mut root = tree(&token);
        let old = addresses(&root, &token);
        let plain = Morph::new().layout(order);
        let result = under((how, before), || plain.run(&mut root, Node::children));
        let new = addresses(&root, &token);
        match &result {
            Ok(report) => {
                assert!(report.placed && report.nodes == NODES, "{case}");
                assert!(old.iter().all(|address| !new.contains(address)), "{case}");
            }
            Err(error) => {
                let is_known = match how {
                    How::Fails => matches!(error, MorphError::OutOfMemory { .. }),
                    _ => *error == MorphError::NotCcMalloc,
                };
                assert!(is_known && old == new, "{case}: {error}");
            }
        }
        let passes_on = matches!(how, How::AsItIs | How::Zeros | How::AndItsOwn);
        assert!(result.is_ok() || !passes_on, "{case}");
        let any = plain.under_any_allocator();
        let result = under((how, before), || any.run(&mut root, Node::children));
        let newest = addresses(&root, &token);
        assert_eq!(result.is_err(), how == How::Fails, "{case}");
        assert_eq!(new == newest, how == How::Fails, "{case}");
        drop(root);
        assert_eq!((ALIVE.get(), Rc::strong_count(&token)), (0, 1), "{case}");
        HOW.set(How::AsItIs);
    }
}

/// Owns nodes of several types: elements of a vector, leaves, and one that stays.
#[derive(TreeNode)]
#[repr(align(32))]
struct Branch {
    #[child]
    leaf: Box<Leaf>,
    #[child]
    branches: Vec<Branch>,
    #[child]
    large: Option<Box<Large>>,
    #[pointer]
    first: *const Branch,
}

#[derive(TreeNode)]
struct Large([u64; 600], #[child] Option<Box<Leaf>>);

#[repr(align(32))]
struct Leaf(u64);

impl AnyLinks for Leaf {}

impl Branch {
    fn new(depth: u64) -> Branch {
        let below = if depth == 0 { 0 } else { 2 };
        let branches: Vec<Branch> = (0..below).map(|_| Branch::new(depth - 1)).collect();
        Branch {
            first: branches.as_ptr(),
            leaf: Box::new(Leaf(7)),
            large: Some(Box::new(Large([depth; 600], Some(Box::new(Leaf(depth)))))),
            branches,
        }
    }

    fn sum(&self) -> u64 {
        assert!(self.branches.is_empty() || self.first == self.branches.as_ptr());
        let large = self.large.as_ref().unwrap();
        let below: u64 = self.branches.iter().map(Branch::sum).sum();
        self.leaf.0 + below + large.0[599] + large.1.as_ref().unwrap().0
    }
}

#[test]
fn a_failure_at_any_step_changes_nothing_of_several_types() {
    let mut root = Branch::new(if cfg!(miri) { 1 } else { 3 });
    let (sum, nodes) = (root.sum(), ALIVE.get());
    // This machine cannot be looked at under Miri.
    let machine = Machine::thesis();
    let morph = Morph::new().machine(&machine);
    let plain = morph.layout(Order::DepthFirst);
    for step in 0..nodes {
        for how in [How::Fails, How::SecondOfTwo] {
            let error = under((how, step), || plain.run_any(&mut root)).unwrap_err();
            assert_eq!(
                error == MorphError::NotCcMalloc,
                how == How::SecondOfTwo,
                "{error}"
            );
            assert_eq!(root.sum(), sum);
        }
    }
    for order in [Order::DepthFirst, Order::VanEmdeBoas, Order::Hierarchical] {
        for (how, placed) in [(How::AsItIs, true), (How::SecondOfTwo, false)] {
            let morph = morph.layout(order).under_any_allocator();
            let report = under((how, 0), || morph.run_any(&mut root)).unwrap();
            assert_eq!(
                (report.nodes, report.placed, root.sum()),
                (nodes, placed, sum)
            );
        }
    }
    drop(root);
    assert_eq!(ALIVE.get(), 0);
}

#[test]
fn no_memory_to_look_pointers_up_is_an_error() {
    /// A node of a list, the next one, and the address of the one after that.
    struct Item(Option<Box<Item>>, *const Item);
    let after_next = |list: &Option<Box<Item>>| {
        let item = list.as_ref().and_then(|item| item.0.as_deref());
        item.map_or(std::ptr::null(), std::ptr::from_ref)
    };
    let mut list: Option<Box<Item>> = None;
    for _ in 0..NODES {
        let after_next = after_next(&list);
        list = Some(Box::new(Item(list, after_next)));
    }
    for how in [How::NoLists, How::AsItIs] {
        let first = std::ptr::from_ref(list.as_deref().unwrap());
        let mut items = 0;
        let result = Morph::new().run(&mut list, |item, visit| {
            visit(&mut item.0);
            visit(back(&mut item.1));
            items += 1;
            if items == NODES {
                HOW.set(how);
            }
        });
        HOW.set(How::AsItIs);
        let entries = NODES as u64 * 8;
        match result {
            Ok(report) => assert_eq!((report.nodes, how), (NODES, How::AsItIs)),
            Err(error) => {
                assert!(matches!(error, MorphError::OutOfMemory { bytes } if bytes >= entries));
                assert!(how == How::NoLists && std::ptr::eq(list.as_deref().unwrap(), first));
            }
        }
    }
    while let Some(item) = list {
        assert_eq!(item.1, after_next(&item.0));
        list = item.0;
    }
}
