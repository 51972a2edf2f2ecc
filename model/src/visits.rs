//! Which nodes an operation visits, and how often: the half of a prediction that no layout can change.
//!
//! A search starts at a root and ends at the node it looks for; it visits that node and all its ancestors. So
//!
//! ```text
//! P(visit v) = sum over u in the subtree of v of P(search ends at u)
//! ```
//!
//! which one pass over the nodes from the last to the first adds up, since parents come before their children. The same
//! sums give the branch mispredictions of a search: at a visited node the search goes on to one of the children or
//! stops; the best any predictor can do without knowing the key is to bet on the likeliest, so it errs with what is left.

use crate::Shape;

/// Nodes in depth-first order with the probability that one operation visits them.
///
/// Computed once for a shape and used for each layout of it. 16 bytes a node.
#[derive(Clone, Debug)]
pub struct Visits {
    /// Node numbers in depth-first order, children in link order.
    pub(crate) order: Vec<u32>,
    /// Depth of each node of `order`; a root has 0.
    pub(crate) depths: Vec<u32>,
    /// P(visit v) for each node of `order`, in `[0, 1]`.
    pub(crate) probabilities: Vec<f64>,
    nodes_per_operation: f64,
    mispredictions_per_operation: f64,
}

impl Visits {
    /// Searches that end at each node equally often: successful look-ups of uniformly distributed keys.
    ///
    /// O(n) time, no recursion.
    pub fn uniform(shape: &Shape) -> Visits {
        let each = if shape.is_empty() {
            0.0
        } else {
            1.0 / shape.len() as f64
        };
        let sums = shape
            .subtree_nodes()
            .iter()
            .map(|&nodes| f64::from(nodes) * each)
            .collect();
        Visits::from_sums(shape, sums, |_| each)
    }

    /// Searches that end at node `v` with a frequency in proportion to `weights[v]`.
    ///
    /// O(n) time, no recursion. Weights that are negative or no numbers count as 0; if all are 0, nothing is visited.
    ///
    /// # Panics
    /// When there is not exactly one weight for each node.
    pub fn weighted(shape: &Shape, weights: &[f64]) -> Visits {
        assert_eq!(
            weights.len(),
            shape.len(),
            "one weight for each node is needed"
        );
        let usable = |weight: f64| {
            if weight.is_finite() {
                weight.max(0.0)
            } else {
                0.0
            }
        };
        // Scaled by the largest first, so that the total stays finite whatever the weights are.
        let largest = weights.iter().copied().map(usable).fold(0.0, f64::max);
        let scale = |weight: f64| {
            if largest > 0.0 {
                usable(weight) / largest
            } else {
                0.0
            }
        };
        let total: f64 = weights.iter().copied().map(scale).sum();
        let ends = |v: usize| {
            if total > 0.0 {
                scale(weights[v]) / total
            } else {
                0.0
            }
        };
        let mut sums: Vec<f64> = (0..shape.len()).map(ends).collect();
        for v in (0..shape.len()).rev() {
            let Ok(node) = u32::try_from(v) else {
                continue;
            };
            let subtree = sums[v];
            if let Some(sum) = sums.get_mut(shape.parent(node) as usize) {
                *sum += subtree;
            }
        }
        Visits::from_sums(shape, sums, ends)
    }

    fn from_sums(shape: &Shape, sums: Vec<f64>, ends: impl Fn(usize) -> f64) -> Visits {
        let mut visits = Visits {
            order: Vec::with_capacity(shape.len()),
            depths: Vec::with_capacity(shape.len()),
            probabilities: Vec::with_capacity(shape.len()),
            nodes_per_operation: 0.0,
            mispredictions_per_operation: 0.0,
        };
        let mut stack: Vec<(u32, u32)> = shape.roots().map(|root| (root, 0)).collect();
        stack.reverse();
        while let Some((v, depth)) = stack.pop() {
            let probability = sums[v as usize].clamp(0.0, 1.0);
            let mut likeliest = ends(v as usize);
            for &child in shape.children(v).iter().rev() {
                likeliest = likeliest.max(sums[child as usize]);
                stack.push((child, depth + 1));
            }
            visits.order.push(v);
            visits.depths.push(depth);
            visits.probabilities.push(probability);
            visits.nodes_per_operation += probability;
            visits.mispredictions_per_operation += (probability - likeliest).max(0.0);
        }
        visits
    }

