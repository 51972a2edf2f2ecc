//! Lookups of which some are hot: the layout that is told which, against those that know the shape
//! alone.

use std::collections::HashMap;

use ccmodel::Layout;
use ccmorph::{LayoutChoice, Morph, TreeNode as _};

use super::super::{Pass, SEED, compare, random_keys};
use super::{FIXED, morphed, slug};
use crate::programs::Scale;
use crate::queries::{Queries, Skew};
use crate::rounds::Rounds;
use crate::search_tree::{Node, Tree};
use crate::source::{Source, allocate_from};
use crate::structures::Structure;
use crate::structures::tree::Plan;
use crate::workload::{Comparison, Effort, Failure, Workload};

/// Dependent lookups with a frequency after Zipf's law in a random tree of 2^22 nodes, 2^19 in a
/// quick run: laid out by the counts of earlier lookups, against the best layout that does not know
/// them.
pub const WEIGHTED_ZIPF: Workload = Workload {
    suite: "ccmorph",
    name: "weighted_zipf",
    also: &[],
    run: weighted_zipf,
};

/// How often each key was asked for.
type Counts = HashMap<u64, u32>;

/// A copy of `tree`, laid out by `counts`, and the layout that it has.
///
/// # Panics
/// When there is no memory for it.
fn weighted(tree: &Tree<u64>, layout: LayoutChoice, counts: &Counts) -> (Tree<u64>, Layout) {
    let mut copy = allocate_from(Source::CcMalloc, || tree.copy());
    let morph = Morph::new().layout(layout);
    let report = allocate_from(Source::CcMalloc, || {
        morph.run_weighted(&mut copy.root, Node::children, |node| {
            f64::from(counts.get(&node.key).copied().unwrap_or(0))
        })
    });
    let layout = report.expect("there is memory for one more tree").layout;
    (copy, layout)
}

fn weighted_zipf(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &WEIGHTED_ZIPF;
    let nodes = match effort.scale {
        Scale::Quick => 1 << 19,
        Scale::Full => 1 << 22,
    };
    let keys = random_keys(nodes);
    let tree = allocate_from(Source::CcMalloc, || Plan::of_inserts(&keys).build());
    // The counts are of other lookups than those that are timed; what is hot is the same.
    let mut queries = Queries::new(&keys, Skew::Zipf, SEED);
    let mut counts = Counts::new();
    for _ in 0..nodes {
        *counts.entry(queries.draw()).or_default() += 1;
    }
    let chain = queries.chain(effort.lookups / 4);

    let (by_weight, _) = weighted(&tree, Layout::Weighted.into(), &counts);
    let (chosen, chosen_layout) = weighted(&tree, LayoutChoice::Auto, &counts);
    let mut trees = vec![
        ("weighted".to_owned(), by_weight),
        ("chosen by weight".to_owned(), chosen),
    ];
    let with_weights = trees.len();
    let unweighted = FIXED.map(Some).into_iter().chain([None]);
    trees.extend(unweighted.map(|layout| (slug(layout), morphed(&tree, layout))));
    trees.push(("unmorphed".to_owned(), tree));

    let passes: Vec<Pass<'_>> = trees
        .iter()
        .map(|(name, tree)| -> Pass<'_> { (name.clone(), Box::new(|| tree.follow(&chain))) })
        .collect();
    let times: Vec<Rounds> = compare(workload.name, effort, passes)?
        .into_iter()
        .map(|rounds| rounds.per_operation(chain.len()))
        .collect();

    let against = |name: String, ours: &Rounds, rival: &str, theirs: &Rounds| {
        Comparison::new(workload.suite, name, rival, "ns", ours, theirs)
    };
    let others: Vec<(&str, &Rounds)> = trees
        .iter()
        .map(|(name, _)| name.as_str())
        .zip(&times)
        .skip(with_weights)
        .collect();
    let best = others
        .iter()
        .min_by(|a, b| a.1.median().total_cmp(&b.1.median()));
    let mut comparisons = Vec::new();
    if let Some(&(best, theirs)) = best {
        let name = workload.name.to_owned();
        comparisons.push(against(name, &times[0], best, theirs));
        let name = format!("{}_auto_vs_best", workload.name);
        let rival = format!("{best} (chosen: {chosen_layout})");
        comparisons.push(against(name, &times[1], &rival, theirs));
    }
    for (rival, theirs) in others {
        let name = format!("{}_vs_{rival}", workload.name);
        comparisons.push(against(name, &times[0], rival, theirs));
    }
    Ok(comparisons)
}
