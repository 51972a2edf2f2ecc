//! Regions: objects where the caller wants them.

use std::alloc::{Layout, dealloc};

use ccmalloc::{Region, check};

/// Offsets as addresses.
fn places(offsets: impl Iterator<Item = usize>) -> Vec<*mut u8> {
    offsets.map(std::ptr::without_provenance_mut).collect()
}

fn free_all(objects: impl IntoIterator<Item = *mut u8>, layout: Layout) {
    for object in objects {
        // SAFETY: an ordinary allocation with this layout.
        unsafe { dealloc(object, layout) };
    }
    check().unwrap();
}

#[test]
fn objects_lie_where_they_are_told() {
    for (bytes, align, stride) in [
        (8, 8, 8),
        (24, 8, 24),
        (24, 8, 32),
        (20, 4, 64),
        (32, 32, 32),
        (40, 8, 40),
        (64, 64, 64),
        (100, 4, 104),
        (512, 8, 512),
        (520, 8, 520),
        (4000, 8, 4000),
        (4096, 4096, 4096),
    ] {
        let layout = Layout::from_size_align(bytes, align).unwrap();
        let in_segment = Region::SEGMENT_BYTES / stride;
        let count = crate::times(3) * in_segment - 5;
        // In another order than that of the offsets.
        let offset = |i: usize| i / in_segment * Region::SEGMENT_BYTES + i % in_segment * stride;
        let half = count / 2;
        let offsets: Vec<usize> = (half..count).chain(0..half).map(offset).collect();
        let segments = count.div_ceil(in_segment);
        // One by one, and all at once.
        for at_once in [false, true] {
            let mut region = Region::reserve(segments * Region::SEGMENT_BYTES).unwrap();
            let mut objects = places(offsets.iter().copied());
            if at_once {
                assert_eq!(region.alloc_each(layout, &mut objects), count);
            } else {
                let one = |offset: &usize| region.alloc_at(*offset, layout);
                objects = offsets.iter().map(one).collect();
            }
            check().unwrap();
            for (&object, &offset) in objects.iter().zip(&offsets) {
                assert_eq!(object, region.address(offset), "{bytes} {offset}");
                // SAFETY: fresh, and this large.
                unsafe { object.write_bytes(1, bytes) };
            }
            // No place is allocated again, nor any behind it.
            let mut again = places(offsets.iter().copied());
            assert_eq!(region.alloc_each(layout, &mut again), 0);
            assert_eq!(again, places(offsets.iter().copied()));
            check().unwrap();
            drop(region);
            free_all(objects, layout);
        }
    }
}

#[test]
fn many_objects_end_with_the_first_that_has_no_place() {
    let layout = Layout::new::<[u64; 3]>();
    let mut region = Region::reserve(Region::SEGMENT_BYTES).unwrap();
    let end = Region::SEGMENT_BYTES;
    for last in [12, 24, end - 8, end, usize::MAX] {
        let mut objects = places([0, 24, last, 96].into_iter());
        assert_eq!(region.alloc_each(layout, &mut objects), 2, "{last}");
        assert_eq!(objects[2..], places([last, 96].into_iter()));
        check().unwrap();
        free_all(objects.into_iter().take(2), layout);
    }
    let nothing = &mut places([0].into_iter());
    assert_eq!(region.alloc_each(Layout::new::<()>(), nothing), 0);
    let large = Layout::from_size_align(Region::OBJECT_BYTES_MAX + 8, 8).unwrap();
    assert_eq!(region.alloc_each(large, nothing), 0);
    let aligned = Layout::from_size_align(64, 2 * Region::OBJECT_BYTES_MAX).unwrap();
    assert_eq!(region.alloc_each(aligned, nothing), 0);
    check().unwrap();
}

