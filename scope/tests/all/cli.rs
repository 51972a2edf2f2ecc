//! The binaries as users run them: what passes through, and each mistake that is refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ccmodel::Machine;
use tempfile::TempDir;

use crate::building::Capture;
use crate::programs::{command, compile, is_installed, run_in, text};

const CCSCOPE: &str = env!("CARGO_BIN_EXE_ccscope");
const CARGO_CCSCOPE: &str = env!("CARGO_BIN_EXE_cargo-ccscope");

/// Not the user's.
const CACHE: &str = env!("CARGO_TARGET_TMPDIR");

/// Runs a command that must be refused with one line and this status; that line.
fn refusal(tool: &str, words: &[&str], status: i32) -> String {
    let folder = TempDir::new().unwrap();
    let output = run_in(folder.path(), tool, words);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{words:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{words:?}: {err}");
    assert!(output.stdout.is_empty(), "{words:?}");
    err
}

fn executable(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

/// A program of this machine with one change to its bytes.
fn changed_program(folder: &Path, name: &str, change: impl Fn(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = fs::read("/bin/true").unwrap();
    change(&mut bytes);
    executable(folder, name, &bytes)
}

/// Offsets of the dynamic loader's entry in the table of segments and of its name.
fn loader_at(bytes: &[u8]) -> (usize, usize) {
    let word = |at: usize, len: usize| {
        bytes[at..at + len]
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | usize::from(byte))
    };
    let (table, size, count) = (word(32, 8), word(54, 2), word(56, 2));
    let entry = (0..count)
        .map(|i| table + i * size)
        .find(|&at| word(at, 4) == 3)
        .unwrap();
    (entry, word(entry + 8, 8))
}

#[test]
fn programs_that_cannot_be_profiled_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let plain = path.join("plain");
    fs::write(&plain, "text").unwrap();
    let no_program = executable(path, "text", b"text");
    let script = executable(path, "script", b"#!/no/such/interpreter -x\n");
    let narrow = changed_program(path, "narrow", |bytes| bytes[4] = 1);
    let arm = changed_program(path, "arm", |bytes| bytes[18] = 183);
    let fixed = changed_program(path, "fixed", |bytes| {
        let (entry, _) = loader_at(bytes);
        bytes[entry..entry + 4].fill(0);
    });
    let musl = changed_program(path, "musl", |bytes| {
        let (_, name) = loader_at(bytes);
        bytes[name..name + 14].copy_from_slice(b"/lib/ld-musl-x");
    });
    // As linked with the fast path of another version, which cannot be started either.
    let instrumented = compile(path, &[CCSCOPE, "cc"], "types.c", &[]);
    let mut bytes = fs::read(instrumented).unwrap();
    let name = b"ccscope_offset_";
    let names: Vec<usize> = { bytes.windows(name.len()).enumerate() }
        .filter_map(|(at, it)| (it == name).then_some(at + name.len()))
        .collect();
    names.iter().for_each(|&at| bytes[at] = b'x');
    let other = executable(path, "other", &bytes);
    let started = Command::new(&other).output().unwrap();
    assert!(text(&started.stderr).contains("ccscope_offset_x"));
    for (program, why) in [
        (other, "another version of ccscope"),
        (path.join("missing"), "no such program"),
        (path.to_owned(), "is a folder"),
        (plain, "is not executable"),
        (no_program, "neither ELF nor a script"),
        (script, "/no/such/interpreter does not exist"),
    ] {
        let line = refusal(CCSCOPE, &["run", program.to_str().unwrap()], 1);
        assert!(
            line.starts_with("ccscope: ") && line.contains(why),
            "{line}"
        );
    }
    // These run as without the tool, if they run at all.
    for (program, why) in [
        (narrow, "32-bit"),
        (arm, "another processor"),
        (fixed, "linked statically"),
        (musl, "musl"),
    ] {
        let mut tool = command(CCSCOPE);
        let output = tool.arg("run").arg(program).output().unwrap();
        let err = text(&output.stderr);
        let line = err.lines().next().unwrap();
        assert!(line.starts_with("ccscope: ") && line.contains(why), "{err}");
        assert!(line.ends_with(": it runs as without the tool"), "{err}");
    }
    assert!(refusal(CCSCOPE, &["run", "no-such-program"], 1).contains("no such program"));
    let line = refusal(CCSCOPE, &["run", "-o", "no/such/folder/file", "true"], 1);
    assert!(line.contains("its folder does not exist"), "{line}");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    for (words, why) in [
        (&["run"][..], "PROGRAM"),
        (&[], "no command given"),
        (&["frobnicate"], "frobnicate"),
        (&["run", "--rate=x", "true"], "--rate"),
        (
            &["run", "--no-stacks", "--counters-only", "true"],
            "--counters-only",
        ),
        (&["run", "--regions", "--rate=9", "true"], "'--rate <N>'"),
        (
            &["run", "--regions", "--no-stacks", "true"],
            "'--no-stacks'",
        ),
        (&["show", "--sites", "--json", "x"], "--json"),
        (&["advise"], "PROFILE"),
        (&["advise", "--seconds=0", "x"], "seconds above 0"),
        (&["advise", "--seconds=-1", "x"], "seconds above 0"),
        (&["advise", "--seconds=NaN", "x"], "seconds above 0"),
        (&["advise", "--seconds=inf", "x"], "seconds above 0"),
        (&["advise", "--seconds=1s", "x"], "seconds above 0"),
    ] {
        let line = refusal(CCSCOPE, words, 2);
        assert!(
            line.starts_with("ccscope: ") && line.contains(why),
            "{line}"
        );
    }
    let line = refusal(
        CARGO_CCSCOPE,
        &["ccscope", "run", "--target", "wasm32-wasip1"],
        2,
    );
    assert!(
        line.starts_with("cargo ccscope: ") && line.contains("wasm32-wasip1"),
        "{line}"
    );
    assert!(refusal(CARGO_CCSCOPE, &["ccscope", "install"], 2).contains("install"));
    let line = refusal(CARGO_CCSCOPE, &["ccscope", "run"], 1);
    assert!(line.contains("Cargo.toml"), "{line}");
}

#[test]
fn a_profile_of_regions_is_refused_where_sites_are_needed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("p.ccscope");
    let mut profile = Capture::new().profile().unwrap();
    profile.regions = vec![ccscope::profile::Region {
        footprints: vec![0; 48],
        growth: vec![0; 32],
        ..Default::default()
    }];
    profile.save(&path).unwrap();
    let path = path.to_str().unwrap();
    for words in [
        &["show", path, "--sites"][..],
        &["show", path, "--types"],
        &["show", path, "--threads"],
        &["show", path, "--edges"],
        &["show", path, "--source=0"],
        &["show", path, "--filter=thread=1"],
        &["show", path, "--sort=bytes"],
        &["advise", path],
        &["diff", path, path],
        &["export", path, "--to=pprof"],
    ] {
        let why = format!("this profile has regions, not sites: `ccscope show {path} --regions`");
        assert_eq!(refusal(CCSCOPE, words, 1), format!("ccscope: {why}\n"));
    }
    for words in [
        &["show", path][..],
        &["show", path, "--regions"],
        &["show", path, "--json"],
        &["export", path, "--to=collapsed"],
    ] {
        let output = run_in(folder.path(), CCSCOPE, words);
        assert!(
            output.status.success(),
            "{words:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn output_and_exit_status_pass_through() {
    let folder = TempDir::new().unwrap();
    let script = "read x; echo got $x; echo bad >&2; exit 7";
    let mut command = Command::new(CCSCOPE);
    command
        .args(["run", "-q", "sh", "-c", script, "--", "-q"])
        .current_dir(folder.path());
    command.env("XDG_CACHE_HOME", CACHE);
    let input = folder.path().join("input");
    fs::write(&input, "hello\n").unwrap();
    let output = command
        .stdin(fs::File::open(&input).unwrap())
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "got hello\n");
    assert_eq!(text(&output.stderr), "bad\n");
    assert_eq!(output.status.code(), Some(7));
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("ABRT", 134)] {
        let script = format!("kill -{signal} $$");
        let output = run_in(folder.path(), CCSCOPE, &["run", "-q", "sh", "-c", &script]);
        assert_eq!(output.status.code(), Some(code), "{signal}");
    }
}

