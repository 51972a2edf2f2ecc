//! The walk over an index tree: which node hangs where, and each place that holds an index.

use super::link::{Indices, NodeIndex};
use super::permutation::Permutation;
use crate::collect::Weigh;
use crate::prefetch;
use ccmodel::NO_NODE;
use std::fmt;

/// What a walk has found. Nodes are numbered by their visit; their *position* is the one in the
/// slice.
///
/// Invariants: `order` and `parents` are equally long, below [`NO_NODE`]; `order` holds positions
/// in the slice, each at most once, and `number_at[order[v]] == v`; a parent's number is smaller
/// than its child's. `places` and `targets` are equally long, and `targets` holds positions in the
/// slice.
pub(super) struct Walk<'a> {
    first_index: usize,
    /// By position: the number of the node's visit, or [`NO_NODE`] so far.
    number_at: Vec<u32>,
    /// By number: the position.
    pub(super) order: Vec<u32>,
    /// By number: the number of the node that showed it first, or [`NO_NODE`].
    pub(super) parents: Vec<u32>,
    /// How many of the nodes hang below the roots: the first ones.
    pub(super) reached: usize,
    /// Every place that holds the number of a node of the slice, and that node's position.
    places: Vec<&'a mut dyn NodeIndex>,
    targets: Vec<u32>,
    /// By number; empty without weights.
    pub(super) weights: Vec<f64>,
}

impl<'a> Walk<'a> {
    /// Visits each node once: those below the roots, breadth-first, then
    /// the rest, breadth-first from each node on that no other one has shown by then. O(n).
    ///
    /// `nodes` has fewer than [`NO_NODE`] items. `weigh` is called for a node before `traverse` is.
    pub(super) fn run<T, R, F>(
        nodes: &'a mut [T],
        first_index: usize,
        roots: &'a mut R,
        traverse: &mut F,
        mut weigh: Option<Weigh<'_, T>>,
    ) -> Walk<'a>
    where
        R: Indices + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut T, &'w mut IndexVisit<'v, 'n>),
    {
        let mut walk = Walk {
            first_index,
            number_at: vec![NO_NODE; nodes.len()],
            order: Vec::with_capacity(nodes.len()),
            parents: Vec::with_capacity(nodes.len()),
            reached: 0,
            places: Vec::new(),
            targets: Vec::new(),
            weights: Vec::with_capacity(weigh.as_ref().map_or(0, |_| nodes.len())),
        };
        let mut nodes = Unvisited {
            first: nodes.as_ptr(),
            nodes: nodes.iter_mut().map(Some).collect(),
        };
        walk.below(NO_NODE).child(roots);
        walk.visit_pending(&mut nodes, 0, traverse, &mut weigh);
        walk.reached = walk.order.len();
        for at in (0..NO_NODE).take(walk.number_at.len()) {
            if walk.number_at[at as usize] == NO_NODE {
                let number = walk.order.len();
                walk.visit_later(at, NO_NODE);
                walk.visit_pending(&mut nodes, number, traverse, &mut weigh);
            }
        }
        walk
    }

    fn below(&mut self, parent: u32) -> IndexVisit<'_, 'a> {
        IndexVisit { walk: self, parent }
    }

    /// Visits nodes from the given number on until none is left that was shown.
    fn visit_pending<T, F>(
        &mut self,
        nodes: &mut Unvisited<'a, T>,
        mut number: usize,
        traverse: &mut F,
        weigh: &mut Option<Weigh<'_, T>>,
    ) where
        F: for<'n, 'v, 'w> FnMut(&'n mut T, &'w mut IndexVisit<'v, 'n>),
    {
        while let Some(&at) = self.order.get(number) {
            if let Some(&later) = self.order.get(number + prefetch::AHEAD) {
                nodes.prefetch(later as usize);
            }
            if let Some(node) = nodes.nodes[at as usize].take() {
                if let Some(weigh) = weigh {
                    self.weights.push(weigh(node));
                }
                traverse(node, &mut self.below(number_u32(number)));
            }
            number += 1;
        }
    }

