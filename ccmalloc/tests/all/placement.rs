//! Hints do what they promise.
//!
//! Most tests use a [`Heap`], which starts without objects. A thread may take over the arena of one
//! that ended, with the objects that are left in it.

use std::alloc::Layout;
use std::collections::HashSet;
use std::ptr::NonNull;

use ccmalloc::{Heap, Policy, cc_alloc, cc_dealloc, near, near_with, placement};

/// A hint at nothing.
const NOWHERE: Option<NonNull<u8>> = Some(NonNull::dangling());

fn block(object: NonNull<u8>) -> usize {
    object.addr().get() / 64
}

fn page(object: NonNull<u8>) -> usize {
    object.addr().get() / 4096
}

fn free(heap: &Heap, object: NonNull<u8>, layout: Layout) {
    // SAFETY: allocated by the test in this heap with this layout.
    unsafe { heap.dealloc(object, layout) };
}

#[test]
fn a_hint_with_room_beside_it_is_joined_in_its_block() {
    for bytes in [8, 16, 24, 32] {
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        let heap = Heap::new().unwrap();
        let first = heap.alloc(layout, NOWHERE).unwrap();
        let alloc = || heap.alloc(layout, Some(first)).unwrap();
        let mates: Vec<_> = (1..64 / bytes).map(|_| alloc()).collect();
        assert!(
            mates.iter().all(|&mate| block(mate) == block(first)),
            "{bytes}"
        );
        let next = alloc();
        assert_ne!(block(next), block(first), "{bytes}: the block was full");
        assert_eq!(page(next), page(first), "{bytes}: the page was not");
        free(&heap, mates[0], layout);
        assert_eq!(alloc(), mates[0]);
    }
}

#[test]
fn policies_choose_their_blocks() {
    let layout = Layout::new::<[u64; 8]>();
    let small = Layout::new::<[u64; 4]>();
    for (policy, expected) in [
        (Policy::Closest, 5),
        (Policy::FirstFit, 2),
        (Policy::NewBlock, 8),
    ] {
        let before = placement().hinted();
        let heap = Heap::with_policy(policy).unwrap();
        assert_eq!(heap.placement(), Default::default());
        // Blocks 0..8 of a fresh page are full, but half of block 2 and half of block 5 are free.
        let opening = heap.alloc(layout, NOWHERE).unwrap();
        assert_eq!(
            opening.addr().get() % 4096,
            0,
            "the first opening of a fresh page"
        );
        let mut blocks = vec![opening];
        blocks.extend((1..8).map(|_| heap.alloc(layout, Some(opening)).unwrap()));
        blocks.sort();
        for block in [2, 5] {
            // SAFETY: allocated just above with this layout.
            let half = unsafe { heap.realloc(blocks[block], layout, small, None) };
            assert_eq!(half, Some(blocks[block]));
        }
        let placed = heap.alloc(small, Some(blocks[6])).unwrap();
        assert_eq!(block(placed) - block(opening), expected, "{policy:?}");
        let counted = heap.placement().hinted();
        assert!(counted >= 9, "{counted}");
        drop(heap);
        assert!(
            placement().hinted() >= before + counted,
            "counts stay when a heap goes"
        );
    }
}

#[test]
fn closest_lies_one_behind_the_other() {
    // 24 B do not divide a block, 48 leave room for nothing in it, 100 are larger; 24 are aligned
    // to 16 in C.
    let layouts = [
        (24, 8),
        (40, 8),
        (48, 8),
        (64, 8),
        (100, 8),
        (24, 16),
        (32, 32),
    ];
    for (bytes, align) in layouts {
        let layout = Layout::from_size_align(bytes, align).unwrap();
        let step = bytes.next_multiple_of(align.max(8));
        let heap = Heap::with_policy(Policy::Closest).unwrap();
        let mut objects = vec![heap.alloc(layout, NOWHERE).unwrap()];
        for i in 1..200 {
            // As a depth-first walk does: mostly the latest, now and then an older one.
            let hint = objects[if i % 7 == 0 { i / 2 } else { i - 1 }];
            objects.push(heap.alloc(layout, Some(hint)).unwrap());
        }
        let in_word = 512 / step;
        for (i, object) in objects.iter().enumerate().take(4096 / 512 * in_word) {
            let offset = object.addr().get() - objects[0].addr().get();
            assert_eq!(
                offset,
                i / in_word * 512 + i % in_word * step,
                "{layout:?} {i}"
            );
        }
        heap.check().unwrap();
        // Holes at the borders of blocks are found again, also while there is a run elsewhere on
        // the page.
        let mut holes = HashSet::new();
        for hole in (1..in_word).step_by(2) {
            free(&heap, objects[hole], layout);
            holes.insert(objects[hole]);
        }
        heap.check().unwrap();
        while !holes.is_empty() {
            let filled = heap.alloc(layout, Some(objects[0])).unwrap();
            assert!(holes.remove(&filled), "a hole of the hint's 512 bytes");
        }
        heap.check().unwrap();
        for object in objects {
            free(&heap, object, layout);
        }
        heap.check().unwrap();
    }
}

