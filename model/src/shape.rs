//! The shape of a forest without addresses: parents and children.
//!
//! Nodes are numbered so that **each parent comes before its children**. So depths need one pass up
//! the numbers and subtree sums one pass down, without recursion, however deep the forest is.

use std::fmt;

pub(crate) mod random;
#[cfg(test)]
pub(crate) mod tests;

/// Marks "no node" in index arrays: the parent of a root.
pub const NO_NODE: u32 = u32::MAX;

/// A forest of up to `u32::MAX` nodes in array form.
///
/// # Examples
///
/// ```
/// use ccmodel::{NO_NODE, Shape};
///
/// // Node 0 is the root, 1 and 2 are its children, 3 is a child of 2.
/// let shape = Shape::from_parents(&[NO_NODE, 0, 0, 2])?;
/// assert_eq!(shape.children(0), [1, 2]);
/// assert_eq!(shape.subtree_nodes(), [4, 1, 2, 1]);
/// assert_eq!(shape.depths(), [0, 1, 1, 2]);
/// # Ok::<(), ccmodel::ShapeError>(())
/// ```
// Invariants:
// - `parent.len()` is at most `NO_NODE`, and `parent[v]` is `NO_NODE` or below `v`;
// - `child_start.len() == len() + 1`, ascending, and the children of `v` in link order, which is
//   also the order of their numbers, are `children[child_start[v]..child_start[v + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    parent: Vec<u32>,
    child_start: Vec<u32>,
    children: Vec<u32>,
}

impl Shape {
    /// The forest in which node `v` hangs under `parents[v]`, or is a root where that is
    /// [`NO_NODE`].
    ///
    /// The children of a node are taken to be in link order by ascending number. O(n).
    ///
    /// # Errors
    /// [`ShapeError::ParentNotBefore`] when a parent's number is not below its child's (which rules
    /// cycles out), and [`ShapeError::TooManyNodes`] when the numbers do not fit.
    pub fn from_parents(parents: &[u32]) -> Result<Shape, ShapeError> {
        Shape::from_parent_vec(parents.to_vec())
    }

