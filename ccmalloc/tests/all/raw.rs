//! Allocation and frees without layouts, as C does it: the edges.

use std::ptr::{NonNull, null_mut};

use ccmalloc::{Policy, check, raw};

#[test]
fn what_cannot_be_allocated_is_null() {
    for bytes in [usize::MAX, usize::MAX / 2 + 1, usize::MAX / 2, 1 << 60] {
        assert!(raw::allocate(bytes, 16, None).is_null());
        assert!(raw::allocate(bytes, 16, Some(NonNull::dangling())).is_null());
        assert!(raw::allocate_zeroed(bytes, 16).is_null());
        assert!(raw::allocate_with(bytes, 16, NonNull::dangling(), Policy::Closest).is_null());
    }
    for align in [0, 3, 24, usize::MAX] {
        assert!(raw::allocate(8, align, None).is_null(), "{align}");
    }
    let object = raw::allocate(100, 16, None);
    // SAFETY: live; a failure leaves it as it is.
    assert!(unsafe { raw::reallocate(object, usize::MAX, None) }.is_null());
    // SAFETY: still live.
    unsafe { raw::deallocate(object) };
}

#[test]
fn null_is_fine() {
    // SAFETY: null is allowed.
    unsafe {
        raw::deallocate(null_mut());
        raw::deallocate_sized(null_mut(), 100);
        assert_eq!(raw::usable_bytes(null_mut()), 0);
        let object = raw::reallocate(null_mut(), 0, None);
        assert!(!object.is_null());
        raw::deallocate(object);
    }
}

#[test]
fn sizes_of_every_kind_of_memory() {
    let hint = Some(NonNull::dangling());
    for (bytes, hint, at_least, at_most) in [
        (0, None, 1, 8),
        (24, None, 24, 32),
        (24, hint, 24, 24),
        (20, hint, 24, 24),
        (512, hint, 512, 512),
        (16_384, None, 16_384, 16_384),
        (16_385, None, 16_385, 20_480),
        (900_000, None, 900_000, 983_040),
        (5 << 20, None, 5 << 20, 6 << 20),
    ] {
        let object = raw::allocate(bytes, raw::natural_align(bytes), hint);
        let size = |object: *const u8| {
            // SAFETY: live until this turn ends.
            unsafe { raw::usable_bytes(object) }
        };
        let usable = size(object);
        assert!((at_least..=at_most).contains(&usable), "{bytes}: {usable}");
        let address = object.addr();
        let elsewhere = std::thread::scope(|scope| {
            let there = scope.spawn(move || size(std::ptr::without_provenance(address)));
            there.join().unwrap()
        });
        assert_eq!(usable, elsewhere);
        // SAFETY: live, and given up here.
        unsafe { raw::deallocate(object) };
    }
}

#[test]
fn objects_stay_where_they_have_room() {
    if !crate::alone("raw::objects_stay_where_they_have_room") {
        return;
    }
    let object = raw::allocate(40, 16, None);
    // SAFETY: live throughout; each result replaces the pointer before.
    unsafe {
        // The size class has room for more, and few bytes are not worth a copy.
        assert_eq!(raw::reallocate(object, 48, None), object);
        assert_eq!(raw::reallocate(object, 1, None), object);
        raw::deallocate(object);
        let hinted = raw::allocate(24, 16, Some(NonNull::dangling()));
        // There are free granules behind it.
        assert_eq!(raw::reallocate(hinted, 512, None), hinted);
        assert_eq!(raw::usable_bytes(hinted), 512);
        let neighbour = raw::allocate(16, 16, NonNull::new(hinted));
        let moved = raw::reallocate(hinted, 4000, None);
        assert_ne!(moved, hinted);
        raw::deallocate(neighbour);
        raw::deallocate(moved);
        let large = raw::allocate(3 << 20, 16, None);
        large.write(7);
        let larger = raw::reallocate(large, 64 << 20, None);
        assert_eq!(larger.read(), 7);
        let small = raw::reallocate(larger, 100, None);
        assert_eq!(small.read(), 7);
        assert!(raw::usable_bytes(small) < 200);
        raw::deallocate(small);
    }
    check().unwrap();
}

#[test]
fn hints_work_without_layouts() {
    if !crate::alone("raw::hints_work_without_layouts") {
        return;
    }
    let root = raw::allocate(24, 16, Some(NonNull::dangling()));
    let near = raw::allocate(24, 16, NonNull::new(root));
    assert_eq!(root.addr() / 64, near.addr() / 64);
    // SAFETY: both live, and given up here.
    unsafe {
        raw::deallocate(root);
        raw::deallocate(near);
    }
}
