//! Search trees whose nodes `ccmalloc` places next to their parents, against allocators that know no hints.

use std::time::Duration;

use examples::chain::QueryChain;
use examples::timing::{medians_in_turns, nanoseconds_each, timed};

use super::{Pass, SEED, compare, random_keys};
use crate::raw_tree::{NodeAllocator, RawTree};
use crate::rivals::ours::Hinted;
use crate::rivals::{AllocatorRival, Unhinted, allocators};
use crate::workload::{Comparison, Effort, KEYS_2M, Nanoseconds, Workload, WrongAnswer};

/// Lookups that wait for each other, in a tree of 2^21 random keys.
pub const BST_HINTED_SEARCH_2M: Workload = Workload {
    suite: "ccmalloc",
    name: "bst_hinted_search_2m",
    run: bst_hinted_search,
};

/// Building that tree: the walk to the place of each key, and the allocation.
pub const BST_HINTED_INSERT_2M: Workload = Workload {
    suite: "ccmalloc",
    name: "bst_hinted_insert_2m",
    run: bst_hinted_insert,
};

/// A round of insertions is a whole build, which takes two or three seconds, so there are fewer rounds.
const INSERT_ROUNDS_MAX: usize = 5;

fn bst_hinted_search(effort: &Effort) -> Result<Vec<Comparison>, WrongAnswer> {
    let workload = &BST_HINTED_SEARCH_2M;
    let keys = random_keys(KEYS_2M);
    let chain = QueryChain::sample(&keys, effort.lookups, SEED);
    let rivals = allocators();
    let ours = RawTree::with_keys(Hinted, &keys);
    let theirs: Vec<RawTree<Unhinted>> = rivals
        .iter()
        .map(|rival| RawTree::with_keys(rival.allocator, &keys))
        .collect();

    let mut passes: Vec<Pass<'_>> = vec![(
        "ccmalloc".to_owned(),
        Box::new(|| chain.follow(|key| ours.get(key))),
    )];
    for (rival, tree) in rivals.iter().zip(&theirs) {
        passes.push((
            rival.name.to_owned(),
            Box::new(|| chain.follow(|key| tree.get(key))),
        ));
    }
    let medians = compare(workload.name, effort, passes)?;
    Ok(against_each(
        workload,
        &rivals,
        &medians,
        chain.len(),
        effort,
    ))
}

fn bst_hinted_insert(effort: &Effort) -> Result<Vec<Comparison>, WrongAnswer> {
    let workload = &BST_HINTED_INSERT_2M;
    let effort = Effort {
        rounds: effort.rounds.div_ceil(2).min(INSERT_ROUNDS_MAX),
        ..*effort
    };
    let keys = random_keys(KEYS_2M);
    let rivals = allocators();
    let mut builds: Vec<Box<dyn FnMut() -> Duration>> =
        vec![Box::new(|| build_time(Hinted, &keys))];
    for rival in &rivals {
        builds.push(Box::new(|| build_time(rival.allocator, &keys)));
    }
    let mut subjects: Vec<&mut dyn FnMut() -> Duration> = Vec::new();
    subjects.extend(
        builds
            .iter_mut()
            .map(|build| build.as_mut() as &mut dyn FnMut() -> Duration),
    );
    let medians = medians_in_turns(effort.rounds, &mut subjects);
    Ok(against_each(
        workload,
        &rivals,
        &medians,
        keys.len(),
        &effort,
    ))
}

/// Builds a tree and checks it; the time of the building alone.
fn build_time<A: NodeAllocator>(allocator: A, keys: &[u64]) -> Duration {
    let (time, tree) = timed(|| RawTree::with_keys(allocator, keys));
    assert_eq!(tree.len(), keys.len(), "different keys, each a node");
    time
}

/// Ours, the first of `medians`, against the others, which are those of `rivals`.
fn against_each(
    workload: &Workload,
    rivals: &[AllocatorRival],
    medians: &[Duration],
    operations: usize,
    effort: &Effort,
) -> Vec<Comparison> {
    let ours = nanoseconds_each(medians[0], operations);
    let pairs = rivals.iter().zip(&medians[1..]);
    pairs
        .map(|(rival, &median)| {
            let ns = Nanoseconds {
                ours,
                theirs: nanoseconds_each(median, operations),
            };
            Comparison::of_times(workload, rival.slug, rival.name, ns, effort)
        })
        .collect()
}
