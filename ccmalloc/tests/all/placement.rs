//! Hints do what they promise.

use std::alloc::Layout;
use std::collections::HashSet;
use std::ptr::NonNull;

use ccmalloc::{
    Policy, cc_alloc, cc_alloc_with, cc_dealloc, cc_realloc, near, near_with, placement,
};

fn block(object: NonNull<u8>) -> usize {
    object.addr().get() / 64
}

fn page(object: NonNull<u8>) -> usize {
    object.addr().get() / 4096
}

/// An object on a co-location page with nothing beside it.
fn opening(layout: Layout) -> NonNull<u8> {
    cc_alloc_with(layout, Some(NonNull::dangling()), Policy::NewBlock).unwrap()
}

fn free_all(objects: impl IntoIterator<Item = NonNull<u8>>, layout: Layout) {
    for object in objects {
        // SAFETY: allocated by the test with this layout.
        unsafe { cc_dealloc(object, layout) };
    }
}

#[test]
fn a_hint_with_room_beside_it_is_joined_in_its_block() {
    if !crate::alone("placement::a_hint_with_room_beside_it_is_joined_in_its_block") {
        return;
    }
    for bytes in [8, 16, 24, 32] {
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        crate::in_thread(move || {
            let first = opening(layout);
            let mates: Vec<_> = (1..64 / bytes)
                .map(|_| cc_alloc(layout, Some(first)).unwrap())
                .collect();
            assert!(
                mates.iter().all(|&mate| block(mate) == block(first)),
                "{bytes}"
            );
            let next = cc_alloc(layout, Some(first)).unwrap();
            assert_ne!(block(next), block(first), "{bytes}: the block was full");
            assert_eq!(page(next), page(first), "{bytes}: the page was not");
            free_all(mates.into_iter().chain([first, next]), layout);
        });
    }
}

#[test]
fn policies_choose_their_blocks() {
    if !crate::alone("placement::policies_choose_their_blocks") {
        return;
    }
    let layout = Layout::new::<[u64; 8]>();
    let small = Layout::new::<[u64; 4]>();
    crate::in_thread(move || {
        // Blocks 0..8 of a fresh page are full, but half of block 2 and half of block 5 are free.
        let blocks: Vec<_> = (0..8).map(|_| opening(layout)).collect();
        assert!(
            blocks
                .windows(2)
                .all(|pair| block(pair[1]) == block(pair[0]) + 1)
        );
        let halves: Vec<_> = [2, 5]
            .map(|hole: usize| {
                // SAFETY: allocated above with this layout; replaced by the half.
                unsafe { cc_dealloc(blocks[hole], layout) };
                let half = cc_alloc_with(small, Some(blocks[hole]), Policy::Closest).unwrap();
                assert_eq!(block(half), block(blocks[hole]));
                half
            })
            .into();
        let hint = Some(blocks[6]);
        let closest = cc_alloc_with(small, hint, Policy::Closest).unwrap();
        assert_eq!(block(closest), block(blocks[5]));
        let first_fit = cc_alloc_with(small, hint, Policy::FirstFit).unwrap();
        assert_eq!(block(first_fit), block(blocks[2]));
        let new_block = cc_alloc_with(small, hint, Policy::NewBlock).unwrap();
        assert_eq!(block(new_block), block(blocks[7]) + 1);
        free_all(
            halves.into_iter().chain([closest, first_fit, new_block]),
            small,
        );
        free_all([0, 1, 3, 4, 6, 7].map(|i: usize| blocks[i]), layout);
    });
}

