//! The model against the clock: predicted and measured times of the same trees, node for node where
//! they lie.
//!
//! Here `ours` is the prediction, `theirs` the measurement, and the ratio is the smaller over the
//! larger: 1 is exact, and 0.77 a factor of 1.3 off, on either side.

use crate::chain::QueryChain;
use crate::search_tree::{Node, SearchTree};
use crate::source::{Source, allocate_from};
use crate::survey::Survey;
use ccmodel::{CalibrateOptions, Layout, Machine, PageSize};
use ccmorph::{Morph, TreeNode};

use super::{Pass, SEED, compare, plain_tree, random_keys, tree_answer};
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Workload};

/// Lookups that wait for each other in trees of 2^21 random keys: as malloc left it, and in three
/// layouts.
pub const PREDICT_BST_2M: Workload = Workload {
    suite: "model",
    name: "predict_bst_2m",
    also: &[],
    run: predict_bst,
};

/// A tree to be predicted, and where it lies.
#[derive(Debug)]
struct Subject {
    slug: &'static str,
    tree: SearchTree,
    pages: PageSize,
}

/// # Panics
/// When there is no memory for the trees.
fn subjects(keys: &[u64]) -> Vec<Subject> {
    let unmorphed = Subject {
        slug: "malloc",
        tree: plain_tree(Source::System, keys),
        pages: PageSize::Small4K,
    };
    let layouts = [
        ("dfs", Layout::DepthFirst),
        ("cluster", Layout::SubtreeCluster { block_bytes: 64 }),
        ("veb", Layout::VanEmdeBoas),
    ];
    let morphed = layouts.map(|(slug, layout)| {
        let mut tree = plain_tree(Source::CcMalloc, keys);
        allocate_from(Source::CcMalloc, || {
            Morph::new()
                .layout(layout)
                .run(&mut tree.root, Node::children)
        })
        .expect("there is memory for one more tree");
        Subject {
            slug,
            tree,
            pages: PageSize::Huge2M,
        }
    });
    std::iter::once(unmorphed).chain(morphed).collect()
}

fn predict_bst(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &PREDICT_BST_2M;
    let keys = random_keys(KEYS_2M);
    let chain = QueryChain::sample(&keys, effort.lookups, SEED);
    let subjects = subjects(&keys);
    let machine = Machine::calibrate(CalibrateOptions::quick());

    let passes: Vec<Pass<'_>> = subjects
        .iter()
        .map(|subject| {
            let run: Box<dyn FnMut() -> u64> =
                Box::new(|| chain.follow(|key| tree_answer(&subject.tree, key)));
            (subject.slug.to_owned(), run)
        })
        .collect();
    let rounds = compare(workload.name, effort, passes)?;
    let comparisons = subjects.iter().zip(rounds).map(|(subject, rounds)| {
        let prediction = Survey::of(&subject.tree).predict(subject.pages, &machine);
        let measured = rounds.per_operation(chain.len());
        let name = format!("{}_{}_vs_measured", workload.name, subject.slug);
        Comparison::of_prediction(workload.suite, name, "ns", prediction.ns, &measured)
    });
    Ok(comparisons.collect())
}
