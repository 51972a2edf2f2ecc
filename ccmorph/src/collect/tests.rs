//! Traversals that show links and pointers in any order, wherever they lie, and not all of them;
//! some begin a morph of their own meanwhile.
//!
//! Under the standard allocator, which Miri, sanitizers and valgrind see through: in the library's
//! own tests there is no other.

use super::collect;
use crate::link::Placer;
use crate::relocate::NewPlaces;
use crate::{Layout, Links, Morph, MorphError, Visit, Visitor, back};
use quickcheck::{Gen, QuickCheck};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;
use std::rc::Rc;

/// As small as the box: what says that there is none is a value of the pointer.
enum Hand {
    Empty,
    Holds(Box<Node>),
}

impl Links for Hand {
    type Link = Box<Node>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Node>>) {
        if let Hand::Holds(node) = self {
            visitor.link(node);
        }
    }
}

type Known = Cell<Option<NonNull<Node>>>;

/// A node with links of itself, in memory that it owns, and in memory that this owns.
struct Node {
    key: usize,
    #[expect(dead_code, reason = "counted, not read")]
    token: Rc<()>,
    visited: bool,
    /// Moved by a morph within the morph: then pointers from and to it are not looked at.
    is_inner: bool,
    up: *const Node,
    hand: Hand,
    boxed: Box<[Hand; 2]>,
    cell: RefCell<Option<Box<Node>>>,
    #[expect(clippy::vec_box, reason = "links are boxes")]
    many: Vec<Box<Node>>,
    /// The nodes of these numbers.
    near: Vec<(usize, Known)>,
}

const _: () = assert!(size_of::<Hand>() == size_of::<usize>());

impl Node {
    fn new(key: usize, token: &Rc<()>) -> Box<Node> {
        Box::new(Node {
            key,
            token: Rc::clone(token),
            visited: false,
            is_inner: false,
            up: std::ptr::null(),
            hand: Hand::Empty,
            boxed: Box::new([Hand::Empty, Hand::Empty]),
            cell: RefCell::new(None),
            many: Vec::new(),
            near: Vec::new(),
        })
    }

    /// Hangs a node below this one, where `path` says.
    fn hang(&mut self, new: Box<Node>, path: usize) {
        let (turn, path) = (path % 5, path / 5);
        let hand = match turn {
            0 => &mut self.hand,
            1 | 2 => &mut self.boxed[turn - 1],
            3 => match self.cell.get_mut() {
                Some(node) => return node.hang(new, path),
                none => return *none = Some(new),
            },
            _ if self.many.is_empty() || path % 3 == 0 => return self.many.push(new),
            _ => {
                let at = path % self.many.len();
                return self.many[at].hang(new, path / 3);
            }
        };
        match hand {
            Hand::Empty => *hand = Hand::Holds(new),
            Hand::Holds(node) => node.hang(new, path),
        }
    }

    fn set_inner(&mut self) {
        self.is_inner = true;
        self.each_child_mut(&mut Node::set_inner);
    }

    fn each_child(&self, each: &mut dyn FnMut(&Node)) {
        for hand in self.boxed.iter().chain([&self.hand]) {
            if let Hand::Holds(node) = hand {
                each(node);
            }
        }
        if let Some(node) = &*self.cell.borrow() {
            each(node);
        }
        for node in &self.many {
            each(node);
        }
    }

    fn each_child_mut(&mut self, each: &mut dyn FnMut(&mut Node)) {
        for hand in self.boxed.iter_mut().chain([&mut self.hand]) {
            if let Hand::Holds(node) = hand {
                each(node);
            }
        }
        for node in (self.cell.get_mut().iter_mut()).chain(&mut self.many) {
            each(node);
        }
    }
}

