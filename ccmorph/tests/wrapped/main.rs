//! Plain boxes under global allocators that are made of `CcMalloc`, and do more than pass requests
//! on. A process of its own, as it has only one of them.
//!
//! Such allocators are why a morph asks the global allocator for each of the places that it has
//! chosen: whatever comes back is what a node may be moved to, wherever it lies. And whatever they
//! do, no place is lost, none is given out twice, and what `CcMalloc` counts is right.

use ccmalloc::CcMalloc;
use ccmodel::Layout as Order;
use ccmorph::{Morph, MorphError, TreeNode, back};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::rc::Rc;

/// What the allocator does with requests for nodes of this test's, of [`NODE_BYTES`]; all others
/// are passed on, but for the last.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// Passes them on.
    AsItIs,
    /// Has none.
    Fails,
    /// Asks for two, hands the second on, and gives the first one back.
    SecondOfTwo,
    /// Asks for two, hands the first on, and gives the second one back.
    FirstOfTwo,
    /// Takes one, gives it back, and asks again.
    TwiceTheSame,
    /// Asks for memory of its own first, of another layout.
    AndItsOwn,
    /// Hands on memory of zeros.
    Zeros,
    /// Asks for it near to the object that was handed on before.
    NearTheLast,
    /// Asks for an object of half the size, and lets that grow.
    Grown,
    /// Asks for more, and hands on a part.
    Header,
    /// Asks for more than that.
    RoundedUp,
    /// Asks for a stricter alignment.
    Aligned,
    /// Passes them on, and has no memory for lists.
    NoLists,
}

impl How {
    /// Whether it concerns single requests: objects are freed as those are that were passed on.
    fn is_passing(self) -> bool {
        !matches!(self, How::Header | How::RoundedUp | How::Aligned)
    }
}

const PASSING: [How; 9] = [
    How::AsItIs,
    How::Fails,
    How::SecondOfTwo,
    How::FirstOfTwo,
    How::TwiceTheSame,
    How::AndItsOwn,
    How::Zeros,
    How::NearTheLast,
    How::Grown,
];

/// The global allocator.
struct Wrapper;

#[global_allocator]
static GLOBAL: Wrapper = Wrapper;

thread_local! {
    static HOW: Cell<How> = const { Cell::new(How::AsItIs) };
    /// Requests that are passed on before.
    static BEFORE: Cell<usize> = const { Cell::new(0) };
    /// Nodes that live.
    static ALIVE: Cell<usize> = const { Cell::new(0) };
    static LAST: Cell<*mut u8> = const { Cell::new(std::ptr::null_mut()) };
}

impl Wrapper {
    /// What is asked for instead.
    fn larger(how: How, layout: Layout) -> Layout {
        let (bytes, align) = match how {
            How::Header => (layout.size() + 16, layout.align()),
            How::RoundedUp => (layout.size() + 8, layout.align()),
            How::Aligned => (layout.size(), 16),
            _ => return layout,
        };
        Layout::from_size_align(bytes, align).expect("a small layout")
    }
}

/// Where the part of an object that is handed on begins.
fn header_bytes(how: How) -> usize {
    if how == How::Header { 16 } else { 0 }
}

