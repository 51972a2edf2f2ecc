//! `ccscope top` in a pseudo terminal, which `script` makes.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::tools::{command, compile, is_installed, text};

const CCSCOPE: &str = env!("CARGO_BIN_EXE_ccscope");
const LEAVES: &str = "\u{1b}[?1049l";

/// Ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn watched(folder: &Path) -> Ended {
    let program = compile(folder, &["cc", "-g", "-O1"], "grows.c", &[]);
    let mut run = command(CCSCOPE);
    run.args(["run", "-q", "-o"])
        .arg(folder.join("grows.ccscope"));
    Ended(run.arg(program).env("TMPDIR", folder).spawn().unwrap())
}

/// Reads what the terminal gets until `word` is in it.
fn read_until(out: &mut impl Read, word: &str) -> String {
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let len = out.read(&mut buffer).unwrap();
        seen.extend(&buffer[..len]);
        let text = text(&seen);
        if text.contains(word) {
            return text;
        }
        assert!(len > 0, "no {word:?} in {text:?}");
    }
}

#[test]
fn a_running_program_is_watched_and_the_terminal_left_as_it_was() {
    if !is_installed("script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let _program = watched(folder.path());
    // It says so while there is no program.
    let line = format!(
        "stty cols 100 rows 20; before=$(stty -g); for try in $(seq 100); do {CCSCOPE} top --sort \
         growth && break; sleep 0.1; done; [ \"$before\" = \"$(stty -g)\" ] && echo same terminal"
    );
    let mut terminal = command("script");
    terminal
        .args(["-qfec", &line, "typescript"])
        .current_dir(&folder);
    terminal.env("TMPDIR", folder.path()).env("TERM", "xterm");
    let streams = terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = Ended(streams.spawn().unwrap());
    let mut keys = terminal.0.stdin.take().unwrap();
    let mut out = terminal.0.stdout.take().unwrap();
    read_until(&mut out, "grow_slowly");
    // The site, with its stack, and back.
    keys.write_all(b"\r").unwrap();
    read_until(&mut out, "esc back");
    keys.write_all(b"qq").unwrap();
    let end = read_until(&mut out, "same terminal");
    assert!(end.contains(LEAVES), "{end:?}");
    assert!(terminal.0.wait().unwrap().success());
}
