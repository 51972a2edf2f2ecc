//! Trees and chains whose nodes `ccmalloc` places next to each other, against allocators that know
//! no hints, all in one process.

use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::time::Duration;

use crate::chain::QueryChain;
use crate::timing::{timed, times_in_turns};
use ccmalloc::{cc_alloc, cc_dealloc, default_policy};

use super::super::{Pass, SEED, against_the_best, compare, random_keys};
use crate::placement::{Hinted, NodeAllocator};
use crate::programs::trees::aged_chains;
use crate::raw::{RawChains, RawTree};
use crate::rivals::ours::NAME;
use crate::rivals::{ALLOCATORS, Unhinted};
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Workload};

/// Lookups that wait for each other, in a tree of 2^21 random keys.
pub const BST_HINTED_SEARCH_2M: Workload = Workload {
    suite: "ccmalloc",
    name: "bst_hinted_search_2m",
    also: &[],
    run: bst_hinted_search,
};

/// Building that tree: the walk to the place of each key, and the allocation.
pub const BST_HINTED_INSERT_2M: Workload = Workload {
    suite: "ccmalloc",
    name: "bst_hinted_insert_2m",
    also: &[],
    run: bst_hinted_insert,
};

/// Walks of whole chains that wait for each other, in a hash table of 2^21 links of 24 bytes, after
/// as many deletes and inserts at random.
pub const CHAIN_HINTED_WALK_2M: Workload = Workload {
    suite: "ccmalloc",
    name: "chain_hinted_walk_2m",
    also: &[],
    run: chain_hinted_walk,
};

/// One allocation with a hint against one without, both from memory that was freed a moment ago.
pub const HINTED_ALLOC_COST: Workload = Workload {
    suite: "ccmalloc",
    name: "hinted_alloc_cost",
    also: &[],
    run: hinted_alloc_cost,
};

/// A round of insertions is a whole build by each allocator, of more than a second each, so there
/// are fewer rounds.
const INSERT_ROUNDS_MAX: usize = 5;

/// `ccmalloc` as a program with hints calls it.
fn hinted() -> Hinted {
    Hinted::new(default_policy())
}

fn bst_hinted_search(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let keys = random_keys(KEYS_2M);
    let chain = QueryChain::sample(&keys, effort.lookups, SEED);
    let ours = RawTree::with_keys(hinted(), &keys);
    let theirs: Vec<RawTree<Unhinted>> = ALLOCATORS
        .iter()
        .map(|rival| RawTree::with_keys(rival.allocator, &keys))
        .collect();
    let lookups = passes(
        &chain,
        |key| ours.get(key),
        theirs.iter().map(|tree| |key| tree.get(key)),
    );
    follow_all(&BST_HINTED_SEARCH_2M, effort, &chain, lookups)
}

fn chain_hinted_walk(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let (ours, keys) = aged_chains(hinted(), KEYS_2M);
    let theirs: Vec<RawChains<Unhinted>> = ALLOCATORS
        .iter()
        .map(|rival| aged_chains(rival.allocator, KEYS_2M).0)
        .collect();
    let chain = QueryChain::sample(&keys, effort.lookups, SEED);
    let walks = passes(
        &chain,
        |key| ours.walk(key),
        theirs.iter().map(|chains| |key| chains.walk(key)),
    );
    follow_all(&CHAIN_HINTED_WALK_2M, effort, &chain, walks)
}

/// A pass through `chain` for ours and for each rival.
fn passes<'a, T: FnMut(u64) -> u32 + 'a>(
    chain: &'a QueryChain,
    mut ours: impl FnMut(u64) -> u32 + 'a,
    theirs: impl Iterator<Item = T>,
) -> Vec<Pass<'a>> {
    let mut passes: Vec<Pass<'a>> =
        vec![(NAME.to_owned(), Box::new(move || chain.follow(&mut ours)))];
    for (rival, mut lookup) in ALLOCATORS.iter().zip(theirs) {
        passes.push((
            rival.name.to_owned(),
            Box::new(move || chain.follow(&mut lookup)),
        ));
    }
    passes
}