// SAFETY: what is handed on is an object of `CcMalloc` for the layout or a part of one that has the
// size, nothing else refers to it, and it goes back there. Nothing unwinds.
unsafe impl GlobalAlloc for Wrapper {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() != NODE_BYTES {
            if HOW.get() == How::NoLists && layout.size() > 128 {
                return std::ptr::null_mut();
            }
            // SAFETY: the caller's promise.
            return unsafe { CcMalloc.alloc(layout) };
        }
        let mut how = HOW.get();
        if how.is_passing() && BEFORE.get() > 0 {
            BEFORE.set(BEFORE.get() - 1);
            how = How::AsItIs;
        }
        // SAFETY: layouts are not of size zero, and objects are given back with theirs.
        let object = unsafe {
            match how {
                How::AsItIs | How::NoLists => CcMalloc.alloc(layout),
                How::Fails => return std::ptr::null_mut(),
                How::SecondOfTwo => {
                    let first = CcMalloc.alloc(layout);
                    let second = CcMalloc.alloc(layout);
                    CcMalloc.dealloc(first, layout);
                    second
                }
                How::FirstOfTwo => {
                    let first = CcMalloc.alloc(layout);
                    let second = CcMalloc.alloc(layout);
                    CcMalloc.dealloc(second, layout);
                    first
                }
                How::TwiceTheSame => {
                    let first = CcMalloc.alloc(layout);
                    CcMalloc.dealloc(first, layout);
                    CcMalloc.alloc(layout)
                }
                How::AndItsOwn => {
                    // While places are handed over, what `CcMalloc` knows is right as at any time.
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
                    let half = Layout::from_size_align_unchecked(NODE_BYTES / 2, layout.align());
                    CcMalloc.realloc(CcMalloc.alloc(half), half, NODE_BYTES)
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
        if layout.size() != NODE_BYTES {
            // SAFETY: the caller's promise.
            return unsafe { CcMalloc.dealloc(object, layout) };
        }
        ALIVE.set(ALIVE.get() - 1);
        let how = HOW.get();
        let begin = object.wrapping_sub(header_bytes(how));
        // SAFETY: how it was allocated: for as long as such nodes live, `HOW` stays.
        unsafe { CcMalloc.dealloc(begin, Wrapper::larger(how, layout)) };
    }
}

#[derive(TreeNode)]
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
    _more: [u64; 2],
}

/// A size that nothing else here allocates.
const NODE_BYTES: usize = size_of::<Node>();
const _: () = assert!(NODE_BYTES == 72);

const NODES: usize = if cfg!(miri) { 12 } else { 700 };

/// A tree of [`NODES`] nodes, each of which but the first hangs on the one with half its number or
/// so.
fn tree(token: &Rc<()>) -> Option<Box<Node>> {
    fn node(key: usize, token: &Rc<()>) -> Box<Node> {
        let below = |key: usize| (key < NODES).then(|| node(key, token));
        Box::new(Node {
            key,
            token: Rc::clone(token),
            left: below(3 * key + 1),
            others: [below(3 * key + 2), below(3 * key + 3)]
                .into_iter()
                .flatten()
                .collect(),
            up: std::ptr::null(),
            _more: [0; 2],
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

/// Where each node lies, by key; everything in the nodes must be right.
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

/// Checks what `CcMalloc` knows; under Miri that takes longer than all else, and other tests have
/// it.
fn check() {
    if !cfg!(miri) {
        ccmalloc::check().unwrap();
    }
}

/// A morph under an allocator that does so with all nodes from the number `before` on.
fn morph(
    root: &mut Option<Box<Node>>,
    (how, before): (How, usize),
    morph: Morph<'_>,
) -> Result<ccmorph::Report, MorphError> {
    let was = HOW.replace(how);
    BEFORE.set(before);
    let result = morph.run(root, |node, visit| {
        visit(&mut node.left);
        visit(&mut node.others);
        visit(back(&mut node.up));
    });
    HOW.set(was);
    check();
    assert_eq!(ALIVE.get(), NODES);
    result
}

#[test]
fn whatever_becomes_of_a_request_no_node_is_harmed() {
    let token = Rc::new(());
    let steps = [1, 0, NODES / 2, NODES - 1];
    let orders = [Order::DepthFirst, Order::VanEmdeBoas];
    // Under Miri, few: each case takes long there.
    let (few, step) = if cfg!(miri) { (1, 4) } else { (usize::MAX, 1) };
    for how in PASSING.into_iter().step_by(step) {
        for before in steps.iter().take(few) {
            for &order in orders.iter().take(few) {
                let case = format!("{how:?} from {before} on, {order}");
                let mut root = tree(&token);
                let old = addresses(&root, &token);
                let plain = Morph::new().layout(order);
                let result = morph(&mut root, (how, *before), plain);
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
                let result = morph(&mut root, (how, *before), plain.under_any_allocator());
                addresses(&root, &token);
                assert_eq!(result.is_err(), how == How::Fails, "{case}");
                drop(root);
                assert_eq!((ALIVE.get(), Rc::strong_count(&token)), (0, 1), "{case}");
                check();
            }
        }
    }
}

#[test]
fn nodes_that_are_parts_of_objects_move() {
    let token = Rc::new(());
    for how in [How::Header, How::RoundedUp, How::Aligned] {
        HOW.set(how);
        let mut root = tree(&token);
        for order in [Order::DepthFirst, Order::VanEmdeBoas] {
            let old = addresses(&root, &token);
            let plain = Morph::new().layout(order);
            let result = morph(&mut root, (how, 0), plain);
            assert_eq!(result.unwrap_err(), MorphError::NotCcMalloc);
            assert_eq!(addresses(&root, &token), old);
            let result = morph(&mut root, (how, 0), plain.under_any_allocator());
            assert!(!result.unwrap().placed);
            assert_ne!(addresses(&root, &token), old);
        }
        drop(root);
        assert_eq!((ALIVE.get(), Rc::strong_count(&token)), (0, 1));
        HOW.set(How::AsItIs);
        check();
    }
}

#[test]
fn no_memory_to_look_pointers_up_is_an_error() {
    struct Item {
        key: usize,
        next: *mut Item,
        next_but_one: *mut Item,
    }
    let mut head: *mut Item = std::ptr::null_mut();
    for key in 0..NODES {
        // SAFETY: null, or the item that was made before.
        let next_but_one = unsafe { head.as_ref() }.map_or(head, |item| item.next);
        head = Box::into_raw(Box::new(Item {
            key,
            next: head,
            next_but_one,
        }));
    }
    let first = head;
    let mut how = How::NoLists;
    for _ in 0..2 {
        let mut items = 0;
        // SAFETY: the items come from boxes, and all pointers to them are shown.
        let result = unsafe {
            Morph::new().run_raw(std::slice::from_mut(&mut head), |item, visit| {
                visit.link(&raw mut (*item).next);
                visit.pointer(&raw mut (*item).next_but_one);
                items += 1;
                if items == NODES {
                    HOW.set(how);
                }
            })
        };
        HOW.set(How::AsItIs);
        if how == How::NoLists {
            let entries = NODES as u64 * 8;
            assert!(matches!(result, Err(MorphError::OutOfMemory { bytes }) if bytes >= entries));
            assert_eq!(head, first);
        } else {
            assert_eq!(result.unwrap().nodes, NODES);
            assert_ne!(head, first);
        }
        how = How::AsItIs;
    }
    let mut keys = (0..NODES).rev();
    while !head.is_null() {
        // SAFETY: an item of the list, which is freed here, once.
        let item = unsafe { Box::from_raw(head) };
        assert_eq!(Some(item.key), keys.next());
        // SAFETY: null, or the next item, which is live.
        let after_next = unsafe { item.next.as_ref() }.map_or(item.next, |next| next.next);
        assert_eq!(item.next_but_one, after_next);
        head = item.next;
    }
    assert_eq!(keys.next(), None);

    // And of boxes.
    struct Link {
        next: Option<Box<Link>>,
        next_but_one: *const Link,
    }
    let mut list: Option<Box<Link>> = None;
    for _ in 0..NODES {
        let next_but_one = list.as_ref().and_then(|link| link.next.as_deref());
        let next_but_one = next_but_one.map_or(std::ptr::null(), std::ptr::from_ref);
        list = Some(Box::new(Link {
            next: list,
            next_but_one,
        }));
    }
    let mut links = 0;
    let result = Morph::new().run(&mut list, |link, visit| {
        visit(&mut link.next);
        visit(back(&mut link.next_but_one));
        links += 1;
        if links == NODES {
            HOW.set(How::NoLists);
        }
    });
    HOW.set(How::AsItIs);
    assert!(matches!(result, Err(MorphError::OutOfMemory { .. })));
    while let Some(link) = list {
        list = link.next;
    }
}
