//! Searches in random trees: as the allocators left them, and morphed.

use ccmodel::Layout;
use ccmorph::{Morph, TreeNode};
use examples::chain::QueryChain;
use examples::search_tree::{Node, SearchTree};
use examples::switch::{Source, born_in};
use examples::timing::nanoseconds_each;

use super::super::{Pass, SEED, compare, plain_tree, random_keys, tree_answer};
use super::{Subjects, slug};
use crate::queries::{Queries, Skew};
use crate::structures::Structure as _;
use crate::structures::tree::{Plan, Tree};
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Nanoseconds, Workload};

/// Lookups that wait for each other, in a tree of 2^21 random keys that was built in random order.
pub const BST_RANDOM_DEPENDENT_2M: Workload = Workload {
    suite: "ccmorph",
    name: "bst_random_dependent_2m",
    also: &[],
    run: bst_random_dependent,
};

/// Lookups in a tree of 2^22 nodes of 32 bytes that was built in random order: such as wait for each other, and such as do not.
pub const BST_RANDOM_4M: Workload = Workload {
    suite: "ccmorph",
    name: "bst_random_dependent_4m",
    also: &["bst_random_independent_4m"],
    run: bst_random_4m,
};

/// Nodes of the tree whose name ends in `4m`: 128 MiB.
const NODES_4M: usize = 1 << 22;

fn bst_random_4m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let plan = Plan::of_inserts(&random_keys(NODES_4M));
    let subjects = Subjects::new(effort, || plan.build());
    let mut queries = Queries::new(plan.keys(), Skew::Uniform, SEED);
    let chain = queries.chain(effort.lookups);
    let known: Vec<u64> = (0..effort.lookups).map(|_| queries.draw()).collect();
    drop(plan);

    let dependent = |tree: &Tree| tree.follow(&chain);
    let mut comparisons = subjects.contest(&BST_RANDOM_4M, effort, chain.len(), dependent)?;
    let independent = |tree: &Tree| tree.get_all(&known);
    let workload = Workload {
        name: BST_RANDOM_4M.also[0],
        ..BST_RANDOM_4M
    };
    comparisons.extend(subjects.contest(&workload, effort, known.len(), independent)?);
    Ok(comparisons)
}

/// The layouts that the tree of 2^21 nodes is shown in; `None` is the model's choice.
const LAYOUTS_2M: [Option<Layout>; 6] = [
    None,
    Some(Layout::DepthFirst),
    Some(Layout::BreadthFirst),
    Some(Layout::SubtreeCluster { block_bytes: 64 }),
    Some(Layout::VanEmdeBoas),
    Some(Layout::ClusterVanEmdeBoas { block_bytes: 64 }),
];

/// A tree with `keys` in the memory of `CcMalloc`, re-laid.
///
/// # Panics
/// When there is no memory for it.
fn morphed_tree(layout: Option<Layout>, keys: &[u64]) -> SearchTree {
    let mut tree = plain_tree(Source::CcMalloc, keys);
    let morph = layout.map_or_else(Morph::new, |layout| Morph::new().layout(layout));
    born_in(Source::CcMalloc, || {
        morph.run(tree.root_mut(), Node::children)
    })
    .expect("there is memory for one more tree");
    tree
}

fn bst_random_dependent(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &BST_RANDOM_DEPENDENT_2M;
    let keys = random_keys(KEYS_2M);
    let chain = QueryChain::sample(&keys, effort.lookups, SEED);
    let unmorphed = plain_tree(Source::System, &keys);
    let trees: Vec<SearchTree> = LAYOUTS_2M
        .iter()
        .map(|&layout| morphed_tree(layout, &keys))
        .collect();

    let mut passes: Vec<Pass<'_>> = vec![(
        "malloc".to_owned(),
        Box::new(|| chain.follow(|key| tree_answer(&unmorphed, key))),
    )];
    for (&layout, tree) in LAYOUTS_2M.iter().zip(&trees) {
        passes.push((
            slug(layout),
            Box::new(|| chain.follow(|key| tree_answer(tree, key))),
        ));
    }
    let medians = compare(workload.name, effort, passes)?;
    let theirs = nanoseconds_each(medians[0], chain.len());
    let comparisons = LAYOUTS_2M
        .iter()
        .zip(&medians[1..])
        .map(|(&layout, &median)| {
            let ns = Nanoseconds {
                ours: nanoseconds_each(median, chain.len()),
                theirs,
            };
            let mut comparison =
                Comparison::of_times(workload, "malloc", "system malloc, unmorphed", ns, effort);
            comparison.name = format!("{}_{}_vs_malloc", workload.name, slug(layout));
            comparison
        });
    Ok(comparisons.collect())
}
