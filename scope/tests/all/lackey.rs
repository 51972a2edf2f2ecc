//! Loads and stores of each chunk, compared with those that valgrind's tool lackey traces.
//!
//! Lackey runs the same instrumented executable, whose runtime does nothing without the tool. It
//! sees what libc does with a chunk, too, which the callbacks do not; so only accesses of
//! instructions in the program's own text count.
//!
//! What remains different, and does not occur in these programs: a block operation is one access
//! for us and none in the text; a load of a vector wider than a register (`is_sorted` has loads of
//! 128 bytes) is one access for us and one for each register for lackey.

use std::collections::HashMap;

use ccmodel::simulator::TraceKind;

use super::programs::{Instrumented, cargo_run, is_installed, numbers};
use super::valgrind::{Trace, trace};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    loads: u64,
    stores: u64,
}

/// Sizes of chunks and the counts of each.
fn by_lackey(program: &Instrumented) -> Vec<(u64, Counts)> {
    let Trace {
        chunks, accesses, ..
    } = trace(program.executable.to_str().unwrap(), &[]);
    let mut sums = vec![Counts::default(); chunks.len()];
    let mut by_start: Vec<usize> = (0..chunks.len()).collect();
    by_start.sort_by_key(|&i| chunks[i].0);
    for access in accesses {
        let after = by_start.partition_point(|&i| chunks[i].0 <= access.address);
        let Some(&i) = after.checked_sub(1).and_then(|at| by_start.get(at)) else {
            continue;
        };
        if access.address < chunks[i].0 + chunks[i].1 {
            sums[i].loads += u64::from(access.kind != TraceKind::Store);
            sums[i].stores += u64::from(access.kind != TraceKind::Load);
        }
    }
    chunks.into_iter().map(|(_, size)| size).zip(sums).collect()
}

/// Compares a program's chunks, of which there are `count`.
fn compare(name: &str, count: usize) {
    if !is_installed("valgrind") {
        return;
    }
    let program = cargo_run(name);
    let known: HashMap<u64, _> = program
        .profile
        .chunks
        .iter()
        .map(|chunk| (chunk.address, chunk))
        .collect();
    let ours: Vec<(u64, Counts)> = numbers(&program.out, "chunk")
        .iter()
        .map(|chunk| {
            let known = known[&chunk[0]];
            let counts = Counts {
                loads: known.reads.into(),
                stores: known.writes.into(),
            };
            (known.size, counts)
        })
        .collect();
    assert_eq!(ours.len(), count);
    let theirs = by_lackey(&program);
    assert!(
        theirs
            .iter()
            .all(|(_, counts)| counts.loads > 0 && counts.stores > 0),
        "{theirs:?}"
    );
    assert_eq!(ours, theirs);
}

#[test]
fn accesses_of_a_sort_are_those_of_lackey() {
    compare("sort", 1);
}

#[test]
fn accesses_of_a_linked_list_are_those_of_lackey() {
    compare("list", 1000);
}

#[test]
fn accesses_of_a_tree_are_those_of_lackey() {
    compare("tree", 774);
}

#[test]
fn accesses_of_a_hash_table_are_those_of_lackey() {
    compare("hash", 435);
}

#[test]
fn accesses_of_matrices_are_those_of_lackey() {
    compare("matrix", 3);
}
