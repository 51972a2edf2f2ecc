//! Programs behave as without the tracer.

use std::collections::HashSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;

use tempfile::TempDir;

use super::{both, raw, run};
use crate::programs::{compile, text};

#[test]
fn signals_memory_processes_and_stacks_are_as_without() {
    let folder = TempDir::new().unwrap();
    let program = compile(
        folder.path(),
        &["cc"],
        "trace-nasty.c",
        &["-O1", "-w", "-pthread"],
    );
    for patch in [&["--patch"][..], &[]] {
        nasty(&[patch, &["--form=raw", program.to_str().unwrap()]].concat());
    }
}

fn nasty(words: &[&str]) {
    let (traced, native, trace) = both(words);
    assert_eq!(
        text(&native.stdout).lines().count(),
        11,
        "{}",
        text(&native.stdout)
    );
    assert_eq!(
        text(&traced.stdout),
        text(&native.stdout),
        "{}",
        text(&traced.stderr)
    );
    // The program is killed; the tool's exit code says so.
    assert_eq!(
        (traced.status.code(), native.status.signal()),
        (Some(137), Some(9))
    );
    let events = raw(&trace);
    let number = |kind| events.iter().filter(|event| event.kind == kind).count();
    assert_eq!([number('T'), number('X'), number('B')], [50, 50, 3]);
    // The children of `system` and `popen` share the process's memory until they are a program.
    assert!(number('K') >= 1 && number('N') >= 1);
    let begun = events.iter().filter(|event| event.kind == 'T');
    let threads: HashSet<u64> = begun.map(|event| event.thread).collect();
    assert_eq!(threads.len(), 50);
}

#[test]
fn random_instructions_do_the_same() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-w", "-no-pie"];
    let program = compile(folder.path(), &["cc"], "trace-random.c", &flags);
    // By hand, a million in some minutes: `ccscope trace -o /dev/null PROGRAM 1000000`.
    let (traced, native, trace) = both(&["--form=raw", program.to_str().unwrap(), "10000"]);
    assert!(
        native.status.success() && traced.status.success(),
        "{}",
        text(&traced.stderr)
    );
    assert_eq!(text(&traced.stdout), text(&native.stdout));
    assert!(
        raw(&trace)
            .iter()
            .filter(|event| matches!(event.kind, 'L' | 'S'))
            .count()
            > 20_000
    );
}

/// Compiles a program by `compiler`, runs it with and without the tool; both have to say the same.
fn same(compiler: &str, source: &str, flags: &[&str], least: usize) -> String {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &[compiler], source, flags);
    same_of(
        &["--form=raw", "--most=3000000", program.to_str().unwrap()],
        least,
    )
}

fn same_of(words: &[&str], least: usize) -> String {
    same_as(&[&["--patch"], words].concat(), least);
    same_as(words, least)
}

fn same_as(words: &[&str], least: usize) -> String {
    let (traced, native, trace) = both(words);
    let expected = text(&native.stdout);
    assert!(expected.lines().count() >= least, "{expected}");
    assert_eq!(text(&traced.stdout), expected, "{}", text(&traced.stderr));
    assert_eq!(traced.status.code(), native.status.code());
    trace
}

#[test]
fn signals_come_and_are_handled_as_without() {
    let trace = same("cc", "trace-signals.c", &["-O1", "-w", "-pthread"], 60);
    // Tracing went on after handlers left by `longjmp`.
    assert!(raw(&trace).len() > 50_000);
}

#[test]
fn memory_changes_as_without() {
    let folder = TempDir::new().unwrap();
    let library = compile(
        folder.path(),
        &["cc"],
        "trace-library.c",
        &["-O1", "-shared", "-fPIC"],
    );
    for name in ["first.so", "second.so"] {
        fs::copy(&library, folder.path().join(name)).unwrap();
    }
    let program = compile(
        folder.path(),
        &["cc"],
        "trace-memory.c",
        &["-O1", "-w", "-pthread"],
    );
    let [program, libraries] = [&*program, folder.path()].map(|path| path.to_str().unwrap());
    same_of(&["--form=raw", program, libraries], 55);
}

#[test]
fn system_calls_get_traced_memory() {
    let trace = same("cc", "trace-calls.c", &["-O1", "-w", "-pthread"], 46);
    let number = |kind| raw(&trace).iter().filter(|it| it.kind == kind).count();
    assert!(number('W') > 40 && number('G') > 40);
}

#[test]
fn exceptions_go_through_traced_code() {
    let flags = ["-O1", "-pthread", "-fnon-call-exceptions"];
    same("c++", "trace-unwind.cc", &flags, 12);
}

#[test]
fn panics_go_through_traced_code() {
    same("rustc", "trace-panic.rs", &["--edition=2024", "-O"], 11);
}

#[test]
fn processes_are_made_as_without() {
    same("cc", "trace-processes.c", &["-O1", "-w", "-pthread"], 14);
}

#[test]
fn children_of_a_shell_are_named_as_one_alone() {
    // The tool reads each file once for all processes.
    let folder = TempDir::new().unwrap();
    let script = "i=0; while [ $i -lt 4 ]; do (true); /bin/true; i=$((i+1)); done";
    run(folder.path(), &["sh", "-c", script]);
    let mut of_forks = Vec::new();
    for entry in folder.path().read_dir().unwrap() {
        let trace = fs::read_to_string(entry.unwrap().path()).unwrap();
        let start = trace.split_once(':').unwrap().1.lines().next().unwrap();
        if start.contains("fork") {
            of_forks.push(trace);
        }
    }
    assert_eq!(of_forks.len(), 4);
    // Up to their own numbers all are at the same addresses, and do the same.
    assert!(of_forks[0].lines().count() > 100);
    assert!(of_forks.iter().all(|it| *it == of_forks[0]));
}

#[test]
fn fork_needs_no_file_in_memory() {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &["cc"], "trace-fork.c", &["-O1"]);
    for how in ["seccomp", "descriptors"] {
        let words = ["--form=raw", program.to_str().unwrap(), how];
        let (traced, native, trace) = both(&words);
        assert_eq!(
            text(&native.stdout).lines().count(),
            if how == "seccomp" { 4 } else { 3 }
        );
        assert_eq!(text(&traced.stdout), text(&native.stdout), "{how}");
        assert_eq!(traced.status.code(), native.status.code(), "{how}");
        let err = text(&traced.stderr);
        // Where there is no descriptor, nothing can be said either.
        let is_told = err.contains("a child of fork is not traced");
        assert!(is_told || how == "descriptors", "{err}");
        // The parent is traced to its end.
        assert!(raw(&trace).iter().filter(|it| it.kind == 'K').count() == 4);
    }
}

#[test]
fn limits_leave_a_program_untraced_and_unharmed() {
    for limit in ["-v 4000000", "-f 1000", "-n 3"] {
        let script = format!("ulimit {limit}; exec /bin/echo hi");
        let (traced, native, _) = both(&["sh", "-c", &script]);
        assert_eq!(text(&traced.stdout), text(&native.stdout), "{limit}");
        assert_eq!(traced.status.code(), native.status.code(), "{limit}");
    }
}
