//! The binary: each command, and each mistake that it refuses.

mod machines;
mod predict;
mod simulate;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `model` with the words of a command line.
fn model(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_model"));
    command.args(line.split_whitespace()).output().unwrap()
}

/// Runs a command that must succeed quietly; its standard output.
fn answer(line: &str) -> String {
    let output = model(line);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{line}: {err}");
    assert!(err.is_empty(), "{line}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must succeed with one JSON object.
fn json(line: &str) -> Value {
    serde_json::from_str(&answer(&format!("{line} --json"))).unwrap()
}

/// Runs a command that must be refused with one line; that line.
fn refusal(line: &str) -> String {
    let output = model(line);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{line}: {err}");
    assert_eq!(err.lines().count(), 1, "{line}: {err}");
    assert!(err.starts_with("model: "), "{line}: {err}");
    assert!(output.stdout.is_empty(), "{line}");
    err
}

/// Runs commands that must be refused with a line that holds the fragment.
fn refused(base: &str, cases: &[(&str, &str)]) {
    for (more, fragment) in cases {
        let line = refusal(&format!("{base} {more}"));
        assert!(line.contains(fragment), "{more}: {line}");
    }
}

/// A number of an object, by the names of fields or the indices of elements.
fn number(object: &Value, path: &str) -> f64 {
    let pointer = format!("/{}", path.replace('.', "/"));
    let value = object.pointer(&pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("{path} is no number in {object}"))
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
        // A file that cannot be removed is left to the system.
        drop(fs::remove_file(&self.0));
    }
}

/// A small prediction, by the tier that takes least time: debug builds are slow.
const SMALL: &str = "predict --nodes 5000 --node-bytes 24 --tier footprint";
/// The same by the usual tier, on the thesis's machine.
const ANY_TIER: &str = "predict --nodes 5000 --node-bytes 24 --machine thesis";

#[test]
fn help_completions_and_manual_pages_are_answers() {
    for (line, fragment) in [
        ("--help", "calibrate"),
        ("--version", "model "),
        ("predict --help", "Examples:"),
        ("advise --help", "Examples:"),
        ("simulate --help", "Examples:"),
        ("completions --help", "Examples:"),
        ("man --help", "Examples:"),
        ("completions bash", "--node-bytes"),
        ("completions zsh", "advise"),
        ("completions fish", "simulate"),
        ("man", ".TH model 1"),
        ("man predict", ".TH model-predict 1"),
        ("topology", "L1 data"),
    ] {
        assert!(answer(line).contains(fragment), "{line}");
    }
}

#[test]
fn unknown_words_are_refused_with_a_suggestion() {
    let cases = [
        ("predikt", "predict"),
        ("completions dosh", "dosh"),
        ("completions", "SHELL"),
        ("man predikt", "`predict`"),
        ("", "no command"),
        ("pre", "'predict'"),
        ("predict --node-bytes 8", "--nodes is missing"),
        ("advise", "--nodes"),
        ("advise --nodes 10 --now vebb", "`veb`"),
        ("advise --nodes 10 --operations -1", "-1"),
        ("advise --nodes 10 --machine no/file", "no/file"),
    ];
    refused("", &cases);
    let cases = [
        ("--layout vebb", "`veb`"),
        ("--layout dfs,cluster:48", "power of two"),
        ("--jsn", "--json"),
        ("--pages 1g", "1g"),
        ("--structure rope", "rope"),
        ("--structure bts", "`bst`"),
        ("--baseline vebb", "`veb`"),
        ("--operation serch", "search"),
        ("--keys zipf", "zipf:S"),
        ("--csv --json", "--json"),
        ("--sweep coloured", "--plot"),
        ("--plot no/such/folder/file.svg", "no/such/folder"),
    ];
    refused(SMALL, &cases);
    refused(ANY_TIER, &[("--tier per_set", "per-set")]);
    // A word that is like no name gets no suggestion.
    for option in ["--machine nope", "--layout nope"] {
        assert!(!refusal(&format!("{SMALL} {option}")).contains("did you mean"));
    }
}
