//! Programs that end badly, start others, have many threads or none of their descriptors: each has
//! its profile, and its output and status are what they are without the tool.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use ccscope::Profile;
use ccscope::profile::{Exit, Point};
use tempfile::TempDir;

use super::aside;
use super::programs::{CCSCOPE, Run, command, compile, text};

/// `ends.c`, instrumented.
static ENDS: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let program = compile(
        folder.path(),
        &[CCSCOPE, "cc"],
        "ends.c",
        &["-O1", "-pthread"],
    );
    (folder, program)
});

fn ends() -> &'static str {
    ENDS.1.to_str().unwrap()
}

/// Blocks of this size that were allocated.
pub(crate) fn blocks(profile: &Profile, size: u64) -> u64 {
    let sites = profile
        .sites
        .iter()
        .filter(|site| site.smallest == size && site.largest == size);
    sites.map(|site| site.allocations).sum()
}

/// What a program that nobody watches does.
fn alone(words: &[&str]) -> Output {
    command(words[0]).args(&words[1..]).output().unwrap()
}

/// Runs under the tool; nothing that the program does is to be different, but for the status of a
/// signal, which is as in a shell.
pub(crate) fn same(words: &[&str]) -> Run {
    let (run, alone) = (Run::of(words), alone(words));
    assert_eq!(run.out(), text(&alone.stdout), "{words:?}");
    assert_eq!(run.err(), text(&alone.stderr), "{words:?}");
    assert_eq!(run.output.status.code(), Some(code(&alone)), "{words:?}");
    run
}

fn code(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let signal = || 128 + output.status.signal().unwrap();
    output.status.code().unwrap_or_else(signal)
}

#[test]
fn however_a_program_ends_it_has_a_profile() {
    for (how, exit) in [
        ("return", Exit::Code(0)),
        ("_exit", Exit::Code(4)),
        ("abort", Exit::Signal(libc::SIGABRT)),
        ("segv", Exit::Signal(libc::SIGSEGV)),
        ("kill", Exit::Signal(libc::SIGKILL)),
    ] {
        let profile = same(&[ends(), how]).profile();
        assert_eq!(profile.run.exit, exit, "{how}");
        assert_eq!(profile.run.command, [ends(), "***"]);
        // Before `main`, and in it.
        assert_eq!(
            (blocks(&profile, 111), blocks(&profile, 12345)),
            (1, 1),
            "{how}"
        );
        assert!(
            profile.run.accesses && profile.total.heap_writes >= 2,
            "{how}"
        );
    }
}

