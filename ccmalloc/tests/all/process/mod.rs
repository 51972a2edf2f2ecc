//! Scenes in child processes of their own: before `main` and after it, fork, signals, limits on
//! memory.

mod early;
mod exits;
mod fork;
pub(crate) mod limits;
mod signals;

use std::process::Command;
use std::ptr::{null, null_mut};

const WHAT: &str = "CCMALLOC_TEST_PROCESS";

/// The scenes, by name.
const SCENES: &[(&str, fn())] = &[
    ("early", early::objects_from_before_main),
    ("exits: keys", exits::destructors_of_keys),
    ("exits: locals", exits::destructors_of_locals),
    ("exits: late frees", exits::frees_after_the_owner),
    ("exits: atexit", exits::handlers_at_exit),
    ("fork: among threads", fork::among_threads),
    ("fork: first", fork::during_first_allocations),
    ("fork: parent's objects", fork::objects_of_the_parent),
    ("limits: address space", limits::out_of_address_space),
    ("limits: steps", limits::every_mapping_fails_once),
    ("limits: growth", limits::mappings_grow_without_leaks),
    ("memory: pieces", limits::pieces_of_pools_waste_little),
    ("memory: small programs", limits::small_programs_stay_small),
    ("limits: spans", limits::spans_take_what_room_there_is),
    ("signals: reading", signals::a_handler_that_reads),
    ("signals: ambient", signals::a_handler_under_near),
];

/// Runs a scene in a child process, which must end well; returns what it printed.
fn stage(scene: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args("--exact process::child --nocapture --test-threads=1".split(' '))
        .env(WHAT, scene)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    assert!(status.success(), "{scene}: {status}\n{stdout}{stderr}");
    stdout
}

#[test]
#[ignore = "takes long: CI runs it"]
fn every_scene_ends_well() {
    let is_for_linux = |name: &str| name == "early" || name.starts_with("limits");
    for (name, _) in SCENES {
        // Tests of their own.
        if name.starts_with("memory") || (is_for_linux(name) && cfg!(not(target_os = "linux"))) {
            continue;
        }
        let printed = stage(name);
        let is_right = *name != "exits: atexit" || printed.contains(exits::AFTER_MAIN);
        assert!(is_right, "{name}: {printed}");
    }
}

/// Not a test of its own: runs the scene that [`WHAT`] names, in the child.
#[test]
fn child() {
    if let Ok(what) = std::env::var(WHAT) {
        let (_, scene) = SCENES.iter().find(|(name, _)| *name == what).unwrap();
        scene();
    }
}

/// An allocation of its own.
type Item = Box<[u64; 3]>;

/// Numbered objects, every other one with a hint.
fn half_hinted(count: u64) -> Vec<Item> {
    let root = Box::new(0);
    let make = |n| Box::new([n; 3]);
    (0..count)
        .map(|n| {
            if n % 2 == 0 {
                make(n)
            } else {
                ccmalloc::near(&*root, || make(n))
            }
        })
        .collect()
}

/// Allocates and frees some hundred objects of many sizes, half of them with a hint.
fn work(seed: usize) {
    let mut objects: Vec<Vec<usize>> = Vec::new();
    for i in 0..500 {
        let size = (i * 37 + seed) % 3000;
        objects.push(ccmalloc::near(&objects, || vec![i; size]));
        if i % 3 == 0 {
            objects.swap_remove(i / 3);
        }
    }
    let is_whole = |object: &Vec<usize>| object.windows(2).all(|pair| pair[0] == pair[1]);
    assert!(objects.iter().all(is_whole));
}

/// Runs `body` in a thread for which the standard library has not allocated anything, and waits for
/// it.
fn bare_thread(body: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void) {
    let mut thread: libc::pthread_t = 0;
    // SAFETY: `thread` is writable, the default attributes are null, and `body` takes and gives any
    // pointer.
    let made = unsafe { libc::pthread_create(&raw mut thread, null(), body, null_mut()) };
    assert_eq!(made, 0);
    // SAFETY: the thread was made above and is joined once.
    let joined = unsafe { libc::pthread_join(thread, null_mut()) };
    assert_eq!(joined, 0);
}
