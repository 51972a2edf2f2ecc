//! Structures of a running program.
//!
//! A [`Walker`] gives the children of a node, its address and its size. [`walk`] goes through all
//! of it once, level by level, and returns a [`Shape`] with the addresses as a [`Placement`], to be
//! predicted, simulated, or laid out in another way. A node that is met twice is an error, be it by
//! a cycle or by two paths, and so is a node beyond a number that the caller chooses.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use super::Built;
use crate::{Lengths, NO_NODE, NodeExtent, Placement, Shape};

/// A pointer structure that can be traversed.
///
/// # Examples
/// ```
/// use ccmodel::structure::{Walker, walk};
///
/// struct Node { key: u64, children: Vec<Node> }
///
/// struct Tree<'a>(&'a Node);
///
/// impl<'a> Walker for Tree<'a> {
///     type Node = &'a Node;
///     type Id = *const Node;
///     fn roots(&self, visit: &mut dyn FnMut(&'a Node)) { visit(self.0) }
///     fn children(&self, node: &&'a Node, visit: &mut dyn FnMut(&'a Node)) {
///         node.children.iter().for_each(visit);
///     }
///     fn id(&self, node: &&'a Node) -> *const Node { std::ptr::from_ref(*node) }
///     fn address(&self, node: &&'a Node) -> u64 { std::ptr::from_ref(*node).addr() as u64 }
///     fn bytes(&self, _: &&'a Node) -> u32 { size_of::<Node>() as u32 }
/// }
///
/// let leaf = |key| Node { key, children: Vec::new() };
/// let root = Node { key: 2, children: vec![leaf(1), leaf(3)] };
/// let walked = walk(&Tree(&root), 1000)?;
/// assert_eq!(walked.shape.children(0), [1, 2]);
/// # assert_eq!(root.key + root.children[1].key, 5);
/// # Ok::<(), ccmodel::structure::WalkError>(())
/// ```
pub trait Walker {
    /// How a node is referred to: a reference, a pointer, an index.
    type Node;
    /// What tells nodes apart, their address or their index.
    type Id: Eq + Hash;

    /// Calls `visit` for each node that nothing points to.
    fn roots(&self, visit: &mut dyn FnMut(Self::Node));

    /// Calls `visit` for each child of `node`, in the order of the links, and not for null links.
    fn children(&self, node: &Self::Node, visit: &mut dyn FnMut(Self::Node));

    /// What tells `node` apart from all others.
    fn id(&self, node: &Self::Node) -> Self::Id;

    /// Where `node` lies.
    fn address(&self, node: &Self::Node) -> u64;

    /// How many bytes of `node` a visit reads, from its address on.
    fn bytes(&self, node: &Self::Node) -> u32;
}

/// A structure as it lies in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Walked {
    /// Nodes level by level, roots first.
    pub shape: Shape,
    /// Where each node lies.
    pub placement: Placement,
    /// How many bytes of each node are read.
    pub lengths: Lengths,
}

impl Walked {
    /// The structure, to ask about operations. Other layouts than its own are laid out with
    /// `extent` for each node.
    pub fn built(&self, extent: NodeExtent) -> Built {
        Built::of_nodes(self.shape.clone(), extent, self.lengths.clone())
    }
}

/// Goes through a structure of at most `nodes_max` nodes. O(nodes), one map entry for each.
///
/// # Errors
/// [`WalkError`] when a node is met twice, or there are more than `nodes_max`.
pub fn walk<W: Walker>(walker: &W, nodes_max: u32) -> Result<Walked, WalkError> {
    let mut walk = Walk {
        walker,
        nodes_max: nodes_max.min(NO_NODE - 1),
        numbers: HashMap::new(),
        nodes: Vec::new(),
        parents: Vec::new(),
        error: None,
    };
    walker.roots(&mut |root| walk.meet(root, NO_NODE));
    let mut next = 0u32;
    let mut children = Vec::new();
    while walk.error.is_none() && (next as usize) < walk.nodes.len() {
        walker.children(&walk.nodes[next as usize], &mut |child| {
            children.push(child);
        });
        for child in children.drain(..) {
            walk.meet(child, next);
        }
        next += 1;
    }
    walk.finish()
}

struct Walk<'a, W: Walker> {
    walker: &'a W,
    nodes_max: u32,
    numbers: HashMap<W::Id, u32>,
    nodes: Vec<W::Node>,
    parents: Vec<u32>,
    error: Option<WalkError>,
}

impl<W: Walker> Walk<'_, W> {
    fn meet(&mut self, node: W::Node, parent: u32) {
        if self.error.is_some() {
            return;
        }
        let number = u32::try_from(self.nodes.len()).unwrap_or(NO_NODE);
        if number >= self.nodes_max {
            let nodes_max = self.nodes_max;
            self.error = Some(WalkError::TooMany { nodes_max });
        } else if let Some(&before) = self.numbers.get(&self.walker.id(&node)) {
            self.error = Some(WalkError::MetTwice {
                node: before,
                parent: (parent != NO_NODE).then_some(parent),
                is_cycle: self.is_above(before, parent),
            });
        } else {
            self.numbers.insert(self.walker.id(&node), number);
            self.nodes.push(node);
            self.parents.push(parent);
        }
    }

    /// Whether `above` is `node` or an ancestor of it.
    fn is_above(&self, above: u32, mut node: u32) -> bool {
        while node != NO_NODE {
            if node == above {
                return true;
            }
            node = self.parents[node as usize];
        }
        false
    }

    fn finish(self) -> Result<Walked, WalkError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let offsets = self.nodes.iter().map(|node| self.walker.address(node));
        let bytes = self.nodes.iter().map(|node| self.walker.bytes(node));
        let bytes: Vec<u32> = bytes.collect();
        let lengths = match bytes.first() {
            Some(&first) if bytes.iter().all(|&bytes| bytes == first) => Lengths::Uniform(first),
            None => Lengths::Uniform(1),
            Some(_) => Lengths::Each(bytes),
        };
        Ok(Walked {
            placement: Placement::from_offsets(offsets.collect()),
            lengths,
            // Level by level: each parent before its children.
            shape: Shape::from_generated(self.parents),
        })
    }
}

/// Why a structure cannot be traversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WalkError {
    /// There is more than one path to a node, so this is no forest.
    MetTwice {
        /// The node's number in the order in which nodes were met, from 0.
        node: u32,
        /// That of the node whose child it is again; `None` when it is a root again.
        parent: Option<u32>,
        /// Whether the node leads to itself.
        is_cycle: bool,
    },
    /// More nodes than the caller accepts.
    TooMany {
        /// How many would have been accepted.
        nodes_max: u32,
    },
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalkError::MetTwice {
                node,
                parent: Some(parent),
                is_cycle,
            } => {
                let what = match is_cycle {
                    true => "leads back to itself",
                    false => "has two parents",
                };
                write!(f, "node {node} {what}: it is a child of node {parent} too")
            }
            WalkError::MetTwice { node, .. } => write!(f, "node {node} is a root twice"),
            WalkError::TooMany { nodes_max } => {
                write!(
                    f,
                    "there are more than {nodes_max} nodes, or links that never end"
                )
            }
        }
    }
}

impl std::error::Error for WalkError {}
