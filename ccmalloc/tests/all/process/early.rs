//! Before `main`: functions that the loader calls while the standard library knows of nothing yet.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use ccmalloc::{CcMalloc, cc_alloc, check};

const LAYOUTS: [(usize, usize); 6] = [
    (24, 8),
    (64, 64),
    (1000, 16),
    (20_000, 8),
    (100_000, 4096),
    (3 << 20, 8),
];

/// One object of each layout, made before `main`.
static OBJECTS: [AtomicPtr<u8>; LAYOUTS.len()] =
    [const { AtomicPtr::new(null_mut()) }; LAYOUTS.len()];
/// An object with the first as its hint.
static HINTED: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// A key that was made before the allocator made its own, plus one.
pub(super) static FIRST_KEY: AtomicUsize = AtomicUsize::new(0);

fn layout((bytes, align): (usize, usize)) -> Layout {
    Layout::from_size_align(bytes, align).expect("the table is right")
}

extern "C" fn before_main() {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is writable, and the destructor has the right signature.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(super::exits::at_thread_exit)) } == 0 {
        FIRST_KEY.store(key as usize + 1, Ordering::Relaxed);
    }
    for (place, shape) in OBJECTS.iter().zip(LAYOUTS) {
        // SAFETY: the layout is not empty. One is freed, allocated again and resized at once.
        unsafe {
            let object = CcMalloc.alloc(layout(shape));
            if object.is_null() {
                continue;
            }
            CcMalloc.dealloc(object, layout(shape));
            let object = CcMalloc.alloc(layout((shape.0 / 2, shape.1)));
            let object = CcMalloc.realloc(object, layout((shape.0 / 2, shape.1)), shape.0);
            object.write_bytes(0x5a, shape.0);
            place.store(object, Ordering::Relaxed);
        }
    }
    let hint = NonNull::new(OBJECTS[0].load(Ordering::Relaxed));
    if let Some(object) = cc_alloc(Layout::new::<u64>(), hint) {
        HINTED.store(object.as_ptr(), Ordering::Relaxed);
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
#[used]
// The section holds pointers to functions without a result, and that is what this is; arguments
// that the loader passes are not looked at.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

/// Frees them: some here, in another thread than the one that made them, some in a third.
pub(super) fn objects_from_before_main() {
    let objects: Vec<(usize, usize)> = OBJECTS
        .iter()
        .map(|object| object.swap(null_mut(), Ordering::Relaxed))
        .zip(LAYOUTS)
        .map(|(object, shape)| {
            assert!(!object.is_null(), "{shape:?}");
            assert_eq!(object.addr() % shape.1, 0);
            // SAFETY: live, initialised, and this large.
            let contents = unsafe { std::slice::from_raw_parts(object, shape.0) };
            assert!(contents.iter().all(|&byte| byte == 0x5a));
            (object.expose_provenance(), shape.0)
        })
        .collect();
    let hinted = HINTED.swap(null_mut(), Ordering::Relaxed);
    assert!(!hinted.is_null());
    // SAFETY: allocated with this layout.
    unsafe { CcMalloc.dealloc(hinted, Layout::new::<u64>()) };
    let free = |objects: &[(usize, usize)]| {
        for &(address, bytes) in objects {
            let (_, align) = LAYOUTS.into_iter().find(|shape| shape.0 == bytes).unwrap();
            // SAFETY: allocated with this layout, and freed once.
            unsafe {
                CcMalloc.dealloc(
                    std::ptr::with_exposed_provenance_mut(address),
                    layout((bytes, align)),
                );
            };
        }
    };
    let (here, there) = objects.split_at(3);
    free(here);
    std::thread::scope(|scope| {
        scope.spawn(|| free(there));
    });
    check().unwrap();
}
