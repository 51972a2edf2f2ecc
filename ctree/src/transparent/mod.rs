//! The C-tree of the thesis: a binary search tree that is laid out for the cache when it is
//! finished.
//!
//! T. Chilimbi, *Cache-Conscious Data Structures* (1999), section 2.2.3, calls it a transparent
//! C-tree: nodes and pointers stay what they were, code that walks the tree sees no difference, and
//! only the places of the nodes change.
//!
//! ```text
//!         a tree of boxed nodes            morph           blocks of k nodes, k = floor(64 B / node)
//!
//!              d                                      | d b | <- coloured: the first nodes in traversal order lie where no other
//!            /   \          somewhere in              | f e |    node of the tree can evict them from the first-level cache
//!           b     f          the heap           ->    ...
//!          / \   / \                                  | a . |
//!         a   c e   g                                 | c . | | g . | ...
//! ```
//!
//! **What it is for.** It is the structure that the model is held against and that the thesis's
//! figures are made with again (`docs/ctree-figures.md` in the repository), and it shows what
//! [`ccmorph`] does for an ordinary tree. It is not the map to use:
//! [`FrozenCTreeMap`](crate::FrozenCTreeMap) has a quarter of its levels and no pointers.
//!
//! **What it is not.** It does not balance itself; the thesis's does not change after it was built.
//! Sorted insertion makes a list of it, with lookups in O(n). No call recurses deeper than log2(n),
//! though, so that a list of millions of nodes is slow but harmless: destruction, iteration, copies
//! and morphs take their stack on the heap, or none.
//!
//! All of this is safe code; `ccmorph` moves the nodes, and its docs say why that is safe.

mod build;
mod change;
mod iter;
mod lookup;
#[cfg(test)]
mod tests;
mod traits;

use allocator_api2::boxed::Box;
use ccmalloc::CcMalloc;
use ccmorph::{Layout, LayoutChoice, Map, Morph, MorphError, Report, TreeNode};

pub use iter::{IntoIter, Iter, IterMut, Path, Range};

/// The unit of clusters: what moves between memory and cache.
const BLOCK_BYTES: u32 = 64;
/// The share of the cache that the top of the tree has for itself: the thesis's half (section
/// 3.2.1).
const HOT_SHARE: f64 = 0.5;

/// Owns a node in `CcMalloc`'s memory, whatever the program's global allocator is; one word.
type Link<K, V> = Option<Box<Node<K, V>, CcMalloc>>;

const _: () = assert!(size_of::<Link<u64, u64>>() == size_of::<usize>());

/// One entry and its subtrees. The order of the fields is the compiler's: all of a node of up to a
/// block is in one block.
#[derive(TreeNode)]
struct Node<K, V> {
    key: K,
    value: V,
    /// Everything smaller.
    #[child]
    left: Option<Box<Node<K, V>, CcMalloc>>,
    /// Everything larger.
    #[child]
    right: Option<Box<Node<K, V>, CcMalloc>>,
}

/// Nodes are never pinned, nor is anything in them, so that they may move whatever keys and values
/// are, as a vector's items may.
impl<K, V> Unpin for Node<K, V> {}

impl<K, V> Node<K, V> {
    fn leaf(key: K, value: V) -> Node<K, V> {
        Node {
            key,
            value,
            left: None,
            right: None,
        }
    }
}

/// An ordered map in a binary search tree whose nodes can be laid out for the cache: the thesis's
/// C-tree, kept as a reference.
///
/// The tree has the shape that insertions and removals give it, or no longer path than it must when
/// it is built from [sorted entries](Self::from_sorted_iter). [`morph`](Self::morph) lays it out as
/// the thesis does, [`morph_with`](Self::morph_with) in any other way; afterwards it can be changed
/// as before, new nodes being allocated near their parents, and morphed again.
///
/// Not the recommended map: a lookup reads a node for each of log2(n) levels at best, and O(n) when
/// entries came in sorted order. See the [module](self) for what it is for.
///
/// # A wrong `Ord`
/// As for `BTreeMap`: lookups may miss entries, and ranges hold the wrong ones. It is never
/// undefined behaviour.
///
/// # Examples
/// ```
/// use ctree::TransparentCTree;
///
/// let mut tree = TransparentCTree::from_sorted_iter((0..1000u64).map(|n| (n * n, n)))?;
/// let report = tree.morph()?;
/// assert_eq!((report.nodes, report.node_bytes), (1000, 32));
///
/// tree.insert(2, 0);
/// assert_eq!(tree.get(&144), Some(&12));
/// assert_eq!(tree.range(100..=200).map(|(square, _)| *square).collect::<Vec<_>>(), [100, 121, 144, 169, 196]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TransparentCTree<K, V> {
    root: Link<K, V>,
    /// How many nodes hang on the root.
    len: usize,
}

