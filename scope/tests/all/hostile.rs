//! Programs that do what is allowed and what a tool easily forgets.

use std::path::PathBuf;
use std::sync::LazyLock;

use ccscope::Profile;
use tempfile::TempDir;

use super::ends::{blocks, same};
use super::programs::{CCSCOPE, Run, compile};

const FLAGS: [&str; 2] = ["-O1", "-pthread"];

/// `hostile.c`, instrumented.
static INSTRUMENTED: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &[CCSCOPE, "cc"], "hostile.c", &FLAGS);
    (folder, program)
});

/// `hostile.c`, not instrumented.
static PLAIN: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &["cc"], "hostile.c", &FLAGS);
    (folder, program)
});

fn plain() -> &'static str {
    PLAIN.1.to_str().unwrap()
}

/// `hostile-library.c` of one kind, and `hostile.c` linked with it.
fn with_library(flags: &[&str]) -> (TempDir, [String; 2]) {
    let folder = TempDir::new().unwrap();
    let all = [&["-O1", "-shared", "-fPIC"], flags].concat();
    let library = compile(folder.path(), &["cc"], "hostile-library.c", &all);
    let library = library.to_str().unwrap().to_owned();
    let all = [&["-Wl,--no-as-needed", &library], &FLAGS[..]].concat();
    let program = compile(folder.path(), &["cc"], "hostile.c", &all);
    (folder, [library, program.to_str().unwrap().to_owned()])
}

#[test]
fn core_files_leave_the_capture_out() {
    assert_eq!(same(&[plain(), "dump"]).out(), "dumped: 0\n");
}

#[test]
fn a_limit_of_the_size_of_files_does_no_harm() {
    let script = |limit: &str| format!("ulimit {limit} 1000; {} dlerror; ulimit {limit}", plain());
    // The hard limit leaves the program unrecorded, with a line on standard error.
    let run = Run::of(&["sh", "-c", &script("-f")]);
    assert!(
        run.out().starts_with("failed: /nonexistent.so"),
        "{}",
        run.out()
    );
    let run = same(&["sh", "-c", &script("-S -f")]);
    assert_eq!(
        run.others()
            .iter()
            .map(|other| blocks(other, 12345))
            .sum::<u64>(),
        1
    );
}

#[test]
fn the_dynamic_linker_is_not_asked_later() {
    let run = same(&[plain(), "dlerror"]);
    assert!(
        run.out().starts_with("failed: /nonexistent.so"),
        "{}",
        run.out()
    );
    let (_folder, [library, _]) = with_library(&["-DWAITS"]);
    let run = same(&[plain(), "dlopen", &library]);
    assert_eq!(run.out(), "thread\nloaded\n");
}

#[test]
fn an_allocator_without_usable_sizes_is_not_asked_for_them() {
    let (_folder, [_, program]) = with_library(&["-DALLOCATOR"]);
    assert_eq!(blocks(&same(&[&program]).profile(), 12345), 1);
}

#[test]
fn handlers_of_fork_before_ours_write_into_the_capture_of_the_child() {
    let (_folder, [_, program]) = with_library(&["-DATFORK"]);
    for (option, kept) in [("--processes=40", 40), ("--processes=3", 3)] {
        let run = Run::of(&[option, &program, "forks"]);
        assert_eq!((run.output.status.code(), &*run.err()), (Some(0), ""));
        assert_eq!(blocks(&run.profile(), 7777), 0);
        let others = run.others();
        assert_eq!(others.len(), kept);
        assert!(others.iter().all(|other| blocks(other, 7777) == 20));
    }
}

/// Reads and writes of the site whose smallest block has so many bytes, and bytes touched.
fn accesses(profile: &Profile, size: u64) -> (u64, u64, u64) {
    let mut sites = profile.sites.iter().filter(|site| site.smallest == size);
    let site = sites.next().expect("one site has blocks of this size");
    assert_eq!(site.unread_chunks, 0, "{site:?}");
    (site.reads, site.writes, site.touched_bytes)
}

