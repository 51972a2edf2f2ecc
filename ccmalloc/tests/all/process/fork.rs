//! fork: the child has one thread, and every heap as it was at that instant.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use ccmalloc::check;

use super::{bare_thread, half_hinted, work};

/// Runs `body` and a check of the heap in a child; returns its status, 0 when all is well.
fn in_child(body: impl FnOnce()) -> i32 {
    // SAFETY: the child only allocates, starts threads, checks and exits, which this allocator
    // promises to survive.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // No assertion may unwind into the parent's scope.
        let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            body();
            check().unwrap();
        }));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(fine.is_err())) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

pub(super) fn among_threads() {
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
            assert_eq!(in_child(|| work(round)), 0, "round {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Threads that have never allocated begin to, while others fork.
pub(super) fn during_first_allocations() {
    /// How many of its kind have started.
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn first(_: *mut libc::c_void) -> *mut libc::c_void {
        STARTED.fetch_add(1, Ordering::Relaxed);
        work(3);
        std::ptr::null_mut()
    }
    /// Forks before it has allocated anything: the child makes the first allocation of its only
    /// thread.
    extern "C" fn fork_first(_: *mut libc::c_void) -> *mut libc::c_void {
        // No thread of the child's own here: the address sanitizer forks with locks held that
        // ending threads take.
        let status = in_child(|| work(5));
        assert_eq!(status, 0);
        std::ptr::null_mut()
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    bare_thread(first);
                }
            });
        }
        for round in 0..40 {
            assert_eq!(in_child(|| work(round)), 0, "round {round}");
            bare_thread(fork_first);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(STARTED.load(Ordering::Relaxed) > 10);
}

/// The child frees objects of the thread that forked, of threads that do not exist in it, and of
/// threads that had ended.
pub(super) fn objects_of_the_parent() {
    let objects = || half_hinted(500);
    let ended = crate::in_thread(objects);
    let (give, take) = mpsc::channel();
    let (end, wait) = mpsc::channel::<()>();
    let living = std::thread::spawn(move || {
        give.send((objects(), vec![9u8; 100_000], vec![8u8; 3 << 20]))
            .unwrap();
        // Until the children are done.
        assert!(wait.recv().is_err());
    });
    let mut theirs = Some(take.recv().unwrap());
    let mut own = Some((objects(), ended));
    for _ in 0..5 {
        let status = in_child(|| {
            let (objects, span, mapping) = theirs.take().unwrap();
            let (own, ended) = own.take().unwrap();
            assert!(
                [&objects, &own, &ended]
                    .iter()
                    .all(|list| crate::are_numbered(list))
            );
            assert!(span.iter().all(|&byte| byte == 9) && mapping.iter().all(|&byte| byte == 8));
            // Some here, some in a thread of the child's.
            drop((own, span));
            crate::in_thread(move || drop((objects, ended, mapping)));
            for seed in 0..4 {
                crate::in_thread(move || work(seed));
            }
        });
        assert_eq!(status, 0);
    }
    // Nothing of it has happened here.
    let (objects, ..) = theirs.take().unwrap();
    assert!(crate::are_numbered(&objects));
    drop(end);
    living.join().unwrap();
}
