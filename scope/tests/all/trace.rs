//! `ccscope trace`: its accesses are those of valgrind's lackey, and programs behave as without it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use ccmodel::simulator::TraceKind;
use tempfile::TempDir;

use super::lackey;
use super::programs::{CCSCOPE, command, compile, is_installed, numbers, succeed, text};

/// A load or store, the chunk's number, the offset and the bytes.
type Access = (char, usize, u64, u64);

/// An event of the raw form.
struct Raw {
    kind: char,
    address: u64,
    len: u64,
    ip: u64,
    thread: u64,
}

fn raw(trace: &str) -> Vec<Raw> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let event = |line: &str| {
        let (head, rest) = line.split_once(':').unwrap();
        assert_eq!(head.as_bytes()[1], b'#', "{line}");
        let words: Vec<&str> = rest.split(',').collect();
        Raw {
            kind: head.chars().next().unwrap(),
            address: hex(words[0]),
            len: words[1].parse().unwrap(),
            ip: hex(words[3]),
            thread: words.last().unwrap().parse().unwrap(),
        }
    };
    trace.lines().map(event).collect()
}

/// `ccscope trace` with these words, in a folder of its own; the trace of the first process.
fn run(folder: &Path, words: &[&str]) -> (Output, String) {
    let mut tool = command(CCSCOPE);
    tool.args(["trace", "-q", "-o", "a.trace"])
        .args(words)
        .current_dir(folder);
    let output = tool.output().unwrap();
    let trace = fs::read_to_string(folder.join("a.trace"));
    (output, trace.unwrap_or_default())
}

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
    let trace = lackey::trace(program.to_str().unwrap(), &[]);
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

/// Compares a program that has at least `least` accesses.
fn compare(source: &str, flags: &[&str], least: usize, is_threaded: bool) {
    let folder = TempDir::new().unwrap();
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    let program = compile(folder.path(), &[compiler], source, flags);
    let (output, trace) = run(folder.path(), &["--form=raw", program.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let native = succeed(&mut command(&program));
    let result = |output: &Output| numbers(&text(&output.stdout), "result");
    assert_eq!(result(&output), result(&native));
    let ours = in_chunks(&text(&output.stdout), &raw(&trace));
    assert!(ours.len() >= least, "{}", ours.len());
    if !is_installed("valgrind") {
        return;
    }
    let theirs = by_lackey(&program);
    if is_threaded {
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

/// Runs a program with and without the tool.
fn both(words: &[&str]) -> (Output, Output, String) {
    let folder = TempDir::new().unwrap();
    let (traced, trace) = run(folder.path(), words);
    let first = words
        .iter()
        .position(|word| !word.starts_with("--"))
        .unwrap();
    let mut native = Command::new(words[first]);
    let native = native
        .args(&words[first + 1..])
        .current_dir(folder.path())
        .output()
        .unwrap();
    (traced, native, trace)
}

#[test]
fn signals_memory_processes_and_stacks_are_as_without() {
    let folder = TempDir::new().unwrap();
    let program = compile(
        folder.path(),
        &["cc"],
        "trace-nasty.c",
        &["-O1", "-w", "-pthread"],
    );
    let (traced, native, trace) = both(&["--form=raw", program.to_str().unwrap()]);
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
fn real_programs_give_the_same_output() {
    let script = "i=0; while [ $i -lt 20 ]; do i=$((i+1)); done; echo $i; ls -d /usr";
    let perl = "my %h; $h{$_ % 17} += $_ for 1..200; print join(',', map {$h{$_}} sort keys %h)";
    let sql = "create table t(a); insert into t values(3),(1),(2); select group_concat(a) from \
               (select a from t order by a);";
    let programs: [&[&str]; 7] = [
        &["bash", "-c", script],
        &["perl", "-e", perl],
        &["sqlite3", ":memory:", sql],
        &["git", "--version"],
        &["xz", "--help"],
        &["gzip", "--version"],
        &[
            "/usr/bin/python3",
            "-S",
            "-c",
            "print(sum(x * x for x in range(50)))",
        ],
    ];
    for words in programs {
        if is_installed(words[0]) {
            // One part of sixteen: hundreds of thousands of accesses would take their time.
            let (traced, native, _) = both(&[&["--every=16"], words].concat());
            assert_eq!(text(&traced.stdout), text(&native.stdout), "{words:?}");
            assert_eq!(traced.status.code(), native.status.code(), "{words:?}");
        }
    }
}

const NAMED: &str = "trace-names.c";

#[test]
fn events_have_names() {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &["cc"], NAMED, &["-O0", "-g"]);
    let program = program.to_str().unwrap();
    let (_, trace) = run(folder.path(), &[program]);
    let has = |parts: &[&str]| {
        let found = trace
            .lines()
            .any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "{parts:?} in\n{trace}");
    };
    has(&[
        "M$",
        ":<malloc0000@make+",
        ",24,",
        "struct point",
        "trace-names.c:",
    ]);
    has(&["S$", ":<malloc0000@make+", ">+8,8,[heap],", ".y,make+"]);
    has(&["L$", ":limits+4,4,", ",sum+"]);
    has(&["W$", ":<calloc0001@main+", ",400,"]);
    has(&["Y$", "from <malloc0000@make+"]);
    has(&["F$", ":<freed:0000@make+"]);
    // The program's mistake shows.
    has(&["L$", ":<freed:0000@make+", ">+16,8,[heap],", ".z,main+"]);
    // Only what `sum` does, only one kind of memory, and what one function allocates.
    let (_, part) = run(folder.path(), &["--from=sum", "--only=data", program]);
    let accesses: Vec<&str> = part
        .lines()
        .filter(|line| line.starts_with(['L', 'S']))
        .collect();
    assert!(!accesses.is_empty());
    assert!(
        accesses
            .iter()
            .all(|line| line.contains("limits") && line.contains(",sum+")),
        "{part}"
    );
    let (_, part) = run(folder.path(), &["--only=make", program]);
    assert!(
        part.lines().count() > 3 && part.lines().all(|line| line.contains("@make+")),
        "{part}"
    );
    let refused = command(CCSCOPE)
        .args(["trace", "--from=nobody", program])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("has no function nobody"));
    // Before the program runs.
    let mut tool = command(CCSCOPE);
    let refused = tool
        .args(["trace", "-o", "/nowhere/a", "echo", "run"])
        .output()
        .unwrap();
    assert_eq!(
        (refused.status.code(), text(&refused.stdout).as_str()),
        (Some(1), "")
    );
}

#[test]
fn the_trace_of_another_tool_is_read() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("l.txt"),
        "==1== x\nI  400,3\n L 1ff0,8\n M 2000,4\n",
    )
    .unwrap();
    let mut tool = command(CCSCOPE);
    tool.args(["trace", "--import=l.txt", "--form=lackey", "-o", "-"])
        .current_dir(folder.path());
    let output = succeed(&mut tool);
    assert_eq!(
        text(&output.stdout),
        " L 00001ff0,8\n L 00002000,4\n S 00002000,4\n"
    );
    assert!(text(&output.stderr).contains("2 loads, 1 stores, 1 other lines"));
}

