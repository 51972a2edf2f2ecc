//! Complete binary trees of numbers, for treeadd and bisort.

use ccmorph::TreeNode;

use crate::placement::Placement;

/// One node: 24 bytes, as in C.
#[derive(Debug, TreeNode)]
pub(super) struct Node {
    pub(super) value: u32,
    #[child]
    pub(super) left: Option<Box<Node>>,
    #[child]
    pub(super) right: Option<Box<Node>>,
}

const _: () = assert!(size_of::<Node>() == 24);

/// The tree whose in-order sequence is `value(first)`, `value(first + 1)`, and so on, `count` in
/// all. A node is allocated before its children, near its parent.
pub(super) fn build<P: Placement>(
    first: u32,
    count: u32,
    value: impl Fn(u32) -> u32 + Copy,
    parent: *const Node,
    placement: P,
) -> Option<Box<Node>> {
    let half = count.checked_sub(1)? / 2;
    let leaf = Node {
        value: value(first + half),
        left: None,
        right: None,
    };
    let mut node = placement.new_near(leaf, parent);
    let address = &raw const *node;
    node.left = build(first, half, value, address, placement);
    node.right = build(first + half + 1, half, value, address, placement);
    Some(node)
}
