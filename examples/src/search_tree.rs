//! The binary search tree that every layout is shown on: plain Rust, one `Box` a node.
//!
//! It does not balance itself. Keys that come in random order give a tree whose paths are about
//! `1.39 log2 n` long on average (Knuth, TAOCP 3, 6.2.2), which is what an unordered input gives a
//! program of one's own; keys in ascending order would give one long list, and callers that have
//! sorted keys shuffle them first.

use ccmorph::TreeNode;

/// One node: 24 bytes, so that two of them fit a block of 64 bytes, and no allocator can do better
/// than that.
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

    /// The root, for whoever walks the tree.
    pub fn root(&self) -> Option<&Node> {
        self.root.as_deref()
    }

    /// The link that owns the root, for `ccmorph`. Whoever changes the keys or their order through
    /// it gets other answers, nothing worse.
    pub fn root_mut(&mut self) -> &mut Option<Box<Node>> {
        &mut self.root
    }

    /// Inserts `key` as a plain program does; false when it was there. Walks one path.
    pub fn insert(&mut self, key: u64) -> bool {
        self.insert_with(key, |_link, node| Box::new(node))
    }

    /// Inserts `key` with its node allocated near the parent; false when it was there. Walks one
    /// path.
    ///
    /// The hint is the empty link that the new node will hang from: it lies inside the parent, so
    /// it is as good as the parent, and the borrow of it is at hand. The root's link lies outside
    /// the allocator's memory; such a hint is ignored.
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

    /// The node with the smallest key that is not below `key`. Walks one path, and stops early at
    /// `key` itself.
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
    /// Frees node by node with the pending subtrees on the heap: a tree from sorted keys, a list
    /// really, must not end the program by one stack frame a node.
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
