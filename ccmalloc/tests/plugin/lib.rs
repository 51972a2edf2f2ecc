//! A shared library that has `CcMalloc` as its global allocator, for `host.c` beside it to open,
//! use and close.

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

/// Allocates, checks and frees; returns 1 when all was as it should be.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_work() -> core::ffi::c_int {
    let first = Box::new(0u64);
    let boxes: Vec<Box<u64>> = (1..=1000)
        .map(|n| ccmalloc::near(&*first, || Box::new(n)))
        .collect();
    let sum = boxes.iter().map(|number| **number).sum::<u64>() + *first;
    (sum == 500_500 && ccmalloc::contains(boxes.as_ptr().cast())).into()
}
