//! A tree cut into pieces of neighbouring entries, for threads that share the work.

use allocator_api2::alloc::Allocator;

use super::node::Form;
use super::{Edge, Place, Root, Tree};

/// Neighbouring entries of a tree: all those below some neighbouring children of one node, with the
/// separators between them, or some neighbouring entries of a leaf; and the entry before them,
/// perhaps.
///
/// Invariants, for as long as the nodes are as they were when the piece was made:
/// - `start` and `end` are children of an inner node, `start.slot <= end`, or the bounds of a range
///   of slots of a leaf;
/// - `before` is the entry right before those.
pub(crate) struct Piece<K, V> {
    form: Form<K, V>,
    root: Root,
    before: Option<Place>,
    start: Place,
    end: usize,
}

impl<K, V> Clone for Piece<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Piece<K, V> {}

impl<K, V> Piece<K, V> {
    /// All entries of a tree; none if it has no nodes.
    pub(crate) fn whole<A: Allocator>(tree: &Tree<K, V, A>) -> Option<Self> {
        let root = tree.root()?;
        let form = tree.form();
        Some(Piece {
            form,
            root,
            before: None,
            start: Place {
                node: root.0,
                slot: 0,
            },
            // SAFETY: the root is a node of this tree.
            end: unsafe { form.len(root.0) },
        })
    }

    /// Cuts the piece into two of about the same size, keeps the first, and returns the second;
    /// `None` if it is too small.
    ///
    /// # Safety
    /// The nodes are as they were when the piece was made.
    pub(crate) unsafe fn split(&mut self) -> Option<Self> {
        // SAFETY: by the invariant `start.node` is a node, and its children up to `end` are
        // initialised.
        unsafe {
            while self.form.level(self.start.node) > 0 {
                let Place { node, slot } = self.start;
                if slot < self.end {
                    let middle = slot + (self.end - slot).div_ceil(2);
                    let separator = Place {
                        node,
                        slot: middle - 1,
                    };
                    return Some(self.split_at(middle, middle - 1, Some(separator)));
                }
                let child = self.form.child(node, slot);
                self.start = Place {
                    node: child,
                    slot: 0,
                };
                self.end = self.form.len(child);
            }
        }
        let slots = self.end - self.start.slot;
        let middle = self.start.slot + slots / 2;
        (slots > 1).then(|| self.split_at(middle, middle, None))
    }

    /// Ends the piece at `end`, and returns what starts at `start`, with the entry before that.
    fn split_at(&mut self, start: usize, end: usize, before: Option<Place>) -> Self {
        let mut second = *self;
        second.start.slot = start;
        second.before = before;
        self.end = end;
        second
    }

    /// The entry before the others, the edges around the others, and the form and root of the tree.
    ///
    /// # Safety
    /// As for [`split`](Self::split).
    pub(crate) unsafe fn edges(self) -> (Option<Place>, [Edge; 2], Form<K, V>, Root) {
        let Place { node, slot } = self.start;
        let form = self.form;
        // SAFETY: as in `split`.
        let edges = unsafe {
            if form.level(node) == 0 {
                [slot, self.end].map(|slot| Edge { leaf: node, slot })
            } else {
                [
                    form.first_edge_below(form.child(node, slot)),
                    form.last_edge_below(form.child(node, self.end)),
                ]
            }
        };
        (self.before, edges, form, self.root)
    }
}
