//! A search tree as `malloc` left it, against the same tree after `ccmorph`, layout by layout.

use ccmodel::Layout;
use ccmorph::{Morph, TreeNode};
use examples::chain::QueryChain;
use examples::search_tree::{Node, SearchTree};
use examples::switch::{Source, born_in};
use examples::timing::nanoseconds_each;

use super::{Pass, SEED, compare, plain_tree, random_keys, tree_answer};
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Nanoseconds, Workload};

/// Lookups that wait for each other, in a tree of 2^21 random keys that was built in random order.
pub const BST_RANDOM_DEPENDENT_2M: Workload = Workload {
    suite: "ccmorph",
    name: "bst_random_dependent_2m",
    also: &[],
    run: bst_random_dependent,
};

/// The layouts with their names in names of comparisons; `None` is the model's choice.
fn layouts() -> Vec<(String, Option<Layout>)> {
    let fixed = [
        Layout::DepthFirst,
        Layout::BreadthFirst,
        Layout::SubtreeCluster { block_bytes: 64 },
        Layout::VanEmdeBoas,
        Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    ];
    let auto = std::iter::once(("auto".to_owned(), None));
    auto.chain(fixed.map(|layout| (layout.to_string().replace(':', "_"), Some(layout))))
        .collect()
}

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
    let layouts = layouts();
    let trees: Vec<SearchTree> = layouts
        .iter()
        .map(|&(_, layout)| morphed_tree(layout, &keys))
        .collect();

    let mut passes: Vec<Pass<'_>> = vec![(
        "malloc".to_owned(),
        Box::new(|| chain.follow(|key| tree_answer(&unmorphed, key))),
    )];
    for ((name, _), tree) in layouts.iter().zip(&trees) {
        passes.push((
            name.clone(),
            Box::new(|| chain.follow(|key| tree_answer(tree, key))),
        ));
    }
    let medians = compare(workload.name, effort, passes)?;
    let theirs = nanoseconds_each(medians[0], chain.len());
    let comparisons = layouts
        .iter()
        .zip(&medians[1..])
        .map(|((name, _), &median)| {
            let ns = Nanoseconds {
                ours: nanoseconds_each(median, chain.len()),
                theirs,
            };
            let mut comparison =
                Comparison::of_times(workload, "malloc", "system malloc, unmorphed", ns, effort);
            comparison.name = format!("{}_{name}_vs_malloc", workload.name);
            comparison
        });
    Ok(comparisons.collect())
}