    /// As [`from_parents`](Shape::from_parents), without a copy of the parents.
    ///
    /// # Errors
    /// Those of [`from_parents`](Shape::from_parents).
    pub fn from_parent_vec(parent: Vec<u32>) -> Result<Shape, ShapeError> {
        let nodes = parent.len();
        let Some(nodes) = u32::try_from(nodes).ok().filter(|&nodes| nodes < NO_NODE) else {
            return Err(ShapeError::TooManyNodes { nodes });
        };
        let mut child_start = vec![0u32; parent.len() + 1];
        for (node, &p) in (0..nodes).zip(&parent) {
            if p == NO_NODE {
                continue;
            }
            if p >= node {
                return Err(ShapeError::ParentNotBefore { node, parent: p });
            }
            child_start[p as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut child_start {
            sum += *start;
            *start = sum;
        }
        let children = if is_breadth_first(&parent) {
            // Siblings are numbered side by side, in the order of their parents.
            (nodes - sum..nodes).collect()
        } else {
            let mut next = child_start.clone();
            let mut children = vec![0u32; sum as usize];
            for (node, &p) in (0..nodes).zip(&parent) {
                if p != NO_NODE {
                    children[next[p as usize] as usize] = node;
                    next[p as usize] += 1;
                }
            }
            children
        };
        Ok(Shape {
            parent,
            child_start,
            children,
        })
    }

    /// A complete binary tree in heap order: all levels full but the last, which is filled from the
    /// left; node `v` has the children `2v + 1` and `2v + 2`. O(n).
    ///
    /// # Panics
    /// When `nodes` is `u32::MAX`, which is [`NO_NODE`].
    pub fn complete_binary(nodes: u32) -> Shape {
        let parent = |v: u32| v.checked_sub(1).map_or(NO_NODE, |before| before / 2);
        Shape::from_generated((0..nodes).map(parent).collect())
    }

    /// A binary search tree after inserting `nodes` different keys in a random order, numbered
    /// breadth-first with left before right. Equal seeds give equal trees. O(n).
    ///
    /// Such a tree is the Cartesian tree of the keys' insertion times.
    ///
    /// # Panics
    /// When `nodes` is `u32::MAX`, which is [`NO_NODE`].
    pub fn random_binary(nodes: u32, seed: u64) -> Shape {
        Shape::random_binary_with_keys(nodes, seed).0
    }

    /// As [`random_binary`](Shape::random_binary), with the rank of each node's key among all.
    pub(crate) fn random_binary_with_keys(nodes: u32, seed: u64) -> (Shape, Vec<u32>) {
        assert!(
            nodes < NO_NODE,
            "a shape has fewer than {NO_NODE} nodes, not {nodes}"
        );
        let time = random::permutation(nodes, seed);
        let mut left = vec![NO_NODE; nodes as usize];
        let mut right = vec![NO_NODE; nodes as usize];
        // The rightmost path of the tree of the keys so far; times ascend towards its end.
        let mut spine: Vec<u32> = Vec::new();
        for key in 0..nodes {
            let mut below = NO_NODE;
            while let Some(top) = spine.pop_if(|&mut top| time[top as usize] > time[key as usize]) {
                below = top;
            }
            left[key as usize] = below;
            if let Some(&above) = spine.last() {
                right[above as usize] = key;
            }
            spine.push(key);
        }
        drop(time);
        let mut parent = Vec::with_capacity(nodes as usize);
        // Keys in breadth-first order: a key's position in `queue` is its node number.
        let mut queue: Vec<u32> = Vec::with_capacity(nodes as usize);
        if let Some(&root) = spine.first() {
            queue.push(root);
            parent.push(NO_NODE);
        }
        for number in 0..nodes {
            let key = queue[number as usize] as usize;
            for child in [left[key], right[key]] {
                if child != NO_NODE {
                    queue.push(child);
                    parent.push(number);
                }
            }
        }
        (Shape::from_generated(parent), queue)
    }

    /// For parents that this crate made itself.
    pub(crate) fn from_generated(parent: Vec<u32>) -> Shape {
        match Shape::from_parent_vec(parent) {
            Ok(shape) => shape,
            Err(error) => panic!("{error}"),
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// Panics unless there are as many of something as nodes.
    pub(crate) fn check_len(&self, len: usize, what: &str) {
        assert_eq!(len, self.len(), "one {what} for each node is needed");
    }

    /// The number of nodes as the type that numbers them.
    pub(crate) fn nodes(&self) -> u32 {
        u32::try_from(self.parent.len()).unwrap_or(NO_NODE)
    }

    /// The parent of each node, by number, [`NO_NODE`] for roots.
    pub fn parents(&self) -> &[u32] {
        &self.parent
    }

    /// The parent of `v`, or [`NO_NODE`] for a root.
    ///
    /// # Panics
    /// When there is no node `v`.
    pub fn parent(&self, v: u32) -> u32 {
        self.parent[v as usize]
    }

    /// The children of `v` in link order, which is the order of their numbers.
    ///
    /// # Panics
    /// When there is no node `v`.
    pub fn children(&self, v: u32) -> &[u32] {
        let start = self.child_start[v as usize] as usize;
        let end = self.child_start[v as usize + 1] as usize;
        &self.children[start..end]
    }

    /// The nodes without a parent, by ascending number. A full pass is O(n).
    pub fn roots(&self) -> impl Iterator<Item = u32> {
        let nodes = (0..).zip(&self.parent);
        nodes.filter_map(|(v, &parent)| (parent == NO_NODE).then_some(v))
    }

    /// Whether no node has two children: lists, and forests of lists. O(n), less where the answer
    /// is no.
    pub fn is_chains(&self) -> bool {
        let mut children = self.child_start.windows(2);
        children.all(|ends| ends[1] - ends[0] <= 1)
    }

    /// Whether nodes are numbered level by level, roots first, and within a level in the order of
    /// their parents. O(n).
    pub(crate) fn is_breadth_first(&self) -> bool {
        is_breadth_first(&self.parent)
    }

    /// How many nodes have children. O(n).
    pub(crate) fn inner_nodes(&self) -> usize {
        let children = self.child_start.windows(2);
        children.filter(|ends| ends[1] > ends[0]).count()
    }

    /// All nodes in the order of a walk: each before its subtrees, these in the order of the links.
    /// O(n).
    pub fn preorder(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.len());
        let mut stack: Vec<u32> = self.roots().collect();
        stack.reverse();
        while let Some(v) = stack.pop() {
            order.push(v);
            stack.extend(self.children(v).iter().rev());
        }
        order
    }

    /// How many nodes the subtree of each node has, the node itself included. O(n), no recursion.
    ///
    /// Under a search for a key drawn evenly from the n that are present, node `v` is visited with
    /// probability `subtree_nodes()[v] / n`.
    pub fn subtree_nodes(&self) -> Vec<u32> {
        let mut count = vec![1u32; self.len()];
        for v in (0..self.len()).rev() {
            let nodes = count[v];
            if let Some(above) = count.get_mut(self.parent[v] as usize) {
                *above += nodes;
            }
        }
        count
    }

    /// The sum of `values` over the subtree of each node. O(n).
    pub(crate) fn subtree_sums(&self, mut values: Vec<f64>) -> Vec<f64> {
        for v in (0..self.len()).rev() {
            let sum = values[v];
            if let Some(above) = values.get_mut(self.parent[v] as usize) {
                *above += sum;
            }
        }
        values
    }

    /// The number of edges between each node and its root, so 0 for roots. O(n), no recursion.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths = Vec::with_capacity(self.len());
        for &parent in &self.parent {
            depths.push(depths.get(parent as usize).map_or(0, |depth| depth + 1));
        }
        depths
    }
}

/// Whether parents ascend, where roots count as children of the number before all.
fn is_breadth_first(parents: &[u32]) -> bool {
    parents.is_sorted_by_key(|&parent| parent.wrapping_add(1))
}

/// A weight that can be added: 0 for what is negative or no number.
pub(crate) fn usable(weight: f64) -> f64 {
    // Not -0.0 either, whose bits are those of a large number.
    if weight.is_finite() && weight > 0.0 {
        weight
    } else {
        0.0
    }
}

/// The [usable](usable) weights in units of the largest, so that no sum overflows. All may be 0.
pub(crate) fn scaled(weights: &[f64]) -> Vec<f64> {
    let weights = weights.iter().copied().map(usable);
    let largest = weights.clone().fold(0.0, f64::max);
    let unit = if largest > 0.0 { largest } else { 1.0 };
    weights.map(|weight| weight / unit).collect()
}

/// Why an array of parents is not a [`Shape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// More nodes than the numbers `0..NO_NODE` can name.
    TooManyNodes {
        /// How many nodes there were.
        nodes: usize,
    },
    /// A parent whose number is not below that of its child.
    ParentNotBefore {
        /// The child.
        node: u32,
        /// Its parent.
        parent: u32,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShapeError::TooManyNodes { nodes } => {
                write!(f, "a shape has fewer than {NO_NODE} nodes, not {nodes}")
            }
            ShapeError::ParentNotBefore { node, parent } => write!(
                f,
                "the parent of node {node} must have a smaller number, not {parent}"
            ),
        }
    }
}

impl std::error::Error for ShapeError {}
