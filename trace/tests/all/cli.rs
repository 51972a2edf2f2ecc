//! The command line.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

use super::programs::{TRACE, command, succeed, text};

#[test]
fn what_is_written_is_for_its_owner_and_has_no_secrets() {
    let folder = TempDir::new().unwrap();
    for name in ["t.trace", "t.ccscope"] {
        let mut tool = command(TRACE);
        tool.args(["-q", "-o", name, "true", "hunter2"]);
        succeed(tool.current_dir(folder.path()));
        let file = folder.path().join(name);
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        let content = fs::read(&file).unwrap();
        // Sections may be packed.
        let profile = ccscope::Profile::open(&file).map(|it| it.run.command.join(" "));
        let text = text(&content) + &profile.unwrap_or_default();
        assert!(!text.contains("hunter2"), "{name}");
    }
}

#[test]
fn nothing_is_put_beside_what_is_no_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let pipe = path.join("pipe.ccscope");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let from = pipe.clone();
    let reader = std::thread::spawn(move || fs::read(from).unwrap());
    let mut tool = command(TRACE);
    tool.args(["-o", "pipe.ccscope", "sh", "-c", "sh -c 'exit 0'; true"]);
    let output = succeed(tool.current_dir(path));
    let err = text(&output.stderr);
    assert!(!reader.join().unwrap().is_empty());
    assert!(err.contains("no traces of 1 other processes"), "{err}");
    let left: Vec<_> = fs::read_dir(path).unwrap().flatten().collect();
    assert!(left.len() == 1 && !pipe.is_file(), "{left:?}");
}

#[test]
fn help_manual_page_and_completions_are_answers() {
    let output = succeed(command(TRACE).arg("--help"));
    let out = text(&output.stdout);
    assert!(out.contains("Usage: ccscope trace [OPTIONS]"), "{out}");
    let output = succeed(command(TRACE).arg("--man"));
    assert!(text(&output.stdout).contains("\\-\\-patch"));
    for shell in ["bash", "zsh", "fish"] {
        let output = succeed(command(TRACE).args(["--completions", shell]));
        assert!(text(&output.stdout).contains("ccscope-trace"), "{shell}");
    }
    let refused = command(TRACE).arg("-o").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let err = text(&refused.stderr);
    assert!(
        err.starts_with("ccscope: ") && err.lines().count() == 1,
        "{err}"
    );
}
