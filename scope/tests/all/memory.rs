//! The memory that profiling takes, of the program and of the tool.

use std::mem::MaybeUninit;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::programs::{CCSCOPE, command, compile};

/// Runs a command; returns the largest peak, in KiB, of its process and of those that it waited
/// for.
#[expect(
    clippy::zombie_processes,
    reason = "`wait4` waits for it, and tells the peak"
)]
fn peak(command: &mut Command) -> i64 {
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: the child is ours, and nobody else waits for it.
    let ended = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    assert_eq!((ended, status), (pid, 0));
    // SAFETY: numbers may be 0, and the call has filled them in.
    unsafe { usage.assume_init() }.ru_maxrss
}

/// Memory hardly grows with the number of allocations, with 1024 call stacks: a million took 312
/// MiB, and 339 with loads and stores, beside 120; twenty million took 347 and 377, beside 125.
#[test]
#[ignore = "takes long: CI runs it"]
fn memory_is_bounded_by_that_of_the_program() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-fno-builtin"];
    let program = compile(folder.path(), &["cc"], "many.c", &flags);
    let alone = peak(command(&program).arg("400000"));
    let bound = |compiler: &[&str], options: &[&str]| {
        let program = compile(folder.path(), compiler, "many.c", &flags);
        let mut profiled = command(CCSCOPE);
        profiled.args(["run", "-q", "-o", "main.ccscope"]);
        profiled.args(options).current_dir(folder.path());
        let profiled = peak(profiled.arg(&program).arg("400000"));
        assert!(
            profiled <= 2 * alone + (256 << 10),
            "{options:?}: {profiled} KiB, {alone} KiB without the profiler"
        );
    };
    bound(&["cc"], &[]);
    bound(&["cc"], &["--full"]);
    bound(&[CCSCOPE, "cc"], &[]);
}