#[test]
fn closest_prefers_room_beside_the_hint_to_its_run() {
    let layout = Layout::new::<[u64; 2]>();
    let heap = Heap::with_policy(Policy::Closest).unwrap();
    let mut objects = vec![heap.alloc(layout, NOWHERE).unwrap()];
    for i in 1..20 {
        objects.push(heap.alloc(layout, Some(objects[i - 1])).unwrap());
    }
    for hole in [2, 9, 14] {
        free(&heap, objects[hole], layout);
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
    let heap = Heap::with_policy(Policy::Closest).unwrap();
    for round in 0..3 {
        // Two slots full, the last object in the middle of a word; then all goes back, and others
        // take the memory.
        let mut stale: Vec<NonNull<u8>> = Vec::new();
        for _ in 0..2 * 65536 / 24 + 5 {
            let hint = stale.last().copied().or(NOWHERE);
            stale.push(heap.alloc(layout, hint).unwrap());
        }
        stale.iter().for_each(|&object| free(&heap, object, layout));
        heap.check().unwrap();
        let hints = stale.iter().rev().take(3000).map(|&hint| Some(hint));
        let objects: Vec<_> = std::iter::repeat_n(None, 8000)
            .chain(hints)
            .map(|hint| heap.alloc(layout, hint).unwrap())
            .collect();
        heap.check().unwrap();
        let distinct: HashSet<_> = objects.iter().collect();
        assert_eq!(distinct.len(), objects.len(), "{round}");
        objects
            .iter()
            .for_each(|&object| free(&heap, object, layout));
    }
}

#[test]
fn objects_without_neighbour_lie_where_something_was_freed() {
    let layout = Layout::new::<[u64; 6]>();
    for policy in [Policy::Closest, Policy::FirstFit, Policy::NewBlock] {
        let heap = Heap::with_policy(policy).unwrap();
        let alloc = || heap.alloc(layout, NOWHERE).unwrap();
        let objects: Vec<_> = (0..300).map(|_| alloc()).collect();
        // The first one's granules begin a word of the map, others are at borders of blocks.
        for freed in [0, 7, 8, 9, 20, 100] {
            free(&heap, objects[freed], layout);
            assert_eq!(alloc(), objects[freed], "{policy:?} {freed}");
        }
        assert!(!objects.contains(&alloc()), "once only");
        heap.check().unwrap();
    }
}

#[test]
fn larger_objects_start_at_a_block() {
    for bytes in [65, 72, 100, 128, 200, 511, 512] {
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        let heap = Heap::new().unwrap();
        let first = heap.alloc(layout, NOWHERE).unwrap();
        let second = heap.alloc(layout, Some(first)).unwrap();
        assert_eq!((first.addr().get() % 64, second.addr().get() % 64), (0, 0));
        assert_eq!(page(first), page(second));
    }
}

#[test]
fn co_located_objects_grow_in_place_while_they_can() {
    let heap = Heap::new().unwrap();
    let layout = |bytes| Layout::from_size_align(bytes, 8).unwrap();
    let object = heap.alloc(layout(16), NOWHERE).unwrap();
    let resize = |old, new| {
        // SAFETY: allocated or resized with the layout `old`, and replaced by the result.
        unsafe { heap.realloc(object, layout(old), layout(new), None) }.unwrap()
    };
    let join = || heap.alloc(layout(8), Some(object)).unwrap();
    assert_eq!(resize(16, 64), object);
    assert_ne!(block(join()), block(object), "the block is full now");
    assert_eq!(resize(64, 8), object);
    assert_eq!(block(join()), block(object), "and has room again");
}

#[test]
fn placement_counts_hinted_objects() {
    let layout = Layout::new::<[u64; 4]>();
    let before = placement();
    let first = cc_alloc(layout, NOWHERE).unwrap();
    let joined = cc_alloc(layout, Some(first)).unwrap();
    let after = placement();
    assert!(after.same_block > before.same_block);
    assert!(
        after.not_usable > before.not_usable,
        "the first hint was dangling"
    );
    assert!(after.hinted() >= before.hinted() + 2);
    for object in [first, joined] {
        // SAFETY: allocated above with this layout.
        unsafe { cc_dealloc(object, layout) };
    }
}

#[test]
fn a_million_hinted_objects_come_and_go() {
    if !crate::alone("placement::a_million_hinted_objects_come_and_go") {
        return;
    }
    let layout = Layout::new::<[u64; 3]>();
    let chunks = ccmalloc::stats().chunk_bytes;
    let mut objects = vec![cc_alloc(layout, NOWHERE).unwrap()];
    for i in 1..crate::times(200_000) {
        let hint = objects[i * 2_654_435_761 % i];
        objects.push(cc_alloc(layout, Some(hint)).unwrap());
    }
    assert_eq!(objects.iter().collect::<HashSet<_>>().len(), objects.len());
    ccmalloc::check().unwrap();
    for object in objects {
        // SAFETY: allocated above with this layout.
        unsafe { cc_dealloc(object, layout) };
    }
    ccmalloc::check().unwrap();
    assert!(ccmalloc::stats().chunk_bytes < chunks + (64 << 20));
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
    let firsts: Vec<_> = (0..64)
        .map(|_| cc_alloc(layout, NOWHERE).unwrap())
        .collect();
    let mut pages: Vec<usize> = firsts.iter().map(|&first| page(first)).collect();
    pages.dedup();
    assert_eq!(pages.len(), 4, "{firsts:?}");
    // Each page then has room for what belongs to its objects.
    for &first in &firsts {
        let mut last = first;
        for _ in 0..6 {
            last = cc_alloc(layout, Some(last)).unwrap();
            assert_eq!(page(last), page(first));
        }
    }
    ccmalloc::check().unwrap();
}

#[test]
fn few_objects_far_from_their_hints_are_not_good() {
    let mut report = ccmalloc::PlacementReport::default();
    (report.elsewhere, report.not_usable) = (1, 1);
    assert!(
        report
            .to_string()
            .ends_with(": poor, the room beside the hints was taken")
    );
    report.same_block = 1;
    assert!(report.to_string().ends_with(": good"));
}
