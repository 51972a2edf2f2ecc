//! The derive in a crate that names no `std`, as many with trees are.

#![no_std]

extern crate alloc;

use alloc::boxed::Box;
use ccmorph::{Morph, TreeNode, split};

#[split(cold(note))]
#[derive(TreeNode)]
struct Node {
    key: u64,
    #[child]
    next: Option<Box<Node>>,
    note: [u64; 4],
}

#[test]
fn types_of_such_a_crate_are_morphed() {
    let mut root = None;
    for key in 0..100 {
        root = Some(Box::new(Node::from(NodeFields {
            key,
            next: root,
            note: [key; 4],
        })));
    }
    Morph::new()
        .under_any_allocator()
        .run(&mut root, Node::children)
        .unwrap();
    let (mut at, mut keys) = (root.as_deref(), (0..100).rev());
    while let Some(node) = at {
        assert_eq!(Some(node.key), keys.next());
        assert_eq!(node.note(), &[node.key; 4]);
        at = node.next.as_deref();
    }
    assert_eq!(keys.next(), None);
}
