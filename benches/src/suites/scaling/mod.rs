//! Costs with more threads, and with more objects.
//!
//! - [`MT_2_THREADS_SCALING`]: operations a second of an allocator on two threads over those on
//!   one, `ccmalloc`'s against a rival's.
//! - [`MAP_READS_2_THREADS_SCALING`]: lookups a second in a shared map by two threads over those by
//!   one, and the time of a lookup with both at work, `CTreeMap`'s against `BTreeMap`'s.
//! - [`LOOKUP`]: a lookup among 2^10 to 2^25 keys, `CTreeMap` against `BTreeMap`, a morphed tree
//!   against the tree as allocated; and for each, the prediction against the clock.
//!
//! A scaling is twice the time on one thread over the time on two in the same round. 2 is the most
//! that two processors can give; two threads of one core give less. `docs/scaling.md` argues from
//! counts what more threads would do.
//!
//! The rows `lookup_nLOG2_STRUCTURE_vs_measured` are points of curves
//! ([`crate::output::curves`]): `ours` is the prediction, `theirs` the measurement, the ratio the
//! smaller over the larger.

mod levels;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::chain::QueryChain;
use crate::source::{Source, allocate_from};
use ccmodel::{CalibrateOptions, Machine, PageSize};
use ccmorph::Morph;
use ctree::CTreeMap;

use super::{Pass, SEED, compare, random_keys};
use crate::ordered_map::low_half;
use crate::programs::churn::{self, side_by_side};
use crate::programs::{Program, Scale};
use crate::rivals::{ALLOCATORS, btreemap, ctree as our_map, ours};
use crate::rounds::Rounds;
use crate::search_tree::Tree;
use crate::structures::Structure;
use crate::structures::tree::Plan;
use crate::survey::Survey;
use crate::worker::measure_apart;
use crate::workload::{Comparison, Effort, Failure, KEYS_2M, Workload, WrongAnswer, point_name};

const SUITE: &str = "scaling";

/// Two threads that replace objects and hand them over to each other, against one; under the
/// workload's name alone, against mimalloc.
pub const MT_2_THREADS_SCALING: Workload = Workload {
    suite: SUITE,
    name: "mt_2_threads_scaling",
    also: &["mt_2_threads_ns"],
    run: mt_2_threads_scaling,
};

/// Two threads that look up in one map of 2^21 keys, against one.
pub const MAP_READS_2_THREADS_SCALING: Workload = Workload {
    suite: SUITE,
    name: "map_reads_2_threads_scaling",
    also: &["map_reads_2_threads_ns"],
    run: map_reads_2_threads_scaling,
};

/// Lookups that wait for each other, in maps and trees from the smallest to the largest.
pub const LOOKUP: Workload = Workload {
    suite: SUITE,
    name: "lookup",
    also: &[],
    run: lookup,
};

/// Unit of scalings: times as much.
const TIMES: &str = "x";

/// The rival that the floor is set against.
const MAIN_RIVAL: &str = "mimalloc";

/// Times on one thread and on two, of the same work a thread, in the same round.
#[derive(Clone, Copy, Debug)]
struct OneAndTwo {
    one: Duration,
    two: Duration,
}

/// How many times the throughput of one thread two have, in each round.
fn scaling(rounds: &[OneAndTwo]) -> Rounds {
    let scalings = rounds
        .iter()
        .map(|round| 2.0 * round.one.as_secs_f64() / round.two.as_secs_f64());
    Rounds::new(scalings.collect())
}

/// The time on two threads over the operations of both.
fn each_of_two(rounds: &[OneAndTwo], operations: usize) -> Rounds {
    Rounds::of_times(rounds.iter().map(|round| round.two).collect()).per_operation(operations)
}

fn mt_2_threads_scaling(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &MT_2_THREADS_SCALING;
    let mut names = vec![ours::METHODS.name];
    names.extend(ALLOCATORS.iter().map(|rival| rival.methods.name));
    let handed = in_processes([&churn::HANDED_1, &churn::HANDED_2], &names, effort)?;
    let local = in_processes([&churn::LOCAL_1, &churn::LOCAL_2], &names, effort)?;

    let mut comparisons = Vec::new();
    for (beginning, rounds) in [
        (workload.name.to_owned(), &handed),
        (format!("{}_local", workload.name), &local),
    ] {
        let ours = scaling(&rounds[0]);
        for (rival, rounds) in ALLOCATORS.iter().zip(&rounds[1..]) {
            let theirs = scaling(rounds);
            let name = format!("{beginning}_vs_{}", rival.methods.name);
            let comparison = Comparison::of_gains(SUITE, name, rival.name, TIMES, &ours, &theirs);
            if rival.methods.name == MAIN_RIVAL {
                comparisons.push(Comparison {
                    name: beginning.clone(),
                    ..comparison.clone()
                });
            }
            comparisons.push(comparison);
        }
    }
    // What the operations took on two threads: a scaling alone could be had by being slow on one.
    let operations = 2 * churn::operations_each(effort.scale);
    let ours = each_of_two(&handed[0], operations);
    for (rival, rounds) in ALLOCATORS.iter().zip(&handed[1..]) {
        let theirs = each_of_two(rounds, operations);
        let name = format!("mt_2_threads_ns_vs_{}", rival.methods.name);
        comparisons.push(Comparison::new(
            SUITE, name, rival.name, "ns", &ours, &theirs,
        ));
    }
    Ok(comparisons)
}

