//! Accesses are those that valgrind's lackey traces, in the same order.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ccmodel::simulator::TraceKind;
use tempfile::TempDir;

use super::{Raw, raw, run};
use crate::programs::{command, compile, is_installed, numbers, succeed, text};
use crate::valgrind;

/// A load or store, the chunk's number, the offset and the bytes.
type Access = (char, usize, u64, u64);

/// Those of the program's own text that are in its chunks, in order.
fn in_chunks(out: &str, events: &[Raw]) -> Vec<Access> {
    let (text, chunks) = (&numbers(out, "text")[0], numbers(out, "chunk"));
    let mut order: Vec<usize> = (0..chunks.len()).collect();
    order.sort_by_key(|&at| chunks[at][0]);
    let own = events
        .iter()
        .filter(|event| (text[0]..text[1]).contains(&event.ip));
    own.filter(|event| matches!(event.kind, 'L' | 'S'))
        .filter_map(|event| {
            let after = order.partition_point(|&at| chunks[at][0] <= event.address);
            let at = order[after.checked_sub(1)?];
            let offset = event.address - chunks[at][0];
            (offset < chunks[at][1]).then_some((event.kind, at, offset, event.len))
        })
        .collect()
}

/// The same by lackey.
fn by_lackey(program: &Path) -> Vec<Access> {
    let trace = valgrind::trace(program.to_str().unwrap(), &[]);
    let mut order: Vec<usize> = (0..trace.chunks.len()).collect();
    order.sort_by_key(|&at| trace.chunks[at].0);
    let mut all = Vec::new();
    for access in trace.accesses {
        let after = order.partition_point(|&at| trace.chunks[at].0 <= access.address);
        let Some(&at) = after.checked_sub(1).and_then(|at| order.get(at)) else {
            continue;
        };
        let (start, len) = trace.chunks[at];
        if access.address < start + len {
            let kinds: &[char] = match access.kind {
                TraceKind::Load => &['L'],
                TraceKind::Store => &['S'],
                _ => &['L', 'S'],
            };
            let place = (access.address - start, access.bytes.into());
            all.extend(kinds.iter().map(|&kind| (kind, at, place.0, place.1)));
        }
    }
    all
}

/// Accesses of each chunk by themselves: threads come in any order.
fn of_chunks(all: Vec<Access>) -> HashMap<usize, Vec<Access>> {
    let mut chunks: HashMap<usize, Vec<Access>> = HashMap::new();
    for access in all {
        chunks.entry(access.1).or_default().push(access);
    }
    chunks
}

