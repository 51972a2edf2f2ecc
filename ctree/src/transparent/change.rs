//! Ordinary insertion and removal: nothing here knows of layouts, but that a new node is allocated
//! near the one that it hangs on.

use core::borrow::Borrow;
use core::mem;

use allocator_api2::boxed::Box;
use ccmalloc::NewNear;

use super::{Link, Node, TransparentCTree};

impl<K, V> TransparentCTree<K, V> {
    /// Inserts `value` under `key` and returns the value that was there. The key that was there
    /// stays.
    ///
    /// The new node hangs where the search for its key ends, so that the tree is as balanced as the
    /// keys come: O(log n) when they come in random order, O(n) a key when they come in sorted
    /// order.
    pub fn insert(&mut self, key: K, value: V) -> Option<V>
    where
        K: Ord,
    {
        let link = self.link_of(&key);
        if let Some(node) = link {
            return Some(mem::replace(&mut node.value, value));
        }
        // The empty link lies in the parent, or in the tree itself, which is no neighbour and does
        // no harm.
        let node = Box::new_near(Node::leaf(key, value), &*link);
        *link = Some(node);
        self.len += 1;
        None
    }

    /// Removes the entry of `query` and returns its value.
    pub fn remove<Q: ?Sized + Ord>(&mut self, query: &Q) -> Option<V>
    where
        K: Borrow<Q> + Ord,
    {
        self.remove_entry(query).map(|(_, value)| value)
    }

    /// Removes the entry of `query` and returns it.
    ///
    /// Of two subtrees, the right one gives its smallest node to take the place. No other node
    /// changes its place in memory: links are set.
    pub fn remove_entry<Q: ?Sized + Ord>(&mut self, query: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q> + Ord,
    {
        let link = self.link_of(query);
        let node = Box::into_inner(link.take()?);
        *link = joined(node.left, node.right);
        self.len -= 1;
        Some((node.key, node.value))
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        drop(mem::take(self));
    }
}

/// One tree of two, all keys of `left` being smaller than those of `right`. O(height of `right`).
fn joined<K, V>(left: Link<K, V>, mut right: Link<K, V>) -> Link<K, V> {
    if left.is_none() {
        return right;
    }
    let Some(mut smallest) = take_smallest(&mut right) else {
        return left;
    };
    smallest.left = left;
    smallest.right = right;
    Some(smallest)
}

/// Takes the node of the smallest key out of a tree.
fn take_smallest<K, V>(mut link: &mut Link<K, V>) -> Link<K, V> {
    while link.as_ref().is_some_and(|node| node.left.is_some()) {
        link = &mut link.as_mut().expect("just looked at").left;
    }
    let mut smallest = link.take();
    if let Some(node) = &mut smallest {
        *link = node.right.take();
    }
    smallest
}
