//! Costs with more threads, and with more objects.
//!
//! A scaling is twice the time on one thread over the time on two in the same round. 2 is the most
//! that two processors can give; two threads of one core give less. `docs/inside/scaling.md` argues
//! from counts what more threads would do.
//!
//! The rows `lookup_nLOG2_STRUCTURE_vs_measured` are points of curves ([`crate::output::charts`]).

use std::collections::BTreeMap;
use std::f64::consts::LN_2;
use std::time::Duration;

use ccmodel::{CalibrateOptions, Machine, PageSize, SearchLevel, predict_levels};
use ctree::CTreeMap;

use super::ccmorph::morph_in_place;
use super::{against_processes, compare, pass};
use crate::keys;
use crate::ordered_map::low_half;
use crate::programs::threads::{churn_operations, side_by_side};
use crate::queries::Chain;
use crate::rivals::maps::{self, BTREEMAP, BTREEMAP_NAME};
use crate::rivals::{self, ALLOCATORS, OURS, SYSTEM};
use crate::rounds::{Rounds, Spread};
use crate::source::allocate_from;
use crate::structures::Structure;
use crate::structures::tree::Plan;
use crate::survey::Survey;
use crate::worker::{Taken, measure};
use crate::workload::{
    Comparison, Effort, Failure, KEYS_2M, POINT_SUFFIX, Rows, SEED, Workload, agree,
};

/// From the times of the same work a thread, how many times the throughput of one thread two have.
fn scaling(one: &Rounds, two: &Rounds) -> Rounds {
    let rounds = one.each().iter().zip(two.each());
    Rounds::new(rounds.map(|(one, two)| 2.0 * one / two).collect())
}

/// A comparison of scalings: more is better.
fn of_scalings(name: String, rival: &str, ours: &Rounds, theirs: &Rounds) -> Comparison {
    Comparison {
        ratio: ours.median() / theirs.median(),
        spread: Spread::of_rounds(theirs, ours),
        ..Comparison::new(name, rival, "x", ours, theirs)
    }
}

/// Two threads that replace objects and hand them over to each other, against one.
pub(super) fn allocator_threads(workload: &Workload, effort: &Effort) -> Rows {
    let handed = churn("churn_handed_1", "churn_handed_2", effort)?;
    let local = churn("churn_local_1", "churn_local_2", effort)?;
    let mut comparisons = Vec::new();
    for (name, taken) in [
        (workload.name.to_owned(), &handed),
        (format!("{}_local", workload.name), &local),
    ] {
        let scalings = taken.iter().map(|[one, two]| scaling(&one.ms(), &two.ms()));
        let scalings: Vec<Rounds> = scalings.collect();
        for (rival, theirs) in ALLOCATORS.iter().zip(&scalings[1..]) {
            let row = format!("{name}_vs_{}", rival.process);
            let row = of_scalings(row, rival.name, &scalings[0], theirs);
            // The rival that the floor is set against.
            comparisons.extend((rival.process == "mimalloc").then(|| row.called(&*name)));
            comparisons.push(row);
        }
    }
    // The time of an operation on two threads: being slow on one thread also gives a good scaling.
    let operations = 2 * churn_operations(effort.scale);
    let ns = |ms: &f64| ms * 1e6 / operations as f64;
    let ns_of = |[_, two]: &[Taken; 2]| Rounds::new(two.ms().each().iter().map(ns).collect());
    let each: Vec<Rounds> = handed.iter().map(ns_of).collect();
    comparisons.extend(against_processes(workload.also[0], "ns", &each));
    Ok(comparisons)
}

/// One thread and two under ours and each rival, in turns.
fn churn(one: &str, two: &str, effort: &Effort) -> Result<Vec<[Taken; 2]>, Failure> {
    let variants = rivals::all().flat_map(|it| [(one, it.process), (two, it.process)]);
    let variants: Vec<_> = variants.collect();
    let taken = measure(&variants, effort.scale, effort.process_rounds)?;
    let (pairs, _) = taken.as_chunks();
    Ok(pairs.to_vec())
}