#[test]
fn closest_lies_one_behind_the_other() {
    if !crate::alone("placement::closest_lies_one_behind_the_other") {
        return;
    }
    // 24 B do not divide a block, 48 leave room for nothing in it, 100 are larger; 24 are aligned
    // to 16 in C.
    for (bytes, align) in [
        (24, 8),
        (40, 8),
        (48, 8),
        (64, 8),
        (100, 8),
        (24, 16),
        (32, 32),
    ] {
        let layout = Layout::from_size_align(bytes, align).unwrap();
        let step = bytes.next_multiple_of(align.max(8));
        crate::in_thread(move || {
            let mut objects =
                vec![cc_alloc_with(layout, Some(NonNull::dangling()), Policy::Closest).unwrap()];
            for i in 1..200 {
                // As a walk in depth-first order does: mostly the latest, now and then an older
                // one.
                let hint = objects[if i % 7 == 0 { i / 2 } else { i - 1 }];
                objects.push(cc_alloc_with(layout, Some(hint), Policy::Closest).unwrap());
            }
            let offset = |object: &NonNull<u8>| object.addr().get() - objects[0].addr().get();
            let in_word = 512 / step;
            for (i, object) in objects.iter().enumerate() {
                if i / in_word * 512 + 512 <= 4096 {
                    assert_eq!(
                        offset(object),
                        i / in_word * 512 + i % in_word * step,
                        "{layout:?} {i}"
                    );
                }
            }
            ccmalloc::check().unwrap();
            // Holes at the borders of blocks are found again, also while there is a run elsewhere
            // on the page.
            for hole in (1..in_word).step_by(2) {
                // SAFETY: allocated above with this layout, and replaced below.
                unsafe { cc_dealloc(objects[hole], layout) };
            }
            ccmalloc::check().unwrap();
            let mut holes: Vec<_> = (1..in_word).step_by(2).map(|hole| objects[hole]).collect();
            for hole in (1..in_word).step_by(2) {
                let filled = cc_alloc_with(layout, Some(objects[0]), Policy::Closest).unwrap();
                let at = holes.iter().position(|&hole| hole == filled);
                holes.swap_remove(at.expect("a hole of the hint's 512 bytes"));
                objects[hole] = filled;
            }
            ccmalloc::check().unwrap();
            free_all(objects, layout);
            ccmalloc::check().unwrap();
        });
    }
}

#[test]
fn closest_prefers_room_beside_the_hint_to_its_run() {
    let layout = Layout::new::<[u64; 2]>();
    let heap = ccmalloc::Heap::with_policy(Policy::Closest).unwrap();
    let mut objects = vec![heap.alloc(layout, Some(NonNull::dangling())).unwrap()];
    for i in 1..20 {
        objects.push(heap.alloc(layout, Some(objects[i - 1])).unwrap());
    }
    for hole in [2, 9, 14] {
        // SAFETY: allocated above with this layout, or below in its place.
        unsafe { heap.dealloc(objects[hole], layout) };
        let filled = heap.alloc(layout, Some(objects[hole - 1]));
        assert_eq!(filled, Some(objects[hole]));
    }
    let next = heap.alloc(layout, Some(objects[0])).unwrap();
    assert_eq!(next.addr().get(), objects[19].addr().get() + 16);
    heap.check().unwrap();
}

#[test]
fn a_run_ends_with_its_page() {
    let layout = Layout::new::<[u64; 3]>();
    crate::in_thread(move || {
        for round in 0..3 {
            // Two slots full, the last object in the middle of a word; then all goes back, and
            // others take the memory.
            let mut objects: Vec<NonNull<u8>> = Vec::new();
            for _ in 0..2 * 65536 / 24 + 5 {
                let hint = objects.last().copied().unwrap_or(NonNull::dangling());
                objects.push(cc_alloc_with(layout, Some(hint), Policy::Closest).unwrap());
            }
            let stale = objects.clone();
            free_all(objects, layout);
            ccmalloc::check().unwrap();
            let plain: Vec<_> = (0..8000).map(|_| cc_alloc(layout, None).unwrap()).collect();
            let hinted: Vec<_> = stale
                .iter()
                .rev()
                .take(3000)
                .map(|&hint| cc_alloc_with(layout, Some(hint), Policy::Closest).unwrap())
                .collect();
            ccmalloc::check().unwrap();
            let all: HashSet<_> = plain.iter().chain(&hinted).collect();
            assert_eq!(all.len(), plain.len() + hinted.len(), "{round}");
            free_all(plain.into_iter().chain(hinted), layout);
        }
    });
}

