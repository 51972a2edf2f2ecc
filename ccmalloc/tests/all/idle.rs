//! Memory that has been idle for half a second goes back to the OS, and is zero when it is next
//! used.
#![cfg(all(target_os = "linux", not(miri)))]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::time::Duration;

use ccmalloc::Heap;

const PAGE_BYTES: usize = 4096;

/// How many pages of `[start, start + bytes)` are in memory, or `None` when some are not mapped.
fn resident_pages(start: usize, bytes: usize) -> Option<usize> {
    let first = start.next_multiple_of(PAGE_BYTES);
    let length = (start + bytes - first) / PAGE_BYTES * PAGE_BYTES;
    let mut states = vec![0u8; length / PAGE_BYTES];
    // SAFETY: the vector has a byte for each page; the range itself is only asked about.
    let result = unsafe {
        libc::mincore(
            std::ptr::without_provenance_mut(first),
            length,
            states.as_mut_ptr(),
        )
    };
    (result == 0).then(|| states.iter().filter(|&&state| state & 1 == 1).count())
}

fn bytes_of(object: &NonNull<u8>, layout: Layout) -> &[u8] {
    // SAFETY: the callers have a live, initialised object of this layout.
    unsafe { std::slice::from_raw_parts(object.as_ptr(), layout.size()) }
}

#[test]
fn idle_slots_and_mappings_go_back_and_come_again_as_zeroes() {
    // Other tests' allocations would say when it is time to look.
    if !crate::alone("idle::idle_slots_and_mappings_go_back_and_come_again_as_zeroes") {
        return;
    }
    let heap = Heap::new().unwrap();
    let span = Layout::from_size_align(100_000, 8).unwrap();
    let large = Layout::from_size_align(5 << 20, 8).unwrap();
    let filled = |layout: Layout| {
        let object = heap.alloc(layout, None).unwrap();
        // SAFETY: fresh, of this layout.
        unsafe { object.write_bytes(0xa5, layout.size()) };
        object
    };
    let kept = filled(span);
    let idle: Vec<_> = (0..12).map(|_| filled(span)).collect();
    let mapping = filled(large);
    let mapping_address = mapping.addr().get();
    let idle_addresses: Vec<_> = idle.iter().map(|object| object.addr().get()).collect();
    assert!(resident_pages(mapping_address, large.size()).is_some_and(|pages| pages > 1000));
    assert!(
        (idle_addresses.iter())
            .all(|&address| resident_pages(address, span.size()).is_some_and(|pages| pages >= 20))
    );
    // SAFETY: all allocated above with these layouts.
    unsafe {
        for object in idle {
            heap.dealloc(object, span);
        }
        heap.dealloc(mapping, large);
    }

    std::thread::sleep(Duration::from_millis(700));
    let trigger = filled(span);
    let trigger_address = trigger.addr().get();
    // SAFETY: allocated by this heap with this layout, and only its address is used from here on.
    unsafe { heap.dealloc(trigger, span) };
    // Unmapped; another thread of the test may have mapped something there since, but hardly have
    // filled it.
    assert!(resident_pages(mapping_address, large.size()).is_none_or(|pages| pages < 1000));
    let others = idle_addresses
        .iter()
        .filter(|&&address| address >> 16 != trigger_address >> 16);
    let mut others = others.map(|&address| resident_pages(address, span.size()));
    assert!(others.all(|pages| pages == Some(0)));
    assert!(bytes_of(&kept, span).iter().all(|&byte| byte == 0xa5));

    // The trigger's slots were used again, and are not zero; those of the others are.
    let zeroed: Vec<_> = (0..12)
        .map(|_| heap.alloc_zeroed(span, None).unwrap())
        .collect();
    for object in &zeroed {
        let slot = object.addr().get() >> 16;
        assert!(idle_addresses.iter().any(|&address| address >> 16 == slot));
        assert!(bytes_of(object, span).iter().all(|&byte| byte == 0));
    }
    assert!(bytes_of(&kept, span).iter().all(|&byte| byte == 0xa5));
    heap.check().unwrap();
    // The heap goes, and all of these with it.
}

#[test]
fn what_is_kept_is_counted() {
    if !crate::alone("idle::what_is_kept_is_counted") {
        return;
    }
    let before = ccmalloc::stats();
    let block = vec![1u8; 5 << 20];
    let used = ccmalloc::stats();
    assert_eq!(used.large_bytes, before.large_bytes + (6 << 20));
    drop(block);
    let kept = ccmalloc::stats();
    assert_eq!(kept.large_bytes, before.large_bytes);
    assert_eq!(kept.kept_bytes, before.kept_bytes + (6 << 20));
    // The next one takes a part of it.
    let block = vec![1u8; 3 << 20];
    assert_eq!(ccmalloc::stats().kept_bytes, kept.kept_bytes - (4 << 20));
    drop(block);
    assert_eq!(ccmalloc::stats().kept_bytes, kept.kept_bytes);
}
