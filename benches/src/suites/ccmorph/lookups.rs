//! Searches in random trees: as the allocators left them, and morphed.

use crate::chain::QueryChain;
use crate::search_tree::{Node, SearchTree, Tree};
use ccmodel::Layout;
use ccmorph::{Morph, TreeNode};

use super::super::{Pass, SEED, compare, random_keys, tree_answer};
use super::{Subjects, slug};
use crate::queries::{Queries, Skew};
use crate::source::{Source, allocate_from};
use crate::structures::Structure as _;
use crate::structures::tree::Plan;
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Workload};

/// Lookups that wait for each other, in a tree of 2^21 random keys that was built in random order.
pub const BST_RANDOM_DEPENDENT_2M: Workload = Workload {
    suite: "ccmorph",
    name: "bst_random_dependent_2m",
    also: &[],
    run: bst_random_dependent,
};

/// Lookups in a tree of 2^22 nodes of 32 bytes that was built in random order: such as wait for
/// each other; such as do not; and eight at a time, side by side.
///
/// That keys are known in advance gains little by itself. A search ends where no processor foresees
/// it, and up to there it runs ahead on a path that does not exist, not into the next search. Side
/// by side, eight paths are walked a step each, and their misses overlap.
pub const BST_RANDOM_4M: Workload = Workload {
    suite: "ccmorph",
    name: "bst_random_dependent_4m",
    also: &["bst_random_independent_4m", "bst_random_side_by_side_4m"],
    run: bst_random_4m,
};

/// Nodes of the tree whose name ends in `4m`: 128 MiB.
const NODES_4M: usize = 1 << 22;

/// A pass over all queries.
type Lookups<'a> = &'a dyn Fn(&Tree<u64>) -> u64;

fn bst_random_4m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let plan = Plan::of_inserts(&random_keys(NODES_4M));
    let subjects = Subjects::new(effort, || plan.build());
    let mut queries = Queries::new(plan.keys(), Skew::Uniform, SEED);
    // Each takes more than a microsecond at first.
    let lookups = effort.lookups / 4;
    let chain = queries.chain(lookups);
    let known: Vec<u64> = (0..lookups).map(|_| queries.draw()).collect();
    drop(plan);

    let [independent, side_by_side] = [0, 1].map(|index| Workload {
        name: BST_RANDOM_4M.also[index],
        ..BST_RANDOM_4M
    });
    let contests: [(&Workload, Lookups<'_>); 3] = [
        (&BST_RANDOM_4M, &|tree| tree.follow(&chain)),
        (&independent, &|tree| tree.get_all(&known)),
        (&side_by_side, &|tree| tree.get_all_side_by_side(&known)),
    ];
    let mut comparisons = Vec::new();
    for (workload, pass) in contests {
        comparisons.extend(subjects.contest(workload, effort, lookups, pass)?);
    }
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

/// A copy of `tree` in the memory of `CcMalloc`, re-laid.
///
/// # Panics
/// When there is no memory for it.
fn morphed_copy(tree: &SearchTree, layout: Option<Layout>) -> SearchTree {
    let morph = layout.map_or_else(Morph::new, |layout| Morph::new().layout(layout));
    allocate_from(Source::CcMalloc, || {
        let mut copy = tree.clone();
        let report = morph.run(&mut copy.root, Node::children);
        report.expect("there is memory for one more tree");
        copy
    })
}

fn bst_random_dependent(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &BST_RANDOM_DEPENDENT_2M;
    let keys = random_keys(KEYS_2M);
    let chain = QueryChain::sample(&keys, effort.lookups / 4, SEED);
    let plan = Plan::of_inserts(&keys);
    let unmorphed: SearchTree = allocate_from(Source::System, || plan.build_with(|_| ()));
    let trees: Vec<SearchTree> = LAYOUTS_2M
        .iter()
        .map(|&layout| morphed_copy(&unmorphed, layout))
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
    let mut times = compare(workload.name, effort, passes)?
        .into_iter()
        .map(|rounds| rounds.per_operation(chain.len()));
    let Some(theirs) = times.next() else {
        return Ok(Vec::new());
    };
    let comparisons = LAYOUTS_2M.iter().zip(times).map(|(&layout, ours)| {
        let name = format!("{}_{}_vs_malloc", workload.name, slug(layout));
        let rival = "system malloc, unmorphed";
        Comparison::new(workload.suite, name, rival, "ns", &ours, &theirs)
    });
    Ok(comparisons.collect())
}
