//! Which nodes an operation visits, and how often: the part of a prediction that does not depend on
//! the layout.
//!
//! A search starts at a root and visits the node that it looks for and all its ancestors. So
//!
//! ```text
//! P(visit v) = sum over u in the subtree of v of P(search ends at u)
//! ```
//!
//! The same sums give the branch mispredictions: at a visited node the search goes on to one of the
//! children or stops. A predictor that recognises the node, by the turns that led there, bets on
//! the likeliest; at nodes that are rarely visited it guesses.

use crate::Shape;
use crate::shape::{scaled, usable};

/// The branch predictor recognises nodes that are visited at least this often, by the last ten
/// turns or so. Slightly less than 1/1024, so that rounding does not decide.
const KNOWN_PROBABILITY: f64 = (1.0 - 1e-9) / 1024.0;

/// Wrong guesses of an operation at a node that is visited with probability `visited`. It goes on
/// to one of `children` children with probability `below` in all and `likeliest` at most. In a
/// shape that is not `branching`, only the end has to be guessed.
pub(crate) fn wrong_guesses(
    visited: f64,
    below: f64,
    likeliest: f64,
    children: usize,
    branching: bool,
) -> f64 {
    let stops = (visited - below).max(0.0);
    let informed = (visited - likeliest.max(stops)).max(0.0);
    if !branching || visited >= KNOWN_PROBABILITY {
        return informed;
    }
    // A lone child may be on either side.
    let ways = children.max(2) as f64;
    informed.max(below * (1.0 - 1.0 / ways))
}

/// [`wrong_guesses`] at node `v`, where nodes are visited with these probabilities.
pub(crate) fn wrong_guesses_at(
    shape: &Shape,
    v: u32,
    branching: bool,
    probability: impl Fn(u32) -> f64,
) -> f64 {
    let children = shape.children(v);
    let (mut below, mut likeliest) = (0.0, 0.0f64);
    for child in children.iter().map(|&child| probability(child)) {
        below += child;
        likeliest = likeliest.max(child);
    }
    let visited = probability(v).clamp(0.0, 1.0);
    wrong_guesses(visited, below, likeliest, children.len(), branching)
}

/// Nodes with the probability that one operation visits them.
///
/// Computed once for a shape and used for each layout of it. 20 bytes a node.
#[derive(Clone, Debug, Default)]
pub struct Visits {
    /// Node numbers by the start of their intervals, ancestors first.
    pub(crate) order: Vec<u32>,
    /// For each node of `order`, the choices in the unit interval that visit it, as start and end.
    pub(crate) intervals: Vec<(f64, f64)>,
    /// For a sample: how many nodes of the forest each node stands for, by number. Else empty.
    pub(crate) counts: Vec<f64>,
    pub(crate) nodes_per_operation: f64,
    pub(crate) mispredictions_per_operation: f64,
}

impl Visits {
    /// Searches that end at each node equally often. O(n), no recursion.
    pub fn uniform(shape: &Shape) -> Visits {
        let each = 1.0 / shape.len().max(1) as f64;
        let nodes = shape.subtree_nodes().into_iter();
        let sums: Vec<f64> = nodes.map(|nodes| f64::from(nodes) * each).collect();
        Visits::nested(shape, &sums).with_totals(shape, &sums)
    }

    /// Searches that end at node `v` with a frequency in proportion to `weights[v]`. Weights that
    /// are negative or no numbers count as 0; if all are 0, nothing is visited. O(n), no recursion.
    ///
    /// # Panics
    /// When there is not exactly one weight for each node.
    pub fn weighted(shape: &Shape, weights: &[f64]) -> Visits {
        let sums = subtree_probabilities(shape, weights);
        Visits::nested(shape, &sums).with_totals(shape, &sums)
    }

