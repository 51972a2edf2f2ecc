//! A short run of the program `stress`; long ones are for an evening.

use std::process::{Command, Output};

fn stress(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stress"))
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn two_million_operations_on_four_threads() {
    let output = stress(&["--operations", "2e6", "--threads", "4", "--seed", "7"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
    let count = |what: &str| -> u64 {
        let line = stdout
            .lines()
            .find(|line| line.ends_with(what))
            .unwrap_or_else(|| panic!("no line for {what}: {stdout}"));
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let done = stdout
        .lines()
        .find(|line| line.starts_with("done: "))
        .unwrap();
    let operations: u64 = done.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(operations >= 2_000_000, "{done}");
    // Every kind of thing happened, or the run says nothing about it.
    for what in [
        "objects without a hint",
        "objects with a live hint",
        "objects with a freed hint",
        "objects with a hint of another thread's",
        "objects under an ambient hint",
        "objects in regions",
        "frees by another thread",
        "frees after the thread that allocated has ended",
        "of which moved",
        "objects above 1 MiB",
        "threads",
        "checks of a heap's metadata",
    ] {
        assert!(count(what) > 0, "{what}: {stdout}");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [
        &["--operations", "many"][..],
        &["--operations", "99e99"],
        &["--threads", "0"],
        &["--colour", "1"],
        &["--seed"],
    ] {
        let output = stress(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--help"));
    }
}