#[test]
fn what_has_no_neighbour_lies_where_something_was_freed() {
    if !crate::alone("placement::what_has_no_neighbour_lies_where_something_was_freed") {
        return;
    }
    let layout = Layout::new::<[u64; 6]>();
    for policy in [Policy::Closest, Policy::FirstFit, Policy::NewBlock] {
        crate::in_thread(move || {
            let nowhere = Some(NonNull::dangling());
            let objects: Vec<_> = (0..300)
                .map(|_| cc_alloc_with(layout, nowhere, policy).unwrap())
                .collect();
            // The first one's granules begin a word of the map, others are at borders of blocks.
            for freed in [0, 7, 8, 9, 20, 100] {
                // SAFETY: allocated above with this layout; replaced by the next.
                unsafe { cc_dealloc(objects[freed], layout) };
                let next = cc_alloc_with(layout, nowhere, policy).unwrap();
                assert_eq!(next, objects[freed], "{policy:?} {freed}");
            }
            let other = cc_alloc_with(layout, nowhere, policy).unwrap();
            assert!(!objects.contains(&other), "once only");
            ccmalloc::check().unwrap();
            free_all(objects.into_iter().chain([other]), layout);
        });
    }
}

#[test]
fn near_reaches_std_types() {
    if !crate::alone("placement::near_reaches_std_types") {
        return;
    }
    crate::in_thread(|| {
        let root = near(&(), || Box::new([0u64; 2]));
        let (a, b) = near(&*root, || (Box::new([1u64; 2]), Box::new([2u64; 2])));
        let line = |object: &[u64; 2]| (&raw const *object).addr() / 64;
        assert_eq!((line(&a), line(&b)), (line(&root), line(&root)));
        // The innermost hint holds, and the outer one again after it, also after a panic.
        let far = near_with(&(), Policy::NewBlock, || Box::new([3u64; 2]));
        let (inner, outer) = near(&*root, || {
            let caught = std::panic::catch_unwind(|| {
                near(&*far, || std::panic::resume_unwind(Box::new(())))
            });
            assert!(caught.is_err());
            (near(&*far, || Box::new([4u64; 2])), Box::new([5u64; 2]))
        });
        assert_eq!((line(&inner), line(&outer)), (line(&far), line(&root)));
        let plain = Box::new([6u64; 2]);
        assert_ne!(line(&plain), line(&root));
    });
}

#[test]
fn freed_room_serves_the_next_hint() {
    let layout = Layout::new::<[u64; 2]>();
    crate::in_thread(move || {
        let first = opening(layout);
        let mates: Vec<_> = (0..3)
            .map(|_| cc_alloc(layout, Some(first)).unwrap())
            .collect();
        // SAFETY: allocated above with this layout.
        unsafe { cc_dealloc(mates[1], layout) };
        assert_eq!(cc_alloc(layout, Some(first)), Some(mates[1]));
        free_all(mates.into_iter().chain([first]), layout);
    });
}

#[test]
fn larger_objects_start_at_a_block() {
    if !crate::alone("placement::larger_objects_start_at_a_block") {
        return;
    }
    for bytes in [65, 72, 100, 128, 200, 511, 512] {
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        crate::in_thread(move || {
            let first = opening(layout);
            let second = cc_alloc(layout, Some(first)).unwrap();
            assert_eq!((first.addr().get() % 64, second.addr().get() % 64), (0, 0));
            assert_eq!(page(first), page(second));
            free_all([first, second], layout);
        });
    }
}

#[test]
fn co_located_objects_grow_in_place_while_they_can() {
    let layout = Layout::from_size_align(16, 8).unwrap();
    crate::in_thread(move || {
        let object = opening(layout);
        // SAFETY: allocated with this layout, and replaced by the result.
        let grown = unsafe { cc_realloc(object, layout, 64, None) }.unwrap();
        assert_eq!(grown, object);
        let layout = Layout::from_size_align(64, 8).unwrap();
        let neighbour = cc_alloc(Layout::new::<u64>(), Some(grown)).unwrap();
        assert_ne!(block(neighbour), block(grown), "the block is full now");
        // SAFETY: as above.
        let shrunk = unsafe { cc_realloc(grown, layout, 8, None) }.unwrap();
        assert_eq!(shrunk, object);
        let joined = cc_alloc(Layout::new::<u64>(), Some(shrunk)).unwrap();
        assert_eq!(block(joined), block(shrunk), "and has room again");
        free_all([neighbour, shrunk, joined], Layout::new::<u64>());
    });
}

