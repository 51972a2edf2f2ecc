//! bisort: sorts numbers in a binary tree forwards and backwards, bitonically.
//!
//! From G. Bilardi and A. Nicolau, *Adaptive bitonic sorting* (SIAM J. Comput. 18, 1989). The
//! numbers are the in-order sequence of a complete tree, and one more, the *spare*, comes behind
//! them. A sequence is sorted by sorting its halves in opposite directions and merging them:
//!
//! ```text
//! merge(root, spare):                   the sequence is left subtree, root, right subtree, spare
//!     exchange root and spare, if out of order
//!     go down both subtrees side by side:
//!         exchange the two values, if out of order, and with them one subtree of each
//!         then both go left or both go right, into the part that is not settled yet
//!     merge(left, root), merge(right, spare)
//! ```
//!
//! Subtrees are exchanged by their links, which takes them away from where their parents lie: the
//! placement ages as the sort goes. The thesis does not use the program; the size `thesis` is
//! Olden's own. After each sort the program folds the sequence into its result.

use std::alloc::Layout;
use std::mem;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError, TreeNode};

use super::complete_tree::{Node, build};
use super::{Olden, Size, check_equal};
use crate::chain::add_in_order;
use crate::placement::Placement;

/// Which way to sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    fn opposite(self) -> Direction {
        match self {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        }
    }

    /// Whether `first` must not come before `second`.
    #[inline(always)]
    fn forbids(self, first: u32, second: u32) -> bool {
        (first > second) == (self == Direction::Ascending)
    }
}

/// A sequence of numbers. The input is the number of levels of its tree.
#[derive(Debug)]
pub struct Bisort {
    root: Option<Box<Node>>,
    spare: u32,
}

/// The number at a place before the sort. A bijection, the finaliser of `MurmurHash3`, so that no
/// number comes twice: then adaptive sorting needs no rule for equal ones.
fn number(place: u32) -> u32 {
    let mut bits = place ^ (place >> 16);
    bits = bits.wrapping_mul(0x85EB_CA6B);
    bits ^= bits >> 13;
    bits = bits.wrapping_mul(0xC2B2_AE35);
    bits ^ (bits >> 16)
}

/// A sum over the sequence that depends on its order.
fn fold(sum: u64, value: u32) -> u64 {
    add_in_order(sum, u64::from(value))
}

impl Olden for Bisort {
    const NAME: &'static str = "bisort";
    // Built in one go; the sort allocates nothing.
    const POLICY: Policy = Policy::Closest;
    type Input = u32;

    fn input(size: Size) -> u32 {
        match size {
            Size::Tiny => 16,
            Size::Thesis => 17,
            // Sorting takes long, and its cost per number grows.
            Size::Quick => 18,
            // 48 MiB: six times what a program gets of a shared last-level cache.
            Size::Large => 21,
        }
    }

    fn nodes(&levels: &u32) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<Node>(), (1 << levels) - 1)]
    }

    fn build<P: Placement>(&levels: &u32, placement: P) -> Self {
        let numbers = 1_u32 << levels;
        Bisort {
            root: build(0, numbers - 1, number, ptr::null(), placement),
            spare: number(numbers - 1),
        }
    }

    /// As the model chooses: merges go down paths.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        morph.run(&mut self.root, Node::children).map(drop)
    }

    /// The tree is laid out again between the two sorts.
    fn work<P: Placement>(
        &mut self,
        _levels: &u32,
        placement: P,
        relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        self.sort(Direction::Ascending, placement);
        let forwards = self.sequence(0);
        if let Some(morph) = relayout {
            self.morph(morph)?;
        }
        self.sort(Direction::Descending, placement);
        Ok(self.sequence(forwards))
    }

    /// Against a sort of the standard library.
    fn check(&self, &levels: &u32, result: u64) -> Result<(), String> {
        let mut numbers: Vec<u32> = (0..1 << levels).map(number).collect();
        numbers.sort_unstable();
        let both_ways = numbers.iter().chain(numbers.iter().rev());
        check_equal(result, both_ways.fold(0, |sum, &value| fold(sum, value)))
    }
}

impl Bisort {
    fn sort<P: Placement>(&mut self, direction: Direction, placement: P) {
        if let Some(root) = self.root.as_deref_mut() {
            sort(root, &mut self.spare, direction, placement);
        }
    }

    /// Folds the sequence from its beginning to its end into `sum`.
    fn sequence(&self, sum: u64) -> u64 {
        fold(in_order(self.root.as_deref(), sum), self.spare)
    }
}

fn in_order(node: Option<&Node>, sum: u64) -> u64 {
    node.map_or(sum, |node| {
        let left = in_order(node.left.as_deref(), sum);
        in_order(node.right.as_deref(), fold(left, node.value))
    })
}

/// Sorts the subtree below `root`, and `spare` behind it.
fn sort<P: Placement>(root: &mut Node, spare: &mut u32, direction: Direction, placement: P) {
    if let (Some(left), Some(right)) = (root.left.as_deref_mut(), root.right.as_deref_mut()) {
        sort(left, &mut root.value, direction, placement);
        sort(right, spare, direction.opposite(), placement);
        merge(root, spare, direction, placement);
    } else if direction.forbids(root.value, *spare) {
        mem::swap(&mut root.value, spare);
    }
}

/// Sorts a bitonic sequence: the subtree below `root`, and `spare` behind it.
fn merge<P: Placement>(root: &mut Node, spare: &mut u32, direction: Direction, placement: P) {
    let root_exchanged = direction.forbids(root.value, *spare);
    if root_exchanged {
        mem::swap(&mut root.value, spare);
    }
    let mut pair = root.left.as_deref_mut().zip(root.right.as_deref_mut());
    while let Some((left, right)) = pair {
        let children = [&left.left, &left.right, &right.left, &right.right];
        for child in children.into_iter().flatten() {
            placement.prefetch(&raw const **child);
        }
        let exchanged = direction.forbids(left.value, right.value);
        if exchanged {
            mem::swap(&mut left.value, &mut right.value);
            // The subtrees that go with the values are those that the walk does not go into.
            if root_exchanged {
                mem::swap(&mut left.right, &mut right.right);
            } else {
                mem::swap(&mut left.left, &mut right.left);
            }
        }
        pair = if exchanged == root_exchanged {
            left.left.as_deref_mut().zip(right.left.as_deref_mut())
        } else {
            left.right.as_deref_mut().zip(right.right.as_deref_mut())
        };
    }
    if let (Some(left), Some(right)) = (root.left.as_deref_mut(), root.right.as_deref_mut()) {
        merge(left, &mut root.value, direction, placement);
        merge(right, spare, direction, placement);
    }
}
