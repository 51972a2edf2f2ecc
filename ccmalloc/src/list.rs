//! Doubly linked lists of metadata.

use core::cell::Cell;
use core::ptr::null;

/// Neighbours in a list.
pub(crate) struct Links<N> {
    pub(crate) next: Cell<*const N>,
    pub(crate) prev: Cell<*const N>,
}

impl<N> Links<N> {
    pub(crate) const fn new() -> Self {
        Self {
            next: Cell::new(null()),
            prev: Cell::new(null()),
        }
    }
}

/// A node of a list that starts at a cell and belongs to one thread.
///
/// # Safety
/// - A node stays mapped while it is in a list, or the head of the list is reset first.
/// - The links of a node in a list are set by these methods alone, and a node is in one list.
pub(crate) unsafe trait Listed: Sized {
    /// The node's neighbours.
    fn links(&self) -> &Links<Self>;

    /// Puts the node, which is in no list, in front of the list that starts at `head`.
    fn link_before(&self, head: &Cell<*const Self>) {
        self.links().prev.set(null());
        self.links().next.set(head.get());
        // SAFETY: null or a node in the list, which is mapped.
        if let Some(next) = unsafe { head.get().as_ref() } {
            next.links().prev.set(self);
        }
        head.set(self);
    }

    /// Takes the node off the list that starts at `head`.
    fn unlink_from(&self, head: &Cell<*const Self>) {
        let (next, prev) = (
            self.links().next.replace(null()),
            self.links().prev.replace(null()),
        );
        // SAFETY: null or a node in the list, which is mapped.
        if let Some(next) = unsafe { next.as_ref() } {
            next.links().prev.set(prev);
        }
        // SAFETY: null or a node in the list, which is mapped.
        match unsafe { prev.as_ref() } {
            Some(prev) => prev.links().next.set(next),
            None => head.set(next),
        }
    }
}
