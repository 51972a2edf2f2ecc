//! A list that is built in the order in which it is walked.
//!
//! The allocator already put one item behind the other, and the processor fetches the next lines by
//! itself. A morph finds nothing to improve.

use super::mix;
use crate::morph;
use ccmorph::{Operation, TreeNode};

pub(super) fn before(size: usize) -> u64 {
    walks(build(size))
}

pub(super) fn after(size: usize) -> u64 {
    let mut first = build(size);
    let morph = morph().operation(Operation::Walk);
    morph
        .run(&mut first, Item::children)
        .expect("memory for the nodes");
    walks(first)
}

#[derive(TreeNode)]
struct Item {
    values: [u64; 6],
    #[child]
    next: Option<Box<Item>>,
}

fn build(size: usize) -> Option<Box<Item>> {
    let mut first = None;
    let mut link = &mut first;
    for value in 0..size as u64 {
        let item = Box::new(Item {
            values: [value; 6],
            next: None,
        });
        link = &mut link.insert(item).next;
    }
    first
}

fn walks(mut first: Option<Box<Item>>) -> u64 {
    let sum = (0..30).fold(0, |sum, round| {
        let items = std::iter::successors(first.as_deref(), |item| item.next.as_deref());
        items.fold(sum, |sum, item| mix(sum, item.values[round % 6]))
    });
    // One by one: dropping the first would recurse through all.
    while let Some(item) = first {
        first = item.next;
    }
    sum
}