/// Times `passes` through `chain`, of which the first is ours and the others are those of the
/// rivals.
fn follow_all(
    workload: &Workload,
    effort: &Effort,
    chain: &QueryChain,
    passes: Vec<Pass<'_>>,
) -> Result<Vec<Comparison>, Failure> {
    let rounds = compare(workload.name, effort, passes)?;
    Ok(against_each(workload, rounds, chain.len()))
}

fn bst_hinted_insert(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &BST_HINTED_INSERT_2M;
    let effort = Effort {
        rounds: effort.rounds.div_ceil(2).min(INSERT_ROUNDS_MAX),
        ..effort.clone()
    };
    let keys = random_keys(KEYS_2M);
    let mut builds: Vec<Box<dyn FnMut() -> Duration>> =
        vec![Box::new(|| build_time(hinted(), &keys))];
    for rival in ALLOCATORS {
        builds.push(Box::new(|| build_time(rival.allocator, &keys)));
    }
    let mut subjects: Vec<&mut dyn FnMut() -> Duration> = Vec::new();
    subjects.extend(
        builds
            .iter_mut()
            .map(|build| build.as_mut() as &mut dyn FnMut() -> Duration),
    );
    let times = times_in_turns(effort.rounds, &mut subjects);
    let rounds = times.into_iter().map(Rounds::of_times).collect();
    Ok(against_each(workload, rounds, keys.len()))
}

/// The time to build a tree, which is dropped outside of it.
fn build_time<A: NodeAllocator>(allocator: A, keys: &[u64]) -> Duration {
    timed(|| RawTree::with_keys(allocator, keys)).0
}

/// Ours, the first of `rounds`, against the best of the others and each of them; they are those of
/// the rivals.
fn against_each(workload: &Workload, rounds: Vec<Rounds>, operations: usize) -> Vec<Comparison> {
    let mut times = rounds
        .into_iter()
        .map(|rounds| rounds.per_operation(operations));
    let Some(ours) = times.next() else {
        return Vec::new();
    };
    let comparisons = ALLOCATORS
        .iter()
        .zip(times)
        .map(|(rival, theirs)| {
            Comparison::of_times(workload, rival.slug, rival.name, &ours, &theirs)
        })
        .collect();
    against_the_best(workload, comparisons)
}

/// Objects that are allocated and freed together: a few pages of them.
const HOT_OBJECTS: usize = 1000;
/// Such batches in a round.
const HOT_BATCHES: usize = 1000;

fn hinted_alloc_cost(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &HINTED_ALLOC_COST;
    let mut objects = Vec::with_capacity(HOT_OBJECTS);
    let objects = RefCell::new(&mut objects);
    let times = times_in_turns(
        effort.rounds,
        &mut [
            &mut || {
                allocation_time(&mut objects.borrow_mut(), |layout, hint| {
                    cc_alloc(layout, hint)
                })
            },
            &mut || {
                allocation_time(&mut objects.borrow_mut(), |layout, _| {
                    cc_alloc(layout, None)
                })
            },
        ],
    );
    let each: Vec<Rounds> = times
        .into_iter()
        .map(|times| Rounds::of_times(times).per_operation(HOT_OBJECTS * HOT_BATCHES))
        .collect();
    Ok(vec![Comparison::new(
        workload.suite,
        workload.name.to_owned(),
        "ccmalloc, no hint",
        "ns",
        &each[0],
        &each[1],
    )])
}

/// The time of the allocations of a round alone: batch after batch of objects, each with the one
/// before as the hint, and freed untimed.
fn allocation_time(
    objects: &mut Vec<NonNull<u8>>,
    allocate: impl Fn(Layout, Option<NonNull<u8>>) -> Option<NonNull<u8>>,
) -> Duration {
    let layout = Layout::new::<[u64; 3]>();
    let mut total = Duration::ZERO;
    for _ in 0..HOT_BATCHES {
        let (time, ()) = timed(|| {
            for _ in 0..HOT_OBJECTS {
                let object = allocate(layout, objects.last().copied());
                objects.push(object.expect("a machine that benchmarks has memory"));
            }
        });
        total += time;
        for object in objects.drain(..) {
            // SAFETY: allocated above with this layout, and out of the list, so freed once.
            unsafe { cc_dealloc(object, layout) };
        }
    }
    total
}