/// Shows fields in an order that `order` gives; where it is odd, often without the last links.
fn traverse<'a>(node: &'a mut Node, visit: &mut Visit<'_, 'a, Box<Node>>, order: usize) {
    node.visited = true;
    if order % 11 == 3
        && let Hand::Holds(below) = &mut node.hand
    {
        // Another morph, of what this one has not met.
        below.each_child_mut(&mut Node::set_inner);
        morph(&mut below.many, order + 1);
    }
    let [first, second] = &mut *node.boxed;
    let mut fields: Vec<(bool, &'a mut (dyn Links<Link = Box<Node>> + 'a))> = vec![
        (true, &mut node.hand),
        (true, second),
        (true, first),
        (true, node.cell.get_mut()),
        (true, &mut node.many),
        (false, back(&mut node.up)),
    ];
    for (_, known) in &mut node.near {
        fields.push((false, back(known)));
    }
    let len = fields.len();
    fields.rotate_left(order % len);
    if order % 2 == 1 {
        fields.reverse();
    }
    for (i, (owns, field)) in fields.into_iter().enumerate() {
        let is_hidden = owns && order % 2 == 1 && order % 5 < 3 && i + 3 >= len;
        if !is_hidden {
            visit(field);
        }
    }
}

/// A tree of nodes that hang where `paths` say.
fn tree(paths: impl Iterator<Item = usize>, token: &Rc<()>) -> Option<Box<Node>> {
    let mut root: Option<Box<Node>> = None;
    for (key, path) in paths.enumerate() {
        let new = Node::new(key, token);
        match &mut root {
            Some(root) => root.hang(new, path),
            None => root = Some(new),
        }
    }
    root
}

fn morph(root: &mut impl Links<Link = Box<Node>>, order: usize) {
    let layout = [
        Layout::DepthFirst,
        Layout::VanEmdeBoas,
        Layout::BreadthFirst,
    ][order % 3];
    let morph = Morph::new().layout(layout).under_any_allocator();
    let mut turn = order;
    let report = morph.run(root, |node, visit| {
        turn = turn.wrapping_mul(7).wrapping_add(3);
        traverse(node, visit, turn % 1000);
    });
    assert!(report.is_ok_and(|report| report.nodes == 0 || !report.placed));
}

/// By number where the nodes lie, and whether they were moved by a morph within the morph.
type Places = HashMap<usize, (*const Node, bool)>;

fn places(root: &Option<Box<Node>>) -> Places {
    fn add(node: &Node, places: &mut Places) {
        let old = places.insert(node.key, (node, node.is_inner));
        assert_eq!(old, None, "node {} is there twice", node.key);
        node.each_child(&mut |child| add(child, places));
    }
    let mut places = HashMap::new();
    root.iter().for_each(|root| add(root, &mut places));
    places
}

/// Points from each node to some others, and to its parent.
fn tie(node: &mut Node, up: *const Node, places: &Places) {
    let pointer = |key| Cell::new(NonNull::new(places[&key].0.cast_mut()));
    (node.up, node.visited, node.is_inner) = (up, false, false);
    let (key, nodes) = (node.key, places.len());
    let near = [key, 0, key / 2, (key * 5 + 1) % nodes, nodes - 1];
    node.near = near.map(|key| (key, pointer(key))).into();
    node.each_child_mut(&mut |child| tie(child, places[&key].0, places));
}

/// Looks at the pointers of all nodes that the morph has visited; returns their number.
fn look(node: &Node, up: *const Node, places: &Places) -> usize {
    let is_looked_at = node.visited && !node.is_inner;
    if is_looked_at {
        assert_eq!(node.up, up, "from node {}", node.key);
        for (key, known) in &node.near {
            let (place, is_inner) = places[key];
            let held = known.get().map(|node| node.as_ptr().cast_const());
            assert!(is_inner || held == Some(place), "{} to {key}", node.key);
        }
    }
    let mut looked_at = usize::from(is_looked_at);
    node.each_child(&mut |child| looked_at += look(child, node, places));
    looked_at
}