    pub(super) fn child(&mut self, index: &'a mut dyn NodeIndex, parent: u32) {
        if let Some(at) = self.reference(index)
            && self.number_at[at as usize] == NO_NODE
        {
            self.visit_later(at, parent);
        }
    }

    /// Records a place, and returns the position of the node that it numbers, if any.
    pub(super) fn reference(&mut self, index: &'a mut dyn NodeIndex) -> Option<u32> {
        let at = index.get()?.checked_sub(self.first_index)?;
        if at >= self.number_at.len() {
            return None;
        }
        let at = number_u32(at);
        self.places.push(index);
        self.targets.push(at);
        Some(at)
    }

    fn visit_later(&mut self, at: u32, parent: u32) {
        self.number_at[at as usize] = number_u32(self.order.len());
        self.order.push(at);
        self.parents.push(parent);
    }

    /// How many bytes the lists of nodes and indices take.
    pub(super) fn list_bytes(&self) -> u64 {
        let node_bytes = 3 * size_of::<u32>();
        let index_bytes = size_of::<&mut dyn NodeIndex>() + size_of::<u32>();
        (self.order.len() * node_bytes + self.places.len() * index_bytes) as u64
    }

    /// Rewrites all indices for nodes that go to `permutation.new_of(position)`, or none: `Err` has
    /// a new index that does not fit its place.
    ///
    /// Does not panic, as the sealed [`Slot`](super::link::Slot) does not.
    pub(super) fn renumber(self, permutation: &Permutation) -> Result<(), usize> {
        let Walk {
            mut places,
            mut targets,
            first_index,
            ..
        } = self;
        // In a loop of their own, so that the misses overlap.
        for target in &mut targets {
            *target = permutation.new_of[*target as usize];
        }
        let index = |target: u32| first_index.checked_add(target as usize);
        for is_written in [false, true] {
            for (number, &target) in targets.iter().enumerate() {
                if let Some(later) = places.get(number + prefetch::AHEAD) {
                    prefetch::object(std::ptr::from_ref(&**later).cast::<u8>(), 1);
                }
                match index(target) {
                    Some(index) if is_written => places[number].set(index),
                    Some(index) if places[number].can_hold(index) => {}
                    index => return Err(index.unwrap_or(usize::MAX)),
                }
            }
        }
        Ok(())
    }
}

/// The nodes of a slice, each borrowed until it is visited.
struct Unvisited<'a, T> {
    /// Where the first one lies, for prefetching.
    first: *const T,
    nodes: Vec<Option<&'a mut T>>,
}

impl<T> Unvisited<'_, T> {
    /// Prefetches a node and its entry.
    fn prefetch(&self, at: usize) {
        prefetch::object(&raw const self.nodes[at], 1);
        prefetch::object(self.first.wrapping_add(at), size_of::<T>());
    }
}

/// For numbers and positions, of which there are fewer than [`NO_NODE`].
fn number_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(NO_NODE)
}

/// Takes the indices of a node that the traversal of an index tree shows. Each index must share the
/// lifetime `'a` of the node's borrow.
pub struct IndexVisit<'v, 'a> {
    walk: &'v mut Walk<'a>,
    /// The node whose indices are shown, by the number of its visit, or
    /// [`NO_NODE`] for none.
    parent: u32,
}

impl<'a> IndexVisit<'_, 'a> {
    /// Shows the indices of children, which shall lie near the node.
    ///
    /// A node keeps the first parent that showed it: shared children and cycles are fine.
    #[inline]
    pub fn child<I: Indices + ?Sized>(&mut self, indices: &'a mut I) {
        indices.show(&mut |index| self.walk.child(index, self.parent));
    }

    /// Shows other indices of nodes, such as that of the parent: they are renumbered, and do not
    /// affect the order.
    #[inline]
    pub fn reference<I: Indices + ?Sized>(&mut self, indices: &'a mut I) {
        indices.show(&mut |index| {
            self.walk.reference(index);
        });
    }
}

impl fmt::Debug for IndexVisit<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexVisit").finish_non_exhaustive()
    }
}
