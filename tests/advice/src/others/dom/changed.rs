//! Elements near their parents, or what a layout needs in a vector.

use super::before::{Element, Node, build, frames};
use std::cell::RefCell;
use std::rc::Rc;

pub fn hint(size: usize) -> u64 {
    frames(&build(size, |parent, element| {
        ccmalloc::near(&**parent, || Rc::new(RefCell::new(element)))
    }))
}

struct Area {
    padding: u64,
    height: u64,
    parent: usize,
}

/// Areas in the order of the document: a parent comes before its children.
pub fn idea(size: usize) -> u64 {
    let root = build(size, |_, element| Rc::new(RefCell::new(element)));
    let mut areas = Vec::new();
    list(&root, 0, &mut areas);
    let mut sum = 0_u64;
    for round in 0..5 {
        areas[0].padding = round;
        areas.iter_mut().for_each(|it| it.height = it.padding);
        for at in (1..areas.len()).rev() {
            let Area { height, parent, .. } = areas[at];
            areas[parent].height += height;
        }
        let is_dominant = |it: &&Area| it.height > areas[it.parent].height / 2;
        let dominant = areas[1..].iter().filter(is_dominant).count() as u64;
        sum = sum.rotate_left(7) ^ areas[0].height ^ dominant;
    }
    sum ^ root.borrow().names()
}

fn list(node: &Node, parent: usize, areas: &mut Vec<Area>) {
    let (element, at) = (node.borrow(), areas.len());
    let Element { padding, .. } = *element;
    areas.push(Area {
        padding,
        height: 0,
        parent,
    });
    element.children.iter().for_each(|it| list(it, at, areas));
}
