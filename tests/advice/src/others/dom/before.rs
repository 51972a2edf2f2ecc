//! A document of reference-counted elements that know their parents, laid out again and again.

use fastrand::Rng;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

pub(super) type Node = Rc<RefCell<Element>>;

pub(super) struct Element {
    tag: String,
    class: String,
    pub(super) padding: u64,
    pub(super) height: u64,
    pub(super) parent: Weak<RefCell<Element>>,
    pub(super) children: Vec<Node>,
}

impl Element {
    pub(super) fn names(&self) -> u64 {
        (self.tag.len() + self.class.len()) as u64
    }
}

fn element(random: &mut Rng) -> Element {
    Element {
        tag: ["div", "span", "p", "table"][random.usize(..4)].to_owned(),
        class: format!("class-of-kind-{}", random.u8(..)),
        padding: random.u64(1..9),
        height: 0,
        parent: Weak::new(),
        children: Vec::new(),
    }
}

/// Scripts add elements here and there.
pub(super) fn build(size: usize, new: impl Fn(&Node, Element) -> Node) -> Node {
    let mut random = Rng::with_seed(44);
    let root = Rc::new(RefCell::new(element(&mut random)));
    let mut all = vec![root.clone()];
    for _ in 1..size {
        let parent = &all[random.usize(..all.len())];
        let child = new(parent, element(&mut random));
        child.borrow_mut().parent = Rc::downgrade(parent);
        parent.borrow_mut().children.push(child.clone());
        all.push(child);
    }
    root
}

/// Heights, from those of the children; returns that of the node.
fn layout(node: &Node) -> u64 {
    let mut element = node.borrow_mut();
    element.height = element.padding + element.children.iter().map(layout).sum::<u64>();
    element.height
}

/// How many elements take more than half of their parents.
fn dominant(node: &Node) -> u64 {
    let element = node.borrow();
    let parent = element.parent.upgrade();
    let above = parent.map_or(u64::MAX, |parent| parent.borrow().height);
    let own = u64::from(element.height > above / 2);
    own + element.children.iter().map(dominant).sum::<u64>()
}

pub(super) fn frames(root: &Node) -> u64 {
    let mut sum = 0_u64;
    for round in 0..5 {
        root.borrow_mut().padding = round;
        sum = sum.rotate_left(7) ^ layout(root) ^ dominant(root);
    }
    sum ^ root.borrow().names()
}

pub fn run(size: usize) -> u64 {
    frames(&build(size, |_, element| Rc::new(RefCell::new(element))))
}
