//! Programs that end badly, or in which the library cannot be: their output and status are what
//! they are without the tool.

use tempfile::TempDir;

use super::aside;
use super::programs::{TRACE, command, compile, succeed, text};

/// The programs of `ccscope`'s tests.
const PROGRAMS: &str = "../../../scope/tests/programs";

#[test]
fn a_fork_while_another_thread_is_in_the_linker_goes_on() {
    let folder = TempDir::new().unwrap();
    let built = |source: &str, flags: &[&str]| {
        let source = format!("{PROGRAMS}/{source}");
        compile(folder.path(), &["cc"], &source, flags)
    };
    let library = built("library.c", &["-O1", "-shared", "-fPIC"]);
    let program = built("ends.c", &["-O1", "-pthread"]);
    let native = succeed(command(&program).arg("fork-linking").arg(&library));
    let mut tool = command(TRACE);
    tool.args(["-q", "-o", "a.trace"]).arg(&program);
    tool.arg("fork-linking").arg(&library);
    let output = tool.current_dir(folder.path()).output().unwrap();
    let out = text(&output.stdout);
    assert_eq!(out, text(&native.stdout), "{}", text(&output.stderr));
    assert_eq!(out, "child ended with 7, by signal 0\n".repeat(3));
}

#[test]
fn a_program_that_is_audited_starts() {
    let folder = TempDir::new().unwrap();
    let source = format!("{PROGRAMS}/library.c");
    let flags = ["-O1", "-shared", "-fPIC"];
    let library = compile(folder.path(), &["cc"], &source, &flags);
    let mut tool = command(TRACE);
    tool.args(["-q", "-o", "a.trace", "echo", "hi"]);
    tool.current_dir(folder.path()).env("LD_AUDIT", &library);
    let output = tool.output().unwrap();
    assert_eq!(text(&output.stdout), "hi\n", "{}", text(&output.stderr));
    assert!(folder.path().join("a.trace").exists());
}

#[test]
fn programs_that_the_library_cannot_be_in_run_as_without() {
    aside::run_as_without(TRACE, &[]);
}

#[test]
fn programs_with_rights_of_their_own_keep_them() {
    aside::keep_rights(TRACE, &[]);
}
