//! Help, completions, manual pages, and readers that go away.

use std::io::Read;
use std::process::{Command, Stdio};

use super::{answer, refusal};

#[test]
fn help_and_version_are_answers() {
    assert!(answer(&["--help"]).contains("calibrate"));
    assert!(answer(&["predict", "--help"]).contains("Examples"));
    assert!(answer(&["--version"]).starts_with("model "));
}

#[test]
fn a_closed_pipe_is_quiet() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_model"))
        .args(["topology", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
}

#[test]
fn every_command_has_help_with_examples() {
    for command in ["predict", "advise", "simulate", "completions", "man"] {
        let text = answer(&[command, "--help"]);
        assert!(text.contains("Examples:"), "{command}: {text}");
    }
}

#[test]
fn shells_complete_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = answer(&["completions", shell]);
        for word in ["predict", "advise", "simulate", "--node-bytes"] {
            let word = word.trim_start_matches('-');
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert!(refusal(&["completions", "dosh"]).contains("dosh"));
    assert!(refusal(&["completions"]).contains("SHELL"));
}

#[test]
fn manual_pages_are_roff() {
    let page = answer(&["man"]);
    assert!(
        page.contains(".TH model 1") && page.contains("advise"),
        "{page}"
    );
    let page = answer(&["man", "predict"]);
    assert!(page.contains(".TH model-predict 1"), "{page}");
    assert!(page.contains("layout"), "{page}");
    assert!(refusal(&["man", "predikt"]).contains("`predict`"));
}
