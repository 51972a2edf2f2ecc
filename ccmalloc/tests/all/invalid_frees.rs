//! Every kind of invalid free of every kind of memory: one line on stderr and an abort. Each case
//! in a child process.
//!
//! A slab does not know sizes within its class (see "Known limits" in the crate's documentation): a
//! wrong size is tried there with a size that leads to another kind of memory.

use std::alloc::Layout;
use std::collections::HashSet;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use ccmalloc::{Region, cc_alloc, cc_dealloc};

const WHAT: &str = "CCMALLOC_TEST_INVALID_FREE";

const MEMORY: [&str; 8] = [
    "active slab",
    "listed slab",
    "full slab",
    "last object of a slab",
    "co-location page",
    "region",
    "span",
    "mapping",
];
/// Who made the object that this thread frees.
const MAKERS: [&str; 3] = ["own", "living thread's", "ended thread's"];
const MISTAKES: [&str; 6] = [
    "double free",
    "double free by two threads",
    "double free by another thread and its owner",
    "misaligned",
    "inside",
    "wrong kind of size",
];

const SMALL: Layout = Layout::new::<[u64; 3]>();

fn layout(memory: &str) -> Layout {
    let bytes = match memory {
        "span" => 100_000,
        "mapping" => 3 << 20,
        _ => return SMALL,
    };
    Layout::from_size_align(bytes, 8).unwrap()
}

/// An object in the kind of memory that is asked for. What it needs beside it stays for ever.
fn make(memory: &str) -> NonNull<u8> {
    let slab = |object: NonNull<u8>| object.addr().get() >> 16;
    match memory {
        "active slab" | "span" | "mapping" => cc_alloc(layout(memory), None).unwrap(),
        "co-location page" => cc_alloc(SMALL, Some(NonNull::dangling())).unwrap(),
        "region" => {
            let mut region = Region::reserve(1).unwrap();
            let object = region.alloc_at(6400, SMALL);
            assert_eq!(object, region.address(6400));
            // The region ends here, the object does not.
            NonNull::new(object).unwrap()
        }
        _ => {
            // Slabs enough that the earlier ones are full.
            let objects: Vec<_> = (0..10_000)
                .map(|_| cc_alloc(SMALL, None).unwrap())
                .collect();
            let slabs: HashSet<_> = objects.iter().map(|&object| slab(object)).collect();
            assert!(slabs.len() >= 3);
            let middle: Vec<_> = objects
                .iter()
                .copied()
                .filter(|&object| slab(object) == slab(objects[5000]))
                .collect();
            assert!(middle.len() > 2000);
            match memory {
                "full slab" => {}
                // SAFETY: allocated above with this layout.
                "listed slab" => unsafe { cc_dealloc(middle[100], SMALL) },
                "last object of a slab" => {
                    for &object in &middle[1..] {
                        // SAFETY: as above.
                        unsafe { cc_dealloc(object, SMALL) };
                    }
                }
                _ => unreachable!("{memory}"),
            }
            middle[0]
        }
    }
}

/// A pointer as a number, so that it may change threads.
fn made_by(maker: &str, memory: &'static str) -> usize {
    if maker == "own" {
        return make(memory).as_ptr().expose_provenance();
    }
    let ends = maker == "ended thread's";
    let (give, take) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        give.send(make(memory).as_ptr().expose_provenance())
            .unwrap();
        if !ends {
            loop {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    });
    let address = take.recv().unwrap();
    if ends {
        thread.join().unwrap();
    }
    address
}

/// Waits until `turn` is `value`, without an allocation that could hand out again what was freed,
/// or take frees in.
fn wait_for(turn: &AtomicUsize, value: usize) {
    while turn.load(Ordering::Acquire) != value {
        std::thread::yield_now();
    }
}

/// Not a test of its own: does what [`WHAT`] names, in the child.
#[test]
fn child() {
    let Ok(what) = std::env::var(WHAT) else {
        return;
    };
    let mut what = what.split('|');
    let mut next = |list: &[&'static str]| {
        let name = what.next().unwrap();
        *list.iter().find(|&&known| known == name).unwrap()
    };
    let (maker, memory, mistake) = (next(&MAKERS), next(&MEMORY), next(&MISTAKES));
    let layout = layout(memory);
    let address = made_by(maker, memory);
    let free = move |address: usize, layout: Layout| {
        let object = NonNull::new(std::ptr::with_exposed_provenance_mut(address)).unwrap();
        // SAFETY: none: this breaks the contract, and the process is expected to abort. No memory
        // is accessed through the pointer.
        unsafe { cc_dealloc(object, layout) };
    };
    match mistake {
        "double free" => {
            free(address, layout);
            free(address, layout);
        }
        "double free by two threads" => {
            // Either may have taken the heap over; that one finds out when it looks, if not
            // before.
            static TURN: AtomicUsize = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    wait_for(&TURN, 1);
                    free(address, layout);
                    TURN.store(2, Ordering::Release);
                    wait_for(&TURN, 3);
                    ccmalloc::check().unwrap();
                });
                scope.spawn(|| {
                    TURN.store(1, Ordering::Release);
                    wait_for(&TURN, 2);
                    free(address, layout);
                    ccmalloc::check().unwrap();
                    TURN.store(3, Ordering::Release);
                });
            });
            ccmalloc::check().unwrap();
        }
        "double free by another thread and its owner" => {
            if maker == "own" {
                crate::in_thread(move || free(address, layout));
            } else {
                free(address, layout);
            }
            free(address, layout);
            ccmalloc::check().unwrap();
        }
        "misaligned" => free(address + 4, layout),
        "inside" => {
            // To a slab and to large objects any address but the start is wrong; a co-location page
            // knows granules.
            let step = if memory == "co-location page" || memory == "region" {
                1
            } else {
                8
            };
            free(address + step, layout);
        }
        "wrong kind of size" => {
            let bytes = match memory {
                "span" => 300_000,
                "mapping" => 5 << 20,
                _ => 20_000,
            };
            free(address, Layout::from_size_align(bytes, 8).unwrap());
        }
        _ => unreachable!("{mistake}"),
    }
    println!("survived {maker} {memory} {mistake}");
}

#[cfg_attr(miri, ignore = "starts a process")]
#[test]
fn invalid_frees_abort_with_one_line() {
    for maker in MAKERS {
        for memory in MEMORY {
            for mistake in MISTAKES {
                let what = format!("{maker}|{memory}|{mistake}");
                crate::aborts_with_one_line("invalid_frees::child", WHAT, &what);
            }
        }
    }
}
