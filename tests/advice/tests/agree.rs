//! Runs each program at a small scale as a process. Checksums are compared, times are not.

use advice_programs::{Half, Program, all};
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
fn all_versions_of_each_program_have_one_checksum() {
    for Program { name, changes, .. } in all() {
        let before = text("plain", &[name, "before", "0.002"]);
        assert_eq!(before.trim_end().len(), 16, "{name}: {before}");
        assert_eq!(before, text("placed", &[name, "before", "0.002"]), "{name}");
        for kind in changes.iter().map(|change| change.kind.to_string()) {
            for binary in ["plain", "placed"] {
                let after = text(binary, &[name, &kind, "0.002"]);
                assert_eq!(before, after, "{binary} {name} {kind}");
            }
        }
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
    let mut names = HashSet::new();
    for Program { name, changes, .. } in all() {
        assert!(names.insert(*name), "{name}");
        let kinds: HashSet<_> = changes
            .iter()
            .map(|change| change.kind.to_string())
            .collect();
        assert!(
            !changes.is_empty() && kinds.len() == changes.len(),
            "{name}"
        );
    }
}

#[test]
fn the_list_has_a_line_for_each_program() {
    let list = text("plain", &["--list"]);
    assert_eq!(list, text("placed", &["--list"]));
    assert_eq!(list.lines().count(), all().count());
    for (line, program) in list.lines().zip(all()) {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let half = match program.half {
            Half::Training => "training",
            Half::Test => "test",
        };
        assert_eq!(words[..2], [program.name, half]);
        assert_eq!(words[2], program.size.to_string());
        let kinds = words[3].split(',');
        assert!(kinds.eq(program.changes.iter().map(|change| change.kind.to_string())));
        assert_eq!(words[4], program.note);
    }
}

#[test]
fn other_command_lines_are_refused() {
    let wrong: [&[&str]; 6] = [
        &[],
        &["none", "before"],
        &["octree", "now"],
        &["octree", "hint"],
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
