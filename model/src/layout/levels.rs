//! Depth-first places from the parents of nodes in level order, without a [`Shape`].
//!
//! A traversal with a queue numbers nodes level by level. Then every pass touches parents and
//! children in sequence, and one list of eight bytes a node holds the sizes of subtrees, then the
//! depth-first numbers, then the offsets.

use super::grid::Grid;
use super::{NodeExtent, Placement};
use crate::{NO_NODE, Shape};

impl Placement {
    /// [`Layout::DepthFirst`](super::Layout::DepthFirst) of the forest in which node `v` hangs
    /// under `parents[v]`, or is a root where that is [`NO_NODE`]: what
    /// [`place`](super::Layout::place) gives for the shape of these parents.
    ///
    /// No two nodes share a place: the offsets are those that as many nodes have one behind the
    /// other. Unsafe code may rely on it.
    ///
    /// `None` when the nodes are not numbered level by level, roots first, and in each level in the
    /// order of their parents. O(n log d) for nodes of up to d children.
    ///
    /// # Panics
    /// When `node` has no bytes or an alignment that is not a power of two.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::{Layout, NO_NODE, NodeExtent, Placement, Shape};
    ///
    /// let (parents, node) = ([NO_NODE, 0, 0, 2], NodeExtent::new(32, 8)?);
    /// let placement = Placement::depth_first(&parents, node);
    /// assert_eq!(placement.as_ref().map(Placement::offsets), Some(&[0, 96, 32, 64][..]));
    /// let shape = Shape::from_parents(&parents)?;
    /// assert_eq!(placement, Some(Layout::DepthFirst.place(&shape, node)));
    /// assert_eq!(Placement::depth_first(&[NO_NODE, 0, 1, 0], node), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn depth_first(parents: &[u32], node: NodeExtent) -> Option<Placement> {
        node.check();
        let roots = leading_roots(parents);
        let mut numbers = subtree_sizes(parents, roots)?;
        number(parents, roots, &mut numbers);
        let grid = Grid::packed(node);
        for number in &mut numbers {
            #[expect(clippy::cast_possible_truncation, reason = "a number of a node")]
            let place = *number as u32;
            *number = grid.offset(place);
        }
        Some(Placement::from_offsets(numbers))
    }
}

/// How many nodes are roots before the first that is none.
fn leading_roots(parents: &[u32]) -> usize {
    let is_root = |&&parent: &&u32| parent == NO_NODE;
    parents.iter().take_while(is_root).count()
}

/// By node: how many nodes its subtree has. `None` when the nodes are not in level order, or are
/// too many for a shape.
fn subtree_sizes(parents: &[u32], roots: usize) -> Option<Vec<u64>> {
    if parents.len() >= NO_NODE as usize {
        return None;
    }
    let mut sizes = vec![1; parents.len()];
    // The sizes of the children of `parent` so far, and the parent of those behind them.
    let (mut parent, mut below, mut after) = (NO_NODE, 0, NO_NODE);
    for v in (roots..parents.len()).rev() {
        if parents[v] != parent {
            if below > 0 {
                // A parent comes before its first child, number v + 1, and before the parent of
                // those behind.
                if parent >= after || parent as usize > v {
                    return None;
                }
                sizes[parent as usize] += below;
                after = parent;
            }
            (parent, below) = (parents[v], 0);
        }
        below += sizes[v];
    }
    if below > 0 {
        if parent >= after || parent as usize >= roots {
            return None;
        }
        sizes[parent as usize] += below;
    }
    Some(sizes)
}