#[test]
fn the_use_case_of_the_paper_is_found_again() {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &["cc"], "trace-disparity.c", &["-O0", "-g"]);
    let program = program.to_str().unwrap();
    let mut tool = command(CCSCOPE);
    tool.args(["trace", "--from=findDisparity", "-o", "d.trace", program]);
    let output = succeed(tool.current_dir(folder.path()));
    let trace = fs::read_to_string(folder.path().join("d.trace")).unwrap();
    let own: Vec<&str> = trace
        .lines()
        .filter(|line| line.contains(",findDisparity+"))
        .collect();
    // Listing 2: the first two iterations and the last of the first call, where `a < b` holds.
    let iteration = |at: usize, element: u64| {
        let [ret, min, disp] = [
            "<malloc0003@fMallocHandle+",
            "<malloc0002@fMallocHandle+",
            "<malloc0004@iMallocHandle+",
        ];
        let data = 8 + 4 * element;
        let expected = [
            ("L", ret, 0),
            ("L", ret, data),
            ("L", min, 0),
            ("L", min, data),
            ("L", min, 0),
            ("S", min, data),
            ("L", disp, 0),
            ("S", disp, data),
        ];
        for (line, (kind, chunk, offset)) in own[at * 8..].iter().zip(expected) {
            let kind_of = if chunk == disp { "I2D" } else { "F2D" };
            let field = if offset == 0 { "width" } else { "data" };
            let field = format!("{kind_of}.{field}");
            let parts = [
                format!("{kind}$"),
                format!(":{chunk}"),
                format!(">+{offset},4,[heap],{field},"),
            ];
            assert!(
                parts.iter().all(|part| line.contains(part)),
                "{parts:?} in {line}"
            );
        }
    };
    iteration(0, 0);
    iteration(1, 1);
    iteration(129, 129);
    // Table III: what was counted is what was written.
    let number = |kind: &str| trace.lines().filter(|line| line.starts_with(kind)).count();
    let err = text(&output.stderr);
    let [loads, stores] = [number("L$"), number("S$")];
    assert!(
        err.contains(&format!("{loads} loads, {stores} stores")),
        "{err}"
    );
    // Each of four calls reads two sizes and two elements of each pixel.
    assert!(loads >= 4 * 4 * 130 && stores >= 2 * 130, "{err}");
}

#[test]
fn random_instructions_do_the_same() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-w", "-no-pie"];
    let program = compile(folder.path(), &["cc"], "trace-random.c", &flags);
    // A million takes two minutes: `ccscope trace -o /dev/null PROGRAM 1000000`.
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