pub(super) fn map_threads(workload: &Workload, effort: &Effort) -> Rows {
    let keys = keys::random(KEYS_2M, SEED);
    let chains = [1, 2].map(|seed| Chain::sample(&keys, effort.lookups, seed));
    // One by one, so that nodes are filled as random inserts fill them; collecting sorts first.
    let (mut ours, mut theirs) = (CTreeMap::new(), BTreeMap::new());
    for &key in &keys {
        ours.insert(key, value_of(key));
        theirs.insert(key, value_of(key));
    }
    let mut expected = None;
    let mut twos = [Vec::new(), Vec::new()];
    let ones = Rounds::in_turns(effort.rounds, 2, 1, |which| {
        let (one, two, sums) = match which {
            0 => follow_by_one_and_two(&chains, |key| low_half(ours.get(key))),
            _ => follow_by_one_and_two(&chains, |key| low_half(theirs.get(key))),
        };
        twos[which].push(two);
        agree(&mut expected, sums, workload.name, BTREEMAP_NAME).map(|()| one)
    })?;
    let scaling = |which: usize| scaling(&ones[which], &Rounds::of_times(&twos[which], 1));
    let name = workload.name.to_owned();
    let gain = of_scalings(name, BTREEMAP_NAME, &scaling(0), &scaling(1));
    let lookups = chains.iter().map(Chain::len).sum();
    let [ours, theirs] = twos.map(|times| Rounds::of_times(&times, lookups));
    let time = Comparison::new(workload.also[0], BTREEMAP_NAME, "ns", &ours, &theirs);
    Ok(vec![gain, time])
}

fn value_of(key: u64) -> u64 {
    key.rotate_left(32)
}

/// The times of the first chain on one thread, and of both on two; and the sums of the answers.
fn follow_by_one_and_two(
    chains: &[Chain; 2],
    read: impl Fn(&u64) -> u32 + Sync,
) -> (Duration, Duration, [u64; 2]) {
    let read = &read;
    let follow = |chains: &[Chain]| {
        let jobs = chains.iter().map(|chain| move || chain.follow(read));
        side_by_side(jobs.collect())
    };
    let (one, first) = follow(&chains[..1]);
    let (two, both) = follow(chains);
    assert_eq!(first[0], both[0], "a lookup finds what it finds alone");
    (one, two, [both[0], both[1]])
}

/// Dependent lookups in maps and trees of 2^10 to 2^25 keys: `CTreeMap` against `BTreeMap`, a
/// morphed tree against the tree as allocated, and each against its prediction.
pub(super) fn lookup(workload: &Workload, effort: &Effort) -> Rows {
    let machine = Machine::calibrate(CalibrateOptions::quick());
    let mut comparisons = Vec::new();
    for log2_n in 10..=effort.scale.pick(21, 25) {
        let name = format!("{}_n{log2_n}", workload.name);
        if effort.wants(workload, &name) {
            comparisons.extend(lookup_among(&name, log2_n, effort, &machine)?);
        }
    }
    Ok(comparisons)
}

