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
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use super::programs::{Instrumented, cargo_run, command, is_installed, numbers};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    loads: u64,
    stores: u64,
}

struct Traced {
    address: u64,
    instruction: u64,
    counts: Counts,
}

/// Chunks in the order in which the program prints them, with the counts of each.
fn by_lackey(program: &Instrumented) -> Vec<(u64, Counts)> {
    let mut child = command("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes"])
        .arg(&program.executable)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut accesses = Vec::new();
    let mut instruction = 0;
    let mut trace = BufReader::with_capacity(1 << 20, child.stderr.take().unwrap());
    let mut line = String::new();
    while trace.read_line(&mut line).unwrap() > 0 {
        let hex = |text: &str| u64::from_str_radix(text.split(',').next().unwrap().trim(), 16);
        let (kind, rest) = line.trim_end().split_at(line.len().min(3));
        let (loads, stores) = match kind {
            "I  " => {
                instruction = hex(rest).unwrap();
                (0, 0)
            }
            " L " => (1, 0),
            " S " => (0, 1),
            " M " => (1, 1),
            _ => (0, 0),
        };
        if loads + stores > 0 {
            let counts = Counts { loads, stores };
            accesses.push(Traced {
                address: hex(rest).unwrap(),
                instruction,
                counts,
            });
        }
        line.clear();
    }
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert!(child.wait().unwrap().success());

    let text = &numbers(&out, "text")[0];
    let chunks = numbers(&out, "chunk");
    let mut sums = vec![Counts::default(); chunks.len()];
    let mut by_start: Vec<usize> = (0..chunks.len()).collect();
    by_start.sort_by_key(|&i| chunks[i][0]);
    for traced in accesses
        .iter()
        .filter(|one| (text[0]..text[1]).contains(&one.instruction))
    {
        let after = by_start.partition_point(|&i| chunks[i][0] <= traced.address);
        let Some(&i) = after.checked_sub(1).and_then(|at| by_start.get(at)) else {
            continue;
        };
        if traced.address < chunks[i][0] + chunks[i][1] {
            sums[i].loads += traced.counts.loads;
            sums[i].stores += traced.counts.stores;
        }
    }
    chunks.iter().map(|chunk| chunk[1]).zip(sums).collect()
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
