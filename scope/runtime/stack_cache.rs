//! What a thread keeps of its last call stack, so that the next is walked only where they differ.

use core::cell::Cell;

use super::unwind::Memo;

/// Frames of a stack that are kept; the outermost of deeper ones are cut off.
pub(crate) const MAX_FRAMES: usize = 256;

/// Nodes of a thread's last stack, from the outermost frame on. A recursive stack has as many, in
/// circles.
#[repr(C)]
pub(crate) struct Nodes {
    len: Cell<usize>,
    of: [Cell<u32>; MAX_FRAMES],
}

impl Nodes {
    /// Keeps `frames` of them, if there are as many; returns how many.
    pub(crate) fn keep(&self, frames: usize) -> usize {
        let kept = self.len.get().min(frames);
        self.len.set(kept);
        kept
    }

    /// The node of a frame that is kept.
    pub(crate) fn at(&self, depth: usize) -> u32 {
        self.of[depth].get()
    }

    pub(crate) fn add(&self, depth: usize, node: u32) {
        if let Some(entry) = self.of.get(depth) {
            entry.set(node);
            self.len.set(depth + 1);
        }
    }
}

/// What a thread needs for its call stacks. All zeros is a cache without any.
#[repr(C)]
pub(crate) struct StackCache {
    pub(crate) memo: Memo,
    /// Where a call stack is put; used while the thread is busy.
    pub(crate) frames: [u64; MAX_FRAMES],
    pub(crate) nodes: Nodes,
}
