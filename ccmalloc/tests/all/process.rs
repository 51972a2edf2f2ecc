//! What the whole process goes through: fork, limits on memory, mappings that grow. Each in a child process of its own.

use std::alloc::{GlobalAlloc, Layout};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use ccmalloc::{CcMalloc, check};

const WHAT: &str = "CCMALLOC_TEST_PROCESS";

/// Runs `scene` in a child process.
fn stage(scene: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "process::child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(WHAT, scene)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{scene}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Not a test of its own: plays what [`WHAT`] names, in the child.
#[test]
fn child() {
    match std::env::var(WHAT).as_deref() {
        Err(_) => {}
        Ok("fork") => fork_among_threads(),
        Ok("limit") => out_of_address_space(),
        Ok("growth") => mappings_grow_without_leaks(),
        Ok(other) => unreachable!("{other}"),
    }
}

#[cfg_attr(miri, ignore = "starts a process")]
#[test]
fn forks_among_threads_that_allocate() {
    stage("fork");
}

#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "starts a process")]
#[test]
fn a_limit_on_memory_gives_null() {
    stage("limit");
}

#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "starts a process")]
#[test]
fn growing_mappings_leaks_no_address_space() {
    stage("growth");
}

fn work(seed: usize) {
    let mut objects: Vec<Vec<usize>> = Vec::new();
    for i in 0..500 {
        let size = (i * 37 + seed) % 3000;
        objects.push(ccmalloc::near(&objects, || vec![i; size]));
        if i % 3 == 0 {
            objects.swap_remove(i / 3);
        }
    }
    assert!(
        objects
            .iter()
            .all(|object| object.windows(2).all(|pair| pair[0] == pair[1]))
    );
}

fn fork_among_threads() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    work(seed);
                }
            });
        }
        for round in 0..50 {
            // SAFETY: the child only allocates, checks and exits, which this allocator promises to survive.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                // No assertion may unwind into the parent's scope.
                let fine = std::panic::catch_unwind(|| {
                    work(round);
                    check().unwrap();
                });
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(i32::from(fine.is_err())) };
            }
            let mut status = 0;
            // SAFETY: waits for the child just made.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            assert_eq!(status, 0, "round {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Address space in use, in bytes.
pub(crate) fn mapped_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').next().unwrap().parse::<usize>().unwrap() * 4096
}

fn out_of_address_space() {
    // Relative to what is in use: a sanitizer's shadow alone takes terabytes.
    let bytes = (mapped_bytes() + (512 << 20)) as libc::rlim_t;
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: a valid limit.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    assert_eq!(result, 0);
    for bytes in [24, 64, 5000, 100_000, 3 << 20] {
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        let mut last: *mut u8 = std::ptr::null_mut();
        let mut count = 0usize;
        loop {
            // SAFETY: the layout is not empty.
            let object = unsafe { CcMalloc.alloc(layout) };
            if object.is_null() {
                break;
            }
            // SAFETY: fresh, aligned, and at least 24 bytes.
            unsafe { object.cast::<*mut u8>().write(last) };
            last = object;
            count += 1;
        }
        assert!(
            count > (200 << 20) / bytes.next_multiple_of(1 << 16).max(bytes),
            "{bytes}: {count}"
        );
        // SAFETY: `last` is live; on failure it stays as it is, and no other memory is left.
        assert!(unsafe { CcMalloc.realloc(last, layout, 600 << 20) }.is_null());
        while !last.is_null() {
            // SAFETY: written above.
            let next = unsafe { last.cast::<*mut u8>().read() };
            // SAFETY: allocated above with this layout.
            unsafe { CcMalloc.dealloc(last, layout) };
            last = next;
        }
        check().unwrap();
    }
}

fn mappings_grow_without_leaks() {
    let mut first = 0;
    for round in 0..200usize {
        // Lengths on both sides of where huge pages are asked for, most of them no multiple of 2 MiB.
        let mut vector: Vec<u8> = Vec::with_capacity((9 << 20) + round * 4096);
        vector.extend([1, 2, 3]);
        for mebibytes in [12, 13, 40] {
            vector.reserve_exact((mebibytes << 20) - vector.len());
            assert_eq!(vector, [1, 2, 3]);
        }
        vector.shrink_to(10 << 20);
        // Advice of the program's own for a part cuts the mapping in pieces; then it is copied.
        ccmalloc::advise_huge_pages(vector.as_ptr().wrapping_add(1 << 20), 4 << 20);
        vector.reserve_exact(20 << 20);
        assert_eq!(vector, [1, 2, 3]);
        drop(vector);
        if round == 10 {
            first = mapped_bytes();
        }
    }
    let last = mapped_bytes();
    assert!(last < first + (64 << 20), "{first} -> {last}");
}
