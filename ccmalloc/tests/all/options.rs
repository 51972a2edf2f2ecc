//! Random programs under each option, and among more threads than may have heaps of their own.

use std::sync::Barrier;

use ccmalloc::{check, near, set_options};

use crate::are_numbered;

const OPTIONS: &str = "CCMALLOC_TEST_OPTIONS";

#[cfg_attr(miri, ignore = "starts processes")]
#[test]
fn random_programs_run_under_each_option() {
    for options in [
        "huge_pages:never",
        "huge_pages:always",
        "decay_ms:0",
        "kept_bytes:0",
        "kept_bytes:1G,decay_ms:3600000",
        "decay_ms:0,background_thread:true",
        "errors:warn",
    ] {
        let tests = [
            "options::child",
            "program::a_long_program",
            "races::",
            "--test-threads=2",
        ];
        let stdout = crate::passes(&tests, OPTIONS, options);
        assert!(!stdout.contains(" 0 passed"), "{options}: {stdout}");
    }
}

/// Not a test of its own: sets the options that [`OPTIONS`] names, in the child, whose other tests
/// run beside it.
#[test]
fn child() {
    if let Ok(options) = std::env::var(OPTIONS) {
        set_options(&options).unwrap();
    }
}

#[cfg_attr(miri, ignore = "Miri's threads are slow")]
#[test]
fn more_threads_than_heaps() {
    if !crate::alone("options::more_threads_than_heaps") {
        return;
    }
    const THREADS: u16 = 700;
    let barrier = Barrier::new(THREADS.into());
    let numbered = |from: u64| -> Vec<Box<[u64; 5]>> {
        (0..100)
            .map(|number| match (number + from) % 2 {
                0 => Box::new([number; 5]),
                _ => near(&barrier, || Box::new([number; 5])),
            })
            .collect()
    };
    let left: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (barrier, numbered) = (&barrier, &numbered);
                let work = move || {
                    let first = numbered(thread.into());
                    let mut large = vec![1u8; 40_000 + 4000 * usize::from(thread % 600)];
                    barrier.wait();
                    let second = numbered(u64::from(thread) + 1);
                    large.resize(large.len() * 2, 1);
                    assert!(are_numbered(&first) && are_numbered(&second));
                    assert!(large.iter().all(|&byte| byte == 1));
                    check().unwrap();
                    drop(first);
                    (second, large)
                };
                let builder = std::thread::Builder::new().stack_size(64 << 10);
                builder.spawn_scoped(scope, work).unwrap()
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    // 512 threads have heaps; one more is this thread's, others are shared or were in use at once.
    assert!(
        ccmalloc::stats().heaps < usize::from(THREADS),
        "{:?}",
        ccmalloc::stats()
    );
    for (objects, large) in left {
        assert!(are_numbered(&objects) && large.iter().all(|&byte| byte == 1));
    }
    check().unwrap();
    let before = ccmalloc::stats();
    ccmalloc::purge();
    let after = ccmalloc::stats();
    assert_eq!(after.kept_bytes, 0);
    assert!(after.chunk_bytes <= before.chunk_bytes);
}

#[cfg_attr(miri, ignore = "waits")]
#[cfg(target_os = "linux")]
#[test]
fn a_sweep_while_the_owner_works_takes_nothing_in_use() {
    // Whatever is due at once is taken; owners and sweeps meet in each other's chunks.
    if !crate::alone("options::a_sweep_while_the_owner_works_takes_nothing_in_use") {
        return;
    }
    set_options("decay_ms:0").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3u64 {
            let stop = &stop;
            scope.spawn(move || {
                let mut objects: Vec<Vec<u64>> = Vec::new();
                let mut state = seed + 1;
                for _ in 0..crate::times(60_000) {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let length = 4096 + (state >> 40) as usize % 20_000;
                    if objects.len() < 40 {
                        objects.push(vec![length as u64; length]);
                    } else {
                        let object = objects.swap_remove((state >> 33) as usize % 40);
                        let length = object.len() as u64;
                        assert!(object.iter().step_by(511).all(|&word| word == length));
                    }
                }
                check().unwrap();
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                ccmalloc::purge();
                std::thread::yield_now();
            }
        });
    });
}
