//! The allocator: trees and chains with hints, all allocators in one process; and whole programs
//! under one allocator, each in a process of its own.

use std::alloc::Layout;
use std::convert::Infallible;
use std::ptr::NonNull;
use std::time::Duration;

use ccmalloc::{cc_alloc, cc_dealloc, default_policy};

use super::{against_processes, pass, race};
use crate::keys;
use crate::placement::{Hinted, NodeAllocator};
use crate::programs::trees::aged_chains;
use crate::programs::{PRODUCTION, Program, Scale, UNHINTED};
use crate::queries::Chain;
use crate::raw::{RawChains, RawTree};
use crate::rivals::{self, ALLOCATORS, Allocator, OURS};
use crate::rounds::Rounds;
use crate::timing::timed;
use crate::worker::{Taken, measure};
use crate::workload::{
    Comparison, Effort, Failure, KEYS_2M, Rows, SEED, Side, Workload, against_each, best_first,
    covers,
};

fn hinted() -> Hinted {
    Hinted::new(default_policy())
}

/// Lookups that wait for each other, in a tree of 2^21 random keys.
pub(super) fn bst_hinted_search(workload: &Workload, effort: &Effort) -> Rows {
    let keys = keys::random(KEYS_2M, SEED);
    let chain = &Chain::sample(&keys, effort.lookups, SEED);
    let ours = RawTree::with_keys(hinted(), &keys);
    let build = |rival| RawTree::with_keys(rival, &keys);
    let theirs: Vec<RawTree<&Allocator>> = ALLOCATORS.iter().map(build).collect();
    let follow = |tree| move || chain.follow(|&key| RawTree::get(tree, key));
    let ours = || chain.follow(|&key| ours.get(key));
    let theirs = theirs.iter().map(follow);
    follow_all(workload, effort, chain.len(), ours, theirs)
}

/// Walks of whole chains that wait for each other, in a hash table of 2^21 links of 24 bytes, after
/// as many deletes and appends at random.
pub(super) fn chain_hinted_walk(workload: &Workload, effort: &Effort) -> Rows {
    let (ours, keys) = aged_chains(hinted(), KEYS_2M);
    let build = |rival| aged_chains(rival, KEYS_2M).0;
    let theirs: Vec<RawChains<&Allocator>> = ALLOCATORS.iter().map(build).collect();
    let chain = &Chain::sample(&keys, effort.lookups, SEED);
    let follow = |chains| move || chain.follow(|&key| RawChains::walk(chains, key));
    let ours = || chain.follow(|&key| ours.walk(key));
    let theirs = theirs.iter().map(follow);
    follow_all(workload, effort, chain.len(), ours, theirs)
}

fn follow_all<'a, T: FnMut() -> u64 + 'a>(
    workload: &Workload,
    effort: &Effort,
    operations: usize,
    ours: impl FnMut() -> u64 + 'a,
    theirs: impl Iterator<Item = T>,
) -> Rows {
    let mut passes = vec![pass(OURS.slug, OURS.name, ours)];
    let theirs = ALLOCATORS.iter().zip(theirs);
    passes.extend(theirs.map(|(rival, run)| pass(rival.slug, rival.name, run)));
    let rows = race(workload.name, effort, operations, passes)?;
    Ok(best_first(workload.name, rows))
}

/// Building the tree of `bst_hinted_search`: the walk to the place of each key, and the allocation.
pub(super) fn bst_hinted_insert(workload: &Workload, effort: &Effort) -> Rows {
    fn build_time<A: NodeAllocator>(allocator: A, keys: &[u64]) -> Duration {
        let (time, _tree) = timed(|| RawTree::with_keys(allocator, keys));
        time
    }
    let keys = keys::random(KEYS_2M, SEED);
    // A build takes more than a second, so there are few rounds.
    let rounds = effort.rounds.div_ceil(2).min(5);
    let subjects = 1 + ALLOCATORS.len();
    let Ok(times) = Rounds::in_turns(rounds, subjects, keys.len(), |which| {
        Ok::<_, Infallible>(match which.checked_sub(1) {
            None => build_time(hinted(), &keys),
            Some(rival) => build_time(&ALLOCATORS[rival], &keys),
        })
    });
    let rivals = ALLOCATORS.iter().zip(&times[1..]);
    let rivals = rivals.map(|(it, theirs)| Side::new(it.slug, it.name, theirs.clone()));
    let rows = against_each(workload.name, "ns", &times[0], &rivals.collect::<Vec<_>>());
    Ok(best_first(workload.name, rows))
}

/// A few pages of objects, which are allocated and freed together.
const HOT_OBJECTS: usize = 1000;
const HOT_BATCHES: usize = 1000;

/// One allocation with a hint against one without, both from memory that was just freed.
pub(super) fn hinted_alloc_cost(workload: &Workload, effort: &Effort) -> Rows {
    let mut objects = Vec::with_capacity(HOT_OBJECTS);
    let operations = HOT_OBJECTS * HOT_BATCHES;
    let Ok(times) = Rounds::in_turns(effort.rounds, 2, operations, |which| {
        Ok::<_, Infallible>(match which {
            0 => allocation_time(&mut objects, cc_alloc),
            _ => allocation_time(&mut objects, |layout, _| cc_alloc(layout, None)),
        })
    });
    let rival = "ccmalloc, no hint";
    let row = Comparison::new(workload.name, rival, "ns", &times[0], &times[1]);
    Ok(vec![row])
}

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

type Figure = (&'static str, fn(&Taken) -> Rounds);

const TIME: Figure = ("ms", Taken::ms);
const PEAK: Figure = ("MiB", Taken::peak_mib);

/// A program, and what it took under ours and under the rivals.
type UnderEach<'a> = (&'a str, Vec<Taken>);

