//! Structures of a running program.

use std::collections::{HashMap, VecDeque};

use super::Built;
use crate::{Error, Lengths, NO_NODE, NodeExtent, Placement, Shape};

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

/// Walks through a forest of at most `nodes_max` nodes, level by level.
///
/// `visit` adds the children of a node to the vector, in the order of the links and without null
/// links, and returns the node's address and how many bytes of it a visit reads. Nodes are told
/// apart by their addresses. O(nodes), one map entry for each.
///
/// # Errors
/// When a node is met twice, or there are more than `nodes_max`. Nodes are numbered from 0 in the
/// order in which they are met.
///
/// # Examples
/// ```
/// use ccmodel::structure::walk;
///
/// struct Node { key: u64, children: Vec<Node> }
///
/// let leaf = |key| Node { key, children: Vec::new() };
/// let root = Node { key: 2, children: vec![leaf(1), leaf(3)] };
/// let walked = walk([&root], 1000, |node, children| {
///     children.extend(&node.children);
///     (std::ptr::from_ref(*node).addr() as u64, size_of::<Node>() as u32)
/// })?;
/// assert_eq!(walked.shape.children(0), [1, 2]);
/// # assert_eq!(root.key + root.children[1].key, 5);
/// # Ok::<(), ccmodel::Error>(())
/// ```
pub fn walk<N>(
    roots: impl IntoIterator<Item = N>,
    nodes_max: u32,
    mut visit: impl FnMut(&N, &mut Vec<N>) -> (u64, u32),
) -> Result<Walked, Error> {
    let nodes_max = nodes_max.min(NO_NODE - 1);
    let roots = roots.into_iter().map(|root| (root, NO_NODE));
    let mut queue: VecDeque<(N, u32)> = roots.take(nodes_max as usize + 1).collect();
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let (mut parents, mut addresses, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    let mut children = Vec::new();
    for number in 0.. {
        let Some((node, parent)) = queue.pop_front() else {
            break;
        };
        if number == nodes_max {
            let what = format!("there are more than {nodes_max} nodes, or a path without end");
            return Err(Error::new(what));
        }
        let (address, bytes) = visit(&node, &mut children);
        if let Some(before) = numbers.insert(address, number) {
            let above = |&v: &u32| parents.get(v as usize).copied();
            let mut path = std::iter::successors(Some(parent), above);
            return Err(Error::new(match parent {
                NO_NODE => format!("node {before} is a root twice"),
                _ if path.any(|v| v == before) => format!(
                    "node {before} leads back to itself: it is a child of node {parent} too"
                ),
                _ => format!("node {before} has two parents: it is a child of node {parent} too"),
            }));
        }
        parents.push(parent);
        addresses.push(address);
        lengths.push(bytes);
        queue.extend(children.drain(..).map(|child| (child, number)));
    }
    Ok(Walked {
        shape: Shape::from_generated(parents),
        placement: Placement::from_offsets(addresses),
        lengths: Lengths::Each(lengths),
    })
}
