//! bisort: sorts numbers in a binary tree forwards and backwards, bitonically.
//!
//! From G. Bilardi and A. Nicolau, *Adaptive bitonic sorting* (SIAM J. Comput. 18, 1989). The
//! sequence is a complete tree in order, followed by one more number, the *spare*. Its halves are
//! sorted in opposite directions and merged. Exchanged subtrees end up far from their parents:
//!
//! ```text
//! merge(root, spare):   exchange root and spare, if out of order
//!     go down both subtrees side by side:
//!         exchange the two values, if out of order, and with them one subtree of each
//!         then both go left or both go right, into the part that is not settled yet
//!     merge(left, root), merge(right, spare)
//! ```

use std::alloc::Layout;
use std::mem::swap;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError, TreeNode};

use super::treeadd::{Node, build};
use super::{Olden, Size};
use crate::placement::Placement;
use crate::queries::add_in_order;

/// A sequence of numbers. The input is the number of levels of its tree.
pub struct Bisort {
    root: Option<Box<Node>>,
    spare: u32,
}

/// The number at a place before the sort: the finaliser of `MurmurHash3`, a bijection, because
/// adaptive sorting needs different numbers.
fn number(place: u32) -> u32 {
    let mut bits = place ^ (place >> 16);
    bits = bits.wrapping_mul(0x85EB_CA6B);
    bits ^= bits >> 13;
    bits = bits.wrapping_mul(0xC2B2_AE35);
    bits ^ (bits >> 16)
}

impl Olden for Bisort {
    const NAME: &'static str = "bisort";
    const POLICY: Policy = Policy::Closest;
    const RESULTS: [u64; 4] = [
        16_376_497_979_176_359_098,
        188_515_094_008_618_678,
        9_373_574_582_511_452_370,
        6_796_013_530_485_888_098,
    ];
    type Input = u32;

    fn input(size: Size) -> u32 {
        [16, 17, 18, 21][size as usize]
    }

    fn nodes(&levels: &u32) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<Node>(), (1 << levels) - 1)]
    }

    fn build<P: Placement>(&levels: &u32, placement: P) -> Self {
        let last = (1_u32 << levels) - 1;
        let root = build(0, last, number, ptr::null(), placement);
        let spare = number(last);
        Bisort { root, spare }
    }

    /// As the model chooses: merges go down paths.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        morph.run(&mut self.root, Node::children).map(drop)
    }

    fn work<P: Placement>(&mut self, _: &u32, placement: P, relayout: impl Fn(&mut Self)) -> u64 {
        let forwards = self.sort(true, placement, 0);
        relayout(self);
        self.sort(false, placement, forwards)
    }
}

impl Bisort {
    /// Sorts, and folds the sequence into `sum`.
    fn sort<P: Placement>(&mut self, ascending: bool, placement: P, sum: u64) -> u64 {
        if let Some(root) = self.root.as_deref_mut() {
            sort(root, &mut self.spare, ascending, placement);
        }
        fold(in_order(self.root.as_deref(), sum), self.spare)
    }
}

fn fold(sum: u64, value: u32) -> u64 {
    add_in_order(sum, u64::from(value))
}

fn in_order(node: Option<&Node>, sum: u64) -> u64 {
    node.map_or(sum, |node| {
        let left = in_order(node.left.as_deref(), sum);
        in_order(node.right.as_deref(), fold(left, node.value))
    })
}

/// Exchanges two values that are out of order; whether they were.
#[inline(always)]
fn order(first: &mut u32, second: &mut u32, ascending: bool) -> bool {
    let wrong = (*first > *second) == ascending;
    if wrong {
        swap(first, second);
    }
    wrong
}

fn sort<P: Placement>(root: &mut Node, spare: &mut u32, ascending: bool, placement: P) {
    if let (Some(left), Some(right)) = (root.left.as_deref_mut(), root.right.as_deref_mut()) {
        sort(left, &mut root.value, ascending, placement);
        sort(right, spare, !ascending, placement);
        merge(root, spare, ascending, placement);
    } else {
        order(&mut root.value, spare, ascending);
    }
}

/// Sorts a bitonic sequence: the subtree below `root`, and `spare` behind it.
fn merge<P: Placement>(root: &mut Node, spare: &mut u32, ascending: bool, placement: P) {
    let root_exchanged = order(&mut root.value, spare, ascending);
    let mut pair = root.left.as_deref_mut().zip(root.right.as_deref_mut());
    while let Some((left, right)) = pair {
        let children = [&left.left, &left.right, &right.left, &right.right];
        for child in children.into_iter().flatten() {
            placement.prefetch(&raw const **child);
        }
        let exchanged = order(&mut left.value, &mut right.value, ascending);
        if exchanged {
            // The subtrees that go with the values are those that the walk does not go into.
            if root_exchanged {
                swap(&mut left.right, &mut right.right);
            } else {
                swap(&mut left.left, &mut right.left);
            }
        }
        pair = if exchanged == root_exchanged {
            left.left.as_deref_mut().zip(right.left.as_deref_mut())
        } else {
            left.right.as_deref_mut().zip(right.right.as_deref_mut())
        };
    }
    if let (Some(left), Some(right)) = (root.left.as_deref_mut(), root.right.as_deref_mut()) {
        merge(left, &mut root.value, ascending, placement);
        merge(right, spare, ascending, placement);
    }
}
