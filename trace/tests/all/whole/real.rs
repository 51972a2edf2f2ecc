//! Programs that people use give the same output.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::run;
use crate::programs::{SOURCES, TRACE, command, is_installed, succeed, text};

/// Makes what the programs work on: a source file, a repository, a trace of another tool.
fn prepare(folder: &Path) {
    let source = Path::new(SOURCES).join("trace-disparity.c");
    fs::copy(source, folder.join("in.c")).unwrap();
    fs::write(
        folder.join("in.json"),
        r#"{"a": [{"b": 3}, {"b": [1, 2]}, null]}"#,
    )
    .unwrap();
    fs::write(folder.join("in.txt"), "I  400,3\n L 1ff0,8\n M 2000,4\n").unwrap();
    let date = "2001-02-03T04:05:06Z";
    for words in [
        &["init", "-q", "repository"][..],
        &[
            "-C",
            "repository",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "A first one",
        ],
        &[
            "-C",
            "repository",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "Another",
        ],
    ] {
        let mut git = command("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]);
        git.env("GIT_AUTHOR_DATE", date)
            .env("GIT_COMMITTER_DATE", date);
        succeed(git.args(words).current_dir(folder));
    }
    fs::write(folder.join("repository/new"), "a line\n").unwrap();
}

/// Runs a program with the tool and without; its output, and the file `out.o` if it writes one,
/// have to be the same.
fn compare(options: &[&str], words: &[&str], least: usize) {
    if !is_installed(words[0]) || !is_installed("git") {
        return;
    }
    let [traced, native] = [0, 1].map(|_| TempDir::new().unwrap());
    prepare(traced.path());
    prepare(native.path());
    let (output, trace) = run(traced.path(), &[options, words].concat());
    let mut program = Command::new(words[0]);
    program.args(&words[1..]).current_dir(native.path());
    let expected = program.output().unwrap();
    let err = |output: &Output| format!("{words:?}: {}", text(&output.stderr));
    assert!(expected.status.success(), "{}", err(&expected));
    assert!(output.stdout == expected.stdout, "{}", err(&output));
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let [written, wanted] = [&traced, &native].map(|it| fs::read(it.path().join("out.o")).ok());
    assert!(written == wanted, "{words:?}");
    let accesses = trace
        .lines()
        .filter(|line| line.starts_with(['L', 'S']))
        .count();
    assert!(accesses >= least, "{words:?}: {accesses}");
}

#[test]
#[ignore = "takes long: CI runs it"]
fn interpreters_give_the_same_output() {
    let bash = "i=0; while [ $i -lt 20 ]; do i=$((i+1)); done; echo $i; ls -d /usr";
    compare(&["--every=16"], &["bash", "-c", bash], 0);
    let perl = "my %h; $h{$_ % 17} += $_ for 1..200; print join(',', map {$h{$_}} sort keys %h)";
    compare(&["--every=16"], &["perl", "-e", perl], 0);
    // From a function of the program to its end.
    let python = "print(sum(x * x for x in range(50)), sorted({'a': 1, 'b': 2}))";
    let words = ["/usr/bin/python3", "-S", "-c", python];
    compare(&["--from=PyRun_SimpleStringFlags"], &words, 1_000);
    let lua = "local t = {} for i = 1, 90 do t[#t + 1] = (i * 37) % 91 end table.sort(t) \
               print(table.concat(t, ',', 3, 9), ('x'):rep(5))";
    compare(
        &["--from=luaL_loadbufferx", "--to=lua_close"],
        &["lua5.4", "-e", lua],
        1_000,
    );
    compare(
        &["--every=16"],
        &["jq", "-c", "[.a[] | .b?] | add? // .", "in.json"],
        0,
    );
    let sql = "create table t(a); insert into t values(3),(1),(2); select group_concat(a) from \
               (select a from t order by a);";
    compare(&["--every=16"], &["sqlite3", "out.o", sql], 0);
}

#[test]
fn tools_give_the_same_output() {
    // With its compiler and assembler, which it starts.
    compare(
        &["--every=256"],
        &["gcc", "-O1", "-c", "in.c", "-o", "out.o"],
        0,
    );
    compare(
        &["--every=16"],
        &["git", "-C", "repository", "log", "--stat"],
        0,
    );
    compare(
        &["--every=16"],
        &["git", "-C", "repository", "status", "--short"],
        0,
    );
    compare(&["--every=16"], &["xz", "-0", "-c", "in.c"], 0);
    // Its tables are bss.
    compare(
        &["--only=bss", "--every=4"],
        &["gzip", "-n", "-c", "in.c"],
        100,
    );
    // A program in Rust.
    let import = ["--import=in.txt", "--form=lackey", "-o", "-"];
    compare(&["--every=16"], &[&[TRACE], &import[..]].concat(), 0);
}
