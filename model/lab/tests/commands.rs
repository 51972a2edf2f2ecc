//! The command as users run it.

use std::fs;
use std::process::{Command, Output};

fn lab(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_ccmodel-lab");
    Command::new(program).args(args).output().unwrap()
}

/// The message of a command that must be refused.
fn refusal(args: &[&str]) -> String {
    let output = lab(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_row_is_one_object_on_one_line() {
    let output = lab(&["validate", "--quick", "--only", "thesis_pins", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let row: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&row["name"], &row["ok"]),
        (&"thesis_pins".into(), &true.into())
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

#[test]
fn unknown_rows_are_refused_with_a_suggestion() {
    let message = refusal(&["validate", "--only", "steady_eror_max"]);
    assert!(message.contains("steady_error_max"), "{message}");
}

#[test]
fn figures_need_a_folder() {
    assert!(refusal(&["thesis"]).contains("--out"));
    // Refused before the work of a minute, not after it.
    let file = std::env::temp_dir().join(format!("ccmodel-no-folder-{}", std::process::id()));
    fs::write(&file, "").unwrap();
    let message = refusal(&["thesis", "--out", file.to_str().unwrap()]);
    fs::remove_file(&file).unwrap();
    assert!(message.contains("cannot write"), "{message}");
}

#[test]
fn no_help_shows_the_probe() {
    let output = lab(&["--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("validate") && !text.contains("probe-layout"));
}
