//! Everything here runs with `CcMalloc` as global allocator: the test harness, quickcheck and the
//! standard library are part of the test.
#![cfg_attr(feature = "nightly", feature(allocator_api))]

#[cfg(feature = "allocator-api2")]
mod collections;
mod heaps;
mod idle;
mod invalid_frees;
mod misuse;
mod operation;
mod options;
mod placement;
mod process;
mod program;
mod races;
mod raw;
mod region;
mod shadow;
mod slabs;
mod std_types;
mod threads;

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

/// `count`, or a small part of it under Miri, which takes a thousand times as long.
const fn times(count: usize) -> usize {
    if cfg!(miri) {
        count.div_ceil(100)
    } else {
        count
    }
}

/// Whether each of the objects holds its number.
fn are_numbered<const WORDS: usize>(objects: &[Box<[u64; WORDS]>]) -> bool {
    (0..)
        .zip(objects)
        .all(|(number, object)| **object == [number; WORDS])
}

/// Runs `body` in a thread of its own.
fn in_thread<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(body).join().unwrap()
}

/// Runs the test `name` alone in a child process. Returns `true` in that process, and `false` in
/// the parent when the test has passed. (Miri starts no process, and runs one test at a time.)
///
/// For tests of how much memory the process has, and of where objects lie: a thread may take over
/// the heap of one that ended, with the objects that are left in it.
fn alone(name: &str) -> bool {
    const ALONE: &str = "CCMALLOC_TEST_ALONE";
    if cfg!(miri) || std::env::var_os(ALONE).is_some() {
        return true;
    }
    let stdout = passes(&["--exact", name, "--test-threads=1"], ALONE, name);
    assert!(
        stdout.contains("1 passed"),
        "no test is called {name}: {stdout}"
    );
    false
}

/// Runs tests in a child process, which must pass, with a variable in its environment; returns
/// what they print.
fn passes(arguments: &[&str], variable: &str, value: &str) -> String {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(arguments)
        .env(variable, value)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{value}: {stdout}{stderr}");
    stdout
}

/// Runs the test `child` in a process of its own, with `what` in its environment. It must abort
/// with one line that names an address.
fn aborts_with_one_line(child: &str, variable: &str, what: &str) {
    use std::os::unix::process::ExitStatusExt;
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--nocapture", "--test-threads=1"])
        .env(variable, what)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(6), "{what}: {stderr}");
    let mut lines = stderr.lines().filter(|line| line.starts_with("ccmalloc: "));
    let only = lines.next().filter(|_| lines.next().is_none());
    assert!(
        only.is_some_and(|line| line.contains(" 0x")),
        "{what}: {stderr}"
    );
}