#[test]
fn crashes_other_versions_and_what_is_missing_are_told_in_a_line() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let output = run_in(
        path,
        CCSCOPE,
        &["run", "-o", "p", "sh", "-c", "kill -SEGV $$"],
    );
    let err = text(&output.stderr);
    assert!(err.contains("ended by signal 11 (SIGSEGV) after"), "{err}");
    assert!(err.contains("has no debug information"), "{err}");
    // Too quick to be asked for its arguments.
    run_in(
        path,
        CCSCOPE,
        &["run", "-q", "-o", "p", "sh", "-c", "exec sh -c :"],
    );
    let file = path.join("p");
    let run = ccscope::Profile::open(&file).unwrap().run;
    let command = run.command.join(" ");
    assert!(
        !command.is_empty() && !command.contains("exec"),
        "{command}"
    );
    let shown = |change: fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(&file).unwrap();
        change(&mut bytes);
        let checksum = crc32fast::hash(&bytes[..12]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        fs::write(path.join("q"), bytes).unwrap();
        refusal(CCSCOPE, &["show", path.join("q").to_str().unwrap()], 1)
    };
    assert!(shown(|bytes| bytes[8] = 9).contains("is of version 9"));
    assert!(shown(|bytes| bytes[99] ^= 1).contains("is damaged"));
}