#[test]
fn the_report_counts_what_happened() {
    let layout = Layout::new::<[u64; 4]>();
    let before = placement();
    let first = opening(layout);
    let joined = cc_alloc(layout, Some(first)).unwrap();
    let after = placement();
    assert!(after.same_block > before.same_block);
    assert!(
        after.not_usable > before.not_usable,
        "the opening's hint was dangling"
    );
    assert!(after.hinted() >= before.hinted() + 2);
    free_all([first, joined], layout);
}

#[test]
fn a_million_hinted_objects_come_and_go() {
    if !crate::alone("placement::a_million_hinted_objects_come_and_go") {
        return;
    }
    let layout = Layout::new::<[u64; 3]>();
    crate::in_thread(move || {
        let chunks = ccmalloc::stats().chunk_bytes;
        let mut objects = vec![opening(layout)];
        for i in 1..crate::times(200_000) {
            let hint = objects[i * 2_654_435_761 % i];
            objects.push(cc_alloc(layout, Some(hint)).unwrap());
        }
        assert_eq!(objects.iter().collect::<HashSet<_>>().len(), objects.len());
        ccmalloc::check().unwrap();
        free_all(objects, layout);
        ccmalloc::check().unwrap();
        assert!(ccmalloc::stats().chunk_bytes < chunks + (64 << 20));
    });
}

#[test]
fn memory_serves_a_larger_type_of_the_same_class() {
    // 72 and 80 bytes are of one class. Under Miri this shows whether a freed object's pointer,
    // good for 72 bytes only, comes back.
    for round in 0..3u64 {
        let small = Box::new([round; 9]);
        let address = (&raw const *small).addr();
        drop(small);
        let mut large = Box::new([round; 10]);
        assert_eq!((&raw const *large).addr(), address);
        large[9] += 1;
        assert_eq!(large[9], round + 1);
    }
}

#[test]
fn reserved_blocks_are_left_to_hints_at_the_page() {
    if !crate::alone("placement::reserved_blocks_are_left_to_hints_at_the_page") {
        return;
    }
    assert_eq!(ccmalloc::reserved_blocks(), 0);
    ccmalloc::set_reserved_blocks(1000);
    assert_eq!(ccmalloc::reserved_blocks(), 63);
    ccmalloc::set_reserved_blocks(48);
    let layout = Layout::new::<[u64; 3]>();
    // A hint at nothing begins something new; the sixteenth of these fills its page as far as the
    // reservation allows.
    let firsts: Vec<NonNull<u8>> = (0..64)
        .map(|_| cc_alloc(layout, Some(NonNull::dangling())).unwrap())
        .collect();
    let mut pages: Vec<usize> = firsts
        .iter()
        .map(|first| first.addr().get() / 4096)
        .collect();
    pages.dedup();
    assert_eq!(pages.len(), 4, "{firsts:?}");
    // Each page then has room for what belongs to its objects.
    for &first in &firsts {
        let mut last = first;
        for _ in 0..6 {
            last = cc_alloc(layout, Some(last)).unwrap();
            assert_eq!(last.addr().get() / 4096, first.addr().get() / 4096);
        }
    }
    ccmalloc::check().unwrap();
}

#[test]
fn few_objects_far_from_their_hints_are_not_good() {
    let mut report = ccmalloc::PlacementReport::default();
    (report.elsewhere, report.not_usable) = (1, 1);
    let line = report.to_string();
    assert!(
        line.ends_with("poor, the room beside the hints was taken"),
        "{line}"
    );
    report.same_block = 1;
    assert!(report.to_string().ends_with(": good"));
}
