//! Programs as they are installed: what they print, complain of and return stays the same.

use std::path::Path;

use tempfile::TempDir;

use super::programs::{Run, command, compile, is_installed, text};

/// Runs `words` with the tool and without, each in a folder of its own.
fn same(words: &[&str]) -> Option<Run> {
    if !is_installed(words[0]) {
        return None;
    }
    let folder = TempDir::new().unwrap();
    let alone = command(words[0])
        .args(&words[1..])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let run = Run::of(words);
    assert_eq!(run.out(), text(&alone.stdout), "{words:?}");
    assert_eq!(run.err(), text(&alone.stderr), "{words:?}");
    assert_eq!(run.output.status, alone.status, "{words:?}");
    Some(run)
}

#[test]
fn python_is_the_same() {
    let script = "import json, sys\n\
                  words = {str(n): [n] * 20 for n in range(20000)}\n\
                  print(len(json.dumps(words, sort_keys=True)))\n\
                  sys.stderr.write('to the other\\n')\nsys.exit(9)";
    let Some(run) = same(&["python3", "-c", script]) else {
        return;
    };
    let total = run.profile().total;
    // Python's own arenas are mappings and not in the heap.
    assert!(
        total.allocations > 1000 && total.mapped_peak > 1 << 20,
        "{total:?}"
    );
    same(&[
        "python3",
        "-X",
        "dev",
        "-c",
        "import threading, subprocess, ssl; print(1 / 0)",
    ]);
}

#[test]
fn gcc_is_the_same() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/ends.c");
    let source = source.to_str().unwrap();
    let Some(run) = same(&["gcc", "-O2", "-S", "-o", "-", source]) else {
        return;
    };
    // The driver has begun the compiler.
    assert!(
        run.others()
            .iter()
            .any(|other| other.total.allocations > 1000)
    );
    same(&["gcc", "-c", "-o", "-", "no-such-file.c"]);
}

#[test]
fn git_is_the_same() {
    let script = "git init -q . && git config user.email a@b && git config user.name a \
                  && export GIT_COMMITTER_DATE=2020-01-01T00:00:00Z \
                  && export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z \
                  && for n in 1 2 3; do \
                  seq $n 5000 >file && git add file && git commit -qm $n; done \
                  && git log --stat && git show HEAD~1 | tail -3 && git gc -q && git fsck \
                  && git nonsense";
    if is_installed("git") {
        let run = same(&["sh", "-c", script]).unwrap();
        assert!(run.others().len() > 10);
    }
}

#[test]
fn sqlite_is_the_same() {
    let script = "create table t(a integer primary key, b text);\n\
                  with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)\n\
                  insert into t select i, printf('%08d', i * 7919 % 20011) from n;\n\
                  create index i on t(b);\n\
                  select count(*), sum(a), min(b), max(b) from t where b > '00005000';\n\
                  select nonsense;";
    let Some(run) = same(&["sqlite3", ":memory:", script]) else {
        return;
    };
    assert!(run.profile().total.allocations > 1000);
}

#[test]
fn a_program_with_a_copy_of_the_loader_s_variable_starts() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-fno-pie", "-no-pie"];
    let program = compile(folder.path(), &["cc"], "stack-end.c", &flags);
    let run = same(&[program.to_str().unwrap()]).unwrap();
    assert!(run.profile().total.allocations > 0);
}