#[test]
fn a_signal_to_the_tool_reaches_the_program() {
    let folder = TempDir::new().unwrap();
    // Not SIGINT: a background job, as tests may be, ignores it. The loop ends in any case.
    let script = "trap 'echo interrupted; exit 5' TERM; kill -TERM $PPID; n=0; \
                  while [ $n -lt 3000000 ]; do n=$((n + 1)); done";
    let output = run_in(folder.path(), CCSCOPE, &["run", "-q", "sh", "-c", script]);
    assert_eq!(text(&output.stdout), "interrupted\n");
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn compilers_answer_questions_as_they_do_alone() {
    for words in [
        &["--version"][..],
        &["-print-search-dirs"],
        &["-dumpmachine"],
    ] {
        let folder = TempDir::new().unwrap();
        let ours = run_in(folder.path(), CCSCOPE, &[&["cc"], words].concat());
        let alone = run_in(folder.path(), "cc", words);
        assert_eq!(text(&ours.stdout), text(&alone.stdout));
        assert_eq!(ours.status, alone.status);
    }
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("a.c"),
        "#ifdef __SANITIZE_ADDRESS__\n#error no\n#endif\n",
    )
    .unwrap();
    for words in [&["-c", "a.c"][..], &["-c", "-O2", "-x", "c++", "a.c"]] {
        let output = run_in(folder.path(), CCSCOPE, &[&["cc"], words].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

/// The check of a compiler before it is used, on the one that builds this test, and the way of an
/// instrumented program's accesses into a profile.
#[test]
fn cargo_profiles_a_program_and_its_tests() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    fs::create_dir(path.join("src")).unwrap();
    let manifest = "[package]\nname = \"sum\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(path.join("Cargo.toml"), manifest).unwrap();
    let source = "fn main() {
            let list: Vec<u64> = (0..1000).collect();
            println!(\"{}\", list.iter().sum::<u64>());
            std::process::exit(i32::from(cfg!(chosen)) * 9);
        }
        #[test]
        fn boxes() { assert_eq!(*std::hint::black_box(Box::new(7)), 7); }";
    fs::write(path.join("src/main.rs"), source).unwrap();
    let cargo = |words: &[&str]| {
        let mut command = Command::new(CARGO_CCSCOPE);
        command
            .arg("ccscope")
            .args(words)
            .args(["--offline", "--release"])
            .current_dir(path);
        command
            .env("XDG_CACHE_HOME", path.join("cache"))
            .env("RUSTFLAGS", "--cfg chosen");
        // Those that cargo has set for this test.
        command.env_remove("CARGO_TARGET_DIR").output().unwrap()
    };
    let output = cargo(&["run", "--bin=sum", "-o", "sum.ccscope"]);
    let err = text(&output.stderr);
    assert_eq!(
        (text(&output.stdout).as_str(), output.status.code()),
        ("499500\n", Some(9)),
        "{err}"
    );
    assert!(
        err.contains("checking rustc") && err.contains("profile in"),
        "{err}"
    );
    let profile = ccscope::Profile::open(path.join("sum.ccscope")).unwrap();
    assert!(
        profile.run.accesses && profile.run.compiler.starts_with("rustc 1."),
        "{:?}",
        profile.run
    );
    assert_eq!(profile.run.exit, ccscope::profile::Exit::Code(9));
    let list = profile
        .sites
        .iter()
        .find(|site| site.largest == 8000)
        .unwrap();
    assert!(
        list.writes > 0 && list.reads > 0 && list.touched_bytes == 8000,
        "{list:?}"
    );

    let output = cargo(&["test", "-o", "test.ccscope"]);
    let err = text(&output.stderr);
    assert!(
        output.status.success() && text(&output.stdout).contains("1 passed"),
        "{err}"
    );
    assert!(!err.contains("checking rustc"), "{err}");
    assert!(
        ccscope::Profile::open(path.join("test.ccscope"))
            .unwrap()
            .run
            .accesses
    );
    let script = "case $1 in -Z*) echo error: no config >&2; exit 1;; esac; exec cargo \"$@\"";
    let deaf = executable(path, "cargo", format!("#!/bin/sh\n{script}\n").as_bytes());
    let mut command = Command::new(CARGO_CCSCOPE);
    command
        .args(["ccscope", "run", "-p", "unknown"])
        .current_dir(path);
    command
        .env("XDG_CACHE_HOME", path.join("cache"))
        .env("CARGO", deaf);
    let err = text(&command.output().unwrap().stderr);
    assert!(
        err.starts_with("ccscope: wrappers of the compiler and runners that")
            && err.contains("are left out: no config\n"),
        "{err}"
    );
    let output = cargo(&["run", "-p", "unknown"]);
    let err = text(&output.stderr);
    assert!(
        err.starts_with("error: package") && err.contains("`unknown`"),
        "{err}"
    );
    fs::write(path.join("src/main.rs"), "fn main() { nothing }").unwrap();
    let output = cargo(&["run"]);
    assert_eq!(output.status.code(), Some(101));
    assert!(
        text(&output.stderr).contains("cannot find value"),
        "{}",
        text(&output.stderr)
    );
}

/// Compilers whose instrumentation counts nothing, that does not compile, and that is too old.
#[test]
fn compilers_that_do_not_count_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    fs::create_dir(path.join("src")).unwrap();
    fs::write(path.join("src/main.rs"), "fn main() {}").unwrap();
    fs::write(
        path.join("Cargo.toml"),
        "[package]\nname = \"none\"\n[workspace]\n",
    )
    .unwrap();
    let silent =
        "for word; do shift; case $word in -Cpasses=*) ;; *) set -- \"$@\" \"$word\";; esac
        done; exec rustc \"$@\"";
    let broken = "case $1 in -vV) exec rustc -vV;; esac; echo error: no such pass >&2; exit 1";
    let c = "for word; do shift; case $word in -fsan*) ;; *) set -- \"$@\" \"$word\";; esac
        done; exec gcc \"$@\"";
    let cc = executable(path, "cc", format!("#!/bin/sh\n{c}\n").as_bytes());
    let mut command = Command::new(CCSCOPE);
    command.args(["cc", "a.c"]).env("CCSCOPE_CC", cc);
    let output = command.env("XDG_CACHE_HOME", path.join("cache")).output();
    let err = text(&output.unwrap().stderr);
    assert!(
        err.ends_with("stores in a known program, counted 0 and 0\n"),
        "{err}"
    );
    let old = "rustc -vV | sed 's/^release: .*/release: 1.80.1/; s/^rustc [^ ]*/rustc 1.80.1/'";
    for (script, expected) in [
        (
            silent,
            "expected 410654 loads and 153536 stores in a known program, counted 0 and 0",
        ),
        (
            broken,
            "does not compile with instrumentation: error: no such pass",
        ),
        (old, "rustc 1.80.1"),
    ] {
        let rustc = executable(path, "rustc", format!("#!/bin/sh\n{script}\n").as_bytes());
        let mut command = Command::new(CARGO_CCSCOPE);
        command
            .args(["ccscope", "run"])
            .current_dir(path)
            .env("RUSTC", rustc);
        let output = command
            .env("XDG_CACHE_HOME", path.join("cache"))
            .output()
            .unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        let last = err.lines().last().unwrap();
        assert!(
            last.starts_with("cargo ccscope: rustc 1.") && last.contains(expected),
            "{err}"
        );
    }
}

#[test]
fn processes_have_profiles_of_their_own_also_those_that_live_on() {
    let folder = TempDir::new().unwrap();
    // The inner shell lives until this test removes the file, and holds no pipe to it.
    let script = "sh -c 'touch started; while [ -e started ]; do sleep 0.1; done' <&- >&- 2>&- & \
        while [ ! -e started ]; do sleep 0.05; done; exit 4";
    let output = run_in(
        folder.path(),
        CCSCOPE,
        &["run", "--keep-arguments", "-o", "first", "sh", "-c", script],
    );
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{err}");
    let first = ccscope::Profile::open(folder.path().join("first")).unwrap();
    assert_eq!(first.run.exit, ccscope::profile::Exit::Code(4));
    assert_eq!(first.run.command[..2], ["sh", "-c"]);
    let others = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let others = others.filter(|path| path.extension().is_some_and(|end| end == "ccscope"));
    let others: Vec<_> = others
        .map(|path| ccscope::Profile::open(path).unwrap().run)
        .collect();
    assert!(others.iter().all(|run| run.pid != first.run.pid));
    let inner = |word: &String| word.starts_with("touch started; while");
    assert!(
        others.iter().any(|run| run.command.iter().any(inner)),
        "{others:?}"
    );
    assert!(err.contains("other processes"), "{err}");
    fs::remove_file(folder.path().join("started")).unwrap();
}

#[test]
fn what_is_written_is_for_its_owner_and_has_no_secrets() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let script = "sh -c 'exit 0' hunter2 --child=hunter2; true";
    let words = ["run", "-q", "--page", "-o", "p.ccscope", "sh", "-c", script];
    let secrets = ["-phunter2", "--password", "hunter2", "-n", "7"];
    let ran = run_in(path, CCSCOPE, &[&words[..], &secrets].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let words = ["export", "p.ccscope", "--to", "speedscope", "-o", "p.json"];
    let output = run_in(path, CCSCOPE, &words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut files = 0;
    for file in fs::read_dir(path).unwrap() {
        let file = file.unwrap().path();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
        // Sections may be packed.
        let content = fs::read(&file).unwrap();
        let profile = ccscope::Profile::open(&file).map(|it| it.run.command.join(" "));
        let text = text(&content) + &profile.unwrap_or_default();
        assert!(!text.contains("hunter2"), "{}", file.display());
        files += 1;
    }
    assert!(files >= 3);
    let run = ccscope::Profile::open(path.join("p.ccscope")).unwrap().run;
    let expected = ["sh", "-c", "***", "***", "--password", "***", "-n", "7"];
    assert_eq!(run.command, expected);
}

#[test]
fn nothing_is_put_beside_what_is_no_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let pipe = path.join("pipe.ccscope");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let script = "sh -c 'exit 0'; true";
    let from = pipe.clone();
    let reader = std::thread::spawn(move || fs::read(from).unwrap());
    let words = ["run", "-o", "pipe.ccscope", "sh", "-c", script];
    let output = run_in(path, CCSCOPE, &words);
    let err = text(&output.stderr);
    assert!(output.status.success() && !reader.join().unwrap().is_empty());
    assert!(err.contains("no profiles of 1 other processes"), "{err}");
    let left: Vec<_> = fs::read_dir(path).unwrap().flatten().collect();
    assert!(left.len() == 1 && !pipe.is_file(), "{left:?}");
    let line = refusal(CCSCOPE, &["run", "--page", "-o", "/dev/null", "true"], 2);
    assert!(line.contains("no page can lie beside /dev/null"), "{line}");
    let line = refusal(CCSCOPE, &["report", "/dev/null"], 2);
    assert!(line.contains("add -o FILE"), "{line}");
}

/// As cargo's are: beside the tool first, else in `PATH`.
#[test]
fn commands_of_other_packages_are_found_and_get_their_words() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let (own, other) = (at("own"), at("other"));
    let tool = own.join("ccscope");
    fs::copy(CCSCOPE, &tool).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(&tool);
        command.args(words).env("PATH", &other).output().unwrap()
    };
    let refused = run(&["trace", "true"]);
    let err = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        err.ends_with("install it by `cargo install --path trace` in a clone of the repository\n"),
        "{err}"
    );
    for (place, says) in [(&other, "other"), (&own, "own")] {
        let script = format!("#!/bin/sh\necho {says} \"$@\"\nexit 7\n");
        executable(place, "ccscope-trace", script.as_bytes());
        let output = run(&["trace", "--help", "-o", "a b", "--", "c"]);
        let out = text(&output.stdout);
        assert_eq!(out, format!("{says} --help -o a b -- c\n"));
        assert_eq!(output.status.code(), Some(7));
    }
    let output = run(&["man", "trace"]);
    assert_eq!(text(&output.stdout), "own --man\n");
}

