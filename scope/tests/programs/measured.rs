//! A test that is not content with what it has measured, and one that is.

use std::alloc::System;
use std::hint::black_box;

use ccscope::{Profiled, measure};

#[global_allocator]
static GLOBAL: Profiled<System> = Profiled::new(System);

#[inline(never)]
fn parse(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn main() {
    let caught = std::panic::catch_unwind(|| {
        let heap = measure(|| black_box(parse("one two three")).len());
        assert!(heap.allocations <= 2);
    });
    assert!(caught.is_err());
    let heap = measure(|| drop(black_box(Box::new(1_u64))));
    assert!(heap.allocations == 1 && heap.live == 0);
}
