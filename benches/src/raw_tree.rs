//! A search tree whose nodes come from an allocator of choice.
//!
//! The allocators under comparison must serve the same nodes in the same process, so they cannot
//! all be the global one, and `Box` is no use here. What remains is the tree of
//! `search_tree` with raw links: the same 24-byte node, the same search.

use std::alloc::Layout;
use std::hint::black_box;
use std::ptr::NonNull;

/// An allocator for nodes that may take a hint.
///
/// # Safety
/// - [`allocate`](NodeAllocator::allocate) returns memory fit for `layout` that is nobody else's
///   until it is passed to [`deallocate`](NodeAllocator::deallocate), whatever the hint.
pub unsafe trait NodeAllocator {
    /// Memory for `layout`, near `hint` where the allocator can; `None` when there is none left.
    fn allocate(&self, layout: Layout, hint: Option<NonNull<u8>>) -> Option<NonNull<u8>>;

    /// Takes memory back.
    ///
    /// # Safety
    /// - `ptr` came from `self.allocate` with the same `layout` and was not taken back since.
    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout);
}

/// One node; the same bytes as `crate::search_tree::Node`.
struct RawNode {
    key: u64,
    left: Option<NonNull<RawNode>>,
    right: Option<NonNull<RawNode>>,
}

const _: () = assert!(size_of::<RawNode>() == 24);

/// A set of `u64` keys in a binary search tree that does not balance itself.
///
/// Invariants:
/// - every link leads to a node from `allocator` that is initialised, and no two links lead to the
///   same one;
/// - no node is freed while the tree lives.
#[derive(Debug)]
pub struct RawTree<A: NodeAllocator> {
    root: Option<NonNull<RawNode>>,
    nodes: usize,
    allocator: A,
}

impl<A: NodeAllocator> RawTree<A> {
    /// An empty tree on `allocator`.
    pub fn new(allocator: A) -> Self {
        RawTree {
            root: None,
            nodes: 0,
            allocator,
        }
    }

    /// A tree with `keys`, inserted in their order.
    ///
    /// # Panics
    /// When memory runs out.
    pub fn with_keys(allocator: A, keys: &[u64]) -> Self {
        let mut tree = RawTree::new(allocator);
        for &key in keys {
            tree.insert(key);
        }
        tree
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// Inserts `key` with its parent as the hint; false when it was there.
    ///
    /// # Panics
    /// When memory runs out.
    pub fn insert(&mut self, key: u64) -> bool {
        let mut parent = None;
        let mut link = &mut self.root;
        while let Some(mut node) = *link {
            // SAFETY: links lead to live, initialised nodes, and `&mut self` makes this the only
            // borrow of them.
            let node_ref = unsafe { node.as_mut() };
            if key == node_ref.key {
                return false;
            }
            parent = Some(node.cast());
            link = if key < node_ref.key {
                &mut node_ref.left
            } else {
                &mut node_ref.right
            };
        }
        let layout = Layout::new::<RawNode>();
        let Some(node) = self
            .allocator
            .allocate(layout, parent)
            .map(NonNull::cast::<RawNode>)
        else {
            std::alloc::handle_alloc_error(layout);
        };
        // SAFETY: `node` is fresh memory of a `RawNode`'s layout, by the allocator's contract.
        unsafe {
            node.write(RawNode {
                key,
                left: None,
                right: None,
            });
        }
        *link = Some(node);
        self.nodes += 1;
        true
    }

    /// The low half of `key` as the node holds it, or `u32::MAX` when there is no such node.
    ///
    /// The answer is read through a pointer that the compiler knows nothing about; else it could be
    /// told from the query alone, and lookups would not wait for each other.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half is what is asked for"
    )]
    pub fn get(&self, key: u64) -> u32 {
        let mut link = self.root;
        while let Some(node) = link {
            // SAFETY: links lead to live, initialised nodes, and `&self` keeps them unchanged.
            let node_ref = unsafe { node.as_ref() };
            if node_ref.key == key {
                return black_box(node_ref).key as u32;
            }
            link = if key < node_ref.key {
                node_ref.left
            } else {
                node_ref.right
            };
        }
        u32::MAX
    }
}

impl<A: NodeAllocator> Drop for RawTree<A> {
    fn drop(&mut self) {
        let mut pending: Vec<NonNull<RawNode>> = self.root.take().into_iter().collect();
        while let Some(node) = pending.pop() {
            // SAFETY: `node` was reached over the only link to it and is freed below only; its
            // content is copied out before that.
            let RawNode { left, right, .. } = unsafe { node.read() };
            pending.extend(left);
            pending.extend(right);
            // SAFETY: the node came from this allocator with this layout, and each node is reached
            // once.
            unsafe {
                self.allocator
                    .deallocate(node.cast(), Layout::new::<RawNode>());
            }
        }
    }
}
