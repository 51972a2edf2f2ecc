//! Signals. What is supported: a handler may read objects and ask [`ccmalloc::contains`] at any
//! time. It may allocate, free and use `near` only where it is known not to have interrupted the
//! allocator (like `malloc`, it is not async-signal-safe): a signal that the program raises itself,
//! one that is let through between allocations; the ambient hint of what it interrupted is then as
//! it was.

use std::alloc::Layout;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ccmalloc::{cc_alloc, cc_dealloc, check, contains, near};

static SIGNALS: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);
static ROOT: AtomicPtr<u64> = AtomicPtr::new(null_mut());

fn on(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: a zeroed `sigaction` is one without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: a valid action with a handler that takes the signal's number.
    let set = unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
    assert_eq!(set, 0);
}

/// A timer interrupts allocations, hinted and not, wherever they are.
pub(super) fn a_handler_that_reads() {
    extern "C" fn handler(_: libc::c_int) {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
        let root = ROOT.load(Ordering::Acquire);
        // SAFETY: the root lives until the timer is off.
        let fine = contains(root.cast())
            && unsafe { root.read() } == 42
            && !contains((&raw const SIGNALS).cast());
        WRONG.fetch_add(usize::from(!fine), Ordering::Relaxed);
    }
    fn timer(period: Duration) {
        let period = libc::timeval {
            tv_sec: 0,
            tv_usec: period.subsec_micros().into(),
        };
        let timer = libc::itimerval {
            it_interval: period,
            it_value: period,
        };
        // SAFETY: a valid timer; the old one is not asked for.
        let set = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut()) };
        assert_eq!(set, 0);
    }
    let mut root = near(&(), || Box::new(42));
    ROOT.store(&raw mut *root, Ordering::Release);
    on(libc::SIGALRM, handler);
    timer(Duration::from_micros(100));
    let started = Instant::now();
    let mut objects = Vec::new();
    while SIGNALS.load(Ordering::Relaxed) < 500 && started.elapsed() < Duration::from_secs(20) {
        for n in 0..1000usize {
            objects.push(near(&*root, || Box::new([n; 3])));
            objects.push(Box::new([n; 3]));
            if n % 3 == 0 {
                objects.swap_remove(n * n % objects.len());
            }
        }
        assert!(objects.iter().all(|object| object[0] == object[2]));
        objects.clear();
        check().unwrap();
    }
    timer(Duration::ZERO);
    assert!(
        SIGNALS.load(Ordering::Relaxed) >= 100,
        "hardly a signal came"
    );
    assert_eq!(WRONG.load(Ordering::Relaxed), 0);
}

/// A signal that the program raises between two allocations under `near`.
pub(super) fn a_handler_under_near() {
    extern "C" fn handler(_: libc::c_int) {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
        let layout = Layout::new::<[u64; 2]>();
        // An ambient hint of its own, and one more inside.
        let fine = near(&SIGNALS, || {
            let own = Box::new([1u64; 2]);
            near(&*own, || {
                let mate = Box::new([2u64; 2]);
                mate.as_ptr().addr() / 64 == own.as_ptr().addr() / 64
            })
        });
        let plain = cc_alloc(layout, None);
        WRONG.fetch_add(usize::from(!fine || plain.is_none()), Ordering::Relaxed);
        if let Some(plain) = plain {
            // SAFETY: allocated above with this layout.
            unsafe { cc_dealloc(plain, layout) };
        }
    }
    on(libc::SIGUSR1, handler);
    let line = |object: &[u64; 2]| object.as_ptr().addr() / 64;
    for _ in 0..100 {
        let root = near(&(), || Box::new([0u64; 2]));
        let (before, after) = near(&*root, || {
            let before = Box::new([1u64; 2]);
            // SAFETY: runs the handler in this thread, before it returns.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
            (before, Box::new([2u64; 2]))
        });
        assert_eq!((line(&before), line(&after)), (line(&root), line(&root)));
        // SAFETY: runs the handler in this thread, while no hint is in force.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        let plain = Box::new([3u64; 2]);
        assert_ne!(line(&plain), line(&root));
    }
    assert_eq!(SIGNALS.load(Ordering::Relaxed), 200);
    assert_eq!(WRONG.load(Ordering::Relaxed), 0);
    check().unwrap();
}
