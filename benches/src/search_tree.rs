//! A binary search tree of boxes, with 24 bytes a node, that does not balance itself.
//!
//! Keys in random order give paths of about `1.39 log2 n` nodes (Knuth, TAOCP 3, 6.2.2).

use ccmorph::TreeNode;

/// One node. Two of them fit a block of 64 bytes.
#[derive(Debug, TreeNode)]
pub struct Node {
    /// The key; smaller ones lie to the left, larger ones to the right.
    pub key: u64,
    /// Everything smaller.
    #[child]
    pub left: Option<Box<Node>>,
    /// Everything larger.
    #[child]
    pub right: Option<Box<Node>>,
}

const _: () = assert!(size_of::<Node>() == 24);

impl Node {
    /// A node without children.
    fn leaf(key: u64) -> Self {
        Node {
            key,
            left: None,
            right: None,
        }
    }
}

/// A set of `u64` keys in a binary search tree.
#[derive(Debug, Default)]
pub struct SearchTree {
    root: Option<Box<Node>>,
    nodes: usize,
}

impl SearchTree {
    /// An empty tree; allocates nothing.
    pub const fn new() -> Self {
        SearchTree {
            root: None,
            nodes: 0,
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// The root.
    pub fn root(&self) -> Option<&Node> {
        self.root.as_deref()
    }

    /// The link that owns the root, for `ccmorph`.
    pub fn root_mut(&mut self) -> &mut Option<Box<Node>> {
        &mut self.root
    }

    /// Inserts `key`; false when it was there.
    pub fn insert(&mut self, key: u64) -> bool {
        self.insert_with(key, |_link, node| Box::new(node))
    }

    /// Inserts `key` with its node allocated near the parent; false when it was there.
    ///
    /// The hint is the empty link, which lies inside the parent. That of the root lies outside the
    /// allocator's memory, which ignores it.
    pub fn insert_near_parent(&mut self, key: u64) -> bool {
        self.insert_with(key, |link, node| ccmalloc::near(link, || Box::new(node)))
    }

    #[inline]
    fn insert_with(
        &mut self,
        key: u64,
        allocate: impl FnOnce(&Option<Box<Node>>, Node) -> Box<Node>,
    ) -> bool {
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
        *link = Some(allocate(link, Node::leaf(key)));
        self.nodes += 1;
        true
    }

    /// The node with the smallest key that is not below `key`.
    #[inline]
    pub fn lower_bound(&self, key: u64) -> Option<&Node> {
        let mut above = None;
        let mut link = self.root();
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
}

impl Drop for SearchTree {
    /// Frees node by node: a tree of sorted keys must not take a stack frame for each node.
    fn drop(&mut self) {
        let mut pending: Vec<Box<Node>> = self.root.take().into_iter().collect();
        while let Some(mut node) = pending.pop() {
            pending.extend(node.right.take());
            pending.extend(node.left.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SearchTree;
    use quickcheck::quickcheck;
    use std::collections::BTreeSet;

    quickcheck! {
        fn answers_like_a_btree_set(keys: Vec<u16>, queries: Vec<u16>) -> bool {
            let mut model = BTreeSet::new();
            let mut plain = SearchTree::new();
            let mut hinted = SearchTree::new();
            for key in keys.into_iter().map(u64::from) {
                let new = model.insert(key);
                if plain.insert(key) != new || hinted.insert_near_parent(key) != new {
                    return false;
                }
            }
            let probe = |tree: &SearchTree, query| tree.lower_bound(query).map(|node| node.key);
            plain.len() == model.len()
                && hinted.len() == model.len()
                && plain.is_empty() == model.is_empty()
                && queries.into_iter().map(u64::from).all(|query| {
                    let expected = model.range(query..).next().copied();
                    probe(&plain, query) == expected && probe(&hinted, query) == expected
                })
        }
    }

    #[test]
    fn a_list_is_dropped_without_a_frame_a_node() {
        let run = || {
            let mut tree = SearchTree::new();
            for key in (0..5_000).rev() {
                tree.insert(key);
            }
            assert_eq!(tree.len(), 5_000);
        };
        std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(run)
            .unwrap()
            .join()
            .unwrap();
    }
}
