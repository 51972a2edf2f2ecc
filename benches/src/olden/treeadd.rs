//! treeadd: builds a complete binary tree and adds its values up.
//!
//! From the descriptions of Olden and the thesis's table 4.2 (256 K nodes). Nodes are allocated in
//! the order of the walks, so any allocator that serves ascending addresses lays a fresh heap out
//! as well as it can be; the thesis gained 10 to 20 % here. It does not say how many sums it took.
//! Here there are four: one would not pay for a layout, and a hundred would pay for any.

use std::alloc::Layout;
use std::hint::black_box;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError, TreeNode};

use super::complete_tree::{Node, build};
use super::{Olden, Size, check_equal};
use crate::placement::Placement;

const SUMS: u64 = 4;

/// The tree. The input is its number of levels.
#[derive(Debug)]
pub struct TreeAdd {
    root: Option<Box<Node>>,
}

impl Olden for TreeAdd {
    const NAME: &'static str = "treeadd";
    // Built in one go, in the order of the sums.
    const POLICY: Policy = Policy::Closest;
    type Input = u32;

    fn input(size: Size) -> u32 {
        match size {
            Size::Tiny => 16,
            Size::Thesis => 18,
            Size::Quick => 20,
            // 96 MiB, and 128 MiB as the system's malloc has them.
            Size::Large => 22,
        }
    }

    fn nodes(&levels: &u32) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<Node>(), (1 << levels) - 1)]
    }

    fn build<P: Placement>(&levels: &u32, placement: P) -> Self {
        TreeAdd {
            root: build(0, (1 << levels) - 1, |_| 1, ptr::null(), placement),
        }
    }

    /// Depth-first: the tree is walked as a whole.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmodel::Layout::DepthFirst);
        morph.run(&mut self.root, Node::children).map(drop)
    }

    fn work<P: Placement>(
        &mut self,
        _levels: &u32,
        placement: P,
        _relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        // The compiler must not find out that all sums are the same.
        let sums = (0..SUMS).map(|_| sum(black_box(self.root.as_deref()), placement));
        Ok(sums.sum())
    }

    fn check(&self, &levels: &u32, result: u64) -> Result<(), String> {
        check_equal(result, SUMS * ((1 << levels) - 1))
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
