//! The structures that can be asked about, from their parameters to the points that operations
//! read.
//!
//! ```text
//! Structure --build(keys, sizes)--> Built --place(layout)--> Placement
//!                                     |                          |
//!                                     +----accesses(placement, operation, keys)--> Accesses
//!
//! Accesses --> block probabilities, random operations
//! ```
//!
//! A layout moves *nodes*; an operation reads *points*. In trees and lists they are the same. A
//! node of a B-tree holds many points: a binary search inside of it reads some keys and one link.
//! The buckets of a hash table and the elements of an array are points of one block of memory that
//! no layout moves.
//!
//! | structure | nodes | points | order of keys |
//! |---|---|---|---|
//! | search tree | one a key | the nodes | key order |
//! | k-ary, quad- and octree, given shapes | one a key | the nodes | node numbers |
//! | B-tree | up to fanout - 1 keys | header, keys, values, links; or the nodes | key order |
//! | list | one a key | the nodes | from the head |
//! | chained hash table | one a key | buckets, nodes | bucket by bucket |
//! | sorted array, Eytzinger | none | the elements | key order |

mod array;
mod btree;
mod built;
mod edges;
mod linear;
mod operation;
mod orders;
#[cfg(test)]
mod tests;
mod tree;
mod walker;

use crate::{Error, NO_NODE, NodeExtent};
pub use built::Built;
pub use edges::{EdgeList, read_edges};
pub use operation::Operation;
pub use walker::{Walked, walk};

const FANOUT_MAX: u32 = 1 << 16;

/// How a structure was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Growth {
    /// Built at once: all levels full but the last.
    Complete,
    /// By inserting keys in a random order.
    RandomInsert {
        /// Chooses the order.
        seed: u64,
    },
}

/// How a search reads the keys inside of a node of a B-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum InNode {
    /// Halving the keys.
    #[default]
    Binary,
    /// From the first on, until one is not smaller.
    Linear,
    /// All bytes of the node at once, as wide instructions and prefetches do.
    Whole,
}

/// Which neighbours the nodes of a list link to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Links {
    /// The next one.
    Single,
    /// The next and the previous one.
    Double,
}

/// A pointer structure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Structure {
    /// A binary search tree.
    SearchTree {
        /// How it was built.
        growth: Growth,
    },
    /// A tree in which operations go to any node with equal probability, whatever its keys are.
    ///
    /// Grown randomly, each new node hangs at any free link with equal probability (a random
    /// increasing tree); for an arity of 2 these are the shapes of random search trees.
    Tree {
        /// The links of a node, from 1 to 65536.
        arity: u32,
        /// How it was built.
        growth: Growth,
    },
    /// A quadtree (2 dimensions) or octree (3): 2^d children a node. Grown randomly, it is the
    /// point quadtree of uniformly distributed points (R. Finkel and J. Bentley, *Quad trees*, Acta
    /// Informatica 1974).
    PointTree {
        /// From 1 to 8.
        dimensions: u32,
        /// How it was built.
        growth: Growth,
    },
    /// A B-tree: keys in inner nodes too, all nodes of one size.
    BTree {
        /// Children of a full inner node, from 3 to 65536; one more than its keys.
        fanout: u32,
        /// How full nodes are built, above 0 and up to 1; random insertion ignores it.
        fill: f64,
        /// How nodes are searched.
        in_node: InNode,
        /// From sorted keys, or by random insertion with splits in the middle.
        growth: Growth,
    },
    /// An unsorted list: searches begin at its head, and absent keys are looked for to its end.
    List {
        /// Singly or doubly linked.
        links: Links,
    },
    /// A hash table of chains: an array of links to lists. Which bucket a key falls into is random.
    Hash {
        /// Keys to a bucket, on average.
        load: f64,
        /// Chooses the buckets.
        seed: u64,
    },
    /// A sorted array with binary search.
    SortedArray,
    /// An array in the order of a complete search tree's levels: the children of element i are 2i +
    /// 1 and 2i + 2.
    Eytzinger,
}

/// How large the parts of a structure are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Nodes of trees, lists and chains; elements of arrays.
    pub node: NodeExtent,
    /// How many of their bytes a visit reads, from the first on; at least 1, at most all.
    pub touched_bytes: u32,
    /// Keys of a B-tree.
    pub key_bytes: u32,
    /// Values of a B-tree; may be 0.
    pub value_bytes: u32,
}

impl Sizes {
    /// Nodes that are read whole. Keys and values of B-trees have 8 bytes each.
    pub fn of(node: NodeExtent) -> Sizes {
        Sizes {
            node,
            touched_bytes: node.bytes,
            key_bytes: 8,
            value_bytes: 8,
        }
    }
}

impl Structure {
    /// Builds the structure with `keys` keys. O(keys), random insertion into point and B-trees
    /// O(keys log keys).
    ///
    /// # Errors
    /// For parameters that no structure has, and for more keys than can be
    /// numbered.
    pub fn build(self, keys: u32, sizes: &Sizes) -> Result<Built, Error> {
        NodeExtent::new(sizes.node.bytes, sizes.node.align)?;
        if keys == NO_NODE {
            return Err(too_large());
        }
        let within = |ok: bool, what: String| match ok {
            true => Ok(()),
            false => Err(Error::new(what)),
        };
        match self {
            Structure::SearchTree { growth } => Ok(tree::search(keys, growth, sizes)),
            Structure::Tree { arity, growth } => {
                let what = format!("a tree's nodes have 1 to {FANOUT_MAX} links, not {arity}");
                within((1..=FANOUT_MAX).contains(&arity), what)?;
                Ok(tree::of_arity(keys, arity, growth, sizes))
            }
            Structure::PointTree { dimensions, growth } => {
                let what = format!("a point tree has 1 to 8 dimensions, not {dimensions}");
                within((1..=8).contains(&dimensions), what)?;
                Ok(tree::points(keys, dimensions, growth, sizes))
            }
            Structure::BTree {
                fanout,
                fill,
                in_node,
                growth,
            } => {
                let what = format!("a B-tree's fanout is 3 to {FANOUT_MAX}, not {fanout}");
                within((3..=FANOUT_MAX).contains(&fanout), what)?;
                let what = format!("nodes are filled to more than 0 and at most 1, not {fill}");
                within(fill > 0.0 && fill <= 1.0, what)?;
                let form = btree::Form::new(fanout, in_node, sizes)?;
                btree::build(keys, fill, growth, &form)
            }
            Structure::List { links } => Ok(linear::list(keys, links, sizes)),
            Structure::Hash { load, seed } => {
                let what = format!("a hash table's load is a positive number, not {load}");
                within(load > 0.0 && load.is_finite(), what)?;
                linear::hash(keys, load, seed, sizes)
            }
            Structure::SortedArray => Ok(array::sorted(keys, sizes)),
            Structure::Eytzinger => Ok(array::eytzinger(keys, sizes)),
        }
    }
}

fn too_large() -> Error {
    Error::new("the structure has more parts than 2^32")
}
