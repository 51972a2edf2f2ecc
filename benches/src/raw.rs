//! A search tree and hash chains whose nodes come from an allocator of choice. Links are raw,
//! because several allocators serve nodes in one process, and `Box` only knows the global one.

use std::alloc::{Layout, handle_alloc_error};
use std::hint::black_box;
use std::ptr::NonNull;

use crate::keys::bucket_of;
use crate::placement::NodeAllocator;

type Link<T> = Option<NonNull<T>>;

/// Moves `node` into memory from `allocator`, near `hint`.
fn new_in<T>(allocator: &impl NodeAllocator, hint: Link<u8>, node: T) -> NonNull<T> {
    const { assert!(size_of::<T>() == 24, "all nodes have the same size") };
    let layout = Layout::new::<T>();
    let place = allocator.allocate(layout, hint);
    let place = place.unwrap_or_else(|| handle_alloc_error(layout)).cast();
    // SAFETY: fresh memory of this layout, by the allocator's contract.
    unsafe { place.write(node) };
    place
}

/// Moves a node out of its memory and frees that.
///
/// # Safety
/// - `node` came from [`new_in`] with this allocator, was not taken before and is not used again.
unsafe fn take<T>(allocator: &impl NodeAllocator, node: NonNull<T>) -> T {
    // SAFETY: initialized by `new_in`.
    let value = unsafe { node.read() };
    // SAFETY: it came from this allocator with this layout.
    unsafe { allocator.deallocate(node.cast(), Layout::new::<T>()) };
    value
}

struct Node {
    key: u64,
    left: Link<Node>,
    right: Link<Node>,
}

/// A set of `u64` keys in a binary search tree that does not balance itself.
///
/// Invariants: every link leads to an initialized node from `allocator`, and no two links lead to
/// the same one; no node is freed while the tree lives.
#[derive(Debug)]
pub struct RawTree<A: NodeAllocator> {
    root: Link<Node>,
    allocator: A,
}

impl<A: NodeAllocator> RawTree<A> {
    /// A tree with `keys`, which differ, inserted in their order, each near its parent.
    pub fn with_keys(allocator: A, keys: &[u64]) -> Self {
        let root = None;
        let mut tree = RawTree { root, allocator };
        for &key in keys {
            tree.insert(key);
        }
        tree
    }

    /// Inserts a key that is not there, with its parent as the hint.
    fn insert(&mut self, key: u64) {
        let mut parent = None;
        let mut link = &mut self.root;
        while let Some(mut node) = *link {
            // SAFETY: links lead to live, initialized nodes; `&mut self` is the only borrow of
            // them.
            let node_ref = unsafe { node.as_mut() };
            assert_ne!(key, node_ref.key, "the keys are different");
            parent = Some(node.cast());
            link = if key < node_ref.key {
                &mut node_ref.left
            } else {
                &mut node_ref.right
            };
        }
        let (left, right) = (None, None);
        *link = Some(new_in(&self.allocator, parent, Node { key, left, right }));
    }

    /// The low half of `key` as the node holds it, or `u32::MAX` when there is no such node.
    ///
    /// Without `black_box`, the compiler could answer from the query alone, and lookups would not
    /// wait for each other.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is asked for")]
    pub fn get(&self, key: u64) -> u32 {
        let mut link = self.root;
        while let Some(node) = link {
            // SAFETY: links lead to live, initialized nodes, and `&self` keeps them unchanged.
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
        let mut pending: Vec<NonNull<Node>> = self.root.take().into_iter().collect();
        while let Some(node) = pending.pop() {
            // SAFETY: every node is from this allocator and is reached once, over its only link.
            let Node { left, right, .. } = unsafe { take(&self.allocator, node) };
            pending.extend(left);
            pending.extend(right);
        }
    }
}

struct Entry {
    key: u64,
    value: u64,
    next: Link<Entry>,
}

/// A hash table of chains of `u64` keys with `u64` values. Keys may come twice.
///
/// Invariant: every link leads to an initialized entry from `allocator`, and no two links lead to
/// the same one.
#[derive(Debug)]
pub struct RawChains<A: NodeAllocator> {
    buckets: Vec<Link<Entry>>,
    allocator: A,
}

impl<A: NodeAllocator> RawChains<A> {
    pub fn new(allocator: A, buckets: usize) -> Self {
        let buckets = vec![None; buckets];
        RawChains { buckets, allocator }
    }

    /// Puts an entry in front of the chain of `key`, near the first one there. The hint of the
    /// first is the bucket: unlike no hint, it says that more is to come.
    pub fn push(&mut self, key: u64, value: u64) {
        let bucket = bucket_of(key, self.buckets.len());
        let slot = &mut self.buckets[bucket];
        let next = *slot;
        let hint = next.map_or_else(|| NonNull::from(&*slot).cast(), NonNull::cast);
        let entry = Entry { key, value, next };
        *slot = Some(new_in(&self.allocator, Some(hint), entry));
    }

    /// Removes the first entry with `key` and returns its value.
    pub fn remove(&mut self, key: u64) -> Option<u64> {
        let bucket = bucket_of(key, self.buckets.len());
        let mut slot = &mut self.buckets[bucket];
        loop {
            let mut link = (*slot)?;
            // SAFETY: links lead to live, initialized entries; `&mut self` is the only access.
            let entry = unsafe { link.as_mut() };
            if entry.key == key {
                *slot = entry.next;
                // SAFETY: it is from this allocator, and nothing leads to it any more.
                return Some(unsafe { take(&self.allocator, link) }.value);
            }
            slot = &mut entry.next;
        }
    }

    /// The low half of the sum of all values in the chain of `key`. Walks the whole chain, as a
    /// table does that is asked for a missing key.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is asked for")]
    pub fn walk(&self, key: u64) -> u32 {
        let mut sum = 0_u64;
        let mut rest = self.buckets[bucket_of(key, self.buckets.len())];
        while let Some(link) = rest {
            // SAFETY: links lead to live, initialized entries, and `&self` keeps them unchanged.
            let entry = unsafe { link.as_ref() };
            sum = sum.wrapping_add(entry.value);
            rest = entry.next;
        }
        sum as u32
    }
}

impl<A: NodeAllocator> Drop for RawChains<A> {
    fn drop(&mut self) {
        for mut rest in self.buckets.drain(..) {
            while let Some(link) = rest {
                // SAFETY: every entry is from this allocator and is reached once.
                rest = unsafe { take(&self.allocator, link) }.next;
            }
        }
    }
}
