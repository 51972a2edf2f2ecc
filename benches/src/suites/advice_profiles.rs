//! Advice on profiles that are made in memory: how long it takes, and what splits save in programs
//! like those of the thesis.

use std::time::Instant;

use ccmodel::Machine;
use ccscope::advice::{Kind, advise};
use ccscope::profile::{Access, BUCKETS, Edge, Field, Profile, Run, Site, Totals, Type, Window};

use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Rows, SEED, Workload};

const WINDOW: usize = 1 << 15;
const HEAP: u64 = 1 << 40;

/// `count` objects of words: boxes, or with `is_vector` all in one chunk.
fn objects(count: u64, words: u64, is_vector: bool, windows: Vec<Vec<Access>>) -> Profile {
    let size = 8 * words;
    let (name, chunks) = match is_vector {
        true => ("Vec<Object>", 1),
        false => ("Box<Object>", count),
    };
    let chunk = count * size / chunks;
    let field = |at: u64| Field {
        name: format!("field{at}"),
        type_name: "u64".to_owned(),
        offset: 8 * at,
        size: 8,
    };
    let reads = windows.iter().map(|it| it.len() as u64).sum::<u64>() * 1000;
    let window = |(time, accesses)| Window {
        time,
        from_start: false,
        thread: 0,
        accesses,
    };
    Profile {
        run: Run {
            end: reads + count,
            seconds: 1.0,
            accesses: true,
            ..Run::default()
        },
        total: Totals {
            allocations: count,
            heap_reads: reads,
            ..Totals::default()
        },
        frames: Vec::new(),
        types: vec![Type {
            name: name.to_owned(),
            size: Some(size),
            fields: (0..words).map(field).collect(),
        }],
        sites: vec![Site {
            type_id: Some(0),
            allocations: chunks,
            requested: count * size,
            peak_chunks: chunks,
            smallest: chunk,
            largest: chunk,
            reads,
            first_time: 1,
            last_time: 1,
            sizes: vec![0; BUCKETS],
            lifetimes: vec![0; BUCKETS],
            ..Site::default()
        }],
        windows: (2..).zip(windows).map(window).collect(),
        ..Profile::default()
    }
}

fn read(base: u64, offset: u32) -> Access {
    Access {
        address: base + u64::from(offset),
        size: 8,
        write: false,
        site: 0,
        offset,
        pointer: 0,
        target: u32::MAX,
    }
}

/// The time of advice on searches in a tree of 2^20 nodes that lie anywhere.
pub(super) fn seconds(workload: &Workload, effort: &Effort) -> Rows {
    const NODES: u64 = 1 << 20;
    let all: usize = effort.scale.pick(10_000_000, 100_000_000);
    let mut random = Rng::new(SEED);
    let mut places: Vec<u64> = (0..NODES).collect();
    random.shuffle(&mut places);
    let base = |node: u64| HEAP + places[usize::try_from(node).expect("it is small")] * 32;
    let mut window = || {
        let mut accesses = Vec::with_capacity(WINDOW);
        while accesses.len() < WINDOW {
            let (mut node, mut key) = (0, random.next_u64());
            while node < NODES {
                accesses.push(read(base(node), 0));
                let side = key & 1;
                key >>= 1;
                let child = 2 * node + 1 + side;
                let load = read(base(node), if side == 0 { 8 } else { 16 });
                accesses.push(match child < NODES {
                    true => Access {
                        pointer: base(child),
                        target: 0,
                        ..load
                    },
                    false => load,
                });
                node = child;
            }
        }
        accesses
    };
    let windows = (0..all.div_ceil(WINDOW)).map(|_| window()).collect();
    let mut profile = objects(NODES, 3, false, windows);
    let edge = |offset| Edge {
        from: 0,
        offset,
        to: 0,
        loads: 1000,
        followed: 1000,
    };
    profile.edges = [8, 16].map(edge).to_vec();
    let started = Instant::now();
    let advice = advise(&profile, Machine::this(), None).ok_or("the caches are not known")?;
    let took = started.elapsed().as_secs_f64();
    if !advice.worth_it {
        return Err("a tree that lies anywhere is to be changed".into());
    }
    Ok(vec![held(workload.name, "s", took, 60.0)])
}

pub(super) fn held(name: &str, unit: &str, ours: f64, most: f64) -> Comparison {
    let [ours, most] = [ours, most].map(Rounds::once);
    Comparison::new(name, "largest allowed", unit, &ours, &most)
}

/// Words of an object, and how many of them are hot: the mean sizes of the classes that the thesis
/// splits (table 6.3), in words of 8 bytes with one of the link taken off.
const PROGRAMS: [(&str, u64, u64); 5] = [
    ("cassowary", 10, 2),
    ("espresso", 6, 4),
    ("javac", 4, 2),
    ("javadoc", 6, 4),
    ("pizza", 5, 3),
];

/// Second-level misses after splits over those before, by replay. Objects lie one behind the other,
/// as a copying collector leaves them, and are used in rows of 16 from anywhere; one in fifty has a
/// cold field read.
pub(super) fn split_misses(workload: &Workload, _: &Effort) -> Rows {
    const OBJECTS: u64 = 1 << 20;
    const ROW: u64 = 16;
    let mut rows = Vec::new();
    for (name, words, hot) in PROGRAMS {
        let mut random = Rng::new(SEED);
        let size = 8 * words;
        let mut window = || {
            let mut accesses = Vec::with_capacity(WINDOW);
            while accesses.len() < WINDOW {
                let first = random.next_u64() % (OBJECTS - ROW);
                for object in first..first + ROW {
                    let cold = random.next_u64().is_multiple_of(50).then_some(words - 1);
                    let fields = (0..hot).chain(cold);
                    let offsets = fields.map(|at| u32::try_from(object * size + 8 * at));
                    let offsets = offsets.map(|offset| offset.expect("it is below 4 GB"));
                    accesses.extend(offsets.map(|offset| read(HEAP, offset)));
                }
            }
            accesses
        };
        let windows = (0..64).map(|_| window()).collect();
        let profile = objects(OBJECTS, words, true, windows);
        let advice = advise(&profile, Machine::this(), None).ok_or("the caches are not known")?;
        let split = advice.advice.iter().find(|item| item.kind == Kind::Split);
        let left = match split.map(|item| &item.misses[1]) {
            Some(misses) => misses.after / misses.before,
            None => 1.0,
        };
        rows.push(held(
            &format!("{}_of_{name}", workload.name),
            "x",
            left,
            0.75,
        ));
    }
    let each: Vec<Rounds> = rows.iter().map(|row| Rounds::once(row.ours)).collect();
    let mean = Rounds::geometric_mean(&each);
    rows.insert(0, held(workload.name, "x", mean.median(), 0.75));
    Ok(rows)
}