fn under_each(program: &str, scale: Scale, rounds: usize) -> Result<Vec<Taken>, Failure> {
    let variants = rivals::all().map(|allocator| (program, allocator.process));
    measure(&variants.collect::<Vec<_>>(), scale, rounds)
}

fn all_under_each<'a>(names: &[&'a str], effort: &Effort) -> Result<Vec<UnderEach<'a>>, Failure> {
    let run = |name| under_each(name, effort.scale, effort.process_rounds);
    names.iter().map(|&name| Ok((name, run(name)?))).collect()
}

/// A figure of each of `programs`: `PREFIX_PROGRAM_vs_..`.
fn program_rows(
    prefix: &str,
    (unit, figure): Figure,
    programs: &[UnderEach<'_>],
) -> Vec<Comparison> {
    let rows = programs.iter().flat_map(|(program, taken)| {
        let figures: Vec<Rounds> = taken.iter().map(figure).collect();
        against_processes(&format!("{prefix}{program}"), unit, &figures)
    });
    rows.collect()
}

/// Their geometric mean, in which each counts the same: `NAME_vs_..`.
fn mean_rows(name: &str, (unit, figure): Figure, programs: &[UnderEach<'_>]) -> Vec<Comparison> {
    let means = (0..=ALLOCATORS.len()).map(|allocator| {
        let figures = programs.iter().map(|(_, taken)| figure(&taken[allocator]));
        Rounds::geometric_mean(&figures.collect::<Vec<_>>())
    });
    against_processes(name, unit, &means.collect::<Vec<_>>())
}

/// Twelve programs without hints: wall time, and as `rss_..` peak resident memory.
pub(super) fn unhinted(_workload: &Workload, effort: &Effort) -> Rows {
    let only = effort.only.as_deref().unwrap_or_default();
    let is = |name, program: &str| covers(&format!("{name}_{program}"), only);
    let is_named = |program: &&str| is("unhinted", program) || is("rss", program);
    let mut programs: Vec<&str> = UNHINTED.iter().map(|program| program.name).collect();
    // A name that is not one program's asks for the means, and so for all of them.
    let all = !programs.iter().any(is_named);
    programs.retain(|program| all || is_named(program));
    let taken = all_under_each(&programs, effort)?;
    let mut comparisons = Vec::new();
    for (name, figure) in [("unhinted", TIME), ("rss", PEAK)] {
        comparisons.extend(program_rows(&format!("{name}_"), figure, &taken));
        if all {
            comparisons.extend(mean_rows(&format!("{name}_geomean"), figure, &taken));
        }
    }
    Ok(comparisons)
}

/// Peak resident memory of the same programs with 1, 4 and 16 MiB of memory each.
pub(super) fn small_rss(workload: &Workload, _effort: &Effort) -> Rows {
    let mut comparisons = Vec::new();
    for mib in [1, 4, 16] {
        let mut taken = Vec::new();
        for Program { name, .. } in UNHINTED {
            let variant = format!("{name}:{mib}");
            taken.push((*name, under_each(&variant, Scale::Quick, 1)?));
        }
        let prefix = format!("{}_{mib}mib_", workload.name);
        comparisons.extend(program_rows(&prefix, PEAK, &taken));
        comparisons.extend(mean_rows(&format!("{prefix}geomean"), PEAK, &taken));
    }
    Ok(comparisons)
}

/// A tree of 4 M nodes that is built once and walked twice, without hints.
pub(super) fn build_once_tree(workload: &Workload, effort: &Effort) -> Rows {
    let taken = all_under_each(&[workload.name], effort)?;
    Ok(program_rows("", TIME, &taken))
}

/// The programs that give hints, with every hint null: what a program pays where they gain nothing.
pub(super) fn null_hint_control(workload: &Workload, effort: &Effort) -> Rows {
    let taken = all_under_each(workload.also, effort)?;
    let mut comparisons = best_first(workload.name, mean_rows(workload.name, TIME, &taken));
    comparisons.extend(program_rows("", TIME, &taken));
    Ok(comparisons)
}

/// Memory that is resident at the end of programs that use it as servers do, and the wall time of
/// those that fill it: `production_PROGRAM_vs_..`, `production_time_PROGRAM_vs_..`.
pub(super) fn production(workload: &Workload, effort: &Effort) -> Rows {
    let only = effort.only.as_deref().unwrap_or_default();
    let all = only.is_empty() || covers(only, workload.name);
    let is_named = |name: &str| covers(&format!("production_{name}"), only);
    let names = PRODUCTION.iter().map(|program| program.name);
    let names: Vec<_> = names.filter(|name| all || is_named(name)).collect();
    let taken = all_under_each(&names, effort)?;
    let resident: Figure = ("MiB", Taken::resident_mib);
    let mut comparisons = program_rows("production_", resident, &taken);
    let filling = taken
        .into_iter()
        .filter(|(name, _)| name.starts_with("buffers"));
    comparisons.extend(program_rows(
        "production_time_",
        TIME,
        &filling.collect::<Vec<_>>(),
    ));
    Ok(comparisons)
}

/// Resident bytes of a node in a hinted tree. They hardly differ from run to run, so there is one.
pub(super) fn hinted_memory_bst(workload: &Workload, effort: &Effort) -> Rows {
    let taken = under_each(workload.name, effort.scale, 1)?;
    let bytes: Figure = ("B", Taken::object_bytes);
    let mut comparisons = program_rows("", bytes, &[(workload.name, taken)]);
    // The floor is set against the system's malloc, which is the first rival.
    comparisons.insert(0, comparisons[0].called(workload.name));
    Ok(comparisons)
}
