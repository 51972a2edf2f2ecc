//! The allocator: trees and chains with hints, all allocators in one process; and whole programs
//! under one allocator, each in a process of its own.

use std::alloc::Layout;
use std::convert::Infallible;
use std::ptr::NonNull;
use std::time::Duration;

use ccmalloc::{cc_alloc, cc_dealloc, default_policy};

use super::{compare, pass};
use crate::keys;
use crate::placement::{Hinted, NodeAllocator};
use crate::programs::trees::aged_chains;
use crate::programs::{Scale, UNHINTED};
use crate::queries::Chain;
use crate::raw::{RawChains, RawTree};
use crate::rivals::{self, ALLOCATORS, Allocator, OURS};
use crate::rounds::Rounds;
use crate::timing::timed;
use crate::worker::{Taken, measure};
use crate::workload::{
    Comparison, Effort, Failure, KEYS_2M, Rows, SEED, Workload, against_each, best_first, covers,
};

/// `ccmalloc` with hints, as programs get it.
fn hinted() -> Hinted {
    Hinted::new(default_policy())
}

/// Lookups that wait for each other, in a tree of 2^21 random keys.
pub(super) fn bst_hinted_search(workload: &Workload, effort: &Effort) -> Rows {
    let keys = keys::random(KEYS_2M, SEED);
    let chain = Chain::sample(&keys, effort.lookups, SEED);
    let ours = RawTree::with_keys(hinted(), &keys);
    let theirs = ALLOCATORS
        .iter()
        .map(|rival| RawTree::with_keys(rival, &keys));
    let theirs: Vec<RawTree<&'static Allocator>> = theirs.collect();
    let ours = || chain.follow(|&key| ours.get(key));
    let theirs = theirs
        .iter()
        .map(|tree| || chain.follow(|&key| tree.get(key)));
    follow_all(workload, effort, chain.len(), ours, theirs)
}

/// Walks of whole chains that wait for each other, in a hash table of 2^21 links of 24 bytes, after
/// as many deletes and appends at random.
pub(super) fn chain_hinted_walk(workload: &Workload, effort: &Effort) -> Rows {
    let (ours, keys) = aged_chains(hinted(), KEYS_2M);
    let theirs = ALLOCATORS.iter().map(|rival| aged_chains(rival, KEYS_2M).0);
    let theirs: Vec<RawChains<&'static Allocator>> = theirs.collect();
    let chain = Chain::sample(&keys, effort.lookups, SEED);
    let ours = || chain.follow(|&key| ours.walk(key));
    let theirs = theirs
        .iter()
        .map(|chains| || chain.follow(|&key| chains.walk(key)));
    follow_all(workload, effort, chain.len(), ours, theirs)
}

/// Times the passes of ours and of the rivals, of `operations` each.
fn follow_all<'a, T: FnMut() -> u64 + 'a>(
    workload: &Workload,
    effort: &Effort,
    operations: usize,
    ours: impl FnMut() -> u64 + 'a,
    theirs: impl Iterator<Item = T>,
) -> Rows {
    let theirs = ALLOCATORS.iter().zip(theirs);
    let theirs = theirs.map(|(rival, run)| pass(rival.name, run));
    let passes = [pass(OURS.name, ours)].into_iter().chain(theirs);
    let rounds = compare(workload.name, effort, operations, passes.collect())?;
    Ok(against_allocators(workload, &rounds))
}

/// Ours, the first of `rounds`, against the best of the rivals and each of them.
fn against_allocators(workload: &Workload, rounds: &[Rounds]) -> Vec<Comparison> {
    let rivals = ALLOCATORS.iter().zip(&rounds[1..]);
    let rivals = rivals.map(|(rival, theirs)| (rival.slug, rival.name, theirs));
    let rows = against_each(workload.name, "ns", &rounds[0], rivals);
    best_first(workload.name, rows)
}

/// A round of insertions is a whole build by each allocator, of more than a second each, so there
/// are fewer rounds.
const INSERT_ROUNDS_MAX: usize = 5;

/// Building the tree of `bst_hinted_search`: the walk to the place of each key, and the allocation.
pub(super) fn bst_hinted_insert(workload: &Workload, effort: &Effort) -> Rows {
    let keys = keys::random(KEYS_2M, SEED);
    let rounds = effort.rounds.div_ceil(2).min(INSERT_ROUNDS_MAX);
    let times = Rounds::in_turns(rounds, 1 + ALLOCATORS.len(), keys.len(), |which| {
        Ok::<_, Failure>(match which.checked_sub(1) {
            None => build_time(hinted(), &keys),
            Some(rival) => build_time(&ALLOCATORS[rival], &keys),
        })
    })?;
    Ok(against_allocators(workload, &times))
}

/// The time of building a tree, without that of freeing it.
fn build_time<A: NodeAllocator>(allocator: A, keys: &[u64]) -> Duration {
    let (time, _tree) = timed(|| RawTree::with_keys(allocator, keys));
    time
}

/// Objects that are allocated and freed together: a few pages of them.
const HOT_OBJECTS: usize = 1000;
/// Such batches in a round.
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