/// Runs the program for one thread and the one for two under each of `allocators`, in turns; the
/// rounds of each allocator.
fn in_processes(
    programs: [&'static Program; 2],
    allocators: &[&str],
    effort: &Effort,
) -> Result<Vec<Vec<OneAndTwo>>, Failure> {
    // One thread and two next to each other: their quotient is what counts.
    let variants: Vec<_> = allocators
        .iter()
        .flat_map(|&allocator| programs.map(|program| (program, allocator)))
        .collect();
    let taken = measure_apart(&variants, effort.scale, effort.process_rounds)?;
    let rounds = taken.chunks_exact(2).map(|pair| {
        let pairs = pair[0].iter().zip(&pair[1]);
        let times = pairs.map(|(one, two)| OneAndTwo {
            one: one.time,
            two: two.time,
        });
        times.collect()
    });
    Ok(rounds.collect())
}

fn map_reads_2_threads_scaling(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &MAP_READS_2_THREADS_SCALING;
    let keys = random_keys(KEYS_2M);
    let chains = [1, 2].map(|seed| QueryChain::sample(&keys, effort.lookups, seed));
    // One by one, so that nodes are filled as random inserts fill them; collecting sorts first.
    let (mut ours, mut theirs) = (CTreeMap::new(), BTreeMap::new());
    for (key, value) in entries(&keys) {
        ours.insert(key, value);
        theirs.insert(key, value);
    }

    let read_ours = |key| low_half(ours.get(&key));
    let read_theirs = |key| low_half(theirs.get(&key));
    let (mut our_rounds, mut their_rounds) = (Vec::new(), Vec::new());
    let mut expected = None;
    for round in 0..effort.rounds {
        // In turns: neither is always the one that finds the caches as the other left them.
        let mut ours = (round % 2 == 0).then(|| read_by_one_and_two(&chains, read_ours));
        let theirs = read_by_one_and_two(&chains, read_theirs);
        let ours = ours.get_or_insert_with(|| read_by_one_and_two(&chains, read_ours));
        for (name, sums) in [(our_map::NAME, ours.1), (btreemap::NAME, theirs.1)] {
            if *expected.get_or_insert(sums) != sums {
                return Err(Failure::Answer(WrongAnswer {
                    workload: workload.name,
                    who: name.to_owned(),
                }));
            }
        }
        our_rounds.push(ours.0);
        their_rounds.push(theirs.0);
    }
    let (ours, theirs) = (scaling(&our_rounds), scaling(&their_rounds));
    let gain = Comparison::of_gains(
        SUITE,
        workload.name.to_owned(),
        btreemap::NAME,
        TIMES,
        &ours,
        &theirs,
    );
    let lookups: usize = chains.iter().map(QueryChain::len).sum();
    let [ours, theirs] = [&our_rounds, &their_rounds].map(|rounds| each_of_two(rounds, lookups));
    let name = workload.also[0].to_owned();
    let time = Comparison::new(SUITE, name, btreemap::NAME, "ns", &ours, &theirs);
    Ok(vec![gain, time])
}

/// The keys with the values that the trees give them.
fn entries(keys: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    keys.iter().map(|&key| (key, key.rotate_left(32)))
}

/// Follows the first chain on one thread, then both on two; the times, and the sums of the answers.
fn read_by_one_and_two(
    chains: &[QueryChain; 2],
    read: impl Fn(u64) -> u32 + Sync,
) -> (OneAndTwo, [u64; 2]) {
    let (one, first) = read_side_by_side(&chains[..1], &read);
    let (two, both) = read_side_by_side(chains, &read);
    assert_eq!(first[0], both[0], "a lookup finds what it finds alone");
    (OneAndTwo { one, two }, [both[0], both[1]])
}

/// A thread for each chain; the time from the first one's start to the last one's end, and the sums
/// of the answers.
fn read_side_by_side(
    chains: &[QueryChain],
    read: &(impl Fn(u64) -> u32 + Sync),
) -> (Duration, Vec<u64>) {
    let jobs = chains.iter().map(|chain| move || chain.follow(read));
    side_by_side(jobs.collect())
}

/// Sizes of the curves, as powers of two.
fn sizes(scale: Scale) -> impl Iterator<Item = u32> {
    let largest = match scale {
        Scale::Quick => 21,
        Scale::Full => 25,
    };
    10..=largest
}

fn lookup(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let machine = Machine::calibrate(CalibrateOptions::quick());
    let mut comparisons = Vec::new();
    for log2_n in sizes(effort.scale) {
        if effort.wants(LOOKUP.name, &format!("{}_n{log2_n}", LOOKUP.name)) {
            comparisons.extend(lookup_among(log2_n, effort, &machine)?);
        }
    }
    Ok(comparisons)
}

/// Lookups in a round at one size: there are sixteen sizes of four structures, and a curve is read
/// by its shape.
const LOOKUPS_MAX: usize = 300_000;

/// A structure of one size, looked up in.
struct Line {
    slug: &'static str,
    name: &'static str,
    predicted_ns: f64,
}

/// The lines of the curves at one size, and the ratios between them.
fn lookup_among(
    log2_n: u32,
    effort: &Effort,
    machine: &Machine,
) -> Result<Vec<Comparison>, Failure> {
    let keys = random_keys(1 << log2_n);
    let chain = QueryChain::sample(&keys, effort.lookups.min(LOOKUPS_MAX), SEED);
    let (mut our_map, mut their_map) = (CTreeMap::new(), BTreeMap::new());
    // One after the other, as in the tree.
    for (key, value) in entries(&keys) {
        our_map.insert(key, value);
    }
    for (key, value) in entries(&keys) {
        their_map.insert(key, value);
    }
    let plan = Plan::of_inserts(&keys);
    let boxes = allocate_from(Source::System, || plan.build());
    let morphed = allocate_from(Source::CcMalloc, || {
        let mut tree = plan.build();
        let report = tree.morph(&Morph::new());
        report.expect("there is memory for one more tree");
        tree
    });
    drop(plan);
    let lines = [
        Line {
            slug: "ctreemap",
            name: our_map::NAME,
            predicted_ns: levels::ctreemap_ns(keys.len(), machine),
        },
        Line {
            slug: btreemap::SLUG,
            name: btreemap::NAME,
            predicted_ns: levels::btreemap_ns(keys.len(), machine),
        },
        Line {
            slug: "morphed",
            name: "tree, morphed",
            predicted_ns: predict(&morphed, PageSize::Huge2M, machine),
        },
        Line {
            slug: "boxes",
            name: "tree, as allocated",
            predicted_ns: predict(&boxes, PageSize::Small4K, machine),
        },
    ];
    let passes: Vec<Pass<'_>> = vec![
        (
            lines[0].name.to_owned(),
            Box::new(|| chain.follow(|key| low_half(our_map.get(&key)))),
        ),
        (
            lines[1].name.to_owned(),
            Box::new(|| chain.follow(|key| low_half(their_map.get(&key)))),
        ),
        (
            lines[2].name.to_owned(),
            Box::new(|| morphed.follow(&chain)),
        ),
        (lines[3].name.to_owned(), Box::new(|| boxes.follow(&chain))),
    ];
    let measured = compare(LOOKUP.name, effort, passes)?;
    let ns: Vec<Rounds> = measured
        .into_iter()
        .map(|rounds| rounds.per_operation(chain.len()))
        .collect();

    let ratio = |ours: usize, theirs: usize| {
        let slugs = (lines[ours].slug, lines[theirs].slug);
        let name = format!("{}_n{log2_n}_{}_vs_{}", LOOKUP.name, slugs.0, slugs.1);
        let rival = lines[theirs].name;
        Comparison::new(SUITE, name, rival, "ns", &ns[ours], &ns[theirs])
    };
    let points = lines.iter().zip(&ns).map(|(line, measured)| {
        let name = point_name(LOOKUP.name, log2_n, line.slug);
        Comparison::of_prediction(SUITE, name, "ns", line.predicted_ns, measured)
    });
    Ok([ratio(0, 1), ratio(2, 3)]
        .into_iter()
        .chain(points)
        .collect())
}

/// The predicted nanoseconds of a lookup in `tree`, where its nodes lie, in pages of this size.
///
/// # Panics
/// When the tree has 2^32 nodes or more.
fn predict(tree: &Tree<u64>, pages: PageSize, machine: &Machine) -> f64 {
    Survey::of(tree).predict(pages, machine).ns
}