/// Another thread frees a block that was handed on by a pipe before `write` has returned.
#[test]
fn what_is_handed_on_may_be_freed_at_once() {
    let flags = ["-O1", "-pthread", "-Wl,--no-as-needed"];
    let (folder, [library, _]) = with_library(&["-DWRITE"]);
    let slow = compile(
        folder.path(),
        &[CCSCOPE, "cc"],
        "hostile.c",
        &[&flags[..], &[&*library]].concat(),
    );
    for (program, count) in [(&slow, 100), (&INSTRUMENTED.1, 20_000)] {
        let run = Run::of(&[program.to_str().unwrap(), "hands", &count.to_string()]);
        assert_eq!(run.output.status.code(), Some(0), "{}", run.err());
        let (reads, writes, touched) = accesses(&run.profile(), 200);
        assert_eq!((reads, writes, touched), (count, count, count * 8));
        let others = run.profile();
        let mut others = others.sites.iter().filter(|site| site.smallest == 196);
        assert!(others.all(|site| site.untouched_chunks == count));
    }
}

#[test]
fn the_kernel_is_counted_for_the_bytes_that_it_moves() {
    let run = Run::of(&[INSTRUMENTED.1.to_str().unwrap(), "moves"]);
    assert_eq!(run.output.status.code(), Some(0), "{}", run.err());
    let profile = run.profile();
    assert_eq!(accesses(&profile, 100_000), (2, 0, 65536));
    let site = profile.sites.iter().find(|site| site.smallest == 48);
    let site = site.expect("one site has blocks of 48 bytes");
    assert_eq!((site.reads, site.writes, site.touched_bytes), (0, 1, 40));
    assert_eq!(profile.total.foreign_bytes, 65536 + 100 + 40);
}

#[test]
fn what_lies_where_the_capture_goes_stays() {
    let high = ["-DWAITS", "-Wl,-Ttext-segment=0x100000000000"];
    let (_folder, [_, program]) = with_library(&high);
    let run = Run::of(&[&program]);
    assert_eq!(
        (run.out().as_str(), run.output.status.code()),
        ("thread\n", Some(0))
    );
}

/// The instrumented program, run to do this, and the writes of its block of 128 bytes.
fn run(how: &str) -> (Run, u64) {
    let run = Run::of(&["--rate=0", INSTRUMENTED.1.to_str().unwrap(), how]);
    assert_eq!(run.output.status.code(), Some(0), "{}", run.err());
    let profile = run.profile();
    let site = profile.sites.iter().find(|site| site.smallest == 128);
    (run, site.map_or(0, |site| site.writes))
}

#[test]
fn threads_that_libc_starts_are_counted_exactly() {
    for (how, writes) in [("thrd", 2_000_000), ("timer", 20_000_000)] {
        assert_eq!(run(how).1, writes, "{how}");
    }
}

#[test]
fn a_child_of_fork_without_handlers_counts_for_itself() {
    let (run, writes) = run("_Fork");
    assert_eq!((writes, run.profile().threads.len()), (100, 1));
}

#[test]
fn what_a_thread_and_the_process_do_last_is_counted() {
    let total = run("keys").0.profile().total;
    assert!(total.other_writes >= 100_000, "{total:?}");
}

#[test]
fn windows_go_on_after_a_jump_out_of_a_handler() {
    let run = Run::of(&["--rate=10", INSTRUMENTED.1.to_str().unwrap(), "longjmp"]);
    assert_eq!(run.output.status.code(), Some(0), "{}", run.err());
    let windows = run.profile().windows.len();
    assert!(windows > 10, "{windows}");
}

#[test]
fn a_signal_may_come_while_a_window_is_written() {
    // Its handler ends the burst that the interrupted access was recorded in.
    let profile = same(&[INSTRUMENTED.1.to_str().unwrap(), "signals"]).profile();
    let site = profile.sites.iter().find(|site| site.smallest == 128);
    assert!(site.is_some_and(|site| site.writes > 6_000_000));
}

#[test]
fn memory_may_be_locked() {
    // What is locked is what is there, not 1.3 TiB.
    same(&[plain(), "mlockall"]);
}