/// A figure of a program's runs: its unit, and where it is.
type Figure = (&'static str, fn(&Taken) -> &Rounds);

const TIME: Figure = ("ms", |taken| &taken.ms);
const PEAK: Figure = ("MiB", |taken| &taken.peak_mib);

/// What a program takes under ours, and under the rivals in their order.
fn under_each(program: &str, scale: Scale, rounds: usize) -> Result<Vec<Taken>, Failure> {
    let variants = rivals::all().map(|allocator| (program, allocator.process));
    let variants: Vec<_> = variants.collect();
    measure(&variants, scale, rounds)
}

/// A figure of `programs` under ours, against each rival: `NAME_vs_..`. Of several programs it is
/// the geometric mean, in which each counts the same whether it is long or short.
fn against_processes(
    name: &str,
    (unit, figure): Figure,
    programs: &[Vec<Taken>],
) -> Vec<Comparison> {
    let mean = |allocator: usize| {
        let figures = programs.iter().map(|row| figure(&row[allocator]).clone());
        let mut figures: Vec<Rounds> = figures.collect();
        match figures.len() {
            1 => figures.remove(0),
            _ => Rounds::geometric_mean(&figures),
        }
    };
    let figures: Vec<Rounds> = (0..=ALLOCATORS.len()).map(mean).collect();
    let rivals = ALLOCATORS.iter().zip(&figures[1..]);
    let rivals = rivals.map(|(rival, theirs)| (rival.process, rival.name, theirs));
    against_each(name, unit, &figures[0], rivals)
}

/// Twelve programs without hints, and the geometric means over them: wall time, and as `rss_..`
/// peak resident memory.
pub(super) fn unhinted(_workload: &Workload, effort: &Effort) -> Rows {
    let only = effort.only.as_deref().unwrap_or_default();
    let figures = [("unhinted", TIME), ("rss", PEAK)];
    let is_named = |program: &&str| {
        let mut names = figures.iter().map(|(name, _)| format!("{name}_{program}"));
        names.any(|name| covers(&name, only))
    };
    let mut programs: Vec<&str> = UNHINTED.iter().map(|program| program.name).collect();
    // A name that is not one program's asks for the means, and so for all of them.
    let all = !programs.iter().any(is_named);
    programs.retain(|program| all || is_named(program));
    let taken = programs
        .iter()
        .map(|program| under_each(program, effort.scale, effort.process_rounds))
        .collect::<Result<Vec<_>, _>>()?;
    let mut comparisons = Vec::new();
    for (name, figure) in figures {
        for (program, taken) in programs.iter().zip(taken.chunks(1)) {
            comparisons.extend(against_processes(
                &format!("{name}_{program}"),
                figure,
                taken,
            ));
        }
        if all {
            comparisons.extend(against_processes(
                &format!("{name}_geomean"),
                figure,
                &taken,
            ));
        }
    }
    Ok(comparisons)
}

/// The same programs with 1, 4 and 16 MiB of memory each: peak resident memory. Their code and
/// libraries are in it.
pub(super) fn small_rss(workload: &Workload, _effort: &Effort) -> Rows {
    let mut comparisons = Vec::new();
    for mib in [1, 4, 16] {
        let name = format!("{}_{mib}mib", workload.name);
        let mut all = Vec::new();
        for program in UNHINTED {
            all.push(under_each(
                &format!("{}:{mib}", program.name),
                Scale::Quick,
                1,
            )?);
            let name = format!("{name}_{}", program.name);
            comparisons.extend(against_processes(&name, PEAK, &all[all.len() - 1..]));
        }
        comparisons.extend(against_processes(&format!("{name}_geomean"), PEAK, &all));
    }
    Ok(comparisons)
}

/// A tree of 4 M nodes that is built once and walked twice, without hints.
pub(super) fn build_once_tree(workload: &Workload, effort: &Effort) -> Rows {
    let taken = under_each(workload.name, effort.scale, effort.process_rounds)?;
    Ok(against_processes(workload.name, TIME, &[taken]))
}

/// The programs that give hints, with every hint null, against the best rival: what a program pays
/// where hints gain nothing.
pub(super) fn null_hint_control(workload: &Workload, effort: &Effort) -> Rows {
    let (mut all, mut each) = (Vec::new(), Vec::new());
    for program in workload.also {
        all.push(under_each(program, effort.scale, effort.process_rounds)?);
        each.extend(against_processes(program, TIME, &all[all.len() - 1..]));
    }
    let mean = against_processes(workload.name, TIME, &all);
    let mut comparisons = best_first(workload.name, mean);
    comparisons.extend(each);
    Ok(comparisons)
}

/// Resident bytes of a node in a hinted tree, against the system's malloc without hints. They
/// hardly differ from run to run, so there is one.
pub(super) fn hinted_memory_bst(workload: &Workload, effort: &Effort) -> Rows {
    let taken = under_each(workload.name, effort.scale, 1)?;
    let bytes: Figure = ("B", |taken| &taken.object_bytes);
    let mut comparisons = against_processes(workload.name, bytes, &[taken]);
    // The floor is set against the system's malloc, which is the first rival.
    let against_system = comparisons[0].called(workload.name);
    comparisons.insert(0, against_system);
    Ok(comparisons)
}
