//! Programs that are attached to while they run: counts are exact from then on, and the programs
//! never notice.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ccscope::Profile;
use ccscope::profile::{Exit, Site};
use tempfile::TempDir;

use super::programs::{CCSCOPE, command, compile, succeed, text};
use super::skipped::skipped;

/// `live.c`, as any compiler makes it.
pub(super) static LIVE: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &["cc"], "live.c", &["-O1", "-g", "-pthread"]);
    (folder, program)
});

/// A program that runs, and says now and then that it waits for a line.
pub(super) struct Running {
    child: Child,
    pub(super) out: BufReader<ChildStdout>,
}

impl Running {
    pub(super) fn new(command: &mut Command) -> Running {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out }
    }

    fn of(word: &str) -> Running {
        let mut running = Running::new(Command::new(&LIVE.1).arg(word));
        running.says("ready");
        running
    }

    pub(super) fn says(&mut self, word: &str) {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), word);
    }

    pub(super) fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub(super) fn ends(mut self) {
        assert!(self.child.wait().unwrap().success());
    }

    fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let text = fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse().unwrap()
    }
}

/// `ccscope attach`, once it records; `None` where processes cannot be traced.
fn attach(
    pid: &str,
    output: &Path,
    words: &[&str],
) -> Option<(Child, BufReader<std::process::ChildStderr>)> {
    let mut command = command(CCSCOPE);
    command
        .args(["attach", pid, "--verbose", "--output"])
        .arg(output)
        .args(words);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut lines = String::new();
    while !lines.contains("is recorded; ") {
        if err.read_line(&mut lines).unwrap() == 0 {
            child.wait().unwrap();
            assert!(lines.contains("cannot be traced"), "{lines}");
            skipped("processes cannot be traced");
            return None;
        }
    }
    assert!(lines.contains(" was stopped for "), "{lines}");
    Some((child, err))
}

fn detach(pid: &str) {
    succeed(command(CCSCOPE).args(["detach", pid]));
}

fn snapshot(pid: &str, output: &Path) -> Profile {
    succeed(command(CCSCOPE).args(["snapshot", pid, "-o"]).arg(output));
    Profile::open(output).unwrap()
}

/// The site whose chunks have this size, of those that `live.c` allocates itself.
pub(super) fn site(profile: &Profile, size: u64) -> &Site {
    let mut sites = { profile.sites.iter() }.filter(|it| it.smallest == size && it.largest == size);
    sites
        .next()
        .unwrap_or_else(|| panic!("no site of {size} bytes"))
}

#[test]
fn what_is_allocated_since_is_counted_exactly() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let library = compile(
        folder.path(),
        &["cc"],
        "library.c",
        &["-shared", "-fPIC", "-g"],
    );
    let mut program = Running::new(Command::new(&LIVE.1).arg("exact").arg(&library));
    program.says("ready");
    let pid = program.pid();
    let Some((mut tool, _err)) = attach(&pid, &path("all"), &[]) else {
        return;
    };
    // Another one is refused.
    let other = command(CCSCOPE).args(["attach", &pid]).output().unwrap();
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains("is recorded by another ccscope"));
    program.go_on();
    program.says("first");
    let first = snapshot(&pid, &path("first"));
    assert_eq!(first.total.unknown_frees, 400);
    let (leaked, grown, copied) = (site(&first, 123), site(&first, 4000), site(&first, 24));
    assert_eq!((leaked.allocations, leaked.end_chunks), (250, 250));
    assert_eq!((grown.allocations, grown.end_chunks), (100, 100));
    assert_eq!(
        (copied.allocations, copied.frees, copied.temporary),
        (500, 500, 500)
    );
    // Those that were bound later, and those of a library that was loaded later.
    assert_eq!(
        (site(&first, 77).end_chunks, site(&first, 888).end_chunks),
        (10, 20)
    );
    assert!(
        first.run.caveats.iter().any(|it| it.contains("before")),
        "{:?}",
        first.run.caveats
    );
    program.go_on();
    program.says("second");
    let second = snapshot(&pid, &path("second"));
    let leaked = { second.sites.iter() }.filter(|it| it.largest == 123);
    assert_eq!(leaked.map(|it| it.end_chunks).sum::<u64>(), 300);
    let shown = command(CCSCOPE)
        .arg("diff")
        .args([path("first"), path("second")])
        .output()
        .unwrap();
    let shown = text(&shown.stdout);
    assert!(shown.contains("grown") && shown.contains("leak"), "{shown}");
    detach(&pid);
    assert!(tool.wait().unwrap().success());
    let all = Profile::open(path("all")).unwrap();
    let leaked = { all.sites.iter() }.filter(|it| it.largest == 123);
    assert_eq!(leaked.map(|it| it.allocations).sum::<u64>(), 300);
    // Once more, now that the runtime is there.
    let Some((mut tool, _err)) = attach(&pid, &path("again"), &["--no-stacks"]) else {
        return;
    };
    program.go_on();
    program.ends();
    assert!(tool.wait().unwrap().success());
    assert_eq!(Profile::open(path("again")).unwrap().run.exit, Exit::Ended);
}

