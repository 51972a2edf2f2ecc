//! Every kind of invalid free of every kind of memory: one line on stderr and an abort, in a child
//! process.
//!
//! A slab does not know sizes within its class (see "Known limits" in the crate's documentation): a
//! wrong size is tried there with a size that leads to another kind of memory.

use std::alloc::Layout;
use std::collections::HashSet;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use ccmalloc::{Heap, HeapRegion, Region, cc_alloc, cc_dealloc};

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
/// The owner of the object that this thread frees.
const MAKERS: [&str; 4] = ["own", "own heap's", "living thread's", "ended thread's"];
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

/// Frees an object of `heap`, or of a thread.
fn free(heap: Option<&Heap>, address: usize, layout: Layout) {
    let object = NonNull::new(std::ptr::with_exposed_provenance_mut(address)).unwrap();
    // SAFETY: none for the mistakes, which break the contract: the process is expected to abort. No
    // memory is accessed through the pointer.
    unsafe {
        match heap {
            Some(heap) => heap.dealloc(object, layout),
            None => cc_dealloc(object, layout),
        }
    }
}

/// The address of an object in this kind of memory, of `heap` or of the thread. Its neighbours stay
/// for ever.
fn make(heap: Option<&Heap>, memory: &str) -> usize {
    let layout = layout(memory);
    let alloc = |hint| {
        let object = match heap {
            Some(heap) => heap.alloc(layout, hint),
            None => cc_alloc(layout, hint),
        };
        object.unwrap().expose_provenance().get()
    };
    match memory {
        "active slab" | "span" | "mapping" => return alloc(None),
        "co-location page" => return alloc(Some(NonNull::dangling())),
        // The region ends here, the object does not.
        "region" => {
            let object = match heap {
                Some(heap) => HeapRegion::reserve(heap, 1).unwrap().alloc_at(6400, layout),
                None => Region::reserve(1).unwrap().alloc_at(6400, layout),
            };
            assert_eq!(object.addr() % Region::SEGMENT_BYTES, 6400);
            return object.expose_provenance();
        }
        _ => {}
    }
    // Slabs enough that the earlier ones are full.
    let objects: Vec<usize> = (0..10_000).map(|_| alloc(None)).collect();
    let slabs: HashSet<_> = objects.iter().map(|&object| object >> 16).collect();
    assert!(slabs.len() >= 3);
    let is_middle = |object: &usize| object >> 16 == objects[5000] >> 16;
    let middle: Vec<_> = objects.iter().copied().filter(is_middle).collect();
    assert!(middle.len() > 2000);
    let freed = match memory {
        "full slab" => 0..0,
        "listed slab" => 100..101,
        "last object of a slab" => 1..middle.len(),
        _ => unreachable!("{memory}"),
    };
    middle[freed]
        .iter()
        .for_each(|&object| free(heap, object, layout));
    middle[0]
}

fn made_by(maker: &str, heap: Option<&Heap>, memory: &'static str) -> usize {
    if maker.starts_with("own") {
        return make(heap, memory);
    }
    let ends = maker == "ended thread's";
    let (give, take) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        give.send(make(None, memory)).unwrap();
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
    let heap = (maker == "own heap's").then(|| Heap::new().unwrap());
    let heap = heap.as_ref();
    let address = made_by(maker, heap, memory);
    match mistake {
        "double free" => {
            free(heap, address, layout);
            free(heap, address, layout);
        }
        "double free by two threads" => {
            // Either may have taken the heap over; that one finds out when it looks, if not
            // before.
            static TURN: AtomicUsize = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    wait_for(&TURN, 1);
                    free(None, address, layout);
                    TURN.store(2, Ordering::Release);
                    wait_for(&TURN, 3);
                    ccmalloc::check().unwrap();
                });
                scope.spawn(|| {
                    TURN.store(1, Ordering::Release);
                    wait_for(&TURN, 2);
                    free(None, address, layout);
                    ccmalloc::check().unwrap();
                    TURN.store(3, Ordering::Release);
                });
            });
            ccmalloc::check().unwrap();
        }
        "double free by another thread and its owner" => {
            if maker.starts_with("own") {
                crate::in_thread(move || free(None, address, layout));
            } else {
                free(None, address, layout);
            }
            free(heap, address, layout);
            ccmalloc::check().unwrap();
            heap.map_or(Ok(()), Heap::check).unwrap();
        }
        "misaligned" => free(heap, address + 4, layout),
        "inside" => {
            // To a slab and to large objects any address but the start is wrong; a co-location page
            // knows granules.
            let knows_granules = memory == "co-location page" || memory == "region";
            free(heap, address + if knows_granules { 1 } else { 8 }, layout);
        }
        "wrong kind of size" => {
            let bytes = match memory {
                "span" => 300_000,
                "mapping" => 5 << 20,
                _ => 20_000,
            };
            free(heap, address, Layout::from_size_align(bytes, 8).unwrap());
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
