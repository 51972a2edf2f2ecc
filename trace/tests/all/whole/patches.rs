//! `--patch` changes what an access costs, and nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::{Raw, raw};
use crate::programs::{TRACE, command, compile, is_installed, succeed, text};

/// What two runs at the same addresses must have in common.
type Access = (char, u64, u64, u64);

/// A command whose addresses are the same each time.
fn at_fixed_addresses(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut setarch = command("setarch");
    setarch.arg("-R").arg(program);
    setarch
}

/// Accesses and output of a run, and how many instructions were patched.
fn traced(folder: &Path, words: &[&str]) -> (Vec<Raw>, String, u64) {
    let mut tool = at_fixed_addresses(TRACE);
    tool.args(["-o", "a.raw", "--form=raw"]).args(words);
    let output = succeed(tool.current_dir(folder));
    let err = text(&output.stderr);
    let patched = { err.lines() }
        .find_map(|line| {
            line.trim_start_matches("ccscope:")
                .trim()
                .split_once(" instructions were p")
        })
        .map_or(0, |(number, _)| number.parse().unwrap());
    let events = raw(&fs::read_to_string(folder.join("a.raw")).unwrap());
    (events, text(&output.stdout), patched)
}

/// Loads and stores; those of each thread by themselves.
fn accesses(events: &[Raw]) -> Vec<(u64, Access)> {
    let mut threads = Vec::new();
    let mut all: Vec<(u64, Access)> = { events.iter() }
        .filter(|event| matches!(event.kind, 'L' | 'S'))
        .map(|event| {
            let known = threads.iter().position(|&it| it == event.thread);
            let thread = known.unwrap_or_else(|| {
                threads.push(event.thread);
                threads.len() - 1
            });
            (
                thread as u64,
                (event.kind, event.address, event.len, event.ip),
            )
        })
        .collect();
    all.sort_by_key(|access| access.0);
    all
}

#[test]
#[ignore = "takes long: CI runs it"]
fn patched_instructions_tell_the_same_accesses() {
    if !is_installed("setarch") {
        return;
    }
    let programs: [(&str, &str, &[&str], u64); 4] = [
        ("cc", "trace-sort.c", &["-O1"], 10),
        ("cc", "trace-sort.c", &["-O3", "-no-pie"], 5),
        (
            "cc",
            "trace-vectors.c",
            &["-O2", "-mavx2", "-fno-tree-vectorize"],
            10,
        ),
        ("c++", "trace-map.cc", &["-O2"], 20),
    ];
    for (compiler, source, flags, least) in programs {
        let folder = TempDir::new().unwrap();
        let program = compile(folder.path(), &[compiler], source, flags);
        let program = program.to_str().unwrap();
        let (plain, plain_out, none) = traced(folder.path(), &[program]);
        let (patched, patched_out, number) = traced(folder.path(), &["--patch", program]);
        assert!(none == 0 && number >= least, "{source}: {none}, {number}");
        assert_eq!(plain_out, patched_out, "{source}");
        let [plain, patched] = [plain, patched].map(|events| accesses(&events));
        let first = plain.iter().zip(&patched).position(|(a, b)| a != b);
        assert_eq!((first, plain.len()), (None, patched.len()), "{source}");
    }
}

#[test]
fn patched_instructions_do_the_same() {
    if !is_installed("setarch") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-w", "-pie"];
    let program = compile(folder.path(), &["cc"], "trace-patched.c", &flags);
    let made = folder.path().join("made");
    fs::copy(&program, &made).unwrap();
    let [number, seed, rounds] = ["1500", "1", "16"];
    succeed(at_fixed_addresses(&program).args([number, seed]).arg(&made));
    let native = succeed(at_fixed_addresses(&made).args([number, seed, rounds]));
    let words = ["--patch", made.to_str().unwrap(), number, seed, rounds];
    let (events, out, patched) = traced(folder.path(), &words);
    assert_eq!(out, text(&native.stdout));
    // By hand, a million: five seeds with 8000 instructions and 25 rounds.
    assert!(
        patched > 300 && events.len() > 50_000,
        "{patched}, {}",
        events.len()
    );
}
