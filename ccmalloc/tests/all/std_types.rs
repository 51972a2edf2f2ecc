//! The standard library's types, on sizes around every boundary.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::{BTreeSet, HashSet};

use ccmalloc::CcMalloc;

#[test]
fn vectors_grow_through_every_kind_of_memory() {
    let mut vector = Vec::new();
    for i in 0..3_000_000u32 {
        vector.push(i);
    }
    assert!((0..).zip(&vector).all(|(i, &value)| i == value));
    for bytes in [2_000_000, 300_000, 200_000, 20_000, 5_000, 100, 1] {
        vector.truncate(bytes / 4);
        vector.shrink_to_fit();
        assert!((0..).zip(&vector).all(|(i, &value)| i == value));
    }
}

#[test]
fn zeroed_memory_is_zero_also_when_it_was_used() {
    const SIZES: [usize; 11] = [
        1, 8, 100, 5000, 16_384, 16_385, 70_000, 500_000, 983_040, 983_041, 3_000_000,
    ];
    for bytes in SIZES {
        for _ in 0..3 {
            let layout = Layout::from_size_align(bytes, 8).unwrap();
            // SAFETY: the layout is not empty.
            let object = unsafe { CcMalloc.alloc_zeroed(layout) };
            assert!(!object.is_null());
            // SAFETY: fresh and zeroed, hence initialised.
            let contents = unsafe { std::slice::from_raw_parts_mut(object, bytes) };
            assert!(contents.iter().all(|&byte| byte == 0), "{bytes}");
            contents.fill(0xa5);
            // SAFETY: allocated above with this layout.
            unsafe { CcMalloc.dealloc(object, layout) };
        }
    }
}

#[test]
fn large_objects_start_at_different_blocks() {
    for bytes in [40_000, 2_500_000] {
        let objects: Vec<Vec<u8>> = (0..8).map(|_| Vec::with_capacity(bytes)).collect();
        let starts: BTreeSet<usize> = objects
            .iter()
            .map(|object| object.as_ptr().addr() % 4096)
            .collect();
        assert!(starts.len() > 1, "{starts:?}");
    }
}

#[test]
fn impossible_sizes_give_null() {
    for bytes in [isize::MAX as usize, isize::MAX as usize - 4096, 1 << 60] {
        let layout = Layout::from_size_align(bytes, 1).unwrap();
        // SAFETY: the layout is not empty.
        assert!(unsafe { CcMalloc.alloc(layout) }.is_null());
        // SAFETY: the layout is not empty.
        assert!(unsafe { CcMalloc.alloc_zeroed(layout) }.is_null());
        let layout = Layout::new::<u64>();
        // SAFETY: allocated, resized (in vain, so it stays) and freed with its layout.
        unsafe {
            let object = CcMalloc.alloc(layout).cast::<u64>();
            object.write(7);
            assert!(CcMalloc.realloc(object.cast(), layout, bytes).is_null());
            assert_eq!(object.read(), 7);
            CcMalloc.dealloc(object.cast(), layout);
        }
    }
}

#[test]
fn every_alignment_is_kept() {
    for shift in 0..=24 {
        for bytes in [1, 24, 5000, 100_000] {
            let layout = Layout::from_size_align(bytes, 1 << shift).unwrap();
            // SAFETY: the layout is not empty; each object is freed with its layout.
            unsafe {
                let object = CcMalloc.alloc(layout);
                assert_eq!(object.addr() % layout.align(), 0, "{layout:?}");
                object.write_bytes(1, bytes);
                let resized = CcMalloc.realloc(object, layout, bytes * 3);
                assert_eq!(resized.addr() % layout.align(), 0, "{layout:?}");
                assert_eq!(resized.add(bytes - 1).read(), 1);
                CcMalloc.dealloc(
                    resized,
                    Layout::from_size_align(bytes * 3, layout.align()).unwrap(),
                );
            }
        }
    }
}

#[test]
fn objects_freed_last_are_used_first_and_may_be_forgotten() {
    crate::in_thread(|| {
        for bytes in [8usize, 24, 100, 640, 5000, 16_384] {
            let layout = Layout::from_size_align(bytes, 8).unwrap();
            let allocate = || {
                // SAFETY: the layout is not empty.
                let object = unsafe { CcMalloc.alloc(layout) };
                assert!(!object.is_null());
                object
            };
            let free = |object: *mut u8| {
                // SAFETY: an object of the list below, with its layout, freed once.
                unsafe { CcMalloc.dealloc(object, layout) }
            };
            let mut objects: Vec<*mut u8> = (0..3 * (65_536 / bytes)).map(|_| allocate()).collect();
            let (first, second) = (objects[1], objects[0]);
            free(second);
            free(first);
            assert_eq!((allocate(), allocate()), (first, second), "{bytes}");
            // Whole slabs become empty and are given back, some with objects at hand, in either
            // direction.
            for turn in 0..4 {
                if turn % 2 == 0 {
                    objects.reverse();
                }
                objects.drain(..).for_each(free);
                ccmalloc::check().unwrap();
                objects.extend((0..3 * (65_536 / bytes)).map(|_| allocate()));
                let distinct: HashSet<_> = objects.iter().collect();
                assert_eq!(distinct.len(), objects.len());
            }
            objects.drain(..).for_each(free);
            ccmalloc::check().unwrap();
        }
    });
}
