//! Which leading bytes the heads of a node of byte strings may leave out.
//!
//! Paths, URLs, composed keys: the strings of one node often begin alike, and a head of their first
//! eight bytes would tell nothing. The heads of a node therefore leave out a prefix, which is *not*
//! compared on the way down, nor stored:
//!
//! - All entries below a node lie between two separators, its **fences**: the entries before and
//!   after it in its ancestors.
//! - If the fences share p bytes, so does every string between them, in the order of bytes: the
//!   entries, and each query that a search takes to this node.
//! - So heads may leave out any number of bytes up to p. A node at the left or right edge of the
//!   tree has only one fence, and p = 0.
//!
//! **Invariant**: `prefix_bytes` of each node is at most the number of bytes that its fences share.
//! It must be looked after wherever a fence moves *outwards*; a fence that moves inwards, when a
//! node is split or gives entries away, only adds to what the fences share. For strings a < b < c,
//! `common(a, c) = min(common(a, b), common(b, c))`, so that it suffices to compare the old fence
//! with the new one. (A search that found the invariant broken would miss keys, no worse.)
//!
//! The order of byte strings is std's own, so that all of this holds whatever a user does.

use super::node::{Form, NodePtr};
use crate::head::{bytes_of, common_prefix, is_byte_string};

/// An entry as a fence: the node and slot of a key.
type Fence = (NodePtr, usize);

impl<K, V> Form<K, V> {
    /// Whether nodes leave out prefixes.
    #[inline(always)]
    pub(super) fn has_prefixes(self) -> bool {
        is_byte_string::<K>()
    }

    /// Number of leading bytes that two keys share.
    ///
    /// # Safety
    /// Both are slots of nodes of this form with keys in them, which are byte strings.
    pub(super) unsafe fn shared_bytes(self, left: Fence, right: Fence) -> usize {
        // SAFETY: both keys are initialised, and nothing is written meanwhile.
        let (left, right) = unsafe {
            (
                &*self.key_at(left.0, left.1),
                &*self.key_at(right.0, right.1),
            )
        };
        let (left, right) = (bytes_of(left), bytes_of(right));
        // (Any other kind of key shares nothing.)
        common_prefix(left.unwrap_or(&[]), right.unwrap_or(&[]))
    }

    /// Lets a node leave out no more than `most` bytes.
    ///
    /// # Safety
    /// `node` is a node of this form. Keys are byte strings.
    #[inline]
    pub(super) unsafe fn limit_prefix(self, node: NodePtr, most: usize) {
        // SAFETY: the header is initialised.
        if unsafe { self.prefix_bytes(node) } > most {
            // SAFETY: byte strings have heads.
            unsafe { self.set_prefix(node, most) };
        }
    }

    /// The same for a node and the first node of each level below it, whose left fence they share.
    ///
    /// # Safety
    /// As for [`limit_prefix`](Self::limit_prefix).
    pub(super) unsafe fn limit_prefix_of_left_spine(self, mut node: NodePtr, most: usize) {
        // SAFETY: an inner node has a first child.
        unsafe {
            self.limit_prefix(node, most);
            for _ in 0..self.level(node) {
                node = self.child(node, 0);
                self.limit_prefix(node, most);
            }
        }
    }

    /// The fences of a node: the entries of its ancestors that it lies between.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form.
    unsafe fn fences(self, node: NodePtr) -> (Option<Fence>, Option<Fence>) {
        let (mut left, mut right) = (None, None);
        let mut below = node;
        // SAFETY: a node is one of its parent's children.
        unsafe {
            while let Some(parent) = self.parent(below) {
                let index = self.index_of(parent, below);
                if left.is_none() && index > 0 {
                    left = Some((parent, index - 1));
                }
                if right.is_none() && index < self.len(parent) {
                    right = Some((parent, index));
                }
                if left.is_some() && right.is_some() {
                    break;
                }
                below = parent;
            }
        }
        (left, right)
    }

    /// Lets a node leave out as much as its fences share, if its heads have become too much alike.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form. Keys are byte strings.
    pub(super) unsafe fn lengthen_prefix(self, node: NodePtr) {
        // SAFETY: the heads up to the length are initialised.
        let heads = unsafe { core::slice::from_raw_parts(self.head_at(node, 0), self.len(node)) };
        if heads.windows(2).all(|pair| pair[0] != pair[1]) {
            return;
        }
        // SAFETY: the fences are entries of inner nodes.
        unsafe {
            if let (Some(left), Some(right)) = self.fences(node) {
                let shared = self.shared_bytes(left, right);
                if shared > self.prefix_bytes(node) {
                    self.set_prefix(node, shared);
                }
            }
        }
    }
}