#[test]
fn a_program_killed_from_outside_has_a_profile() {
    let folder = TempDir::new().unwrap();
    let script = "import sys, time\nblocks = [bytes(4000) for _ in range(1000)]\n\
                  print('ready', flush=True)\ntime.sleep(100)";
    let mut tool = command(CCSCOPE)
        .args(["run", "-q", "-o", "main.ccscope", "python3", "-c", script])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(tool.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    let children = format!("/proc/{0}/task/{0}/children", tool.id());
    let child = fs::read_to_string(children).unwrap();
    assert!(
        Command::new("kill")
            .args(["-9", child.trim()])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(tool.wait().unwrap().code(), Some(137));
    let profile = Profile::open(folder.path().join("main.ccscope")).unwrap();
    assert_eq!(profile.run.exit, Exit::Signal(libc::SIGKILL));
    assert!(profile.total.end_usable > 4_000_000, "{:?}", profile.total);
}

#[test]
fn handlers_of_exit_are_seen() {
    let profile = same(&[ends(), "atexit"]).profile();
    // In a handler, and in a destructor after all handlers.
    assert_eq!([999, 998].map(|size| blocks(&profile, size)), [1, 1]);
}

#[test]
fn a_child_process_has_a_profile_beside() {
    let run = same(&[ends(), "fork"]);
    let main = run.profile();
    assert_eq!([222, 444, 12345].map(|size| blocks(&main, size)), [0, 1, 1]);
    let [child] = &run.others()[..] else {
        panic!("one child: {}", run.err())
    };
    assert_eq!([222, 444, 12345].map(|size| blocks(child, size)), [1, 0, 0]);
    assert_eq!(child.run.parent, main.run.pid);
    assert!(child.run.accesses);
}

/// glibc leaves the lock of `dl_iterate_phdr` held in such children.
#[test]
fn a_fork_while_another_thread_is_in_the_linker_goes_on() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-shared", "-fPIC"];
    let library = compile(folder.path(), &[CCSCOPE, "cc"], "library.c", &flags);
    let words = [ends(), "fork-linking", library.to_str().unwrap()];
    let run = same(&words);
    assert_eq!(run.out(), "child ended with 7, by signal 0\n".repeat(3));
    let children = run.others();
    assert_eq!(children.len(), 3);
    for child in &children {
        assert_eq!([222, 888].map(|size| blocks(child, size)), [1, 1]);
        let site = child.sites.iter().find(|site| site.smallest == 888);
        let frames = &site.unwrap().stack;
        let named = |at: usize| &*child.frames[frames[at] as usize].function;
        assert_eq!([0, 1].map(named), ["make", "main"]);
    }
}

#[test]
fn a_program_that_replaces_itself_has_two_profiles() {
    let run = same(&[ends(), "exec"]);
    let mut both = run.others();
    both.push(run.profile());
    assert_eq!(both.len(), 2);
    assert_eq!(
        both.iter()
            .map(|profile| blocks(profile, 12345))
            .sum::<u64>(),
        2
    );
    // That of the program's end is the one that was asked for.
    let last = both.last().unwrap();
    assert_eq!((last.run.exit, blocks(last, 999)), (Exit::Code(0), 1));
}

#[test]
fn ten_thousand_short_threads_are_counted() {
    let profile = same(&[ends(), "thousands"]).profile();
    assert_eq!(blocks(&profile, 333), 10_000);
    let site = profile
        .sites
        .iter()
        .find(|site| site.smallest == 333)
        .unwrap();
    assert_eq!(
        (site.frees, site.writes, site.temporary),
        (10_000, 10_000, 10_000)
    );
    assert_eq!(profile.total.lost_chunks, 0);
    assert_eq!(profile.threads.len(), 10_001);
    let of_threads: u64 = profile
        .threads
        .iter()
        .map(|thread| thread.allocations)
        .sum();
    assert_eq!(of_threads, profile.total.allocations);
    // So many threads take longer than the first sample of resident memory.
    assert!(!profile.resident.is_empty());
    assert!(profile.resident.is_sorted_by_key(|sample| sample.ns));
    assert!(profile.resident.iter().all(|sample| sample.bytes > 0));
}

#[test]
fn threads_that_libc_starts_itself_are_counted() {
    let profile = same(&[ends(), "timer"]).profile();
    assert_eq!(blocks(&profile, 444), 20_000);
    assert!(profile.threads.len() > 1);
    let of_threads: u64 = { profile.threads.iter() }.map(|it| it.allocations).sum();
    assert_eq!(of_threads, profile.total.allocations);
    for site in &profile.sites {
        assert!(![444, 555].contains(&site.smallest) || site.allocations == site.frees);
    }
}

#[test]
fn counts_of_two_threads_at_once_are_exact() {
    let profile = same(&[ends(), "counting"]).profile();
    let sites = profile
        .sites
        .iter()
        .filter(|site| site.smallest == 128 && site.largest == 128);
    let (mut reads, mut writes) = (vec![0; 128], vec![0; 128]);
    for site in sites.clone() {
        let histogram = site.histogram.as_ref().unwrap();
        let add = |sums: &mut Vec<u64>, counts: &[u64]| {
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        };
        add(&mut reads, &histogram.reads);
        add(&mut writes, &histogram.writes);
    }
    assert_eq!(sites.clone().map(|site| site.allocations).sum::<u64>(), 2);
    assert_eq!(sites.clone().map(|site| site.shared_chunks).sum::<u64>(), 2);
    assert_eq!(sites.clone().map(|site| site.reads).sum::<u64>(), 16_000);
    assert_eq!(sites.map(|site| site.writes).sum::<u64>(), 16_000);
    assert_eq!((reads, writes), (vec![1000; 128], vec![1000; 128]));
    let of_curve = |curve: &[Point]| {
        let peak = curve.iter().map(|point| point.peak).max();
        (peak.unwrap(), curve.last().unwrap().usable)
    };
    assert_eq!(profile.threads.len(), 3);
    for thread in profile.threads.iter().filter(|it| it.allocations > 0) {
        let ends = (thread.peak, thread.end_live);
        assert_eq!(of_curve(&thread.curve), ends, "{}", thread.id);
    }
    let ends = (profile.total.peak_usable, profile.total.end_usable);
    assert_eq!(of_curve(&profile.curve), ends);
}

#[test]
fn a_stack_ten_thousand_deep_is_one_site() {
    let profile = same(&[ends(), "deep"]).profile();
    assert_eq!(blocks(&profile, 777), 10_001);
    // Recursion is folded.
    let sites = profile
        .sites
        .iter()
        .filter(|site| site.smallest == 777)
        .count();
    assert!(sites < 10, "{sites}");
}

#[test]
fn libraries_that_come_later_are_seen() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-shared", "-fPIC"];
    let flags = [&flags[..], &["-DSIZE=887"]].concat();
    let [first, second] = [&flags[..3], &flags].map(|flags| {
        let library = compile(folder.path(), &[CCSCOPE, "cc"], "library.c", flags);
        let name = folder.path().join(format!("of-{}.so", flags.len()));
        fs::rename(library, &name).unwrap();
        name.to_str().unwrap().to_owned()
    });
    // The second in the place of the first, which then comes back.
    let run = same(&[ends(), "dlopen", &first, &second, &first]);
    let there = ["there again: 0", "there again: 1", "there again: 1\n"];
    assert_eq!(run.out(), there.join("\n"));
    let profile = run.profile();
    assert_eq!(blocks(&profile, 555), 1);
    for (size, allocated, module) in [(888, 2, "of-3.so"), (887, 1, "of-4.so")] {
        assert_eq!(blocks(&profile, size), allocated);
        let mut sites = profile.sites.iter();
        let site = sites.find(|site| site.smallest == size).unwrap();
        let place = &profile.frames[site.stack[0] as usize];
        assert_eq!((&*place.function, &*place.module), ("make", module));
        assert_eq!(site.writes, allocated);
    }
}

