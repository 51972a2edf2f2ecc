//! treeadd: builds a complete binary tree and adds its values up four times.
//!
//! Nodes are allocated in the order of the walks, so an allocator that serves ascending addresses
//! gives a fresh heap the best layout. The thesis gained 10 to 20 % here, and does not say how many
//! sums it took: one would not pay for a layout, a hundred would pay for any.

use std::alloc::Layout;
use std::hint::black_box;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError, TreeNode};

use super::{Olden, Size};
use crate::placement::Placement;

const SUMS: u64 = 4;

/// A node of a complete tree, for bisort as well: 24 bytes, as in C.
#[derive(TreeNode)]
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

/// The tree. The input is its number of levels.
pub struct TreeAdd(Option<Box<Node>>);

impl Olden for TreeAdd {
    const NAME: &'static str = "treeadd";
    const POLICY: Policy = Policy::Closest;
    /// Four times the number of nodes.
    const RESULTS: [u64; 4] = [262_140, 1_048_572, 4_194_300, 16_777_212];
    type Input = u32;

    fn input(size: Size) -> u32 {
        [16, 18, 20, 22][size as usize]
    }

    fn nodes(&levels: &u32) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<Node>(), (1 << levels) - 1)]
    }

    fn build<P: Placement>(&levels: &u32, placement: P) -> Self {
        let nodes = (1 << levels) - 1;
        TreeAdd(build(0, nodes, |_| 1, ptr::null(), placement))
    }

    /// Depth-first: the tree is walked as a whole.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmorph::Layout::DepthFirst);
        morph.run(&mut self.0, Node::children).map(drop)
    }

    fn work<P: Placement>(&mut self, _: &u32, placement: P, _: impl Fn(&mut Self)) -> u64 {
        // The compiler must not find out that all sums are the same.
        let sums = (0..SUMS).map(|_| sum(black_box(self.0.as_deref()), placement));
        sums.sum()
    }
}

fn sum<P: Placement>(node: Option<&Node>, placement: P) -> u64 {
    let Some(node) = node else {
        return 0;
    };
    for child in [&node.left, &node.right].into_iter().flatten() {
        placement.prefetch(&raw const **child);
    }
    sum(node.left.as_deref(), placement)
        + sum(node.right.as_deref(), placement)
        + u64::from(node.value)
}
