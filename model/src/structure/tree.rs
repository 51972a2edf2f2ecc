//! Trees whose nodes are read whole: search trees, k-ary trees, quad- and octrees.

use super::built::{Homes, Places};
use super::{Built, Growth, Sizes, linear};
use crate::accesses::Points;
use crate::shape::random::SplitMix64;
use crate::{Lengths, Links, NO_NODE, Shape};

pub(super) fn search(keys: u32, growth: Growth, sizes: &Sizes) -> Built {
    let (shape, ranks) = match growth {
        Growth::Complete => {
            let shape = Shape::complete_binary(keys);
            let ranks = ranks_left_first(&shape);
            (shape, ranks)
        }
        Growth::RandomInsert { seed } => Shape::random_binary_with_keys(keys, seed),
    };
    let lengths = Lengths::Uniform(sizes.touched_bytes);
    let points = Points::of_keys(shape.clone(), lengths, Vec::new(), inverse(&ranks));
    Built::new(shape, sizes.node, points, Homes::Nodes, Places::Gaps)
}

/// By node of a binary tree in which an only child is a left one, how many keys are smaller.
pub(super) fn ranks_left_first(shape: &Shape) -> Vec<u32> {
    let subtree = shape.subtree_nodes();
    // Smaller keys than any of the subtree.
    let mut start = vec![0u32; shape.len()];
    let mut ranks = vec![0u32; shape.len()];
    for v in 0..shape.nodes() {
        let first = start[v as usize];
        let mut rank = first;
        let mut children = shape.children(v).iter();
        if let Some(&left) = children.next() {
            start[left as usize] = first;
            rank += subtree[left as usize];
        }
        if let Some(&right) = children.next() {
            start[right as usize] = rank + 1;
        }
        ranks[v as usize] = rank;
    }
    ranks
}

pub(super) fn inverse(ranks: &[u32]) -> Vec<u32> {
    let mut nodes = vec![0; ranks.len()];
    for (v, &rank) in (0..).zip(ranks) {
        nodes[rank as usize] = v;
    }
    nodes
}

pub(super) fn of_arity(keys: u32, arity: u32, growth: Growth, sizes: &Sizes) -> Built {
    match growth {
        _ if arity == 1 => linear::list(keys, Links::Single, sizes),
        Growth::Complete => with_arity(complete(keys, arity), arity, sizes),
        Growth::RandomInsert { seed } => with_arity(increasing(keys, arity, seed), arity, sizes),
    }
}

/// A quad- or octree, or one in other dimensions.
pub(super) fn points(keys: u32, dimensions: u32, growth: Growth, sizes: &Sizes) -> Built {
    let arity = 1 << dimensions;
    let shape = match growth {
        Growth::Complete => complete(keys, arity),
        Growth::RandomInsert { seed } => point_tree(keys, dimensions, seed),
    };
    with_arity(shape, arity, sizes)
}

fn with_arity(shape: Shape, arity: u32, sizes: &Sizes) -> Built {
    let lengths = Lengths::Uniform(sizes.touched_bytes);
    Built {
        places: Places::NullLinks { arity },
        ..Built::of_nodes(shape, sizes.node, lengths)
    }
}

fn complete(nodes: u32, arity: u32) -> Shape {
    let parent = |v: u32| v.checked_sub(1).map_or(NO_NODE, |before| before / arity);
    Shape::from_generated((0..nodes).map(parent).collect())
}

/// Each node hangs at a free link of those before it, any of them with equal probability.
///
/// A free link is found by trying: any node, any of its links. At least `1 - 1 / arity` of all
/// links are free.
fn increasing(nodes: u32, arity: u32, seed: u64) -> Shape {
    let mut random = SplitMix64::new(seed);
    let mut children = vec![0u32; nodes as usize];
    let parents = (0..nodes)
        .map(|v| {
            if v == 0 {
                return NO_NODE;
            }
            loop {
                let parent = random.below(v);
                let used = &mut children[parent as usize];
                // Which of the links are used does not matter, only how many.
                if random.below(arity) >= *used {
                    *used += 1;
                    return parent;
                }
            }
        })
        .collect();
    Shape::from_generated(parents)
}

/// A node of a point tree under construction: children are lists of siblings.
struct Cell {
    first_child: u32,
    next_sibling: u32,
    /// One bit for each dimension: on which side of the parent.
    side: u8,
}

/// Inserts uniformly distributed points; each divides the cell that it falls into at its place. O(n
/// log n) expected.
fn point_tree(nodes: u32, dimensions: u32, seed: u64) -> Shape {
    let mut random = SplitMix64::new(seed);
    let dimensions = dimensions as usize;
    let mut places: Vec<u64> = Vec::with_capacity(nodes as usize * dimensions);
    let mut parents = Vec::with_capacity(nodes as usize);
    let mut cells: Vec<Cell> = Vec::with_capacity(nodes as usize);
    for v in 0..nodes {
        let own = places.len();
        places.extend((0..dimensions).map(|_| random.next_u64()));
        let (mut parent, mut side) = (NO_NODE, 0);
        let mut next = if v == 0 { NO_NODE } else { 0 };
        while let Some(cell) = cells.get(next as usize) {
            parent = next;
            let at = next as usize * dimensions;
            let above = places[own..].iter().zip(&places[at..at + dimensions]);
            side = above.fold(0, |bits, (own, other)| bits << 1 | u8::from(own >= other));
            next = cell.first_child;
            while let Some(sibling) = cells.get(next as usize)
                && sibling.side != side
            {
                next = sibling.next_sibling;
            }
        }
        let above = cells.get_mut(parent as usize);
        let next_sibling = above.map_or(NO_NODE, |above| {
            std::mem::replace(&mut above.first_child, v)
        });
        cells.push(Cell {
            first_child: NO_NODE,
            next_sibling,
            side,
        });
        parents.push(parent);
    }
    Shape::from_generated(parents)
}
