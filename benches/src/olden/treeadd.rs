//! treeadd: a complete binary tree is built and its values are added up.
//!
//! From the descriptions of Olden and the thesis's table 4.2 (256 K nodes): a recursion allocates
//! each node before its children, and another one in the same order adds. Creation order is the
//! order of the walks, so a fresh heap is laid out as well as it can be by any allocator that
//! serves addresses in ascending order; the thesis gained 10 to 20 % here, for this reason.
//!
//! Choices: the sequential copies of the program take the number of sums as an argument, and the
//! thesis does not tell its own. Here there are four: a tree that is walked once is nothing to lay
//! out, and one that is walked a hundred times would make any layout free. Build, layout and sums
//! are recorded apart, so that a reader can weigh them differently.

use std::alloc::Layout;
use std::hint::black_box;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError, TreeNode};

use super::placement::Placement;
use super::{Olden, Size};

/// Times that the values are added up.
const SUMS: u64 = 4;

/// One node: 24 bytes, a number and two links, as in C.
#[derive(Debug, TreeNode)]
struct Node {
    value: u32,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
}

const _: () = assert!(size_of::<Node>() == 24);

/// A complete binary tree.
#[derive(Debug)]
pub struct TreeAdd {
    root: Option<Box<Node>>,
}

impl Olden for TreeAdd {
    const NAME: &'static str = "treeadd";

    // Built in one go, in the order of the sums.
    const POLICY: Policy = Policy::Closest;

    /// Levels of the tree.
    type Input = u32;

    fn input(size: Size) -> u32 {
        match size {
            // 64 K nodes, 1.5 MiB.
            Size::Tiny => 16,
            Size::Thesis => 18,
            // 24 MiB.
            Size::Quick => 20,
            // 4 M nodes: 96 MiB, and 128 MiB as the system's malloc has them.
            Size::Large => 22,
        }
    }

    fn nodes(&levels: &u32) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<Node>(), (1 << levels) - 1)]
    }

    fn build<P: Placement>(&levels: &u32, placement: P) -> Self {
        TreeAdd {
            root: build(levels, ptr::null(), placement),
        }
    }

    /// Depth-first: the tree is walked as a whole.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmodel::Layout::DepthFirst);
        morph.run(&mut self.root, Node::children)?;
        Ok(())
    }

    fn work<P: Placement>(
        &mut self,
        _levels: &u32,
        placement: P,
        _relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        // The compiler must not find out that each sum is that of the one before.
        let sums = (0..SUMS).map(|_| sum(black_box(self.root.as_deref()), placement));
        Ok(sums.sum())
    }

    /// Each node has the value 1.
    fn check(&self, &levels: &u32, result: u64) -> Result<(), String> {
        let expected = SUMS * ((1 << levels) - 1);
        if result == expected {
            Ok(())
        } else {
            Err(format!("the sums come to {result}, not {expected}"))
        }
    }
}

/// A node is allocated before its children, and used next together with its parent.
fn build<P: Placement>(levels: u32, parent: *const Node, placement: P) -> Option<Box<Node>> {
    let deeper = levels.checked_sub(1)?;
    let leaf = Node {
        value: 1,
        left: None,
        right: None,
    };
    let mut node = placement.new_near(leaf, parent);
    let address: *const Node = &raw const *node;
    node.left = build(deeper, address, placement);
    node.right = build(deeper, address, placement);
    Some(node)
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