#[test]
fn a_busy_program_is_attached_to_many_times() {
    let folder = TempDir::new().unwrap();
    let output = folder.path().join("profile");
    let mut program = Running::of("busy");
    let pid = program.pid();
    let mut before = 0;
    for round in 0..4 {
        let sampled: &[&str] = if round == 1 { &["--sample=4096"] } else { &[] };
        let Some((mut tool, _err)) = attach(&pid, &output, sampled) else {
            return;
        };
        if round == 1 {
            // So that chunks are left behind that the next round does not know.
            sleep(Duration::from_millis(50));
        }
        if round == 2 {
            // Each thread runs when a core is free.
            let mut snapshots = (0..100).map(|_| snapshot(&pid, &folder.path().join("snapshot")));
            assert!(snapshots.any(|it| it.total.allocations > 0 && it.threads.len() > 3));
        }
        detach(&pid);
        assert!(tool.wait().unwrap().success());
        assert!(Profile::open(&output).unwrap().total.allocations > 0);
        if round == 1 {
            before = program.resident();
        }
    }
    let after = program.resident();
    assert!(after < before + 4096, "{before} kB, then {after} kB");
    program.go_on();
    program.says("worked");
    program.go_on();
    program.ends();
}

#[test]
fn a_thread_that_never_waits_is_stopped_at_malloc() {
    let folder = TempDir::new().unwrap();
    let output = folder.path().join("profile");
    let program = Running::of("alone");
    let pid = program.pid();
    let Some((mut tool, _err)) = attach(&pid, &output, &[]) else {
        return;
    };
    sleep(Duration::from_millis(50));
    succeed(Command::new("kill").arg(&pid));
    program.ends();
    assert!(tool.wait().unwrap().success());
    assert!(Profile::open(&output).unwrap().total.allocations > 0);
}

#[test]
fn a_call_that_waits_goes_on() {
    let folder = TempDir::new().unwrap();
    let mut program = Running::of("waits");
    let pid = program.pid();
    let Some((mut tool, _err)) = attach(&pid, &folder.path().join("profile"), &[]) else {
        return;
    };
    detach(&pid);
    assert!(tool.wait().unwrap().success());
    program.go_on();
    program.ends();
}