/// Turns the [sizes](subtree_sizes) of subtrees into depth-first numbers.
fn number(parents: &[u32], roots: usize, sizes: &mut [u64]) {
    let mut next = 0;
    for root in &mut sizes[..roots] {
        next += std::mem::replace(root, next);
    }
    let mut by_size: Vec<(u64, usize)> = Vec::new();
    let mut first = roots;
    while let Some(&parent) = parents.get(first) {
        // Parents have their numbers by now.
        let next = sizes[parent as usize] + 1;
        let is_child = |v: usize| parents.get(v) == Some(&parent);
        let [a, b] = match &mut sizes[first..] {
            [a, b, ..] if is_child(first + 1) => [a, b],
            [only, ..] => {
                *only = next;
                first += 1;
                continue;
            }
            [] => return,
        };
        if is_child(first + 2) {
            let rest = parents[first..].iter();
            let end = first + rest.take_while(|&&other| other == parent).count();
            number_many(&mut sizes[first..end], next, &mut by_size);
            first = end;
            continue;
        }
        let (size_a, size_b) = (*a, *b);
        let b_first = size_b > size_a;
        *a = next + if b_first { size_b } else { 0 };
        *b = next + if b_first { 0 } else { size_a };
        first += 2;
    }
}

/// Numbers siblings from `next` on, the heaviest first; `by_size` is memory for that.
fn number_many(children: &mut [u64], mut next: u64, by_size: &mut Vec<(u64, usize)>) {
    by_size.clear();
    by_size.extend(children.iter().copied().zip(0..));
    // Stable: equally heavy ones stay in link order.
    by_size.sort_by_key(|&(size, _)| std::cmp::Reverse(size));
    for &(size, index) in by_size.iter() {
        children[index] = next;
        next += size;
    }
}

impl Shape {
    /// Whether nodes with these parents are in level order, and none has two children: lists, and
    /// forests of lists, as [`is_chains`](Shape::is_chains) says of a shape. `false` for all other
    /// orders. O(n), less where the answer is no.
    pub fn are_chains_in_level_order(parents: &[u32]) -> bool {
        let roots = leading_roots(parents);
        let below = &parents[roots..];
        below.is_sorted_by(|parent, next| parent < next)
            && (roots..)
                .zip(below)
                .all(|(v, &parent)| (parent as usize) < v)
    }
}

#[cfg(test)]
mod tests {
    use super::Placement;
    use crate::{Layout, NO_NODE, NodeExtent, Shape};
    use quickcheck::quickcheck;

    /// Whether places and answer are those of the shape of these parents, or refused.
    fn agrees(parents: &[u32], bytes: u32) -> bool {
        let node = NodeExtent::new(bytes, 8).unwrap();
        let shape = Shape::from_parents(parents).ok();
        let shape = shape.as_ref().filter(|shape| shape.is_breadth_first());
        let is_chains = shape.is_some_and(Shape::is_chains);
        Placement::depth_first(parents, node) == shape.map(|s| Layout::DepthFirst.place(s, node))
            && Shape::are_chains_in_level_order(parents) == is_chains
    }

    quickcheck! {
        fn places_are_those_of_the_shape(
            children: Vec<u8>, arity: u8, roots: u8, bytes: u8
        ) -> bool {
            let mut parents = vec![NO_NODE; usize::from(roots % 4)];
            for (v, &count) in (0..).zip(&children) {
                if v as usize >= parents.len() {
                    break;
                }
                let count = usize::from(count % (arity % 5 + 1));
                parents.extend(std::iter::repeat_n(v, count));
            }
            agrees(&parents, u32::from(bytes) * 7 + 1)
        }

        fn other_orders_are_refused(parents: Vec<u8>) -> bool {
            let parents: Vec<u32> = parents.into_iter().map(|p| u32::from(p) % 8).collect();
            agrees(&parents, 8)
        }
    }

    #[test]
    fn all_parents_of_few_nodes() {
        let nodes = 5;
        let choices: Vec<u32> = (0..nodes).chain([NO_NODE]).collect();
        for code in 0..choices.len().pow(nodes) {
            let parents: Vec<u32> = (0..nodes)
                .map(|v| choices[code / choices.len().pow(v) % choices.len()])
                .collect();
            assert!(agrees(&parents, 24), "{parents:?}");
        }
    }
}
