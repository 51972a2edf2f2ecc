//! Phase 1: walk the structure and write down where each link is.
//!
//! The walk is breadth-first over arrays: node `v` is visited when the walk reaches index `v`, and the links that it shows
//! are appended. So a parent has a smaller number than its children, as [`Shape`](ccmodel::Shape) wants it, there is no
//! recursion, and the nodes that come next are known, which lets their cache misses overlap.
//!
//! This is the only phase that runs code of the user's, and it changes nothing: when that code panics, the lists are dropped
//! and the structure is what it was.

use crate::{Links, MorphError, Visit, prefetch};
use ccmodel::NO_NODE;
use std::marker::PhantomData;

/// The nodes below a root, with the link that owns each, all mutably borrowed for `'a`.
///
/// Invariants, for each `v` below `len()`; the three lists are equally long:
/// - `links[v]` was made from a `&'a mut Box<T>`, which nothing has used since; the places are pairwise disjoint;
/// - `nodes[v]` is the pointer that this box holds, read as a raw pointer, and no reference to the node exists;
/// - `parents[v]` is the node whose visit showed the link, a smaller number, or [`NO_NODE`] for links of the root.
#[derive(Debug)]
pub(crate) struct Nodes<'a, T> {
    links: Vec<*mut *mut T>,
    nodes: Vec<*mut T>,
    parents: Vec<u32>,
    borrow: PhantomData<&'a mut T>,
}

impl<'a, T: 'a> Nodes<'a, T> {
    /// Visits all that can be reached from `root` through the links shown. O(n).
    pub(crate) fn collect<R, F>(
        root: &'a mut R,
        traverse: &mut F,
    ) -> Result<Nodes<'a, T>, MorphError>
    where
        R: Links<Node = T> + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut T, &'w mut Visit<'v, 'n, T>),
    {
        let mut all = Nodes {
            links: Vec::new(),
            nodes: Vec::new(),
            parents: Vec::new(),
            borrow: PhantomData,
        };
        root.show(&mut |link| all.push(link, NO_NODE));
        let mut number = 0;
        while let Some(&node) = all.nodes.get(number as usize) {
            if let Some(&later) = all.nodes.get(number as usize + prefetch::AHEAD) {
                prefetch::object(later, size_of::<T>());
            }
            // SAFETY: the pointer is that of a box which is borrowed for 'a (invariant), so it is aligned and points to
            // an initialised T. The reference is unique: links are disjoint, hence so are the boxes' contents; each
            // index is visited once; and neither this module nor, as the box's borrow lasts, safe code anywhere else
            // makes another reference to it during 'a.
            let node: &'a mut T = unsafe { &mut *node };
            traverse(node, &mut |links: &'a mut (dyn Links<Node = T> + 'a)| {
                links.show(&mut |link| all.push(link, number));
            });
            if all.nodes.len() >= NO_NODE as usize {
                return Err(MorphError::TooManyNodes);
            }
            number += 1;
        }
        Ok(all)
    }

    fn push(&mut self, link: &'a mut Box<T>, parent: u32) {
        // A structure this large ends in an error; what is shown beyond it need not be kept.
        if self.nodes.len() >= NO_NODE as usize {
            return;
        }
        let link: *mut *mut T = std::ptr::from_mut(link).cast();
        // SAFETY: it was a valid reference just now, and `Box<T>` of a sized T has the layout of a pointer to its contents
        // (documentation of std::boxed, "Memory layout"). Reading it as a raw pointer makes no claim on the contents.
        let node = unsafe { link.read() };
        self.links.push(link);
        self.nodes.push(node);
        self.parents.push(parent);
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// By node number: who showed its link.
    pub(crate) fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// By node number: the pointer that its link holds.
    pub(crate) fn nodes(&self) -> &[*mut T] {
        &self.nodes
    }

    /// By node number: the place of the link.
    pub(crate) fn links(&self) -> &[*mut *mut T] {
        &self.links
    }

    /// By node number: the address of the node.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.addr() as u64).collect()
    }
}
