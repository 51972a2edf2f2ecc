//! A sample of a large forest on which layouts can be compared.
//!
//! Placing millions of nodes in each layout takes seconds, although the many subtrees below the top
//! of a tree are alike. So the forest is cut:
//!
//! ```text
//! t        = the smallest number for which at most t nodes have subtrees of more than t nodes
//! top      = the nodes heavier than t                          all of them are in the sample
//! bottoms  = the subtrees below, in bundles of t nodes in number order; some bundles are in the
//!            sample, and each of their nodes stands for several
//! ```
//!
//! Van Emde Boas order begins with this cut, so that for it the sample is exact. Other orders lose
//! at most one link on the path of a search. Probabilities of visit, the number of blocks and the
//! nodes of an operation are those of the whole forest. Under weights, all hot bundles are taken,
//! each for itself, and the rest is thinned out.

use crate::visits::wrong_guesses_at;
use crate::{NO_NODE, Shape, Visits};

/// The part of a forest by which layouts are ranked.
pub(crate) struct Sample {
    /// The top, and each sampled bottom as a tree of its own.
    pub(crate) shape: Shape,
    /// Visits of the sampled nodes, with how many nodes each stands for.
    pub(crate) visits: Visits,
    /// By node, how often operations end there or in what was cut off below: layouts that weigh
    /// subtrees by it see them as they are in the whole.
    pub(crate) ends: Vec<f64>,
    /// The nodes' numbers in the whole forest.
    pub(crate) chosen: Vec<u32>,
}

/// The cut `t` of a forest of these subtrees, at most `cut_max`; `None` when more than that number
/// of nodes are heavier. O(n).
pub(crate) fn cut(subtree: &[u32], cut_max: u32) -> Option<u32> {
    // heavier[w] = nodes of weight w, all above the limit in the last.
    let mut heavier = vec![0u32; cut_max as usize + 2];
    for &weight in subtree {
        heavier[weight.min(cut_max + 1) as usize] += 1;
    }
    let mut above = 0;
    // Going down, `above` = nodes heavier than t.
    let is_cut = |&t: &u32| {
        above += heavier[t as usize + 1];
        above <= t
    };
    (1..=cut_max).rev().take_while(is_cut).last()
}

/// A run of bottoms in number order.
#[derive(Default)]
struct Bundle {
    /// Its range in the list of bottoms.
    roots: std::ops::Range<usize>,
    nodes: u64,
    /// Probability that an operation visits any of its roots.
    probability: f64,
}

impl Sample {
    /// Cuts `shape` at `cut` and takes all of the top and about `bundles` bundles of bottoms.
    ///
    /// A bundle has at least `bundle_nodes` nodes; `sums[v]` is the probability that an operation
    /// visits `v` where given, else that of uniform searches. O(n) for the bottoms, then O(sample).
    pub(crate) fn new(
        shape: &Shape,
        subtree: &[u32],
        sums: Option<&[f64]>,
        cut: u32,
        bundle_nodes: u64,
        bundles: usize,
    ) -> Sample {
        let each = 1.0 / shape.len().max(1) as f64;
        let probability = |v: u32| match sums {
            Some(sums) => sums[v as usize],
            None => f64::from(subtree[v as usize]) * each,
        };
        let mut builder = Builder {
            shape,
            chosen: Vec::new(),
            parents: Vec::new(),
            counts: Vec::new(),
        };
        let (mut roots, mut all) = (Vec::new(), Vec::new());
        let mut open = Bundle::default();
        for (v, &weight) in (0u32..).zip(subtree) {
            let parent = shape.parent(v);
            if weight > cut {
                builder.add_top(v, parent);
            } else if parent == NO_NODE || subtree[parent as usize] > cut {
                roots.push(v);
                open.roots.end = roots.len();
                open.nodes += u64::from(weight);
                open.probability += probability(v);
                if open.nodes >= bundle_nodes {
                    all.push(std::mem::take(&mut open));
                    open.roots = roots.len()..roots.len();
                }
            }
        }
        if open.nodes > 0 {
            all.push(open);
        }
        for (bundle, count) in thinned(&all, bundles) {
            for &root in &roots[bundle.roots.clone()] {
                builder.add_tree(root, count);
            }
        }
        let nodes_per_operation = match sums {
            Some(sums) => sums.iter().sum(),
            None => subtree.iter().map(|&nodes| f64::from(nodes)).sum::<f64>() * each,
        };
        builder.finish(probability, nodes_per_operation)
    }
}