    /// Number of nodes of the shape.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the shape has no nodes.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Nodes that one operation visits on average (D in the thesis's section 3.1).
    pub fn nodes_per_operation(&self) -> f64 {
        self.nodes_per_operation
    }

    /// Branch mispredictions of one operation under the best static guess at each node.
    pub fn mispredictions_per_operation(&self) -> f64 {
        self.mispredictions_per_operation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NO_NODE;
    use quickcheck::quickcheck;

    #[test]
    fn complete_tree_is_searched_to_its_known_depth() {
        let visits = Visits::uniform(&Shape::complete_binary(7));
        // Depths 1, 2, 2, 3, 3, 3, 3.
        assert!((visits.nodes_per_operation() - 17.0 / 7.0).abs() < 1e-12);
        // Root: 7 ends below, 3 on the likelier side; two nodes below it: 3 with 1; leaves never err.
        assert!((visits.mispredictions_per_operation() - (4.0 + 2.0 + 2.0) / 7.0).abs() < 1e-12);
        assert_eq!(visits.order, [0, 1, 3, 4, 2, 5, 6]);
        assert_eq!(visits.depths, [0, 1, 2, 2, 1, 2, 2]);
    }

    #[test]
    fn a_chain_and_an_empty_shape_need_no_stack() {
        let parents: Vec<u32> = (0..200_000u32)
            .map(|v| v.checked_sub(1).unwrap_or(NO_NODE))
            .collect();
        let visits = Visits::uniform(&Shape::from_parents(&parents).unwrap());
        assert!((visits.nodes_per_operation() - 100_000.5).abs() < 1e-3);
        assert!(Visits::uniform(&Shape::complete_binary(0)).is_empty());
    }

    #[test]
    fn hopeless_weights_visit_nothing_and_huge_ones_do_not_overflow() {
        let shape = Shape::complete_binary(3);
        let none = Visits::weighted(&shape, &[f64::NAN, -1.0, 0.0]);
        assert!(none.nodes_per_operation().abs() < 1e-12);
        let huge = Visits::weighted(&shape, &[f64::MAX, f64::MAX, f64::MAX]);
        assert!((huge.nodes_per_operation() - 5.0 / 3.0).abs() < 1e-9);
    }

    quickcheck! {
        fn equal_weights_are_the_uniform_case(nodes: u16, seed: u64) -> bool {
            let shape = Shape::random_binary(u32::from(nodes), seed);
            let uniform = Visits::uniform(&shape);
            let weighted = Visits::weighted(&shape, &vec![3.5; shape.len()]);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
            close(uniform.nodes_per_operation, weighted.nodes_per_operation)
                && close(uniform.mispredictions_per_operation, weighted.mispredictions_per_operation)
                && uniform.probabilities.iter().zip(&weighted.probabilities).all(|(&a, &b)| close(a, b))
        }

        fn roots_share_one_operation(parents: Vec<u16>) -> bool {
            let parents: Vec<u32> = (0u32..).zip(&parents)
                .map(|(v, &p)| if v == 0 || p % 5 == 0 { NO_NODE } else { u32::from(p) % v })
                .collect();
            let shape = Shape::from_parents(&parents).unwrap();
            let visits = Visits::uniform(&shape);
            let at_roots: f64 = visits.depths.iter().zip(&visits.probabilities)
                .filter(|&(&depth, _)| depth == 0).map(|(_, &p)| p).sum();
            shape.is_empty() || (at_roots - 1.0).abs() < 1e-9
        }
    }
}