impl<K, V> TransparentCTree<K, V> {
    /// Bytes of one node.
    pub const NODE_BYTES: usize = size_of::<Node<K, V>>();

    /// Makes an empty tree, which allocates nothing.
    pub const fn new() -> TransparentCTree<K, V> {
        TransparentCTree { root: None, len: 0 }
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lays the nodes out as the thesis's C-tree: as many nodes of a subtree as fit into 64 B share
    /// a block, and the top of the tree has half of the first-level cache for itself.
    ///
    /// The thesis colours half of a second-level cache, whose sets its machine's addresses choose.
    /// On today's machines addresses as programs see them choose sets of the first level only. Half
    /// of the memory then stays empty, and as a rule searches gain nothing, or lose:
    /// [`Report::colour`] says what is predicted. [`morph_with`](Self::morph_with) goes without,
    /// and takes other layouts.
    ///
    /// The tree is the same afterwards in all but the places of its nodes. O(n log n), with memory
    /// for a second set of nodes and 40 to 56 bytes a node until it returns.
    ///
    /// # Errors
    /// Nothing has moved then.
    /// - [`MorphError::OutOfMemory`] when there is no memory for the new places.
    /// - [`MorphError::ColourRoom`] when a node is larger than its share of a way (2048 B on most
    ///   machines), and [`MorphError::NodeTooLarge`] when it has more than 4096 B.
    /// - [`MorphError::TooManyNodes`] for `u32::MAX` nodes or more.
    pub fn morph(&mut self) -> Result<Report, MorphError> {
        let clusters = Layout::SubtreeCluster {
            block_bytes: BLOCK_BYTES,
        };
        self.morph_with(clusters, Some(HOT_SHARE))
    }

    /// Lays the nodes out in `layout`, or as the model chooses under [`LayoutChoice::Auto`]; with
    /// `hot_share`, from 0 to 1, that share of the first-level cache is for the top of the tree.
    ///
    /// Clusters of k nodes are [`Layout::SubtreeCluster`] with blocks of k times
    /// [`NODE_BYTES`](Self::NODE_BYTES), rounded up to a power of two.
    ///
    /// # Errors
    /// Those of [`morph`](Self::morph), and [`MorphError::ColourShare`] for a share that is none.
    /// Nothing has moved then.
    ///
    /// # Examples
    /// ```
    /// use ccmorph::{Layout, LayoutChoice};
    /// use ctree::TransparentCTree;
    ///
    /// let mut tree: TransparentCTree<u64, u64> = (0..500).map(|n| (n * 7919 % 500, n)).collect();
    /// let before = tree.clone();
    /// tree.morph_with(Layout::SubtreeCluster { block_bytes: 256 }, None)?;
    /// tree.morph_with(LayoutChoice::Auto, None)?;
    /// assert_eq!(tree, before);
    /// # Ok::<(), ccmorph::MorphError>(())
    /// ```
    pub fn morph_with(
        &mut self,
        layout: impl Into<LayoutChoice>,
        hot_share: Option<f64>,
    ) -> Result<Report, MorphError> {
        let morph = Morph::new().layout(layout);
        match hot_share {
            Some(share) => self.morph_by(&morph.colour(share)),
            None => self.morph_by(&morph),
        }
    }

    /// Lays the nodes out as `morph` says: for other caches and machines, and with predictions.
    ///
    /// # Errors
    /// Those of [`Morph::run`]. Nothing has moved then.
    pub fn morph_by(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError> {
        morph.run(&mut self.root, Node::children)
    }

    /// Where the nodes lie: which share blocks and pages. Moves nothing.
    ///
    /// # Errors
    /// [`MorphError::TooManyNodes`] for `u32::MAX` nodes or more.
    pub fn map(&mut self) -> Result<Map, MorphError> {
        ccmorph::map(&mut self.root, Node::children)
    }
}
