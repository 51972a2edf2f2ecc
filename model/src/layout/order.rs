//! Orders of nodes for the layouts that fill memory without gaps.
//!
//! # Depth-first, the heavier child first
//!
//! A node's first child in the order lies right behind it. Under an even search the child with the larger subtree is the
//! likelier next step, so it gets that place. Trees that are not complete gain: see the table in
//! [`layout`](crate::Layout).
//!
//! # Van Emde Boas by weight
//!
//! The order of H. Prokop (*Cache-oblivious algorithms*, 1999, after P. van Emde Boas) cuts a complete tree of height h at
//! half its height, lays out the top, then each bottom tree, and goes on like this within each part. A search then
//! crosses few blocks **whatever the block size is**. Height is a bad measure for other trees: one after random inserts
//! of 2^21 keys is 50 high, and nearly all of its nodes lie above level 25. What has to be halved is the logarithm of the
//! *size*. So a part of s nodes is cut by weight:
//!
//! ```text
//! weight(v) = nodes of v's subtree within the part
//! t         = the smallest number for which at most t nodes weigh more than t
//! top       = the nodes heavier than t        bottoms = the subtrees that hang below the top
//! ```
//!
//! Neither the top nor a bottom exceeds t nodes. On a complete tree, t is the size of a tree of half the height, and the
//! order is Prokop's. On any tree t is at most (s + 1) / 2: the nodes heavier than s / 2 form one path. So no part is
//! deeper than log2 n cuts and the whole costs O(n log n) on the worst tree, a chain, and O(n log log n) on balanced
//! ones. A fixed cut at the square root of s would need the square root of n rounds on a chain.

use crate::Shape;

/// Levels in turn, all roots first.
pub(super) fn breadth_first(shape: &Shape) -> Vec<u32> {
    let mut order = Vec::with_capacity(shape.len());
    order.extend(shape.roots());
    let mut at = 0;
    while let Some(&v) = order.get(at) {
        order.extend_from_slice(shape.children(v));
        at += 1;
    }
    order
}

/// Each node before its children, and the subtrees of a node one after the other, the heaviest first.
///
/// Children of equal weight stay in link order. O(n log d) for nodes of up to d children.
pub(super) fn depth_first(shape: &Shape) -> Vec<u32> {
    let weight = shape.subtree_nodes();
    let mut order = Vec::with_capacity(shape.len());
    let mut stack: Vec<u32> = shape.roots().collect();
    stack.reverse();
    while let Some(v) = stack.pop() {
        order.push(v);
        let first = stack.len();
        stack.extend(shape.children(v).iter().rev());
        // Stable, lightest first: the top of the stack is the first of the heaviest.
        stack[first..].sort_by_key(|&child| weight[child as usize]);
    }
    order
}

/// The van Emde Boas order by weight; trees of a forest one after the other.
pub(super) fn van_emde_boas(shape: &Shape) -> Vec<u32> {
    let mut order = depth_first(shape);
    // Each root starts a part; depth-first order keeps trees together.
    let mut parts = Vec::new();
    let mut end = order.len();
    for at in (0..order.len()).rev() {
        if shape.parent(order[at]) == crate::NO_NODE {
            parts.push((at, end));
            end = at;
        }
    }
    refine(shape, &mut order, parts);
    order
}

/// Brings each part of `order` into van Emde Boas order.
///
/// A part is a range of `order` that holds a connected piece of the forest, each node behind its parent. Bottom trees keep
/// the order in which their roots stand in the part.
pub(super) fn refine(shape: &Shape, order: &mut [u32], mut parts: Vec<(usize, usize)>) {
    let mut weight = vec![0u32; shape.len()];
    // Of a node's part within the present one: 0 is the top, others are bottoms.
    let mut label = vec![0u32; shape.len()];
    let mut heavier: Vec<usize> = Vec::new();
    let mut fill: Vec<usize> = Vec::new();
    let mut sorted: Vec<u32> = Vec::new();
    while let Some((start, end)) = parts.pop() {
        let part = &mut order[start..end];
        // Up to three nodes, every order with the root first is the same or as good.
        if part.len() <= 3 {
            continue;
        }
        weigh(shape, part, &mut weight);
        let t = threshold(part, &weight, &mut heavier);

        // Sizes first: fill[i] counts the nodes of part i, then becomes where its next node goes.
        fill.clear();
        fill.push(0);
        for (at, &v) in part.iter().enumerate() {
            let parent_label = if at == 0 {
                0
            } else {
                label[shape.parent(v) as usize]
            };
            let own = if weight[v as usize] > t {
                0
            } else if parent_label == 0 {
                fill.push(0);
                // Fewer labels than nodes, which are counted in 32 bits.
                u32::try_from(fill.len() - 1).unwrap_or(u32::MAX)
            } else {
                parent_label
            };
            label[v as usize] = own;
            fill[own as usize] += 1;
        }
        let mut begin = 0;
        for slot in &mut fill {
            let nodes = std::mem::replace(slot, begin);
            parts.push((start + begin, start + begin + nodes));
            begin += nodes;
        }
        sorted.clear();
        sorted.resize(part.len(), 0);
        for &v in part.iter() {
            let slot = &mut fill[label[v as usize] as usize];
            sorted[*slot] = v;
            *slot += 1;
        }
        part.copy_from_slice(&sorted);
    }
}

/// Subtree sizes within a part whose first node is its root.
fn weigh(shape: &Shape, part: &[u32], weight: &mut [u32]) {
    for &v in part {
        weight[v as usize] = 1;
    }
    for &v in part[1..].iter().rev() {
        weight[shape.parent(v) as usize] += weight[v as usize];
    }
}

/// The smallest t for which at most t nodes of the part weigh more than t.
fn threshold(part: &[u32], weight: &[u32], heavier: &mut Vec<usize>) -> u32 {
    // heavier[w] = nodes of weight w; then summed from above.
    heavier.clear();
    heavier.resize(part.len() + 1, 0);
    for &v in part {
        heavier[weight[v as usize] as usize] += 1;
    }
    let mut t = part.len();
    let mut above = 0;
    // Going down, `above` = nodes heavier than t - 1. Stop before it exceeds t - 1.
    while above + heavier[t] < t {
        above += heavier[t];
        t -= 1;
    }
    u32::try_from(t).unwrap_or(u32::MAX)
}
