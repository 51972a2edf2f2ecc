//! bisort: numbers in a binary tree are sorted forwards and backwards, bitonically.
//!
//! From G. Bilardi and A. Nicolau, *Adaptive bitonic sorting* (SIAM J. Comput. 18, 1989), the
//! algorithm that Olden's program names: the numbers are the in-order sequence of a complete tree,
//! and one more, the *spare*, comes behind them. A sequence is sorted by sorting its halves in
//! opposite directions, which makes it bitonic, and merging it:
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
//! Subtrees are exchanged by their links, so that a merge of n numbers costs O(log n) exchanges,
//! and the sort O(n log n) steps. Each exchange takes two subtrees away from where their parents
//! lie: the placement of a tree that is being sorted ages as it goes.
//!
//! Choices: the thesis does not use the program; Olden's usual 128 K numbers stand for its size.
//! The numbers are all different, for which adaptive sorting needs no rule. After each of the two
//! sorts the program walks over the tree and folds the sequence into its result.

use std::alloc::Layout;
use std::mem;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError, TreeNode};

use crate::chain::add_in_order;

use super::placement::Placement;
use super::{Olden, Size};

/// One node: 24 bytes, as in C.
#[derive(Debug, TreeNode)]
struct Node {
    value: u32,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
}

const _: () = assert!(size_of::<Node>() == 24);

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

/// A sequence of numbers.
#[derive(Debug)]
pub struct Bisort {
    root: Option<Box<Node>>,
    spare: u32,
}

/// The number at a place of the sequence, before it is sorted. A bijection, the finaliser of
/// `MurmurHash3`, so that no number comes twice.
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

    // Built in one go; what the sort exchanges is not allocated.
    const POLICY: Policy = Policy::Closest;

    /// Levels of the tree.
    type Input = u32;

    fn input(size: Size) -> u32 {
        match size {
            // 64 K numbers, 1.5 MiB.
            Size::Tiny => 16,
            Size::Thesis => 17,
            // 6 MiB: sorting takes long, and its cost per number grows.
            Size::Quick => 18,
            // 2 M numbers, 48 MiB: six times what a program gets of a shared last-level cache.
            // Twice as many take three times as long.
            Size::Large => 21,
        }
    }

    fn nodes(&levels: &u32) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<Node>(), (1 << levels) - 1)]
    }

    fn build<P: Placement>(&levels: &u32, placement: P) -> Self {
        let numbers = 1_u32 << levels;
        Bisort {
            root: build(0, numbers - 1, ptr::null(), placement),
            spare: number(numbers - 1),
        }
    }

    /// As the model chooses: merges go down paths.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        morph.run(&mut self.root, Node::children)?;
        Ok(())
    }

    /// The tree is laid out again between the two sorts.
    fn work<P: Placement>(
        &mut self,
        _levels: &u32,
        placement: P,
        relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        self.sort(Direction::Ascending, placement);
        let forwards = self.sequence(0, fold);
        if let Some(morph) = relayout {
            self.morph(morph)?;
        }
        self.sort(Direction::Descending, placement);
        Ok(self.sequence(forwards, fold))
    }

    /// What a sort of the standard library makes of the same numbers.
    fn check(&self, &levels: &u32, result: u64) -> Result<(), String> {
        let mut numbers: Vec<u32> = (0..1 << levels).map(number).collect();
        numbers.sort_unstable();
        let forwards = numbers.iter().fold(0, |sum, &value| fold(sum, value));
        let expected = numbers
            .iter()
            .rev()
            .fold(forwards, |sum, &value| fold(sum, value));
        if result == expected {
            Ok(())
        } else {
            Err(format!("the sequences give {result}, not {expected}"))
        }
    }
}

impl Bisort {
    fn sort<P: Placement>(&mut self, direction: Direction, placement: P) {
        if let Some(root) = self.root.as_deref_mut() {
            sort(root, &mut self.spare, direction, placement);
        }
    }

    /// Folds the sequence from its beginning to its end.
    fn sequence(&self, sum: u64, fold: fn(u64, u32) -> u64) -> u64 {
        fold(in_order(self.root.as_deref(), sum, fold), self.spare)
    }
}

fn in_order(node: Option<&Node>, sum: u64, fold: fn(u64, u32) -> u64) -> u64 {
    match node {
        None => sum,
        Some(node) => {
            let left = in_order(node.left.as_deref(), sum, fold);
            in_order(node.right.as_deref(), fold(left, node.value), fold)
        }
    }
}

/// The tree of the `count` numbers from `first` on; a node is allocated before its children, and
/// used next together with its parent.
fn build<P: Placement>(
    first: u32,
    count: u32,
    parent: *const Node,
    placement: P,
) -> Option<Box<Node>> {
    let half = count.checked_sub(1)? / 2;
    let leaf = Node {
        value: number(first + half),
        left: None,
        right: None,
    };
    let mut node = placement.new_near(leaf, parent);
    let address: *const Node = &raw const *node;
    node.left = build(first, half, address, placement);
    node.right = build(first + half + 1, half, address, placement);
    Some(node)
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
            // The half of the subtrees that goes with the values is the one that the walk does not
            // go into.
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
