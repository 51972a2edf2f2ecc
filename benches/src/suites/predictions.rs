//! Predicted and measured times of the same trees, node for node where they lie.

use std::hint::black_box;

use ccmodel::{CalibrateOptions, Layout, Machine, PageSize};
use ccmorph::{Morph, MorphError, Report, TreeNode};

use super::ccmorph::{morphed, tree_of};
use super::{compare, pass};
use crate::keys;
use crate::queries::Chain;
use crate::search_tree::{Node, SearchTree};
use crate::structures::Structure;
use crate::survey::Survey;
use crate::workload::{Comparison, Effort, KEYS_2M, Rows, SEED, Workload};

impl Structure for SearchTree {
    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError> {
        morph.run(&mut self.root, Node::children)
    }

    /// Without `black_box`, the compiler could answer from the query alone, and lookups would not
    /// wait for each other.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is asked for")]
    fn answer(&self, query: u64) -> u32 {
        let node = self.lower_bound(query);
        node.map_or(u32::MAX, |node| black_box(node).key as u32)
    }
}

/// Dependent lookups in trees of 2^21 random keys: as malloc left it, and in three layouts.
pub(super) fn predict_bst(workload: &Workload, effort: &Effort) -> Rows {
    let keys = keys::random(KEYS_2M, SEED);
    let chain = Chain::sample(&keys, effort.lookups, SEED);
    let tree = tree_of(&keys);
    let morphed = [
        ("dfs", Layout::DepthFirst),
        ("cluster", Layout::SubtreeCluster { block_bytes: 64 }),
        ("veb", Layout::VanEmdeBoas),
    ]
    .map(|(slug, layout)| (slug, morphed(&tree, Some(layout)), PageSize::Huge2M));
    let mut subjects = vec![("malloc", tree, PageSize::Small4K)];
    subjects.extend(morphed);
    let machine = Machine::calibrate(CalibrateOptions::quick());

    let passes = subjects.iter();
    let passes = passes.map(|(slug, tree, _)| pass(slug, slug, || tree.follow(&chain)));
    let sides = compare(workload.name, effort, chain.len(), passes.collect())?;
    let rows = subjects
        .iter()
        .zip(sides)
        .map(|((slug, tree, pages), side)| {
            let predicted = Survey::of(tree).predict(*pages, &machine).ns;
            let name = format!("{}_{slug}_vs_measured", workload.name);
            Comparison::of_prediction(name, predicted, &side.rounds)
        });
    Ok(rows.collect())
}
