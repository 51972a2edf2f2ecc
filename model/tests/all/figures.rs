//! `model figures`: what it refuses. What it writes is tested inside the library, on small trees.

use std::fs;
use std::process::Command;

fn refusal(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_model"))
        .args(args)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    assert!(output.stdout.is_empty(), "{args:?}");
    err
}

#[test]
fn a_folder_is_needed() {
    assert!(refusal(&["figures"]).contains("--out"));
    // Refused before a minute's work, not after it.
    let file = std::env::temp_dir().join(format!("ccmodel-no-folder-{}", std::process::id()));
    fs::write(&file, "").unwrap();
    let err = refusal(&["figures", "--out", file.to_str().unwrap()]);
    fs::remove_file(&file).unwrap();
    assert!(err.contains("cannot write"), "{err}");
}