fn lookup_among(name: &str, log2_n: u32, effort: &Effort, machine: &Machine) -> Rows {
    let keys = keys::random(1 << log2_n, SEED);
    let chain = Chain::sample(&keys, effort.lookups.min(300_000), SEED);
    let (mut our_map, mut their_map) = (CTreeMap::new(), BTreeMap::new());
    for &key in &keys {
        our_map.insert(key, value_of(key));
    }
    for &key in &keys {
        their_map.insert(key, value_of(key));
    }
    let plan = Plan::of_inserts(&keys);
    let boxes = allocate_from(&SYSTEM, || plan.build());
    let mut morphed = allocate_from(&OURS, || plan.build());
    morph_in_place(&mut morphed, None);
    drop(plan);
    let tree_ns = |tree, pages| Survey::of(tree).predict(pages, machine).ns;
    let predicted = [
        ctreemap_ns(keys.len(), machine),
        btreemap_ns(keys.len(), machine),
        tree_ns(&morphed, PageSize::Huge2M),
        tree_ns(&boxes, PageSize::Small4K),
    ];
    let our_lookups = || chain.follow(|key| low_half(our_map.get(key)));
    let their_lookups = || chain.follow(|key| low_half(their_map.get(key)));
    let passes = vec![
        pass("ctreemap", maps::OURS, our_lookups),
        pass(BTREEMAP, BTREEMAP_NAME, their_lookups),
        pass("morphed", "tree, morphed", || morphed.follow(&chain)),
        pass("boxes", "tree, as allocated", || boxes.follow(&chain)),
    ];
    let sides = compare(name, effort, chain.len(), passes)?;
    let (pairs, _) = sides.as_chunks();
    let ratios = pairs.iter().map(|[ours, theirs]| {
        let name = format!("{name}_{}_vs_{}", ours.slug, theirs.slug);
        Comparison::new(name, theirs.name, "ns", &ours.rounds, &theirs.rounds)
    });
    let points = sides.iter().zip(predicted).map(|(side, predicted)| {
        let name = format!("{name}_{}{POINT_SUFFIX}", side.slug);
        Comparison::of_prediction(name, predicted, &side.rounds)
    });
    Ok(ratios.chain(points).collect())
}

/// The predicted lookup in a `BTreeMap<u64, u64>` in malloc's memory.
///
/// A visit reads half of the keys (1.5 lines), the length (1), a value or edge (0.7). It has 1.3
/// rounds: the value or edge waits for the comparisons unless the processor guesses the slot, in
/// six of ten. It costs a visit of a search tree's node with branches, and a misprediction.
fn btreemap_ns(len: usize, machine: &Machine) -> f64 {
    let level = |node_bytes, share| SearchLevel {
        nodes: 1.0,
        node_bytes,
        lines_per_visit: 3.2 * share,
        rounds_per_visit: 1.3 * share,
        cpu_ns_per_visit: (machine.search.node_ns + machine.search.misprediction_ns) * share,
    };
    // One key for each leaf lies in an inner node, nearly always in the level above the leaves. Its
    // lookup ends there.
    let leaf = level(208.0, 1.0 - 1.0 / children(11.0));
    let levels = levels(len, children(11.0), leaf, level(304.0, 1.0));
    predict_levels(&levels, PageSize::Small4K, machine).ns
}

/// The predicted lookup in a `CTreeMap<u64, u64>` in its arenas of huge pages.
///
/// A visit reads all keys (4 lines) and all values or edges (4), in one round, with four vector
/// comparisons: two branch-free visits of a search tree's node.
fn ctreemap_ns(len: usize, machine: &Machine) -> f64 {
    let level = |node_bytes| SearchLevel {
        nodes: 1.0,
        node_bytes,
        lines_per_visit: 8.0,
        rounds_per_visit: 1.0,
        cpu_ns_per_visit: 2.0 * machine.search.branch_free_node_ns,
    };
    let levels = levels(len, children(30.0), level(512.0), level(768.0));
    predict_levels(&levels, PageSize::Huge2M, machine).ns
}

/// After random inserts, nodes are filled to ln 2 (Yao, *On random 2-3 trees*, Acta Informatica
/// 1978).
fn children(keys_max: f64) -> f64 {
    keys_max * LN_2 + 1.0
}

/// The levels of an ordered map, the root first: a lookup visits one node in each.
fn levels(len: usize, children: f64, leaf: SearchLevel, inner: SearchLevel) -> Vec<SearchLevel> {
    let mut nodes = (len as f64 / children).max(1.0);
    let mut levels = vec![SearchLevel { nodes, ..leaf }];
    while nodes > 1.0 {
        nodes = (nodes / children).max(1.0);
        levels.push(SearchLevel { nodes, ..inner });
    }
    levels.reverse();
    levels
}
