//! The ends of threads and of the process.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ccmalloc::{CcMalloc, check, near, stats};

use super::{bare_thread, early, work};

/// An allocation of its own.
type Item<const WORDS: usize> = Box<[u64; WORDS]>;

/// How often [`at_thread_exit`] has run.
static RUNS: AtomicUsize = AtomicUsize::new(0);
/// Keys of the test's own.
static KEYS: Mutex<Vec<libc::pthread_key_t>> = Mutex::new(Vec::new());

thread_local! {
    /// In how many more rounds the destructors set their keys again. Without a destructor of its
    /// own, it lives as long as the thread.
    static ROUNDS: Cell<usize> = const { Cell::new(0) };
}

/// A destructor of keys made before and after the allocator's own. POSIX runs them in no fixed
/// order, and all again, four times at most, as long as they set their keys.
///
/// # Safety
/// - `value` is a box of a string, given up: what [`set_keys`] put there.
pub(super) unsafe extern "C" fn at_thread_exit(value: *mut libc::c_void) {
    RUNS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller promises a box of a string, and gives it up.
    let message = unsafe { Box::from_raw(value.cast::<String>()) };
    assert_eq!(*message, "from the thread");
    work(1);
    let rounds = ROUNDS.get();
    if rounds > 0 {
        ROUNDS.set(rounds - 1);
        set_keys();
    }
}

/// Gives every key a value of this thread's.
fn set_keys() {
    let first = early::FIRST_KEY.load(Ordering::Relaxed).checked_sub(1);
    let first = first.and_then(|key| libc::pthread_key_t::try_from(key).ok());
    let keys = KEYS.lock().unwrap();
    for key in first.into_iter().chain(keys.iter().copied()) {
        // SAFETY: a key that exists; `getspecific` returns null or what was set below.
        unsafe {
            if libc::pthread_getspecific(key).is_null() {
                let value = near(&keys, || Box::new(String::from("from the thread")));
                libc::pthread_setspecific(key, Box::into_raw(value).cast());
            }
        }
    }
}

pub(super) fn destructors_of_keys() {
    extern "C" fn body(_: *mut libc::c_void) -> *mut libc::c_void {
        ROUNDS.set(ROUNDS_NOW.load(Ordering::Relaxed));
        set_keys();
        std::ptr::null_mut()
    }
    static ROUNDS_NOW: AtomicUsize = AtomicUsize::new(0);
    assert!(cfg!(not(target_os = "linux")) || early::FIRST_KEY.load(Ordering::Relaxed) != 0);
    for _ in 0..3 {
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: `key` is writable, and the destructor has the right signature.
        let made = unsafe { libc::pthread_key_create(&raw mut key, Some(at_thread_exit)) };
        assert_eq!(made, 0);
        KEYS.lock().unwrap().push(key);
    }
    for rounds in [0, 1, 2, 3, 50] {
        // With 50, the last round leaves a heap without a thread: a few of them are lost, and
        // nothing else.
        ROUNDS_NOW.store(rounds, Ordering::Relaxed);
        for _ in 0..20 {
            bare_thread(body);
        }
        check().unwrap();
    }
    assert!(RUNS.load(Ordering::Relaxed) >= 5 * 20 * 3);
    for seed in 0..10 {
        crate::in_thread(move || work(seed));
    }
    assert!(stats().heaps < 60, "{}", stats().heaps);
}

/// Makes and drops one of each when it is dropped itself.
struct Sociable(HashMap<String, Vec<u64>>);

impl Drop for Sociable {
    fn drop(&mut self) {
        let sorted: BTreeMap<_, _> = self.0.drain().collect();
        let shared: Vec<Rc<str>> = near(&sorted, || {
            sorted.keys().map(|key| Rc::from(key.as_str())).collect()
        });
        for (number, (key, list)) in sorted.iter().enumerate() {
            assert_eq!((&*shared[number], list.len()), (key.as_str(), key.len()));
        }
        work(sorted.len());
        // Of locals that are gone already, or are made now for the first time.
        let _gone = LAST.try_with(|last| last.borrow_mut().extend(sorted.into_keys()));
        let _gone = FIRST.try_with(|first| first.borrow_mut().push(Box::new([1; 10])));
        check().unwrap();
    }
}

thread_local! {
    static FIRST: RefCell<Vec<Item<10>>> = const { RefCell::new(Vec::new()) };
    static MIDDLE: RefCell<Option<Sociable>> = const { RefCell::new(None) };
    static LAST: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static NEVER_BEFORE: RefCell<Option<Sociable>> = const { RefCell::new(None) };
}

pub(super) fn destructors_of_locals() {
    fn fill() -> Option<Sociable> {
        Some(Sociable(
            (0..100)
                .map(|n| ("k".repeat(n % 7 + n), vec![1; n % 7 + n]))
                .collect(),
        ))
    }
    for order in 0..3 {
        crate::in_thread(move || {
            if order != 1 {
                FIRST.with_borrow_mut(|first| first.push(Box::new([0; 10])));
            }
            MIDDLE.with_borrow_mut(|middle| *middle = fill());
            if order != 2 {
                LAST.with_borrow_mut(|last| last.push(String::from("last")));
            }
            NEVER_BEFORE.with_borrow_mut(|other| *other = fill());
        });
    }
    check().unwrap();
}

pub(super) fn frees_after_the_owner() {
    type Objects = (Vec<Item<3>>, Vec<u8>, Vec<u8>, Vec<Arc<u64>>);
    fn make() -> Objects {
        let shared = (0..10).map(Arc::new).collect();
        (
            super::half_hinted(1000),
            vec![1; 100_000],
            vec![2; 3 << 20],
            shared,
        )
    }
    let ended: Vec<Objects> = (0..8).map(|_| crate::in_thread(make)).collect();
    for (number, objects) in ended.into_iter().enumerate() {
        let verify_and_drop = move || {
            let (boxes, span, mapping, shared) = objects;
            assert!(crate::are_numbered(&boxes));
            assert!(span.iter().all(|&byte| byte == 1) && mapping.iter().all(|&byte| byte == 2));
            assert!((0..).zip(&shared).all(|(n, item)| **item == n));
        };
        // By a thread that adopts a heap meanwhile, and by one that has its own.
        if number % 2 == 0 {
            crate::in_thread(verify_and_drop);
        } else {
            verify_and_drop();
        }
        check().unwrap();
    }
}

pub(super) const AFTER_MAIN: &str = "freed and allocated after main";
static KEPT: Mutex<Vec<Item<3>>> = Mutex::new(Vec::new());

pub(super) fn handlers_at_exit() {
    extern "C" fn handler() {
        let kept = std::mem::take(&mut *KEPT.lock().unwrap());
        let fine = kept.len() == 200 && crate::are_numbered(&kept);
        drop(kept);
        work(2);
        let layout = Layout::new::<[u64; 100]>();
        // SAFETY: the layout is not empty; never freed.
        let last = unsafe { CcMalloc.alloc(layout) };
        if fine && !last.is_null() && check().is_ok() {
            // SAFETY: writes a string to stdout.
            unsafe { libc::write(1, AFTER_MAIN.as_ptr().cast(), AFTER_MAIN.len()) };
        }
    }
    // SAFETY: the handler may run at any time after.
    assert_eq!(unsafe { libc::atexit(handler) }, 0);
    *KEPT.lock().unwrap() = super::half_hinted(200);
}