#[test]
fn links_and_pointers_may_be_shown_in_any_order_or_not_at_all() {
    fn property(paths: Vec<u16>, orders: Vec<u8>) -> bool {
        let token = Rc::new(());
        let mut root = tree(paths.iter().copied().map(usize::from), &token);
        for order in orders {
            let before = places(&root);
            if let Some(root) = &mut root {
                tie(root, std::ptr::null(), &before);
            }
            morph(&mut root, usize::from(order));
            let after = places(&root);
            assert_eq!(after.len(), paths.len());
            if let Some(root) = &root {
                let moved = look(root, std::ptr::null(), &after);
                let stayed = after
                    .iter()
                    .filter(|&(key, &(place, is_inner))| !is_inner && before[key].0 == place);
                assert!(moved > 0 && stayed.count() + moved <= paths.len());
            }
        }
        drop(root);
        Rc::strong_count(&token) == 1
    }
    let property: fn(Vec<u16>, Vec<u8>) -> bool = property;
    if cfg!(miri) {
        (QuickCheck::new().rng(Gen::new(12)).tests(4)).quickcheck(property);
    } else {
        QuickCheck::new().quickcheck(property);
    }
}

const NODES: usize = if cfg!(miri) { 40 } else { 2000 };

fn show_all<'a>(node: &'a mut Node, visit: &mut Visit<'_, 'a, Box<Node>>) {
    traverse(node, visit, 0);
}

/// Calls `run` for a tree of [`NODES`], which moves all of them or none, and checks their pointers.
fn check(root: &mut Option<Box<Node>>, moves: bool, run: impl FnOnce(&mut Option<Box<Node>>)) {
    let before = places(root);
    tie(root.as_mut().unwrap(), std::ptr::null(), &before);
    run(root);
    let after = places(root);
    let looked_at = look(root.as_ref().unwrap(), std::ptr::null(), &after);
    assert_eq!((looked_at, after.len()), (NODES, NODES));
    if moves {
        // The new places were allocated while all the old ones were in use.
        let old: HashSet<_> = before.values().collect();
        assert!(after.values().all(|place| !old.contains(place)));
    } else {
        assert_eq!(before, after);
    }
}

#[test]
fn nodes_move_in_order_or_not_at_all() {
    let token = Rc::new(());
    let mut root = tree((0..NODES).map(|key| key * 31 % 1009), &token);
    let morph = Morph::new().layout(Layout::DepthFirst);
    check(&mut root, false, |root| {
        let refused = morph.run(root, show_all);
        assert_eq!(refused.unwrap_err(), MorphError::NotCcMalloc);
        let no_room = morph.run_with(root, &mut show_all, None, true);
        let bytes = (NODES * size_of::<Node>()) as u64;
        assert!(matches!(no_room, Err(MorphError::OutOfMemory { bytes: told }) if told >= bytes));
    });
    check(&mut root, true, |root| {
        let report = morph.under_any_allocator().run(root, show_all).unwrap();
        assert_eq!((report.nodes, report.placed), (NODES, false));
    });
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
    let token = Rc::new(());
    let mut root = tree((0..NODES).map(|key| key * 31 % 1009), &token);
    let stride = size_of::<Node>() as u64;
    for moves in [false, true] {
        check(&mut root, moves, |root| {
            let collected = collect(root, &mut show_all, None).unwrap().unwrap();
            let offset = |v: u64| v * 7 % NODES as u64 * stride;
            let offsets = (0..NODES as u64).map(offset).collect();
            let room = (offsets, NODES as u64 * stride);
            let mut placer = Anywhere::default();
            // SAFETY: both are the system's.
            let places =
                unsafe { NewPlaces::allocate(collected, room, stride, &mut placer, false) };
            let places = places.unwrap();
            assert!(places.as_asked());
            if moves {
                assert_eq!(places.move_in().1.count(), NODES - 1);
            }
        });
    }
    drop(root);
    assert_eq!(Rc::strong_count(&token), 1);
}
