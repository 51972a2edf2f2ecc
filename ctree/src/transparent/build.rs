//! Trees of many entries at once: from sorted ones, and from another tree.

use alloc::vec;
use alloc::vec::Vec;

use allocator_api2::boxed::Box;
use ccmalloc::CcMalloc;

use super::iter::Range;
use super::{Link, Node, TransparentCTree};
use crate::frozen::Fault;
use crate::{CheckError, OrderError};

impl<K, V> TransparentCTree<K, V> {
    /// Builds a tree of entries whose keys are strictly ascending, in which no way down is longer
    /// than log2(n + 1), rounded up. O(n).
    ///
    /// Nodes are allocated in the order of their keys, one behind the other where there is room.
    ///
    /// # Errors
    /// [`OrderError`] with the place of the first key that is not greater than the one before.
    ///
    /// # Examples
    /// ```
    /// use ctree::TransparentCTree;
    ///
    /// let tree = TransparentCTree::from_sorted_iter((0..1023u32).map(|n| (n, ())))?;
    /// assert_eq!(tree.height(), 10);
    /// assert_eq!(TransparentCTree::from_sorted_iter([(1, ()), (1, ())]).unwrap_err().index(), 1);
    /// # Ok::<(), ctree::OrderError>(())
    /// ```
    pub fn from_sorted_iter(
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<TransparentCTree<K, V>, OrderError>
    where
        K: Ord,
    {
        let entries: Vec<(K, V)> = entries.into_iter().collect();
        if let Some(before) = entries.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
            return Err(OrderError::new(before + 1));
        }
        let len = entries.len();
        let root = balanced(&mut entries.into_iter(), len);
        Ok(TransparentCTree { root, len })
    }

    /// Whether the keys are in order and as many as [`len`](Self::len) says; all that a wrong `Ord`
    /// can spoil. O(n).
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), CheckError>
    where
        K: Ord,
    {
        let mut before: Option<&K> = None;
        let mut rank = 0;
        for (key, _) in Range::all(self.root.as_deref()) {
            if before.is_some_and(|before| before >= key) {
                return Err(CheckError::new(Fault::Order { rank }));
            }
            before = Some(key);
            rank += 1;
        }
        if rank == self.len {
            Ok(())
        } else {
            Err(CheckError::new(Fault::Lengths))
        }
    }
}

/// The next `len` entries, of which there are as many, as a tree. Recurses once for each level of
/// what it makes.
fn balanced<K, V>(entries: &mut vec::IntoIter<(K, V)>, len: usize) -> Link<K, V> {
    if len == 0 {
        return None;
    }
    let left = balanced(entries, (len - 1) / 2);
    let (key, value) = entries.next()?;
    let right = balanced(entries, len / 2);
    let node = Node {
        key,
        value,
        left,
        right,
    };
    Some(Box::new_in(node, CcMalloc))
}

/// A node, and the empty link that its copy is to hang on.
type Copied<'a, K, V> = (&'a Node<K, V>, &'a mut Link<K, V>);

/// A tree of the same shape, its nodes one behind the other in depth-first order where there is
/// room.
impl<K: Clone, V: Clone> Clone for TransparentCTree<K, V> {
    fn clone(&self) -> TransparentCTree<K, V> {
        // The copy is a tree from the beginning, so that a clone that panics leaves one that is
        // dropped without recursion.
        let mut copy = TransparentCTree::new();
        let TransparentCTree { root, len } = &mut copy;
        let mut pending: Vec<Copied<'_, K, V>> = Vec::new();
        pending.extend(self.root.as_deref().map(|node| (node, root)));
        while let Some((node, link)) = pending.pop() {
            let leaf = Node::leaf(node.key.clone(), node.value.clone());
            let Node { left, right, .. } = &mut **link.insert(Box::new_in(leaf, CcMalloc));
            *len += 1;
            pending.extend(node.right.as_deref().map(|node| (node, right)));
            pending.extend(node.left.as_deref().map(|node| (node, left)));
        }
        drop(pending);
        copy
    }
}