    /// Paths that visit node `v` with probability `sums[v]`, without totals: nodes in depth-first
    /// order, each one's interval beginning with those of its children.
    pub(crate) fn nested(shape: &Shape, sums: &[f64]) -> Visits {
        let mut visits = Visits::default();
        visits.order.reserve_exact(shape.len());
        visits.intervals.reserve_exact(shape.len());
        // By depth, where the interval of the next node begins.
        let mut next = vec![0.0];
        let mut stack: Vec<(u32, usize)> = shape.roots().map(|root| (root, 0)).collect();
        stack.reverse();
        while let Some((v, depth)) = stack.pop() {
            let children = shape.children(v).iter().rev();
            stack.extend(children.map(|&child| (child, depth + 1)));
            let start = next[depth];
            let end = start + sums[v as usize].clamp(0.0, 1.0);
            next.resize(next.len().max(depth + 2), 0.0);
            (next[depth], next[depth + 1]) = (end, start);
            visits.order.push(v);
            visits.intervals.push((start, end));
        }
        visits
    }

    /// Sums up the probabilities. Mispredictions are those of the branches on the way down.
    pub(crate) fn with_totals(mut self, shape: &Shape, sums: &[f64]) -> Visits {
        let branching = !shape.is_chains();
        let guesses = |v| wrong_guesses_at(shape, v, branching, |v| sums[v as usize]);
        self.nodes_per_operation = sums.iter().map(|sum| sum.clamp(0.0, 1.0)).sum();
        self.mispredictions_per_operation = (0..shape.nodes()).map(guesses).sum();
        self
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

    /// Branch mispredictions of one operation.
    pub fn mispredictions_per_operation(&self) -> f64 {
        self.mispredictions_per_operation
    }
}

/// P(visit v) for each node, when operations end at nodes in proportion to `weights`. O(n).
pub(crate) fn subtree_probabilities(shape: &Shape, weights: &[f64]) -> Vec<f64> {
    shape.check_len(weights.len(), "weight");
    let mut ends = scaled(weights);
    let total: f64 = ends.iter().sum();
    for end in &mut ends {
        *end /= total.max(1.0);
    }
    shape.subtree_sums(ends)
}

/// How often operations end at each node, from how often each node is accessed: its own count less
/// those of its children, since an operation that visits a child has visited the node.
///
/// Negative differences, of sampled counts, give 0. Counts that are negative or no numbers count as
/// 0. O(n).
///
/// # Panics
/// When there is not exactly one count for each node.
///
/// # Examples
/// ```
/// use ccmodel::{NO_NODE, Shape, ends_of_accesses};
///
/// let shape = Shape::from_parents(&[NO_NODE, 0, 0])?;
/// assert_eq!(ends_of_accesses(&shape, &[10.0, 6.0, 1.0]), [3.0, 6.0, 1.0]);
/// # Ok::<(), ccmodel::ShapeError>(())
/// ```
pub fn ends_of_accesses(shape: &Shape, accesses: &[f64]) -> Vec<f64> {
    shape.check_len(accesses.len(), "count");
    let mut ends: Vec<f64> = accesses.iter().copied().map(usable).collect();
    for (v, &count) in (0u32..).zip(accesses) {
        if let Some(end) = ends.get_mut(shape.parent(v) as usize) {
            *end -= usable(count);
        }
    }
    for end in &mut ends {
        // Also takes NaN, the difference of two sums that overflowed, to 0.
        *end = end.max(0.0);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (1.0 + a.abs())
    }

    #[test]
    fn known_trees_are_searched_to_their_known_depths() {
        let visits = Visits::uniform(&Shape::complete_binary(7));
        // Depths 1, 2, 2, 3, 3, 3, 3.
        assert!(close(visits.nodes_per_operation(), 17.0 / 7.0));
        // Root: 7 ends below, 3 on the likelier side; two nodes below it: 3 with 1; leaves never
        // err.
        assert!(close(
            visits.mispredictions_per_operation(),
            (4.0 + 2.0 + 2.0) / 7.0
        ));
        assert_eq!(visits.order, [0, 1, 3, 4, 2, 5, 6]);
        let starts = visits.intervals.iter().map(|&(start, _)| start * 7.0);
        assert!(
            starts
                .zip([0.0, 0.0, 0.0, 1.0, 3.0, 3.0, 4.0])
                .all(|(a, b)| close(a, b))
        );
        // Neither a long chain nor an empty shape needs a stack.
        let parents: Vec<u32> = (0..200_000u32).map(|v| v.wrapping_sub(1)).collect();
        let chain = Visits::uniform(&Shape::from_parents(&parents).unwrap());
        assert!(close(chain.nodes_per_operation(), 100_000.5));
        assert!(Visits::uniform(&Shape::complete_binary(0)).is_empty());
        // Weights without a sum, and weights whose sum overflows.
        let (three, max) = (Shape::complete_binary(3), f64::MAX);
        let none = Visits::weighted(&three, &[f64::NAN, -1.0, 0.0]);
        assert!(none.nodes_per_operation().abs() < 1e-12);
        let huge = Visits::weighted(&three, &[max, max, max]);
        assert!(close(huge.nodes_per_operation(), 5.0 / 3.0));
    }

    #[test]
    fn rare_nodes_are_guessed_at() {
        // Three quarters go one way: known nodes err with one quarter, others with half.
        let guesses =
            |scale: f64, branching| wrong_guesses(scale, scale, 0.75 * scale, 2, branching) / scale;
        assert!(close(guesses(1.0, true), 0.25));
        assert!(close(guesses(1e-6, true), 0.5));
        assert!(close(guesses(1e-6, false), 0.25));
        // A lone child: stop or go on in a chain, and to which side in a tree.
        let lone = |branching| wrong_guesses(1e-6, 0.9e-6, 0.9e-6, 1, branching) / 1e-6;
        assert!(close(lone(false), 0.1) && close(lone(true), 0.45));
        // Where both sides are as likely, knowing the node does not help.
        let complete = Visits::uniform(&Shape::complete_binary((1 << 16) - 1));
        let known = complete.nodes_per_operation() / 2.0;
        assert!((complete.mispredictions_per_operation() - known).abs() < 0.6);
    }

    quickcheck! {
        fn equal_weights_are_the_uniform_case(nodes: u16, seed: u64) -> bool {
            let shape = Shape::random_binary(u32::from(nodes), seed);
            let uniform = Visits::uniform(&shape);
            let weighted = Visits::weighted(&shape, &vec![3.5; shape.len()]);
            let mispredictions = Visits::mispredictions_per_operation;
            let mut pairs = uniform.intervals.iter().zip(&weighted.intervals);
            close(uniform.nodes_per_operation, weighted.nodes_per_operation)
                && close(mispredictions(&uniform), mispredictions(&weighted))
                && pairs.all(|(&a, &b)| close(a.0, b.0) && close(a.1, b.1))
        }

        fn accesses_of_ends_give_the_ends_back(nodes: u16, seed: u64, weights: Vec<u8>) -> bool {
            let shape = Shape::random_binary(u32::from(nodes), seed);
            let weights = weights.into_iter().chain([1]).map(f64::from).cycle();
            let ends: Vec<f64> = weights.take(shape.len()).collect();
            let again = ends_of_accesses(&shape, &shape.subtree_sums(ends.clone()));
            let none = ends_of_accesses(&shape, &vec![f64::NAN; shape.len()]);
            again.iter().zip(&ends).all(|(a, b)| (a - b).abs() < 1e-6)
                && none.iter().all(|&end| end <= 0.0)
        }

        fn roots_share_one_operation(parents: Vec<u16>) -> bool {
            let shape = crate::shape::tests::forest(&parents);
            let visits = Visits::uniform(&shape);
            let ends = visits.intervals.iter().map(|&(_, end)| end);
            shape.is_empty() || close(ends.fold(0.0, f64::max), 1.0)
        }
    }
}