#[test]
fn regions_are_filled_from_their_start() {
    for (bytes, align) in [
        (8, 8),
        (16, 16),
        (24, 8),
        (40, 8),
        (64, 64),
        (520, 8),
        (4096, 8),
    ] {
        let layout = Layout::from_size_align(bytes, align).unwrap();
        let in_segment = Region::SEGMENT_BYTES / bytes;
        for count in [
            0,
            1,
            in_segment - 1,
            in_segment,
            in_segment + 1,
            2 * in_segment + 1,
        ] {
            let offset = |i: usize| i / in_segment * Region::SEGMENT_BYTES + i % in_segment * bytes;
            let mut region = Region::reserve(3 * Region::SEGMENT_BYTES).unwrap();
            let mut objects = places((0..count).rev().map(offset));
            // SAFETY: the offsets are those of as many objects, each once.
            assert!(unsafe { region.cc_fill(layout, &mut objects) });
            check().unwrap();
            for (i, &object) in objects.iter().rev().enumerate() {
                assert_eq!(object, region.address(offset(i)));
                // SAFETY: fresh, and this large.
                unsafe { object.write_bytes(1, bytes) };
            }
            // It is not empty any more.
            let mut again = places((0..count).map(offset));
            // SAFETY: the offsets are those of as many objects, each once.
            assert_eq!(unsafe { region.cc_fill(layout, &mut again) }, count == 0);
            drop(region);
            let objects = objects.into_iter().filter_map(std::ptr::NonNull::new);
            // SAFETY: objects of `CcMalloc` with this layout, each once.
            unsafe { ccmalloc::cc_dealloc_each(objects, layout) };
            check().unwrap();
        }
    }
    let mut region = Region::reserve(Region::SEGMENT_BYTES).unwrap();
    let layouts = [(0, 8), (20, 4), (24, 16), (Region::OBJECT_BYTES_MAX + 8, 8)];
    for (bytes, align) in layouts {
        let layout = Layout::from_size_align(bytes, align).unwrap();
        // SAFETY: the offset of the only object.
        let filled = unsafe { region.cc_fill(layout, &mut places(0..1)) };
        assert!(!filled, "{bytes} {align}");
    }
    let in_segment = Region::SEGMENT_BYTES / 64;
    let mut too_many = places((0..=in_segment).map(|i| i * 64));
    // SAFETY: the offsets are those of as many objects, each once.
    assert!(!unsafe { region.cc_fill(Layout::new::<[u64; 8]>(), &mut too_many) });
    check().unwrap();
}

#[test]
fn impossible_places_give_ordinary_objects() {
    let mut region = Region::reserve(1).unwrap();
    let layout = Layout::new::<u64>();
    let taken = region.alloc_at(0, layout);
    assert_eq!(taken, region.address(0));
    assert!(region.address(Region::SEGMENT_BYTES).is_null());
    assert!(region.alloc_at(8, Layout::new::<()>()).is_null());
    let cases = [
        (0, layout),
        (4, layout),
        (8, Layout::new::<u128>()),
        (Region::SEGMENT_BYTES - 8, Layout::new::<[u64; 2]>()),
        (Region::SEGMENT_BYTES, layout),
        (usize::MAX, layout),
        (64, Layout::new::<[u8; Region::OBJECT_BYTES_MAX + 1]>()),
        (64, Layout::new::<[u8; 1 << 20]>()),
    ];
    // Alignments that only large objects have.
    let aligned = (13..=21).map(|shift| (64, Layout::from_size_align(8, 1 << shift).unwrap()));
    for (offset, layout) in cases.into_iter().chain(aligned) {
        let object = region.alloc_at(offset, layout);
        assert!(!object.is_null());
        assert_ne!(object, region.address(offset));
        assert_eq!(object.addr() % layout.align(), 0);
        free_all([object], layout);
    }
    assert!(Region::reserve(usize::MAX).is_none());
    // SAFETY: allocated above with this layout.
    unsafe { dealloc(taken, layout) };
    drop(region);
    check().unwrap();
}

#[test]
fn a_region_that_is_not_used_gives_everything_back() {
    if !crate::alone("region::a_region_that_is_not_used_gives_everything_back") {
        return;
    }
    crate::in_thread(|| {
        for _ in 0..crate::times(50) {
            let region = Region::reserve(64 << 20).unwrap();
            assert!(!region.address((64 << 20) - 1).is_null());
        }
        assert!(ccmalloc::stats().chunk_bytes < 400 << 20);
        check().unwrap();
    });
}

#[test]
fn a_region_keeps_its_room_while_it_lives() {
    crate::in_thread(|| {
        let layout = Layout::new::<[u64; 8]>();
        let mut region = Region::reserve(2 * Region::SEGMENT_BYTES).unwrap();
        let object = region.alloc_at(0, layout);
        assert_eq!(object, region.address(0));
        // SAFETY: allocated just above with this layout.
        unsafe { dealloc(object, layout) };
        // Enough objects that start anywhere to want every page there is.
        let others: Vec<Box<[u64; 8]>> = (0..crate::times(5000) as u64)
            .map(|i| ccmalloc::near(&i, || Box::new([i; 8])))
            .collect();
        let objects: Vec<*mut u8> = (0..2 * Region::SEGMENT_BYTES / 64)
            .map(|i| {
                let object = region.alloc_at(64 * i, layout);
                assert_eq!(object, region.address(64 * i), "{i}");
                object
            })
            .collect();
        drop(region);
        check().unwrap();
        assert!(crate::are_numbered(&others));
        free_all(objects, layout);
    });
}
