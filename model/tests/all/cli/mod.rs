//! The binary: each command, each way to get it wrong.

mod advise;
mod machines;
mod predict;
mod shell;
mod simulate;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn model(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_model"))
        .args(args)
        .output()
        .unwrap()
}

/// Runs a command that must succeed quietly; its standard output.
fn answer(args: &[&str]) -> String {
    let output = model(args);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {err}");
    assert!(err.is_empty(), "{args:?}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&answer(args)).unwrap()
}

/// Runs a command that must be refused with one line; that line.
fn refusal(args: &[&str]) -> String {
    let output = model(args);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    assert!(err.starts_with("model: "), "{args:?}: {err}");
    assert!(output.stdout.is_empty(), "{args:?}");
    err
}

/// A file of this test run that is removed at the end.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, text: &str) -> TempFile {
        let path = std::env::temp_dir().join(format!("ccmodel-cli-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        TempFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean up.
        drop(fs::remove_file(&self.0));
    }
}

/// A small prediction, by the tier that takes least time: debug builds are slow.
fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    by_any_tier(&[&["--tier", "footprint"], more].concat())
}

/// The same, by the tier that is asked for or, without any, the usual one.
fn by_any_tier<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["predict", "--nodes", "5000", "--node-bytes", "24"], more].concat()
}
