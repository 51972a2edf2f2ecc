//! Commands that tests run. The tests of `cctrace` have this file, too.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::skipped::skipped;

pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");
pub(crate) const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

/// A command whose cache is that of the tests.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("XDG_CACHE_HOME", Path::new(SCRATCH).join("cache"));
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        text(&output.stderr)
    );
    output
}

/// Whether a command can be started. Those that only compare are skipped where their rival is not
/// installed; `.ci/steps/prepare` installs all, where apt has them.
pub(crate) fn is_installed(name: &str) -> bool {
    let found = Command::new(name).arg("--version").output().is_ok();
    if !found {
        missing(name);
    }
    found
}

/// Counts what is skipped because something is not installed.
///
/// # Panics
///
/// If the variable `CI` is set.
#[track_caller]
pub(crate) fn missing(tool: &str) {
    skipped(&format!("no {tool}"));
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!is_ci, "`CI` is set, and there is no {tool}");
}

/// Compiles a program of C or C++ by `compiler`, which gets the flags too.
pub(crate) fn compile(folder: &Path, compiler: &[&str], source: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(SOURCES).join(source);
    let name = source.file_name().unwrap().to_string_lossy();
    let program = folder.join(name.replace('.', "-"));
    succeed(
        command(compiler[0])
            .args(&compiler[1..])
            .arg("-o")
            .arg(&program)
            .arg(source)
            .args(flags),
    );
    program
}

/// Numbers of the lines of `out` that begin with `word`.
pub(crate) fn numbers(out: &str, word: &str) -> Vec<Vec<u64>> {
    let lines = out
        .lines()
        .filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines
        .map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect())
        .collect()
}
