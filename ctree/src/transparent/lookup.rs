//! Everything that looks up, in shared trees and in exclusive ones.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::ops::{Bound, RangeBounds};

use super::iter::{Iter, IterMut, Path, Range};
use super::{Link, Node, TransparentCTree};

impl<K, V> TransparentCTree<K, V> {
    /// The node whose key equals `query`. Reads one node a level.
    #[inline]
    fn find<Q: ?Sized + Ord>(&self, query: &Q) -> Option<&Node<K, V>>
    where
        K: Borrow<Q> + Ord,
    {
        let mut link = self.root.as_deref();
        while let Some(node) = link {
            link = match query.cmp(node.key.borrow()) {
                Ordering::Equal => return Some(node),
                Ordering::Less => node.left.as_deref(),
                Ordering::Greater => node.right.as_deref(),
            };
        }
        None
    }

    /// The link that owns the node whose key equals `query`, or else the empty one where it
    /// belongs.
    pub(super) fn link_of<Q: ?Sized + Ord>(&mut self, query: &Q) -> &mut Link<K, V>
    where
        K: Borrow<Q> + Ord,
    {
        let mut link = &mut self.root;
        loop {
            let order = link.as_deref().map(|node| query.cmp(node.key.borrow()));
            let (Some(order @ (Ordering::Less | Ordering::Greater)), Some(_)) = (order, &*link)
            else {
                return link;
            };
            let node = link.as_mut().expect("its key was just compared");
            link = match order {
                Ordering::Less => &mut node.left,
                _ => &mut node.right,
            };
        }
    }

    /// The value of `query`.
    ///
    /// Reads one node a level: O(log n) when the tree is balanced, O(n) at worst, as for all
    /// lookups.
    #[inline]
    pub fn get<Q: ?Sized + Ord>(&self, query: &Q) -> Option<&V>
    where
        K: Borrow<Q> + Ord,
    {
        self.find(query).map(|node| &node.value)
    }

    /// The entry of `query`.
    pub fn get_key_value<Q: ?Sized + Ord>(&self, query: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q> + Ord,
    {
        self.find(query).map(|node| (&node.key, &node.value))
    }

    /// The value of `query`, to be changed.
    pub fn get_mut<Q: ?Sized + Ord>(&mut self, query: &Q) -> Option<&mut V>
    where
        K: Borrow<Q> + Ord,
    {
        let node = self.link_of(query).as_mut()?;
        Some(&mut node.value)
    }

    /// Whether there is an entry of `query`.
    #[inline]
    pub fn contains_key<Q: ?Sized + Ord>(&self, query: &Q) -> bool
    where
        K: Borrow<Q> + Ord,
    {
        self.find(query).is_some()
    }

    /// The entries that a search for `query` reads, from the root on: down to that of `query`, or
    /// to where it would be.
    ///
    /// Their addresses tell which blocks a search touches.
    pub fn path<'a, 'q, Q: ?Sized + Ord>(&'a self, query: &'q Q) -> Path<'a, 'q, K, V, Q>
    where
        K: Borrow<Q> + Ord,
    {
        Path::new(self.root.as_deref(), query)
    }

    /// The entry of the smallest key.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        let mut node = self.root.as_deref()?;
        while let Some(left) = &node.left {
            node = left;
        }
        Some((&node.key, &node.value))
    }

    /// The entry of the largest key.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        let mut node = self.root.as_deref()?;
        while let Some(right) = &node.right {
            node = right;
        }
        Some((&node.key, &node.value))
    }

    /// Number of nodes on the longest way from the root down; 0 for an empty tree. O(n).
    pub fn height(&self) -> usize {
        let mut pending: Vec<(usize, &Node<K, V>)> = Vec::new();
        pending.extend(self.root.as_deref().map(|root| (1, root)));
        let mut height = 0;
        while let Some((depth, node)) = pending.pop() {
            height = height.max(depth);
            let children = [&node.right, &node.left].into_iter().flatten();
            pending.extend(children.map(|child| (depth + 1, &**child)));
        }
        height
    }

    /// All entries in order of their keys, from both ends.
    ///
    /// Keeps a pointer for each level of the tree.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(self.root.as_deref(), self.len)
    }

    /// All entries in order of their keys, their values to be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut::new(self.root.as_deref_mut(), self.len)
    }

    /// The entries whose keys are in `range`, in order, from both ends.
    ///
    /// # Panics
    /// As that of `BTreeMap`: when the range's start is greater than its end, or equal to it while
    /// both are excluded.
    pub fn range<Q, R>(&self, range: R) -> Range<'_, K, V>
    where
        Q: ?Sized + Ord,
        K: Borrow<Q> + Ord,
        R: RangeBounds<Q>,
    {
        let (start, end) = (range.start_bound(), range.end_bound());
        if let (
            Bound::Included(first) | Bound::Excluded(first),
            Bound::Included(last) | Bound::Excluded(last),
        ) = (start, end)
        {
            let both_excluded = matches!((start, end), (Bound::Excluded(_), Bound::Excluded(_)));
            match first.cmp(last) {
                Ordering::Greater => panic!("range start is greater than range end"),
                Ordering::Equal if both_excluded => {
                    panic!("range start and end are equal and excluded")
                }
                _ => {}
            }
        }
        Range::new(self.root.as_deref(), start, end)
    }
}
