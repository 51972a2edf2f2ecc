//! Regions: objects where the caller wants them.

use std::alloc::{Layout, dealloc};

use ccmalloc::{Region, check};

#[test]
fn objects_lie_where_they_are_told() {
    for (bytes, align) in [
        (8, 8),
        (24, 8),
        (32, 32),
        (40, 8),
        (64, 64),
        (100, 4),
        (4096, 4096),
        (4000, 8),
    ] {
        let layout = Layout::from_size_align(bytes, align).unwrap();
        let stride = bytes.next_multiple_of(align.max(8));
        let mut region = Region::reserve(crate::times(40) * Region::SEGMENT_BYTES).unwrap();
        let mut objects = Vec::new();
        let mut offset = 0;
        while offset + stride <= crate::times(40) * Region::SEGMENT_BYTES {
            let left = Region::SEGMENT_BYTES - offset % Region::SEGMENT_BYTES;
            if left < stride {
                offset += left;
                continue;
            }
            let object = region.alloc_at(offset, layout);
            assert_eq!(object, region.address(offset), "{bytes} {offset}");
            // SAFETY: fresh, and this large.
            unsafe { object.write_bytes(1, bytes) };
            objects.push(object);
            offset += stride;
        }
        check().unwrap();
        drop(region);
        check().unwrap();
        for object in objects {
            // SAFETY: an ordinary allocation with this layout.
            unsafe { dealloc(object, layout) };
        }
        check().unwrap();
    }
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
        (
            64,
            Layout::from_size_align(Region::OBJECT_BYTES_MAX + 1, 8).unwrap(),
        ),
        (64, Layout::from_size_align(1 << 20, 8).unwrap()),
    ];
    for (offset, layout) in cases {
        let object = region.alloc_at(offset, layout);
        assert!(!object.is_null());
        assert_ne!(object, region.address(offset));
        assert_eq!(object.addr() % layout.align(), 0);
        // SAFETY: an ordinary allocation with this layout.
        unsafe { dealloc(object, layout) };
    }
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
    std::thread::spawn(|| {
        for _ in 0..crate::times(50) {
            let region = Region::reserve(64 << 20).unwrap();
            assert!(!region.address((64 << 20) - 1).is_null());
        }
        assert!(ccmalloc::stats().chunk_bytes < 400 << 20);
        check().unwrap();
    })
    .join()
    .unwrap();
}

#[test]
fn absurd_regions_are_refused() {
    assert!(Region::reserve(usize::MAX).is_none());
    check().unwrap();
}

#[test]
fn alignments_that_only_large_objects_have_are_not_placed() {
    let mut region = Region::reserve(2 * Region::SEGMENT_BYTES).unwrap();
    for shift in 12..=21 {
        let layout = Layout::from_size_align(8, 1 << shift).unwrap();
        let object = region.alloc_at(0, layout);
        assert!(!object.is_null());
        // SAFETY: an ordinary allocation with this layout.
        unsafe { dealloc(object, layout) };
    }
    check().unwrap();
}

#[test]
fn a_region_keeps_its_room_while_it_lives() {
    std::thread::spawn(|| {
        let layout = Layout::new::<[u64; 8]>();
        let mut region = Region::reserve(2 * Region::SEGMENT_BYTES).unwrap();
        let object = region.alloc_at(0, layout);
        assert_eq!(object, region.address(0));
        // SAFETY: allocated just above with this layout.
        unsafe { dealloc(object, layout) };
        // Things that start anywhere, and enough of them to want every page there is.
        let strangers: Vec<Box<[u64; 8]>> = (0..crate::times(5000))
            .map(|i| ccmalloc::near(&i, || Box::new([i as u64; 8])))
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
        assert!(
            strangers
                .iter()
                .enumerate()
                .all(|(i, stranger)| stranger[0] == i as u64)
        );
        for object in objects {
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(object, layout) };
        }
        check().unwrap();
    })
    .join()
    .unwrap();
}