#[test]
fn a_thread_that_is_seldom_outside_libc_goes_on() {
    let folder = TempDir::new().unwrap();
    let program = Running::of("within");
    let pid = program.pid();
    let mut attach = command(CCSCOPE);
    let attach = attach.args(["attach", &pid, "--verbose", "-o"]);
    let mut tool = attach
        .arg(folder.path().join("profile"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(tool.stderr.take().unwrap());
    let mut lines = String::new();
    while !lines.contains("is recorded; ") && err.read_line(&mut lines).unwrap() != 0 {}
    succeed(Command::new("kill").arg(&pid));
    program.ends();
    if !tool.wait().unwrap().success() {
        let causes = ["no thread of ", "cannot be traced"];
        assert!(causes.iter().any(|it| lines.contains(it)), "{lines}");
    }
}

#[test]
fn a_python_program_is_attached_to() {
    const SCRIPT: &str = "\
print('ready', flush=True); input()
kept = [bytearray(100000 + i) for i in range(1000)]
print('done', flush=True); input()";
    let folder = TempDir::new().unwrap();
    let mut program = Running::new(Command::new("python3").args(["-c", SCRIPT]));
    program.says("ready");
    // The command may be one that starts the interpreter.
    let pid = program.pid();
    let Some((mut tool, _err)) = attach(&pid, &folder.path().join("all"), &[]) else {
        return;
    };
    program.go_on();
    program.says("done");
    let profile = snapshot(&pid, &folder.path().join("now"));
    let large = { profile.sites.iter() }.filter(|site| site.largest >= 100_000);
    assert_eq!(large.map(|site| site.end_chunks).sum::<u64>(), 1000);
    program.go_on();
    program.ends();
    assert!(tool.wait().unwrap().success());
}

#[test]
fn a_program_that_was_started_has_snapshots() {
    let folder = TempDir::new().unwrap();
    let mut tool = command(CCSCOPE);
    tool.current_dir(&folder)
        .args(["run", "-q", "-o", "all.ccscope"])
        .arg(&LIVE.1)
        .arg("exact");
    let mut program = Running::new(&mut tool);
    program.says("ready");
    program.go_on();
    program.says("first");
    // By a signal.
    succeed(Command::new("kill").args(["-USR1", &program.pid()]));
    let first = folder.path().join("all.1.ccscope");
    let until = Instant::now() + Duration::from_secs(60);
    while Profile::open(&first).is_err() {
        assert!(Instant::now() < until, "there is no snapshot");
        sleep(Duration::from_millis(10));
    }
    let profile = Profile::open(&first).unwrap();
    assert_eq!(
        (profile.total.unknown_frees, site(&profile, 123).end_chunks),
        (0, 250)
    );
    program.go_on();
    program.says("second");
    program.go_on();
    program.ends();
}

#[test]
fn what_grows_from_snapshot_to_snapshot_is_shown() {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &["cc"], "grows.c", &["-O1", "-g"]);
    let mut program = Running::new(&mut Command::new(program));
    let pid = program.pid();
    let Some((mut tool, _err)) = attach(&pid, &folder.path().join("all"), &[]) else {
        return;
    };
    for name in ["1", "2", "3"] {
        let until = Instant::now() + Duration::from_secs(60);
        let before = program.resident();
        while program.resident() < before + 64 {
            assert!(Instant::now() < until, "it does not grow");
            sleep(Duration::from_millis(10));
        }
        snapshot(&pid, &folder.path().join(name));
    }
    detach(&pid);
    assert!(tool.wait().unwrap().success());
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    let diff = |words: &[&str]| {
        let mut diff = command(CCSCOPE);
        let output = diff.current_dir(&folder).arg("diff").args(words).output();
        let output = output.unwrap();
        let code = output.status.code().unwrap();
        (code, text(&output.stdout), text(&output.stderr))
    };
    // In the order of time, whatever the order of the words.
    let (code, json, _) = diff(&["3", "1", "2", "--json"]);
    let growth: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, growth["sites"].as_array().unwrap().len()), (0, 1));
    let alive = growth["sites"][0]["alive"].as_array().unwrap();
    let chunks = alive.iter().map(|it| it["chunks"].as_u64().unwrap());
    assert!(chunks.is_sorted_by(|a, b| a < b), "{json}");
    let place = growth["sites"][0]["where"].as_str().unwrap();
    assert!(place.ends_with("grows.c:6 grow_slowly"), "{place}");
    let (code, table, failed) = diff(&["1", "2", "3", "--fail-on", "site:grow:grown>1000"]);
    assert!(
        code == 1 && table.contains("grows.c:6 grow_slowly"),
        "{table}"
    );
    assert!(
        failed.starts_with("ccscope: gate site:grow:grown>1000: "),
        "{failed}"
    );
    // Of two, the difference.
    let (code, table, _) = diff(&["1", "2", "--fail-on", "grown>1000000000,end>+1000000000"]);
    assert!(code == 0 && table.starts_with("total "), "{table}");
    fs::copy(folder.path().join("1"), folder.path().join("copy")).unwrap();
    let same = "ccscope: 1 and copy are the same snapshot\n".to_owned();
    assert_eq!(diff(&["1", "2", "copy"]), (1, String::new(), same));
    succeed(
        command(CCSCOPE)
            .current_dir(&folder)
            .args(["run", "-q", "-o", "other", "true"]),
    );
    let (code, _, why) = diff(&["1", "2", "other"]);
    let line = "ccscope: 1 and other are not snapshots of one run: ";
    assert!(code == 1 && why.starts_with(line), "{why}");
    assert_eq!(diff(&["1", "2", "--fail-on", "grown>+5%"]).0, 2);
}

#[test]
fn what_cannot_be_attached_to_is_told() {
    let refused = |words: &[&str], why: &str| {
        let output = command(CCSCOPE).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let err = text(&output.stderr);
        assert!(err.contains(why) && err.lines().count() == 1, "{err}");
    };
    refused(&["attach", "4194305"], "there is no process 4194305");
    refused(&["detach", "4194305"], "there is no process 4194305");
    refused(
        &["snapshot", "4194305", "-o", "x"],
        "no ccscope of yours records",
    );
    refused(
        &["attach", "1", "-o", "/no/such/folder/x"],
        "its folder does not exist",
    );
}
