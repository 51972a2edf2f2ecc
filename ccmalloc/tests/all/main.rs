//! Everything here runs with `CcMalloc` as global allocator: the test harness, quickcheck and the standard library are part
//! of the test.

mod misuse;
mod placement;
mod process;
mod program;
mod region;
mod shadow;
mod std_types;
mod threads;

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

/// `count`, or a small part of it under Miri, which takes a thousand times as long.
const fn times(count: usize) -> usize {
    if cfg!(miri) {
        count.div_ceil(100)
    } else {
        count
    }
}
