//! Runs each program at a small scale as a process. Checksums are compared, times are not.

use advice_programs::{PROGRAMS, Program};
use std::collections::HashSet;
use std::process::{Command, Output};

fn run(binary: &str, args: &[&str]) -> Output {
    let path = match binary {
        "plain" => env!("CARGO_BIN_EXE_plain"),
        "placed" => env!("CARGO_BIN_EXE_placed"),
        _ => panic!("no such binary: {binary}"),
    };
    Command::new(path).args(args).output().unwrap()
}

fn text(binary: &str, args: &[&str]) -> String {
    let output = run(binary, args);
    assert!(output.status.success(), "{binary} {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn both_versions_of_each_program_have_one_checksum() {
    for Program { name, kind, .. } in PROGRAMS {
        let before = text("plain", &[name, "before", "0.002"]);
        assert_eq!(before.trim_end().len(), 16, "{name}: {before}");
        assert_eq!(before, text("placed", &[name, "before", "0.002"]), "{name}");
        assert_eq!(
            before,
            text(kind.binary(), &[name, "after", "0.002"]),
            "{name}"
        );
        assert_ne!(before, text("plain", &[name, "before", "0.004"]), "{name}");
    }
}

/// Their structs are not ours to change.
#[cfg(feature = "published")]
#[test]
fn programs_of_published_structs_run_as_they_are() {
    for name in ["KdTree", "NodeData", "Waypoint", "Point", "Item"] {
        let sum = text("plain", &[name, "before", "0.002"]);
        assert_eq!(sum, text("placed", &[name, "before", "0.002"]), "{name}");
        assert_ne!(sum, text("plain", &[name, "before", "0.004"]), "{name}");
        assert_eq!(run("plain", &[name, "after"]).status.code(), Some(2));
    }
}

#[test]
fn names_are_unique() {
    let names: HashSet<_> = PROGRAMS.iter().map(|program| program.name).collect();
    assert_eq!(names.len(), PROGRAMS.len());
}

#[test]
fn the_list_has_a_line_for_each_program() {
    let list = text("plain", &["--list"]);
    assert_eq!(list.lines().count(), PROGRAMS.len());
    for (line, program) in list.lines().zip(PROGRAMS) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let kind = words[1].strip_prefix('!').unwrap_or(words[1]);
        assert_eq!(words[0], program.name);
        assert_eq!(kind, program.kind.to_string());
        assert_eq!(kind == words[1], program.worth_it);
        assert!(
            ["plain", "placed"].contains(&words[2]) && !words[3].is_empty(),
            "{line}"
        );
    }
}

#[test]
fn other_command_lines_are_refused() {
    let wrong: [&[&str]; 5] = [
        &[],
        &["none", "before"],
        &["octree", "now"],
        &["octree", "before", "-1"],
        &["octree", "before", "1", "1"],
    ];
    for args in wrong {
        let output = run("plain", args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .starts_with("usage: ")
        );
    }
}
