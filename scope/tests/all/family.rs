//! Each function that allocates, in C and C++, is seen with the size that was asked for.

use tempfile::TempDir;

use super::ends::blocks;
use super::programs::{CCSCOPE, Run, compile, text};

#[test]
fn each_function_that_allocates_is_seen() {
    let folder = TempDir::new().unwrap();
    for compiler in [&["cc"][..], &[CCSCOPE, "cc"]] {
        let flags = ["-O1", "-w", "-fno-builtin"];
        let program = compile(folder.path(), compiler, "family.c", &flags);
        let alone = super::programs::command(&program).output().unwrap();
        let run = Run::of(&[program.to_str().unwrap()]);
        assert_eq!(run.output.status.code(), Some(0), "{}", run.err());
        assert_eq!(
            (run.out(), run.err()),
            (text(&alone.stdout), text(&alone.stderr))
        );
        let profile = run.profile();
        for size in [
            1001, 1002, 1003, 1004, 1005, 1006, 1024, 1008, 1010, 2001, 20002, 2003,
        ] {
            // `stdout` may have a block of 1024 bytes, too.
            assert!(matches!(blocks(&profile, size), 1 | 2), "{size}");
        }
        // In whole pages.
        assert_eq!(blocks(&profile, 5000) + blocks(&profile, 8192), 1);
        let total = &profile.total;
        assert_eq!((total.lost_chunks, total.unknown_frees), (0, 0));
        assert_eq!(
            profile.sites.iter().map(|site| site.reallocs).sum::<u64>(),
            2
        );
    }
}

#[test]
fn operators_of_cpp_are_seen() {
    let folder = TempDir::new().unwrap();
    let program = compile(
        folder.path(),
        &[CCSCOPE, "c++"],
        "operators.cc",
        &["-O1", "-std=c++17"],
    );
    let run = Run::of(&[program.to_str().unwrap()]);
    assert_eq!(
        (run.output.status.code(), run.err().as_str()),
        (Some(0), "")
    );
    let profile = run.profile();
    for (size, allocated) in [
        (1001, 1),
        (1002, 1),
        (1003, 1),
        (1280, 2),
        (2001, 1),
        (2003, 1),
        (3001, 1),
    ] {
        assert_eq!(blocks(&profile, size), allocated, "{size}");
    }
    let dead = profile
        .sites
        .iter()
        .filter(|site| [2001, 2003, 3001].contains(&site.smallest));
    assert_eq!(dead.map(|site| site.frees).collect::<Vec<_>>(), [1, 1, 1]);
    let written = profile
        .sites
        .iter()
        .filter(|site| [1001, 2001].contains(&site.smallest));
    assert!(written.map(|site| site.writes).all(|writes| writes == 1));
}