/// By each compiler, once its instrumentation has counted what is known.
#[test]
#[ignore = "takes long: CI runs it"]
fn c_programs_are_instrumented() {
    for (compiler, says) in [
        ("gcc", "GCC"),
        ("clang", "clang"),
        ("g++", "GCC"),
        ("clang++", "clang"),
    ] {
        if !is_installed(compiler) {
            continue;
        }
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        // An allocator that only the linker can show.
        let declared = "
            #ifdef __cplusplus
            extern \"C\"
            #endif
            void *mi_malloc(unsigned long n)";
        let own = format!("char heap[4000]; {declared} {{ return heap; }}");
        fs::write(path.join("own.c"), own).unwrap();
        let source = ";
            #include <string.h>
            int main(void) {
                volatile int *list = (volatile int *)mi_malloc(4000);
                volatile unsigned long bytes = 200;
                memcpy((void *)(list + 50), (void *)list, bytes);
                for (int i = 0; i < 250; i++) list[i] = i;
                return list[249] == 249 ? 3 : 4;
            }";
        fs::write(path.join("a.c"), format!("{declared}{source}")).unwrap();
        let compile = |words: &[&str]| {
            let tool = ["cc", "c++"][usize::from(compiler.ends_with("++"))];
            let mut command = Command::new(CCSCOPE);
            command.arg(tool).args(words).current_dir(path);
            command
                .env("CCSCOPE_CC", compiler)
                .env("CCSCOPE_CXX", compiler);
            let output = command.env("XDG_CACHE_HOME", path).output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            text(&output.stderr).contains("checking")
        };
        assert!(compile(&["-O2", "-c", "own.c"]));
        assert!(!compile(&["-O2", "-c", "a.c"]));
        compile(&["a.o", "own.o", "-o", "a"]);
        let output = run_in(path, CCSCOPE, &["run", "-o", "p", "./a"]);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{err}");
        let last = err.lines().last().unwrap();
        assert!(last.contains("`ccscope advise p` for what"), "{err}");
        let profile = ccscope::Profile::open(path.join("p")).unwrap();
        let run = &profile.run;
        assert!(run.accesses && run.compiler.contains(says), "{run:?}");
        let list = profile.sites.iter().find(|site| site.largest == 4000);
        let list = list.expect("calls of its allocator are seen");
        assert_eq!((list.reads, list.writes), (2, 251), "{compiler}");
        assert_eq!(profile.total.block_bytes, 400);
        // Nothing tells gcc's calls of libc's function from those of libraries.
        if says == "GCC" {
            assert_eq!(profile.total.foreign_bytes, 400);
        }
        // It also runs without this tool.
        assert_eq!(run_in(path, "./a", &[]).status.code(), Some(3));
        is_shown_or_refused_in_a_line(path);
        is_advised_or_refused_in_a_line(path);
    }
}