/// Compiles a program, runs it with and without the tool; what it says, and its events.
fn traced(folder: &Path, source: &str, flags: &[&str]) -> (PathBuf, String, Vec<Raw>) {
    let compiler = match source.rsplit_once('.') {
        Some((_, "cc")) => "c++",
        Some((_, "rs")) => "rustc",
        _ => "cc",
    };
    let program = compile(folder, &[compiler], source, flags);
    let (output, trace) = run(folder, &["--form=raw", program.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = text(&output.stdout);
    let native = text(&succeed(&mut command(&program)).stdout);
    assert_eq!(numbers(&output, "result"), numbers(&native, "result"));
    (program, output, raw(&trace))
}

/// Compares a program that has at least `least` accesses.
fn compare(source: &str, flags: &[&str], least: usize, is_threaded: bool) {
    let folder = TempDir::new().unwrap();
    let (program, output, events) = traced(folder.path(), source, flags);
    let ours = in_chunks(&output, &events);
    assert!(ours.len() >= least, "{}", ours.len());
    if !is_installed("valgrind") {
        return;
    }
    let theirs = by_lackey(&program);
    if is_threaded {
        // By thread: each works on chunks of its own.
        let chunks = numbers(&output, "chunk");
        let thread_of = |chunk: &[u64]| {
            let range = chunk[0]..chunk[0] + chunk[1];
            let of_chunk = events.iter().filter(|it| range.contains(&it.address));
            let threads: HashSet<u64> = { of_chunk }
                .filter(|it| matches!(it.kind, 'L' | 'S'))
                .map(|it| it.thread)
                .collect();
            assert_eq!(threads.len(), 1);
            threads.into_iter().next()
        };
        let pairs = chunks.chunks(2);
        let threads: HashSet<_> = pairs.clone().map(|pair| thread_of(&pair[0])).collect();
        assert!(
            pairs
                .clone()
                .all(|pair| thread_of(&pair[0]) == thread_of(&pair[1]))
        );
        assert_eq!(threads.len(), pairs.len());
        assert_eq!(of_chunks(ours), of_chunks(theirs));
        return;
    }
    let first = ours
        .iter()
        .zip(&theirs)
        .position(|(ours, theirs)| ours != theirs);
    if let Some(at) = first {
        let part = |all: &[Access]| all[at.saturating_sub(3)..all.len().min(at + 6)].to_vec();
        panic!("at {at}: {:?}, lackey {:?}", part(&ours), part(&theirs));
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
#[ignore = "takes long: CI runs it"]
fn accesses_of_each_kind_of_memory_are_those_of_lackey() {
    compare("trace-sort.c", &["-O1"], 100_000, false);
    compare("trace-sort.c", &["-O3"], 100_000, false);
}

#[test]
fn accesses_of_vectors_are_those_of_lackey() {
    compare(
        "trace-vectors.c",
        &["-O2", "-mavx2", "-fno-tree-vectorize"],
        4_700,
        false,
    );
}

#[test]
fn accesses_of_a_map_are_those_of_lackey() {
    compare("trace-map.cc", &["-O2"], 2_000, false);
}

#[test]
fn accesses_of_threads_are_those_of_lackey() {
    compare("trace-threads.c", &["-O1", "-pthread"], 7_900, true);
}

#[test]
fn accesses_of_gathers_are_those_of_lackey() {
    compare("trace-gathers.c", &["-O1", "-mavx2"], 5_000, false);
}

#[test]
fn accesses_of_a_tree_in_rust_are_those_of_lackey() {
    compare(
        "trace-quickstart.rs",
        &["--edition=2024", "-O"],
        8_000,
        false,
    );
}

#[test]
#[ignore = "takes long: CI runs it"]
fn accesses_of_sqlite_are_those_of_lackey() {
    if Path::new("/usr/include/sqlite3.h").exists() {
        compare("trace-sqlite.c", &["-O1", "-w", "-lsqlite3"], 20_000, false);
    }
}

/// For each chunk, the bytes that ranges of addresses touch.
fn bytes(chunks: &[Vec<u64>], ranges: &[(u64, u64)]) -> Vec<Vec<bool>> {
    let mut all: Vec<Vec<bool>> = Vec::new();
    for chunk in chunks {
        let mut touched = vec![false; usize::try_from(chunk[1]).unwrap()];
        for (start, len) in ranges {
            let from = start.saturating_sub(chunk[0]).min(chunk[1]);
            let to = (start + len).saturating_sub(chunk[0]).min(chunk[1]);
            for at in from..to {
                touched[usize::try_from(at).unwrap()] = true;
            }
        }
        all.push(touched);
    }
    all
}

#[test]
fn block_operations_touch_the_bytes_that_lackey_sees() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-w", "-fno-builtin"];
    let (program, output, events) = traced(folder.path(), "trace-blocks.c", &flags);
    let chunks = numbers(&output, "chunk");
    // Nothing else touches them.
    assert!(in_chunks(&output, &events).is_empty());
    let blocks = |kinds: &[char], of: fn(&Raw) -> u64| -> Vec<(u64, u64)> {
        let all = events.iter().filter(|it| kinds.contains(&it.kind));
        all.map(|it| (of(it), it.len)).collect()
    };
    let stored = bytes(&chunks, &blocks(&['W', 'Y'], |it| it.address));
    let loaded = bytes(&chunks, &blocks(&['Y'], |it| it.from));
    // From what the program asks for.
    let count = |all: &[Vec<bool>]| -> Vec<usize> {
        let count = |touched: &Vec<bool>| touched.iter().filter(|it| **it).count();
        all.iter().map(count).collect()
    };
    assert_eq!(count(&stored), [9000, 333, 333 + 100 + (9000 - 2001), 700]);
    if !is_installed("valgrind") {
        return;
    }
    let trace = valgrind::trace(program.to_str().unwrap(), &[]);
    let chunks: Vec<Vec<u64>> = trace.chunks.iter().map(|it| vec![it.0, it.1]).collect();
    let of = |kind| -> Vec<(u64, u64)> {
        let all = trace.others.iter();
        let all = all.filter(|it| it.kind == kind || it.kind == TraceKind::Modify);
        all.map(|it| (it.address, it.bytes.into())).collect()
    };
    assert_eq!(stored, bytes(&chunks, &of(TraceKind::Store)));
    let mut theirs = bytes(&chunks, &of(TraceKind::Load));
    // `memcmp` is no block operation: it only loads. `calloc` reads what `free` left at both ends.
    theirs[2][1333..1433].fill(false);
    theirs[0][..31].fill(false);
    theirs[0][8_900..].fill(false);
    assert_eq!(count(&loaded), count(&theirs));
    assert_eq!(loaded, theirs);
}

#[test]
fn elements_of_gathers_and_scatters_are_those_that_their_masks_select() {
    let folder = TempDir::new().unwrap();
    let (_, output, events) = traced(folder.path(), "trace-elements.c", &["-O1", "-w"]);
    let lines = numbers(&output, "expect");
    let expected: Vec<Access> = { lines.iter() }
        .map(|it| (char::from(u8::try_from(it[0]).unwrap()), 0, it[1], it[2]))
        .collect();
    assert!(expected.len() > 500 || !std::is_x86_feature_detected!("avx512f"));
    assert_eq!(in_chunks(&output, &events), expected);
}
