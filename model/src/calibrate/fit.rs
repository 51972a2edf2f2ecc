//! Turns a latency curve into steps, with the measured sizes `W_1 < W_2 < ...` as possible
//! capacities:
//!
//! ```text
//! ns(W_j) = base + sum over i < j of step_i x (1 - W_i / W_j),      base >= 0, step_i >= 0
//! ```
//!
//! Coordinate descent finds the weighted least-squares solution: each unknown in turn is set to its
//! best value given the others, or to 0 where that is negative. The problem is convex, so this
//! converges, and the signs keep noise from being explained by steps of alternating sign.

use crate::machine::{CurvePoint, Step};

/// Rounds of coordinate descent; on measured curves about a thousand are enough for 1e-3 ns.
const ROUNDS: usize = 4000;

/// A capacity is only looked for where the curve goes on to this multiple of it: a step at the last
/// point alone cannot be told from noise.
const SEEN_BEYOND: f64 = 4.0;

/// The steps that explain the curve best, those below `min_step_ns` left out, smallest capacity
/// first.
///
/// `weights[j]` is the inverse of the expected error of point `j`. O(points² x rounds).
pub(super) fn fit_steps(points: &[CurvePoint], weights: &[f64], min_step_ns: f64) -> Vec<Step> {
    let n = points.len();
    let largest = points.iter().map(|point| point.at).fold(0.0, f64::max);
    // Column 0 is the base, column i + 1 the step at size i.
    let entry = |column: usize, row: usize| {
        let served = match column.checked_sub(1) {
            None => 0.0,
            Some(i) if points[i].at * SEEN_BEYOND > largest => 1.0,
            Some(i) => points[i].at / points[row].at,
        };
        weights[row] * (1.0 - served).max(0.0)
    };
    let column = |column| (0..n).map(|row| entry(column, row)).collect();
    let columns: Vec<Vec<f64>> = (0..n).map(column).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let target: Vec<f64> = { points.iter().zip(weights) }
        .map(|(point, weight)| point.ns * weight)
        .collect();
    let products = |a: &Vec<f64>| columns.iter().map(|b| dot(a, b)).collect();
    let gram: Vec<Vec<f64>> = columns.iter().map(products).collect();
    let goal: Vec<f64> = columns.iter().map(|column| dot(column, &target)).collect();
    let mut unknowns = vec![0.0; n];
    for _ in 0..ROUNDS {
        for i in 0..n {
            if gram[i][i] > 0.0 {
                let best = unknowns[i] + (goal[i] - dot(&gram[i], &unknowns)) / gram[i][i];
                unknowns[i] = f64::max(best, 0.0);
            }
        }
    }
    let steps = unknowns.iter().skip(1).zip(points);
    steps
        .map(|(&step_ns, point)| Step {
            capacity_bytes: point.at,
            step_ns,
        })
        .filter(|step| step.step_ns >= min_step_ns)
        .collect()
}
