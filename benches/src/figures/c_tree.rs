//! The thesis's C-tree: a balanced binary search tree whose nodes `ccmorph` lays out.
//!
//! T. Chilimbi, *Cache-Conscious Data Structures* (1999), section 2.2.3, calls it transparent:
//! nodes and links stay as they are, only the addresses of the nodes change.
//!
//! ```text
//!    a tree of boxed nodes        morph      blocks of k nodes, k = floor(64 B / node)
//!
//!          d                                 | d b | <- coloured: no other node evicts
//!        /   \      somewhere in             | f e |    the top of the tree from the
//!       b     f      the heap          ->    ...        first-level cache
//!      / \   / \                             | a . |
//!     a   c e   g                            | c . | | g . | ...
//! ```

use std::cmp::Ordering;

use allocator_api2::boxed::Box;
use ccmalloc::CcMalloc;
use ccmorph::{Layout, LayoutChoice, Morph, MorphError, Report, TreeNode};

/// The unit of clusters: one cache line.
const BLOCK_BYTES: u32 = 64;
/// The share of the cache that is reserved for the top of the tree: half, as in section 3.2.1.
const HOT_SHARE: f64 = 0.5;

/// Owns a node in `CcMalloc`'s memory, whatever the global allocator is.
type Link = Option<Box<Node, CcMalloc>>;

/// A key, its value, and two links: 32 B.
#[derive(Debug, TreeNode)]
pub struct Node {
    /// The key.
    pub key: u64,
    /// What a search returns.
    pub value: u64,
    /// Smaller keys.
    #[child]
    left: Option<Box<Node, CcMalloc>>,
    /// Larger keys.
    #[child]
    right: Option<Box<Node, CcMalloc>>,
}

/// A binary search tree of the numbers below some number, each with itself as its value.
#[derive(Debug)]
pub struct CTree {
    root: Link,
}

impl CTree {
    /// Bytes of one node.
    pub const NODE_BYTES: usize = size_of::<Node>();

    /// The balanced tree of the numbers below `keys`.
    pub fn new(keys: usize) -> CTree {
        CTree {
            root: balanced(0, keys as u64),
        }
    }

    /// Lays the nodes out as the thesis does: the nodes of a subtree share a block, and the top of
    /// the tree has half of the first-level cache for itself.
    ///
    /// # Errors
    /// Those of [`Morph::run`].
    pub fn morph(&mut self) -> Result<Report, MorphError> {
        let clusters = Layout::SubtreeCluster {
            block_bytes: BLOCK_BYTES,
        };
        Morph::new()
            .layout(clusters)
            .colour(HOT_SHARE)
            .run(&mut self.root, Node::children)
    }

    /// Lays the nodes out in `layout`, without colours.
    ///
    /// # Errors
    /// Those of [`Morph::run`].
    pub fn morph_with(&mut self, layout: impl Into<LayoutChoice>) -> Result<Report, MorphError> {
        Morph::new()
            .layout(layout)
            .run(&mut self.root, Node::children)
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: u64) -> Option<&u64> {
        let mut link = self.root.as_deref();
        while let Some(node) = link {
            link = match key.cmp(&node.key) {
                Ordering::Equal => return Some(&node.value),
                Ordering::Less => node.left.as_deref(),
                Ordering::Greater => node.right.as_deref(),
            };
        }
        None
    }

    /// The nodes that a search for `key` reads, from the root down.
    pub fn path(&self, key: u64) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.root.as_deref(), move |node| match key.cmp(&node.key) {
            Ordering::Equal => None,
            Ordering::Less => node.left.as_deref(),
            Ordering::Greater => node.right.as_deref(),
        })
    }

    /// All nodes, parents before their children.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let mut pending: Vec<&Node> = self.root.as_deref().into_iter().collect();
        std::iter::from_fn(move || {
            let node = pending.pop()?;
            pending.extend(node.right.as_deref());
            pending.extend(node.left.as_deref());
            Some(node)
        })
    }
}

/// The balanced tree of the numbers from `low` to `high`, allocated in the order of the keys.
fn balanced(low: u64, high: u64) -> Link {
    if low == high {
        return None;
    }
    let key = low + (high - low - 1) / 2;
    let left = balanced(low, key);
    let mut node = Box::new_in(
        Node {
            key,
            value: key,
            left,
            right: None,
        },
        CcMalloc,
    );
    node.right = balanced(key + 1, high);
    Some(node)
}