/// The profile `p` of the instrumented program `a`, with the file `machine`.
fn is_advised_or_refused_in_a_line(path: &Path) {
    let on = ["advise", "p", "--machine=machine", "--seconds=0.5"];
    let advised = |words: &[&str]| {
        let output = run_in(path, CCSCOPE, &[&on, words].concat());
        let err = text(&output.stderr);
        assert!(output.status.success() && err.is_empty(), "{err}");
        text(&output.stdout)
    };
    let shown = advised(&["--width=60"]);
    assert!(shown.starts_with("500 ms on "), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 60));
    // The list fits the caches.
    let sentence = "\nNo change is predicted to pay off.\n";
    assert!(shown.contains(sentence), "{shown}");
    assert!(
        advised(&["--color=always"])
            .contains("\u{1b}[1mNo change is predicted to pay off.\u{1b}[0m\n")
    );
    let json: serde_json::Value = serde_json::from_str(&advised(&["--json"])).unwrap();
    assert_eq!(json["schema"], "ccscope-advice-1");
    assert_eq!(
        (&json["seconds"], &json["worth_it"]),
        (&0.5.into(), &false.into())
    );
    // Without a file, the machine is measured once.
    let measured = || {
        let mut command = Command::new(CCSCOPE);
        command.args(["advise", "p"]).current_dir(path);
        let output = command.env("XDG_CACHE_HOME", path).output().unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{err}");
        assert!(!out.contains("usual latencies"), "{out}");
        err
    };
    let said = measured();
    assert!(
        said.is_empty() || said.contains("measuring the caches"),
        "{said}"
    );
    assert_eq!(measured(), "");
    // All commands then simulate it.
    let json_of = |words: &[&str]| -> serde_json::Value {
        let mut command = Command::new(CCSCOPE);
        command.args(words).arg("--json").current_dir(path);
        let output = command.env("XDG_CACHE_HOME", path).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let [shown, advice] = [json_of(&["show", "p"]), json_of(&["advise", "p"])];
    assert_eq!(shown["misses"]["machine"], advice["machine"]);
    let sites = shown["misses"]["sites"].as_array().unwrap();
    let sum = |key| -> f64 { sites.iter().map(|it| it[key].as_f64().unwrap()).sum() };
    let diff_ns = json_of(&["diff", "p", "p"])["waits_ns"][0]
        .as_f64()
        .unwrap();
    assert!((sum("wait_ns") - diff_ns).abs() <= 1e-6 * diff_ns);
    // That of the stack is advice's, too.
    assert!(sum("wait_share") <= advice["waits"].as_f64().unwrap() + 1e-9);
    let record = |words: &[&str]| {
        let output = run_in(
            path,
            CCSCOPE,
            &[&["run", "-q", "-o", "other"], words].concat(),
        );
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    };
    let refused = |words: &[&str]| {
        let words = [&["-C", path.to_str().unwrap(), CCSCOPE, "advise"], words].concat();
        refusal("env", &words, 1)
    };
    record(&["--rate=0", "./a"]);
    let line = refused(&["other", "--machine=machine"]);
    assert!(line.contains("without --rate 0"), "{line}");
    record(&["sh", "-c", ":"]);
    let line = refused(&["other", "--machine=machine"]);
    assert!(line.contains("was not instrumented"), "{line}");
    assert!(refused(&["machine"]).contains("machine"));
    for machine in ["p", "/no/such"] {
        let line = refused(&["p", "--machine", machine]);
        assert!(
            line.contains(&format!("cannot read machine {machine}: ")),
            "{line}"
        );
    }
}

