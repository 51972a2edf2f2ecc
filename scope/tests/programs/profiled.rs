//! A global allocator in Rust, which no tool sees, within one that tells.

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccscope::Profiled;

unsafe extern "C" {
    fn mmap(at: *mut u8, len: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
}

/// Memory of one mapping, which is never given back.
struct Mapping {
    next: AtomicUsize,
}

#[global_allocator]
static GLOBAL: Profiled<Mapping> = Profiled::new(Mapping {
    next: AtomicUsize::new(0),
});

// SAFETY: each byte is given out once, and the mapping is larger than all that is asked for.
unsafe impl GlobalAlloc for Mapping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.next.load(Ordering::Relaxed) == 0 {
            // SAFETY: new memory of this process alone.
            let start = unsafe { mmap(std::ptr::null_mut(), 1 << 24, 3, 0x22, -1, 0) };
            self.next.store(start.expose_provenance(), Ordering::Relaxed);
        }
        let taken = self.next.fetch_add(layout.size() + 4096, Ordering::Relaxed);
        std::ptr::with_exposed_provenance_mut(taken.next_multiple_of(layout.align()))
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

fn main() {
    let mut list: Vec<u8> = black_box(Vec::with_capacity(4321));
    list.push(1);
    list.reserve_exact(6321 - list.len());
    black_box(&list);
    let zeros = vec![0_u8; 3331];
    black_box(&zeros);
}
