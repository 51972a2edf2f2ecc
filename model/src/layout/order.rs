//! Breadth-first order, and van Emde Boas order by weight.
//!
//! The order of H. Prokop (*Cache-oblivious algorithms*, 1999, after P. van Emde Boas) cuts a
//! complete tree at half its height, lays out the top, then each bottom tree, each cut in the same
//! way. In other trees height is a bad measure, so a part of s nodes is cut by weight:
//!
//! ```text
//! weight(v) = nodes of v's subtree within the part
//! t         = the smallest number for which at most t nodes weigh more than t
//! top       = the nodes heavier than t        bottoms = the subtrees that hang below the top
//! ```
//!
//! On a complete tree the order is Prokop's. On any tree neither the top nor a bottom exceeds t
//! nodes, and t is at most (s + 1) / 2, since the nodes heavier than s / 2 form one path. So the
//! whole costs O(n log n) even on a chain. In depth-first order a bottom is a range of the part
//! with the same weights. The top is copied out, with weights of its own.

use super::preorder::{Tree, count_u32, local_sizes};
use crate::Shape;

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

/// The van Emde Boas order by weight of a forest, trees one after the other.
pub(super) fn van_emde_boas(tree: Tree<'_>) -> Vec<u32> {
    let mut order = Vec::with_capacity(tree.len());
    let mut cutter = Cutter::default();
    for root in tree.roots() {
        cutter.lay_out_subtree(tree, root, &mut order);
    }
    order
}

/// Lays out trees in van Emde Boas order; keeps its memory between them.
#[derive(Default)]
pub(super) struct Cutter {
    /// Parts that were copied out: the numbers of their nodes, in depth-first order, and their
    /// sizes within the part.
    nodes: Vec<u32>,
    sizes: Vec<u32>,
    /// Parts to come, the next one last.
    parts: Vec<Part>,
    heavier: Vec<u32>,
    top: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Part {
    /// Where it begins: in the tree itself, or in what was copied out.
    start: usize,
    nodes: usize,
    copied: bool,
    /// How much of what was copied out is needed from here on.
    keep: usize,
}

/// Up to this many nodes, every order with the root first is as good.
pub(super) const WHOLE_NODES_MAX: usize = 3;

impl Cutter {
    /// Appends the subtree of `root` to `order`.
    pub(super) fn lay_out_subtree(&mut self, tree: Tree<'_>, root: u32, order: &mut Vec<u32>) {
        self.parts.push(Part {
            start: root as usize,
            nodes: tree.size(root) as usize,
            copied: false,
            keep: 0,
        });
        self.run(tree, order);
    }

    /// Appends a connected piece of the tree to `order`; `nodes` names it in depth-first order.
    pub(super) fn lay_out_piece(&mut self, tree: Tree<'_>, nodes: &[u32], order: &mut Vec<u32>) {
        self.nodes.clear();
        self.sizes.clear();
        self.nodes.extend_from_slice(nodes);
        local_sizes(nodes, tree, &mut self.sizes);
        self.parts.push(Part {
            start: 0,
            nodes: nodes.len(),
            copied: true,
            keep: nodes.len(),
        });
        self.run(tree, order);
    }

    fn run(&mut self, tree: Tree<'_>, order: &mut Vec<u32>) {
        while let Some(part) = self.parts.pop() {
            self.nodes.truncate(part.keep);
            self.sizes.truncate(part.keep);
            let range = part.start..part.start + part.nodes;
            if part.nodes <= WHOLE_NODES_MAX {
                if part.copied {
                    order.extend_from_slice(&self.nodes[range]);
                } else {
                    order.extend(range.map(count_u32));
                }
                continue;
            }
            self.cut(tree, part);
        }
    }

    /// Puts the top of a part and its bottoms on the list, the top to be next.
    fn cut(&mut self, tree: Tree<'_>, part: Part) {
        let sizes = if part.copied {
            &self.sizes
        } else {
            tree.sizes()
        };
        let sizes = &sizes[part.start..part.start + part.nodes];
        let t = threshold(sizes, &mut self.heavier);
        let first = self.parts.len();
        self.top.clear();
        let mut at = 0;
        while let Some(&nodes) = sizes.get(at) {
            if nodes > t {
                self.top.push(count_u32(at));
                at += 1;
            } else {
                self.parts.push(Part {
                    start: part.start + at,
                    nodes: nodes as usize,
                    ..part
                });
                at += nodes as usize;
            }
        }
        self.parts[first..].reverse();
        let start = self.nodes.len();
        // The weights become those within the top; the list of the threshold is free for them.
        self.heavier.clear();
        local_sizes(&self.top, Tree::new(sizes, None), &mut self.heavier);
        self.sizes.extend_from_slice(&self.heavier);
        for &at in &self.top {
            let at = part.start + at as usize;
            let node = if part.copied {
                self.nodes[at]
            } else {
                count_u32(at)
            };
            self.nodes.push(node);
        }
        self.parts.push(Part {
            start,
            nodes: self.top.len(),
            copied: true,
            keep: self.nodes.len(),
        });
    }
}

/// The smallest t for which at most t nodes of the part weigh more than t.
fn threshold(sizes: &[u32], heavier: &mut Vec<u32>) -> u32 {
    let guess = count_u32(sizes.len().isqrt() / 2);
    if let Some(t) = threshold_above(sizes, guess, heavier) {
        return t;
    }
    // All nodes weigh more than 0, and there are some.
    threshold_above(sizes, 0, heavier).unwrap_or(1)
}

/// The threshold if it exceeds `low`; O(nodes heavier than `low`, and their children).
fn threshold_above(sizes: &[u32], low: u32, heavier: &mut Vec<u32>) -> Option<u32> {
    // First the sizes of the heavy nodes, then counts of them.
    heavier.clear();
    let mut at = 0;
    while let Some(&nodes) = sizes.get(at) {
        if nodes > low {
            heavier.push(nodes);
            at += 1;
        } else {
            at += nodes as usize;
        }
    }
    let heavy = heavier.len();
    if heavy <= low as usize {
        return None;
    }
    // counts[w] = nodes of weight w, and at the end those that are heavier than there are heavy
    // nodes.
    heavier.resize(2 * heavy + 2, 0);
    let (weights, counts) = heavier.split_at_mut(heavy);
    for &nodes in &*weights {
        counts[(nodes as usize).min(heavy + 1)] += 1;
    }
    // Going down, `above` = nodes heavier than t. Stop before it exceeds t.
    let mut t = heavy;
    let mut above = counts[heavy + 1] as usize;
    while above + (counts[t] as usize) < t {
        above += counts[t] as usize;
        t -= 1;
    }
    Some(count_u32(t))
}
