//! The model against the clock: predicted and measured times of the same trees, node for node where
//! they lie.

use std::hint::black_box;

use ccmodel::{CalibrateOptions, Layout, Machine, PageSize};
use ccmorph::{Morph, TreeNode};

use super::{compare, pass};
use crate::keys;
use crate::queries::Chain;
use crate::rivals::{Allocator, OURS, SYSTEM};
use crate::search_tree::{Node, SearchTree};
use crate::source::allocate_from;
use crate::structures::tree::Plan;
use crate::survey::Survey;
use crate::workload::{Comparison, Effort, KEYS_2M, Rows, SEED, Workload};

/// A search tree with `keys`, as if inserted in their order, in memory from `source`.
pub(super) fn tree_of(source: &'static Allocator, keys: &[u64]) -> SearchTree {
    let plan = Plan::of_inserts(keys);
    allocate_from(source, || plan.build_with(|_| ()))
}

/// The low half of `key` as the tree holds it. Read through a reference that the compiler knows
/// nothing about: told from the query alone, lookups would not wait for each other.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is asked for"
)]
pub(super) fn answer(tree: &SearchTree, key: u64) -> u32 {
    tree.lower_bound(key)
        .map_or(u32::MAX, |node| black_box(node).key as u32)
}

/// Lookups that wait for each other in trees of 2^21 random keys: as malloc left it, and in three
/// layouts.
pub(super) fn predict_bst(workload: &Workload, effort: &Effort) -> Rows {
    let keys = keys::random(KEYS_2M, SEED);
    let chain = Chain::sample(&keys, effort.lookups, SEED);
    let layouts = [
        ("dfs", Layout::DepthFirst),
        ("cluster", Layout::SubtreeCluster { block_bytes: 64 }),
        ("veb", Layout::VanEmdeBoas),
    ];
    let mut subjects = vec![("malloc", tree_of(&SYSTEM, &keys), PageSize::Small4K)];
    for (slug, layout) in layouts {
        let mut tree = tree_of(&OURS, &keys);
        let morph = Morph::new().layout(layout);
        allocate_from(&OURS, || morph.run(&mut tree.root, Node::children))
            .expect("there is memory for one more tree");
        subjects.push((slug, tree, PageSize::Huge2M));
    }
    let machine = Machine::calibrate(CalibrateOptions::quick());

    let passes = subjects.iter();
    let passes =
        passes.map(|(slug, tree, _)| pass(*slug, || chain.follow(|&key| answer(tree, key))));
    let rounds = compare(workload.name, effort, chain.len(), passes.collect())?;
    let comparisons = subjects
        .iter()
        .zip(rounds)
        .map(|((slug, tree, pages), measured)| {
            let predicted = Survey::of(tree).predict(*pages, &machine).ns;
            let name = format!("{}_{slug}_vs_measured", workload.name);
            Comparison::of_prediction(name, predicted, &measured)
        });
    Ok(comparisons.collect())
}