fn is_shown_or_refused_in_a_line(path: &Path) {
    let machine = Machine::preset("thesis").unwrap();
    fs::write(path.join("machine"), machine.to_json()).unwrap();
    let shown = |words: &[&str]| {
        let output = run_in(path, CCSCOPE, &[&["show", "p"], words].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let on = shown(&["--machine=machine", "--width=200"]);
    assert!(on.contains(&format!(" on {}\n", machine.name)), "{on}");
    // All that is wrong, or nothing.
    let findings = |threshold: &str| {
        let json = shown(&["--json", "--threshold=bytes=0", "--threshold", threshold]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["findings"].as_array().unwrap().len()
    };
    assert!(findings("share=0") > findings("share=1.5"));
    assert_eq!(findings("share=1.5"), 0);
    for wrong in ["share", "share=x", "share=-1", "size=1"] {
        let line = refusal(CCSCOPE, &["show", "p", "--threshold", wrong], 2);
        assert!(line.contains("no threshold: group=, short=,"), "{line}");
    }
    for view in [
        &[][..],
        &["--sites"],
        &["--json"],
        &["--source", "0"],
        &["--source", "#0+1"],
        &["--threads"],
    ] {
        let output = run_in(path, CCSCOPE, &[&["show", "p"], view].concat());
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{view:?}"
        );
        assert!(
            output.stderr.is_empty(),
            "{view:?}: {}",
            text(&output.stderr)
        );
    }
    let line = refusal(
        CCSCOPE,
        &[
            "show",
            "--machine=/no/such",
            path.join("p").to_str().unwrap(),
        ],
        1,
    );
    assert!(line.contains("/no/such"), "{line}");
    assert!(refusal(CCSCOPE, &["show", "--filter=size=3", "p"], 2).contains("no filter"));
    assert!(refusal(CCSCOPE, &["show", "/no/such"], 1).contains("/no/such"));
}

#[test]
fn colour_and_width_are_those_of_the_terminal() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    run_in(path, CCSCOPE, &["run", "-q", "-o", "p", "sh", "-c", ":"]);
    let sh = |script: &str| {
        let mut sh = Command::new("sh");
        sh.args(["-c", script])
            .current_dir(path)
            .stdin(Stdio::null());
        let output = sh.env("CCSCOPE", CCSCOPE).env_remove("NO_COLOR").output();
        let shown = text(&output.unwrap().stdout);
        assert!(shown.contains("allocations  "), "{shown}");
        let plain = shown.split('\u{1b}').map(|part| {
            let code = part.strip_prefix('[').and_then(|it| it.split_once('m'));
            code.map_or(part, |it| it.1)
        });
        let plain: String = plain.collect();
        let columns = plain.lines().map(|line| line.trim_end().chars().count());
        (shown.contains('\u{1b}'), columns.max().unwrap())
    };
    let (has_colour, columns) = sh("$CCSCOPE show p");
    assert!(!has_colour && columns > 70);
    assert!(sh("$CCSCOPE show p --color=always").0);
    // In a terminal of its own.
    for (variable, colour, is_coloured) in [
        ("", "auto", true),
        ("NO_COLOR=1", "auto", false),
        ("NO_COLOR=1", "always", true),
        ("", "never", false),
    ] {
        let show = format!("{variable} $CCSCOPE show p --color={colour}");
        let (has_colour, columns) = sh(&format!("script -qec 'stty cols 60; {show}' /dev/null"));
        assert_eq!(has_colour, is_coloured, "{variable} {colour}");
        assert!(columns > 50 && columns <= 60, "{columns}");
    }
}

#[test]
fn types_of_cxx_are_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let source = "#include <cstdio>
        #include <vector>
        struct Node { long key; Node *next; };
        Node *volatile list;
        int main() {
            list = new Node();
            list->next = new Node[3]();
            std::vector<Node> all(static_cast<unsigned long>(list->key) + 5);
            list = &all[0];
            return fopen(\"/no/such\", \"r\") != nullptr;
        }";
    fs::write(path.join("a.cc"), source).unwrap();
    let output = run_in(path, CCSCOPE, &["c++", "-g", "-O1", "a.cc", "-o", "a"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = run_in(path, CCSCOPE, &["run", "-q", "-o", "p", "./a"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&run_in(path, CCSCOPE, &["show", "p", "--types"]).stdout);
    for name in ["  Node\n", "  vector<Node>\n", "  FILE\n"] {
        assert!(shown.contains(name), "{shown}");
    }
}

#[test]
fn help_manual_pages_and_completions_are_answers() {
    for words in [
        &["--help"][..],
        &["man"],
        &["man", "cargo"],
        &["man", "advise"],
        &["advise", "--help"],
        &["completions", "bash"],
    ] {
        let output = Command::new(CCSCOPE).args(words).output().unwrap();
        assert!(
            output.status.success() && text(&output.stdout).contains("ccscope"),
            "{words:?}"
        );
        assert!(output.stderr.is_empty(), "{words:?}");
    }
    let output = Command::new(CARGO_CCSCOPE)
        .args(["ccscope", "test", "--help"])
        .output()
        .unwrap();
    assert!(text(&output.stdout).contains("cargo ccscope test"));
}