#[test]
fn a_program_may_close_all_descriptors() {
    let profile = same(&[ends(), "close"]).profile();
    assert_eq!(blocks(&profile, 666), 1);
}

#[test]
fn a_closed_standard_error_does_no_harm() {
    let run = Run::of(&["sh", "-c", "exec 2>&-; echo still here; exit 6"]);
    assert_eq!(
        (run.out().as_str(), run.output.status.code()),
        ("still here\n", Some(6))
    );
    let folder = TempDir::new().unwrap();
    let script = format!("exec 2>&-; {CCSCOPE} run -o main.ccscope {} _exit", ends());
    let output = command("sh")
        .args(["-c", &script])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(output.stdout.is_empty());
    let profile = Profile::open(folder.path().join("main.ccscope")).unwrap();
    assert_eq!(blocks(&profile, 12345), 1);
}

#[test]
fn a_full_disk_costs_the_profile_and_one_line() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full")).unwrap();
    for file in ["full", "/dev/full"] {
        let output = command(CCSCOPE)
            .args(["run", "-q", "-o", file, ends(), "_exit"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{err}");
        assert!(
            err.starts_with("ccscope: no profile of ") && err.lines().count() == 1,
            "{err}"
        );
    }
}

#[test]
fn too_small_an_address_space_is_told_in_one_line() {
    // The limit is the program's alone.
    let script = format!("ulimit -v 4000000; exec {} _exit", ends());
    let run = Run::of(&["sh", "-c", &script]);
    assert_eq!(run.output.status.code(), Some(127), "{}", run.err());
    assert!(
        run.err().contains("address space") && run.err().lines().count() <= 2,
        "{}",
        run.err()
    );
    // An unmodified program does without.
    let run = Run::of(&["sh", "-c", "ulimit -v 4000000; exec echo 1"]);
    assert_eq!(
        (run.out().as_str(), run.output.status.code()),
        ("1\n", Some(0))
    );
    assert!(
        run.err().contains("ulimit -v") && run.err().lines().count() == 1,
        "{}",
        run.err()
    );
}

#[test]
fn a_library_that_the_user_preloads_stays() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-shared", "-fPIC"];
    let library = compile(folder.path(), &["cc"], "preloaded.c", &flags);
    let run = Run::with(&["cat", "/dev/null"], |command| {
        command.env("LD_PRELOAD", &library);
    });
    // In the tool, too.
    assert_eq!(
        (run.out().as_str(), run.err().as_str()),
        ("preloaded\npreloaded\n", "")
    );
    assert_eq!(blocks(&run.profile(), 4321), 1);
}

#[test]
fn a_program_that_is_audited_starts() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-shared", "-fPIC"];
    let library = compile(folder.path(), &["cc"], "library.c", &flags);
    let run = Run::with(&["cat", "/dev/null"], |command| {
        command.env("LD_AUDIT", &library);
    });
    assert_eq!(run.output.status.code(), Some(0), "{}", run.err());
    assert!(run.profile().total.allocations > 0);
}

#[test]
fn programs_that_the_library_cannot_be_in_run_as_without() {
    aside::run_as_without(CCSCOPE, &["run"]);
}

#[test]
fn programs_with_rights_of_their_own_keep_them() {
    aside::keep_rights(CCSCOPE, &["run"]);
}

#[test]
fn a_panic_while_a_value_is_dropped_passes_through() {
    let folder = TempDir::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/panics.rs");
    let program = folder.path().join("panics");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition=2024", "-Copt-level=1", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(status.unwrap().success());
    for (how, expected) in [("once", 101), ("twice", 134)] {
        let words = [program.to_str().unwrap(), how];
        let (run, alone) = (Run::of(&words), alone(&words));
        assert_eq!(run.output.status.code(), Some(code(&alone)), "{how}");
        assert_eq!(code(&alone), expected);
        // But for the number of the thread.
        let lines = |text: String| {
            text.lines()
                .filter(|line| !line.starts_with("thread"))
                .count()
        };
        assert_eq!(
            lines(run.err()),
            lines(text(&alone.stderr)),
            "{}",
            run.err()
        );
        assert_eq!(blocks(&run.profile(), 4567), 2, "{how}");
    }
}
