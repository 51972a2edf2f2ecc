//! `ccscope trace`: its accesses are those of valgrind's lackey, and programs behave as without it.

mod behaviour;
mod lackey;
mod marks;
mod patches;
mod real;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::programs::{TRACE, command, compile, succeed, text};

/// An event of the raw form.
struct Raw {
    kind: char,
    address: u64,
    len: u64,
    ip: u64,
    /// Where a copy is from.
    from: u64,
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
            from: if words.len() > 5 { hex(words[4]) } else { 0 },
            thread: words.last().unwrap().parse().unwrap(),
        }
    };
    trace.lines().map(event).collect()
}

/// `ccscope trace` with these words, in a folder of its own; the trace of the first process.
fn run(folder: &Path, words: &[&str]) -> (Output, String) {
    let mut tool = command(TRACE);
    tool.args(["-q", "-o", "a.trace"])
        .args(words)
        .current_dir(folder);
    let output = tool.output().unwrap();
    let trace = fs::read_to_string(folder.join("a.trace"));
    (output, trace.unwrap_or_default())
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
    has(&["L$", ":limits+4,4,", ",int,sum+"]);
    // Globals: of an array, of its element.
    has(&["S$", ":corners+80,8,", ",struct point.y,globals+"]);
    has(&["S$", ":local", "+0,4,", ",union.", ",globals+"]);
    has(&["L$", ":first+0,4,", ",grid.width,globals+"]);
    has(&["L$", ":first+24,8,", ",grid.origin,globals+"]);
    has(&["L$", ":first+56,8,", ",grid.rows,globals+"]);
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
    let refused = command(TRACE)
        .args(["--from=nobody", program])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("has no function nobody"));
    // Before the program runs.
    let mut tool = command(TRACE);
    let refused = tool
        .args(["-o", "/nowhere/a", "echo", "run"])
        .output()
        .unwrap();
    assert_eq!(
        (refused.status.code(), text(&refused.stdout).as_str()),
        (Some(1), "")
    );
}

#[test]
fn types_of_rust_need_no_flags_but_debug_information() {
    for flags in [&["-g", "-O"][..], &["-g"]] {
        let folder = TempDir::new().unwrap();
        let flags = [&["--edition=2024"], flags].concat();
        let program = compile(folder.path(), &["rustc"], "trace-types.rs", &flags);
        let (_, trace) = run(folder.path(), &[program.to_str().unwrap()]);
        for parts in [
            ["S$", ":trace_types::COUNTERS+28,4,", ",Counter.bytes,"],
            ["S$", ":trace_types::COUNTERS+24,4,", ",Counter.calls,"],
            ["S$", "@trace_types::", ",Box<Node>.key,"],
            ["S$", "@trace_types::", ",Box<Node>.next,"],
            ["L$", "@trace_types::", ",Vec<Particle>.mass,"],
            ["S$", "@trace_types::", ",HashMap<u64, f32>."],
            ["M$", "@trace_types::", ",8,[heap],String,"],
        ] {
            let has = |line: &str| parts.iter().all(|part| line.contains(part));
            assert!(trace.lines().any(has), "{flags:?} {parts:?} in\n{trace}");
        }
    }
}

#[test]
fn the_trace_of_another_tool_is_read() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("l.txt"),
        "==1== x\nI  400,3\n L 1ff0,8\n M 2000,4\n",
    )
    .unwrap();
    let mut tool = command(TRACE);
    tool.args(["--import=l.txt", "--form=lackey", "-o", "-"])
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
    let mut tool = command(TRACE);
    tool.args(["--from=findDisparity", "-o", "d.trace", program]);
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
    // Table III, which follows from the loops: each of four calls reads two sizes and two elements
    // of each pixel, and, where it came nearer, two sizes and stores two elements.
    let told = text(&output.stdout);
    let updates: u64 = told.trim().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(updates > 130, "{told}");
    let (loads, stores) = (4 * 130 * 4 + 2 * updates, 2 * updates);
    let summary = format!(
        "memory regions, {loads} loads, {stores} stores, 0 blocks copied, 0 blocks stored, \
         0 blocks fetched, 6 malloc\n"
    );
    let err = text(&output.stderr);
    assert!(err.contains(&summary), "{summary}{err}");
    let regions = err.split(" memory").next().unwrap().rsplit(' ').next();
    assert!(regions.unwrap().parse::<u64>().unwrap() > 10, "{err}");
    // The whole program: what its own functions do with the heap.
    let mut tool = command(TRACE);
    tool.args(["-q", "--only=heap", "-o", "d.trace", program]);
    succeed(tool.current_dir(folder.path()));
    let trace = fs::read_to_string(folder.path().join("d.trace")).unwrap();
    let number = |kind: &str| {
        let functions = ["main", "findDisparity", "fMallocHandle", "iMallocHandle"];
        let lines = trace.lines().filter(|line| line.starts_with(kind));
        let of = |line: &&str| {
            let mut words = line.split(',');
            words.any(|word| {
                functions
                    .iter()
                    .any(|it| word.strip_prefix(it).is_some_and(is_offset))
            })
        };
        lines.filter(of).count() as u64
    };
    fn is_offset(text: &str) -> bool {
        text.starts_with('+')
    }
    // Images: a size and an element of each of three. Sums: two sizes and two elements of each of
    // three columns, and the sum's. Whether it is nearer: as above. At the end, all elements.
    let of_main = 130 * 3 + 4 * 130 * (3 * 4 + 1 + 4) + 130;
    assert_eq!(number("L$"), of_main + loads);
    assert_eq!(number("S$"), 5 * 2 + 130 * 3 + 4 * 130 + stores);
    assert_eq!((number("M$"), number("W$")), (5, 1));
}
