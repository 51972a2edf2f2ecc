//! A binary search tree of boxes that does not balance itself.
//!
//! Keys in random order give paths of about `1.39 log2 n` nodes (Knuth, TAOCP 3, 6.2.2).

use ccmorph::TreeNode;

/// One node: 24 bytes without a value, of which two fit a block of 64, and 32 with a `u64`.
#[derive(Clone, Debug, TreeNode)]
pub struct Node<V = ()> {
    pub key: u64,
    pub value: V,
    #[child]
    pub left: Option<Box<Node<V>>>,
    #[child]
    pub right: Option<Box<Node<V>>>,
}

const _: () = assert!(size_of::<Node>() == 24 && size_of::<Node<u64>>() == 32);

impl<V> Node<V> {
    pub fn leaf(key: u64, value: V) -> Self {
        let (left, right) = (None, None);
        Node {
            key,
            value,
            left,
            right,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Tree<V> {
    pub root: Option<Box<Node<V>>>,
}

pub type SearchTree = Tree<()>;

impl<V> Tree<V> {
    /// Inserts `key`; false when it was there.
    pub fn insert(&mut self, key: u64, value: V) -> bool {
        let mut link = &mut self.root;
        while let Some(node) = link {
            if key == node.key {
                return false;
            }
            link = if key < node.key {
                &mut node.left
            } else {
                &mut node.right
            };
        }
        *link = Some(Box::new(Node::leaf(key, value)));
        true
    }

    #[inline]
    pub fn get(&self, key: u64) -> Option<&V> {
        let mut link = self.root.as_deref();
        while let Some(node) = link {
            if key == node.key {
                return Some(&node.value);
            }
            link = if key < node.key {
                node.left.as_deref()
            } else {
                node.right.as_deref()
            };
        }
        None
    }

    /// The node with the smallest key that is not below `key`.
    #[inline]
    pub fn lower_bound(&self, key: u64) -> Option<&Node<V>> {
        let mut above = None;
        let mut link = self.root.as_deref();
        while let Some(node) = link {
            if node.key == key {
                return Some(node);
            }
            if key < node.key {
                above = Some(node);
                link = node.left.as_deref();
            } else {
                link = node.right.as_deref();
            }
        }
        above
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Node<V>> {
        let mut pending: Vec<&Node<V>> = self.root.as_deref().into_iter().collect();
        std::iter::from_fn(move || {
            let node = pending.pop()?;
            pending.extend(node.right.as_deref());
            pending.extend(node.left.as_deref());
            Some(node)
        })
    }
}

impl<V> Drop for Tree<V> {
    /// Frees node by node: a tree of sorted keys must not take a stack frame for each node.
    fn drop(&mut self) {
        let mut pending: Vec<Box<Node<V>>> = self.root.take().into_iter().collect();
        while let Some(mut node) = pending.pop() {
            pending.extend(node.right.take());
            pending.extend(node.left.take());
        }
    }
}