/// About `wanted` of the bundles, each with how many it stands for.
fn thinned(all: &[Bundle], wanted: usize) -> Vec<(&Bundle, f64)> {
    if all.len() <= wanted {
        return all.iter().map(|bundle| (bundle, 1.0)).collect();
    }
    // Hot bundles stand for themselves, up to half of the wanted ones.
    let mut by_heat: Vec<usize> = (0..all.len()).collect();
    by_heat.sort_by(|&a, &b| all[b].probability.total_cmp(&all[a].probability));
    let total: f64 = all.iter().map(|bundle| bundle.probability).sum();
    let is_hot = |&&i: &&usize| all[i].probability * wanted as f64 > 2.0 * total;
    let hot = by_heat[..wanted / 2].iter().take_while(is_hot).count();
    let (hot, cold) = by_heat.split_at_mut(hot);
    // In number order.
    hot.sort_unstable();
    cold.sort_unstable();
    let take = wanted - hot.len();
    // One from each stratum of the number order, at varying places in it.
    let picked: Vec<usize> = (0..take)
        .map(|i| {
            let (from, to) = (i * cold.len() / take, (i + 1) * cold.len() / take);
            cold[from + (((to - from) * (i * 0x9E37 % 0x10000)) >> 16)]
        })
        .collect();
    let nodes_of = |bundles: &[usize]| bundles.iter().map(|&i| all[i].nodes).sum::<u64>();
    let count = nodes_of(cold) as f64 / nodes_of(&picked).max(1) as f64;
    let hot = hot.iter().map(|&i| (&all[i], 1.0));
    hot.chain(picked.iter().map(|&i| (&all[i], count)))
        .collect()
}

/// The sampled nodes, parents first.
struct Builder<'a> {
    shape: &'a Shape,
    /// Their numbers in the whole shape; those of the top ascend.
    chosen: Vec<u32>,
    parents: Vec<u32>,
    counts: Vec<f64>,
}

impl Builder<'_> {
    /// Adds a node of the top; `parent` was added before, and no bottom yet.
    fn add_top(&mut self, v: u32, parent: u32) {
        let number = match self.chosen.binary_search(&parent) {
            Ok(index) => number(index),
            Err(_) => NO_NODE,
        };
        self.add(v, number, 1.0);
    }

    /// Adds the subtree of `root` as a tree of its own.
    fn add_tree(&mut self, root: u32, count: f64) {
        let mut next = self.chosen.len();
        self.add(root, NO_NODE, count);
        while let Some(&v) = self.chosen.get(next) {
            for &child in self.shape.children(v) {
                self.add(child, number(next), count);
            }
            next += 1;
        }
    }

    fn finish(self, probability: impl Fn(u32) -> f64, nodes_per_operation: f64) -> Sample {
        let sampled = Shape::from_generated(self.parents);
        let sums: Vec<f64> = self.chosen.iter().map(|&v| probability(v)).collect();
        let branching = !self.shape.is_chains();
        // In the whole shape: at the rim of the top, most children are not in the sample.
        let guesses = |&v| wrong_guesses_at(self.shape, v, branching, &probability);
        let guesses = self.chosen.iter().map(guesses).zip(&self.counts);
        let end = |(v, &sum): (u32, &f64)| {
            let kept = sampled.children(v).iter();
            (sum - kept.map(|&child| sums[child as usize]).sum::<f64>()).max(0.0)
        };
        Sample {
            ends: (0..).zip(&sums).map(end).collect(),
            visits: Visits {
                mispredictions_per_operation: guesses.map(|(each, count)| each * count).sum(),
                counts: self.counts,
                nodes_per_operation,
                ..Visits::nested(&sampled, &sums)
            },
            shape: sampled,
            chosen: self.chosen,
        }
    }

    fn add(&mut self, v: u32, parent: u32, count: f64) {
        self.chosen.push(v);
        self.parents.push(parent);
        self.counts.push(count);
    }
}

/// A number in the sample.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NO_NODE)
}

#[cfg(test)]
mod tests;
