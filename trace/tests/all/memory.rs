//! `ccscope trace`: memory that changes, or has no room, while threads use it is as without.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::programs::{TRACE, command, compile, text};

/// What a program prints natively is what it prints traced, by faults and by patches.
fn is_as_without(folder: &Path, program: &Path, lines: usize) {
    let native = Command::new(program).current_dir(folder).output().unwrap();
    let native_text = text(&native.stdout);
    assert_eq!(native_text.lines().count(), lines, "{native_text}");
    for more in [&[][..], &["--patch"]] {
        let mut tool = command(TRACE);
        tool.args(["-q", "--most=100000", "-o", "a.trace"])
            .args(more)
            .arg(program)
            .current_dir(folder);
        let traced = tool.output().unwrap();
        assert_eq!(
            text(&traced.stdout),
            native_text,
            "{more:?}: {}",
            text(&traced.stderr)
        );
        assert_eq!(traced.status.code(), native.status.code(), "{more:?}");
    }
}

#[test]
fn zones_change_under_threads_signals_and_limits() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-w", "-pthread"];
    let program = compile(folder.path(), &["cc"], "trace-zones.c", &flags);
    is_as_without(folder.path(), &program, 13);
}

#[test]
fn a_library_is_relocated_beside_a_thread_that_calls_the_kernel() {
    let folder = TempDir::new().unwrap();
    let library = ["-O1", "-shared", "-fPIC", "-DLIBRARY"];
    let built = compile(folder.path(), &["cc"], "trace-linked.c", &library);
    std::fs::rename(built, folder.path().join("library.so")).unwrap();
    let program = compile(
        folder.path(),
        &["cc"],
        "trace-linked.c",
        &["-O1", "-pthread"],
    );
    is_as_without(folder.path(), &program, 1);
}
