//! `ccscope trace`: signals and system calls do what they do without it, with patches, too.

use std::fs;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use super::programs::{TRACE, command, compile, succeed, text};

/// Runs a program natively and traced, with `--patch` and without, with the same output. Calls
/// `each` with the traced one's standard error and the trace.
fn same(source: &str, flags: &[&str], words: &[&str], mut each: impl FnMut(&str, &str)) {
    let folder = TempDir::new().unwrap();
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    let program = compile(folder.path(), &[compiler], source, flags);
    let native = succeed(&mut command(&program));
    for patch in [&[][..], &["--patch"]] {
        let (output, trace) = traced(folder.path(), &program, &[patch, words].concat());
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(out, text(&native.stdout), "{patch:?}: {err}");
        assert!(
            output.status.success(),
            "{patch:?}: {} {err}",
            output.status
        );
        each(&err, &trace);
    }
}

fn traced(folder: &Path, program: &Path, words: &[&str]) -> (Output, String) {
    let mut tool = command(TRACE);
    tool.args(["-q", "-o", "a.trace", "--form=raw"])
        .args(words)
        .arg(program)
        .current_dir(folder);
    let output = tool.output().unwrap();
    let trace = fs::read_to_string(folder.join("a.trace")).unwrap_or_default();
    (output, trace)
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// Words behind the first that starts with `name` in a program's output.
fn words<'t>(output: &'t str, name: &str) -> Vec<&'t str> {
    let line = { output.lines() }.find_map(|line| line.strip_prefix(name));
    line.unwrap().split_whitespace().collect()
}

/// How many stores of a trace lie in a range.
fn stores(trace: &str, start: u64, end: u64) -> usize {
    let lines = trace.lines().filter(|line| line.starts_with('S'));
    lines
        .filter(|line| {
            let (_, rest) = line.split_once(':').unwrap();
            (start..end).contains(&hex(rest.split(',').next().unwrap()))
        })
        .count()
}

#[test]
fn handlers_see_the_program_and_each_access_is_recorded_once() {
    same("trace-handlers.cc", &["-O1"], &[], |err, trace| {
        let turns = words(err, "turns");
        // Ten are stored once more, after jumps out of handlers.
        let expected = turns[0].parse::<usize>().unwrap() + 10;
        assert_eq!(stores(trace, hex(turns[1]), hex(turns[2])), expected);
    });
}

#[test]
fn tracing_ends_with_each_call_of_a_function() {
    let words_of_tool = ["--from", "f"];
    same("trace-points.cc", &["-O1"], &words_of_tool, |err, trace| {
        let places = words(err, "inside");
        let [inside, outside] = [places[0], places[2]].map(hex);
        assert_eq!(stores(trace, inside, inside + 4), 103);
        assert_eq!(stores(trace, outside, outside + 4), 0);
    });
}

#[test]
fn the_kernel_finds_memory_that_is_traced() {
    same("trace-kernel.c", &["-O1", "-pthread"], &[], |_, _| ());
}
