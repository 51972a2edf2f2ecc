//! The hottest nodes apart from all others, each part in hierarchical order by weight.
//!
//! Hierarchical order by weight puts a node's heaviest child beside it, hot or cold, so the end of
//! a hot path shares its line with a cold child. A few nodes are so hot that this is a waste: those
//! that a first-level cache could hold. They are placed first, as a forest of their own, and the
//! cold subtrees that hang on them after them.
//!
//! Misses a search, random-insert tree of 2^22 nodes of 32 B, Zipf(0.99) over the keys in a random
//! order, exact probabilities of lines and pages in LRU caches of 768 and 32768 lines, 2048 pages
//! and 8192 blocks:
//!
//! | layout | lines touched | 48 KiB of lines | 2 MiB | 8 MiB of pages | 2 MiB of 256 B blocks |
//! |---|---|---|---|---|---|
//! | `cluster`, no weights | 16.68 | 8.71 | 3.06 | 1.69 | 2.35 |
//! | `hierarchical`, no weights | 16.68 | 8.71 | 3.06 | 1.08 | 2.09 |
//! | `cluster`, by weight | 16.03 | 8.23 | 2.89 | 1.29 | 1.87 |
//! | `hierarchical`, by weight | 16.03 | 8.22 | 2.89 | 0.76 | 1.67 |
//! | hottest 24 KiB apart (taken) | 16.13 | 8.25 | 2.89 | 0.70 | 1.58 |
//! | hottest 1 MiB apart | 16.09 | 8.27 | 2.88 | 0.70 | 1.65 |
//! | 24 KiB, then 1 MiB | 16.19 | 8.32 | 2.88 | 0.70 | 1.64 |
//! | 48 KiB, then 2 MiB | 16.18 | 8.34 | 2.90 | 0.59 | 1.72 |
//!
//! In time, medians of 41 interleaved rounds of 40000 dependent searches in huge pages, other
//! programs running: 773 ns a search as taken, 786 ns in hierarchical order by weight and 800 ns in
//! clusters by weight; without weights 816 ns (`hierarchical`) and 824 ns (`cluster`).

use super::grid::Grid;
use super::hierarchical;
use super::preorder::{Candidate, Tree, count_u32, local_sizes};
use crate::Shape;

/// Memory for the nodes that are kept apart: half of a usual first-level cache.
const HOT_BYTES: u64 = 24 << 10;

/// The weight of each subtree, in units of the largest weight of a node, so that nothing overflows
/// and equal weights give sizes; `None` where no node has a weight.
pub(super) fn subtree_weights(shape: &Shape, weights: &[f64]) -> Option<Vec<f32>> {
    let usable = |weight: f64| {
        // Not -0.0 either, whose bits are those of a large number.
        if weight.is_finite() && weight > 0.0 {
            weight
        } else {
            0.0
        }
    };
    let largest = weights.iter().copied().map(usable).fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let mut sums: Vec<f64> = weights
        .iter()
        .map(|&weight| usable(weight) / largest)
        .collect();
    for v in (0..shape.nodes()).rev() {
        let sum = sums[v as usize];
        if let Some(above) = sums.get_mut(shape.parent(v) as usize) {
            *above += sum;
        }
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "seven digits are enough to choose the heavier; sums of at most 2^32 are in range"
    )]
    Some(sums.into_iter().map(|sum| sum as f32).collect())
}

/// Places of the grid by depth-first number. O(n log n).
pub(super) fn places(whole: Tree<'_>, grid: &Grid) -> Vec<u32> {
    let mut places = vec![0u32; whole.len()];
    let hot_nodes = usize::try_from(HOT_BYTES / grid.stride_bytes()).unwrap_or(usize::MAX);
    if hot_nodes == 0 || hot_nodes >= whole.len() {
        hierarchical::fill(whole, whole.roots_by_weight(), grid, 0, |v, place| {
            places[v as usize] = place;
        });
        return places;
    }
    let mut heat: Vec<Candidate> = (0..count_u32(whole.len()))
        .map(|v| whole.candidate(v))
        .collect();
    // The heaviest have their ancestors among them, as these are no lighter and have smaller
    // numbers.
    let (_, &mut coldest, _) = heat.select_nth_unstable_by(hot_nodes - 1, |a, b| b.cmp(a));
    drop(heat);
    let (hot, cold): (Vec<u32>, Vec<u32>) =
        (0..count_u32(whole.len())).partition(|&v| whole.candidate(v) >= coldest);
    place_part(whole, &hot, grid, 0, &mut places);
    place_part(whole, &cold, grid, count_u32(hot.len()), &mut places);
    places
}

/// Places some nodes, named in depth-first order, as a forest of their own, the heaviest trees
/// first.
fn place_part(whole: Tree<'_>, nodes: &[u32], grid: &Grid, first: u32, places: &mut [u32]) {
    let mut sizes = Vec::with_capacity(nodes.len());
    local_sizes(nodes, whole, &mut sizes);
    let weights: Vec<f32> = nodes.iter().map(|&v| whole.weight(v)).collect();
    let part = Tree::new(&sizes, Some(&weights));
    hierarchical::fill(part, part.roots_by_weight(), grid, first, |v, place| {
        places[nodes[v as usize] as usize] = place;
    });
}
