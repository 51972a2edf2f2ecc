//! Misuse that the allocator can see, beyond [`invalid_frees`](crate::invalid_frees): one line on
//! stderr and an abort, in a child process.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccmalloc::{Heap, Region, cc_alloc, cc_dealloc, cc_realloc, raw};

const WHAT: &str = "CCMALLOC_TEST_MISUSE";

/// The names of the cases: the arms of the match in [`child`].
fn cases() -> impl Iterator<Item = &'static str> {
    let arms = include_str!("misuse.rs").lines();
    let arms = arms.filter_map(|line| line.strip_prefix("            \"")?.split_once("\" => "));
    arms.map(|(name, _)| name)
}

/// Not a test of its own: does what [`WHAT`] names, in the child.
#[test]
fn child() {
    let Ok(what) = std::env::var(WHAT) else {
        return;
    };
    let layout = Layout::new::<[u64; 3]>();
    let plain = cc_alloc(layout, None).unwrap();
    let large = Layout::from_size_align(3 << 20, 8).unwrap();
    let span = Layout::from_size_align(100_000, 8).unwrap();
    let new = |layout: Layout| cc_alloc(layout, None).unwrap().as_ptr();
    let inside = |object: NonNull<u8>, bytes: usize| {
        NonNull::new(object.as_ptr().wrapping_add(bytes)).unwrap()
    };
    let here = |address: usize| std::ptr::without_provenance_mut::<u8>(address);
    // A neighbour on each side of an object of 24 bytes, in its block.
    let before = cc_alloc(Layout::new::<u64>(), Some(NonNull::dangling())).unwrap();
    let packed = cc_alloc(layout, Some(before)).unwrap();
    let after = cc_alloc(layout, Some(before)).unwrap();
    assert_eq!(packed.addr().get(), before.addr().get() + 8);
    assert_eq!(after.addr().get(), before.addr().get() + 32);
    let by_another_thread = |free: Box<dyn FnOnce() + Send>| crate::in_thread(free);
    let dealloc_by_another_thread = |object: NonNull<u8>, layout: Layout| {
        let address = object.addr();
        // SAFETY: none, as below.
        crate::in_thread(move || unsafe {
            cc_dealloc(NonNull::without_provenance(address), layout);
        });
    };
    // SAFETY: none: each of these breaks the contract, and the process is expected to abort. No
    // memory is accessed through the pointers.
    unsafe {
        match what.as_str() {
            "foreign" => {
                let local = [0u8; 64];
                cc_dealloc(NonNull::from(&local).cast(), large);
            }
            "size too small" => cc_dealloc(packed, Layout::new::<[u64; 2]>()),
            "size of a neighbour too" => cc_dealloc(packed, Layout::new::<[u64; 6]>()),
            "interior pointer of a hinted object" => {
                cc_dealloc(inside(packed, 8), Layout::new::<[u64; 2]>());
            }
            "last granule of a hinted object" => {
                cc_dealloc(inside(packed, 16), Layout::new::<u64>());
            }
            "hinted object between others, twice" => {
                cc_dealloc(packed, layout);
                cc_dealloc(packed, layout);
            }
            "hinted object resized with a wrong size" => {
                let _ = cc_realloc(packed, Layout::new::<[u64; 4]>(), 40, None);
            }
            "inside an object over two pages" => {
                let mut region = Region::reserve(1 << 16).unwrap();
                let object = region.alloc_at(8192 - 64, Layout::new::<[u64; 512]>());
                assert_eq!(object, region.address(8192 - 64));
                raw::deallocate(object.wrapping_add(64));
            }
            "size of a slab's object by another thread" => {
                dealloc_by_another_thread(plain, Layout::new::<[u64; 8]>());
            }
            "slab's object resized with a wrong size" => {
                let _ = cc_realloc(plain, Layout::new::<[u64; 8]>(), 200, None);
            }
            "resized in place after it was freed" => {
                cc_dealloc(plain, layout);
                let _ = cc_realloc(plain, layout, 20, None);
            }
            "resized in place after its slot was given back" => {
                let tiny = Layout::new::<u64>();
                // Three slabs, of which the first is not the one that the class allocates from.
                let objects: Vec<NonNull<u8>> =
                    (0..20_000).map(|_| cc_alloc(tiny, None).unwrap()).collect();
                objects.iter().for_each(|&object| cc_dealloc(object, tiny));
                let _ = cc_realloc(objects[100], tiny, 4, None);
            }
            "interior pointer resized in place" => {
                let _ = cc_realloc(inside(plain, 8), layout, 20, None);
            }
            "hinted size by another thread" => {
                dealloc_by_another_thread(packed, Layout::new::<[u64; 2]>());
            }
            "hinted interior pointer by another thread" => {
                let address = packed.addr().get() + 8;
                by_another_thread(Box::new(move || raw::deallocate(here(address))));
                // The neighbours are the owner's: it finds out when it looks at what others have
                // freed.
                let _ = ccmalloc::check();
            }
            // Another thread's free is under way when the owner's gives the whole slot back, for
            // other objects to come.
            "last hinted object of a slot, by two threads" => {
                let mut region = Region::reserve(1).unwrap();
                let address = region.alloc_at(0, layout).addr();
                assert_eq!(address, region.address(0).addr());
                by_another_thread(Box::new(move || raw::deallocate(here(address))));
                drop(region);
                raw::deallocate(here(address));
            }
            "mapping by two threads at the same time" => {
                static READY: AtomicUsize = AtomicUsize::new(0);
                let address = cc_alloc(large, None).unwrap().addr().get();
                let free = move || {
                    READY.fetch_add(1, Ordering::AcqRel);
                    while READY.load(Ordering::Acquire) < 2 {
                        std::hint::spin_loop();
                    }
                    raw::deallocate(here(address));
                };
                let other = std::thread::spawn(free);
                free();
                other.join().unwrap();
            }
            "inside a large object of a heap, by another thread" => {
                let heap = Heap::new().unwrap();
                let address = heap.alloc(large, None).unwrap().addr().get();
                by_another_thread(Box::new(move || raw::deallocate(here(address + 64))));
            }
            "raw double free" => {
                raw::deallocate(plain.as_ptr());
                raw::deallocate(plain.as_ptr());
            }
            "raw double free of a hinted object" => {
                raw::deallocate(packed.as_ptr());
                raw::deallocate(packed.as_ptr());
            }
            "raw size too large" => raw::deallocate_sized(packed.as_ptr(), 25),
            "raw interior pointer" => raw::deallocate(plain.as_ptr().wrapping_add(8)),
            "raw misaligned pointer" => raw::deallocate(packed.as_ptr().wrapping_add(1)),
            "raw inside a span" => raw::deallocate(new(span).wrapping_add(64)),
            "raw later slot of a span" => raw::deallocate(new(span).wrapping_add(70_000)),
            "raw inside the first page of a mapping" => {
                raw::deallocate(new(large).wrapping_add(64));
            }
            "raw inside a mapping" => raw::deallocate(new(large).wrapping_add(1 << 20)),
            "raw double free of a mapping" => {
                let object = new(large);
                raw::deallocate(object);
                raw::deallocate(object);
            }
            "raw metadata" => raw::deallocate(here(plain.addr().get() & !((2 << 20) - 1))),
            "raw stack" => {
                let mut local = [0u8; 64];
                raw::deallocate(local.as_mut_ptr());
            }
            "raw static" => raw::deallocate(here(WHAT.as_ptr().addr())),
            "raw system malloc" => raw::deallocate(libc::malloc(24).cast()),
            "raw unmapped" => raw::deallocate(here(0x1234_5678_9000)),
            "raw beyond user space" => raw::deallocate(here(usize::MAX - 7)),
            "raw size of what is not ours" => {
                let _ = raw::usable_bytes(WHAT.as_ptr());
            }
            "raw realloc of what is not ours" => {
                let _ = raw::reallocate(here(WHAT.as_ptr().addr()), 100, None);
            }
            "raw realloc in place after free" => {
                raw::deallocate(plain.as_ptr());
                let _ = raw::reallocate(plain.as_ptr(), 20, None);
            }
            "raw size after free" => {
                raw::deallocate(plain.as_ptr());
                let _ = raw::usable_bytes(plain.as_ptr());
            }
            "raw realloc inside an object" => {
                let _ = raw::reallocate(packed.as_ptr().wrapping_add(8), 100, None);
            }
            _ => unreachable!("{what}"),
        }
    }
    println!("survived {what}");
}

#[cfg_attr(miri, ignore = "starts a process")]
#[test]
fn misuse_aborts_with_one_line() {
    assert!(cases().count() > 30);
    for what in cases() {
        crate::aborts_with_one_line("misuse::child", WHAT, what);
    }
}
